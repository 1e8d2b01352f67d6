"""Decide which job sends to a recipient after `job resend`: a ledger records recipients handed over to another job.

A resend takes recipients over from its source, with the same line numbers. If the service refuses them again, the
source can take them back, for itself or for another resend. By following the rows of ``handed_over``, each line leads
to the one job that sends to it. Rows change only under the lock `Store.starting`, and are on disk before the new job
exists or a line is pending. Therefore at most one job sends to a line, even after a crash at any moment.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress

from msgctl.errors import ConfigurationError, UsageError
from msgctl.jobs.ledger import Ledger, facts
from msgctl.jobs.schema import LEDGER, writing
from msgctl.jobs.states import State
from msgctl.jobs.store import Store

_WANTED = "SELECT line FROM outcome WHERE message IS NOT NULL AND state IN (SELECT value FROM json_each(?))"
_HAND_OVER = "INSERT OR REPLACE INTO handed_over SELECT value, ?, ? FROM json_each(?)"
_RELEASE = "DELETE FROM handed_over WHERE job = ? AND line IN (SELECT value FROM json_each(?))"


def taken(store: Store, job: str) -> dict[int, str]:
    """Return the lines of a job that another job has sent or will send to, each with the other job.

    Raises ConfigurationError.
    """
    return _find(store, job)[1]


def refused(store: Store, job: str) -> tuple[set[int], dict[int, str]]:
    """Return the refused lines that a job may resend to, and the other lines, each with the job that has `taken` it.

    Raises ConfigurationError.
    """
    lines, elsewhere = _find(store, job, State.REFUSED)
    return lines - elsewhere.keys(), {line: elsewhere[line] for line in lines & elsewhere.keys()}


def _find(store: Store, job: str, *states: State, asker: str | None = None) -> tuple[set[int], dict[int, str]]:
    """Return the lines of a job in some states, and the lines that are `taken`.

    ``asker`` is a job that may itself take lines over from this one.
    """
    lines, handed_over = _read(store, job, *states)
    found: dict[int, str] = {}
    for other, rows in handed_over.items():
        if other == asker:
            continue
        if os.path.lexists(store.path(other)):
            unsent, elsewhere = _find(store, other, State.REFUSED, State.EXCLUDED, asker=job)
            free = unsent - elsewhere.keys()
        else:  # a deleted job may have sent to all these lines if it had begun
            free = {line for line, has_begun in rows.items() if not has_begun}
        found |= dict.fromkeys(rows.keys() - free, other)
    return lines, found


def take_back(store: Store, job: str, lines: Collection[int], asker: str | None = None) -> None:
    """Stop other jobs from sending to lines of a job that are not `taken`; the job's own rows remain.

    Called under the lock `Store.starting`. Raises ConfigurationError.
    """
    wanted = {*lines}
    for other, rows in _read(store, job)[1].items():
        theirs = [*(rows.keys() & wanted)]
        if theirs and other != asker and os.path.lexists(store.path(other)):
            take_back(store, other, theirs, job)
            with writing(store.path(other)) as db:
                db.execute(_HAND_OVER, (job, True, json.dumps(theirs)))


def hand_over(store: Store, source: str, job: str, state: State, lines: Collection[int]) -> None:
    """Hand over lines in a state to a new job that does not exist yet.

    Called under the lock `Store.starting`. Raises UsageError if another job sends to one of the lines, and
    ConfigurationError.
    """
    wanted, text = {*lines}, json.dumps([*lines])
    unsent, elsewhere = _find(store, source, state)
    if wanted - unsent or wanted & elsewhere.keys():
        raise UsageError(
            f"Another command has just begun to resend to recipients of job {source}",
            "See: msgctl job list",
            consequence="nothing was sent",
        )
    take_back(store, source, wanted)
    with writing(store.path(source)) as db:
        db.execute(_HAND_OVER, (job, False, text))


def begin(store: Store, job: str, ledger: Ledger) -> None:
    """Record in the source of a resend that the resend has begun. Raises ConfigurationError."""
    source = ledger.spec.resend_of
    if source is not None and not ledger.totals.requests and os.path.lexists(store.path(source)):
        with writing(store.path(source)) as db:
            db.execute("UPDATE handed_over SET has_begun = 1 WHERE job = ?", (job,))


def remove(store: Store, job: str) -> None:
    """Delete a job that is not running. If it is a resend, its unsent recipients can be resent to again.

    Raises ConfigurationError.
    """
    with store.locked(job):
        source, unsent = None, set[int]()
        with suppress(ConfigurationError):  # a damaged ledger can be deleted too
            if (source := facts(store.path(job)).spec.resend_of) is not None:
                never_sent = (State.PENDING, State.REFUSED, State.EXCLUDED)
                lines, elsewhere = _find(store, job, *never_sent)
                unsent = lines - elsewhere.keys()
        store.delete(job)
        if source is not None and os.path.lexists(store.path(source)):
            with writing(store.path(source)) as db:
                db.execute(_RELEASE, (job, json.dumps([*unsent])))


def _read(store: Store, job: str, *states: State) -> tuple[set[int], Mapping[str, dict[int, bool]]]:
    """Return the lines of a job in some states, and the lines that it has handed over.

    The latter are grouped by the other job, each with whether that job has begun.
    """
    handed_over: dict[str, dict[int, bool]] = defaultdict(dict)
    with LEDGER.opened(store.path(job), read_only=True) as db:
        lines = {line for (line,) in db.execute(_WANTED, (json.dumps(states),))}
        for line, other, has_begun in db.execute("SELECT line, job, has_begun FROM handed_over"):
            handed_over[other][line] = bool(has_begun)
    return lines, handed_over
