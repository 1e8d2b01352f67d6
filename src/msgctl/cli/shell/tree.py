"""The building blocks of the command tree: groups and commands that accept the global options.

Modules of commands that make one request omit ``from __future__ import annotations``, because Typer would then compile
every annotation of the command in each run, which takes a tenth of a short run.
"""

from __future__ import annotations

import copy
import inspect
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from msgctl.cli.shell.context import Context
from msgctl.cli.shell.global_options import global_options
from msgctl.cli.shell.help import PANELS, SAFETY, show
from msgctl.cli.shell.option_group import OptionGroup
from msgctl.errors import UsageError
from msgctl.operations import Effect, Operation
from msgctl.text import clean

Function = TypeVar("Function", bound=Callable[..., Any])
JSONShape = Literal["response", "responses", "object", "list", "lines"]
"""What --json prints: the service's document or several, msgctl's own object or list, or one object per line."""


class CommandFacts(NamedTuple):
    """The facts about a command, from the decorator `command`.

    ``performs`` is the service's operation; a command with several operations has only the first, ``begins_with``.
    ``effect`` is the effect on the service, or the strongest one if the operation depends on the command line; None for
    a command that makes no request. ``dry_run_help`` is the help of --dry-run, if it is not the usual one. ``output``
    has the columns of csv and tsv; None for the columns of the operation or of a job. ``json`` is the shape of --json.
    """

    examples: tuple[str, ...] = ()
    performs: Operation | None = None
    begins_with: Operation | None = None
    effect: Effect | None = None
    in_bulk: bool = False
    asks: bool = False
    has_dry_run: bool = False
    dry_run_help: str = ""
    output: Sequence[str] | None = None
    json: JSONShape = "object"

    @property
    def columns(self) -> Sequence[str]:
        """The columns of csv and tsv, in their order."""
        if self.output is not None:
            return self.output
        if self.in_bulk:
            from msgctl.jobs.report import JOB_FIELDS

            return JOB_FIELDS
        if self.performs is None:
            return ()
        from msgctl.output.fields import of_record

        return of_record(self.performs.record)


def children_of(command: Any) -> Iterator[tuple[str, Any]]:
    """Return the commands of a group with their names; empty for a command."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield name, command.get_command(None, name)


class _WithGlobalOptions:
    """A command or group that accepts the global options after its name, and knows the facts of its command."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        own = params or []
        self.facts: CommandFacts = getattr(attributes.get("callback"), "facts", CommandFacts())
        shared = [self._shown(option, own) for option in global_options()]
        # Typer shows the panels in the order of their first options.
        order = {panel: place for place, panel in enumerate(PANELS)}
        everything = sorted([*own, *shared], key=lambda param: order.get(param.rich_help_panel, len(order) - 2))
        attributes |= {"params": everything, "add_help_option": False}  # --help is one of the global options
        super().__init__(**attributes)

    def _shown(self, option: Any, own: Sequence[Any]) -> Any:
        """Return a global option as the command's help shows it, -n only if it makes a request, -y only if it asks."""
        if option.name not in ("dry_run", "yes"):
            return option
        shown = copy.copy(option)
        if option.name == "yes":
            shown.hidden = not self.facts.asks
        else:
            shown.hidden = not self.facts.has_dry_run
            shown.help = self.facts.dry_run_help or option.help
        if any(param.rich_help_panel == SAFETY for param in own):
            shown.rich_help_panel = SAFETY
        return shown

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write Typer's help. It reads [x] in a text as markup, and shows a type beside arguments and -v: <lambda>."""
        from rich.markup import escape

        page: Any = copy.copy(self)
        page.help, page.epilog = escape(page.help or ""), escape(page.epilog or "")
        page.params = [copy.copy(param) for param in page.params]
        for param in page.params:
            param.help = escape(param.help or "")
            if param.param_type_name == "argument" or param.count:
                param.type = copy.copy(param.type)
                param.type.get_metavar = lambda **_: ""
            if param.secondary_opts:  # in 80 columns, two names beside each other would be cut
                param.opts, param.secondary_opts = [param.opts[0].replace("--", "--[no-]")], []
        base: Any = super(_WithGlobalOptions, page)
        base.format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line. Typer writes a required argument in braces, which is unusual."""
        base: Any = super()
        return [piece.strip("{}") for piece in base.collect_usage_pieces(ctx)]


class Command(_WithGlobalOptions, TyperCommand):
    """A command of msgctl."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, after refusing an option that would become the value of another.

        Typer accepts any text as a value. Some of its errors lack the context, which the hint about the command's help
        needs.
        """
        if ctx.resilient_parsing:  # a shell completes the command line
            return super().parse_args(ctx, args)
        ctx.obj.command = ctx.command_path.removeprefix("msgctl ")
        ctx.obj.operation = self.facts.begins_with
        ctx.obj.effect = self.facts.effect
        params: list[Any] = [param for param in self.params if param.param_type_name == "option"]
        options = {name: param for param in params for name in (*param.opts, *param.secondary_opts)}
        valued = {name: param for name, param in options.items() if not (param.is_flag or param.count)}
        longest = {name: max(param.opts, key=len) for name, param in valued.items()}
        typed = args[: args.index("--")] if "--" in args else args
        for before, word in pairwise(("", *typed)):
            # An empty variable in -m $TEXT --dry-run would otherwise send "--dry-run", and -m=Hello "=Hello".
            name = word.partition("=")[0] if word.startswith("--") else word
            if before in longest and name in options:
                hint = f"To give it as the value: {clean(shlex.quote(f'{longest[before]}={word}'))}"
                raise UsageError(f"{before} needs a value; {name} is an option", hint)
            if before not in longest and word[2:3] == "=" and (short := word[:2]) in longest:
                hint = f"Write {short} {options[short].metavar} or {longest[short]}={options[short].metavar}."
                raise UsageError(f"{short} takes its value after a space, not after =", hint)
        try:
            left = super().parse_args(ctx, args)
        except typer.TyperException as error:
            vars(error).update(ctx=ctx)
            raise
        ctx.obj.is_understood = True
        ctx.obj.options.check()
        if ctx.obj.options.dry_run and self.facts.effect is None:
            raise UsageError(f"{ctx.command_path} makes no request, so --dry-run cannot show one")
        return left


class UnknownCommandError(typer.TyperException):
    """A name that is not a command of a group."""

    def __init__(self, ctx: Any, name: str) -> None:
        super().__init__(f"Unknown command {name}")
        self.ctx = ctx
        self.name = name


class CommandGroup(_WithGlobalOptions, TyperGroup):
    """A group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options of a group, which some groups accept without a command."""
        ctx.obj.command = ctx.command_path.removeprefix("msgctl ")  # a command sets its own
        ctx.obj.operation = self.facts.begins_with
        ctx.obj.effect = self.facts.effect
        left = super().parse_args(ctx, args)
        ctx.obj.options.check()
        return left

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names. Typer's error for an unknown one has no separate class."""
        if not (ctx.resilient_parsing or args[0].startswith("-")) and self.get_command(ctx, args[0]) is None:
            raise UnknownCommandError(ctx, args[0])
        return super().resolve_command(ctx, args)


def group(help: str, cls: type[CommandGroup] = CommandGroup, epilog: str = "") -> typer.Typer:
    """Return a new group of commands. Without a command, it shows its help, which begins with its summary."""
    app = typer.Typer(cls=cls, help=_filled(help), epilog=epilog, add_completion=False, pretty_exceptions_enable=False)
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
    output: Sequence[str] | None = None,
    json: JSONShape | None = None,
    panel: str | None = None,
) -> Callable[[Function], Function]:
    """Add a function to a group as a command; ``examples`` are whole command lines, ``panel`` its heading in help.

    The function may take the `Context` of the run, and groups of options (see `expanded`).
    """
    effect = performs.effect if performs else effect
    has_dry_run = has_dry_run and effect is not None
    if json is None:
        json = "response" if performs and not in_bulk else "object"
    facts = CommandFacts(
        examples,
        performs,
        begins_with or performs,
        effect,
        in_bulk,
        asks or in_bulk,
        has_dry_run,
        dry_run_help or ("Print the summary and send nothing." if in_bulk else ""),
        output,
        json,
    )

    def decorate(function: Function) -> Function:
        callback = expanded(function)
        vars(callback)["facts"] = facts
        about = _filled(function.__doc__ or "")
        owner.command(name, cls=Command, help=about, epilog=_epilog(examples), rich_help_panel=panel)(callback)
        return function

    return decorate


def default_command(
    owner: typer.Typer,
    *examples: str,
    performs: Operation | None = None,
    output: Sequence[str] | None = None,
    json: JSONShape = "response",
) -> Callable[[Function], Function]:
    """Run a function if a group is given no command: `msgctl history`. It returns None if there is a command."""
    effect = performs.effect if performs else None
    has_dry_run = effect is not None
    facts = CommandFacts(examples, performs, performs, effect, has_dry_run=has_dry_run, output=output, json=json)

    def decorate(function: Function) -> Function:
        callback = expanded(function)
        vars(callback)["facts"] = facts
        owner.callback(invoke_without_command=True, epilog=_epilog(examples))(callback)
        return function

    return decorate


def _filled(text: str) -> str:
    """Return a docstring with each paragraph on one line, because Typer fills only the first paragraph."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))


def _epilog(examples: Sequence[str]) -> str:
    return "\n".join(["Examples:", *(f"  {example}" for example in examples)])


def expanded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Typer that calls ``function`` with its `Context`, and its groups of options filled.

    Each field of an `OptionGroup` is a parameter of the command.
    """
    own = _parameters(function)
    groups: dict[str, Any] = {}
    contexts: list[str] = []
    for name, parameter in own.items():
        if parameter.annotation is Context:
            contexts.append(name)
            own[name] = parameter.replace(annotation=typer.Context)
        elif isinstance(parameter.annotation, type) and issubclass(parameter.annotation, OptionGroup):
            groups[name] = parameter.annotation
    parts = {name: _parameters(make) for name, make in groups.items()}

    def callback(**given: Any) -> Any:
        for name in contexts:
            given[name] = given[name].obj
        for name, make in groups.items():
            given[name] = make(**{part: given.pop(part) for part in parts[name]})
        return function(**given)

    shown: list[inspect.Parameter] = []
    for name, parameter in own.items():
        shown += parts.get(name, {name: parameter}).values()
    callback.__doc__ = function.__doc__
    # Typer reads the options of a command from the signature of its function, and has no groups of options.
    callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]
    )
    return callback


def _parameters(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function by name, with their annotations evaluated."""
    hints = get_type_hints(make, include_extras=True)
    parameters = inspect.signature(make).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in parameters.items()}


SEND, FOLLOW_UP, ACCOUNT, TEST, SET_UP = "Send", "Follow up", "Account", "Test", "Set up"


class Part(NamedTuple):
    """A group or a single command: its panel in the help, name, and module in `msgctl.commands`."""

    panel: str
    name: str
    module: str


PARTS = (
    Part(SEND, "sms", "sms"),
    Part(SEND, "call", "call"),
    Part(SEND, "chatapp", "chatapp"),
    Part(SEND, "2fa", "twofa"),
    Part(SEND, "url", "url"),
    Part(FOLLOW_UP, "job", "job"),
    Part(FOLLOW_UP, "state", "state"),
    Part(FOLLOW_UP, "history", "history"),
    Part(FOLLOW_UP, "usage", "usage"),
    Part(ACCOUNT, "balance", "balance"),
    Part(ACCOUNT, "block", "block"),
    Part(ACCOUNT, "optout", "optout"),
    Part(ACCOUNT, "api", "api"),
    Part(TEST, "sandbox", "sandbox"),
    Part(SET_UP, "profile", "profile"),
    Part(SET_UP, "doctor", "doctor"),
    Part(SET_UP, "commands", "help"),
    Part(SET_UP, "completion", "help"),
    Part(SET_UP, "help", "help"),
)


class Root(CommandGroup):
    """The root of the command tree, which loads a group or command when it is first needed."""

    def _shown(self, option: Any, own: Sequence[Any]) -> Any:  # noqa: ARG002
        """Return every global option as it is."""
        return option

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
