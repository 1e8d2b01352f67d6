"""Remove jobs, single sends and records older than 90 days, in slices: other processes can write in between."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from msgctl.store.database import any_of, chunks
from msgctl.store.schema import ENDED
from msgctl.store.store import KEEP, PAUSE, SLICE, Store


def discard(store: Store, number: int) -> None:
    """Delete a job that was never published. One that was published stays."""
    rows = store.db.rows("SELECT number FROM job WHERE number = ? AND state = 'importing'", (number,))
    _delete(store, [n for (n,) in rows], everything=True)


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
    owners = {owner for (owner,) in db.rows("SELECT owner FROM job WHERE owner IS NOT NULL AND state = 'importing'")}
    if dead := [*owners - store.db.alive(owners)]:
        # A process that lost its lock may still import; after this, it cannot publish the job.
        old += db.rows(
            f"UPDATE job SET removed = ? WHERE state = 'importing' AND owner {any_of(dead)} RETURNING number",
            (store.now(), *dead),
        )
    _delete(store, [number for (number,) in old], everything=True)


def _delete(store: Store, jobs: Sequence[int], *, everything: bool = False) -> None:
    """Delete the rows of jobs in slices; without ``everything``, keep the data that prevents repeats."""
    cleared = "id = NULL, status = NULL, credits = NULL, state = NULL, error = NULL"
    changes = {
        ("recipient", "line"): "DELETE FROM recipient",
        ("usage", "time"): "DELETE FROM usage",
        ("result", "line"): f"UPDATE result SET {cleared}",
        ("content", "number"): "UPDATE content SET parameters = ''",
    }
    end = "UPDATE job SET settings = '{}', ending = '', is_cleared = 1"
    if everything:
        changes = {(table, key): f"DELETE FROM {table}" for table, key in changes}
        end = "DELETE FROM job"
    for some in chunks(jobs):
        for group, is_large in _groups(store, some):
            if is_large:
                for (table, key), change in changes.items():
                    _in_slices(store, table, key, group[0], change)
            with store.db.transaction("remove"):
                store.db.change(f"{end} WHERE number {any_of(group)}", group)  # an import that continues fails then
                if everything or not is_large:
                    for change in changes.values():
                        store.db.change(f"{change} WHERE job {any_of(group)}", group)
            time.sleep(PAUSE)
    if jobs:
        store.db.shrink()


def _groups(store: Store, jobs: Sequence[int]) -> Iterator[tuple[list[int], bool]]:
    """Yield jobs to delete together, with at most 1,000 recipients, and False; or one larger job, and True."""
    sizes = store.db.rows(
        f"""SELECT number, CASE WHEN state = 'importing' THEN {SLICE + 1} ELSE invalid + duplicate + excluded + pending
        + sending + accepted + refused + unknown END FROM job WHERE number {any_of(jobs)} ORDER BY number""",
        jobs,
    )
    group: list[int] = []
    total = 0
    for number, size in sizes:
        if group and total + size > SLICE:
            yield group, total > SLICE
            group, total = [], 0
        group.append(number)
        total += size
    if group:
        yield group, total > SLICE


def _in_slices(store: Store, table: str, key: str, job: int, change: str) -> None:
    """Change all rows of a job in a table, in several transactions: other processes can write in between.

    A condition on several jobs would read all earlier rows again for each slice.
    """
    after = -1
    while True:
        query = f"SELECT {key} FROM {table} WHERE job = ? AND {key} > ? ORDER BY {key} LIMIT {SLICE}"
        keys = store.db.rows(query, (job, after))
        if not keys:
            return
        (last_key,) = keys[-1]
        with store.db.transaction("remove"):
            store.db.change(f"{change} WHERE job = ? AND {key} > ? AND {key} <= ?", (job, after, last_key))
        if len(keys) < SLICE:
            return
        after = last_key
        time.sleep(PAUSE)
