"""Single sends and ``--once`` keys. A single send is a job with one request.

One transaction stores the intent and takes the key; another one stores the outcome under the key. A key that is still
``sending`` although its owner has died has an unknown outcome, because its request may have been sent.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgctl.errors import ConditionError, StoreNotReachedError, UsageError
from msgctl.operations import CHANNELS
from msgctl.outcomes.judge import Outcome
from msgctl.store import people, results
from msgctl.store.database import plain
from msgctl.store.results import Intent, RequestOutcome
from msgctl.store.store import Store, boot_time
from msgctl.text import clean
from msgctl.values import quote

POLL = 0.05
"""Seconds between two checks of a key that another process uses."""


@dataclass(frozen=True, slots=True)
class Single:
    """A single send: its account, profile and command, its message (JSON) and the phones in its request.

    ``is_contact`` means that it counts for --at-most. ``digest`` is the digest of the message; None if it does not
    count for repeats. If ``channel`` is given, people who have opted out of it are refused.
    """

    account: str
    profile: str
    command: str
    parameters: str
    phones: Sequence[str | None]
    is_contact: bool
    digest: bytes | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The result under a key: the exit code, the response, and message and hint of an error."""

    exit_code: int
    http_status: int | None = None
    body: bytes | None = None
    message: str = ""
    hint: str = ""


DIED = Result(
    5,
    message="An earlier msgctl ended before it had the response; the message may have been sent",
    hint="Look it up in the account. If it was not sent, send it with --resend-unknown.",
)


class Key(NamedTuple):
    """A ``--once`` key with the digest of everything that is sent; ``max_wait`` is in seconds."""

    key: str
    digest: bytes
    max_wait: float
    resend_unknown: bool = False


class Begun(NamedTuple):
    """A single send whose request may be made now. ``before`` is an earlier unknown result under the key."""

    single: Single
    job: int
    intent: Intent
    key: Key | None
    before: Result | None


class Earlier(NamedTuple):
    """An earlier send under a key: its result, or the machine of the live process that is sending now."""

    result: Result | None
    machine: str | None = None


def _earlier(store: Store, account: str, key: Key) -> Earlier | None:
    row = store.db.row(
        """SELECT digest, state, owner, machine, exit_code, http_status, body, message, hint FROM once
        WHERE account = ? AND key = ?""",
        (account, plain(key.key)),
    )
    if row is None:
        return None
    digest, state, owner, machine, *values = row
    if digest != key.digest:
        raise UsageError(
            f"--once {quote(key.key)} was used for another message or other recipients",
            "Choose another key for this message.",
            consequence="this message was not sent",
            reason="key_reused",
        )
    if state == "done":
        return Earlier(Result(*values))
    if store.is_owned(owner):
        return Earlier(None, machine)
    return Earlier(DIED)


def _repeated(earlier: Earlier | None, key: Key) -> Result | None:
    """Return the result of an earlier send that is not sent again."""
    if earlier is None or earlier.result is None:
        return None
    return None if earlier.result.exit_code == 5 and key.resend_unknown else earlier.result


def find(store: Store, account: str, key: Key) -> Result | None:
    """Return the result of an earlier send under a key; None if it is to be resent, or if another process sends now.

    Raises UsageError (``key_reused``) if the key was used for something else.
    """
    with store.db.transaction(account):  # the owner cannot store its result and end before its lock is checked
        return _repeated(_earlier(store, account, key), key)


def begin(store: Store, single: Single, key: Key | None = None) -> Begun | Result:
    """Store the intent of a single send and take its key; or return the result of an earlier send under the key.

    Wait while another process sends under the key. Raises ConditionError (``running_elsewhere``) if that takes longer
    than ``max_wait``, UsageError (``key_reused``, ``opted_out``), StoreNotReachedError and ConfigurationError. After an
    error, do not send.
    """
    owner = store.owner  # its lock is held before other processes can see it
    store.db.limit_idle(True)
    if key is None:
        with store.db.transaction(single.account):
            return _begin(store, single, owner)
    deadline = time.monotonic() + key.max_wait
    while True:
        began = boot_time()
        with store.db.transaction(single.account):
            earlier = _earlier(store, single.account, key)
            result = _repeated(earlier, key)
            if result is not None:
                return result
            machine = earlier.machine if earlier else None
            if machine is None:
                begun = _begin(store, single, owner, key, earlier.result if earlier else None)
        if machine is None:
            _check_age(store, begun, began + key.max_wait)
            return begun
        if time.monotonic() > deadline:
            raise ConditionError(
                f"Another process on {clean(machine)} is sending under this key",
                "Run the same command again to get its result.",
                consequence="nothing was sent",
                reason="running_elsewhere",
                nothing_sent=True,
            )
        time.sleep(POLL)


def _begin(store: Store, single: Single, owner: int, key: Key | None = None, before: Result | None = None) -> Begun:
    """Store the intent, and take the key. Called in a transaction."""
    _refuse_optouts(store, single)
    number, intent = _store(store, single, owner)
    if key:
        store.db.change(
            """INSERT INTO once (account, key, digest, state, job, owner, machine, time)
            VALUES (?, ?, ?, 'sending', ?, ?, ?, ?) ON CONFLICT (account, key) DO UPDATE SET state = 'sending',
            job = excluded.job, owner = excluded.owner, machine = excluded.machine, time = excluded.time""",
            (single.account, plain(key.key), key.digest, number, owner, store.machine, store.now()),
        )
    return Begun(single, number, intent, key, before)


def _check_age(store: Store, begun: Begun, latest: float) -> None:
    """Release the key if its transaction took too long: another machine may have taken the key over meanwhile."""
    if boot_time() > latest:
        end(store, begun, [], None)
        raise StoreNotReachedError(f"The store {store.db.place} was not reached in time", "Try again.")


def _refuse_optouts(store: Store, single: Single) -> None:
    if single.channel is None:
        return
    refused = people.opted_out(store, [phone for phone in single.phones if phone], single.channel)
    found = [phone for phone in single.phones if phone in refused]
    if found:
        who = f"{found[0]} has" if len(found) == 1 else f"{', '.join(map(str, found))} have"
        fix = f"msgctl optout remove {' '.join(map(str, found))} --channel {single.channel}"
        raise UsageError(
            f"{who} opted out of {CHANNELS[single.channel]}",
            f"To send anyway, add --ignore-optout, or run: {fix}",
            reason="opted_out",
        )


def _store(store: Store, single: Single, owner: int) -> tuple[int, Intent]:
    db, now, size = store.db, store.now(), len(single.phones)
    phones = [plain(phone) for phone in single.phones]
    number = int(
        db.value(
            """INSERT INTO job (account, profile, command, is_contact, settings, state, owner, machine, epoch, request,
            requests, sending, created, begun, updated)
            VALUES (?, ?, ?, ?, '{}', 'active', ?, ?, 1, 1, 1, ?, ?, ?, ?) RETURNING number""",
            (
                *(single.account, single.profile, single.command, int(single.is_contact)),
                *(owner, store.machine, size, now, now, now),
            ),
        )
    )
    db.change(
        "INSERT INTO content (job, number, parameters, digest, cost) VALUES (?, 1, ?, ?, 0)",
        (number, plain(single.parameters), single.digest),
    )
    intent = Intent(1, 1, 1, single.parameters, 0, range(1, size + 1), phones, now, 0)
    results.intend(db, number, [intent])
    return number, intent


def end(
    store: Store,
    begun: Begun,
    rows: Sequence[Outcome],
    result: Result | None,
    *,
    body: str | None = None,
) -> None:
    """Store the outcome of each phone, and the result under the key.

    Without a ``result``, the request was refused or not carried out: the key is free again, unless it had an earlier
    unknown result. Without ``rows``, the request was not carried out, and the send disappears. ``body`` is the response
    if an outcome is in doubt; it is not stored for a verification message, because it may contain the code.
    """
    db, number, account = store.db, begun.job, begun.single.account
    if not begun.single.is_contact:
        body = None
    with db.transaction(account):
        if rows:
            outcome = RequestOutcome(begun.intent, rows, body)
            if results.is_sending(db, number, begun.intent):
                results.add_to_counts(db, number, results.record(db, number, [outcome]))
            else:  # another process saw no lock of this one, and marked it as unknown
                results.add_late(db, number, [outcome])
            db.change(
                "UPDATE job SET state = 'done', owner = NULL, updated = ? WHERE number = ?", (store.now(), number)
            )
        else:
            for table, column in (("result", "job"), ("content", "job"), ("job", "number")):
                db.change(f"DELETE FROM {table} WHERE {column} = ?", (number,))
        if begun.key:
            result = result or begun.before
            if result is None:
                db.change("DELETE FROM once WHERE account = ? AND job = ?", (account, number))
            else:
                values = (result.exit_code, result.http_status, result.body, plain(result.message), plain(result.hint))
                db.change(
                    """UPDATE once SET state = 'done', owner = NULL, exit_code = ?, http_status = ?, body = ?,
                    message = ?, hint = ? WHERE account = ? AND job = ?""",
                    (*values, account, number),
                )
        db.limit_idle(False)  # --wait may be silent for longer


def settle_dead(store: Store, account: str) -> None:
    """Mark the requests of single sends whose process has died as unknown."""
    rows = store.db.rows(
        "SELECT number, owner FROM job WHERE account = ? AND id IS NULL AND owner IS NOT NULL", (account,)
    )
    alive = store.owned({owner for _, owner in rows})
    for number, owner in rows:
        if owner not in alive:
            with store.db.transaction(account):
                results.lose(store.db, number)
                store.db.change("UPDATE job SET state = 'done', owner = NULL WHERE number = ?", (number,))
