"""What the command tree is made of: groups and commands that take the common options.

Modules of commands that make one request do without ``from __future__ import annotations``: with it Typer compiles
every annotation of the command line at every context, a tenth of a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from msgctl.cli import common
from msgctl.errors import UsageError
from msgctl.operations import Operation

Function = TypeVar("Function", bound=Callable[..., Any])

EXAMPLES = "__msgctl_examples__"
PERFORMS = "__msgctl_performs__"
IN_BULK = "__msgctl_in_bulk__"


def examples_of(command: Any) -> tuple[str, ...]:
    """The command lines that show how a command is used."""
    return getattr(getattr(command, "callback", None), EXAMPLES, ())


def operation_of(command: Any) -> Operation | None:
    """The operation of the service that a command performs, if any."""
    return getattr(getattr(command, "callback", None), PERFORMS, None)


def is_bulk(command: Any) -> bool:
    """Whether a command performs its operation for each recipient in a file."""
    return bool(getattr(getattr(command, "callback", None), IN_BULK, False))


class _Node:
    """What commands and groups have in common. Mixed into Typer's own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a command line; whoever reports a mistake learns which command's help explains it."""
        command: Any = super()
        ctx.obj.operation = operation_of(self)
        try:
            rest: list[str] = command.parse_args(ctx, args)
        except typer.TyperException as error:
            vars(error).update(ctx=getattr(error, "ctx", None) or ctx)
            raise
        return rest


class Command(_Node, TyperCommand):
    """A command that takes the common options after its name."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        attributes["add_help_option"] = False  # --help is one of the common options
        own = params or []
        super().__init__(params=[*own, *common.options_beside(own)], **attributes)

    def invoke(self, ctx: Any) -> Any:
        ctx.obj.is_understood = True
        return super().invoke(ctx)


class Group(_Node, TyperGroup):
    """A group that takes the common options before the name of its command."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        attributes["add_help_option"] = False
        super().__init__(params=[*(params or []), *common.options()], **attributes)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first word names. Raises UsageError where there is none."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from msgctl.cli import mistakes

            raise mistakes.no_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def listing(self, ctx: Any) -> Iterator[tuple[str | None, str, str]]:
        """Heading, name and one line of help of each command, in the order of the help page."""
        for name in self.list_commands(ctx):
            child: Any = self.get_command(ctx, name)
            panel = child.rich_help_panel
            yield (panel if isinstance(panel, str) else None), name, child.get_short_help_str(200)


def group(help: str, cls: type[Group] = Group) -> typer.Typer:
    """A new group of commands; ``help`` begins with its one line."""
    app = typer.Typer(cls=cls, help=help, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_ask_for_command)
    return app


def _ask_for_command(ctx: typer.Context) -> None:
    """A group alone does nothing, so it says what it has."""
    if ctx.invoked_subcommand is None:
        commands = ", ".join(ctx.command.list_commands(ctx)) if isinstance(ctx.command, TyperGroup) else ""
        raise UsageError(f"{ctx.command_path} needs one of its commands: {commands}", f"See: {ctx.command_path} --help")


def command(
    owner: typer.Typer,
    name: str,
    *examples: str,
    performs: Operation | None = None,
    in_bulk: bool = False,
    panel: str | None = None,
) -> Callable[[Function], Function]:
    """Put a function into a group as a command; ``examples`` are whole command lines, ``panel`` its heading in help."""

    def decorate(function: Function) -> Function:
        setattr(function, EXAMPLES, examples)
        setattr(function, PERFORMS, performs)
        setattr(function, IN_BULK, in_bulk)
        owner.command(name, cls=Command, rich_help_panel=panel)(function)
        return function

    return decorate
