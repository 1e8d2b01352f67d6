"""The building blocks of the command tree: groups and commands that accept the global options.

Modules of commands that make one request omit ``from __future__ import annotations``, because Typer would then compile
every annotation of the command in each run, which takes a tenth of a short run.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from msgctl.cli.context import Context
from msgctl.cli.global_options import global_options
from msgctl.cli.help import show, write_options
from msgctl.cli.option_group import OptionGroup
from msgctl.errors import UsageError
from msgctl.operations import Effect, Operation
from msgctl.text import clean

Function = TypeVar("Function", bound=Callable[..., Any])


class CommandFacts(NamedTuple):
    """The facts about a command, from the decorator `command`.

    ``performs`` is the service's operation; a command with several operations has only the first, ``begins_with``.
    ``effect`` is the effect on the service, or the strongest one if the operation depends on the command line; None for
    a command that makes no request. ``dry_run_help`` is the help of --dry-run, if it is not the usual one. ``output``
    has the names of the output fields, unless the service or the job determines them.
    """

    examples: tuple[str, ...] = ()
    performs: Operation | None = None
    begins_with: Operation | None = None
    effect: Effect | None = None
    in_bulk: bool = False
    asks: bool = False
    has_dry_run: bool = False
    dry_run_help: str = ""
    output: Sequence[str] = ()


def children_of(command: Any) -> Iterator[tuple[str, Any]]:
    """Return the commands of a group with their names; empty for a command."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield name, command.get_command(None, name)


class _WithGlobalOptions:
    """A command or group that accepts the global options after its name, and knows the facts of its command."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        attributes |= {
            "params": [*(params or []), *global_options()],
            "add_help_option": False,  # --help is one of the global options
        }
        super().__init__(**attributes)
        self.facts: CommandFacts = getattr(attributes.get("callback"), "facts", CommandFacts())


class Command(_WithGlobalOptions, TyperCommand):
    """A command of msgctl."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after refusing an option that would become the value of another.

        Typer accepts any text as a value, and some of its errors lack the context, which refers to the command's help.
        """
        ctx.obj.operation = self.facts.begins_with
        params: list[Any] = [each for each in self.params if each.param_type_name == "option"]
        options = {name: each for each in params for name in (*each.opts, *each.secondary_opts)}
        longest = {name: max(each.opts, key=len) for name, each in options.items() if not (each.is_flag or each.count)}
        typed = args[: args.index("--")] if "--" in args else args
        for before, each in pairwise(("", *typed)):
            # An empty variable in -m $TEXT --dry-run would otherwise send "--dry-run", and -m=Hello "=Hello".
            name = each.partition("=")[0] if each.startswith("--") else each
            if before in longest and name in options:
                hint = f"To give it as the value: {clean(shlex.quote(f'{longest[before]}={each}'))}"
                raise UsageError(f"{before} needs a value; {name} is an option", hint)
            if before not in longest and each[2:3] == "=" and (short := each[:2]) in longest:
                hint = f"Write {short} {options[short].metavar} or {longest[short]}={options[short].metavar}."
                raise UsageError(f"{short} takes its value after a space, not after =", hint)
        try:
            left = super().parse_args(ctx, args)
        except typer.TyperException as error:
            vars(error).update(ctx=ctx)
            raise
        ctx.obj.is_understood = True
        if ctx.obj.options.dry_run and self.facts.effect is None:
            raise UsageError(f"{ctx.command_path} makes no request, so --dry-run cannot show one")
        return left

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of a plain help page in panels."""
        write_options(self.params, ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line. Typer writes a required argument in braces, which is unusual."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class UnknownCommandError(typer.TyperException):
    """A name that is not a command of a group; ``argument`` follows it."""

    def __init__(self, ctx: Any, name: str, argument: str = "") -> None:
        super().__init__(f"Unknown command {name}")
        self.ctx = ctx
        self.name = name
        self.argument = argument


class CommandGroup(_WithGlobalOptions, TyperGroup):
    """A group of commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names. Typer's error for an unknown one has no separate class."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise UnknownCommandError(ctx, *args[:2])
        return super().resolve_command(ctx, args)


def group(help: str, cls: type[CommandGroup] = CommandGroup) -> typer.Typer:
    """Return a new group of commands. Without a command it shows its help; ``help`` begins with its one line."""
    app = typer.Typer(cls=cls, help=help, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True)(_show_help)
    return app


def _show_help(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        show(ctx)


def command(
    owner: typer.Typer,
    name: str,
    *examples: str,
    performs: Operation | None = None,
    begins_with: Operation | None = None,
    effect: Effect | None = None,
    in_bulk: bool = False,
    asks: bool = False,
    has_dry_run: bool = True,
    dry_run_help: str = "",
    output: Sequence[str] = (),
    panel: str | None = None,
) -> Callable[[Function], Function]:
    """Add a function to a group as a command; ``examples`` are whole command lines, ``panel`` its heading in help.

    The function may take the `Context` of the run, and groups of options (see `expanded`).
    """
    effect = performs.effect if performs else effect
    has_dry_run = has_dry_run and effect is not None
    facts = CommandFacts(
        examples,
        performs,
        begins_with or performs,
        effect,
        in_bulk,
        asks or in_bulk,
        has_dry_run,
        dry_run_help,
        output,
    )

    def decorate(function: Function) -> Function:
        callback = expanded(function)
        vars(callback)["facts"] = facts
        owner.command(name, cls=Command, rich_help_panel=panel)(callback)
        return function

    return decorate


def expanded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Typer that calls ``function`` with its `Context`, and its groups of options filled.

    Each field of an `OptionGroup` is a parameter of the command.
    """
    own = _parameters(function)
    groups: dict[str, Any] = {}
    contexts: list[str] = []
    for name, each in own.items():
        if each.annotation is Context:
            contexts.append(name)
            own[name] = each.replace(annotation=typer.Context)
        elif isinstance(each.annotation, type) and issubclass(each.annotation, OptionGroup):
            groups[name] = each.annotation
    parts = {name: _parameters(make) for name, make in groups.items()}

    def callback(**given: Any) -> Any:
        for name in contexts:
            given[name] = given[name].obj
        for name, make in groups.items():
            given[name] = make(**{part: given.pop(part) for part in parts[name]})
        return function(**given)

    shown = [each for name, parameter in own.items() for each in parts.get(name, {name: parameter}).values()]
    callback.__doc__ = function.__doc__
    # Typer reads the options of a command from the signature of its function, and has no groups of options.
    callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown]
    )
    return callback


def _parameters(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function by name, with their annotations evaluated."""
    hints = get_type_hints(make, include_extras=True)
    return {name: each.replace(annotation=hints[name]) for name, each in inspect.signature(make).parameters.items()}


SEND, VERIFY, TRACK, ACCOUNT, HELP, TEST = "Send", "Verify", "Track", "Account", "Help", "Test"


class Part(NamedTuple):
    """A group or a single command: its heading in the help, name, module in `msgctl.commands`, and one line of help."""

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
    Part(TRACK, "state", "state", "Check the delivery state of SMS and calls."),
    Part(TRACK, "url", "url", "Create short URLs and count their clicks."),
    Part(TRACK, "history", "history", "Messages sent from this machine, and their results."),
    Part(TRACK, "usage", "usage", "Messages and credits by day, month, country and more."),
    Part(ACCOUNT, "balance", "balance", "Show the credits left in the account."),
    Part(ACCOUNT, "block", "block", "Block numbers from receiving messages."),
    Part(ACCOUNT, "optout", "optout", "Manage numbers that must not get your messages."),
    Part(ACCOUNT, "profile", "profile", "Manage accounts: base URL, client and key."),
    Part(ACCOUNT, "api", "api", "Make any request with the profile's credentials."),
    Part(TEST, "sandbox", "sandbox", "Test with an emulator of the service on this machine."),
    Part(HELP, "doctor", "doctor", "Diagnose problems and suggest fixes."),
    Part(HELP, "commands", "help", "Describe every command, also as JSON for programs."),
    Part(HELP, "completion", "help", "Print the shell completion script."),
    Part(HELP, "help", "help", "Show help for a command."),
)


class Root(CommandGroup):
    """The root of the command tree, which loads a group or command when it is first needed."""

    parts = PARTS

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [part.name for part in PARTS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return the group of a module, or the one command that it has under the name of the part."""
        part = next((each for each in PARTS if each.name == cmd_name), None)
        if part is not None and cmd_name not in self.commands:
            app: Any = typer.main.get_command(import_module(f"msgctl.commands.{part.module}").app)
            found = self.commands[cmd_name] = app.commands.get(cmd_name, app)
            found.name, found.rich_help_panel = cmd_name, part.panel
        return self.commands.get(cmd_name)
