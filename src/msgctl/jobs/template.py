"""Fill message templates: text with ``{column}`` placeholders, rendered for each row.

``{column|text}`` uses the text if the cell is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from msgctl import segments
from msgctl.errors import UsageError
from msgctl.jobs.columns import find, listed, nearest, shown_name
from msgctl.jobs.reader import Nested, RecipientReader, Row, RowError
from msgctl.values import quote

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_LITERAL_BRACES = "Write {{ and }} for braces in the text."

Parameters = Mapping[str, str | list[str]]
"""Request parameters that come from a row, by wire name."""


class Placeholder(NamedTuple):
    """A placeholder of a template, its column, and the text for an empty cell."""

    piece: int
    column: int
    fallback: str | None = None


class Template:
    """A text whose placeholders name columns that exist. There are no formats, attributes or expressions."""

    def __init__(self, pieces: Sequence[str], placeholders: Sequence[Placeholder], columns: Sequence[str]) -> None:
        self._pieces = pieces
        self._placeholders = placeholders
        self._columns = columns

    @classmethod
    def parse(cls, text: str, columns: Sequence[str]) -> Template:
        """Find the placeholders in a text; ``{{`` and ``}}`` are braces. Raises UsageError for an unknown column."""
        pieces: list[str] = []
        placeholders: list[Placeholder] = []
        end = 0
        for token in _TOKEN.finditer(text):
            pieces.append(text[end : token.start()])
            end = token.end()
            if token[0] in {"{{", "}}"}:
                pieces.append(token[0][0])
            elif token[1] is None:
                raise _lone_brace(token)
            else:
                name, bar, fallback = token[1].partition("|")
                if find(token[1].strip(), columns) is not None:  # the name of a column may contain |
                    name, bar = token[1], ""
                column = _index(name.strip(), columns)
                placeholders.append(Placeholder(len(pieces), column, fallback if bar else None))
                pieces.append("")
        return cls([*pieces, text[end:]], placeholders, columns)

    @classmethod
    def of_column(cls, name: str, columns: Sequence[str]) -> Template:
        """Return a template that is one column and nothing else."""
        return cls([""], [Placeholder(0, columns.index(name))], columns)

    @property
    def text(self) -> str:
        """The text with its placeholders left out."""
        return "".join(self._pieces)

    @property
    def is_constant(self) -> bool:
        """Whether the text is the same for every row."""
        return not self._placeholders

    def fill(self, row: Row) -> str:
        """Return the text for a row. Raises RowError if a cell is empty."""
        pieces = [*self._pieces]
        for place, column, fallback in self._placeholders:
            value = row.values[column]
            if not value or value.isspace():
                if fallback is not None and not isinstance(value, Nested):
                    pieces[place] = fallback
                    continue
                why = "holds an object or a list, not text" if isinstance(value, Nested) else "is empty"
                raise RowError(f"column {shown_name(self._columns[column])} {why}")
            pieces[place] = value
        return "".join(pieces)


class Message(NamedTuple):
    """The message of one recipient, its segments and its estimated credits."""

    parameters: Parameters
    segments: int
    cost: int


class Renderer(Protocol):
    """Renders the message of each row. Raises UsageError or RowError if the row cannot have one."""

    def render(self, row: Row) -> Message: ...


class MessageRenderer:
    """Renders the message of each row.

    ``texts`` are templates by wire name; a sequence of them makes an array (an empty one: all columns but the phone's).
    ``check`` returns the text to send or raises UsageError. ``by_segments`` estimates one credit per segment.
    """

    def __init__(
        self,
        reader: RecipientReader,
        texts: Mapping[str, str | Sequence[str]],
        check: Callable[[str], str],
        *,
        by_segments: bool = False,
        cost: int = 1,
    ) -> None:
        self._check = check
        self._by_segments = by_segments
        self._cost = cost
        self._templates = {name: self._parse(text, reader) for name, text in texts.items()}
        each = [template for _, templates in self._templates.values() for template in templates]
        for template in each:
            if template.is_constant:
                check(template.text)  # before any row is read
        self._is_constant = all(template.is_constant for template in each)
        self._constant: Message | None = None

    def render(self, row: Row) -> Message:
        """Return the message of a row. Raises UsageError or RowError if the row cannot have one."""
        if self._constant is not None:
            return self._constant
        parameters: dict[str, str | list[str]] = {}
        count = 0
        for name, (is_array, templates) in self._templates.items():
            texts = [self._check(template.fill(row)) for template in templates]
            parameters[name] = texts if is_array else texts[0]
            if self._by_segments:
                count += sum(segments.count(text).segments for text in texts)
        message = Message(parameters, count, count if self._by_segments else self._cost)
        if self._is_constant:
            self._constant = message
        return message

    @staticmethod
    def _parse(text: str | Sequence[str], reader: RecipientReader) -> tuple[bool, list[Template]]:
        if isinstance(text, str):
            return False, [Template.parse(text, reader.columns)]
        if text:
            return True, [Template.parse(each, reader.columns) for each in text]
        others = [name for name in reader.columns if name and name != reader.phone_column]
        return True, [Template.of_column(name, reader.columns) for name in others]


def _index(name: str, columns: Sequence[str]) -> int:
    if not name:
        raise UsageError("{} in the message names no column", f"Name one, as in {{name}}. {_LITERAL_BRACES}")
    index = find(name, columns)
    if index is None:
        near = nearest(name, columns)
        raise UsageError(
            f"The message uses {{{shown_name(name)}}}, but the file has no such column. {listed(columns)}",
            (f"Did you mean {{{near}}}? " if near else "") + _LITERAL_BRACES,
        )
    return index


def _lone_brace(token: re.Match[str]) -> UsageError:
    fault = "is not closed" if token[0] == "{" else "was never opened"
    beginning = token.string[max(token.start() - 10, 0) : token.start() + 20]
    return UsageError(
        f"a brace in the message {fault}: '{token[0]}' at position {token.start() + 1}, in {quote(beginning)}",
        _LITERAL_BRACES,
    )
