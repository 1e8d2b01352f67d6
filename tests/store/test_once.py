"""Single sends, and keys under which something is sent once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from msgctl.errors import ConditionError, StoreNotReachedError, UsageError
from msgctl.store import history, once, owners, people, removal
from msgctl.store.once import DIED, Begun, Key, Result, Single
from msgctl.store.results import RowOutcome
from msgctl.store.store import KEEP, Store
from store.campaigns import ACCOUNT, ANA, EVA, LUIS, SMS, intend, published, record, sent
from store.conftest import Clock
from store.processes import child, killed_everywhere, status_of, wait_until

KEY = Key("disk-full", b"everything", 60)
DONE = Result(0, 200, b'{"status": "1"}')
ACCEPTED = [RowOutcome("accepted", "id-1", "sent", 1_500_000)]


def single(phone: str = ANA, channel: str | None = "sms") -> Single:
    return Single(ACCOUNT, "main", "sms send", '{"sms": "Hola"}', [phone], True, b"Hola", channel)


def begun(store: Store, key: Key | None = KEY, phone: str = ANA) -> Begun:
    result = once.begin(store, single(phone), key)
    assert isinstance(result, Begun)
    return result


def send(store: Store, key: Key | None = KEY, phone: str = ANA) -> None:
    once.end(store, begun(store, key, phone), ACCEPTED, DONE)


def test_a_key_sends_once_and_then_returns_the_first_result(store: Store) -> None:
    send(store)
    assert once.begin(store, single(), KEY) == DONE
    assert once.find(store, ACCOUNT, KEY) == DONE
    assert once.find(store, "another", KEY) is None
    assert [(each.phone, each.outcome, each.credits) for each in history.entries(store, 9)] == [
        (ANA, "accepted", 1_500_000)
    ]


def test_a_key_that_was_used_for_something_else_is_a_usage_error(store: Store) -> None:
    send(store)
    with pytest.raises(UsageError, match="another message or other recipients") as error:
        once.begin(store, single(LUIS), KEY._replace(digest=b"other"))
    assert error.value.reason == "key_reused"


def test_a_refused_request_frees_the_key_and_stays_in_the_history(store: Store) -> None:
    once.end(store, begun(store), [RowOutcome("refused")], None)
    assert once.find(store, ACCOUNT, KEY) is None
    send(store)
    assert [each.outcome for each in history.entries(store, 9)] == ["refused", "accepted"]


def test_a_request_that_was_not_carried_out_leaves_nothing(store: Store) -> None:
    once.end(store, begun(store), [], None)
    assert once.find(store, ACCOUNT, KEY) is None
    assert history.entries(store, 9) == []
    assert people.repeats(store, ACCOUNT, [ANA]) == set()


def test_nothing_is_sent_if_taking_the_key_took_longer_than_the_time_limit(store: Store) -> None:
    with pytest.raises(StoreNotReachedError, match="was not reached in time") as error:
        once.begin(store, single(), KEY._replace(max_wait=0))
    assert (error.value.exit_code, error.value.nothing_sent) == (4, True)
    assert history.entries(store, 9) == []
    send(store)


def test_an_unknown_result_is_resent_only_on_request(store: Store) -> None:
    unknown = Result(5, 502, b"<html>", "no", "look")
    once.end(store, begun(store), [RowOutcome("unknown")], unknown, body="<html>")
    assert once.begin(store, single(), KEY) == unknown
    again = KEY._replace(resend_unknown=True)
    # A refused resend leaves the first outcome unknown.
    once.end(store, begun(store, again), [RowOutcome("refused")], None)
    assert once.begin(store, single(), KEY) == unknown
    send(store, again)
    assert once.begin(store, single(), again) == DONE


def test_the_key_of_a_process_that_died_has_an_unknown_result(store: Store, location: str) -> None:
    assert status_of(child(location, begun)) == 0
    wait_until(lambda: once.find(store, ACCOUNT, KEY) is not None)
    assert once.begin(store, single(), KEY) == DIED
    send(store, KEY._replace(resend_unknown=True))
    assert once.begin(store, single(), KEY) == DONE


def test_a_process_that_seemed_dead_stores_the_true_outcome(store: Store, opened: Callable[[], Store]) -> None:
    started = begun(store)
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (started.job,))  # as if its lock was lost
    once.settle_dead(opened(), ACCOUNT)
    once.end(store, started, ACCEPTED, DONE)
    assert once.begin(store, single(), KEY) == DONE
    (entry,) = history.entries(store, 9)
    assert (entry.outcome, entry.id) == ("accepted", ACCEPTED[0].id)


def test_a_caller_waits_for_the_result_of_another_process(store: Store, location: str) -> None:
    ready = os.pipe()

    def work(other: Store) -> None:
        started = begun(other)
        os.write(ready[1], b"1")
        time.sleep(0.3)
        once.end(other, started, ACCEPTED, DONE)

    pid = child(location, work)
    os.read(ready[0], 1)
    assert once.find(store, ACCOUNT, KEY) is None
    with pytest.raises(ConditionError, match="is sending under this key") as error:
        once.begin(store, single(), KEY._replace(max_wait=0.01))
    assert (error.value.exit_code, error.value.reason) == (6, "running_elsewhere")
    assert once.begin(store, single(), KEY) == DONE
    assert status_of(pid) == 0


def test_one_of_several_processes_sends_and_all_get_its_result(store: Store, location: str, tmp_path: Path) -> None:
    sends = tmp_path / "sends"

    def work(other: Store) -> None:
        started = once.begin(other, single(), KEY)
        if isinstance(started, Result):
            assert started == DONE
        else:
            with sends.open("a") as log:
                log.write("sent\n")
            once.end(other, started, ACCEPTED, DONE)

    assert [status_of(pid) for pid in [child(location, work) for _ in range(5)]] == [0] * 5
    assert sends.read_text() == "sent\n"


def test_a_kill_between_any_two_statements_never_sends_twice(store: Store, location: str, tmp_path: Path) -> None:
    sends = tmp_path / "sends"

    def work(other: Store, n: int) -> None:
        started = once.begin(other, single(), KEY._replace(key=f"key-{n}"))
        if isinstance(started, Begun):
            with sends.open("a") as log:
                log.write(f"{n}\n")
            once.end(other, started, ACCEPTED, DONE)

    for n in killed_everywhere(location, work):
        work(store, n)
        result = once.find(store, ACCOUNT, KEY._replace(key=f"key-{n}"))
        assert result in (DONE, DIED)
        assert sends.read_text().split().count(str(n)) <= 1
    assert result == DONE


def test_opted_out_people_are_refused_in_the_transaction_of_the_intent(store: Store) -> None:
    people.add_optouts(store, [(ANA, "sms"), (LUIS, "call"), (EVA, people.ALL)])
    for phone in (ANA, EVA):
        with pytest.raises(UsageError, match=f"{phone} has opted out of SMS") as error:
            once.begin(store, single(phone), KEY)
        assert error.value.reason == "opted_out"
    send(store, phone=LUIS)
    assert once.begin(store, single(ANA, channel=None), None)


def test_a_single_send_counts_as_a_repeat_of_a_job(store: Store) -> None:
    send(store, None)
    assert sent(store, published(store, [ANA, LUIS]).number, limits=SMS) == [LUIS]


def test_keys_are_kept_for_90_days_even_if_the_history_is_cleared(store: Store, clock: Clock) -> None:
    send(store)
    count, numbers = history.clearable(store, ACCOUNT)
    assert (count, removal.remove(store, numbers)) == (1, 1)
    assert history.entries(store, 9) == []
    clock.now += KEEP / 1000 - 1
    removal.tidy(store)
    assert once.find(store, ACCOUNT, KEY) == DONE
    clock.now += 2
    removal.tidy(store)
    assert once.find(store, ACCOUNT, KEY) is None


def test_a_send_whose_process_died_is_unknown_and_can_be_cleared(store: Store, location: str) -> None:
    assert status_of(child(location, lambda other: begun(other, None))) == 0
    assert [each.outcome for each in history.entries(store, 9)] == ["unknown"]

    def cleared() -> bool:
        return history.clearable(store, ACCOUNT)[0] == 1

    wait_until(cleared)
    assert [each.outcome for each in history.entries(store, 9)] == ["unknown"]


def test_the_history_has_the_newest_entries_last_and_selects_them(store: Store, clock: Clock) -> None:
    for phone in (ANA, LUIS, ANA):
        send(store, None, phone)
        clock.now += 60
    assert [each.phone for each in history.entries(store, 2)] == [LUIS, ANA]
    assert len(history.entries(store, 9, phone=ANA)) == 2
    now = store.now()
    assert len(history.entries(store, 9, since=now - 90_000)) == 1
    assert len(history.entries(store, 9, until=now - 90_000)) == 2
    assert [each.phone for each in history.last(store, ACCOUNT)] == [ANA]
    assert history.last(store, "another") == []
    assert [each.job for each in history.entries(store, 9, job=1)] == [None]


def test_all_entries_are_read_in_pages(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SLICE", 2)
    job = published(store, [ANA, LUIS, EVA])
    sent(store, job.number)
    for phone in (ANA, LUIS, ANA):
        send(store, None, phone)
        clock.now += 60
    assert [*history.all_entries(store)] == history.entries(store, 99)
    assert len([*history.all_entries(store, job=job.number)]) == 3
    assert [*history.all_entries(store, phone=ANA)] == history.entries(store, 99, phone=ANA)
    assert [*history.all_entries(store, since=store.now(), profile="main")] == []
    assert [*history.all_entries(store, job=job.number, since=store.now())] == []


def test_usage_sums_messages_and_credits_by_any_column(store: Store) -> None:
    send(store)
    send(store, None, "14155550100")
    job = published(store, [LUIS])
    sent(store, job.number)
    sums = {by: {each.group: tuple(each[1:]) for each in history.usage(store, by)} for by in history.GROUPINGS}
    assert sums["country"] == {"CO": (2, 2_500_000), "US": (1, 1_500_000)}
    assert sums["command"] == {"sms bulk": (1, 1_000_000), "sms send": (2, 3_000_000)}
    assert sums["job"] == {job.id: (1, 1_000_000), None: (2, 3_000_000)}
    assert sums["profile"] == {"main": (3, 4_000_000)}
    assert [*sums["day"].values()] == [*sums["month"].values()] == [(3, 4_000_000)]
    assert history.usage(store, "day", until=0) == []


def test_usage_of_a_job_that_sends_on_two_days_has_both(store: Store, clock: Clock) -> None:
    job = published(store, [ANA, LUIS, EVA])
    sending = owners.take(store, job.number)
    for size, number in ((2, 1), (1, 2)):
        record(sending, intend(sending, size))
        assert [each.messages for each in history.usage(store, "day")] == [2, 1][:number]
        clock.now += 40 * 86_400
    sending.finish("done")
    assert [(each.messages, each.credits) for each in history.usage(store, "month")] == [(2, 2_000_000), (1, 1_000_000)]
    assert [each.messages for each in history.usage(store, "job")] == [3]
    since = store.now() - 50 * 86_400_000
    assert [each.messages for each in history.usage(store, "command", since=since)] == [1]
    owners.resend(store, job.number, ["accepted"], None, expected=3)
    sending = owners.take(store, job.number)
    record(sending, intend(sending))
    assert [each.messages for each in history.usage(store, "job")] == [6]
