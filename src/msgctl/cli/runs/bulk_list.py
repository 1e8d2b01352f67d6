"""The list of a bulk command: read the people in its file with their messages, and leave out the people in others."""

from __future__ import annotations

import json
import shlex
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from msgctl import values
from msgctl.cli.options.bulk import Source
from msgctl.cli.options.send import Numbers
from msgctl.cli.shell.context import Context
from msgctl.errors import NOTHING_SENT, Hint, UsageError
from msgctl.http.request import Value
from msgctl.jobs.importer import Importer
from msgctl.jobs.settings import Settings
from msgctl.lists.faults import Faults, rows_left_out
from msgctl.lists.formats import FileError
from msgctl.lists.header import Reading, find_column
from msgctl.lists.reader import name_of, opened
from msgctl.lists.rows import Recipient
from msgctl.lists.table import Recipients
from msgctl.lists.template import Message, Renderer
from msgctl.operations import Operation
from msgctl.store.recipients import exclude
from msgctl.text import shorten


@dataclass(frozen=True)
class Content:
    """The messages of a bulk command. ``fixed`` are the parameters that all requests have.

    ``templates``, ``check``, ``gsm7`` and ``max_segments`` are arguments of `Renderer`.
    """

    operation: Operation
    fixed: Mapping[str, Value]
    templates: Mapping[str, str | Sequence[str]]
    check: Callable[[str], str] = values.prose
    gsm7: bool = False
    max_segments: int | None = None


@dataclass(frozen=True)
class Imported:
    """The rows of a job that is not published yet, and its settings with the columns of the file.

    ``left_out`` lists the symbols that --gsm7 left out. ``notes`` are about --exclude, and apply only to a new job.
    """

    job_number: int
    settings: Settings
    digest: bytes
    faults: Faults
    left_out: Sequence[str]
    notes: Sequence[str]


@dataclass(frozen=True)
class BulkList:
    """The file of a bulk command, and the files of --exclude."""

    context: Context
    content: Content
    source: Source
    numbers: Numbers
    exclude: Sequence[str]

    @contextmanager
    def _opened(self) -> Iterator[tuple[Recipients, Renderer]]:
        content = self.content
        cells = self.numbers.cells(self.context, sms=content.operation.channel == "sms")
        is_optional = bool(self.exclude)  # --phone-column may be a column of a file of --exclude
        with self.source.opened(self.context, is_optional=is_optional, phones=cells) as recipients:
            try:
                renderer = Renderer(
                    recipients, content.templates, content.check, gsm7=content.gsm7, max_segments=content.max_segments
                )
            except UsageError:
                deque(recipients.rows, maxlen=0)  # an error about the whole file, such as its sheet, comes first
                raise
            yield recipients, renderer

    def first_message(self) -> Message:
        """Return the message of the first row. Raises UsageError."""
        message = None
        with self._opened() as (recipients, renderer):
            for row in recipients.rows:  # all of them, because a fault may be anywhere in the file
                if message is None and isinstance(row, Recipient):
                    message = renderer(row)
        if message is None:
            raise FileError(f"{self._file} has no valid rows", consequence=NOTHING_SENT)
        return message

    def import_into(self, job_number: int, settings: Settings) -> Imported:
        """Write the rows of the file to an invisible job, and leave out the numbers of --exclude. Raises UsageError."""
        context, content = self.context, self.content
        fixed = {name: value for name, value in settings.fixed.items() if name != "country-code"}
        common = json.dumps([settings.operation, fixed, content.templates, content.gsm7])
        importer = Importer(context.store, job_number, settings, common)
        with self._opened() as (recipients, renderer):
            columns = importer.read(recipients, renderer)
        self._warn_of_braces(renderer)
        if renderer.would_save:
            context.note("Some messages would need fewer segments with --gsm7")
        notes: list[str] = []
        files = [recipients.columns, *(self._leave_out(job_number, file, notes) for file in self.exclude)]
        chosen = self.source.phone_column
        if chosen is not None and all(find_column(chosen, names) is None for names in files):
            raise FileError(f"No file has a column {values.quote(chosen)}", "Check --phone-column.")
        settings = replace(
            settings,
            columns=columns,
            phone_column=recipients.source.column,
            phones=str(recipients.source),
            blank=recipients.faults.blank,
        )
        faults = replace(recipients.faults, file=self._file)
        left_out = [*importer.left_out]
        return Imported(job_number, settings, importer.digest, faults, left_out, notes)

    @property
    def _file(self) -> str:
        return "standard input" if self.source.file == "-" else shorten(self.source.file, 60)

    def _warn_of_braces(self, renderer: Renderer) -> None:
        """Warn of text that looks like a placeholder, but is sent as it is."""
        for placeholder, name in renderer.not_filled.items():
            self.context.warn(
                f"{shorten(placeholder, 40)} in the message is not a placeholder: everybody would get it as it is. "
                f"For the value in the row, write {{{shorten(name, 40)}}}."
            )
        for word in dict.fromkeys(map(shorten, renderer.in_braces)):
            self.context.warn(
                f"{{{{{word}}}}} in the message is not a placeholder: everybody would get {{{word}}}. "
                "For the value in the row, write the name of a column in single braces."
            )

    def _leave_out(self, job_number: int, file: str, notes: list[str]) -> Sequence[str]:
        """Leave out the people in a file, and return its columns. Raises UsageError for its faults."""
        context, column = self.context, self.source.phone_column
        reading = Reading(phone_column=column, is_optional=True, leaves_out=True, phones=self.numbers.cells(context))
        with opened(file, context.stdin.buffer, reading, note=context.note) as recipients:
            numbers = (row.phone for row in recipients.counted() if isinstance(row, Recipient))
            exclude(context.store, job_number, numbers, f"excluded by {name_of(file)}")
        faults = recipients.faults
        if faults.invalid:
            listing = f"optout import {shlex.quote(file)} --dry-run -o csv"
            if self.numbers.country_code is not None:
                listing += f" --country-code {self.numbers.country_code}"
            if column is not None and find_column(column, recipients.columns) is not None:
                listing += f" --phone-column {shlex.quote(column)}"
            raise faults.error(
                "Fix the file: a person without a number there would get the message.",
                Hint("To list all invalid rows: ", listing),
            )
        notes.append(f"Excluded by {name_of(file)}: {recipients.source}")
        if faults.blank:
            notes.append(rows_left_out(faults.blank, "blank", name_of(file)))
        return recipients.columns
