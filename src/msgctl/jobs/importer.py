"""Import a file into the store, 1,000 rows at a time."""

from __future__ import annotations

import hashlib
import json

from msgctl.errors import UsageError
from msgctl.jobs.settings import Settings
from msgctl.lists.rows import InvalidRow, Recipient
from msgctl.lists.table import Recipients
from msgctl.lists.template import Message, Render
from msgctl.operations import message_digest
from msgctl.store import recipients
from msgctl.store.recipients import NewContent, NewRecipient
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
        self.header_row: int | None = None
        self.left_out: dict[str, None] = {}

    @property
    def digest(self) -> bytes:
        """The digest of the message, its options, and the rows so far."""
        return self._digest.digest()

    def read(self, listed: Recipients, render: Render) -> list[str]:
        """Write every row, and return the file's own columns. Raises UsageError and the errors of the store."""
        self.header_row = listed.source.header_row
        own = [index for index, name in enumerate(listed.columns) if name and name != listed.source.column]
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

    def _add(self, row: Recipient | InvalidRow, columns: str | None, render: Render) -> None:
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
        if self._last is not None and self._last[0] is message:  # a message without columns is rendered once
            return self._last[1]
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
        self._last = (message, number)
        return number

    def _flush(self) -> None:
        recipients.add(self._store, self._job, self._contents, self._rows)
        self._contents, self._rows = [], []
