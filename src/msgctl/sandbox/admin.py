"""What the ``msgctl sandbox`` commands do to the sandbox: read its inbox, and set it up."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from sqlite3 import Connection, Row
from typing import Any, Protocol

from msgctl import segments
from msgctl.errors import UsageError
from msgctl.sandbox import clicks, faults, messages
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import quoted
from msgctl.sandbox.request_log import RequestLog
from msgctl.sandbox.state import State
from msgctl.times import timestamp

MAX_CREDITS = 10**15
MAX_CLICKS = 100_000
MAX_DAYS = 3_650
MAX_WAIT = 3600.0
MAX_OVERVIEW = 300
"""Messages on the inbox page."""

MIN_NATIONAL = 7
"""Digits from which a number may lack its country code."""

LATEST = 32_503_680_000.0
"""The latest time of the clock: the year 3000."""

CLOCK_SYNTAX = "Use +10m (s, m, h or d), stop, start, or a time such as 2026-12-01T09:00:00Z, at which it stops."

_DAY = 24 * 60 * 60
_UNITS = {"s": 1, "m": 60, "h": 60 * 60, "d": _DAY}
_ADVANCE = re.compile(r"\+(?:[0-9]{1,7}[smhd])+")
_COUNTRY = re.compile(r"[A-Z]{2}")
_SECONDS_BETWEEN_CHECKS = 0.2


class Admin(Protocol):
    """The sandbox of this process (`LocalAdmin`), or one served elsewhere (`cli.remote_sandbox`)."""

    def inbox(self, phone: str | None, kind: str | None, after: int = 0, wait: float = 0) -> list[dict[str, Any]]:
        """Return the messages that the phones received after a number, newest last; wait until there is one."""

    def click(self, name: str, count: int, days: int, visitor: Mapping[str, str]) -> int:
        """Simulate visits to a short URL and return their number."""

    def credit(self, amount: int, *, add: bool) -> int:
        """Set the credits, or add to them, and return the new balance."""

    def fault(self, *specs: str) -> list[str]:
        """Replace the faults and return those that are set."""

    def faults(self) -> list[str]:
        """Return the faults that are set."""

    def clock(self, change: str | None = None) -> dict[str, Any]:
        """Change the clock if asked to, and return its ``time`` and whether it is ``stopped``."""

    def reset(self) -> None:
        """Delete everything."""


class LocalAdmin:
    """Works on the state of an emulator in this process. Raises ConfigurationError and UsageError."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator
        self._state: State = emulator.state
        self.requests = RequestLog()

    def inbox(
        self,
        phone: str | None = None,
        kind: str | None = None,
        after: int = 0,
        wait: float = 0,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the messages that the phones received or will receive, newest last.

        ``phone``, in any spelling, and ``kind`` (one of `messages.KINDS`) narrow it, ``after`` skips those up to a
        number, and ``limit`` keeps the newest. If it finds nothing, it waits for at most ``wait`` seconds.
        """
        if kind is not None and kind not in messages.KINDS:
            raise UsageError(f"Unknown kind of message {quoted(kind)}. Choose from {', '.join(messages.KINDS)}")
        if limit is not None:
            _check_range("limit", limit, 1, 10**15)
        number = "%" if phone is None else _pattern(phone)
        until = time.monotonic() + wait
        while True:
            with self._state.changed:  # held while reading, so that no change is missed before the wait
                found = self._received(number, kind, after, -1 if limit is None else limit)
                left = until - time.monotonic()
                if found or left <= 0:
                    return found
                # Changes of other processes are found by checking again.
                self._state.changed.wait(min(left, _SECONDS_BETWEEN_CHECKS))

    def click(self, name: str, count: int, days: int, visitor: Mapping[str, str]) -> int:
        """Simulate visits to the short URL with this name, at random times in the last ``days`` days.

        ``visitor`` gives fields of `clicks.VISITOR`; the others are invented.
        """
        _check_range("count", count, 1, MAX_CLICKS)
        _check_range("days", days, 1, MAX_DAYS)
        given = {field: _text(field, value) for field, value in visitor.items()}
        if "country" in given:
            given["country"] = given["country"].upper()
            if not _COUNTRY.fullmatch(given["country"]):
                raise UsageError(f"country must be a two-letter ISO 3166 code, not {quoted(given['country'])}")
        with self._state.writing() as db:
            url = db.execute("SELECT number, premium FROM urls WHERE name = ?", (_text("name", name),)).fetchone()
            if url is None:
                raise UsageError(f"No short URL named {quoted(name)}", "Make one with: msgctl -p sandbox url shorten")
            clicks.add(db, url, self._visits(db, count, days, given))
        return count

    def credit(self, amount: int, *, add: bool = False) -> int:
        """Set the credits, or add to them. Raises UsageError if the balance would be below 0."""
        with self._state.writing() as db:
            (left,) = db.execute("SELECT credits FROM account").fetchone()
            balance = amount + (int(left) if add else 0)
            _check_range("credits", balance, 0, MAX_CREDITS)
            db.execute("UPDATE account SET credits = ?", (balance,))
        return balance

    def fault(self, *specs: str) -> list[str]:
        faults.replace_all(self._state, *specs)
        return self.faults()

    def faults(self) -> list[str]:
        with self._state.reading() as db:
            return [_with_rest(*row) for row in db.execute("SELECT spec, remaining FROM faults ORDER BY number")]

    def clock(self, change: str | None = None) -> dict[str, Any]:
        """Change the clock (see `CLOCK_SYNTAX`), and return its time and whether it is stopped."""
        if change is not None:
            with self._state.writing() as db:
                self._set_clock(db, change)
        with self._state.reading() as db:
            (stopped,) = db.execute("SELECT clock_stopped FROM account").fetchone()
            return {"time": timestamp(self._emulator.now(db)), "stopped": stopped is not None}

    def reset(self) -> None:
        self._state.reset()

    def overview(self, since: str = "", wait: float = 0) -> dict[str, Any]:
        """Return everything that the inbox page shows, once its version differs from ``since``."""
        until = time.monotonic() + wait
        while True:
            with self._state.changed:
                version = f"{self._state.changes}.{self.requests.count}"
                left = until - time.monotonic()
                if version != since or left <= 0:
                    break
                self._state.changed.wait(left)
        with self._state.reading() as db:
            now = self._emulator.now(db)
            rows = db.execute("SELECT * FROM messages ORDER BY number DESC LIMIT ?", (MAX_OVERVIEW,)).fetchall()
            (credits_left,) = db.execute("SELECT credits FROM account").fetchone()
            urls = [_url(db, row) for row in db.execute("SELECT * FROM urls ORDER BY number DESC LIMIT 100").fetchall()]
        shown = [described(row, now) for row in rows]
        return {
            "version": version,
            "credits": credits_left,
            "clock": self.clock(),
            "faults": self.faults(),
            "moving": any(messages.is_moving(row, now) for row in rows),
            "messages": shown,
            "urls": urls,
            "requests": self.requests.described(),
        }

    def _received(self, phone: str, kind: str | None, after: int, limit: int) -> list[dict[str, Any]]:
        query = (
            "SELECT * FROM messages WHERE received AND number > ? AND kind = coalesce(?, kind) AND phone LIKE ?"
            " ORDER BY number DESC LIMIT ?"
        )
        with self._state.reading() as db:
            now = self._emulator.now(db)
            rows = db.execute(query, (after, kind, phone, limit)).fetchall()
            return [described(row, now) for row in reversed(rows)]

    def _visits(self, db: Connection, count: int, days: int, given: Mapping[str, str]) -> Iterator[clicks.Click]:
        last = self._emulator.now(db)
        midnight = datetime.fromtimestamp(last).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        first = last if days == 1 else midnight.timestamp() - (days - 1) * _DAY
        random = self._emulator.random
        for _ in range(count):
            yield clicks.Click(at=random.uniform(first, last), **clicks.invent(random, given))

    def _set_clock(self, db: Connection, change: str) -> None:
        real, (stopped,) = self._emulator.clock(), db.execute("SELECT clock_stopped FROM account").fetchone()
        now = self._emulator.now(db)
        if change == "stop":
            stopped = now
        elif change == "start":
            stopped = None
        elif _ADVANCE.fullmatch(change):
            now += sum(int(step[:-1]) * _UNITS[step[-1]] for step in re.findall(r"[0-9]+[smhd]", change))
            stopped = None if stopped is None else now
        else:
            now = stopped = _moment(change)
        if not 0 <= now <= LATEST:
            raise UsageError("The clock must stay between 1970 and 3000")
        db.execute("UPDATE account SET clock_offset = ?, clock_stopped = ?", (now - real, stopped))


def described(row: Row, now: float) -> dict[str, Any]:
    """Return a stored message as a JSON object, with the states that it has reached."""
    message = {
        "number": row["number"],
        "time": timestamp(row["created"]),
        "kind": row["kind"],
        "phone": row["phone"],
        "state": (states := messages.reached(row, now))[-1],
        "text": row["text"],
        "code": row["code"],
        "id": row["id"],
        "credits": row["credits"],
        "history": [
            {"state": state, "time": timestamp(row["created"] + number * messages.SECONDS_PER_STATE)}
            for number, state in enumerate(states)
        ],
    }
    if row["kind"] == messages.SMS:
        message["segments"] = segments.count(row["text"]).segments
    message.update({name: row[name] for name in ("voice", "audio_code", "template") if row[name] is not None})
    if row["template_values"] is not None:
        message["values"] = json.loads(row["template_values"])
    return message


def _url(db: Connection, row: Row) -> dict[str, Any]:
    query = "SELECT date, sum(NOT is_bot), sum(is_bot) FROM clicks WHERE url = ? GROUP BY date ORDER BY date"
    days = [{"date": date, "clicks": count, "bots": bots} for date, count, bots in db.execute(query, (row["number"],))]
    return {
        "name": row["name"],
        "urlShort": row["url_short"],
        "urlLong": row["url_long"],
        "premium": bool(row["premium"]),
        "clicks": sum(day["clicks"] for day in days),
        "bots": sum(day["bots"] for day in days),
        "days": days[-30:],
    }


def _pattern(phone: str) -> str:
    """Return an SQL pattern for a phone number in any spelling; a national one lacks the country code."""
    typed = "".join(char for char in _text("phone", phone) if char in "+0123456789")
    digits = typed.removeprefix("+").removeprefix("00")
    if not (digits.isdecimal() and 5 <= len(digits) <= 15):
        raise UsageError(f"phone must have 5 to 15 digits, not {quoted(phone)}")
    return digits if typed != digits or len(digits) < MIN_NATIONAL else f"%{digits}"


def _with_rest(spec: str, remaining: int | None) -> str:
    return spec if remaining is None else re.sub("next=[0-9]+", f"next={remaining}", spec)


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"Unknown change of the clock {quoted(text)}", CLOCK_SYNTAX) from None


def _text(name: str, value: str) -> str:
    """Return a text that can be stored: a command line may hold bytes that are not UTF-8."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} must be Unicode text, not {quoted(value)}") from None
    return value


def _check_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise UsageError(f"{name} must be {least} to {most}, not {number}; nothing was changed")
