"""The building blocks of the command tree: groups and commands that accept the global options.

Modules of commands that make one request do without ``from __future__ import annotations``: with it Typer compiles
every annotation of the command in each run, a tenth of a short one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, NamedTuple, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from msgctl.cli import options
from msgctl.cli.context import Context
from msgctl.operations import Operation

Function = TypeVar("Function", bound=Callable[..., Any])

EXAMPLES = "__msgctl_examples__"
PERFORMS = "__msgctl_performs__"
IN_BULK = "__msgctl_in_bulk__"
ASKS = "__msgctl_asks__"


def examples_of(command: Any) -> tuple[str, ...]:
    """Return the example command lines of a command."""
    return getattr(getattr(command, "callback", None), EXAMPLES, ())


def operation_of(command: Any) -> Operation | None:
    """Return the service's operation that a command performs, if any."""
    return getattr(getattr(command, "callback", None), PERFORMS, None)


def is_bulk(command: Any) -> bool:
    """Tell whether a command performs its operation for each recipient in a file."""
    return bool(getattr(getattr(command, "callback", None), IN_BULK, False))


def asks(command: Any) -> bool:
    """Tell whether a command asks for confirmation, so that --yes matters to it."""
    return is_bulk(command) or bool(getattr(getattr(command, "callback", None), ASKS, False))


class _Node:
    """What commands and groups have in common; mixed into Typer's own classes."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments. An error carries the command whose help explains it."""
        command: Any = super()
        ctx.obj.operation = operation_of(self)
        given = list(args)
        try:
            rest: list[str] = command.parse_args(ctx, args)
        except typer.TyperException as error:
            if type(error).__name__ == "MissingParameter":
                from msgctl.cli import errors

                if missing := errors.missing(ctx, given):
                    raise missing from None
            vars(error).update(ctx=getattr(error, "ctx", None) or ctx)
            raise
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line. Typer writes a required argument in braces, which is unusual."""
        command: Any = super()
        return [piece.strip("{}") for piece in command.collect_usage_pieces(ctx)]


class Command(_Node, TyperCommand):
    """A command that accepts the global options after its name."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        attributes["add_help_option"] = False  # --help is one of the global options
        own = params or []
        super().__init__(params=[*own, *options.beside(own)], **attributes)

    def invoke(self, ctx: Any) -> Any:
        ctx.obj.is_understood = True
        return super().invoke(ctx)


class CommandGroup(_Node, TyperGroup):
    """A group that accepts the global options before the name of its command."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        attributes["add_help_option"] = False
        super().__init__(params=[*(params or []), *options.global_options()], **attributes)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            from msgctl.cli import errors

            raise errors.no_command(ctx, args[0])
        return super().resolve_command(ctx, args)

    def listing(self, ctx: Any) -> Iterator[tuple[str | None, str, str]]:
        """Return heading, name and one line of help of each command, in the order of the help page."""
        for name in self.list_commands(ctx):
            child: Any = self.get_command(ctx, name)
            panel = child.rich_help_panel
            yield (panel if isinstance(panel, str) else None), name, child.get_short_help_str(200)


def group(help: str, cls: type[CommandGroup] = CommandGroup) -> typer.Typer:
    """Return a new group of commands, which alone shows its help; ``help`` begins with its one line."""
    app = typer.Typer(cls=cls, help=help, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_show_help)
    return app


def _show_help(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        show_help(ctx, ())


def show_help(ctx: Any, words: Sequence[str]) -> None:
    """Show the help of the context's command, or of the command below it that the words name."""
    command: Any = ctx.command
    with command.make_context(ctx.info_name, [*words, "--help"], parent=ctx.parent, obj=ctx.obj) as below:
        command.invoke(below)


def command(
    owner: typer.Typer,
    name: str,
    *examples: str,
    performs: Operation | None = None,
    in_bulk: bool = False,
    asks: bool = False,
    panel: str | None = None,
) -> Callable[[Function], Function]:
    """Add a function to a group as a command; ``examples`` are whole command lines, ``panel`` its heading in help.

    The function may take the `Context` of the run, and frozen dataclasses of options (see `_expanded`).
    """

    def decorate(function: Function) -> Function:
        callback = _expanded(function)
        vars(callback).update({EXAMPLES: examples, PERFORMS: performs, IN_BULK: in_bulk, ASKS: asks})
        owner.command(name, cls=Command, rich_help_panel=panel)(callback)
        return function

    return decorate


def _expanded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Typer that calls ``function`` with its `Context` and its dataclasses filled.

    A dataclass declares options that several commands share: each of its fields, ``Annotated[type, typer.Option(…)]``
    with a default, is a parameter of the command.
    """
    own = inspect.signature(function, eval_str=True).parameters
    makers: dict[str, Any] = {
        name: Context.of if each.annotation is Context else each.annotation
        for name, each in own.items()
        if each.annotation is Context or is_dataclass(each.annotation)
    }
    parts = {name: inspect.signature(make, eval_str=True).parameters for name, make in makers.items()}

    def callback(**given: Any) -> Any:
        for name, make in makers.items():
            given[name] = make(**{part: given.pop(part) for part in parts[name]})
        return function(**given)

    shown = [each for name, parameter in own.items() for each in parts.get(name, {name: parameter}).values()]
    callback.__doc__ = function.__doc__
    callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
    )
    return callback


SEND, VERIFY, TRACK, ACCOUNT, HELP, TEST = "Send", "Verify", "Track", "Account", "Help", "Test"


class Part(NamedTuple):
    """A group or a single command: its heading in the help, name, module in `msgctl.cli`, and one line of help."""

    panel: str
    name: str
    module: str
    help: str


PARTS = (
    Part(SEND, "sms", "sms", "Send text messages."),
    Part(SEND, "call", "call", "Make voice calls."),
    Part(SEND, "chatapp", "chatapp", "Send chat-app messages from templates."),
    Part(SEND, "job", "job", "Check, resume and report on bulk sends."),
    Part(VERIFY, "2fa", "twofa", "Send and verify codes by SMS, call or chat app."),
    Part(TRACK, "state", "message_state", "Check the delivery state of SMS and calls."),
    Part(TRACK, "url", "url", "Create short URLs and count their clicks."),
    Part(TRACK, "history", "history", "Messages sent from this machine, and their results."),
    Part(TRACK, "usage", "usage", "Messages and credits by day, month, country and more."),
    Part(ACCOUNT, "balance", "balance", "Show the credits left in the account."),
    Part(ACCOUNT, "block", "block", "Block numbers from receiving messages."),
    Part(ACCOUNT, "optout", "optout", "Manage numbers that must not get your messages."),
    Part(ACCOUNT, "profile", "profile", "Manage stored accounts: base URL, client and key."),
    Part(ACCOUNT, "api", "api", "Make any request with the profile's credentials."),
    Part(TEST, "sandbox", "sandbox", "Test with an emulator of the service on this machine."),
    Part(HELP, "doctor", "doctor", "Diagnose problems and suggest fixes."),
    Part(HELP, "commands", "help", "Describe every command, also as JSON for programs."),
    Part(HELP, "completion", "help", "Print the shell completion script."),
    Part(HELP, "help", "help", "Show help for a command."),
    Part(HELP, "version", "help", "Show the version."),
)


class Root(CommandGroup):
    """The root of the command tree. Its help needs no other module."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Children()  # type: ignore[assignment]

    def listing(self, ctx: Any) -> Iterator[tuple[str | None, str, str]]:  # noqa: ARG002
        return ((part.panel, part.name, part.help) for part in PARTS)


class _Children(Mapping[str, Any]):
    """Groups and commands by name, each created at its first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """Return the group of a module, or the one command that it has under the name of the part."""
        if name not in self._loaded:
            part = next((each for each in PARTS if each.name == name), None)
            if part is None:
                raise KeyError(name)
            holder = group("")
            app = import_module(f"msgctl.cli.{part.module}").app
            holder.add_typer(app, name=name, rich_help_panel=part.panel)
            tree: Any = typer.main.get_command(holder)
            found = tree.commands[name]
            self._loaded[name] = found.commands.get(name, found)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return (part.name for part in PARTS)

    def __len__(self) -> int:
        return len(PARTS)
