"""A job sends to each person once, even if another process takes it over, and never to people it must leave out."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from faults import sender
from faults.sender import SETTINGS, FakeClient, Response, arrived, new_job, send
from msgctl.credits import as_credits, millionths
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    StoreNotReachedError,
    TurnedAwayError,
    UsageError,
)
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.transport import TooLateError
from msgctl.jobs.report import report_rows, selected
from msgctl.jobs.sending import SLOW, JobRunner
from msgctl.outcomes.outcome import Outcome
from msgctl.outcomes.words import NO_WORDS
from msgctl.store import history, jobs, owners, people, recipients, removal, results
from msgctl.store.batches import LostJobError
from msgctl.store.database import Row
from msgctl.store.lifecycle import Why, state_after
from msgctl.store.queue import MAX_PAGE, OPTED_OUT, ExclusionRules
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.results import INTENT_LIFE, Intent, RequestOutcome
from msgctl.store.store import Store, boot_time, open_store
from store.campaigns import ACCOUNT, ANA, EVA, LUIS, SMS, imported, intend, phone, published, record, responses, sent
from store.processes import child, status_of, wait_until
from support import PATIENCE
from support.jobs import accepting, of_phones, sends
from support.service import Service
from support.tool import Tool


def outcomes(store: Store, number: int) -> dict[str | None, str]:
    return {each.phone: each.outcome for each in recipients.with_results(store, number)}


def is_delivered(state: str | None) -> bool:
    return state == "delivered"


def test_recipients_of_one_message_share_requests(store: Store) -> None:
    job = published(store, [phone(each) for each in range(250)])
    sending = owners.take(store, job.number)
    intents = intend(sending, wanted=5)
    assert [len(each.phones) for each in intents] == [100, 100, 50]
    assert sending.job.sending == 250
    record(sending, intents)
    done = sending.finish("done")
    assert (done.accepted, done.sending, done.pending, done.credits, done.requests) == (250, 0, 0, 250_000_000, 3)
    assert (done.highest_price, done.shown_state) == (1_000_000, "done")
    assert owners.ask_to_stop(store, job.number, "cancelled").state == "done"


def test_opt_outs_do_not_make_a_request_smaller(store: Store) -> None:
    job = published(store, [phone(each) for each in range(8)])
    people.add_optouts(store, [(phone(1), "sms"), (phone(2), people.ALL), (phone(3), "call")])
    assert recipients.pending_messages(store, job.number, "sms") == (2, 6, 6, 1)
    sending = owners.take(store, job.number)
    assert [len(each.phones) for each in intend(sending, size=5, wanted=5)] == [5, 1]
    assert (sending.job.excluded, recipients.pending_messages(store, job.number, "sms").opted_out) == (2, 0)
    reasons = {
        each.phone: each.error for each in recipients.with_results(store, job.number) if each.outcome == "excluded"
    }
    assert reasons == {phone(1): OPTED_OUT, phone(2): OPTED_OUT}


def test_an_intent_expires_less_than_a_second_after_the_opt_outs_were_read(store: Store) -> None:
    sending = owners.take(store, published(store, [ANA]).number)
    before = boot_time()
    (intent,) = intend(sending)
    assert before + INTENT_LIFE <= intent.expires <= boot_time() + INTENT_LIFE
    after = sending.finish("paused")  # while the request is in flight
    assert (after.unknown, after.sending) == (1, 0)


def test_requests_that_were_not_sent_are_pending_again_and_opt_outs_apply_to_them(store: Store) -> None:
    sending = owners.take(store, published(store, [ANA, LUIS, EVA]).number)
    intents = intend(sending, size=1, wanted=2)
    people.add_optouts(store, [(ANA, people.ALL)])
    with sending.batch(SMS, 5):
        sending.record([*map(RequestOutcome, intents)])
        phones = []
        while intent := sending.intend(1):
            phones.append(intent.phones[0])
    assert phones == [LUIS, EVA]
    assert (sending.job.sending, sending.job.excluded, sending.job.pending, sending.job.requests) == (2, 1, 0, 2)


@pytest.mark.parametrize("is_resend", [False, True])
def test_the_history_has_no_request_that_was_not_sent(store: Store, is_resend: bool) -> None:
    job = published(store, [ANA])
    if is_resend:
        sent(store, job.number, {ANA: "refused"})
        owners.resend(store, job.number, ["refused"])
    earlier = history.entries(store, 9)
    sending = owners.take(store, job.number)
    intents = intend(sending)
    with sending.batch(SMS):
        sending.record([*map(RequestOutcome, intents)])
    assert sending.finish("paused").pending == 1
    assert history.entries(store, 9) == earlier
    assert [each.outcome for each in earlier] == (["refused"] if is_resend else [])


def test_opt_outs_are_checked_in_the_batch_that_stores_the_request(store: Store) -> None:
    sending = owners.take(store, published(store, [ANA, LUIS, EVA]).number)
    with sending.batch(SMS, wanted=3):
        assert sending.intend(1) is not None
    people.add_optouts(store, [(LUIS, "sms")])
    assert [each.phones for each in intend(sending)] == [[EVA]]


def test_a_long_job_is_read_in_parts_and_no_recipient_is_skipped_or_repeated(store: Store) -> None:
    sending = owners.take(store, published(store, [phone(each) for each in range(5_000)]).number)
    rows = store.db.rows
    sizes: list[int] = []

    def measured(statement: str, values: Sequence[Any] = ()) -> list[Row]:
        result = rows(statement, values)
        sizes.append(len(result))
        return result

    store.db.rows = measured  # type: ignore[method-assign]
    first, second = intend(sending, size=700, wanted=2)
    (third,) = intend(sending, size=700)  # it ends beyond the first part
    with sending.batch(SMS):
        sending.record([RequestOutcome(first)])
    record(sending, [second, third])
    lines = [*second.lines, *third.lines]
    while intents := intend(sending, size=700, wanted=5):
        lines += [line for intent in intents for line in intent.lines]
    assert sorted(lines) == [*range(1, 5_001)]
    assert max(sizes) == MAX_PAGE


def test_a_batch_leaves_out_a_limited_number_of_people_and_a_job_stops_in_between(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgctl.store.queue.MAX_LEFT_OUT", 10)
    phones = [phone(each) for each in range(100)]
    people.add_optouts(store, [(each, "sms") for each in phones[1:-1]])
    job, commit = published(store, phones).number, store.db.commit
    excluded = [0]

    def commit_and_ask_to_stop() -> None:
        commit()
        excluded.append(store.db.value("SELECT excluded FROM job"))
        if excluded[-1] and not any(excluded[:-1]):
            store.db.change("UPDATE job SET stopping = 'paused'")

    store.db.commit = commit_and_ask_to_stop  # type: ignore[method-assign]
    paused = send(store, job, tmp_path / "sends")
    # The first recipient got the message, unless the batch that asked to stop contained the intent.
    assert (paused.state, 1 < paused.pending < 99) == ("paused", True)
    done = send(store, job, tmp_path / "sends")
    assert (done.state, done.accepted, done.excluded) == ("done", 2, 98)
    assert max(after - before for before, after in pairwise(excluded)) < 50
    assert arrived(tmp_path / "sends") == {phones[0]: 1, phones[-1]: 1}


def test_a_failed_batch_stores_nothing(store: Store, opened: Callable[[], Store]) -> None:
    sending = owners.take(store, published(store, [ANA, LUIS]).number)
    with suppress(ZeroDivisionError), sending.batch(SMS, 2):
        sending.intend(1)
        raise ZeroDivisionError
    assert jobs.get(opened(), sending.job.number).pending == 2
    assert [each.phones for each in intend(sending)] == [[ANA, LUIS]]


def test_no_one_gets_more_messages_than_at_most(store: Store) -> None:
    since = store.now() - 1000
    rules = ExclusionRules("sms", at_most=2, since=since, over_limit="reached the limit of 2/day")
    for message, phones, outcome in (("1", [ANA], "unknown"), ("2", [ANA, LUIS], "accepted"), ("3", [ANA], "")):
        job = published(store, phones, message=message)
        sent(store, job.number, dict.fromkeys(phones, outcome), rules=rules)
    assert next(recipients.with_results(store, job.number)).error == "reached the limit of 2/day"
    assert people.messages_since(store, ACCOUNT, [ANA, LUIS], since) == {ANA: 2, LUIS: 1}


@pytest.mark.parametrize("state", ["paused", "scheduled"], ids=["", "while its process dies"])
def test_a_scheduled_job_that_a_person_pauses_is_not_sent_by_run_due(store: Store, state: str) -> None:
    job = jobs.publish(store, imported(store, [ANA]), state="scheduled", digest=b"", due=1)
    # After `job run-due` has listed it.
    store.db.change("UPDATE job SET stopping = ?, state = ? WHERE number = ?", ("paused", state, job.number))
    with pytest.raises(ConditionError, match=r'changed the job "[-0-9a-f]+": it is paused now;') as error:
        owners.take(store, job.number, "run-due")
    assert error.value.reason == "running_elsewhere"
    assert jobs.get(store, job.number).shown_state == "paused"


def test_a_running_job_cannot_be_taken(store: Store, location: str) -> None:
    job = published(store, [ANA])
    ready, go = os.pipe(), os.pipe()

    def work(other: Store) -> None:
        owners.take(other, job.number)
        os.write(ready[1], b"1")
        os.read(go[0], 1)

    pid = child(location, work)
    os.read(ready[0], 1)
    with pytest.raises(ConditionError, match=f"is running on {store.machine}") as error:
        owners.take(store, job.number)
    assert error.value.reason == "running_elsewhere"
    assert jobs.get(store, job.number).shown_state == "running"
    assert [each.shown_state for each in jobs.listed(store)] == ["running"]
    os.write(go[1], b"1")
    assert status_of(pid) == 0
    wait_until(lambda: not jobs.get(store, job.number).is_running)
    assert jobs.get(store, job.number).shown_state == "paused"
    assert owners.take(store, job.number).job.epoch == 2


def test_a_job_whose_cancel_was_asked_never_sends_although_its_process_died(store: Store, location: str) -> None:
    job = published(store, [ANA, LUIS])
    ready = os.pipe()

    def work(other: Store) -> None:
        intend(owners.take(other, job.number), size=1)
        os.write(ready[1], b"1")
        time.sleep(PATIENCE)

    pid = child(location, work)
    os.read(ready[0], 1)
    assert owners.ask_to_stop(store, job.number, "cancelled").is_running
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    wait_until(lambda: not jobs.get(store, job.number).is_running)
    assert jobs.get(store, job.number).shown_state == "cancelled"
    resend = partial(owners.resend, outcomes=["unknown"])
    schedule = partial(owners.schedule, settings="{}", due=1)
    for change in (owners.take, resend, schedule):
        with pytest.raises(UsageError, match="was cancelled"):
            change(store, job.number)
    cancelled = owners.ask_to_stop(store, job.number, "cancelled")
    assert (cancelled.state, cancelled.unknown, cancelled.pending) == ("cancelled", 1, 1)
    with pytest.raises(UsageError, match="was cancelled"):
        schedule(store, job.number)


@pytest.fixture
def stopped(
    location: str, home: Path, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], list[str]]:
    """Ask the owner of a scheduled job to end in a state while the owner dies; return the command of the job."""
    monkeypatch.setenv("MSGCTL_STORE", location)
    service.always(accepting(service))

    def stop(state: str) -> list[str]:
        file = of_phones(home, [ANA, LUIS])
        command = ["sms", "bulk", file, "-m", "Hola", "--yes", "--json", "--name", "later", "--at", "2026-09-22 10:00"]
        assert tool(*command, "--window", "08:00-19:00").code == 0
        with closing(open_store(location)) as store:
            store.db.change("UPDATE job SET stopping = ?, owner = 12345", (state,))
        return [*command, "--window", "08:00-19:00"]

    return stop


@pytest.mark.parametrize("is_repeated", [False, True], ids=["resume", "the same command"])
def test_a_scheduled_job_that_a_person_stopped_at_once_is_continued_without_a_question(
    stopped: Callable[[str], list[str]], service: Service, tool: Tool, is_repeated: bool
) -> None:
    command = stopped("paused")
    done = tool(*(command if is_repeated else ("job", "resume", "later", "--json")))
    assert (done.code, done.document["state"], len(sends(service))) == (0, "done", 1), done.err


def test_a_stopped_job_that_is_resumed_outside_its_window_is_sent_when_it_opens(
    stopped: Callable[[str], list[str]], service: Service, tool: Tool
) -> None:
    stopped("paused")
    tool.clock.now += 6 * 3600
    assert tool("job", "resume", "later", "--json").document["state"] == "scheduled"
    tool.clock.now += 14 * 3600
    assert tool("job", "run-due").out == "later: done, 2 accepted\n"


def test_the_same_command_reports_that_a_job_was_cancelled_although_its_process_died(
    stopped: Callable[[str], list[str]], tool: Tool
) -> None:
    done = tool(*stopped("cancelled"))
    assert (done.code, done.document["state"], done.error["reason"]) == (6, "cancelled", "cancelled")


def test_a_job_of_a_newer_version_is_shown_and_cancelled_but_never_sent(
    stopped: Callable[[str], list[str]], store: Store, service: Service, tool: Tool
) -> None:
    command = stopped("paused")
    ending = '{"why": "interrupted", "newer": 1}'
    store.db.change(
        "UPDATE job SET settings = replace(settings, '{\"op', '{\"newer\": 1, \"op'), ending = ?", (ending,)
    )
    for line in (["job", "resume", "later", "--json"], command):
        done = tool(*line)
        assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (3, "newer_store", True)
    for view in ("job list", "job show later", "job report later", "job states later", "job cancel later --yes"):
        done = tool(*view.split())
        assert done.code == 0, done.err
    assert sends(service) == []


def test_a_job_that_is_taken_over_right_after_it_was_taken_is_lost(store: Store, opened: Callable[[], Store]) -> None:
    job = published(store, [ANA])
    commit = store.db.commit

    def taken_over() -> None:
        commit()
        store.db.commit = commit  # type: ignore[method-assign]
        store.db.change("UPDATE job SET owner = NULL WHERE number = ?", (job.number,))
        owners.take(opened(), job.number)

    store.db.commit = taken_over  # type: ignore[method-assign]
    sending = owners.take(store, job.number)
    with pytest.raises(LostJobError):
        intend(sending)


def take_over(store: Store, number: int) -> None:
    """Take a job over although its owner is alive, as after a lost network."""
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (number,))
    owners.take(store, number).finish("paused")


def test_an_owner_that_lost_its_job_intends_nothing_and_stores_late_outcomes(
    store: Store, opened: Callable[[], Store]
) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    intents = intend(sending, size=1)
    other = opened()
    take_over(other, job.number)
    with pytest.raises(LostJobError) as error:
        intend(sending)
    assert (error.value.exit_code, error.value.reason) == (6, "running_elsewhere")
    with pytest.raises(LostJobError):
        sending.finish("paused")
    assert outcomes(store, job.number) == {ANA: "unknown", LUIS: "pending"}

    sending.record_late(responses(intents))
    sending.record_late(responses(intents))
    after = jobs.get(store, job.number)
    assert (after.accepted, after.unknown, after.pending, after.credits) == (1, 0, 1, 1_000_000)
    assert after.highest_price == 1_000_000  # the limit of credits of the next owner depends on it
    assert [(each.messages, each.credits) for each in history.usage(store, "country")] == [(1, 1_000_000)]
    results.check_counts(store, after)


def test_a_job_whose_owner_died_stops_immediately_and_its_requests_in_flight_are_unknown(store: Store) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    intents = intend(sending, size=1)
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (job.number,))
    stopped = owners.ask_to_stop(store, job.number, "paused")
    assert (stopped.state, stopped.unknown, stopped.sending, stopped.pending) == ("paused", 1, 0, 1)
    assert outcomes(store, job.number) == {ANA: "unknown", LUIS: "pending"}
    sending.record_late(responses(intents))
    assert jobs.get(store, job.number).accepted == 1


def test_an_unknown_outcome_that_is_stored_twice_counts_its_credits_once(
    store: Store, opened: Callable[[], Store]
) -> None:
    job = published(store, [ANA])
    sending = owners.take(store, job.number)
    intents = intend(sending)
    record(sending, intents, {ANA: "unknown"})
    take_over(opened(), job.number)
    sending.record_late(responses(intents, {ANA: "unknown"}))
    assert jobs.get(store, job.number).credits == 1_000_000
    assert [each.credits for each in history.usage(store, "country")] == [1_000_000]


def test_an_owner_that_lost_its_connection_and_its_job_stores_the_outcomes(
    store: Store, opened: Callable[[], Store]
) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    intents = intend(sending, size=1)
    take_over(opened(), job.number)
    with pytest.raises(LostJobError):
        sending.reconnect(responses(intents))
    assert outcomes(store, job.number) == {ANA: "accepted", LUIS: "pending"}


def test_a_late_outcome_does_not_overwrite_a_resend(store: Store, opened: Callable[[], Store]) -> None:
    job = published(store, [ANA])
    sending = owners.take(store, job.number)
    intents = intend(sending)
    other = opened()
    take_over(other, job.number)
    assert owners.resend(other, job.number, ["unknown"]) == 1
    again = owners.take(other, job.number)
    record(again, intend(again))
    again.finish("done")

    sending.record_late(responses(intents, {ANA: "refused"}))
    after = jobs.get(store, job.number)
    assert (after.accepted, after.refused, after.unknown) == (1, 0, 0)
    results.check_counts(store, after)
    assert [each.outcome for each in history.entries(store, 10)] == ["refused", "accepted"]


def test_the_cost_of_pending_messages_includes_a_resend(store: Store) -> None:
    job = published(store, [ANA, LUIS, EVA])
    assert recipients.pending_messages(store, job.number, "sms") == (0, 3, 3, 1)
    sending = owners.take(store, job.number)
    record(sending, intend(sending, size=1), {ANA: "refused"})
    sending.finish("paused")
    assert recipients.pending_messages(store, job.number, "sms") == (0, 2, 2, 1)
    owners.resend(store, job.number, ["refused"])
    assert recipients.pending_messages(store, job.number, "sms") == (0, 3, 3, 1)


def test_a_resend_whose_process_died_after_its_last_outcome_allows_another(store: Store) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    record(sending, intend(sending, size=1), {ANA: "refused"})
    sending.finish("paused")
    assert owners.resend(store, job.number, ["refused"]) == 1
    sending = owners.take(store, job.number, "resend")
    record(sending, intend(sending, size=1), {ANA: "refused"})
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (job.number,))
    assert owners.resend(store, job.number, ["refused"]) == 1  # although Luis is still pending


def test_a_resume_does_not_undo_the_settings_of_another_one_during_its_question(
    store: Store, opened: Callable[[], Store]
) -> None:
    job = published(store, [ANA])
    owners.take(opened(), job.number, "resume", '{"max_credits": 5}', expected=job.settings).finish("paused")
    with pytest.raises(ConditionError, match="its settings are different now; nothing was sent"):
        owners.take(store, job.number, "resume", '{"rate": "1/s"}', expected=job.settings)
    assert jobs.get(store, job.number).settings == '{"max_credits": 5}'


def test_a_resend_that_another_process_has_completed_does_not_send_to_the_pending_people(
    store: Store, opened: Callable[[], Store]
) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    record(sending, intend(sending, size=1), {ANA: "refused"})
    sending.finish("paused")
    assert owners.resend(store, job.number, ["refused"]) == 1
    resumed = owners.take(opened(), job.number, "resume")
    record(resumed, intend(resumed, size=1))
    resumed.finish("paused")
    with pytest.raises(ConditionError, match="its resend has ended; nothing was sent"):
        owners.take(store, job.number, "resend")


def test_a_resend_is_another_attempt_with_fixed_recipients(store: Store) -> None:
    job = published(store, [ANA, LUIS, EVA])
    sent(store, job.number, {ANA: "refused", LUIS: "unknown"})
    assert owners.resendable(store, job.number, ["refused", "unknown"]) == (2, 2, 1)
    with pytest.raises(UsageError, match="changed since"):
        owners.resend(store, job.number, ["refused", "unknown"], expected=1)
    assert owners.resend(store, job.number, ["refused", "unknown"], expected=2) == 2
    assert outcomes(store, job.number) == {ANA: "pending", LUIS: "pending", EVA: "accepted"}
    with pytest.raises(UsageError, match="has not ended"):
        owners.resend(store, job.number, ["accepted"])

    people.add_optouts(store, [(LUIS, people.ALL)])
    assert sent(store, job.number) == [ANA]  # repeats do not apply to a resend
    assert outcomes(store, job.number) == {ANA: "accepted", LUIS: "unknown", EVA: "accepted"}
    assert owners.resend(store, job.number, [], is_delivered) == 0
    assert people.messages_since(store, ACCOUNT, [ANA, LUIS, EVA], 0) == {ANA: 1, LUIS: 1, EVA: 1}


def test_a_cancelled_resend_keeps_the_earlier_outcomes(store: Store) -> None:
    job = published(store, [ANA, LUIS])
    sent(store, job.number, {ANA: "unknown", LUIS: "unknown"})
    owners.resend(store, job.number, ["unknown"])
    sending = owners.take(store, job.number)
    record(sending, intend(sending, size=1))
    sending.finish("paused")
    cancelled = owners.ask_to_stop(store, job.number, "cancelled")
    assert (cancelled.state, cancelled.accepted, cancelled.unknown, cancelled.pending) == ("cancelled", 1, 1, 0)
    results.check_counts(store, cancelled)
    for change in (owners.take, partial(owners.resend, outcomes=["accepted"])):
        with pytest.raises(UsageError, match="was cancelled"):
            change(store, job.number)


def test_a_job_is_not_done_while_a_recipient_has_no_result(store: Store) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    intents = intend(sending, size=1)
    store.db.change("UPDATE result SET request = 99")
    with pytest.raises(ConfigurationError, match="another program has changed results"):
        record(sending, intents)
    store.db.change("UPDATE result SET request = 1")
    record(sending, intents)
    store.db.change("UPDATE job SET accepted = 2, pending = 0 WHERE number = ?", (job.number,))
    with pytest.raises(ConfigurationError, match="1 recipients that are pending, not 0") as error:
        sending.finish("done")
    assert error.value.reason == "damaged_store"


def test_delivery_states_are_learned_by_id(store: Store) -> None:
    job = published(store, [ANA, LUIS])
    sending = owners.take(store, job.number)
    (intent,) = intend(sending)
    with sending.batch(SMS):
        shared = [Outcome(None, "accepted", "dispatch-1"), Outcome(None, "accepted", "dispatch-1")]
        sending.record([RequestOutcome(intent, shared)])
    assert [each.phone for each in results.accepted(store, job.number)] == [ANA, LUIS]
    results.store_states(store, ACCOUNT, [("dispatch-1", ANA, "delivered")])
    results.store_states(store, "another", [("dispatch-1", None, "failed")])
    assert results.state_counts(store, job.number) == {"delivered": 1, None: 1}
    assert [each.phone for each in recipients.with_results(store, job.number, has_state=is_delivered)] == [ANA]
    assert [each.phone for each in recipients.with_results(store, job.number, outcomes=["refused"])] == []
    sending.finish("done")
    assert owners.resendable(store, job.number, [], is_delivered).recipients == 1


def test_a_job_may_have_more_delivery_states_than_a_statement_may_have_values(store: Store) -> None:
    job = published(store, [phone(each) for each in range(1_100)])
    sent(store, job.number)
    store.db.change("UPDATE job SET settings = ?", (SETTINGS.dump(),))
    store.db.change("UPDATE result SET state = 'failed at 10:' || line WHERE line <= 1050")
    rows, numbers = store.db.rows, [0]

    def counted(statement: str, values: Sequence[Any] = ()) -> list[Row]:
        numbers.append(len(values))
        return rows(statement, values)

    store.db.rows = counted  # type: ignore[method-assign]
    report = report_rows(store, jobs.get(store, job.number), NO_WORDS, ["undelivered"])
    assert len([*report]) == 1_050
    assert max(numbers) < 1_000
    selection = selected(["undelivered"], NO_WORDS)
    assert owners.resendable(store, job.number, *selection) == (1_050, 1_050, 1)
    assert owners.resend(store, job.number, *selection, expected=1_050) == 1_050
    assert max(numbers) < 1_000
    results.check_counts(store, jobs.get(store, job.number))


def test_people_excluded_from_a_repeated_import_are_found_while_its_job_may_send_to_them(store: Store) -> None:
    job = published(store, [ANA, LUIS, EVA])
    sending = owners.take(store, job.number)
    record(sending, intend(sending, size=1))
    sending.finish("paused")
    again = imported(store, [ANA, LUIS, EVA])
    recipients.exclude(store, again, [ANA, LUIS], "excluded by stop.csv")
    assert recipients.excluded_later(store, again, job.number) == [LUIS]
    owners.resend(store, job.number, ["accepted"])
    assert sorted(recipients.excluded_later(store, again, job.number)) == [ANA, LUIS]


def test_an_opt_out_list_of_a_thousand_numbers_is_read_in_parts(store: Store) -> None:
    given = [(phone(each), people.ALL) for each in range(1001)]
    assert people.add_optouts(store, given) == (1001, 1001)
    assert people.add_optouts(store, [(phone(0), "sms"), ("57999", "sms")]) == (2, 1)
    assert [each.phone for each in people.optouts(store)][:2] == [phone(0), phone(1)]
    assert len([*people.optouts(store)]) == 1002
    assert people.remove_optouts(store, [phone(0), "1"], "sms") == [phone(0)]
    assert people.opted_out(store, [phone(0)], "sms") == set()
    assert people.opted_out(store, [phone(0)], "call") == {phone(0)}


def test_the_charges_of_a_job_count_segments_without_a_price(store: Store) -> None:
    number = jobs.create(store, ACCOUNT, "main", "sms bulk")
    rows = [NewRecipient(line, phone(line), 1) for line in range(2, 6)]
    recipients.add(store, number, [NewContent(1, "{}", b"1", 3)], rows)
    jobs.publish(store, number, state="active", digest=b"1")
    sending = owners.take(store, number)
    (intent,) = intend(sending)
    rows_of_response = [
        Outcome(None, "accepted", credits=7_500_000),
        Outcome(None, "accepted"),
        Outcome(None, "unknown"),
        Outcome(None, "refused"),
    ]
    with sending.batch(SMS):
        sending.record([RequestOutcome(intent, rows_of_response)])
    assert results.charges(store, number) == (2, 3, 3)
    assert (sending.job.credits, sending.job.highest_price) == (7_500_000, 2_500_000)
    assert intent.segments == 12


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("expensive", range(3))
def test_each_accepted_recipient_of_each_request_counts_for_the_highest_price(
    store: Store, expensive: int, is_late: bool
) -> None:
    for request in range(2):
        job = published(store, [phone(each) for each in range(6)], message=f"{expensive} {request}")
        sending = owners.take(store, job.number)
        outcomes = [
            RequestOutcome(intent, [Outcome(each, "accepted", credits=1_000_000) for each in intent.phones])
            for intent in intend(sending, size=3, wanted=2)
        ]
        rows = cast("list[Outcome]", outcomes[request].rows)
        rows[expensive] = rows[expensive]._replace(credits=2_000_000)
        rows[expensive - 1] = rows[expensive - 1]._replace(outcome="unknown", credits=9_000_000)
        if is_late:
            sending.record_late(outcomes)
        else:
            with sending.batch(SMS):
                sending.record(outcomes)
        assert jobs.get(store, job.number).highest_price == 2_000_000
        sending.finish("paused")


def test_the_size_of_the_next_request_is_known_before_its_intent_is_stored(store: Store) -> None:
    sending = owners.take(store, published(store, [ANA, LUIS, EVA]).number)
    with sending.batch(SMS):
        assert sending.upcoming(2) == (2, 1)
        assert sending.intend(2) is not None
        assert sending.upcoming(2) == (1, 1)
        assert sending.intend(2) is not None
        assert sending.upcoming(2) is None
        assert sending.intend(2) is None


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_batch_whose_commit_was_lost_is_pending_after_a_new_connection(store: Store, is_stored: bool) -> None:
    sending = owners.take(store, published(store, [ANA, LUIS]).number)
    earlier = intend(sending, size=1)
    unsent: list[Intent] = []
    with suppress(ZeroDivisionError), sending.batch(SMS):
        sending.record(responses(earlier))
        unsent = [intent for intent in [sending.intend(1)] if intent]
        if not is_stored:
            raise ZeroDivisionError
    for _ in range(2):  # nothing is counted twice
        sending.reconnect([*responses(earlier), *map(RequestOutcome, unsent)])
        assert (sending.job.accepted, sending.job.pending, sending.job.sending) == (1, 1, 0)
        assert (sending.job.requests, sending.job.credits) == (1, 1_000_000)
        results.check_counts(store, sending.job)
    assert [each.phones for each in intend(sending)] == [[LUIS]]


def test_credits_are_stored_as_millionths() -> None:
    given = ("1", "0.5", "0.0", "-1", "x", None, "NaN", "1e12")
    assert [*map(millionths, given)] == [1_000_000, 500_000, 0, None, None, None, None, None]
    assert as_credits(1_000_000) == 1
    assert as_credits(500_000) == 0.5


# --- the threads of a job


def test_opt_outs_are_read_again_after_a_slow_commit(
    location: str, tmp_path: Path, passes: Callable[[float], None]
) -> None:
    arrivals = tmp_path / "sends"
    with closing(open_store(location)) as store, closing(open_store(location)) as other:
        job, commit = new_job(store, 4), store.db.commit
        settings = replace(SETTINGS, concurrency=1)

        def commit_slowly() -> None:
            commit()
            passes(INTENT_LIFE)
            request = store.db.value("SELECT max(request) FROM result WHERE outcome = 'sending'")
            people.add_optouts(other, optouts.get(request, ()))

        optouts = {1: [(sender.phones(4)[0], people.ALL)], 3: [(sender.phones(4)[2], "sms")]}
        store.db.commit = commit_slowly  # type: ignore[method-assign]
        after = send(store, job, arrivals, settings)
    assert (after.state, after.accepted, after.excluded) == ("done", 2, 2)
    assert arrived(arrivals) == dict.fromkeys(sender.phones(4)[1::2], 1)


def test_a_person_who_opts_out_while_a_connection_is_opened_gets_nothing(
    location: str, tmp_path: Path, passes: Callable[[float], None]
) -> None:
    class SlowConnection(FakeClient):
        is_open = False

        def send(self, request: Request, *, timeout: float, may_send: Callable[[], bool]) -> Response:
            if not self.is_open:
                self.is_open = True
                people.add_optouts(other, [(sender.phones(4)[0], "sms")])
                passes(INTENT_LIFE)
            if not may_send():
                raise TooLateError
            return super().send(request, timeout=timeout, may_send=may_send)

    arrivals = tmp_path / "sends"
    with closing(open_store(location)) as store, closing(open_store(location)) as other:
        job = new_job(store, 4)
        settings = replace(SETTINGS, concurrency=1)
        after = send(store, job, arrivals, settings, lambda: cast(Client, SlowConnection(arrivals)))
    assert (after.state, after.accepted, after.excluded) == ("done", 3, 1)
    assert arrived(arrivals) == dict.fromkeys(sender.phones(4)[1:], 1)


def test_a_store_that_stores_nothing_in_time_pauses_the_job(
    location: str, tmp_path: Path, passes: Callable[[float], None]
) -> None:
    with closing(open_store(location)) as store:
        job, rows = new_job(store, 2), store.db.rows

        def read_slowly(statement: str, values: Sequence[Any] = ()) -> list[Row]:
            if "optout" in statement:
                passes(INTENT_LIFE)
            return rows(statement, values)

        store.db.rows = read_slowly  # type: ignore[method-assign]
        after = send(store, job, tmp_path / "sends")
    assert (after.state, after.pending, "is too slow" in after.ending) == ("paused", 2, True)
    assert not arrived(tmp_path / "sends")


def test_a_process_whose_job_was_taken_over_during_a_slow_commit_sends_nothing(
    location: str, tmp_path: Path, passes: Callable[[float], None]
) -> None:
    with closing(open_store(location)) as store, closing(open_store(location)) as other:
        job, commit = new_job(store, 2), store.db.commit

        def lose_the_job() -> None:
            commit()
            if store.db.value("SELECT count(*) FROM result WHERE outcome = 'sending'"):
                store.db.commit = commit  # type: ignore[method-assign]
                passes(INTENT_LIFE / 2)
                take_over(other, job)

        store.db.commit = lose_the_job  # type: ignore[method-assign]
        with pytest.raises(LostJobError):
            send(store, job, tmp_path / "sends")
        assert not arrived(tmp_path / "sends")


def test_a_job_whose_window_closes_is_scheduled_for_the_next_opening(location: str, tmp_path: Path) -> None:
    arrivals, evening = tmp_path / "sends", datetime(2027, 1, 4, 18, 59, tzinfo=UTC)

    def clock() -> float:
        return (evening + timedelta(minutes=len(arrived(arrivals)))).timestamp()

    with closing(open_store(location, clock=clock)) as store:
        settings = replace(SETTINGS, window="08:00-19:00", timezone="UTC", concurrency=1)
        after = send(store, new_job(store, 4), arrivals, settings)
    assert (after.state, after.accepted, after.pending) == ("scheduled", 2, 2)
    assert after.due == int(datetime(2027, 1, 5, 8, tzinfo=UTC).timestamp() * 1000)


def test_a_request_whose_window_closes_during_its_commit_is_not_sent(location: str, tmp_path: Path) -> None:
    now = [datetime(2027, 1, 4, 18, 59, tzinfo=UTC).timestamp()]
    with closing(open_store(location, clock=lambda: now[0])) as store:
        job, commit = new_job(store, 2), store.db.commit

        def commit_until_the_window_closes() -> None:
            commit()
            if store.db.value("SELECT count(*) FROM result WHERE outcome = 'sending'"):
                now[0] += 60

        store.db.commit = commit_until_the_window_closes  # type: ignore[method-assign]
        after = send(store, job, tmp_path / "sends", replace(SETTINGS, window="08:00-19:00", timezone="UTC"))
    assert (after.state, after.pending) == ("scheduled", 2)
    assert not arrived(tmp_path / "sends")


@pytest.mark.parametrize(
    ("error", "retry_after"),
    [(TurnedAwayError("429"), 300), (TurnedAwayError("429"), None), (NotReachedError("x"), None)],
)
def test_requests_that_were_stored_before_a_wait_are_not_sent_during_it(
    location: str, tmp_path: Path, error: MsgctlError, retry_after: float | None
) -> None:
    seconds = retry_after or 1
    if isinstance(error, TurnedAwayError):
        error.retry_after = retry_after
    arrivals, now, began = tmp_path / "sends", [1000.0], list[float]()

    class TurnedAwayOnce(FakeClient):
        def send(self, request: Request, *, timeout: float, may_send: Callable[[], bool]) -> Response:
            began.append(now[0])
            if len(began) == 2:
                raise error
            return super().send(request, timeout=timeout, may_send=may_send)

    with closing(open_store(location)) as store:
        job, commit = new_job(store, 8), store.db.commit

        def commit_slowly() -> None:
            """After a slow commit, the next one stores several requests for the sender."""
            commit()
            now[0] += SLOW * 2
            if len(began) > 1 and not store.db.value("SELECT count(*) FROM result WHERE outcome = 'sending'"):
                now[0] += seconds * 2

        store.db.commit = commit_slowly  # type: ignore[method-assign]
        connect, settings = (lambda: cast(Client, TurnedAwayOnce(arrivals))), replace(SETTINGS, concurrency=1)
        runner = JobRunner(store, owners.take(store, job), settings, connect, lambda: now[0])
        runner.start()
        assert runner.wait(PATIENCE)
        assert runner.finish()[0].accepted == 8
    assert began[2] - began[1] >= seconds
    assert arrived(arrivals) == dict.fromkeys(sender.phones(8), 1)


def test_a_job_that_loses_the_store_keeps_its_outcomes_and_stores_them_at_its_end(
    location: str, tmp_path: Path
) -> None:
    arrivals, later = tmp_path / "sends", list[str]()

    class SlowClient(FakeClient):
        def send(self, request: Request, *, timeout: float, may_send: Callable[[], bool]) -> Response:
            response = super().send(request, timeout=timeout, may_send=may_send)
            is_first = request.phones[0] == "573000000002"
            wait_until(lambda: len(arrived(arrivals)) == 4 and (is_first or len(later) > 0))
            return response

    with closing(open_store(location)) as store:
        job, begin = new_job(store, 4), store.db.begin

        def lose_the_store(lock: str) -> None:
            if len(arrived(arrivals)) == 4:
                later.append(lock)
            if len(later) == 1:
                raise StoreNotReachedError("The store was not reached", "Try again.")
            begin(lock)

        store.db.begin = lose_the_store  # type: ignore[method-assign]
        settings = replace(SETTINGS, concurrency=2)
        threads = JobRunner(store, owners.take(store, job), settings, lambda: cast(Client, SlowClient(arrivals)))
        threads.start()
        assert threads.wait(PATIENCE)
        assert threads.finish()[0].accepted == 4
    assert len(later) == 3  # the transaction that failed, and two at the end: the outcomes, and the job's state


def test_a_request_that_msgctl_cannot_judge_is_unknown_and_the_job_ends(store: Store, tmp_path: Path) -> None:
    class BrokenClient(FakeClient):
        def send(self, request: Request, *, timeout: float, may_send: Callable[[], bool]) -> Response:
            super().send(request, timeout=timeout, may_send=may_send)
            return cast(Response, None)

    arrivals = tmp_path / "sends"
    job = send(store, new_job(store, 4), arrivals, connect=lambda: cast(Client, BrokenClient(arrivals)))
    assert (job.unknown, job.pending) == (4, 0)


def test_requests_whose_commit_was_lost_are_not_sent_and_end_as_pending(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "sends"
    with closing(open_store(location)) as store:
        job, commit = new_job(store, 2), store.db.commit

        def lose_the_commit() -> None:
            commit()
            if store.db.value("SELECT count(*) FROM result WHERE outcome = 'sending'"):
                store.db.commit = commit  # type: ignore[method-assign]
                raise StoreNotReachedError("The store was not reached", "Try again.")

        store.db.commit = lose_the_commit  # type: ignore[method-assign]
        after = send(store, job, arrivals)
        assert (after.state, after.pending, after.unknown) == ("paused", 2, 0)
        assert not arrived(arrivals)


def test_a_job_pauses_after_an_unexpected_error_of_the_store(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "sends"
    with closing(open_store(location)) as store:
        job, begin = new_job(store, 2), store.db.begin

        def fail(lock: str) -> None:
            if arrived(arrivals):
                store.db.begin = begin  # type: ignore[method-assign]
                raise ZeroDivisionError
            begin(lock)

        store.db.begin = fail  # type: ignore[method-assign]
        after = send(store, job, arrivals)
        assert (after.state, after.unknown, "ZeroDivisionError" in after.ending) == ("paused", 2, True)


def test_a_pause_does_not_take_back_a_cancel_whose_process_died(store: Store) -> None:
    job = published(store, [ANA])
    store.db.change("UPDATE job SET stopping = 'cancelled', owner = 12345 WHERE number = ?", (job.number,))
    assert owners.ask_to_stop(store, job.number, "paused").state == "cancelled"
    with pytest.raises(UsageError, match="was cancelled"):
        owners.take(store, job.number)


def test_a_pause_does_not_take_back_a_cancel_of_a_running_job(store: Store, opened: Callable[[], Store]) -> None:
    job = owners.take(opened(), published(store, [ANA]).number).job
    owners.ask_to_stop(store, job.number, "cancelled")
    owners.ask_to_stop(store, job.number, "paused")
    assert jobs.get(store, job.number).stopping == "cancelled"


def test_a_job_whose_owner_ends_it_while_it_is_asked_to_stop_is_cancelled(
    store: Store, opened: Callable[[], Store]
) -> None:
    owned = owners.take(opened(), published(store, [ANA]).number)
    assert owners.ask_to_stop(store, owned.job.number, "cancelled").is_running
    after = owned.finish("scheduled", due=1)  # its window has closed
    assert (after.state, after.due, after.stopping) == ("cancelled", None, None)


def test_a_scheduled_job_stays_scheduled_after_a_resend(store: Store) -> None:
    job = jobs.publish(store, imported(store, [ANA, LUIS]), state="scheduled", digest=b"", due=1)
    sending = owners.take(store, job.number, "run-due")
    record(sending, intend(sending, size=1), {ANA: "refused"})
    sending.finish("scheduled", due=1)
    assert owners.resend(store, job.number, ["refused"]) == 1
    resent = jobs.get(store, job.number)
    assert resent.state == "scheduled"
    sending = owners.take(store, job.number, "run-due")
    record(sending, intend(sending, size=1))
    after = sending.finish(state_after(sending.job, Why.COMPLETE), due=1)
    assert (after.state, after.accepted, after.pending) == ("scheduled", 1, 1)


def test_a_published_job_is_not_discarded(store: Store) -> None:
    number = published(store, [ANA]).number
    removal.discard(store, number)
    assert jobs.get(store, number).pending == 1


def test_an_import_that_another_process_discards_cannot_be_published(store: Store) -> None:
    number = imported(store, [ANA, LUIS])
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (number,))  # its lock is lost
    store.db.change("UPDATE job SET removed = 1 WHERE number = ?", (number,))  # and another process tidies up
    with pytest.raises(StoreNotReachedError, match="during the import"):
        jobs.publish(store, number, state="active", digest=b"")
    removal.tidy(store)
    assert store.db.value("SELECT count(*) FROM recipient") == 0
