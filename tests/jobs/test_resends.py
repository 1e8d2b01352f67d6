"""Which job sends to a recipient after resends, and which recipients can be resent to."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.ledgers import SPEC, Responder, Service, accept, lose, opened, outcomes, phone, refuse, run, write
from msgctl.errors import UsageError
from msgctl.jobs import resends
from msgctl.jobs.model import JobSpec
from msgctl.jobs.reader import Row
from msgctl.jobs.states import State
from msgctl.jobs.store import Store

SOURCE, FIRST, SECOND, THIRD = (f"20261121-00000{number}" for number in range(4))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def create_and_run(
    store: Store, job: str, lines: Iterable[int], *responders: Responder, spec: JobSpec = SPEC, opted_out: int = 0
) -> None:
    """Create a job and run it. The last responder responds to all other requests; line ``opted_out`` opts out."""
    recipients = [Row(line, phone(line), ("Hello",)) for line in lines]
    with closing(opened(write(store.path(job), recipients, spec))) as ledger:
        resends.begin(store, job, ledger)
        with ledger.transaction():
            ledger.leave_out([phone(opted_out)], "opted out")
        run(ledger, Service(*responders[:-1], otherwise=responders[-1]))


def resent(store: Store, source: str, job: str, lines: list[int], responder: Responder = refuse) -> None:
    resends.hand_over(store, source, job, State.REFUSED, lines)
    create_and_run(store, job, lines, responder, spec=replace(SPEC, resend_of=source))


def test_recipients_of_a_missing_resend_are_free_unless_it_had_begun(store: Store) -> None:
    create_and_run(store, SOURCE, range(2, 6), refuse)
    resends.hand_over(store, SOURCE, FIRST, State.REFUSED, [2, 3])
    assert (resends.taken(store, SOURCE), resends.refused(store, SOURCE)) == ({}, ({2, 3, 4, 5}, {}))
    resent(store, SOURCE, SECOND, [3, 4])
    assert resends.refused(store, SOURCE) == ({2, 3, 4, 5}, {}), "the resend was refused, too"
    store.path(SECOND).unlink()
    assert resends.taken(store, SOURCE) == {3: SECOND, 4: SECOND}
    assert resends.refused(store, SOURCE) == ({2, 5}, {3: SECOND, 4: SECOND})


def test_the_job_that_sends_is_found_through_several_resends(store: Store) -> None:
    create_and_run(store, SOURCE, range(2, 6), refuse)
    resent(store, SOURCE, FIRST, [2, 3, 4])
    resent(store, SOURCE, SECOND, [2], accept)  # it takes line 2 back from the first
    resent(store, FIRST, THIRD, [3], accept)
    assert resends.refused(store, SOURCE) == ({4, 5}, {2: SECOND, 3: FIRST})
    assert resends.refused(store, FIRST) == ({4}, {2: SOURCE, 3: THIRD})
    store.path(SOURCE).unlink()
    assert resends.taken(store, FIRST) == {2: SOURCE, 3: THIRD}, "the source may have sent to line 2"
    with closing(opened(store.path(FIRST))) as ledger:
        resends.begin(store, FIRST, ledger)


def test_recipients_are_taken_back_from_a_chain_of_resends(store: Store) -> None:
    create_and_run(store, SOURCE, range(2, 5), refuse)
    resent(store, SOURCE, FIRST, [2, 3, 4])
    resent(store, FIRST, SECOND, [3, 4])
    resent(store, SOURCE, THIRD, [3], accept)
    assert [resends.taken(store, job) for job in (SOURCE, FIRST, SECOND)] == [{3: THIRD}, {3: SOURCE}, {3: FIRST}]
    assert resends.refused(store, SECOND)[0] == {4}


def test_recipients_of_another_job_or_in_another_state_are_not_handed_over(store: Store) -> None:
    create_and_run(store, SOURCE, range(2, 5), refuse)
    resent(store, SOURCE, FIRST, [2], accept)
    for state, lines in ((State.REFUSED, [2, 3]), (State.ACCEPTED, [4]), (State.REFUSED, [3, 9])):
        with pytest.raises(UsageError) as caught:
            resends.hand_over(store, SOURCE, SECOND, state, lines)
    what = f"Another command has just begun to resend to recipients of job {SOURCE}; nothing was sent"
    assert (caught.value.message, caught.value.hint) == (what, "See: msgctl job list")
    assert resends.refused(store, SOURCE) == ({3, 4}, {2: FIRST})


def test_a_deleted_resend_releases_the_recipients_to_whom_it_has_not_sent(store: Store) -> None:
    create_and_run(store, SOURCE, range(2, 8), refuse)
    resends.hand_over(store, SOURCE, FIRST, State.REFUSED, range(2, 8))
    spec = replace(SPEC, resend_of=SOURCE, batch_size=1, concurrency=1, canary=4)
    create_and_run(store, FIRST, range(2, 8), accept, refuse, refuse, lose, spec=spec, opted_out=6)
    resent(store, FIRST, SECOND, [3], accept)
    with closing(opened(store.path(FIRST))) as ledger:
        assert outcomes(ledger) == {"accepted": 1, "refused": 2, "unknown": 1, "pending": 1, "excluded": 1}
    assert resends.refused(store, SOURCE) == ({4, 6}, dict.fromkeys((2, 3, 5, 7), FIRST))
    resends.remove(store, FIRST)
    assert resends.refused(store, SOURCE) == ({4, 6, 7}, dict.fromkeys((2, 3, 5), FIRST))
