"""Single sends and ``--once`` keys. A single send is a job with one request.

One transaction stores the intent and takes the key; another one stores the outcome under the key. Each is stored
completely or not at all. After an interruption at any instruction, `SendRecord.end` checks which is stored. If the
owner of a ``sending`` key has died, the outcome is unknown, because the request may have been sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgctl.errors import ConditionError, Hint, StoreNotReachedError, UsageError
from msgctl.operations import CHANNELS
from msgctl.outcomes.outcome import Outcome
from msgctl.store import people, results
from msgctl.store.database import plain
from msgctl.store.results import INTENT_LIFE, Intent, RequestOutcome
from msgctl.store.store import Store, boot_time
from msgctl.text import clean
from msgctl.values import quote

POLL = 0.05
"""Seconds between two checks of a key that another process uses."""
RESULT = "exit_code, http_status, body, message, hint"
"""The columns of the result that a key has."""


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

    def intent(self, time: int) -> Intent:
        """Return the intent of its only request."""
        phones = [plain(phone) for phone in self.phones]
        return Intent(1, 1, 1, self.parameters, 0, range(1, len(phones) + 1), phones, time, 0)


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The result under a key: the exit code, the response, and message and hint of an error."""

    exit_code: int
    http_status: int | None = None
    body: bytes | None = None
    message: str = ""
    hint: str = ""


DIED = StoredResult(
    5,
    message="An earlier msgctl ended before it had the response; the message may have been sent",
    hint="Look it up in the account.",
)


class Key(NamedTuple):
    """A ``--once`` key with the digest of everything that is sent; ``max_wait`` is in seconds.

    ``is_final`` returns whether an unknown result must not be resent.
    """

    key: str
    digest: bytes
    max_wait: float
    resend_unknown: bool = False
    is_final: Callable[[StoredResult], bool] = lambda _: False


class Earlier(NamedTuple):
    """The last send under a key: its result, or a live process on a ``machine`` that is sending now, or neither."""

    result: StoredResult | None = None
    is_running: bool = False
    machine: str | None = None

    def replay(self, key: Key) -> StoredResult | None:
        """Return the result to print instead of a send; None if the message is sent."""
        result = self.result
        if result is None or not key.resend_unknown or result.exit_code != 5 or key.is_final(result):
            return result
        return None


def _earlier(store: Store, account: str, key: Key) -> Earlier:
    row = store.db.row(
        f"SELECT digest, state, owner, machine, {RESULT} FROM once WHERE account = ? AND key = ?",
        (account, plain(key.key)),
    )
    if row is None:
        return Earlier()
    digest, state, owner, machine, *values = row
    if digest != key.digest:
        raise UsageError(
            f"--once {quote(key.key)} was used for another message or other recipients",
            "Choose another key for this message.",
            consequence="this message was not sent",
            reason="key_reused",
        )
    if state == "done":
        return Earlier(StoredResult(*values))
    if store.is_owned(owner):
        return Earlier(is_running=True, machine=machine)
    return Earlier(DIED)


class SendRecord:
    """The record of one single send in the store: `begin` before its request, `may_send` during it, and `end` after it.

    ``key`` is its ``--once`` key, if it has one.
    """

    def __init__(self, store: Store, single: Single, key: Key | None = None) -> None:
        self.store = store
        self.key = key
        self._single = single
        self._number: int | None = None
        self._checked = 0.0
        """The `boot_time` at which the key belonged to this send."""

    def earlier(self) -> StoredResult | None:
        """Return the result of an earlier send under the key; None if it is resent, or if another process sends now.

        Raises UsageError (``key_reused``) if the key was used for something else.
        """
        store, account = self.store, self._single.account
        if self.key is None:
            return None
        with store.db.transaction(account):  # the owner cannot store its result and end before its lock is checked
            return _earlier(store, account, self.key).replay(self.key)

    def begin(self) -> StoredResult | None:
        """Store the intent and take the key; or return the result of an earlier send under the key.

        Wait while another process sends under the key. Raises ConditionError (``running_elsewhere``) if that takes
        longer than ``max_wait``, UsageError (``key_reused``, ``opted_out``), StoreNotReachedError and
        ConfigurationError. After an error, do not send. Otherwise, send only if `may_send` allows it.
        """
        store, single, key = self.store, self._single, self.key
        store.owner  # noqa: B018 (its lock is held before other processes can see it)
        if key is None:
            with store.db.transaction(single.account):
                number = self._intend()
            self._number = number
            return None
        deadline = time.monotonic() + key.max_wait
        while True:
            began = boot_time()
            with store.db.transaction(single.account):
                earlier = _earlier(store, single.account, key)
                result = earlier.replay(key)
                if result is not None:
                    return result
                if not earlier.is_running:
                    number = self._intend()
                    self._take_key(key, number, earlier.result)
            if not earlier.is_running:
                self._number, self._checked = number, began
                return None
            if time.monotonic() > deadline:
                raise _running_elsewhere(earlier.machine, "is sending under this key")
            time.sleep(POLL)

    def may_send(self) -> bool:
        """Return True if no other process has taken the key over. Called right before the first byte of the request.

        If the session with the store was lost, for example while connecting to the service, the lock was lost, too.
        Raises ConditionError (``running_elsewhere``), StoreNotReachedError and ConfigurationError.
        """
        if self.key is None or boot_time() < self._checked + INTENT_LIFE:
            return True
        try:
            self._check_key(self.key)
        except StoreNotReachedError:
            self.store.db.reconnect()  # holds the lock again
            self._check_key(self.key)
        return True

    def _check_key(self, key: Key) -> None:
        """Raise ConditionError if the key belongs to another send. The session that reads it holds the lock."""
        db, account = self.store.db, self._single.account
        with db.transaction(account):
            row = db.row("SELECT job, machine FROM once WHERE account = ? AND key = ?", (account, plain(key.key)))
        job, machine = row or (None, None)
        if job != self._number:
            raise _running_elsewhere(machine, "has taken over this key")

    def end(self, outcomes: Sequence[Outcome], result: StoredResult | None = None) -> None:
        """Store the outcome of each phone, and the result under the key.

        Without ``outcomes``, the request was certainly not sent, and the send is deleted. Without a ``result``, the key
        is free again, unless it has an earlier unknown result. `end` can be called again after an interruption of
        itself or of `begin`: it then reads from the store whether a send is open.
        """
        store, account = self.store, self._single.account
        db = store.db
        db.roll_back()  # an interruption may have left a transaction open
        with db.transaction(account):
            number = self._number
            if number is None:
                number = db.value("SELECT number FROM job WHERE owner = ? AND id IS NULL", (store.owner,))
            if number is not None:
                self._record(number, outcomes)
                self._release_key(number, result)
            db.limit_idle(False)  # --wait may be silent for longer

    def _intend(self) -> int:
        """Store the intent, and return the number of the send. Called in a transaction."""
        store, single = self.store, self._single
        _refuse_optouts(store, single)
        store.db.limit_idle(True)
        db, now = store.db, store.now()
        number = int(
            db.value(
                """INSERT INTO job (account, profile, command, is_contact, settings, state, owner, machine, epoch,
                request, requests, sending, created, begun, updated)
                VALUES (?, ?, ?, ?, '{}', 'active', ?, ?, 1, 1, 1, ?, ?, ?, ?) RETURNING number""",
                (
                    *(single.account, single.profile, single.command, int(single.is_contact)),
                    *(store.owner, store.machine, len(single.phones), now, now, now),
                ),
            )
        )
        db.change(
            "INSERT INTO content (job, number, parameters, digest, cost) VALUES (?, 1, ?, ?, 0)",
            (number, plain(single.parameters), single.digest),
        )
        results.intend(db, number, [single.intent(now)])
        return number

    def _record(self, number: int, outcomes: Sequence[Outcome]) -> None:
        """Store the outcomes, or delete the intent. Called in a transaction."""
        db = self.store.db
        if not outcomes:
            for table, column in (("result", "job"), ("content", "job"), ("job", "number")):
                db.change(f"DELETE FROM {table} WHERE {column} = ?", (number,))
            return
        intent = self._single.intent(db.value("SELECT begun FROM job WHERE number = ?", (number,)) or 0)
        outcome = RequestOutcome(intent, outcomes)
        if results.is_sending(db, number, intent):
            results.add_to_counts(db, number, results.record(db, number, [outcome]))
        else:  # another process found no lock of this process, and marked it as unknown
            results.record_late(db, number, [outcome])
        db.change(
            "UPDATE job SET state = 'done', owner = NULL, updated = ? WHERE number = ?", (self.store.now(), number)
        )

    def _take_key(self, key: Key, number: int, before: StoredResult | None) -> None:
        """Take the key. Its row keeps ``before``, the unknown result of an earlier send. Called in a transaction."""
        store, account = self.store, self._single.account
        owned = (account, plain(key.key), key.digest, number, store.owner, store.machine, store.now())
        store.db.change(
            f"""INSERT INTO once (state, account, key, digest, job, owner, machine, time, {RESULT})
            VALUES ('sending', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account, key) DO UPDATE SET
            state = excluded.state, job = excluded.job, owner = excluded.owner, machine = excluded.machine,
            time = excluded.time, exit_code = excluded.exit_code, http_status = excluded.http_status,
            body = excluded.body, message = excluded.message, hint = excluded.hint""",
            (*owned, *_values(before)),
        )

    def _release_key(self, number: int, result: StoredResult | None) -> None:
        """Store the result under the key, or the earlier one again, or free the key. Called in a transaction."""
        if self.key is None:
            return
        db, of_send = self.store.db, (self._single.account, plain(self.key.key), number)
        if result is not None:
            db.change(
                """UPDATE once SET exit_code = ?, http_status = ?, body = ?, message = ?, hint = ?
                WHERE account = ? AND key = ? AND job = ?""",
                (*_values(result), *of_send),
            )
        db.change("DELETE FROM once WHERE account = ? AND key = ? AND job = ? AND exit_code IS NULL", of_send)
        db.change("UPDATE once SET state = 'done', owner = NULL WHERE account = ? AND key = ? AND job = ?", of_send)


def _values(result: StoredResult | None) -> tuple[Any, ...]:
    if result is None:
        return (None,) * 5
    return result.exit_code, result.http_status, result.body, plain(result.message), plain(result.hint)


def _running_elsewhere(machine: str | None, doing: str) -> ConditionError:
    return ConditionError(
        f"Another process on {clean(machine or 'another machine')} {doing}",
        "That run prints the result. Later, the same command prints it, too, and sends nothing.",
        consequence="this run sent nothing",
        reason="running_elsewhere",
    )


def _refuse_optouts(store: Store, single: Single) -> None:
    if single.channel is None:
        return
    phones = [phone for phone in single.phones if phone]
    opted_out = people.opted_out(store, phones, single.channel)
    if refused := [phone for phone in phones if phone in opted_out]:
        who = ", ".join(refused) + (" has" if len(refused) == 1 else " have")
        # a number that was used without a check may not be valid with one
        fix = f"optout remove {' '.join(refused)} --channel {single.channel} --no-number-check"
        raise UsageError(
            f"{who} opted out of {CHANNELS[single.channel]}",
            Hint("If they want messages again: ", fix, "\nTo send only this one, add --ignore-optout."),
            reason="opted_out",
        )


def settle_dead(store: Store, account: str) -> None:
    """Mark the requests of single sends whose process has died as unknown."""
    rows = store.db.rows(
        "SELECT number, owner FROM job WHERE account = ? AND id IS NULL AND owner IS NOT NULL", (account,)
    )
    alive = store.db.alive({owner for _, owner in rows})
    for number, owner in rows:
        if owner not in alive:
            with store.db.transaction(account):
                results.lose(store.db, number)
                store.db.change("UPDATE job SET state = 'done', owner = NULL WHERE number = ?", (number,))
