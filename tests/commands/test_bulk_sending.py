"""Bulk commands while they send: requests, and how a run ends."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import KEY
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.runner import Runner
from msgctl.jobs.states import Outcome
from msgctl.jobs.store import Store
from support.jobs import (
    ANA,
    BALANCE,
    EVA,
    LUIS,
    REFUSAL,
    SUMMARY_FIELDS,
    Jobs,
    accepting,
    counts,
    files,
    folder,
    numbers,
    of_phones,
    phones,
    sends,
    table,
)
from support.leaks import files_with_key
from support.service import Behaviour, Service, drop, respond
from support.tool import Tool


def without_credentials(pairs: list[tuple[str, str]]) -> dict[str, str]:
    return {name: value for name, value in pairs if name not in ("client", "key")}


# --- requests


@pytest.mark.parametrize(
    ("line", "path", "form", "query", "body"),
    [
        (
            ("sms", "bulk", "-m", "Hello {name}", "--country-code", "co"),
            "/send-sms",
            {"phone": ANA, "sms": "Hello Ana", "country-code": "CO"},
            {},
            None,
        ),
        (
            ("call", "bulk", "-m", "Hello {name}", "--voice", "mia", "--retries", "2", "--leave-voicemail"),
            "/call/send",
            {"phone": ANA, "message": "Hello Ana", "voice": "Mia", "retries": "2", "leave-voicemail": "true"},
            {},
            None,
        ),
        (("call", "bulk", "--audio-code", "A-1"), "/call/send", {"phone": ANA, "audio-code": "A-1"}, {}, None),
        (
            ("chatapp", "bulk", "--template", "hello"),
            "/chatapp/send",
            {},
            {"template": "hello"},
            {"phone": ANA, "body": ["Ana", "8:00"]},
        ),
        (
            ("chatapp", "bulk", "at {hour}", "--template", "hello"),
            "/chatapp/send",
            {},
            {"template": "hello"},
            {"phone": ANA, "body": ["at 8:00"]},
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_each_command_on_the_wire(
    line: tuple[str, ...],
    path: str,
    form: Mapping[str, str],
    query: Mapping[str, str],
    body: Mapping[str, Any] | None,
    jobs: Jobs,
    service: Service,
    home: Path,
) -> None:
    service.always(accepting(service))
    file = table(home, "name,phone,hour", f"Ana,{ANA},8:00")
    done = jobs(*line[:2], file, *line[2:], "--yes", "--json")
    assert (done.code, counts(done.document)) == (0, {"accepted": 1})
    (sent,) = sends(service)
    assert sent.path == f"/api/v1{path}"
    in_query = without_credentials(sent.query)
    if body is not None:
        assert (json.loads(sent.body), in_query) == (body, query)
    else:
        assert {**in_query, **without_credentials(sent.form)} == {**form, **query}
    assert jobs.report(done.document["job"])[0]["id"] == f"m{ANA}"


# --- how it ends


@pytest.mark.every_set
def test_all_accepted(everyone: str, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service, credits="2"))
    done = jobs.sms(everyone, "--yes", "--json")
    document = done.document
    assert (done.code, list(document)) == (0, SUMMARY_FIELDS)
    assert document == {
        "job": document["job"],
        "name": None,
        "command": "sms bulk",
        "file": everyone,
        "profile": "environment",
        "state": "done",
        "recipients": 3,
        "accepted": 3,
        "refused": 0,
        "unknown": 0,
        "pending": 0,
        "invalid": 0,
        "duplicate": 0,
        "excluded": 0,
        "requests": 1,
        "credits": 6,
        "created": "2026-09-21T14:13:20Z",
        "updated": "2026-09-21T14:13:20Z",
    }


def test_a_job_that_is_stopped_at_once_sends_nothing_more(
    jobs: Jobs, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may still have to wait for its standard error, and the job is not locked any more."""
    file = of_phones(home, numbers(100))
    service.always(accepting(service))

    stopped: list[Runner] = []

    def two_signals(runner: Runner, _seconds: float) -> bool:
        stopped.append(runner)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Runner, "wait", two_signals)
        assert jobs.sms(file, "--yes", "--batch-size", "1").code == 130
    time.sleep(0.2)
    before = len(sends(service))
    time.sleep(0.3)
    assert before == len(sends(service)) < 100
    (runner,) = stopped
    assert runner.wait(30)
    assert runner.finish() is None
    runner._ledger.close()  # msgctl leaves it open for the threads, which end with the process


@pytest.mark.every_set
def test_the_history_shows_refused_until_a_message_is_resent(everyone: str, jobs: Jobs, service: Service) -> None:
    service.will(BALANCE, REFUSAL)
    job = jobs.send(everyone, code=6)
    jobs("job", "resume", job, "--resend-refused", "--yes", "--max-credits", "0")
    assert jobs.outcomes(job) == dict.fromkeys((ANA, LUIS, EVA), "pending")
    assert {each["outcome"] for each in jobs("history", "--json").document} == {"refused"}


def test_recipients_in_flight_at_a_kill_are_unknown_in_the_history(
    everyone: str, jobs: Jobs, service: Service, home: Path, tool: Tool
) -> None:
    service.will(BALANCE, REFUSAL)
    job, store = jobs.send(everyone, code=6), Store(folder(home))

    def listed(*words: str) -> dict[str, str]:
        return {each["phone"]: each["outcome"] for each in jobs("history", "--json", *words).document}

    with closing(Ledger(store.path(job), clock=tool.clock)) as ledger:
        ledger.resend(Outcome.REFUSED)
        with ledger.transaction():
            ledger.intend(2)
    assert listed() == {ANA: "unknown", LUIS: "unknown", EVA: "refused"}
    assert listed("--phone", LUIS) == {LUIS: "unknown"}
    assert listed("--until", "2020-01-01") == {}
    with store.locked(job):  # while it runs, what it has learned last
        assert listed() == dict.fromkeys((ANA, LUIS, EVA), "refused")
    jobs("job", "resume", job, "--max-credits", "0")
    assert listed() == {ANA: "unknown", LUIS: "unknown", EVA: "refused"}


@pytest.mark.every_set
@pytest.mark.parametrize("lost", [drop, respond({"error": "x"}, 503)], ids=["drop", "503"])
def test_unknown_messages_are_resent_only_on_request(lost: Any, everyone: str, jobs: Jobs, service: Service) -> None:
    service.will(BALANCE, lost)
    service.always(accepting(service))
    done = jobs.sms(everyone, "--yes", "--json", "--batch-size", "1")
    job = done.document["job"]
    assert (done.code, counts(done.document)) == (6, {"accepted": 2, "unknown": 1})
    assert (done.error["kind"], f"job report {job} --only unknown" in done.error["hint"]) == ("condition_not_met", True)
    assert jobs.outcomes(job) == {ANA: "unknown", LUIS: "accepted", EVA: "accepted"}
    assert jobs("job", "resume", job).code == 6
    assert jobs("job", "resume", job, "--resend-refused").code == 6
    assert len(sends(service)) == 3
    done = jobs("job", "resume", job, "--resend-unknown", terminal=True, stdin="n\n")
    assert done.code == 130
    assert "Resend the message to 1 unknown? Some people may get it twice. [y/N]" in done.err
    assert len(sends(service)) == 3
    done = jobs("job", "resume", job, "--resend-unknown", "--json", "--yes")
    assert (done.code, counts(done.document)) == (0, {"accepted": 3})
    assert [phones(each) for each in sends(service)][3:] == [[ANA]]
    assert done.document["requests"] == 4


@pytest.mark.every_set
@pytest.mark.parametrize("again", [REFUSAL, None], ids=["refused", "not sent"])
def test_an_outcome_stays_unknown_until_a_message_is_accepted(
    again: Behaviour | None, everyone: str, jobs: Jobs, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    service.will(respond({"status": 1000}), drop)
    job = jobs.send(everyone, "--batch-size", "1", "--concurrency", "1", code=6)
    if again:
        service.will(again)
        jobs("job", "resume", job, "--resend-unknown", "--yes")
    else:
        jobs("job", "resume", job, "--resend-unknown", "--yes", "--max-credits", "0")
    assert jobs.outcomes(job) == {ANA: "unknown", LUIS: "accepted", EVA: "accepted"}
    asked = len(sends(service))
    for more in ([], ["--resend-refused"]):
        assert jobs("job", "resume", job, "--yes", "--max-credits", "100", *more).code == 6
    assert len(sends(service)) == asked
    assert jobs("job", "resume", job, "--resend-unknown", "--yes", "--max-credits", "100").code == 0
    assert jobs.outcomes(job) == {ANA: "accepted", LUIS: "accepted", EVA: "accepted"}


def test_a_refusal_without_a_status_has_a_reason(everyone: str, jobs: Jobs, service: Service) -> None:
    entries = [{"id": "m1", "phone": ANA}, {"phone": LUIS, "error": "no route"}, {"id": "m3", "phone": EVA}]
    service.will(BALANCE, respond({"id": "d1", "status": 1, "data": entries}))
    (refused,) = jobs.report(jobs.send(everyone, code=6), "--only", "refused")
    assert (refused["phone"], refused["error"]) == (LUIS, "the service refused this number")


def test_a_first_message_that_exceeds_the_budget_is_reported(jobs: Jobs, service: Service, home: Path) -> None:
    """It is the only one that can, since the price in its country was not known."""
    service.always(accepting(service, credits=26))
    done = jobs.sms(of_phones(home, ["34600000001"]), "--yes", "-q", "--max-credits", "20")
    excess = "26 credits used, more than --max-credits 20: a message to Spain cost 26"
    assert (done.code, done.err) == (0, f"Warning: {excess}.\n")
    two = of_phones(home, ["34600000001", "34600000002"])
    done = jobs.sms(two, "--yes", "-q", "--max-credits", "20", "--again", "--name", "two")
    assert (done.code, f"Stopped: {excess}. 1 of 2 recipients accepted, 1 pending" in done.err) == (6, True)
    assert "Warning" not in done.err
    assert jobs("job", "resume", "two", "--max-credits", "30", "--json").error["reason"] == "credit_limit"
    satellite = of_phones(home, ["881234567890"])
    done = jobs.sms(satellite, "--yes", "-q", "--max-credits", "20", "--no-number-check")
    assert done.err == "Warning: 26 credits used, more than --max-credits 20: a message cost 26.\n"


# --- what is kept


def test_no_file_of_a_job_contains_the_key(everyone: str, jobs: Jobs, service: Service, home: Path) -> None:
    seen: set[str] = set()
    leaked: set[str] = set()

    def look() -> None:
        seen.update(files(home))
        leaked.update(files_with_key(home / "state"))

    service.will(BALANCE, respond({"error": "NO", "msg": f"the key is {KEY}"}, 520))
    service.always(accepting(service, look=look))
    done = jobs.sms(everyone, "--yes", "--json", "--batch-size", "1")
    job = done.document["job"]
    assert {name.removeprefix(job) for name in seen} >= {".sqlite3", ".sqlite3-wal", ".sqlite3-shm"}
    assert leaked == set()
    assert files_with_key(home / "state") == set()
    assert KEY not in done.err + jobs("job", "report", job).out
    (refused,) = jobs.report(job, "--only", "refused")
    assert "the key is" in refused["error"]
    assert KEY not in refused["error"]


@pytest.mark.every_set
def test_text_from_the_service_cannot_control_the_terminal(everyone: str, jobs: Jobs, service: Service) -> None:
    text = "\x1b[2J\x1b]0;x\x07"
    entry = {"id": text, "status": text, "credits": text, "phone": ANA}
    service.will(BALANCE, respond({"data": [entry]}), *[respond({"error": text, "msg": text}, 520)] * 2)
    done = jobs.sms(everyone, "--yes", "--json", "--batch-size", "1")
    job = done.document["job"]
    assert [(row["id"], row["credits"]) for row in jobs.report(job, "--only", "accepted")] == [(text, text)]
    for form in ("table", "csv", "tsv"):
        shown = jobs("job", "report", job, "-o", form)
        assert "\x1b" not in shown.out
        assert "\u202e" not in shown.out
