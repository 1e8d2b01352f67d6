"""A job while it runs, even if something fails on this machine: a full disk, a bug, or a user who stops it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any, cast

import pytest

from jobs.ledgers import (
    SPEC,
    Service,
    Ticker,
    accept,
    charging,
    entry,
    lose,
    miss,
    opened,
    outcomes,
    phone,
    refuse,
    report,
    rows,
    run,
    write,
)
from msgctl import operations
from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    UsageError,
)
from msgctl.http import response
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.response import Response
from msgctl.jobs import schema
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import Intent
from msgctl.jobs.pollers import StatePoller
from msgctl.jobs.reader import Row
from msgctl.jobs.runner import Runner, send
from msgctl.jobs.states import Event, Outcome, State
from msgctl.outcomes import judge
from support.jobs import NOW

RESULTS_REFUSED = "CREATE TRIGGER full BEFORE INSERT ON result BEGIN SELECT raise(ABORT, 'disk I/O error'); END"
INTENTS_REFUSED = RESULTS_REFUSED.replace("result", "request")

# A constraint that only COMMIT checks.
UNCOMMITTED = (
    "PRAGMA foreign_keys = ON",
    "CREATE TABLE another (number PRIMARY KEY)",
    "CREATE TABLE held (number REFERENCES another (number) DEFERRABLE INITIALLY DEFERRED)",
    "CREATE TRIGGER full AFTER INSERT ON request BEGIN INSERT INTO held VALUES (1); END",
)


def job(folder: Path, number: int = 40, **fields: Any) -> Path:
    spec = replace(SPEC, **{"batch_size": 1, "concurrency": 4, **fields})
    return write(folder / "job.sqlite3", rows(number), spec)


def after(ledger: Ledger) -> Counter[str]:
    """Count outcomes as the next process does, for which requests in flight are unknown."""
    with closing(opened(ledger.path)) as found:
        found.db.execute("DROP TRIGGER IF EXISTS full")
        found.recover()
        return Counter(outcomes(found))


def test_the_totals_of_changes_that_were_not_committed_do_not_count(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path, 3, concurrency=1))) as ledger:
        run(ledger, Service(charging(2), lose))
        with pytest.raises(ZeroDivisionError), ledger.transaction():
            ledger.totals.credits = ledger.totals.lost // 0
        totals = ledger.totals
        assert (totals.requests, totals.credits, totals.lost, totals.promised) == (3, 3, 1, 0)


def test_a_request_in_flight_is_pending_only_while_its_job_runs(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path, 2))) as ledger:
        with ledger.transaction():
            ledger.intend(1)
        assert outcomes(ledger, running=True) == {"pending": 2}
        assert outcomes(ledger) == {"pending": 1, "unknown": 1}
        with pytest.raises(ZeroDivisionError), ledger.transaction():
            ledger.totals.promised = 1 // 0
        assert ledger.totals.promised == 1, "what it may cost counts until it has ended"


def test_every_recipient_gets_one_message_from_many_threads(tmp_path: Path) -> None:
    service = Service()
    with closing(opened(job(tmp_path, 300, batch_size=7, concurrency=16))) as ledger:
        assert run(ledger, service) is None
        assert outcomes(ledger, running=True) == {"accepted": 300}
    phones = [phone for phones in service.asked for phone in phones]
    assert (len(phones), len(set(phones))) == (300, 300)
    assert service.closed == 16, "every thread closes its connection"


def test_no_more_threads_start_than_there_are_recipients(tmp_path: Path) -> None:
    for number, threads in ((0, 1), (1, 1), (3, 3), (9, 4)):
        path = write(tmp_path / f"{number}.sqlite3", rows(number), replace(SPEC, batch_size=1, concurrency=4))
        service = Service()
        with closing(opened(path)) as ledger:
            assert run(ledger, service) is None
        assert (service.closed, len(service.asked)) == (threads, number)


def test_a_job_keeps_to_its_rate(tmp_path: Path) -> None:
    clock = Ticker(1 / 3000)
    times: list[float] = []

    def note(phones: Sequence[str]) -> list[dict[str, Any]]:
        times.append(clock.now)
        return accept(phones)

    with closing(opened(job(tmp_path, 9, rate=1000.0))) as ledger:
        runner = Runner(ledger, Service(otherwise=note).connect, monotonic=clock)
        runner.start()
        assert (runner.wait(30), runner.finish()) == (True, None)
    earliest = [number / 1000 for number in range(9)]
    assert all(time >= due for time, due in zip(sorted(times), earliest, strict=True)), times


def test_the_end_of_a_process_does_not_wait_for_the_threads_of_a_job(tmp_path: Path) -> None:
    are_daemons: list[bool] = []

    def note(phones: Sequence[str]) -> list[dict[str, Any]]:
        are_daemons.append(threading.current_thread().daemon)
        return accept(phones)

    with closing(opened(job(tmp_path, 1))) as ledger:
        assert run(ledger, Service(note)) is None
    assert are_daemons == [True]


def test_a_job_that_waits_for_a_response_does_not_write_its_ledger(tmp_path: Path) -> None:
    """Until the first message has a price, the other threads have nothing to send."""
    commits: list[int] = []

    def slow(phones: Sequence[str]) -> list[dict[str, Any]]:
        for _ in range(2):
            threading.Event().wait(0.03)  # enough for many commits, if the writing thread did not wait
            commits.append(int(schema.lock_of(path).read_text()))
        return accept(phones)

    path = job(tmp_path, 6, max_credits=9)
    with closing(opened(path)) as ledger:
        assert run(ledger, Service(slow)) is None
    assert commits[1] - commits[0] < 10


def test_an_intent_is_on_disk_before_its_request_is_sent(tmp_path: Path) -> None:
    seen: list[tuple[str, ...]] = []

    def look(phones: Sequence[str]) -> list[dict[str, Any]]:
        with closing(opened(path)) as found:
            states = found.db.execute("SELECT state FROM outcome WHERE phone = ?", (phones[0],)).fetchall()
        seen.append(tuple(state for (state,) in states))
        return accept(phones)

    path = job(tmp_path, 10)
    with closing(opened(path)) as ledger:
        assert run(ledger, Service(otherwise=look)) is None
        assert ledger.db.execute("PRAGMA synchronous").fetchone() >= (2,), "a power cut would lose it"
    assert seen == [("sending",)] * 10


@pytest.mark.parametrize("trigger", [RESULTS_REFUSED, INTENTS_REFUSED], ids=["results", "intents"])
def test_nothing_more_is_sent_if_the_ledger_cannot_be_written(trigger: str, tmp_path: Path) -> None:
    path = job(tmp_path)

    def fill_up(phones: Sequence[str]) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(path, timeout=30)) as db:
            db.execute(trigger.replace("TRIGGER", "TRIGGER IF NOT EXISTS"))
        return accept(phones)

    service = Service(accept, accept, otherwise=fill_up)
    with closing(opened(path)) as ledger:
        error = run(ledger, service)
        assert isinstance(error, ConfigurationError)
        assert "disk I/O error" in error.message
        counted = after(ledger)
    # Those that were sent before the first response arrived.
    assert len(service.asked) <= 2 + 4
    assert counted["accepted"] + counted["unknown"] == len(service.asked)
    assert counted["pending"] == 40 - len(service.asked)
    if trigger == RESULTS_REFUSED:
        assert counted["unknown"] > 0
        requests = "1 request" if counted["unknown"] == 1 else f"{counted['unknown']} requests"
        assert error.message == (
            f"the results of {requests} could not be written and are unknown: "
            f"Cannot use the ledger ~/{path.name}: disk I/O error"
        )
        assert error.hint == "Check the permissions of the file and its directory."
    else:
        assert counted["unknown"] == 0, "a response that arrived is written even if the next intent cannot be"


def test_nothing_is_sent_before_its_intent_is_committed(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path))) as ledger:
        for statement in UNCOMMITTED:
            ledger.db.execute(statement)
        service = Service()
        assert isinstance(run(ledger, service), ConfigurationError)
        assert service.asked == []
        assert (outcomes(ledger), after(ledger)) == ({"pending": 40}, {"pending": 40})


def test_a_full_disk_loses_no_response_and_no_recipient(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path, 2000, batch_size=100, concurrency=3))) as ledger:
        (pages,) = ledger.db.execute("PRAGMA page_count").fetchone()
        ledger.db.execute(f"PRAGMA max_page_count = {pages + 4}")
        service = Service()
        error = run(ledger, service)
        assert isinstance(error, ConfigurationError)
        assert (error.exit_code, "full" in error.message) == (3, True)
        counted = after(ledger)
    asked = sum(map(len, service.asked))
    assert 0 < asked < 2000
    assert counted["accepted"] + counted["unknown"] == asked
    assert counted["unknown"] <= 300, "the requests in flight"
    assert counted["pending"] == 2000 - asked
    with closing(opened(tmp_path / "job.sqlite3")) as ledger:
        assert run(ledger, service) is None
    phones = [phone for phones in service.asked for phone in phones]
    assert (len(phones), len(set(phones))) == (2000, 2000)


def test_a_job_stops_if_another_process_changes_its_ledger(tmp_path: Path) -> None:
    path = job(tmp_path, 4, concurrency=1)

    def meddle(phones: Sequence[str]) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(path, timeout=30)) as db, db:
            db.execute("DELETE FROM request")
        return accept(phones)

    service = Service(otherwise=meddle)
    with closing(opened(path)) as ledger:
        error = run(ledger, service)
    assert isinstance(error, ConfigurationError)
    assert error.message.endswith("Cannot use the ledger ~/job.sqlite3: another process has changed it")
    assert len(service.asked) == 1


def opting_out_after_the_first_check() -> Callable[[Collection[str]], list[str]]:
    """Return an opt-out list that the first recipient joins after the first check."""
    optouts: list[str] = []

    def opted_out(numbers: Collection[str]) -> list[str]:
        found = [each for each in numbers if each in optouts]
        optouts[:] = [phone(2)]
        return found

    return opted_out


def test_who_opts_out_during_a_slow_commit_gets_nothing(tmp_path: Path) -> None:
    """The list was checked before the commit; by its end, the check is too old."""
    monotonic = iter(range(10_000))
    service = Service()
    with closing(opened(job(tmp_path, 3, batch_size=2, concurrency=1))) as ledger:
        runner = Runner(
            ledger, service.connect, monotonic=lambda: next(monotonic), opted_out=opting_out_after_the_first_check()
        )
        runner.start()
        assert (runner.wait(30), runner.finish()) == (True, None)
        assert outcomes(ledger) == {"accepted": 2, "excluded": 1}
    assert sorted(each for phones in service.asked for each in phones) == [phone(3), phone(4)]


def test_the_optout_list_is_not_read_again_for_a_request_right_after_its_intent(tmp_path: Path) -> None:
    readers: list[threading.Thread] = []

    def opted_out(_: Collection[str]) -> list[str]:
        readers.append(threading.current_thread())
        return []

    with closing(opened(job(tmp_path, 9))) as ledger:
        runner = Runner(ledger, Service().connect, monotonic=lambda: 0.0, opted_out=opted_out)
        runner.start()
        assert (runner.wait(30), runner.finish()) == (True, None)
    assert len({*readers}) == 1, "the threads that send do not read it"


def test_nothing_is_sent_if_the_optout_list_cannot_be_read_after_a_slow_commit(tmp_path: Path) -> None:
    checks = 0
    monotonic = iter(range(10_000))

    def opted_out(numbers: Collection[str]) -> list[str]:
        nonlocal checks
        checks += bool(numbers)
        if numbers and checks > 1:
            raise ConfigurationError("Cannot use the opt-out list")
        return []

    service = Service()
    with closing(opened(job(tmp_path, 3, batch_size=1, concurrency=1))) as ledger:
        runner = Runner(ledger, service.connect, monotonic=lambda: next(monotonic), opted_out=opted_out)
        runner.start()
        assert runner.wait(30)
        assert "Cannot use the opt-out list" in str(runner.finish())
        assert (service.asked, outcomes(ledger)) == ([], {"pending": 3})


def test_a_job_stops_if_the_optout_list_cannot_be_read(tmp_path: Path) -> None:
    def opted_out(numbers: Collection[str]) -> list[str]:
        if service.asked and numbers:
            raise ConfigurationError("Cannot use the opt-out list")
        return []

    service = Service()
    with closing(opened(job(tmp_path, 3, concurrency=1))) as ledger:
        runner = Runner(ledger, service.connect, opted_out=opted_out)
        runner.start()
        assert runner.wait(30)
        assert "Cannot use the opt-out list" in str(runner.finish())
        assert (len(service.asked), outcomes(ledger)) == (1, {"accepted": 1, "pending": 2})


def broken(_: Sequence[str]) -> list[dict[str, Any]]:
    raise ZeroDivisionError("a mistake of ours, with the-secret in it")


def test_a_bug_leaves_the_outcome_unknown(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path, 10, concurrency=1))) as ledger:
        assert run(ledger, Service(accept, broken)) is None
        assert outcomes(ledger) == {"accepted": 9, "unknown": 1}
        (error,) = [row["error"] for row in report(ledger, Outcome.UNKNOWN)]
    assert "because of a bug (ZeroDivisionError" in error
    assert "the-secret" not in error


@pytest.mark.parametrize(
    "error", [ConfigurationError("the certificates cannot be read"), ZeroDivisionError()], ids=["error", "mistake"]
)
def test_a_job_ends_if_its_threads_cannot_start(error: Exception, tmp_path: Path) -> None:
    def connect() -> Any:
        raise error

    with closing(opened(job(tmp_path))) as ledger:
        runner = Runner(ledger, connect)
        runner.start()
        assert runner.wait(30)
        stopped_by = runner.finish()
        assert outcomes(ledger) == {"pending": 40}
    assert stopped_by is not None
    assert stopped_by is error or isinstance(stopped_by, OutcomeUnknownError)


def test_a_ledger_stays_open_while_its_threads_may_write_it(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path, 1))) as ledger:

        def leave(phones: Sequence[str]) -> list[dict[str, Any]]:
            ledger.close()
            return accept(phones)

        assert run(ledger, Service(leave)) is None
        assert outcomes(ledger) == {"accepted": 1}
        ledger.close()
        with pytest.raises(sqlite3.ProgrammingError):
            ledger.db.execute("SELECT 1")


def test_reading_an_interrupted_job_leaves_nothing_open(tmp_path: Path) -> None:
    killed = opened(job(tmp_path, 1))
    with killed.transaction():
        killed.intend(1)
    ledger = Ledger(killed.path, clock=lambda: NOW, read_only=True)
    assert outcomes(ledger) == {"unknown": 1}
    ledger.close()
    with pytest.raises(sqlite3.ProgrammingError):
        ledger.db.execute("SELECT 1")
    killed.close()
    assert not schema.KEPT_OPEN


def test_an_unknown_recipient_stays_unknown_if_the_resend_is_not_sent(tmp_path: Path) -> None:
    """It is tried once in a run; the user may resend it again."""
    service = Service(lose, miss)
    with closing(opened(job(tmp_path, 1))) as ledger:
        run(ledger, service)
        ledger.resend(Outcome.UNKNOWN)
        run(ledger, service)
        assert (len(service.asked), outcomes(ledger)) == (2, {"unknown": 1})
        (row,) = report(ledger)
        assert (
            row["error"]
            == "an earlier request may have been carried out; the last one: no connection; nothing was sent"
        )


def test_unsent_recipients_are_sent_before_the_others(tmp_path: Path) -> None:
    service = Service(accept, miss, miss)
    with closing(opened(job(tmp_path, 6, batch_size=2, concurrency=1))) as ledger:
        assert run(ledger, service) is None
        assert (outcomes(ledger), ledger.totals.requests) == ({"accepted": 6}, 3)
    first, second, third = sorted(set(service.asked))
    assert service.asked == [first, second, second, second, third]


def test_recipients_of_very_many_messages_get_their_own(tmp_path: Path) -> None:
    texts = 1100  # more than the importer keeps in memory
    recipients = [Row(line, phone(line), (f"text {line % texts}",)) for line in range(2, 2 * texts + 2)]
    path = write(tmp_path / "job.sqlite3", recipients, replace(SPEC, concurrency=1))
    service = Service(accept, refuse, otherwise=accept)
    with closing(opened(path)) as ledger:
        assert run(ledger, service) is None
        found = {row["phone"]: (row["line"], row["outcome"], row["id"]) for row in report(ledger)}
    assert len(service.asked) == texts, "recipients of one text share a request"
    refused = set(service.asked[1])
    assert found == {
        row.phone: (row.line, *(("refused", None) if row.phone in refused else ("accepted", f"m{row.phone}")))
        for row in recipients
    }


def test_requests_of_one_recipient_are_in_flight_together(tmp_path: Path) -> None:
    both = Barrier(2)

    def together(phones: Sequence[str]) -> list[dict[str, Any]]:
        both.wait(20)
        return accept(phones)

    with closing(opened(job(tmp_path, 4, batch_size=1, concurrency=2))) as ledger:
        assert run(ledger, Service(otherwise=together)) is None
        assert outcomes(ledger) == {"accepted": 4}


def test_a_bug_in_the_check_of_one_state_does_not_stop_the_others(tmp_path: Path) -> None:
    with closing(opened(job(tmp_path, 3, concurrency=1))) as ledger:
        assert run(ledger, Service()) is None
        poller = StatePoller(ledger, Service().connect)  # it takes no request without a limit of time
        poller.start()
        assert poller.wait(30)
        assert poller.finish() is None
    assert (poller.due, poller.checked, poller.failed) == (3, 3, 3)
    assert "because of a bug (TypeError" in str(poller.first_error)


# --- one request


def intent(*phones: str, **parameters: Any) -> Intent:
    return Intent(7, State.PENDING, range(2, len(phones) + 2), phones, parameters or {"sms": "Hello"}, 1)


@pytest.mark.parametrize(
    ("credits", "charged"),
    [
        *[("3", 3), ("3.0", 3), ("0", 0), ("9" * 12, 10**12 - 1)],
        *[(each, None) for each in (None, "3.5", "1e3", "-1", "٣", "9" * 13, "9" * 5000)],
    ],
)
def test_credits_are_whole_numbers_of_at_most_twelve_digits(credits: str | None, charged: int | None) -> None:
    assert judge.charged(credits) == charged


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (RefusedError("520", http_status=520), Event.REFUSED),
        (OutcomeUnknownError("503", http_status=503), Event.LOST),
        (UsageError("it is too long for a URL"), Event.REFUSED),
        (NotReachedError("no connection"), Event.NOT_SENT),
        (ConfigurationError("the certificates cannot be read"), Event.NOT_SENT),
        (OutcomeUnknownError("it broke"), Event.LOST),
        (ValueError("a mistake"), Event.LOST),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else type(value).__name__,
)
def test_the_outcome_follows_from_the_error(error: Exception, event: Event) -> None:
    def fail(_: object) -> Any:
        raise error

    result = send(Service(fail).connect(), SPEC, intent(phone(1), phone(2)))
    outcome = "refused" if event is Event.REFUSED else "unknown"
    assert [(each.phone, each.outcome) for each in result.outcomes] == [(phone(1), outcome), (phone(2), outcome)]
    assert result.was_sent == (event is not Event.NOT_SENT)
    assert isinstance(result.error, MsgctlError)


def test_an_operation_for_one_number_gets_one_number() -> None:
    service = Service()
    spec = replace(SPEC, operation=operations.CHATAPP_SEND.name, fixed={"template": "hello"})
    result = send(service.connect(), spec, intent(phone(1), body=["Ana"]))
    assert ([each.outcome for each in result.outcomes], service.asked) == (["accepted"], [(phone(1),)])


def test_the_response_is_kept_if_an_outcome_is_unknown() -> None:
    assert send(Service().connect(), SPEC, intent(phone(1), phone(2))).body is None
    incomplete = Service(lambda phones: [entry(phones[0])])
    body = send(incomplete.connect(), SPEC, intent(phone(1), phone(2))).body
    assert body is not None
    assert f"m{phone(1)}" in body
    for body, kept in (("<h1>m-77</h1>", "<h1>m-77</h1>"), ("", None)):

        def fail(_: object, body: str = body) -> Any:
            raise OutcomeUnknownError("503", http_status=503, body=body)

        assert send(Service(fail).connect(), SPEC, intent(phone(1))).body == kept


def test_256_kib_of_a_response_are_kept_even_if_they_end_inside_a_character() -> None:
    class Long:
        def __init__(self, more: str) -> None:
            self.body = json.dumps({"status": "1", "data": [], "more": more}, ensure_ascii=False).encode()

        def send(self, request: Request, *, timeout: float) -> Response:
            return response.read(request, self.body, 200)

    for service in (Long("ñ" * 2**17), Long("a" + "ñ" * 2**17)):
        kept = send(cast(Client, service), SPEC, intent(phone(1))).body
        assert kept == service.body[: 256 * 1024].decode(errors="replace")
        assert kept.endswith(("ñ", "ñ\ufffd"))
