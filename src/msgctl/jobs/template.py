"""A text with ``{column}`` in it, and what it is for one row."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgctl.errors import UsageError
from msgctl.jobs.columns import find, listed, nearest, shown_name
from msgctl.jobs.rows import Nested, Row, RowError
from msgctl.values import quote

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_LITERAL_BRACES = "Write {{ and }} for braces in the text."


class UnfilledError(RowError):
    """A row has no text for a column that the template needs; ``reason`` says for which."""


class Template:
    """A text whose ``{column}`` are known to exist. Columns are text: no formats, no attributes, no expressions."""

    def __init__(self, pieces: Sequence[str], places: Sequence[tuple[int, int]], columns: Sequence[str]) -> None:
        """``places`` are (where in ``pieces``, which column); the pieces there are replaced."""
        self._pieces = pieces
        self._places = places
        self._all_columns = columns

    @classmethod
    def parse(cls, text: str, columns: Sequence[str], what: str = "the message") -> Template:
        """Find the columns in a text; ``{{`` and ``}}`` are braces. Raises UsageError for one that does not exist."""
        pieces: list[str] = []
        places: list[tuple[int, int]] = []
        end = 0
        for token in _TOKEN.finditer(text):
            pieces.append(text[end : token.start()])
            end = token.end()
            if token[0] in {"{{", "}}"}:
                pieces.append(token[0][0])
            elif token[1] is None:
                raise _lone_brace(token, what)
            else:
                places.append((len(pieces), _index(token[1].strip(), columns, what)))
                pieces.append("")
        return cls([*pieces, text[end:]], places, columns)

    @classmethod
    def of_column(cls, name: str, columns: Sequence[str]) -> Template:
        """The template that is one column, of this very name, and nothing else."""
        return cls(["", ""], [(0, columns.index(name))], columns)

    @property
    def text(self) -> str:
        """The text without what comes from the columns."""
        return "".join(self._pieces)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are filled in, each once, as the file spells them."""
        return tuple(dict.fromkeys(self._all_columns[index] for _, index in self._places))

    @property
    def is_constant(self) -> bool:
        """Whether the text is the same for every row."""
        return not self._places

    def fill(self, row: Row) -> str:
        """The text for a row. Raises UnfilledError rather than leave a hole in it."""
        pieces = [*self._pieces]
        for place, index in self._places:
            value = row.values[index]
            if not value or value.isspace():
                raise UnfilledError(self._why_unfilled(index, value), row.phone)
            pieces[place] = value
        return "".join(pieces)

    def _why_unfilled(self, index: int, value: str) -> str:
        holds = "holds an object or a list, not text" if isinstance(value, Nested) else "is empty"
        return f"column {shown_name(self._all_columns[index])} {holds}"


def _index(name: str, columns: Sequence[str], what: str) -> int:
    if not name:
        raise UsageError(f"{{}} in {what} names no column", f"Name one, as in {{name}}. {_LITERAL_BRACES}")
    index = find(name, columns)
    if index is None:
        near = nearest(name, columns)
        suggestion = f"Did you mean {{{near}}}? " if near else ""
        raise UsageError(
            f"{what} asks for {{{shown_name(name)}}}, and the file has no such column: {listed(columns)}",
            suggestion + _LITERAL_BRACES,
        )
    return index


def _lone_brace(token: re.Match[str], what: str) -> UsageError:
    fault = "is not closed" if token[0] == "{" else "has none that opens it"
    beginning = token.string[max(token.start() - 10, 0) : token.start() + 20]
    return UsageError(
        f"a brace in {what} {fault}: '{token[0]}' at position {token.start() + 1}, in {quote(beginning)}",
        _LITERAL_BRACES,
    )
