"""People who must not get a message: opt-outs, repeats within 12 hours, and people who have reached --at-most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from msgctl.operations import CHANNELS
from msgctl.store.database import any_of, chunks
from msgctl.store.schema import COUNTED
from msgctl.store.store import Store, pages

ALL = "all"
"""The channel of people who have opted out of every channel."""
REPEAT = 12 * 3_600_000
"""Milliseconds in which the same message to the same person is a repeat."""


class OptOut(NamedTuple):
    """A number in international digits, its channel or `ALL`, and when it was added (milliseconds since 1970)."""

    phone: str
    channel: str
    time: int


def add_optouts(store: Store, entries: Iterable[tuple[str, str]]) -> tuple[int, int]:
    """Add numbers with their channels in one transaction. Return how many are different, and how many are new.

    A number that has opted out of all channels is not new for one of them.
    """
    given = dict.fromkeys(entries)
    new = 0
    with store.db.transaction("optout"):
        for some in chunks(given):
            known = {*_optouts(store, [phone for phone, _ in some], (ALL,))}
            rows = [(phone, channel, store.now()) for phone, channel in some if phone not in known]
            if rows:
                new += store.db.insert(
                    "INSERT INTO optout (phone, channel, time)", rows, ending="ON CONFLICT (phone, channel) DO NOTHING"
                )
    return len(given), new


def remove_optouts(store: Store, phones: Iterable[str], channel: str = ALL) -> list[str]:
    """Remove numbers for a channel, or for all; return the numbers that were on the list for it.

    A number that had opted out of all channels stays on the list for the others.
    """
    db, removed = store.db, []
    channels = (ALL, *CHANNELS) if channel == ALL else (ALL, channel)
    with db.transaction("optout"):
        for phone in phones:
            rows = db.rows(
                f"DELETE FROM optout WHERE phone = ? AND channel {any_of(channels)} RETURNING channel, time",
                (phone, *channels),
            )
            if rows:
                removed.append(phone)
            times: dict[str, int] = dict(rows)
            if channel != ALL and ALL in times:
                others = [(phone, other, times[ALL]) for other in CHANNELS if other != channel]
                db.insert("INSERT INTO optout (phone, channel, time)", others, ending="ON CONFLICT DO NOTHING")
    return removed


def optouts(store: Store) -> Iterator[OptOut]:
    """Yield the whole list, sorted by number, 1,000 at a time."""
    query = "SELECT phone, channel, time FROM optout WHERE (phone, channel) > (?, ?) ORDER BY phone, channel LIMIT ?"
    for page in pages(store, query, (), ("", "")):
        yield from map(OptOut._make, page)


def optouts_of(store: Store, phone: str) -> list[OptOut]:
    """Return the opt-outs of a number, by channel."""
    query = "SELECT phone, channel, time FROM optout WHERE phone = ? ORDER BY channel"
    return [*map(OptOut._make, store.db.rows(query, (phone,)))]


def opted_out(store: Store, phones: Collection[str], channel: str) -> set[str]:
    """Return the numbers in ``phones`` that have opted out of a channel, or of all."""
    refused: set[str] = set()
    for some in chunks(phones):
        refused |= {*_optouts(store, some, (ALL, channel))}
    return refused


def _optouts(store: Store, phones: Collection[str], channels: Collection[str]) -> list[str]:
    query = f"SELECT DISTINCT phone FROM optout WHERE phone {any_of(phones)} AND channel {any_of(channels)}"
    return [phone for (phone,) in store.db.rows(query, (*phones, *channels))]


def repeats(
    store: Store, account: str, phones: Collection[str], *, besides: int = 0, time: int | None = None
) -> dict[tuple[str, bytes], int]:
    """Find the messages that ``phones`` got, or may have got, from an account in the 12 hours before a time (or now).

    Return the numbers of the jobs that sent them, by phone and digest of the message. Messages of the job ``besides``
    do not count.
    """
    repeats: dict[tuple[str, bytes], int] = {}
    if time is None:
        time = store.now()
    for some in chunks(phones):
        rows = store.db.rows(
            f"""SELECT result.phone, content.digest, result.job FROM result JOIN job ON job.number = result.job
            JOIN content ON content.job = result.job AND content.number = result.content
            WHERE result.phone {any_of(some)} AND result.time > ? AND result.outcome IN {COUNTED}
            AND account = ? AND content.digest IS NOT NULL AND result.job <> ?""",
            (*some, time - REPEAT, account, besides),
        )
        repeats |= {(phone, digest): job for phone, digest, job in rows}
    return repeats


def messages_since(store: Store, account: str, phones: Collection[str], since: int) -> dict[str, int]:
    """Return how many messages each of ``phones`` got from an account since a time, if they count towards --at-most."""
    numbers: dict[str, int] = {}
    for some in chunks(phones):
        numbers |= store.db.rows(
            f"""SELECT result.phone, count(*) FROM result JOIN job ON job.number = result.job
            WHERE result.phone {any_of(some)} AND result.time >= ? AND result.outcome IN {COUNTED}
            AND account = ? AND is_contact = 1 GROUP BY result.phone""",
            (*some, since, account),
        )
    return numbers
