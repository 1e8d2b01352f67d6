"""What the ``msgctl sandbox`` commands do to the sandbox beside the interface: look into it, and set it up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from random import Random
from sqlite3 import Row
from typing import Any

from msgctl.errors import UsageError
from msgctl.sandbox import clicks, delivery
from msgctl.sandbox.dispatch import state_of
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.state import State
from msgctl.sandbox.visitors import invent
from msgctl.sandbox.wire import quoted
from msgctl.storage.database import require
from msgctl.times import timestamp

MOST_CREDITS = 10**15
MOST_CLICKS = 100_000
MOST_DAYS = 3_650

_DAY = 24 * 60 * 60
_COUNTRY = re.compile(r"[A-Z]{2}")


def inbox(
    state: State,
    clock: Callable[[], float],
    phone: str | None = None,
    kind: str | None = None,
    limit: int | None = None,
    after: int = 0,
) -> list[dict[str, Any]]:
    """What the phones received, or are about to, newest last.

    ``phone`` and ``kind`` (one of `delivery.KINDS`) narrow it, ``after`` leaves out those up to a number, ``limit``
    keeps the newest. Each message has ``number`` (they count up), ``time`` (ISO 8601, UTC), ``kind``, ``phone``,
    ``state``, ``text``, ``code`` (None where it carries none) and ``id``, and where it has one ``voice``,
    ``audio_code`` and ``template``. Raises UsageError for another kind, or a limit below 1.
    """
    if kind is not None and kind not in delivery.KINDS:
        raise UsageError(f"there are no messages of the kind {quoted(kind)}: use one of {', '.join(delivery.KINDS)}")
    if limit is not None and limit < 1:
        raise UsageError(f"the limit must be 1 or more, not {limit}")
    query = (
        "SELECT * FROM messages WHERE received AND number > ? AND phone = coalesce(?, phone)"
        " AND kind = coalesce(?, kind) ORDER BY number DESC LIMIT ?"
    )
    number = None if phone is None else _text("phone", phone).removeprefix("+")
    with state.reading() as db:
        rows = db.execute(query, (after, number, kind, -1 if limit is None else limit)).fetchall()
        now = clock()
        return [_received(row, now) for row in reversed(rows)]


def click(
    emulator: Emulator,
    name: str,
    count: int = 1,
    *,
    at: float | None = None,
    days: int = 1,
    country: str | None = None,
    region: str | None = None,
    city: str | None = None,
    device: str | None = None,
    brand: str | None = None,
    model: str | None = None,
    operating_system: str | None = None,
    browser: str | None = None,
    lang: str | None = None,
) -> int:
    """Make visits of the short URL with a name, and return how many.

    They are made ``at`` a time (seconds since 1970; now if left out), or where ``days`` is more than 1, at random
    times of that many days, the last of which is the one of ``at``. What else is left out is plausible. Raises
    UsageError for a name that is not known, and for numbers that are out of range.
    """
    _check_range("count", count, 1, MOST_CLICKS)
    _check_range("days", days, 1, MOST_DAYS)
    given = _given(
        country=country.upper() if country else None,
        region=region,
        city=city,
        device=device,
        brand=brand,
        model=model,
        operating_system=operating_system,
        browser=browser,
        lang=lang,
    )
    last = emulator.clock() if at is None else at
    with emulator.state.writing() as db:
        url = db.execute("SELECT number, premium FROM urls WHERE name = ?", (_text("name", name),)).fetchone()
        if url is None:
            raise UsageError(
                f"the sandbox has no short URL named {quoted(name)}", "Make one with: msgctl -p sandbox url shorten"
            )
        clicks.add(db, url, _visits(emulator.random, count, last, days, given))
    return count


def set_credit(state: State, credits: int) -> int:
    """Set the account's credits, and return them. Raises UsageError below 0."""
    _check_range("credits", credits, 0, MOST_CREDITS)
    with state.writing() as db:
        db.execute("UPDATE account SET credits = ?", (credits,))
    return credits


def add_credit(state: State, credits: int) -> int:
    """Add credits to the account, or with a negative number take some; return what is there then.

    Raises UsageError, with nothing changed, where less than 0 would be left.
    """
    with state.writing() as db:
        (left,) = db.execute("SELECT credits FROM account").fetchone()
        _check_range("credits", left + credits, 0, MOST_CREDITS)
        db.execute("UPDATE account SET credits = ?", (left + credits,))
    return int(left) + credits


def _received(row: Row, now: float) -> dict[str, Any]:
    message = {
        "number": row["number"],
        "time": timestamp(row["created"]),
        "kind": row["kind"],
        "phone": row["phone"],
        "state": state_of(row, now),
        "text": row["text"],
        "code": row["code"],
        "id": row["id"],
    }
    message.update({name: row[name] for name in ("voice", "audio_code", "template") if row[name] is not None})
    require(int, message["number"])
    require(str, *(value or "" for name, value in message.items() if name != "number"))
    return message


def _text(name: str, value: str) -> str:
    """Text that can be kept: a command line may hold bytes that are none."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name} must be Unicode text, not {quoted(value)}") from None
    return value


def _check_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise UsageError(f"{name} must be {least} to {most}, not {number}; nothing was changed")


def _given(**values: str | None) -> dict[str, str]:
    given = {name: _text(name, value) for name, value in values.items() if value}
    if "country" in given and not _COUNTRY.fullmatch(given["country"]):
        raise UsageError(f"country must be an ISO 3166 code of two letters, not {quoted(given['country'])}")
    return given


def _visits(random: Random, count: int, last: float, days: int, given: Mapping[str, str]) -> Iterator[clicks.Click]:
    midnight = datetime.fromtimestamp(last).astimezone().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    first = last if days == 1 else midnight - (days - 1) * _DAY
    for _ in range(count):
        yield clicks.Click(at=random.uniform(first, last), **invent(random, given))
