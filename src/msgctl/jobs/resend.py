"""Read the recipients of a new job from an earlier one."""

from __future__ import annotations

import json
from collections.abc import Iterator

from msgctl.jobs import queries
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.reader import RecipientReader, Row
from msgctl.jobs.report import COLUMNS, Report
from msgctl.jobs.template import Message
from msgctl.operations import SEND_SMS


class FormerRecipients(RecipientReader):
    """The recipients in a report on a job; each gets the same message again (it is its own renderer)."""

    phone_column = ""

    def __init__(self, ledger: Ledger, report: Report) -> None:
        self._ledger = ledger
        self._report = report
        self.columns = tuple(ledger.spec.columns)

    def __iter__(self) -> Iterator[Row]:
        for row in self._report:
            values = [*row.values()][len(COLUMNS) :]
            yield Row(row["line"], row["phone"], tuple(value or "" for value in values))

    def render(self, row: Row) -> Message:
        """Return the message of the recipient; an SMS costs one credit per segment."""
        text, cost = queries.message_of(self._ledger.db, row.line)
        return Message(json.loads(text), cost if self._ledger.spec.performs is SEND_SMS else 0, cost)
