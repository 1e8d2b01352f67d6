"""Import a file into the store, 1,000 rows at a time, and count the messages of the job."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgctl.errors import UsageError
from msgctl.jobs.settings import Settings
from msgctl.lists.rows import InvalidRow, Row
from msgctl.lists.table import Recipients
from msgctl.lists.template import Message, Render
from msgctl.operations import message_digest
from msgctl.phones import country_of
from msgctl.store import people, queue, recipients
from msgctl.store.recipients import NewContent, NewRecipient, Planned
from msgctl.store.store import SLICE, Store

MAX_KNOWN = 100_000
"""Maximum messages that are remembered during an import. Equal messages that are farther apart do not share
requests.
"""


class Importer:
    """Writes the rows of a file to a job that is not published yet.

    ``digest`` covers the message, its options and all rows in order. ``blank`` counts rows without text, and
    ``left_out`` lists the symbols that --gsm7 left out.
    """

    def __init__(self, store: Store, job: int, settings: Settings, content: str) -> None:
        """``content`` is everything that the messages have in common."""
        self._store = store
        self._job = job
        self._digest_of = message_digest(settings.performs, settings.fixed)
        self._digest = hashlib.sha256(content.encode("utf-8", "surrogatepass"))
        self._known: dict[bytes, int] = {}
        self._last_number = 0
        self._last: tuple[Message, int] | None = None
        self._contents: list[NewContent] = []
        self._rows: list[NewRecipient] = []
        self.blank = 0
        self.left_out: dict[str, None] = {}

    @property
    def digest(self) -> bytes:
        """The digest of the message, its options, and the rows so far."""
        return self._digest.digest()

    def read(self, listed: Recipients, render: Render) -> list[str]:
        """Write every row, and return the file's own columns. Raises UsageError and the errors of the store."""
        own = [index for index, name in enumerate(listed.columns) if name and name != listed.phone_column]
        for row in listed.rows:
            if row is None:
                self.blank += 1
                continue
            cells = [row.values[index] for index in own] if row.values else []
            columns = json.dumps(cells) if cells else None
            self._digest.update(f"{columns} {row.phone}\n".encode("utf-8", "surrogatepass"))
            if cells and not cells[-1]:
                while cells and not cells[-1]:  # of a thousand columns, most may be empty
                    del cells[-1]
                columns = json.dumps(cells)
            self._add(row, columns, render)
            if len(self._rows) == SLICE:
                self._flush()
        self._flush()
        return [listed.columns[index] for index in own]

    def exclude(self, phones: Iterable[str], reason: str) -> None:
        """Leave out some numbers; call this after `read`. Raises the errors of the store and of the iterable."""
        some: set[str] = set()
        for phone in phones:
            some.add(phone)
            if len(some) == SLICE:
                recipients.exclude(self._store, self._job, some, reason)
                some = set()
        recipients.exclude(self._store, self._job, some, reason)

    def _add(self, row: Row | InvalidRow, columns: str | None, render: Render) -> None:
        if isinstance(row, InvalidRow):
            self._rows.append(NewRecipient(row.line, row.phone, None, columns, "invalid", row.reason))
            return
        try:
            message = render(row)
        except UsageError as error:
            self._rows.append(NewRecipient(row.line, row.phone, None, columns, "invalid", error.message))
            return
        self._rows.append(NewRecipient(row.line, row.phone, self._number(message), columns))

    def _number(self, message: Message) -> int:
        """Return the number of a message; equal messages share a number."""
        if self._last is None or self._last[0] is not message:
            self._last = (message, self._new_number(message))
        return self._last[1]

    def _new_number(self, message: Message) -> int:
        text = json.dumps(message.parameters)
        digest = self._digest_of(text)
        number = self._known.get(digest)
        if number is None:
            number = self._last_number = self._last_number + 1
            self._contents.append(NewContent(number, text, digest, message.cost))
            self.left_out.update(dict.fromkeys(message.left_out))
            if len(self._known) == MAX_KNOWN:
                self._known.clear()
            self._known[digest] = number
        return number

    def _flush(self) -> None:
        recipients.add(self._store, self._job, self._contents, self._rows)
        self._contents, self._rows = [], []


class Example(NamedTuple):
    """A row with its message: the parameters and the segments of each recipient."""

    line: int
    phone: str | None
    parameters: Mapping[str, Any]
    cost: int


class LeftOutNow(NamedTuple):
    """Why a recipient would not get the message now, and the number of the job that sent it already, if any."""

    reason: str
    repeats: int | None = None


@dataclass
class Tally:
    """The numbers of a job before it is sent: recipients, people who would be left out now, and estimated credits.

    The counts of people who opted out, of repeats and of people over the limit are estimates: the transaction before
    each request decides. ``repeats_of`` are the numbers of the jobs that sent the same message.
    """

    messages: int = 0
    credits: int = 0
    countries: Counter[str] = field(default_factory=Counter)
    first: Example | None = None
    most_expensive: Example | None = None
    opted_out: int = 0
    repeats: int = 0
    over_limit: int = 0
    repeats_of: set[int] = field(default_factory=set)

    @property
    def left_out(self) -> int:
        """How many recipients would be left out."""
        return self.opted_out + self.repeats + self.over_limit

    def leave_out(self, recipient: LeftOutNow) -> None:
        """Count a recipient who would be left out."""
        if recipient.reason == queue.OPTED_OUT:
            self.opted_out += 1
        elif recipient.repeats is not None:
            self.repeats += 1
            self.repeats_of.add(recipient.repeats)
        else:
            self.over_limit += 1


def tally(store: Store, job: int, account: str, limits: queue.Limits) -> Tally:
    """Count the messages that a job would send now, by the rules that also apply to each request."""
    total = Tally()
    first: Planned | None = None
    costly: Planned | None = None
    for page in recipients.planned(store, job):
        reasons = left_out_now(store, job, page, account, limits)
        for row in page:
            if row.line in reasons:
                total.leave_out(reasons[row.line])
                continue
            total.messages += 1
            total.credits += row.cost
            total.countries[country_of(row.phone) or "other"] += row.cost
            first = first or row
            if row.cost > (costly or first).cost:
                costly = row
    total.first = first and _example(store, job, first)
    total.most_expensive = costly and _example(store, job, costly)
    return total


def left_out_now(
    store: Store, job: int, page: Sequence[Planned], account: str, limits: queue.Limits
) -> dict[int, LeftOutNow]:
    """Return the recipients of a page who would not get the message now, by line."""
    phones = {row.phone for row in page if row.phone}
    opted_out = people.opted_out(store, phones, limits.channel)
    repeated = {}
    if not limits.again:
        repeats = people.repeats(store, account, phones, besides=job)
        repeated = {(repeat.phone, repeat.digest): repeat.job for repeat in repeats}
    numbers = {}
    if limits.at_most is not None:
        numbers = people.messages_since(store, account, phones, limits.since)
    reasons = {}
    for row in page:
        phone = row.phone or ""
        if phone in opted_out:
            reasons[row.line] = LeftOutNow(queue.OPTED_OUT)
        elif row.digest is not None and (phone, row.digest) in repeated:
            reasons[row.line] = LeftOutNow(queue.REPEATED, repeated[phone, row.digest])
        elif limits.at_most is not None and numbers.get(phone, 0) >= limits.at_most:
            reasons[row.line] = LeftOutNow(limits.over_limit)
    return reasons


def _example(store: Store, job: int, row: Planned) -> Example:
    parameters = json.loads(recipients.parameters(store, job, row.content))
    return Example(row.line, row.phone, parameters, row.cost)
