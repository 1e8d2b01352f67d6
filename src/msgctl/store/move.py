"""Move everything that a store contains into an empty store of either kind.

Each step is a commit, and the same move continues after a crash at any moment:

1. The new store is marked as arriving. It must be empty.
2. The old store is marked as moving. No process may run a job or send under a key. From now on, no transaction begins
   in either store (see `Database.refuse_moved`). So nothing is sent, and no opt-out is lost.
3. The tables are copied in order, in pages. The mark of the new store has the last row that has arrived.
4. The old store is marked as moved, permanently.
5. The new store is ready: its mark is deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from msgctl.config.urls import is_store_url
from msgctl.errors import ConditionError, UsageError
from msgctl.store.database import MOVE, Database, Mark, any_of
from msgctl.store.schema import ENDED
from msgctl.store.store import Store
from msgctl.text import clean

PRIMARY_KEYS = {
    "job": ("number",),
    "content": ("job", "number"),
    "recipient": ("job", "line"),
    "result": ("job", "line", "attempt"),
    "usage": ("job", "time", "country"),
    "once": ("account", "key"),
    "optout": ("phone", "channel"),
}
"""The tables in the order in which they are copied, with their primary keys. Each store keeps its own `meta`."""
PAGE = 5000
"""Maximum rows copied in one transaction."""


class Contents(NamedTuple):
    """How many opt-outs, ``--once`` keys, jobs and messages a store contains: they protect people."""

    optouts: int
    keys: int
    jobs: int
    messages: int


def mark_of(db: Database) -> Mark | None:
    """Return the mark of a store; None if no move has begun."""
    text = db.value(MOVE)
    return None if text is None else Mark.load(text)


def contents(store: Store, *, unfinished: bool = False) -> Contents:
    """Return the numbers of a store's records; ``unfinished`` counts only jobs that are not done or cancelled."""
    ended = ENDED if unfinished else ("importing",)
    condition = f"id IS NOT NULL AND removed IS NULL AND state <> 'importing' AND NOT state {any_of(ended)}"
    return Contents(
        optouts=int(store.db.value("SELECT count(*) FROM optout")),
        keys=int(store.db.value("SELECT count(*) FROM once")),
        jobs=int(store.db.value(f"SELECT count(*) FROM job WHERE {condition}", ended)),
        messages=int(store.db.value("SELECT count(*) FROM result")),
    )


def move(old: Store, new: Store, place: str, begins: Callable[[], None]) -> None:
    """Move everything from one store into another, or continue an earlier move. ``place`` is the new store in messages.

    Open both with ``is_moving``. ``begins`` is called after the checks, when the old store is closed. Raises UsageError
    if the new store is not empty, or if a job is running; ConfigurationError if the old store is incomplete or was
    moved elsewhere; ConditionError (``running_elsewhere``) if another process moves it; and the errors of the stores.
    """
    old_id, new_id = id_of(old.db), id_of(new.db)
    if old_id == new_id:
        raise UsageError(f"The store {old.db.place} is the store in use", "Give --to another store.")
    closing, arriving = mark_of(old.db), mark_of(new.db)
    if closing is not None and closing.state == "arriving":
        old.db.refuse_moved()
    if closing is not None and closing.state == "moved":
        if closing.store != new_id:
            old.db.refuse_moved()
        if arriving is None:
            return
    elif arriving is None:
        _check_empty(new.db)
    if arriving is not None and (arriving.state, arriving.store) != ("arriving", old_id):
        raise _not_empty(new.db, arriving)
    machine = ""
    if not is_store_url(place):
        machine = new.machine
    mark = _take(new, arriving, Mark("arriving", place, machine, old_id, new.owner))
    moving = Mark("moving", place, machine, new_id)
    if closing is None or closing.state == "moving":
        try:
            _close(old, moving)
        except UsageError:  # nothing has arrived yet
            new.db.change("DELETE FROM meta WHERE name = 'move' AND value = ?", (mark.dump(),))
            raise
        begins()
        mark = _copy(old.db, new.db, mark)
        _check_counts(old.db, new.db)
        _change_mark(old.db, moving, replace(moving, state="moved"))
    new.db.continue_numbers()
    _change_mark(new.db, mark, None)


def id_of(db: Database) -> str:
    """Return the ID of a store, which is the same whatever user, password or path opened it."""
    return str(db.value("SELECT value FROM meta WHERE name = 'id'"))


def is_empty(db: Database) -> bool:
    """Return whether a store has no records."""
    return not any(db.row(f"SELECT 1 FROM {table} LIMIT 1") for table in PRIMARY_KEYS)


def _check_empty(db: Database) -> None:
    if not is_empty(db):
        raise _not_empty(db)


def _not_empty(db: Database, mark: Mark | None = None) -> UsageError:
    if mark is not None and mark.state == "moved":
        return UsageError(
            f"The store {db.place} is not empty: it is a closed store, which was moved to {mark.place_and_machine}",
            f"If you no longer need it, delete it. Then repeat the move.\n{db.delete_command}",
        )
    return UsageError(f"The store {db.place} is not empty", "Choose a path or a database that has no store yet.")


def _check_idle(store: Store) -> None:
    """Check that no process runs a job, imports one, or sends under a key. Raises UsageError."""
    query = """SELECT owner, coalesce(name, id), machine FROM job WHERE owner IS NOT NULL
        UNION ALL SELECT owner, NULL, machine FROM once WHERE owner IS NOT NULL"""
    owners = {owner: (name, machine) for owner, name, machine in store.db.rows(query)}
    for owner in store.db.alive(owners):
        name, machine = owners[owner]
        what = f"The job {clean(name)} is running" if name else "A message is being sent"
        raise UsageError(f"{what} on {clean(machine)}", "Wait for it, or press Ctrl-C in it. Then move the store.")


def _take(new: Store, before: Mark | None, mark: Mark) -> Mark:
    """Mark the new store as arriving, or continue an interrupted move. Raises ConditionError while it is running."""
    with new.db.transaction("move"):
        new.db.exclude_others()
        if before is None:
            _check_empty(new.db)
            new.db.insert("INSERT INTO meta (name, value)", [("move", mark.dump())])
            return mark
        if new.is_owned(before.owner):
            raise ConditionError("Another process is moving this store", "Wait for it.", reason="running_elsewhere")
        taken = replace(mark, table=before.table, after=before.after)
        _set_mark(new.db, before, taken)
    return taken


def _close(old: Store, moving: Mark) -> None:
    """Mark the old store as moving, after all open transactions have ended. Raises UsageError if a job is running."""
    with old.db.transaction("move"):
        old.db.exclude_others()
        _check_idle(old)
        before = mark_of(old.db)
        if before is not None and before.state == "moved":  # another process was faster
            old.db.refuse_moved()
        old.db.insert(
            "INSERT INTO meta (name, value)",
            [("move", moving.dump())],
            ending="ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )


def _change_mark(db: Database, before: Mark, after: Mark | None) -> None:
    with db.transaction("move"):
        _set_mark(db, before, after)


def _set_mark(db: Database, before: Mark, after: Mark | None) -> None:
    """Replace or delete a mark. Raises ConditionError if another process has taken the move over."""
    if after is None:
        changed = db.change("DELETE FROM meta WHERE name = 'move' AND value = ?", (before.dump(),))
    else:
        values = (after.dump(), before.dump())
        changed = db.change("UPDATE meta SET value = ? WHERE name = 'move' AND value = ?", values)
    if changed != 1:
        raise ConditionError("Another process has taken the move over", "Wait for it.", reason="running_elsewhere")


def _copy(old: Database, new: Database, mark: Mark) -> Mark:
    """Copy the rows that have not arrived, and return the last mark of the new store."""
    tables = [*PRIMARY_KEYS]
    if mark.table:
        tables = tables[tables.index(mark.table) :]
    for table in tables:
        key, columns = ", ".join(PRIMARY_KEYS[table]), old.columns(table)
        indexes = [columns.index(column) for column in PRIMARY_KEYS[table]]
        after = mark.after if mark.table == table else ()
        while True:
            condition = f"WHERE ({key}) > ({', '.join('?' * len(after))})" if after else ""
            rows = old.rows(f"SELECT {', '.join(columns)} FROM {table} {condition} ORDER BY {key} LIMIT {PAGE}", after)
            if not rows:
                break
            after = [rows[-1][index] for index in indexes]
            arrived = replace(mark, table=table, after=after)
            with new.transaction("move"):
                _set_mark(new, mark, arrived)
                new.fill(table, columns, rows)
            mark = arrived
    return mark


def _check_counts(old: Database, new: Database) -> None:
    for table in PRIMARY_KEYS:
        count = f"SELECT count(*) FROM {table}"
        if old.value(count) != new.value(count):
            raise new.damaged(f"the table {table} has not arrived completely")
