"""Fill message templates: text with ``{column}`` placeholders, rendered for each row.

``{column|text}`` uses the text if the cell is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgctl import segments
from msgctl.errors import UsageError
from msgctl.lists.formats import Nested
from msgctl.lists.header import find_column, in_words
from msgctl.lists.rows import Recipient, is_error_value
from msgctl.lists.table import Recipients
from msgctl.text import capitalized, nearest, plural, shorten

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_LITERAL_BRACES = "Write {{ and }} for braces in the text."
_END_OF_WORD = re.compile(r"[\s{}|,.;:!?]")
_FOREIGN = re.compile(r"\[([^][{}]+)\]|<<?([^<>{}]+)>>?|«([^«»{}]+)»|%([^%{}]+)%")
"""A placeholder as mail merges write it: ``[name]``, ``<<name>>``, ``«name»`` or ``%name%``."""
_DOUBLE = re.compile(r"(?<!\{)\{\{(\s*[^{}\s]+\s*)\}\}(?!\})")
"""A word in double braces, as other programs write a placeholder. ``{{{name}}}`` is a placeholder in braces."""

Parameters = Mapping[str, str | list[str]]
"""Request parameters that come from a row, by wire name."""


class Placeholder(NamedTuple):
    """A column, and the text for an empty cell of it. It is not ``is_typed`` if the message is all columns."""

    column: int
    name: str
    fallback: str | None = None
    is_typed: bool = True

    def fill(self, row: Recipient) -> str:
        """Return the text of the cell in a row, without spaces around it.

        Raises UsageError if it is empty, not text, or an error value of a spreadsheet.
        """
        value = row.values[self.column]
        text = value.strip()
        if text and not isinstance(value, Nested) and not is_error_value(text):
            return text
        if not text and self.fallback is not None:
            return self.fallback
        name = shorten(self.name, 40)
        if isinstance(value, Nested):
            raise UsageError(f'column "{name}" contains an object or a list, not text')
        if text:
            raise UsageError(f'column "{name}" has the error value {text}')
        use = f"write {{{name}|text}} for a default"
        if not self.is_typed:
            use = f"fill the cell, or give the VALUEs of the template, such as '{{{name}|text}}' for a default"
        raise UsageError(f'column "{name}" is empty; {use}')


class Template(tuple[str | Placeholder, ...]):
    """The literal text and the placeholders of a message, without formats, attributes or expressions."""

    __slots__ = ()

    @classmethod
    def parse(
        cls, text: str, columns: Sequence[str], what: str = "the message", header_row: int | None = None
    ) -> Template:
        """Find the placeholders in a text; ``{{`` and ``}}`` are braces. Raises UsageError for an unknown column.

        Errors refer to the text as ``what``. ``header_row`` is the row of the columns, if the file has a header.
        """
        pieces: list[str | Placeholder] = []
        end = opened = 0
        for token in _TOKEN.finditer(text):
            if token[0] == "}}":
                _refuse_double(text[opened : token.start()], columns, what)
            opened = token.end() if token[0] == "{{" else len(text)
            pieces.append(text[end : token.start()])
            end = token.end()
            if token[1] is not None:
                pieces.append(_placeholder(token[1], columns, what, header_row))
            elif token[0] in "{}":
                raise _unmatched(token, columns, what)
            else:
                pieces.append(token[0][0])
        return cls([*pieces, text[end:]])

    @property
    def constant(self) -> str | None:
        """The text, if it is the same for every row."""
        literals = [piece for piece in self if isinstance(piece, str)]
        return "".join(literals) if len(literals) == len(self) else None

    def fill(self, row: Recipient) -> str:
        """Return the text for a row. Raises UsageError if a cell is empty."""
        return "".join([piece if isinstance(piece, str) else piece.fill(row) for piece in self])


class Message(NamedTuple):
    """The message of one recipient, its segments and its estimated credits.

    ``left_out`` lists the symbols that --gsm7 left out.
    """

    parameters: Parameters
    segments: int
    cost: int
    left_out: tuple[str, ...] = ()


Render = Callable[[Recipient], Message]
"""Returns the message of a row. Raises UsageError if the row cannot have one."""


class Renderer:
    """Renders the message of each row. Raises UsageError for templates that no row can fill.

    ``templates`` are by wire name. A sequence of templates becomes an array; an empty one contains all columns except
    the phone column. ``check`` returns the text to send or raises UsageError. An SMS has ``max_segments`` and costs one
    credit per segment; ``gsm7`` converts its text to GSM-7. Without ``max_segments``, each message costs one credit.
    """

    def __init__(
        self,
        recipients: Recipients,
        templates: Mapping[str, str | Sequence[str]],
        check: Callable[[str], str],
        *,
        gsm7: bool = False,
        max_segments: int | None = None,
    ) -> None:
        self._check = check
        self._max_segments = max_segments
        self._gsm7 = gsm7
        self._arrays: set[str] = set()
        self._templates: dict[str, list[Template]] = {}
        columns, header_row = recipients.columns, recipients.source.header_row
        for name, text in templates.items():
            if isinstance(text, str):
                self._templates[name] = [Template.parse(text, columns, header_row=header_row)]
            else:
                self._arrays.add(name)
                parsed = [Template.parse(element, columns, header_row=header_row) for element in text]
                self._templates[name] = parsed or _other_columns(recipients)
        self.not_filled: dict[str, str] = {}
        """Placeholders of other programs, which stay as they are, each with its column."""
        self.in_braces: list[str] = []
        """Words in double braces that are not columns."""
        for template in templates.values():
            text = "".join(template)
            self.not_filled |= _foreign(text, columns)
            self.in_braces += _DOUBLE.findall(text)
        self.would_save = False
        """Whether a message would need fewer segments with ``gsm7``."""
        self._constant: Message | None = None
        constants = [template.constant for parts in self._templates.values() for template in parts]
        for constant in constants:
            if constant is not None:
                check(constant)
        if None not in constants:
            self._constant = self._render(Recipient(0, "", ()))

    def __call__(self, row: Recipient) -> Message:
        """Return the message of a row. Raises UsageError if the row cannot have one."""
        if self._constant:
            return self._constant
        return self._render(row)

    def _render(self, row: Recipient) -> Message:
        filled: dict[str, list[str]] = {}
        for name, templates in self._templates.items():
            filled[name] = [self._check(template.fill(row)) for template in templates]
        if self._max_segments is None:
            return Message(self._parameters(filled), 0, 1)
        ((name, (text,)),) = filled.items()
        written = segments.to_gsm7(text) if self._gsm7 else segments.Gsm7Text(text)
        size = segments.count(written.text)
        if size.segments > self._max_segments:
            raise UsageError(
                f"the message needs {plural(size.segments, 'segment')}, more than {self._max_segments}; "
                f"to allow it, add --max-segments {size.segments}"
            )
        if size.not_gsm7 and not (self._gsm7 or self.would_save):  # one message is enough for the note
            self.would_save = segments.saved_by_gsm7(text) > 0
        return Message({name: written.text}, size.segments, size.segments, written.left_out)

    def _parameters(self, filled: Mapping[str, list[str]]) -> Parameters:
        return {name: texts if name in self._arrays else texts[0] for name, texts in filled.items()}


def _other_columns(recipients: Recipients) -> list[Template]:
    """Return a template for each column except the phone column."""
    return [
        Template([Placeholder(index, name, is_typed=False)])
        for index, name in enumerate(recipients.columns)
        if name and name != recipients.source.column
    ]


def _foreign(text: str, columns: Sequence[str]) -> dict[str, str]:
    """Return the placeholders of other programs in a text, each with its column."""
    names = {match[0]: match[match.lastindex or 0].strip() for match in _FOREIGN.finditer(text)}
    return {placeholder: name for placeholder, name in names.items() if find_column(name, columns) is not None}


def _refuse_double(inside: str, columns: Sequence[str], what: str) -> None:
    """Raise UsageError for a column in double braces, as other programs write a placeholder."""
    name = inside.partition("|")[0].strip()
    if name and find_column(name, columns) is not None:
        raise UsageError(
            f"{{{{{shorten(inside, 40)}}}}} in {what} is not a placeholder: it would become {{{shorten(inside, 40)}}}",
            f"Write {{{shorten(inside.strip(), 40)}}} for the value in the row.",
        )


def _unmatched(brace: re.Match[str], columns: Sequence[str], what: str) -> UsageError:
    """Return the error for a single brace. If the name of a column is beside it, the hint closes the placeholder."""
    if brace[0] == "{":
        name = _END_OF_WORD.split(brace.string[brace.end() :], maxsplit=1)[0]
    else:
        name = _END_OF_WORD.split(brace.string[: brace.start()])[-1]
    hint = _LITERAL_BRACES
    if name and find_column(name, columns) is not None:
        hint = f"Write {{{shorten(name, 40)}}} for the value in the row. {_LITERAL_BRACES}"
    return UsageError(f'Unmatched "{brace[0]}" at position {brace.start() + 1} of {what}', hint)


def _placeholder(inside: str, columns: Sequence[str], what: str, header_row: int | None) -> Placeholder:
    """Return the placeholder for a name in braces. Raises UsageError if the column does not exist."""
    name, bar, fallback = inside.partition("|")
    if not (name := name.strip()):
        raise UsageError(f"{{}} in {what} has no column name", f"Write it like {{name}}. {_LITERAL_BRACES}")
    index = find_column(name, columns)
    if index is None:
        use = "Use one of these columns."
        if near := nearest(name, columns):
            use = f"Did you mean {{{shorten(near, 40)}}}?"
        if header_row is not None:
            use += f" If row {header_row} is not the header, use --header-row N."
        raise UsageError(
            f"{capitalized(what)} uses {{{shorten(name, 40)}}}, but the file has no such column. {in_words(columns)}",
            f"{use} {_LITERAL_BRACES}",
        )
    default = fallback if bar else None
    return Placeholder(index, columns[index], default)
