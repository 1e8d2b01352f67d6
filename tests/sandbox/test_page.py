"""The inbox page: its headers, and, with MSGCTL_TEST_BROWSER=1, its behaviour in headless Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from msgctl.sandbox.protocol import SandboxRequest

from .world import FORM, JSON, PHONE, Served, World

KEY = "a-key-to-hide"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>\x1b[31m"
BROWSER = os.environ.get("MSGCTL_TEST_BROWSER") == "1"

in_browser = pytest.mark.skipif(not BROWSER, reason="needs Chromium; set MSGCTL_TEST_BROWSER=1")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path / "state.db", clock=time.time, key=KEY)
    yield world
    world.emulator.close()


def post(world: World, path: str, **parameters: str) -> Any:
    return json.loads(world.post(path, **{"key": KEY, **parameters}).body)


def overview(world: World, **query: str) -> Any:
    return json.loads(world.ask("overview", **query).body)


# --- the parts of the page


def test_the_policy_allows_only_the_pages_own_script_and_style(world: World) -> None:
    assert world.respond(SandboxRequest("HEAD", "/")).status == 200
    assert world.respond(SandboxRequest("POST", "/")).headers["allow"] == "GET, HEAD"
    page = world.respond(SandboxRequest("GET", "/"))
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    text = page.body.decode()
    assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|https?://", text)
    assert not re.search(r"\son\w+=\"|\sstyle=\"", text)


def test_only_short_urls_of_the_sandbox_are_links_in_a_message(world: World) -> None:
    path = shortened(world)
    origin = world.emulator.origin
    post(world, "/send-sms", phone=PHONE, sms=f"See {origin}{path}, https://evil.example{path} or javascript:{path}")
    (message,) = overview(world)["messages"]
    link = {"text": origin + path, "path": path}
    assert message["parts"] == ["See ", link, f", https://evil.example{path} or javascript:{path}"]
    assert world.respond(SandboxRequest("GET", path)).headers["location"] == "https://shop.example/"


def shortened(world: World) -> str:
    url = post(world, "/url/short", name="shop", url_long="https://shop.example/")["urlShort"]
    return str(url).removeprefix(world.emulator.origin)


def test_the_overview_contains_no_key_not_even_of_another_account(world: World) -> None:
    sent = [
        SandboxRequest("POST", "/api/v1/chatapp/send", f"key={KEY}", JSON, json.dumps({"key": KEY}).encode()),
        SandboxRequest("GET", f"/api/v1/balance&key={KEY}"),
        SandboxRequest("GET", "/api/v1/balance", "client=1&KEY=hidden-b&key=hidden%2Dc"),
        SandboxRequest("GET", "/api/v1/balance&KEY=hidden-d"),
        SandboxRequest("POST", "/api/v1/send-sms", "", FORM, b"+key=hidden-f&key=hidden-g"),
        SandboxRequest("POST", "/api/v1/chatapp/send", "", JSON, b'{"Key" : "hidden\\"-hidden-i", "a": {"key": 4711}}'),
    ]
    for request in sent:
        world.respond(request)
    assert len(overview(world)["requests"]) == len(sent)
    assert not re.findall(f"hidden|4711|{KEY}", json.dumps(overview(world)))


def test_the_parameters_of_a_form_are_decoded_and_json_is_shown_as_it_is(world: World) -> None:
    world.post("/send-sms", phone=PHONE, sms="one two")
    world.respond(SandboxRequest("POST", "/api/v1/chatapp/send", "", JSON, b'{"a": "1+1"}'))
    as_json, form = (request["parameters"] for request in overview(world)["requests"])
    assert "sms=one two" in form
    assert as_json == '{"a": "1+1"}'


def test_a_long_request_is_cut(world: World) -> None:
    world.respond(SandboxRequest("GET", "/" + "x" * 10_000, "x" * 10_000))
    assert len(overview(world)["requests"][0]["path"]) < 2_100


def test_a_refused_request_is_explained_by_the_rule_it_broke(world: World) -> None:
    refused = [
        (("/call/send", {"phone": PHONE, "message": "x", "voice": "Bob"}), "voice: string, optional, in the form body"),
        (("/send-sms", {"phone": PHONE}), "sms: string, required, in the form body"),
        (("/call/2fa/send-call", {"phone": PHONE, "app-name": "a", "voice": "Mia", "retries": "4"}), "at most 3"),
        (("/call/send", {"phone": PHONE, "message": "x"}), "required without audio-code"),
        (("/send-sms", {"key": "wrong"}), "client and key"),
        (("/sned-sms", {}), "/send-sms"),
        (("/balance", {}), "GET operation"),
        (("/chatapp/send", {}), "client and key in the query string, and a JSON body"),
    ]
    for (path, parameters), _ in refused:
        post(world, path, **parameters)
    rules = [each["rule"] for each in reversed(overview(world)["requests"])]
    assert len(rules) == len(refused)
    for rule, (_, part) in zip(rules, refused, strict=True):
        assert part in rule


def test_the_overview_waits_for_a_change(world: World, served: Served) -> None:
    def waited(seconds: float) -> Any:
        query = f"since={before['version']}&wait={seconds}"
        return json.loads(served.send(SandboxRequest("GET", "/sandbox/overview", query)).body)

    before = overview(world)
    assert waited(0.05) == {"version": before["version"]}
    post(world, "/2fa/send-sms", phone=PHONE, app_name="Shop")
    after = waited(15)
    (message,) = after["messages"]
    assert (after["moving"], after["credits"], message["history"][0]["state"]) == (True, 999, "queued")
    assert message["code"] in message["text"]


def test_requests_are_listed_by_the_clock_of_the_sandbox(world: World) -> None:
    world.change("clock", change="2027-01-01")
    world.change("clock", change="start")
    post(world, "/send-sms", phone=PHONE, sms="Hola")
    shown = overview(world)
    assert shown["requests"][0]["time"][:10] == shown["messages"][0]["time"][:10] == "2027-01-01"
    world.change("reset")
    world.get("/balance")
    assert overview(world)["requests"][0]["time"] < "2027"


# --- in a browser


@pytest.fixture
def page(served: Served) -> Iterator[Any]:
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.set_default_timeout(10_000)
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda printed: (
                problems.append(printed.text) if printed.type == "error" and "400" not in printed.text else None
            ),
        )
        page.goto(f"http://127.0.0.1:{served.port}/")
        yield page
        chromium.close()
        assert problems == []


@in_browser
def test_a_message_appears_within_a_second_and_stays_text(page: Any, world: World) -> None:
    page.get_by_text("No messages yet").wait_for()
    post(world, "/send-sms", phone=PHONE, sms=HOSTILE)
    page.locator("#messages").get_by_text("<img src=x onerror").wait_for(timeout=1000)
    assert page.locator("#messages img, #messages script").count() == 0
    assert page.title() == "msgctl sandbox"
    page.locator("#messages .good").wait_for()  # delivered, without any further request


@in_browser
def test_links_codes_credits_clock_faults_and_responses_are_shown(page: Any, world: World) -> None:
    path = shortened(world)
    post(world, "/send-sms", phone=PHONE, sms=f"See {world.emulator.origin}{path} or https://evil.example{path}")
    page.locator("#messages a").wait_for()
    assert [each.get_attribute("href") for each in page.locator("#messages a").all()] == [path]
    assert page.locator("#messages a").evaluate("each => each.origin") + "/" == page.url
    post(world, "/2fa/send-sms", phone=PHONE, app_name="Shop")
    page.get_by_role("button", name="Copy").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == world.inbox()[1]["code"]
    world.fault("503:next=1")
    world.change("credit", credits=1050)
    world.change("responses", responses="observed")
    world.change("clock", change="stop")
    page.locator("#faults", has_text="503:next=1").wait_for()
    page.locator("#credits", has_text="1,050").wait_for()
    page.locator("#responses", has_text="observed").wait_for()
    page.locator("#clock", has_text="(stopped)").wait_for()
    assert page.locator("form, select, input:not(#search)").count() == 0


@in_browser
def test_a_phone_is_chosen_by_keyboard_and_messages_are_searched(page: Any, world: World) -> None:
    post(world, "/send-sms", phone="573001230004", sms="first")
    post(world, "/send-sms", phone="573001230005", sms="second")
    page.get_by_text("second", exact=True).wait_for()
    page.get_by_role("button", name="All").focus()
    page.keyboard.press("ArrowDown")
    page.get_by_text("first", exact=True).wait_for(state="detached")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("/")
    page.keyboard.type("FIRST")
    page.get_by_text("second", exact=True).wait_for(state="detached")
    assert page.locator("#messages article").count() == 1
