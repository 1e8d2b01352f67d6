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
"""Maximum messages remembered during an import. Equal messages that are farther apart do not share requests."""


class Importer:
    """Writes the rows of a file to a job that is not published yet.

    ``digest`` covers the message, its options and all rows in order. ``left_out`` lists the symbols that --gsm7 left
    out.
    """

    def __init__(self, store: Store, job: int, settings: Settings, content: str) -> None:
        """``content`` is everything that the messages have in common."""
        self._store = store
        self._job = job
        self._digest_of = message_digest(settings.performs, settings.fixed)
        self._digest = hashlib.sha256(content.encode())
        self._known: dict[bytes, int] = {}
        self._last_number = 0
        self._last: tuple[Message, int] | None = None
        self._contents: list[NewContent] = []
        self._rows: list[NewRecipient] = []
        self.left_out: dict[str, None] = {}

    @property
    def digest(self) -> bytes:
        """The digest of the message, its options, and the rows so far."""
        return self._digest.digest()

    def read(self, listed: Recipients, render: Render) -> list[str]:
        """Write every row, and return the file's own columns.

        Rows that cannot have a message are added to its faults. Raises UsageError and the errors of the store.
        """
        own = [index for index, name in enumerate(listed.columns) if name and name != listed.source.column]
        for row in listed.counted():
            cells = [row.values[index] for index in own] if row.values else []
            columns = json.dumps(cells) if cells else None
            self._digest.update(f"{columns} {row.phone}\n".encode())
            if cells and not cells[-1]:
                while cells and not cells[-1]:  # of a thousand columns, most may be empty
                    del cells[-1]
                columns = json.dumps(cells)
            self._add(listed, row, columns, render)
            if len(self._rows) == SLICE:
                self._flush()
        self._flush()
        return [listed.columns[index] for index in own]

    def _add(self, listed: Recipients, row: Recipient | InvalidRow, columns: str | None, render: Render) -> None:
        if isinstance(row, Recipient):
            try:
                message = render(row)
            except UsageError as error:
                row = InvalidRow(row.line, row.phone, error.message)
                listed.faults.add(row)
            else:
                self._rows.append(NewRecipient(row.line, row.phone, self._number(message), columns))
                return
        self._rows.append(NewRecipient(row.line, row.phone, None, columns, "invalid", row.reason))

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
