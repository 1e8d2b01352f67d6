"""The lists of a completion script, in the syntax of its shell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from msgctl import countries
from msgctl.cli.shells.outline import Option, Outline
from msgctl.cli.shells.values import TEXT, Values

Described = list[tuple[str, str]]
"""Words to offer, each with its help in a line."""


class Dialect(Protocol):
    """How a shell writes what the templates look up."""

    def branch(self, patterns: Iterable[str], body: str) -> str:
        """A branch of a case statement; a pattern may hold ``*``."""
        ...

    def offered(self, words: Described) -> str:
        """The statement that gives words to offer."""
        ...

    def common(self, words: Described) -> Iterator[str]:
        """The lines that add words to those of a branch."""
        ...

    def option(self, option: Option) -> str:
        """The statement that gives what is known of an option."""
        ...

    def values(self, values: Values) -> str:
        """The statement that gives the values of an argument."""
        ...


def of(dialect: Dialect, outline: Outline) -> dict[str, list[str]]:
    """The lines for each place of a template."""
    return {
        "COMMANDS": [
            dialect.branch([node.path], dialect.offered(list(node.commands.items())))
            for node in outline.nodes
            if node.commands
        ],
        "OPTIONS": [
            dialect.branch([node.path], dialect.offered(_spellings(node.options)))
            for node in outline.nodes
            if node.options
        ],
        "COMMON": list(dialect.common(_spellings(outline.common))),
        "OPTION": list(_options(dialect, outline)),
        "ARGUMENT": list(_arguments(dialect, outline)),
        "COUNTRIES": [" ".join(sorted(countries.names()))],
    }


def code(values: Values | None) -> str:
    """Values in one word of the script: empty for a flag, ``=`` and the words themselves, or where to look them up."""
    if values is None:
        return ""
    return f"={' '.join(values.words)}" if values.words else values.source


def _spellings(options: Iterable[Option]) -> Described:
    return [(name, option.help) for option in options for name in option.names]


def _options(dialect: Dialect, outline: Outline) -> Iterator[str]:
    """A command's own options stand first, so that they win over those that every command takes."""
    for node in outline.nodes:
        for option in node.options:
            yield dialect.branch([f"{node.path}:{name}" for name in option.names], dialect.option(option))
    for option in outline.common:
        yield dialect.branch([f"*:{name}" for name in option.names], dialect.option(option))


def _arguments(dialect: Dialect, outline: Outline) -> Iterator[str]:
    for node in outline.nodes:
        for number, values in enumerate(node.arguments, 1):
            if values != TEXT:
                more = "*" if node.many and number == len(node.arguments) else str(number)
                yield dialect.branch([f"{node.path}:{more}"], dialect.values(values))
