"""Fill message templates: text with ``{column}`` placeholders, rendered for each row.

``{column|text}`` uses the text if the cell is empty. ``{link}`` is the recipient's personal link, if the job has links.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from msgctl import segments, values
from msgctl.errors import UsageError
from msgctl.jobs.formats import Nested
from msgctl.jobs.model import LINK_MARK, Link
from msgctl.jobs.reader import Recipients, Row, find_column, listed
from msgctl.text import shorten

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_LITERAL_BRACES = "Write {{ and }} for braces in the text."
_ORIGIN = re.compile(r"https?://[^/?#\\{}]+(?=[/?#]|$)", re.IGNORECASE)

LINK = "link"
"""The placeholder of the personal link."""
Parameters = Mapping[str, str | list[str]]
"""Request parameters that come from a row, by wire name."""


class Placeholder(NamedTuple):
    """A column, and the text for an empty cell of it."""

    column: int
    name: str
    fallback: str | None = None

    def fill(self, row: Row) -> str:
        """Return the cell in a row. Raises UsageError if it is empty or not text."""
        value = row.values[self.column]
        if isinstance(value, Nested):
            raise UsageError(f"column {shorten(self.name, 40)} contains an object or a list, not text")
        if value and not value.isspace():
            return value
        if self.fallback is None:
            raise UsageError(f"column {shorten(self.name, 40)} is empty")
        return self.fallback


class Template(tuple[str | Placeholder, ...]):
    """The literal text and the placeholders of a message, without formats, attributes or expressions."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, columns: Sequence[str], what: str = "the message") -> Template:
        """Find the placeholders in a text; ``{{`` and ``}}`` are braces. Raises UsageError for an unknown column.

        ``what`` is how errors refer to the text.
        """
        pieces: list[str | Placeholder] = []
        end = 0
        for token in _TOKEN.finditer(text):
            pieces.append(text[end : token.start()])
            end = token.end()
            if token[1] is not None:
                pieces.append(_placeholder(token[1], columns, what))
            elif token[0] in "{}":
                raise UsageError(f'Unmatched "{token[0]}" at position {token.start() + 1} of {what}', _LITERAL_BRACES)
            else:
                pieces.append(token[0][0])
        return cls([*pieces, text[end:]])

    @property
    def constant(self) -> str | None:
        """The text, if it is the same for every row."""
        literals = [piece for piece in self if isinstance(piece, str)]
        return "".join(literals) if len(literals) == len(self) else None

    def fill(self, row: Row) -> str:
        """Return the text for a row. Raises UsageError if a cell is empty."""
        return "".join([piece if isinstance(piece, str) else piece.fill(row) for piece in self])


class Message(NamedTuple):
    """The message of one recipient, its segments and its estimated credits.

    ``saved`` are the credits that --gsm7 would save; None if the message cannot be written in GSM-7. ``left_out`` lists
    the symbols that --gsm7 left out. `LINK_MARK` stands for the ``link`` in the ``parameters``.
    """

    parameters: Parameters
    segments: int
    cost: int
    saved: int | None = 0
    left_out: tuple[str, ...] = ()
    link: Link | None = None


Render = Callable[[Row], Message]
"""Returns the message of a row. Raises UsageError if the row cannot have one."""


class LinkTemplate(NamedTuple):
    """The URL that personal links lead to, with placeholders, and the assumed characters of a short URL."""

    url: str
    length: int


class Renderer:
    """Renders the message of each row. Raises UsageError for templates that no row can fill.

    ``templates`` are by wire name; a sequence becomes an array (if empty, of all columns but the phone column).
    ``check`` returns the text to send or raises UsageError. ``cost`` is the estimated credits of a message; None means
    one credit per SMS segment. ``gsm7`` converts the text to GSM-7.
    """

    def __init__(
        self,
        recipients: Recipients,
        templates: Mapping[str, str | Sequence[str]],
        check: Callable[[str], str],
        cost: int | None,
        *,
        gsm7: bool = False,
        link: LinkTemplate | None = None,
    ) -> None:
        self._check = check
        self._cost = cost
        self._gsm7 = gsm7
        self._arrays = {name for name, text in templates.items() if not isinstance(text, str)}
        columns = [*recipients.columns, *([LINK] if link else [])]
        others = [
            Template([Placeholder(index, name)])
            for index, name in enumerate(recipients.columns)
            if name and name != recipients.phone_column
        ]
        self._templates = {
            name: [Template.parse(each, columns) for each in ([text] if isinstance(text, str) else text)] or others
            for name, text in templates.items()
        }
        self._made_up: tuple[str, ...] = ()
        self._constant: Message | None = None
        if link:
            _check_link_column(recipients.columns, self._templates)
            self._long_url, self._made_up = long_urls(link.url, recipients.columns), (made_up_link(link.length),)
            return
        constants = [template.constant for each in self._templates.values() for template in each]
        for text in constants:
            if text is not None:
                check(text)
        if None not in constants:
            self._constant = self._render(Row(0, "", ()))

    def __call__(self, row: Row) -> Message:
        """Return the message of a row. Raises UsageError if the row cannot have one."""
        if self._constant:
            return self._constant
        message = self._render(row)  # which refuses the mark in a cell
        if not self._made_up:
            return message
        marked = self._fill(row, LINK_MARK)
        if self._gsm7:
            marked = {name: [_marked_gsm7(text) for text in each] for name, each in marked.items()}
        return message._replace(parameters=self._parameters(marked), link=Link(self._long_url(row)))

    def _render(self, row: Row) -> Message:
        """Return the message of a row, with the made-up link if the job has links."""
        filled = self._fill(row, *self._made_up)
        filled = {name: [self._check(text) for text in each] for name, each in filled.items()}
        if self._cost is not None:
            return Message(self._parameters(filled), 0, self._cost)
        ((name, (text,)),) = filled.items()
        written = segments.to_gsm7(text) if self._gsm7 else segments.Gsm7Text(text)
        size = segments.count(written.text).segments
        saved = 0 if self._gsm7 else segments.saved_by_gsm7(text)
        return Message({name: written.text}, size, size, saved, written.left_out)

    def _fill(self, row: Row, *link: str) -> dict[str, list[str]]:
        row = row._replace(values=(*row.values, *link))
        return {name: [template.fill(row) for template in each] for name, each in self._templates.items()}

    def _parameters(self, filled: Mapping[str, list[str]]) -> Parameters:
        return {name: each if name in self._arrays else each[0] for name, each in filled.items()}


def _marked_gsm7(text: str) -> str:
    return LINK_MARK.join(segments.to_gsm7(part).text for part in text.split(LINK_MARK))


def _check_link_column(columns: Sequence[str], parsed: Mapping[str, Sequence[Template]]) -> None:
    """Raise UsageError if the file has a column ``link``, or if no template uses the personal link."""
    if find_column(LINK, columns) is not None:
        raise UsageError("With --link, the file cannot have a column link", "Rename the column.")
    pieces = [piece for templates in parsed.values() for template in templates for piece in template]
    if not any(isinstance(piece, Placeholder) and piece.column == len(columns) for piece in pieces):
        raise UsageError("The message does not contain {link}", "Write {link} where the URL of --link belongs.")


# --- personal links


def made_up_link(length: int) -> str:
    """Return a link of this length, to show and count messages before the links exist."""
    return f"https://link.example/{'x' * length}"[:length]


def long_urls(text: str, columns: Sequence[str]) -> Callable[[Row], str]:
    """Return a function that returns the URL of a row. Raises UsageError if a cell could change its scheme or host."""
    origin = _ORIGIN.match(text)
    if origin is None:
        if text.lower().startswith(("http://", "https://")) and "{" in text:
            raise UsageError(
                "--link cannot have a column in its host", "Columns can be in the path and the query of the URL."
            )
        values.long_url(text)
        raise UsageError(f"--link must be an http or https URL, not {values.quote(text)}")
    if "{" in text.partition("#")[2]:
        raise UsageError("--link cannot have a column after #", "Columns can be in the path and the query of the URL.")
    template = Template.parse(text[origin.end() :], columns, "--link")
    values.long_url(origin[0] + "".join(each if isinstance(each, str) else "0" for each in template))

    def fill(row: Row) -> str:
        parts = [piece if isinstance(piece, str) else _encoded(piece, row) for piece in template]
        return values.long_url(origin[0] + "".join(parts))

    return fill


def _encoded(placeholder: Placeholder, row: Row) -> str:
    """Return a cell, percent-encoded. Raises UsageError if it is empty, or if it has a meaning in a path."""
    text = values.short_text(placeholder.fill(row), f"column {shorten(placeholder.name, 40)}")
    if text in (".", ".."):
        raise UsageError(f"column {shorten(placeholder.name, 40)} is {values.quote(text)}, which a URL cannot contain")
    return quote(text, safe="")


def _placeholder(inside: str, columns: Sequence[str], what: str) -> Placeholder:
    """Return the placeholder for a name in braces. Raises UsageError if the column does not exist."""
    name, bar, fallback = inside.partition("|")
    if not (name := name.strip()):
        raise UsageError(f"{{}} in {what} has no column name", f"Write it like {{name}}. {_LITERAL_BRACES}")
    index = find_column(name, columns)
    if index is None:
        fix = "For personal links, add --link URL." if name == LINK else f"Use one of these columns. {_LITERAL_BRACES}"
        raise UsageError(
            f"{what[0].upper()}{what[1:]} uses {{{shorten(name, 40)}}}, but the file has no such column. "
            f"{listed(columns)}",
            fix,
        )
    return Placeholder(index, columns[index], fallback if bar else None)
