"""`--at-most`: no one gets more messages than that in a day or a week, from whatever sends them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.jobs import (
    ANA,
    EVA,
    LUIS,
    REFUSAL,
    Jobs,
    accepting,
    counts,
    numbers,
    of_phones,
    phones,
    sends,
    table,
)
from support.service import Service, drop, respond
from support.tool import Tool

pytestmark = pytest.mark.usefixtures("on_both_stores")
"""Every test runs with a store on SQLite, and again on PostgreSQL."""

MONDAY_MORNING = datetime(2026, 11, 23, 15, 0, tzinfo=UTC)  # 10:00 in Bogota
SPAIN = "34612345678"
"""A number in Madrid (16:00) or on the Canary Islands (15:00)."""
ONCE = ("--at-most", "1/day")
REASON = "reached the limit of 1/day"


@pytest.fixture
def jobs(tool: Tool, service: Service) -> Jobs:
    service.always(accepting(service))
    tool.clock.now = MONDAY_MORNING.timestamp()
    return Jobs(tool)


def sent_to(service: Service) -> list[str]:
    """Return who was sent to since this was called last."""
    found = sorted(phone for request in sends(service) for phone in phones(request))
    service.received.clear()
    return found


def left_out(jobs: Jobs, file: str, limit: str = "1/day", *more: str) -> list[str]:
    """Return the numbers that a new job would leave out because of its limit."""
    done = jobs.sms(file, "--dry-run", "--json", "--at-most", limit, *more, text=f"Another {limit} {more}")
    reason = f"reached the limit of {limit}"
    found = [row["phone"] for row in done.document["excluded_rows"] if row["reason"] == reason]
    assert done.document.get("over_limit", 0) == len(found)
    return found


def test_who_has_got_a_message_today_is_left_out(jobs: Jobs, service: Service, everyone: str) -> None:
    assert jobs("sms", "send", ANA, "-m", "One").code == 0
    plan = jobs.sms(everyone, *ONCE, "--dry-run")
    assert f"Line 2: {ANA}: {REASON}" in plan.err
    job = jobs.send(everyone, *ONCE)
    assert sent_to(service) == [ANA, LUIS, EVA]
    shown = jobs.shown(job)
    assert (counts(shown), shown["over_limit"], shown["at_most"]) == ({"accepted": 2, "excluded": 1}, 1, "1/day")
    (row,) = jobs.report(job, "--only", "excluded")
    assert (row["phone"], row["error"]) == (ANA, REASON)
    jobs.sms(everyone, *ONCE, "--yes", text="Three").refused(2, "have reached the limit of 1/day", "nothing was sent")
    assert sent_to(service) == []
    assert left_out(jobs, everyone, "2/day") == []


def test_calls_and_chat_app_messages_count_and_codes_do_not(jobs: Jobs, home: Path) -> None:
    people = numbers(7)
    call, chat, order, code, test, bulk, block = people
    service_of = (
        ("call", "send", call, "-m", "Hello", "--voice", "Mia"),
        ("chatapp", "send", chat, "Ana", "--template", "t"),
        ("chatapp", "order", order, "Ana", "--template", "t"),
        ("call", "bulk", of_phones(home, [bulk]), "-m", "Hello", "--voice", "Mia", "--test-to", test, "--yes"),
        ("block", "add", block),
    )
    for line in service_of:
        assert jobs(*line).code == 0, line
    jobs("2fa", "send-sms", code, "--app-name", "shop")
    assert left_out(jobs, of_phones(home, people)) == [call, chat, order, test, bulk]


def test_a_body_with_a_phone_that_is_no_number_stops_no_job(
    jobs: Jobs, service: Service, home: Path, everyone: str
) -> None:
    """PostgreSQL cannot read the first two in JSON."""
    service.always(respond({"id": "m"}))
    for phone in ("nul \0", "half of a pair \ud800", "3 words here"):
        body = table(home, json.dumps({"phone": phone}), name="body.json")
        assert jobs("chatapp", "send", "--template", "hello", "--body", body).code in (0, 5)
    assert len(sends(service)) == 3
    service.always(accepting(service))
    service.received.clear()
    jobs.send(everyone, *ONCE)
    assert sent_to(service) == [ANA, LUIS, EVA]


def test_unknown_messages_count_and_refused_ones_do_not(jobs: Jobs, service: Service, home: Path) -> None:
    unknown, refused, lost, no = people = numbers(4)
    service.will(drop, REFUSAL)
    assert [jobs("sms", "send", phone, "-m", "One").code for phone in (unknown, refused)] == [5, 1]
    service.will(respond({"status": 1000}), drop, REFUSAL)
    jobs.send(of_phones(home, [lost, no]), "--batch-size", "1", code=6)
    assert left_out(jobs, of_phones(home, people)) == [unknown, lost]


@pytest.mark.parametrize(
    ("sent", "now", "day", "week"),
    [
        (timedelta(), timedelta(hours=13, minutes=59), [ANA], [ANA, SPAIN]),
        (timedelta(), timedelta(hours=14), [], [ANA, SPAIN]),
        (timedelta(hours=-10, minutes=-1), timedelta(), [SPAIN], [SPAIN]),
        (timedelta(hours=-16, minutes=-1), timedelta(), [], []),
        (timedelta(), timedelta(days=6, hours=8), [], [ANA, SPAIN]),
        (timedelta(), timedelta(days=6, hours=9), [], [ANA]),
    ],
    ids=["Spain's Tuesday", "Tuesday", "Colombia's Sunday", "Sunday", "Madrid's next Monday", "Spain's next Monday"],
)
def test_days_and_weeks_begin_at_midnight_of_the_person(
    sent: timedelta, now: timedelta, day: list[str], week: list[str], jobs: Jobs, home: Path
) -> None:
    jobs.tool.clock.now = (MONDAY_MORNING + sent).timestamp()
    assert jobs("sms", "send", ANA, SPAIN, "-m", "One").code == 0
    jobs.tool.clock.now = (MONDAY_MORNING + now).timestamp()
    file = of_phones(home, [ANA, SPAIN])
    assert (left_out(jobs, file), left_out(jobs, file, "1/week")) == (day, week)


def test_messages_are_counted_again_before_each_request(jobs: Jobs, service: Service, everyone: str) -> None:
    job = jobs.send(everyone, *ONCE, "--canary", "1")
    assert jobs("sms", "send", LUIS, "-m", "One").code == 0
    assert sent_to(service) == [ANA, LUIS]
    done = jobs("job", "resume", job, "--max-credits", "3", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 2, "excluded": 1}), done.err
    assert sent_to(service) == [EVA]
    assert [row["error"] for row in jobs.report(job, "--only", "excluded")] == [REASON]


def test_the_first_of_a_country_may_be_left_out_with_a_limit_of_credits(
    jobs: Jobs, service: Service, home: Path
) -> None:
    """The price in its country is not known yet, so the others wait for its charge."""
    spain = [f"3461234567{number}" for number in range(3)]
    job = jobs.send(of_phones(home, [ANA, *spain]), *ONCE, "--canary", "1", "--max-credits", "9")
    assert jobs("sms", "send", spain[0], "-m", "One").code == 0
    done = jobs("job", "resume", job, "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 3, "excluded": 1}), done.err
    assert sent_to(service) == [*spain, ANA]


def test_a_resume_counts_its_own_unknown_messages_and_not_its_refused_ones(
    jobs: Jobs, service: Service, everyone: str
) -> None:
    service.will(respond({"status": 1000}), drop, REFUSAL)
    job = jobs.send(everyone, *ONCE, "--batch-size", "1", code=6)
    done = jobs("job", "resume", job, "--resend-unknown", "--resend-refused", "--yes", "--json")
    assert (done.code, counts(done.document)) == (6, {"accepted": 2, "unknown": 1})
    assert Counter(sent_to(service)) == {ANA: 1, LUIS: 2, EVA: 1}
    assert [row["error"] for row in jobs.report(job, "--only", "unknown")] == [REASON]
    jobs.tool.clock.now += 86400
    done = jobs("job", "resume", job, "--resend-unknown", "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 3}), done.err


def test_a_resend_has_the_limit_of_its_job(jobs: Jobs, service: Service, everyone: str) -> None:
    service.will(respond({"status": 1000}), REFUSAL)
    job = jobs.send(everyone, *ONCE, code=6)
    assert jobs("sms", "send", LUIS, "-m", "One").code == 0
    service.received.clear()
    done = jobs("job", "resend", job, "--only", "refused", "--yes", "--json")
    assert (done.code, counts(done.document), done.document["at_most"]) == (0, {"accepted": 2, "excluded": 1}, "1/day")
    assert sent_to(service) == [ANA, EVA]


def test_a_scheduled_job_counts_the_messages_of_its_day(jobs: Jobs, service: Service, everyone: str) -> None:
    jobs.send(everyone)
    assert left_out(jobs, everyone, "1/day", "--at", "2026-11-24 09:00-05:00") == []
    assert left_out(jobs, everyone, "1/day", "--window", "07:00-08:00") == []
    job = jobs.send(everyone, *ONCE, "--at", "2026-11-24 09:00-05:00", text="Tomorrow")
    jobs.tool.clock.now += 22 * 3600
    assert jobs("sms", "send", EVA, "-m", "One").code == 0
    service.received.clear()
    jobs.tool.clock.now += 3600
    assert jobs("job", "run-due").code == 0
    assert sent_to(service) == [ANA, LUIS]
    assert jobs.outcomes(job)[EVA] == "excluded"


def test_jobs_at_the_same_time_keep_the_limit_together(service: Service, home: Path) -> None:
    service.always(accepting(service))
    file = of_phones(home, numbers(40))
    lines = [
        [sys.executable, "-m", "msgctl", "sms", "bulk", file, "-m", f"Job {each}", "--yes", "--batch-size", "1", *ONCE]
        for each in range(3)
    ]
    started = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for line in lines]
    for each in started:
        _, err = each.communicate(timeout=60)
        assert each.returncode == 0 or b"have reached the limit" in err, err
    assert Counter(sent_to(service)) == dict.fromkeys(numbers(40), 1)


@pytest.mark.parametrize("deletion", [("history", "clear"), ("job", "remove")], ids=" ".join)
def test_deleted_records_count_for_eight_days(deletion: tuple[str, ...], jobs: Jobs, everyone: str) -> None:
    jobs.tool.clock.now += 6 * 86400 + 3600  # Sunday
    job = jobs.send(everyone)
    assert jobs(*deletion, *[job] * (deletion[0] == "job"), "--yes").code == 0
    assert left_out(jobs, everyone) == left_out(jobs, everyone, "1/week") == [ANA, LUIS, EVA]


def test_another_account_counts_separately(jobs: Jobs, everyone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.send(everyone)
    assert left_out(jobs, everyone) == [ANA, LUIS, EVA]
    monkeypatch.setenv("MSGCTL_CLIENT", "2")
    assert left_out(jobs, everyone) == []


def test_a_limit_needs_the_history(jobs: Jobs, service: Service, tool: Tool, home: Path, everyone: str) -> None:
    folder = home / "state" / "msgctl"
    job = jobs.send(everyone, *ONCE, "--canary", "1")
    service.received.clear()
    for file in folder.glob("history.sqlite3*"):
        file.unlink()
    (folder / "history.sqlite3").write_bytes(b"not a database" * 100)
    (folder / "history.sqlite3").chmod(0o600)
    jobs("job", "resume", job).refused(3, "Cannot use the history")
    jobs.sms(everyone, *ONCE, "--yes", "--again", text="Two").refused(3, "Cannot use the history")
    assert sent_to(service) == []


@pytest.mark.parametrize("limit", ["0/day", "1001/day", "1", "1/month", "-1/day", "1/day/week", "one/day"])
def test_wrong_limits(limit: str, jobs: Jobs, everyone: str) -> None:
    jobs.sms(everyone, "--at-most", limit, "--dry-run").refused(
        2, "--at-most must be 1 to 1,000 messages", limit, "3/week."
    )
