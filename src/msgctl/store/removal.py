"""Remove jobs, single sends and records older than 90 days, in slices: other processes can write in between."""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgctl.store.database import any_of, chunks
from msgctl.store.schema import ENDED
from msgctl.store.store import KEEP, PAUSE, SLICE, Store


def discard(store: Store, number: int) -> None:
    """Delete a job that was never published."""
    _delete(store, [number], everything=True)


def remove(store: Store, jobs: Sequence[int]) -> int:
    """Remove ended jobs and single sends by their numbers, and return how many were removed.

    They disappear from every view at once. Their rows are then deleted in slices. For 90 days the store keeps names,
    digests, numbers and times. Jobs that are not done or cancelled stay.
    """
    removed = []
    for some in chunks(jobs):
        with store.db.transaction("remove"):
            removed += store.db.rows(
                f"""UPDATE job SET removed = ? WHERE number {any_of(some)} AND removed IS NULL AND owner IS NULL
                AND state {any_of(ENDED)} RETURNING number""",
                (store.now(), *some, *ENDED),
            )
    _delete(store, [number for (number,) in removed])
    return len(removed)


def delete_old_keys(store: Store) -> None:
    """Delete some ``--once`` keys that are older than 90 days."""
    before = store.now() - KEEP
    keys = store.db.rows("SELECT account, key FROM once WHERE time < ? LIMIT ?", (before, SLICE))
    if keys:
        with store.db.transaction("remove"):
            for key in keys:
                store.db.change("DELETE FROM once WHERE account = ? AND key = ? AND time < ?", (*key, before))


def tidy(store: Store) -> None:
    """Delete some records that are older than 90 days, and imports whose process has died.

    Continue removals whose process was killed. This can take seconds.
    """
    delete_old_keys(store)
    db, before = store.db, store.now() - KEEP
    _delete(store, [n for (n,) in db.rows("SELECT number FROM job WHERE removed IS NOT NULL AND is_cleared = 0")])
    old = db.rows(
        "SELECT number FROM job WHERE removed < ? AND is_cleared = 1 ORDER BY removed LIMIT ?", (before, SLICE)
    )
    imports = db.rows("SELECT number, owner FROM job WHERE owner IS NOT NULL AND state = 'importing'")
    alive = store.owned({owner for _, owner in imports})
    old += [(number,) for number, owner in imports if owner not in alive]
    _delete(store, [number for (number,) in old], everything=True)


def _delete(store: Store, jobs: Sequence[int], *, everything: bool = False) -> None:
    """Delete the rows of jobs in slices; without ``everything``, keep the data that prevents repeats."""
    for some in chunks(jobs):
        _in_slices(store, "recipient", "line", some, "DELETE FROM recipient")
        _in_slices(store, "response", "request", some, "DELETE FROM response")
        if everything:
            _in_slices(store, "result", "line", some, "DELETE FROM result")
            _in_slices(store, "content", "number", some, "DELETE FROM content")
            change = "DELETE FROM job"
        else:
            cleared = "id = NULL, status = NULL, credits = NULL, state = NULL, error = NULL"
            _in_slices(store, "result", "line", some, f"UPDATE result SET {cleared}")
            _in_slices(store, "content", "number", some, "UPDATE content SET parameters = ''")
            change = "UPDATE job SET settings = '{}', ending = '', is_cleared = 1"
        with store.db.transaction("remove"):
            store.db.change(f"{change} WHERE number {any_of(some)}", some)
    if jobs:
        store.db.shrink()


def _in_slices(store: Store, table: str, key: str, jobs: Sequence[int], change: str) -> None:
    """Change all rows of jobs in a table, in several transactions: other processes can write in between."""
    after = (0, 0)
    where = f"job {any_of(jobs)} AND (job, {key}) > (?, ?)"
    while True:
        query = f"SELECT job, {key} FROM {table} WHERE {where} ORDER BY job, {key} LIMIT {SLICE}"
        rows = store.db.rows(query, (*jobs, *after))
        if not rows:
            return
        last_row = rows[-1]
        with store.db.transaction("remove"):
            store.db.change(f"{change} WHERE {where} AND (job, {key}) <= (?, ?)", (*jobs, *after, *last_row))
        if len(rows) < SLICE:
            return
        after = last_row
        time.sleep(PAUSE)
