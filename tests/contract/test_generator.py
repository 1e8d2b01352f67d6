"""A program that knows only `commands --json` uses all of msgctl: it makes a Python function of each command."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.tool import Tool

PHONE, OTHER = "573001234567", "573007654321"
NUMBERS: Mapping[str, Any] = {"integer": int, "number": (int, float), "duration": (int, float), "flag": bool}


def decoded(shape: str, text: str) -> Any:
    """Return what --json printed."""
    if shape == "lines":
        return [json.loads(line) for line in text.splitlines()]
    decoder, documents = json.JSONDecoder(), []
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    if shape == "responses":
        return documents
    (document,) = documents
    assert isinstance(document, list if shape == "list" else dict)
    return document


def identifier(option: Mapping[str, Any]) -> str:
    return str(max(option["names"], key=len)).lstrip("-").replace("-", "_")


def function(tool: Tool, command: Mapping[str, Any], shared: list[Any]) -> Callable[..., Any]:
    """Return a function that runs a command: its arguments by position, its options by name."""
    options = {identifier(option): option for option in [*shared, *command["options"]]}
    required = {name for name, option in options.items() if option["required"]}
    is_multiple = any(argument["multiple"] for argument in command["arguments"])
    least = sum(argument["required"] for argument in command["arguments"])

    def run(*arguments: str, stdin: str = "", as_json: bool = True, **given: Any) -> Any:
        assert least <= len(arguments)
        assert is_multiple or len(arguments) <= len(command["arguments"])
        assert required <= set(given)
        words: list[str] = []
        for name, value in given.items():
            option = options[name]
            assert isinstance(value, NUMBERS.get(option["type"], (str, list)))
            longest = max(option["names"], key=len)
            if option["type"] == "flag":
                words += [longest] if value else option["off"]
            else:
                assert isinstance(value, list) <= option["multiple"]
                assert not option["choices"] or value in option["choices"]
                words += [f"{longest}={part}" for part in (value if isinstance(value, list) else [value])]
        if as_json:
            words.append("--json")
        done = tool(*command["name"].split(), *words, "--", *arguments, stdin=stdin)
        assert done.code == 0, (command["name"], words, done.err)
        return decoded(command["json"], done.out) if as_json else done.out

    return run


@pytest.fixture
def description(tool: Tool, home: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(home)
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    Path("people.csv").write_text(f"phone,name\n{PHONE},Ana\n{OTHER},Luis\n")
    return tool("commands", "--json").document


def use(call: Caller) -> None:
    """Use every command that ends by itself, in an empty sandbox."""
    people, links = "people.csv", {"to": "https://shop.example/?c={name}", "name": "sale-{name}"}
    call("sms send", PHONE, message="Hello")
    call("sms send", PHONE, OTHER, message="Hello again", once="a-key", gsm7=True)
    call("sms segments", "Hello")
    call("sms bulk", people, message="Hi {name}", yes=True, name="today", max_credits=10)
    call("call send", PHONE, message="Hello", voice="Mia", retries=2, leave_voicemail=False)
    call("call bulk", people, message="Hi {name}", voice="Mia", yes=True)
    call("chatapp send", PHONE, "Ana", template="hello")
    call("chatapp order", PHONE, "1029", template="order")
    call("chatapp bulk", people, "{name}", template="hello", yes=True)
    call("2fa send-call", PHONE, app_name="Shop", voice="Mia")
    call("2fa send-chatapp", PHONE, app_name="Shop")
    call("2fa send-sms", PHONE, app_name="Shop")
    call("2fa verify", PHONE, app_name="Shop", code=call.code())
    call("url shorten", "https://shop.example/", name="offers", premium=True)
    call("sandbox click", "offers", count=3)
    call("url stats", "offers", category="date")
    call("url bulk", people, **links)
    call("url clicks", people, name="sale-{name}")
    call("state get", last=True)
    call("state watch", last=True, until="delivered")
    for name in ("show", "states", "report"):
        call(f"job {name}", "today")
    call("job resend", "today", only="unknown", yes=True)
    call("job list")
    call("job run-due")
    call("sms bulk", people, message="Later", yes=True, name="later", at="2099-12-01 09:00")
    call("job cancel", "later", yes=True)
    call("job resume", call.paused(), yes=True)
    call("job remove", "later", yes=True)
    call("history", since="2020-01-01")
    call("usage", by="day")
    call("history clear", yes=True)
    call("balance")
    call("balance check", min=5)
    call("block add", PHONE, OTHER)
    call("optout add", PHONE, OTHER, channel="sms")
    call("optout list")
    call("optout remove", PHONE, channel="sms")
    call("optout import", people)
    call("api", "GET", "/balance")
    call("sandbox inbox", PHONE)
    call("sandbox credit", "500")
    call("sandbox fault", "503:next=2")
    call("sandbox clock", "stop")
    call("sandbox responses", "documented")
    call("profile add", "main", base_url="https://sms.example/api/v1", client=12345, key_stdin=True, stdin="a-key")
    call("profile set", "main", country_code="CO")
    call("profile use", "main")
    call("profile show", "main")
    call("profile list")
    call("profile path")
    call("profile remove", "main", yes=True)
    call("doctor", dry_run=True)
    call("commands")
    call("completion", "bash")
    call("help", "sms", "send")
    call("store move", to="another.sqlite3")
    call("sandbox reset", yes=True)


class Caller:
    """Calls the functions that were made of a description, and notes which of them it called."""

    def __init__(self, tool: Tool, description: Any, *, as_json: bool) -> None:
        commands, shared = description["commands"], description["global_options"]
        self.functions = {command["name"]: function(tool, command, shared) for command in commands}
        self.as_json = as_json
        self.results: dict[str, Any] = {}

    def __call__(self, command: str, /, *arguments: str, **given: Any) -> None:
        self.results[command] = self.functions[command](*arguments, as_json=self.as_json, **given)

    def code(self) -> str:
        return str(self.functions["sandbox inbox"](PHONE)[-1]["code"])

    def paused(self) -> str:
        bulk = self.functions["sms bulk"]
        return str(bulk("people.csv", message="Part", yes=True, canary=1, batch_size=1)["job"])


def test_every_command_can_be_called_and_prints_the_shape_of_json(tool: Tool, description: Any) -> None:
    call = Caller(tool, description, as_json=True)
    use(call)
    assert call.functions.keys() - call.results.keys() == {"sandbox serve", "sandbox exec"}
    assert call.results["sms send"]["data"][1]["phone"] == OTHER
    assert [record["phone"] for record in call.results["block add"]] == [PHONE, OTHER]


def test_the_output_of_a_command_is_the_columns_of_tsv_in_their_order(tool: Tool, description: Any) -> None:
    call = Caller(tool, description, as_json=False)
    use(call)
    for command in description["commands"]:
        header = call.results.get(command["name"], "").partition("\n")[0].split("\t")
        if command["name"] == "job report":  # the columns of the file follow
            header.remove("name")
        if command["output"] and command["name"] not in ("url bulk", "url clicks"):
            assert header == command["output"], command["name"]
