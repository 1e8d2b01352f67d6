"""Personal links: each recipient's message has its own short URL, which exists before the message is sent."""

from __future__ import annotations

import json
import socket
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from msgctl.errors import UsageError
from msgctl.jobs.reader import Row
from msgctl.jobs.template import long_urls
from support.jobs import ANA, EVA, LUIS, Jobs, accepting, counts, table
from support.sandbox import Sandbox
from support.service import Service, drop, respond
from support.tool import Outcome, Tool

SHOP = "https://shop.example/?c={id}"
LINKED = ("-m", "Hi {link}", "--link", SHOP, "--yes")


@pytest.fixture
def customers(home: Path) -> str:
    return table(home, "phone,id", f"{ANA},a&b", f"{LUIS},l", f"{EVA},é")


def send(sandbox: Sandbox, file: str, *more: str, text: str = "Hi {link}", link: str = SHOP) -> Outcome:
    return sandbox("sms", "bulk", file, "-m", text, "--link", link, "--yes", "--json", *more)


def inbox(sandbox: Sandbox) -> dict[str, str]:
    """Return the text that each phone received; no phone may have received two."""
    messages = sandbox.document("sandbox", "inbox")
    found = {each["phone"]: each["text"] for each in messages}
    assert len(found) == len(messages)
    return found


def stats(sandbox: Sandbox, name: str) -> Any:
    """Return the statistics of a short URL, without what surrounds them in other sets of responses."""
    found = sandbox.document("url", "stats", name, "--since", "today")
    while "urlShort" not in found:
        found = found[0] if isinstance(found, list) else found["data"]
    return found


@pytest.mark.every_set
def test_each_message_contains_the_recipients_link(sandbox: Sandbox, customers: str) -> None:
    job = send(sandbox, customers).document["job"]
    found = {}
    for line, phone in enumerate((ANA, LUIS, EVA), start=2):
        url = stats(sandbox, f"{job}-{line}")
        found[phone] = parse_qs(urlsplit(url["urlLong"]).query)["c"]
        assert inbox(sandbox)[phone] == f"Hi {url['urlShort']}"
    assert found == {ANA: ["a&b"], LUIS: ["l"], EVA: ["é"]}


def test_chatapp_values_contain_the_link(sandbox: Sandbox, customers: str) -> None:
    command = ("chatapp", "bulk", customers, "{id}", "See {link}", "--template", "offer", "--link", SHOP, "--yes")
    job = json.loads(sandbox.done(*command, "--json"))["job"]
    url = stats(sandbox, f"{job}-3")["urlShort"]
    (message,) = sandbox.document("sandbox", "inbox", LUIS)
    assert message["values"] == ["l", f"See {url}"]


def test_gsm7_leaves_the_link_unchanged(sandbox: Sandbox, customers: str) -> None:
    job = send(sandbox, customers, "--gsm7", text="Sí  {link} á").document["job"]
    assert inbox(sandbox)[ANA] == f"Si  {stats(sandbox, f'{job}-2')['urlShort']} a"


def test_only_a_job_with_the_same_link_is_a_repeat(sandbox: Sandbox, customers: str) -> None:
    send(sandbox, customers)
    assert send(sandbox, customers, link="https://shop.example/other?c={id}").code == 0
    send(sandbox, customers).refused(2, "--again")


def test_the_history_shows_the_message_with_its_link(sandbox: Sandbox, customers: str) -> None:
    send(sandbox, customers)
    assert {each["phone"]: each["message"] for each in sandbox.document("history")} == inbox(sandbox)


def test_a_dry_run_shows_a_made_up_link_of_the_assumed_length_and_creates_none(
    sandbox: Sandbox, customers: str
) -> None:
    done = send(sandbox, customers, "--dry-run", "--link-length", "25", text="{link}" + "x" * 136)
    assert done.document["first"]["sms"] == "https://link.example/xxxx" + "x" * 136
    assert done.document["segments"] == 6  # 161 characters each
    refused = sandbox("url", "stats", "20260921-000000-2")
    assert refused.code == 1
    assert sandbox.document("sandbox", "inbox") == []


@pytest.mark.parametrize(
    ("text", "link", "more", "what"),
    [
        ("Hi", SHOP, (), "does not contain {link}"),
        ("Hi {link}", "ftp://shop.example/", (), "not an absolute http or https URL"),
        ("Hi {link}", "https://{id}.example/", (), "column in its host"),
        ("Hi {link}", "HTTP://{id}.example/", (), "column in its host"),
        ("Hi {link}", "https://shop.example{id}", (), "column in its host"),
        ("Hi {link}", "https://a b.example/?c={id}", (), 'The URL "https://a b.example/?c=0" contains a space'),
        ("Hi {link}", "https://shop.example:{id}/", (), "column in its host"),
        ("Hi {link}", "https://shop.example\\{id}", (), "column in its host"),
        ("Hi {link}", "{id}://shop.example/", (), "not an absolute http or https URL"),
        ("Hi {link}", "https:/{id}", (), "not an absolute http or https URL"),
        ("Hi {link}", "https://shop.example/#{id}", (), "column after #"),
        ("Hi {link}", "https://shop.example/{nobody}", (), "--link uses {nobody}, but the file has no such column"),
        ("Hi {link}", SHOP, ("--link-length", "9"), "--link-length must be from 10 to 200"),
    ],
)
def test_a_link_that_cannot_be_used_is_a_usage_error(
    text: str, link: str, more: tuple[str, ...], what: str, sandbox: Sandbox, customers: str
) -> None:
    done = send(sandbox, customers, *more, text=text, link=link)
    assert (done.code, what in done.error["message"]) == (2, True), done.err


def test_the_placeholder_needs_the_option_and_no_column_of_its_name(
    sandbox: Sandbox, home: Path, customers: str
) -> None:
    without = sandbox("sms", "bulk", customers, "-m", "Hi {link}", "--yes")
    without.refused(2, "The message uses {link}", "add --link URL")
    own = table(home, "phone,Link", f"{ANA},https://own.example")
    sandbox("sms", "bulk", own, "-m", "Hi {link}", "--link", "https://a.example", "--yes").refused(2, "column link")
    assert sandbox("sms", "bulk", own, "-m", "Hi {link}", "--yes").code == 0
    assert inbox(sandbox) == {ANA: "Hi https://own.example"}
    sandbox("sms", "bulk", own, "-m", "Hi", "--link-length", "20", "--yes").refused(2, "--link-length needs --link")
    sandbox("sms", "bulk", own, "-m", "Hi", "--link-length", "9", "--yes").refused(2, "from 10 to 200")


TRICKS = [
    "//evil.example",
    "\\evil.example",
    "@evil.example",
    "/../..//evil.example",
    "?#",
    "javascript:",
    "%2f%2f",
    "x:y",
]


@given(cell=st.one_of(st.sampled_from(TRICKS), st.text(min_size=1)))
@pytest.mark.parametrize(
    "template", ["https://shop.example/{x}", "https://shop.example?{x}={x}", "https://shop.example/a{x}"]
)
def test_no_cell_changes_the_host_the_scheme_or_the_fragment(template: str, cell: str) -> None:
    try:
        url = long_urls(template, ["x"])(Row(2, ANA, (cell,)))
    except UsageError:
        return
    parts = urlsplit(url.replace("\\", "/"))
    assert (parts.scheme, parts.netloc, parts.fragment, url.isascii()) == ("https", "shop.example", "", True)


def test_a_row_whose_cell_does_not_fit_into_a_url_is_invalid(sandbox: Sandbox, home: Path) -> None:
    file = table(home, "phone,id", f"{ANA},..", f"{LUIS},", f"{EVA},e")
    done = send(sandbox, file, "--skip-invalid", link="https://shop.example/{id}")
    assert counts(done.document) == {"accepted": 1, "invalid": 2}


# --- only people who get a message have a link


def test_excluded_people_and_people_after_a_canary_have_no_link(sandbox: Sandbox, home: Path, customers: str) -> None:
    sandbox.done("optout", "add", ANA)
    done = send(sandbox, customers, "--canary", "1")
    assert counts(done.document) == {"accepted": 1, "pending": 1, "excluded": 1}
    job = done.document["job"]
    assert links(sandbox, job) == [3]
    sandbox.done("job", "resume", job, "--yes")
    assert links(sandbox, job) == [3, 4]
    assert inbox(sandbox).keys() == {LUIS, EVA}


def test_who_reaches_the_limit_of_messages_before_the_request_has_no_link(sandbox: Sandbox, customers: str) -> None:
    job = send(sandbox, customers, "--canary", "1", "--at-most", "1/day").document["job"]
    sandbox.done("sms", "send", LUIS, "-m", "Hi")
    done = sandbox("job", "resume", job, "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1}), done.err
    assert links(sandbox, job) == [2, 4]


def links(sandbox: Sandbox, job: str) -> list[int]:
    """Return the lines whose links exist."""
    names = {line: sandbox("url", "stats", f"{job}-{line}", "--since", "today") for line in (2, 3, 4)}
    return [line for line, done in names.items() if done.code == 0]


def test_a_test_message_has_its_own_link(tool: Tool, home: Path) -> None:
    file = table(home, "phone,id", f"{ANA},a")
    command = ("sms", "bulk", file, "-m", "Hi {link}", "--link", SHOP, "--test-to", EVA, "--yes")
    assert tool("-p", "sandbox", *command, terminal=True).code == 0
    texts = inbox(Sandbox(tool))
    assert texts.keys() == {ANA, EVA}
    assert texts[ANA] != texts[EVA]


def test_a_test_message_has_its_own_link_even_with_exclude_repeats(tool: Tool, home: Path) -> None:
    sandbox = Sandbox(tool)
    send(sandbox, table(home, "phone,id", f"{ANA},a"))
    file = table(home, "phone,id", f"{ANA},a", f"{LUIS},l")
    command = ("sms", "bulk", file, *LINKED, "--exclude-repeats", "--test-to", EVA)
    done = tool("-p", "sandbox", *command, terminal=True)
    assert done.code == 0, done.err
    texts = inbox(sandbox)
    assert texts.keys() == {ANA, LUIS, EVA}
    assert len({*texts.values()}) == 3
    assert all(text.startswith("Hi https://") for text in texts.values()), texts


def test_a_message_whose_link_is_longer_than_assumed_is_reported_and_counts_for_max_credits(
    sandbox: Sandbox, customers: str
) -> None:
    text = "{link}" + "x" * 150  # one segment with 10 characters, two with 33
    command = (
        "sms",
        "bulk",
        customers,
        "-m",
        text,
        "--link",
        SHOP,
        "--link-length",
        "10",
        "--max-credits",
        "5",
        "--yes",
    )
    done = sandbox(*command)
    assert "Warning: 2 messages had more segments than estimated" in done.err
    assert (done.code, sandbox.credits()) == (6, 996)


# --- links that are refused or lost


def fail(sandbox: Sandbox, fault: str) -> None:
    sandbox.done("sandbox", "fault", fault)


def test_people_whose_link_is_refused_get_no_message_until_the_user_asks_for_it(
    sandbox: Sandbox, customers: str
) -> None:
    fail(sandbox, "520:next=1:/url/short")
    done = send(sandbox, customers, "--concurrency", "1")
    assert (done.code, counts(done.document)) == (6, {"accepted": 2, "refused": 1})
    job = done.document["job"]
    (row,) = sandbox.document("job", "report", job, "--only", "refused")
    assert (row["phone"], "the link could not be created" in row["error"]) == (ANA, True)
    assert inbox(sandbox).keys() == {LUIS, EVA}
    assert sandbox("job", "resume", job, "--resend-refused", "--max-credits", "3", "--yes").code == 0
    assert inbox(sandbox).keys() == {ANA, LUIS, EVA}


@pytest.mark.parametrize("kind", ["drop", "truncate", "garbage", "503"])
def test_a_link_whose_response_is_lost_is_looked_up_by_its_name(kind: str, sandbox: Sandbox, customers: str) -> None:
    fail(sandbox, f"{kind}:next=2:/url/short")  # the sandbox refuses to create a name twice
    done = send(sandbox, customers)
    assert (done.code, counts(done.document)) == (0, {"accepted": 3}), done.err
    assert len({*inbox(sandbox).values()}) == 3


def test_a_link_whose_responses_are_lost_is_requested_three_times(jobs: Jobs, service: Service, home: Path) -> None:
    def behave(connection: socket.socket) -> None:
        path = service.received[-1].path
        unlinked = {"short": drop, "short-statistic": respond({"error": "none"}, 404)}
        unlinked.get(path.rpartition("/")[2], accepting(service))(connection)

    service.always(behave)
    jobs.send(table(home, "phone,id", f"{ANA},a"), "--link", SHOP, text="Hi {link}", code=6)
    paths = [each.path.rpartition("/")[2] for each in service.received]
    assert paths == ["balance", "short", *["short-statistic", "short"] * 2]


def test_a_job_stops_if_no_link_can_be_created(sandbox: Sandbox, home: Path) -> None:
    file = table(home, "phone,id", *(f"57300123456{number},{number}" for number in range(10)))
    for fault, outcome in (("drop:/url/short", {"pending": 10}), ("520:/url/short", {"pending": 5, "refused": 5})):
        fail(sandbox, fault)
        fail(sandbox, fault)
        done = send(sandbox, file, "--concurrency", "1", "--again")
        assert (done.code in (1, 6), counts(done.document)) == (True, outcome), done.err
        assert sandbox.document("sandbox", "inbox") == []
    fail(sandbox, "clear")
    assert sandbox("job", "resume", "--last", "--resend-refused", "--yes").code == 0
    assert len(inbox(sandbox)) == 10


def test_a_job_stops_after_failed_messages_although_their_links_are_created(sandbox: Sandbox, home: Path) -> None:
    file = table(home, "phone,id", *(f"57300123456{number},{number}" for number in range(10)))
    fail(sandbox, "drop:/send-sms")
    done = send(sandbox, file, "--concurrency", "1")
    assert (done.code, counts(done.document)) == (6, {"unknown": 5, "pending": 5}), done.err


def test_a_link_is_looked_up_from_the_day_before_as_the_service_may_be_in_another_time_zone(
    tool: Tool, jobs: Jobs, service: Service, customers: str
) -> None:
    def behave(connection: socket.socket) -> None:
        path = service.received[-1].path
        if path.endswith("/url/short"):
            drop(connection)
        elif path.endswith("/url/short-statistic"):
            url = {"urlShort": f"https://s.example/{len(service.received)}", "clicksNumber": 0, "metrics": []}
            respond(url)(connection)
        else:
            accepting(service)(connection)

    service.always(behave)
    jobs.send(customers, "--link", SHOP, text="Hi {link}")
    looked_up = [dict(each.form) for each in service.received if each.path.endswith("/url/short-statistic")]
    today = date.fromtimestamp(tool.clock.now)
    days = {(each["since"], each["until"]) for each in looked_up}
    assert days == {(str(today - timedelta(days=1)), str(today))}


def test_a_resent_message_contains_the_same_link(sandbox: Sandbox, customers: str) -> None:
    fail(sandbox, "520:next=1:/send-sms")
    job = send(sandbox, customers, "--concurrency", "1").document["job"]
    before = stats(sandbox, f"{job}-2")["urlShort"]
    sandbox.done("job", "resend", job, "--only", "refused", "--yes")
    assert inbox(sandbox)[ANA] == f"Hi {before}"


def test_the_same_key_with_another_link_is_refused(sandbox: Sandbox, customers: str) -> None:
    assert send(sandbox, customers, "--once", "monday").code == 0
    other: Any = send(sandbox, customers, "--once", "monday", link="https://other.example/")
    assert other.code == 2


# --- clicks


def click(sandbox: Sandbox, job: str, line: int, count: int) -> None:
    sandbox.done("sandbox", "click", f"{job}-{line}", "--count", str(count))


@pytest.mark.every_set
def test_clicks_are_counted_for_each_recipient(sandbox: Sandbox, customers: str) -> None:
    job = send(sandbox, customers).document["job"]
    assert {row["clicks"] for row in sandbox.rows("job", "report", job)} == {""}
    click(sandbox, job, 2, 2)
    click(sandbox, job, 4, 1)
    counted = sandbox.document("job", "clicks", job)
    assert {name: counted[name] for name in ("links", "clicked", "clicks")} == {"links": 3, "clicked": 2, "clicks": 3}
    rows = sandbox.rows("job", "report", job)
    assert [(row["phone"], row["clicks"]) for row in rows] == [(ANA, "2"), (LUIS, "0"), (EVA, "1")]
    assert {row["phone"]: f"Hi {row['link']}" for row in rows} == inbox(sandbox)
    assert [row["phone"] for row in sandbox.rows("job", "report", job, "--only", "clicked")] == [ANA, EVA]


def test_a_report_without_clicks_mentions_whether_they_are_counted(sandbox: Sandbox, customers: str) -> None:
    job = send(sandbox, customers).document["job"]
    terminal = Sandbox(sandbox.tool, terminal=True)
    assert f"Count the clicks first: msgctl job clicks {job}" in terminal("job", "report", job, "--only", "clicked").err
    sandbox.document("job", "clicks", job)
    assert f"→ Count the clicks: msgctl job clicks {job}" in terminal("job", "show", job).err
    assert "No one has clicked yet" in terminal("job", "report", job, "--only", "clicked").err


def test_the_clicks_are_shown_on_a_terminal_and_in_a_workbook(sandbox: Sandbox, customers: str, home: Path) -> None:
    job = send(sandbox, customers).document["job"]
    click(sandbox, job, 2, 2)
    click(sandbox, job, 3, 1)
    sandbox.done("job", "clicks", job)
    assert "Clicks       2 of 3 people  3 clicks" in Sandbox(sandbox.tool, terminal=True).done("job", "show", job)
    sandbox.done("job", "report", job, "--to", str(home / "report.xlsx"))
    header, *rows = cells(home / "report.xlsx")
    assert [row[header.index("clicks")] for row in rows] == [2, 1, 0]


def cells(book: Path) -> list[list[Any]]:
    return CalamineWorkbook.from_path(book).get_sheet_by_index(0).to_python()


def test_clicks_are_counted_again_until_everyone_has_clicked_or_the_time_is_over(
    sandbox: Sandbox, customers: str
) -> None:
    job = send(sandbox, customers).document["job"]
    waited = []

    def visit(seconds: float) -> None:
        sandbox.tool.clock.now += seconds
        waited.append(seconds)
        click(sandbox, job, len(waited) + 1, 1)

    limited = sandbox.tool("-p", "sandbox", "job", "clicks", job, "--follow", "--max-wait", "90", sleep=visit)
    assert (limited.code, "1 of 3 clicked" in limited.err, len(waited)) == (0, True, 2)
    followed = sandbox.tool("-p", "sandbox", "job", "clicks", job, "--follow", sleep=visit)
    assert (followed.code, len(waited)) == (0, 3)


def test_a_job_without_sent_links_is_not_followed(sandbox: Sandbox, customers: str) -> None:
    fail(sandbox, "520:/send-sms")
    job = send(sandbox, customers).document["job"]
    done = sandbox.tool("-p", "sandbox", "job", "clicks", job, "--follow", sleep=lambda _: pytest.fail("it waits"))
    assert done.code == 0, done.err


def test_links_that_cannot_be_checked_keep_their_clicks(sandbox: Sandbox, customers: str) -> None:
    job = send(sandbox, customers).document["job"]
    for line in (2, 3, 4):
        click(sandbox, job, line, 1)
    sandbox.done("job", "clicks", job)
    fail(sandbox, "520:next=1:/url/short-statistic")
    done = sandbox("job", "clicks", job, "--concurrency", "1")
    assert (done.code, "1 link could not be checked" in done.err) == (1, True)
    assert [row["clicks"] for row in sandbox.rows("job", "report", job)] == ["1", "1", "1"]


def test_a_job_without_links_has_no_clicks(sandbox: Sandbox, customers: str) -> None:
    job = json.loads(sandbox.done("sms", "bulk", customers, "-m", "Hi", "--yes", "--json"))["job"]
    sandbox("job", "clicks", job).refused(2, "has no personal links")
    assert "clicks" not in sandbox.rows("job", "report", job)[0]
