"""What the command tree is made of: groups and commands that take the common options, and their help.

Help is drawn by Rich on a terminal with colour, and is plain text elsewhere, where it is read by scripts and people
who pipe it; plain help also takes half the time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from msgctl.cli import common
from msgctl.cli.terminal import has_color
from msgctl.errors import UsageError
from msgctl.operations import Operation

Function = TypeVar("Function", bound=Callable[..., Any])

EXAMPLES = "__msgctl_examples__"
PERFORMS = "__msgctl_performs__"


def examples_of(command: Any) -> tuple[str, ...]:
    """The command lines that show how a command is used."""
    return getattr(getattr(command, "callback", None), EXAMPLES, ())


def operation_of(command: Any) -> Operation | None:
    """The operation of the service that a command performs, if any."""
    return getattr(getattr(command, "callback", None), PERFORMS, None)


class _Help:
    """Help that suits where it is read. Mixed into Typer's command and group."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        command: Any = self
        rich = command.rich_markup_mode = "rich" if has_color(sys.stdout, ctx.find_root().obj) else None
        super().format_help(ctx, formatter)  # type: ignore[misc]
        if rich:
            _print_rich_examples(examples_of(self))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments in the form of the manual pages: `PHONE...`, `[VALUE]...`."""
        command: Any = self
        arguments = [each for each in command.get_params(ctx) if each.param_type_name == "argument"]
        pieces = ["[OPTIONS]", *(each.metavar for each in arguments)]
        return [*pieces, "COMMAND"] if isinstance(command, TyperGroup) else pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The plain form: arguments, the command's own options, then those that every command takes."""
        command: Any = self
        sections: dict[str, list[Any]] = {"Arguments": [], "Options": [], common.PANEL: []}
        for parameter in command.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                sections["Arguments"].append(record)
            else:
                sections[getattr(parameter, "rich_help_panel", None) or "Options"].append(record)
        if isinstance(command, TyperGroup):
            self._format_commands(ctx, formatter)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _format_commands(self, ctx: Any, formatter: Any) -> None:
        command: Any = self
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in command.list_commands(ctx):
            child = command.get_command(ctx, name)
            panel = getattr(child, "rich_help_panel", None) or "Commands"
            panels.setdefault(panel, []).append((name, child.get_short_help_str(200)))
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        examples = examples_of(self)
        if examples:
            formatter.write_paragraph()
            formatter.write("Examples:\n" + "".join(f"  {line}\n" for line in examples))


def _print_rich_examples(examples: Iterable[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    if examples:
        console.print(Text("Examples:", style="bold"))
        for line in examples:
            console.print(Text(f"  {line}"))
        console.print()


class Command(_Help, TyperCommand):
    """A command that takes the common options after its name."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        super().__init__(params=[*(params or []), *common.options()], **attributes)


class Group(_Help, TyperGroup):
    """A group that takes the common options before the name of its command."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        super().__init__(params=[*(params or []), *common.options()], **attributes)


def group(help: str) -> typer.Typer:
    """A new group of commands; ``help`` is its one line."""
    app = typer.Typer(cls=Group, help=help, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_ask_for_command)
    return app


def _ask_for_command(ctx: typer.Context) -> None:
    """A group alone does nothing, so it says what it has."""
    if ctx.invoked_subcommand is None:
        commands = ", ".join(ctx.command.list_commands(ctx)) if isinstance(ctx.command, TyperGroup) else ""
        raise UsageError(f"{ctx.command_path} needs one of its commands: {commands}", f"See: {ctx.command_path} --help")


def command(
    owner: typer.Typer, name: str, *examples: str, performs: Operation | None = None
) -> Callable[[Function], Function]:
    """Put a function into a group as a command; ``examples`` are whole command lines."""

    def decorate(function: Function) -> Function:
        setattr(function, EXAMPLES, examples)
        setattr(function, PERFORMS, performs)
        owner.command(name, cls=Command)(function)
        return function

    return decorate
