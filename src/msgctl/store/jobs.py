"""Jobs: create, publish, find and list them. A single send is a job without an ID."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import NamedTuple

from msgctl.errors import NOTHING_SENT, ConditionError, Hint, MsgctlError, StoreNotReachedError, UsageError
from msgctl.store.database import Row, any_of, plain
from msgctl.store.store import Store
from msgctl.text import clean
from msgctl.values import quote

ONLY_RESEND = 2
"""The value of ``is_resending`` if the job was not scheduled before: the job is paused after the resend. If a person
has resumed it, the value is 1, and it then sends to the other recipients, too.
"""


@dataclass(slots=True)
class Job:
    """A job in the store. Times are milliseconds since 1970, credits and prices millionths.

    The counts from ``invalid`` to ``unknown`` contain each recipient once, by the last attempt. ``is_resending`` is 1
    or `ONLY_RESEND` until a resend ends. ``is_running`` is true if its owner is alive. ``stopping`` is the state that
    another process asked for. If the owner has died, the job is already in that state.
    """

    number: int
    id: str
    account: str
    profile: str
    command: str
    name: str | None
    digest: bytes | None
    settings: str
    state: str
    stopping: str | None
    due: int | None
    ending: str
    owner: int | None
    machine: str
    epoch: int
    attempt: int
    is_resending: int
    request: int
    requests: int
    invalid: int
    duplicate: int
    excluded: int
    pending: int
    sending: int
    accepted: int
    refused: int
    unknown: int
    credits: int
    highest_price: int
    created: int
    begun: int | None
    updated: int
    removed: int | None
    is_running: bool = False

    def settle(self, *, is_running: bool) -> None:
        """Set whether the owner is alive; if it died, set the state that it was asked to end in."""
        self.is_running = is_running
        if self.stopping and not is_running:
            self.state = self.stopping

    @property
    def shown_state(self) -> str:
        """The state for people: ``running``, or ``paused`` for a job whose owner has died."""
        if self.is_running:
            return "running"
        return "paused" if self.state == "active" else self.state

    @property
    def recipients(self) -> int:
        """The number of rows in its file."""
        return self.invalid + self.duplicate + self.excluded + self.sendable

    @property
    def sendable(self) -> int:
        """The number of recipients that were not left out."""
        return self.pending + self.sending + self.accepted + self.refused + self.unknown

    @property
    def reference(self) -> str:
        """The name of the job for people, or else its ID, without control characters."""
        return clean(self.name or self.id)

    @property
    def typed(self) -> str:
        """Its name, quoted for a command line; or its ID, without a name or for a name that looks like an option."""
        return self.id if self.name is None or self.name.startswith("-") else shlex.quote(self.name)


JOB_COLUMNS = ", ".join(field.name for field in fields(Job) if field.name != "is_running")
_VISIBLE = "id IS NOT NULL AND state <> 'importing' AND removed IS NULL"


def _job(store: Store, row: Row) -> Job:
    """Return the job in a row of `JOB_COLUMNS`, with whether its owner is alive."""
    job = Job(*row)
    job.settle(is_running=store.is_owned(job.owner))
    return job


def create(store: Store, account: str, profile: str, command: str, settings: str = "{}") -> int:
    """Create an invisible job for an import, and return its number. ``settings`` is JSON.

    Then add rows, and `publish` it or `msgctl.store.removal.discard` it.
    """
    with store.db.transaction(account):
        now = store.now()
        while True:
            day = datetime.fromtimestamp(now / 1000).astimezone()
            id_ = f"{day:%Y%m%d}-{secrets.token_hex(3)}"
            if store.db.row("SELECT 1 FROM job WHERE id = ?", (id_,)) is None:
                break
        return int(
            store.db.value(
                """INSERT INTO job (id, account, profile, command, is_contact, settings, state, owner, machine,
                created, updated) VALUES (?, ?, ?, ?, 1, ?, 'importing', ?, ?, ?, ?) RETURNING number""",
                (id_, account, profile, command, settings, store.owner, store.machine, now, now),
            )
        )


def publish(
    store: Store,
    number: int,
    *,
    state: str,
    digest: bytes,
    name: str | None = None,
    due: int | None = None,
    settings: str | None = None,
) -> Job:
    """Make an imported job visible as ``active``, ``paused`` or ``scheduled``, and return it.

    If its account already has a job with the name, return that one; the import must be discarded. Raises UsageError
    (``key_reused``) if it has another digest, and ConditionError (``job_removed``).
    """
    db = store.db
    account = db.value("SELECT account FROM job WHERE number = ?", (number,))
    with db.transaction(str(account)):
        if name is not None and (earlier := named(store, account, name, digest)):
            return earlier
        query = "SELECT coalesce(outcome, 'pending'), count(*) FROM recipient WHERE job = ? GROUP BY 1"
        counts: dict[str, int] = dict(db.rows(query, (number,)))
        changed = db.change(
            """UPDATE job SET state = ?, digest = ?, name = ?, due = ?, settings = coalesce(?, settings),
            pending = ?, invalid = ?, duplicate = ?, excluded = ?, owner = NULL, updated = ?
            WHERE number = ? AND state = 'importing' AND removed IS NULL""",
            (
                *(state, digest, name, due, settings),
                *(counts.get(outcome, 0) for outcome in ("pending", "invalid", "duplicate", "excluded")),
                *(store.now(), number),
            ),
        )
        if changed != 1:
            raise import_lost(store)
    return get(store, number)


def import_lost(store: Store) -> StoreNotReachedError:
    """Return the error for an import that another process has deleted, because it found no lock of this process."""
    return StoreNotReachedError(
        f"The store {store.db.place} lost this process during the import", "Run the command again."
    )


def named(store: Store, account: str, name: str, digest: bytes | None = None) -> Job | None:
    """Return the job with a name in an account, if there is one.

    Raises ConditionError (``job_removed``) if it was removed, and UsageError (``key_reused``) for another digest.
    """
    row = store.db.row(
        f"SELECT {JOB_COLUMNS} FROM job WHERE account = ? AND name = ? AND state <> 'importing'",
        (account, name),
    )
    if row is None:
        return None
    job = _job(store, row)
    if digest is not None and job.digest != digest:
        hint = choose = "Choose another --name for this job."
        if (job.accepted or job.unknown) and job.removed is None:
            leave_out = "To leave out the people who may have its message, add --exclude sent.csv, after:"
            hint = Hint(f"{choose} {leave_out} ", f"job report {job.typed} --only accepted,unknown --save sent.csv")
        what = f"The name {quote(name)} belongs to another job: its message or its rows are different"
        raise UsageError(what, hint, reason="key_reused")
    if job.removed is not None:
        raise ConditionError(
            f"The job {quote(name)} was removed less than 90 days ago",
            "To send to these recipients, choose another name.",
            consequence=NOTHING_SENT,
            reason="job_removed",
        )
    return job


def get(store: Store, number: int) -> Job:
    """Return the current row of a job."""
    row = store.db.row(f"SELECT {JOB_COLUMNS} FROM job WHERE number = ?", (number,))
    if row is None:
        raise store.db.damaged(f"job {number} is missing")
    return _job(store, row)


def find(store: Store, text: str, account: str | None = None) -> Job:
    """Return the job with a name, an ID, or the unique beginning of an ID. The account's names come first.

    Raises UsageError if no job, or several jobs match.
    """
    query = f"SELECT {JOB_COLUMNS} FROM job WHERE {_VISIBLE} AND"
    for condition, values in (
        ("name = ? AND account = ?", (text, account or "")),
        ("id = ?", (text,)),
        ("name = ?", (text,)),
        ("substr(id, 1, length(?)) = ? ORDER BY number LIMIT 6", (text, text)),  # LIKE ignores the case in SQLite
    ):
        jobs = [_job(store, row) for row in store.db.rows(f"{query} {condition}", (*map(plain, values),))]
        if len(jobs) > 1:
            ids = ", ".join(job.id for job in jobs[:5])
            raise UsageError(f"{quote(text)} is the name or the beginning of several jobs: {ids}", "Use the whole ID.")
        if jobs and text:
            return jobs[0]
    raise UsageError(f"There is no job {quote(text)}", Hint("List the jobs: ", "job list"))


def listed(
    store: Store, *, account: str | None = None, states: Sequence[str] = (), due_before: int | None = None
) -> list[Job]:
    """Return jobs in the order they were created, with one query; ``states`` are the stored states."""
    conditions: list[str] = [_VISIBLE]
    values: list[object] = []
    if account is not None:
        conditions.append("account = ?")
        values.append(account)
    if states:
        conditions.append(f"state {any_of(states)}")
        values += states
    if due_before is not None:
        conditions.append("due <= ?")
        values.append(due_before)
    rows = store.db.rows(f"SELECT {JOB_COLUMNS} FROM job WHERE {' AND '.join(conditions)} ORDER BY number", values)
    jobs = [Job(*row) for row in rows]
    alive = store.db.alive({job.owner for job in jobs if job.owner is not None})
    for job in jobs:
        job.settle(is_running=job.owner in alive)
    return jobs


def last(store: Store) -> Job | None:
    """Return the newest job that has begun on this machine."""
    row = store.db.row(
        f"""SELECT {JOB_COLUMNS} FROM job WHERE {_VISIBLE} AND begun IS NOT NULL AND machine = ?
        ORDER BY number DESC LIMIT 1""",
        (store.machine,),
    )
    return None if row is None else _job(store, row)


class DueFailure(NamedTuple):
    """The error of the last `job run-due` that could not send a job; ``time`` is in milliseconds since 1970.

    ``job`` is the number of the job; 0 if an earlier version stored the error.
    """

    time: int
    error: str
    hint: str | None
    job: int = 0


def note_failure(store: Store, job: Job, error: MsgctlError) -> None:
    """Store the error of `job run-due` for a job, so that `doctor` reports it: cron's mail may be lost."""
    failure = json.dumps(DueFailure(store.now(), error.message, error.hint, job.number))
    with store.db.transaction("run-due"):
        store.db.insert(
            "INSERT INTO meta (name, value)",
            [("run-due", failure)],
            ending="ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )


def failure_of_run_due(store: Store) -> DueFailure | None:
    """Return the last failure of `job run-due`, if there was one."""
    value = store.db.value("SELECT value FROM meta WHERE name = 'run-due'")
    return None if value is None else DueFailure(*json.loads(value))
