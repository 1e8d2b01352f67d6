"""Single sends, and keys under which something is sent once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from msgctl.errors import ConditionError, UsageError
from msgctl.outcomes.outcome import Outcome
from msgctl.store import history, owners, people, removal, sends
from msgctl.store.results import INTENT_LIFE
from msgctl.store.sends import DIED, Key, SendRecord, Single, StoredResult
from msgctl.store.store import KEEP, Store
from store.campaigns import ACCOUNT, ANA, EVA, LUIS, intend, published, record, sent
from store.processes import before_lock, child, killed_everywhere, status_of, wait_until
from support.tool import Clock

KEY = Key("disk-full", b"everything", 60)
DONE = StoredResult(0, 200, b'{"status": "1"}')
ACCEPTED = [Outcome(None, "accepted", "id-1", "sent", 1_500_000)]


def single(phone: str = ANA) -> Single:
    return Single(ACCOUNT, "main", "sms send", '{"sms": "Hola"}', [phone], True, b"Hola", "sms")


def begun(store: Store, key: Key | None = KEY, phone: str = ANA) -> SendRecord:
    started = SendRecord(store, single(phone), key)
    assert started.begin() is None
    return started


def send(store: Store, key: Key | None = KEY, phone: str = ANA) -> None:
    begun(store, key, phone).end(ACCEPTED, DONE)


def earlier(store: Store, key: Key = KEY, account: str = ACCOUNT) -> StoredResult | None:
    return SendRecord(store, replace(single(), account=account), key).earlier()


def test_a_request_that_was_not_carried_out_leaves_nothing(store: Store) -> None:
    begun(store).end([])
    assert earlier(store) is None
    assert history.entries(store, 9) == []
    assert people.repeats(store, ACCOUNT, [ANA]) == {}


def test_a_slow_send_goes_out_only_if_no_other_process_has_taken_its_key_over(
    store: Store, opened: Callable[[], Store], passes: Callable[[float], None]
) -> None:
    slow = begun(store)
    passes(INTENT_LIFE)
    assert slow.may_send()
    store.db.change("UPDATE once SET owner = 12345")  # as if its lock was lost
    other = opened()
    send(other, KEY._replace(resend_unknown=True))
    with pytest.raises(ConditionError, match=f"Another process on {store.machine} has taken over this key") as error:
        slow.may_send()
    assert (error.value.exit_code, error.value.reason) == (6, "running_elsewhere")
    slow.end([])
    assert earlier(store) == DONE
    assert [entry.outcome for entry in history.entries(store, 9)] == ["accepted"]


def test_an_unknown_result_is_resent_only_on_request(store: Store) -> None:
    unknown = StoredResult(5, 502, b"<html>", "no", "look")
    begun(store).end([Outcome(None, "unknown")], unknown)
    assert SendRecord(store, single(), KEY).begin() == unknown
    again = KEY._replace(resend_unknown=True)
    # A refused resend leaves the first outcome unknown.
    begun(store, again).end([Outcome(None, "refused")])
    assert SendRecord(store, single(), KEY).begin() == unknown
    send(store, again)
    assert SendRecord(store, single(), again).begin() == DONE


def test_a_process_that_seemed_dead_stores_the_true_outcome(store: Store, opened: Callable[[], Store]) -> None:
    started = begun(store)
    with pytest.raises(ConditionError, match=f"Another process on {store.machine} is sending under this key"):
        SendRecord(opened(), single(), KEY._replace(max_wait=0.01)).begin()
    store.db.change("UPDATE job SET owner = 12345")  # as if its lock was lost
    sends.settle_dead(opened(), ACCOUNT)
    started.end(ACCEPTED, DONE)
    assert SendRecord(store, single(), KEY).begin() == DONE
    (entry,) = history.entries(store, 9)
    assert (entry.outcome, entry.id) == ("accepted", ACCEPTED[0].id)


def test_one_of_several_processes_sends_and_all_get_its_result(store: Store, location: str, tmp_path: Path) -> None:
    sent_log = tmp_path / "sent"

    def work(other: Store) -> None:
        started = SendRecord(other, single(), KEY)
        if result := started.begin():
            assert result == DONE
        else:
            with sent_log.open("a") as log:
                log.write("sent\n")
            started.end(ACCEPTED, DONE)

    assert [status_of(pid) for pid in [child(location, work) for _ in range(5)]] == [0] * 5
    assert sent_log.read_text() == "sent\n"


def test_a_key_that_another_process_uses_first_sends_nothing_again(store: Store, opened: Callable[[], Store]) -> None:
    before_lock(store, partial(send, opened()))
    assert SendRecord(store, single(), KEY).begin() == DONE


def test_a_person_who_opts_out_right_before_a_send_gets_nothing(store: Store, opened: Callable[[], Store]) -> None:
    before_lock(store, partial(people.add_optouts, opened(), [(ANA, people.ALL)]))
    with pytest.raises(UsageError) as error:
        SendRecord(store, single(), None).begin()
    assert error.value.reason == "opted_out"


def test_a_send_that_ends_while_its_key_is_looked_up_is_not_reported_as_unknown(
    store: Store, opened: Callable[[], Store]
) -> None:
    other = opened()
    started = begun(other)
    check = store.db.alive

    def end() -> None:
        started.end(ACCEPTED, DONE)
        other.close()

    ending = Thread(target=end)

    def end_and_check(owners: Collection[int]) -> set[int]:
        ending.start()
        ending.join(0.5)
        return check(owners)

    store.db.alive = end_and_check  # type: ignore[method-assign]
    assert earlier(store) is None
    ending.join()
    assert earlier(store) == DONE


def test_a_kill_between_any_two_changes_never_sends_twice(store: Store, location: str, tmp_path: Path) -> None:
    sent_log = tmp_path / "sent"

    def work(other: Store, n: int) -> None:
        started = SendRecord(other, single(), KEY._replace(key=f"key-{n}"))
        if started.begin() is None:
            with sent_log.open("a") as log:
                log.write(f"{n}\n")
            started.end(ACCEPTED, DONE)

    for n in killed_everywhere(location, work):
        work(store, n)
        key = KEY._replace(key=f"key-{n}")
        result = earlier(store, key)
        assert result in (DONE, DIED)
        assert sent_log.read_text().split().count(str(n)) <= 1
        assert earlier(store, key._replace(resend_unknown=True)) == (DONE if result == DONE else None)
    assert result == DONE


def test_keys_are_kept_for_90_days_even_if_the_history_is_cleared(store: Store, clock: Clock) -> None:
    send(store)
    old = history.clearable(store, ACCOUNT)
    assert (old.entries, old.jobs, removal.remove(store, old.numbers)) == (1, 0, 1)
    assert history.entries(store, 9) == []
    clock.now += KEEP / 1000 - 1
    removal.tidy(store)
    assert earlier(store) == DONE
    assert earlier(store, account="another") is None
    clock.now += 2
    removal.tidy(store)
    assert earlier(store) is None


def test_a_send_whose_process_died_is_unknown_and_can_be_cleared(store: Store, location: str) -> None:
    assert status_of(child(location, lambda other: begun(other, None))) == 0
    assert [each.outcome for each in history.entries(store, 9)] == ["unknown"]

    def cleared() -> bool:
        return history.clearable(store, ACCOUNT).entries == 1

    wait_until(cleared)
    assert [each.outcome for each in history.entries(store, 9)] == ["unknown"]


def test_the_history_has_the_newest_entries_last_and_selects_them(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("msgctl.store.store.SLICE", 2)
    job = published(store, [ANA, LUIS, EVA])
    sent(store, job.number)
    for phone in (ANA, LUIS, ANA):
        send(store, None, phone)
        clock.now += 60
    now = store.now()
    assert [each.phone for each in history.entries(store, 2)] == [LUIS, ANA]
    selections: list[tuple[dict[str, Any], int]] = [
        ({}, 6),
        ({"phone": ANA}, 3),
        ({"since": now - 90_000}, 1),
        ({"until": now - 90_000}, 5),
        ({"job": job.number}, 3),
        ({"job": job.number, "since": now}, 0),
        ({"profile": "another"}, 0),
    ]
    for selection, number in selections:
        entries = history.entries(store, 99, **selection)
        assert len(entries) == number
        assert [*history.all_entries(store, **selection)] == entries
    assert [each.phone for each in history.last_send(store, ACCOUNT)] == [ANA]
    assert history.last_send(store, "another") == []
    store.machine = "another"
    assert history.last_send(store, ACCOUNT) == []


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
    owners.resend(store, job.number, ["accepted"], expected=3)
    sending = owners.take(store, job.number)
    record(sending, intend(sending))
    assert [each.messages for each in history.usage(store, "job")] == [6]
