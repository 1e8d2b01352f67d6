"""Options and arguments: their groups, the panels of the help, and their parsers.

The parsers have the rules and the messages of `msgctl.values`. An integer or a ``Literal`` in Typer would accept "1_0",
" 5" and digits of other scripts. Its errors do not contain the value, so a message could neither quote it nor suggest
the nearest choice. (Checked with Typer 0.28.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar, dataclass_transform

import typer

from msgctl import values

Value = TypeVar("Value")

MAX_DELIVERY_WAIT = 31 * 86400.0
"""The longest time to wait for a delivery state, in seconds."""

GLOBAL = "Global options"
MESSAGE, RECIPIENTS, SAFETY, WHEN, SPEED, DELIVERY = "Message", "Recipients", "Safety", "When", "Speed", "Delivery"
ACCOUNT, PREFERENCES, ADDRESS, BEHAVIOUR = "Account", "Defaults", "Address", "Behaviour"
PANELS = (None, ADDRESS, ACCOUNT, PREFERENCES, MESSAGE, RECIPIENTS, SAFETY, WHEN, SPEED, DELIVERY, BEHAVIOUR, GLOBAL)
"""The panels of options, in the order of a page."""


@dataclass_transform(eq_default=False)
class OptionGroup:
    """A group of options and arguments, which a command takes as one parameter (see `msgctl.cli.shell.tree.expanded`).

    Each field of a subclass, ``Annotated[type, typer.Option(…)]``, is an option of the command. Subclasses are
    dataclasses without ``__eq__`` and ``__repr__``: with both, a class takes twice as long to define, and many of them
    would delay a short run.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        dataclass(eq=False, repr=False)(cls)

    @property
    def is_empty(self) -> bool:
        return all(value is None or value is False for value in vars(self).values())


def parser(convert: Callable[..., Value], *arguments: Any) -> Callable[[Any], Value]:
    """Return a parser that passes the text and ``arguments`` to a function.

    Typer parses even the default of an option, which is a value already.
    """
    return lambda value: convert(value, *arguments) if isinstance(value, str) else value


class Choice:
    """A parser that accepts one of several choices, in upper or lower case. `commands --json` lists the ``choices``."""

    def __init__(self, choices: Sequence[str], what: str) -> None:
        self.choices = tuple(choices)
        self._what = what

    def __call__(self, text: str) -> str:
        return values.choice(text, self.choices, self._what)

    def complete(self, incomplete: str) -> list[str]:  # noqa: ARG002
        """Return all choices for a shell. Typer keeps the choices that begin with the typed text."""
        return [*self.choices]


class _Goal(Choice):
    """The parser of --until. It accepts the Spanish words of services for these states, too."""

    def __call__(self, text: str) -> str:
        return super().__call__({"enviado": "sent", "entregado": "delivered"}.get(text.lower(), text))


class Chosen(tuple[str, ...]):
    """Several choices. This is a class, because Typer reads ``tuple[str, ...]`` as an option with several values."""


class Choices(Choice):
    """A parser that accepts several choices, separated by commas, and returns them as `Chosen`, each once."""

    def __call__(self, value: Any) -> Any:
        if not isinstance(value, str):  # the default
            return value
        parse = super().__call__
        return Chosen(dict.fromkeys(parse(name.strip()) for name in value.split(",")))

    def complete(self, incomplete: str) -> list[str]:
        """Return the choices after the ones that were typed already."""
        typed, comma, _ = incomplete.rpartition(",")
        return [f"{typed}{comma}{choice}" for choice in self.choices if choice not in typed.split(",")]


def value_option(
    name: str,
    metavar: str,
    help: str,
    convert: Callable[..., Any] | None = None,
    *arguments: Any,
    panel: str | None = None,
    complete: Callable[..., list[str]] | None = None,
) -> Any:
    """Return an option with a value, which ``convert`` parses with ``arguments``."""
    parse = None if convert is None else parser(convert, *arguments)
    return typer.Option(name, metavar=metavar, help=help, parser=parse, autocompletion=complete, rich_help_panel=panel)


def number_option(name: str, help: str, least: int = 0, most: int | None = None, *, panel: str | None = None) -> Any:
    return value_option(name, "N", help, values.whole_number, name, least, most, panel=panel)


def text_option(name: str, metavar: str, help: str, *, panel: str | None = None) -> Any:
    return value_option(name, metavar, help, values.short_text, name, panel=panel)


def choice_option(name: str, metavar: str, help: str, choice: Choice, *, panel: str | None = None) -> Any:
    return typer.Option(name, metavar=metavar, help=help, parser=choice, rich_help_panel=panel)


def max_wait_option(help: str, panel: str | None = None) -> Any:
    return value_option("--max-wait", "S", help, values.seconds, "--max-wait", MAX_DELIVERY_WAIT, panel=panel)


def until_option(help: str, panel: str | None = None) -> Any:
    return choice_option("--until", "STATE", help, _Goal(("sent", "delivered"), "state"), panel=panel)


def date_option(name: str, help: str) -> Any:
    """Return an option for a date.

    It has a callback instead of a parser, because "7d" depends on today's date, which the `Context` has.
    """
    return typer.Option(name, metavar="DATE", help=help, parser=str, callback=_day)


def save_option(help: str = "Write the rows to FILE.xlsx or FILE.csv instead.", *, panel: str | None = None) -> Any:
    """Return the option --save, whose value is a path that can be written."""
    return value_option("--save", "FILE", help, _path, panel=panel)


def _path(text: str) -> Path:
    from msgctl.output import spreadsheet

    path = Path(text)
    spreadsheet.check_target(path)
    return path


def _day(ctx: typer.Context, value: str | None) -> date | None:
    return None if value is None else values.day(value, ctx.obj.now().date())
