"""The building blocks of the command tree: groups and commands that accept the global options.

Modules of commands that make one request omit ``from __future__ import annotations``. With it, Typer would compile
every annotation of the command, which takes a tenth of a short run.
"""

from __future__ import annotations

import copy
import inspect
import io
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from msgctl.cli.shell.completion import file_names
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.global_options import global_options, show
from msgctl.cli.shell.options import PANELS, SAFETY, Choice, OptionGroup
from msgctl.errors import UsageError
from msgctl.operations import Effect, Operation
from msgctl.text import clean

Function = TypeVar("Function", bound=Callable[..., Any])
JSONShape = Literal["response", "responses", "object", "list", "lines"]
"""The shape of --json: one document of the service or several, an object, a list, or one object per line."""


def children_of(command: Any) -> Iterator[tuple[str, Any]]:
    """Return the commands of a group with their names; empty for a command."""
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield name, command.get_command(None, name)


class _WithGlobalOptions:
    """A command or group that accepts the global options after its name, and knows the facts of its command."""

    def __init__(self, *, params: list[Any] | None = None, **attributes: Any) -> None:
        parameters = params or []
        self.facts: CommandFacts = getattr(attributes.get("callback"), "facts", NO_FACTS)
        shared = [self._adapted(option, parameters) for option in global_options()]
        # Typer shows the panels in the order of their first options.
        order = {panel: index for index, panel in enumerate(PANELS)}
        everything = sorted([*parameters, *shared], key=lambda param: order.get(param.rich_help_panel, len(order) - 2))
        attributes |= {"params": everything, "add_help_option": False}  # --help is one of the global options
        super().__init__(**attributes)

    def announce(self, ctx: Any) -> None:
        """Store in the context which command runs, and its effect."""
        ctx.obj.run.command = ctx.command_path.removeprefix("msgctl ")
        ctx.obj.run.operation, ctx.obj.run.effect = self.facts.performs, self.facts.effect

    def _adapted(self, option: Any, parameters: Sequence[Any]) -> Any:
        """Return a global option for the command's help: -n only if the command makes a request, -y only if it asks."""
        if option.name not in ("dry_run", "yes"):
            return option
        adapted = copy.copy(option)
        if option.name == "yes":
            adapted.hidden = not self.facts.asks
        else:
            adapted.hidden = not self.facts.has_dry_run
            adapted.help = self.facts.dry_run_help or option.help
        if any(param.rich_help_panel == SAFETY for param in parameters):
            adapted.rich_help_panel = SAFETY
        return adapted

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _write_help(self.page(), ctx, formatter)

    def page(self) -> Any:
        """Return a copy for Typer's help.

        Typer reads [x] in a text as markup. It shows a type beside arguments, and ``<lambda>`` beside -v.
        """
        from rich.markup import escape

        page: Any = copy.copy(self)
        page.help, page.epilog = escape(page.help or ""), escape(page.epilog or "")
        page.params = [copy.copy(param) for param in page.params]
        for param in page.params:
            param.help = escape(param.help or "")
            if param.name == "fields" and self.facts.columns:
                param.help += f" Columns: {', '.join(self.facts.columns)}."
            if param.param_type_name == "argument" or param.count:
                param.type = copy.copy(param.type)
                param.type.get_metavar = lambda **_: ""
            if param.secondary_opts:  # in 80 columns, two names beside each other would be cut
                param.opts, param.secondary_opts = [param.opts[0].replace("--", "--[no-]")], []
        return page

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line. Typer writes a required argument in braces, which is unusual."""
        base: Any = super()
        return [piece.strip("{}") for piece in base.collect_usage_pieces(ctx)]


def _write_help(page: Any, ctx: Any, formatter: Any) -> None:
    """Write Typer's help for a page, a command or a group."""
    base: Any = super(_WithGlobalOptions, page)
    base.format_help(ctx, formatter)


def _help_text(page: Any, ctx: Any, formatter: Any) -> str:
    with io.TextIOWrapper(io.BytesIO(), sys.stdout.encoding, sys.stdout.errors) as text, redirect_stdout(text):
        _write_help(page, ctx, formatter)
        text.seek(0)
        return text.read()


class Command(_WithGlobalOptions, TyperCommand):
    """A command of msgctl."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # a shell completes the command line
            return super().parse_args(ctx, args)
        self.announce(ctx)
        self._refuse_options_as_values(ctx, args)
        try:
            rest = super().parse_args(ctx, args)
        except typer.TyperException as error:  # some errors lack the context, which the hint about the help needs
            vars(error).update(ctx=ctx)
            raise
        ctx.obj.run.is_understood = True
        ctx.obj.options.check()
        if ctx.obj.options.fields and not self.facts.has_more_columns:
            ctx.obj.check_fields(self.facts.columns)
        if ctx.obj.options.dry_run and self.facts.effect is None and not self.facts.has_dry_run:
            raise UsageError(f"{ctx.command_path} makes no request, so --dry-run cannot show one")
        return rest

    def _refuse_options_as_values(self, ctx: Any, args: Sequence[str]) -> None:
        """Raise UsageError if an option would become the value of another: Typer accepts any text as a value."""
        params: list[Any] = [param for param in self.params if param.param_type_name == "option"]
        options = {name: param for param in params for name in (*param.opts, *param.secondary_opts)}
        valued = {name: param for name, param in options.items() if not (param.is_flag or param.count)}
        longest = {name: max(param.opts, key=len) for name, param in valued.items()}
        typed = args[: args.index("--")] if "--" in args else args
        if not ctx.allow_interspersed_args:
            typed = []
        for before, word in pairwise(("", *typed)):
            # An empty variable in -m $TEXT --dry-run would otherwise send "--dry-run", and -m=Hello "=Hello".
            name = word.partition("=")[0] if word.startswith("--") else word
            if before in longest and name in options:
                hint = f"To give it as the value: {clean(shlex.quote(f'{longest[before]}={word}'))}"
                raise UsageError(f"{before} needs a value; {name} is an option", hint)
            if before not in longest and word[2:3] == "=" and (short := word[:2]) in longest:
                hint = f"Write {short} {options[short].metavar} or {longest[short]}={options[short].metavar}."
                raise UsageError(f"{short} takes its value after a space, not after =", hint)


class UnknownCommandError(typer.TyperException):
    """A name that is not a command of a group."""

    def __init__(self, ctx: Any, name: str) -> None:
        super().__init__(f"Unknown command {name}")
        self.ctx = ctx
        self.name = name


class CommandGroup(_WithGlobalOptions, TyperGroup):
    """A group of commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        self.announce(ctx)  # a command announces itself later
        rest = super().parse_args(ctx, args)
        ctx.obj.options.check()
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write Typer's help with the commands before the options. Typer writes them in another order."""
        commands, options = self.page(), self.page()
        commands.get_command, options.list_commands = self.summary_of, lambda _: []
        commands.params, commands.epilog = [], ""
        options.help = ""
        usage = copy.copy(options)
        usage.params, usage.epilog = [], ""
        parts = [_help_text(page, ctx, formatter) for page in (commands, options, usage)]
        sys.stdout.write(parts[0] + parts[1].removeprefix(parts[2]))

    def summary_of(self, ctx: Any, name: str) -> Any:
        """Return a command with only the parts that the help of its group shows."""
        from rich.markup import escape

        command: Any = self.get_command(ctx, name)
        return TyperCommand(name, help=escape(command.get_short_help_str(200)), rich_help_panel=command.rich_help_panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command in the first argument. Typer's error for an unknown command has no separate class."""
        if not (ctx.resilient_parsing or args[0].startswith("-")) and self.get_command(ctx, args[0]) is None:
            raise UnknownCommandError(ctx, args[0])
        return super().resolve_command(ctx, args)


def group(help: str, cls: type[CommandGroup] = CommandGroup, epilog: str = "") -> typer.Typer:
    """Return a new group of commands. Without a command, it shows its help, which begins with its summary."""
    app = typer.Typer(cls=cls, help=_filled(help), epilog=epilog, add_completion=False)
    app.callback(invoke_without_command=True)(_show_help)
    return app


def _show_help(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        show(ctx)


class CommandFacts:
    """The facts about a command that its help, its checks and `commands --json` use.

    ``examples`` are whole command lines. ``performs`` is the service's operation; None for a command that has several.
    ``effect`` is the effect on the service, or the strongest one if the operation depends on the command line; None for
    a command that makes no request. ``dry_run_help`` is the help of --dry-run, if it is not the usual one. ``output``
    has the columns of csv and tsv; None for the columns of the operation or of a job. ``has_more_columns`` means that
    the options or a file add columns, so that the command itself checks --fields. ``json`` is the shape of --json.
    """

    def __init__(
        self,
        *examples: str,
        performs: Operation | None = None,
        effect: Effect | None = None,
        in_bulk: bool = False,
        asks: bool = False,
        has_dry_run: bool = True,
        dry_run_help: str = "",
        output: Sequence[str] | None = None,
        has_more_columns: bool = False,
        json: JSONShape | None = None,
    ) -> None:
        self.examples = examples
        self.performs = performs
        self.effect = performs.effect if performs else effect
        self.in_bulk = in_bulk
        self.asks = asks or in_bulk
        self.has_dry_run = has_dry_run and (self.effect is not None or bool(dry_run_help))
        self.dry_run_help = "Print the summary and send nothing." if in_bulk else dry_run_help
        self.output = output
        self.has_more_columns = has_more_columns or in_bulk
        self.json = json or ("response" if performs and not in_bulk else "object")

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


NO_FACTS = CommandFacts()
"""The facts about a group that only has commands."""


def command(
    owner: typer.Typer,
    name: str | None,
    *examples: str,
    panel: str | None = None,
    runs_another: bool = False,
    **facts: Any,
) -> Callable[[Function], Function]:
    """Return a decorator that adds a function to a group as a command; ``facts`` are arguments of `CommandFacts`.

    A function without a ``name`` runs if the group is used without a command, such as `msgctl history`. With a command,
    it returns None. The function may take the `Context` of the run, and groups of options (see `expanded`).
    ``panel`` is the heading of the command in the help of its group. With ``runs_another``, its arguments are another
    command, and the options after the first argument belong to that command.
    """

    def decorate(function: Function) -> Function:
        callback = expanded(function)
        vars(callback)["facts"] = CommandFacts(*examples, **facts)
        epilog = "\n".join(["Examples:", *(f"  {example}" for example in examples)])
        if name is None:
            owner.callback(invoke_without_command=True, epilog=epilog)(callback)
            return function
        owner.command(
            name,
            cls=Command,
            help=_filled(function.__doc__ or ""),
            epilog=epilog,
            rich_help_panel=panel,
            context_settings={"allow_interspersed_args": not runs_another},
        )(callback)
        return function

    return decorate


def _filled(text: str) -> str:
    """Return a docstring with each paragraph on one line, because Typer fills only the first paragraph."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.cleandoc(text))


def expanded(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for Typer that calls ``function`` with its `Context`, and its groups of options filled.

    Each field of an `OptionGroup` is a parameter of the command.
    """
    parameters = _parameters(function)
    groups: dict[str, Any] = {}
    contexts: list[str] = []
    for name, parameter in parameters.items():
        if parameter.annotation is Context:
            contexts.append(name)
            parameters[name] = parameter.replace(annotation=typer.Context)
        elif isinstance(parameter.annotation, type) and issubclass(parameter.annotation, OptionGroup):
            groups[name] = parameter.annotation
    parts = {name: _parameters(make) for name, make in groups.items()}
    for parameter in (*parameters.values(), *(part for group in parts.values() for part in group.values())):
        for info in getattr(parameter.annotation, "__metadata__", ()):
            if info.autocompletion is None and info.metavar == "FILE":
                info.autocompletion = file_names
            elif info.autocompletion is None and isinstance(info.parser, Choice):
                info.autocompletion = info.parser.complete

    def callback(**values: Any) -> Any:
        for name in contexts:
            values[name] = values[name].obj
        for name, make in groups.items():
            values[name] = make(**{part: values.pop(part) for part in parts[name]})
        return function(**values)

    flat: list[inspect.Parameter] = []
    for name, parameter in parameters.items():
        flat += parts.get(name, {name: parameter}).values()
    callback.__doc__ = function.__doc__
    # Typer reads the options of a command from the signature of its function, and has no groups of options.
    callback.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in flat]
    )
    return callback


def _parameters(make: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function by name, with their annotations evaluated."""
    hints = get_type_hints(make, include_extras=True)
    parameters = inspect.signature(make).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in parameters.items()}


SEND, FOLLOW_UP, ACCOUNT, TEST, SET_UP = "Send", "Follow up", "Account", "Test", "Set up"


class Part(NamedTuple):
    """A group or a single command: its panel in the help, name, module in `msgctl.commands`, and summary.

    The root's help shows the summary without loading the module; it is the first sentence of the command's help.
    """

    panel: str
    name: str
    module: str
    summary: str


PARTS = (
    Part(SEND, "sms", "sms", "Send text messages."),
    Part(SEND, "call", "call", "Make voice calls."),
    Part(SEND, "chatapp", "chatapp", "Send chat-app messages from templates."),
    Part(SEND, "2fa", "twofa", "Send and verify codes by SMS, call or chat app."),
    Part(SEND, "url", "url", "Create short URLs and count their clicks."),
    Part(FOLLOW_UP, "job", "job", "Check, resume, cancel and report on bulk sends."),
    Part(FOLLOW_UP, "state", "state", "Check the delivery state of SMS and calls."),
    Part(FOLLOW_UP, "history", "history", "Show messages that were sent, and their results."),
    Part(FOLLOW_UP, "usage", "usage", "Show messages and credits by day, month, country and more."),
    Part(ACCOUNT, "balance", "balance", "Show the credits left in the account."),
    Part(ACCOUNT, "block", "block", "Block numbers from receiving SMS."),
    Part(ACCOUNT, "optout", "optout", "Manage numbers that must not get your messages."),
    Part(ACCOUNT, "api", "api", "Make any request with the profile's credentials."),
    Part(TEST, "sandbox", "sandbox", "The emulator behind `-p sandbox`: nothing is really sent."),
    Part(SET_UP, "profile", "profile", "Manage accounts: base URL, client and key."),
    Part(SET_UP, "store", "store", "Move everything that msgctl remembers to another store."),
    Part(SET_UP, "doctor", "doctor", "Diagnose problems and suggest fixes."),
    Part(SET_UP, "commands", "help", "Describe every command, its options and its output."),
    Part(SET_UP, "completion", "help", "Print the shell completion script."),
    Part(SET_UP, "help", "help", "Show help for a command, or a page of the manual."),
)


class Root(CommandGroup):
    """The root of the command tree, which loads a group or command when it is first needed."""

    def _adapted(self, option: Any, parameters: Sequence[Any]) -> Any:  # noqa: ARG002
        """Return a global option unchanged."""
        return option

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        return [part.name for part in PARTS]

    def summary_of(self, ctx: Any, name: str) -> Any:  # noqa: ARG002
        """Return a command with a name and a summary, without loading its module."""
        (part,) = (part for part in PARTS if part.name == name)
        return TyperCommand(name, help=part.summary, rich_help_panel=part.panel)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Return the command of a part: the command of that name in its module, or else the module's group."""
        part = next((known for known in PARTS if known.name == cmd_name), None)
        if part is not None and cmd_name not in self.commands:
            app: Any = typer.main.get_command(import_module(f"msgctl.commands.{part.module}").app)
            child = self.commands[cmd_name] = app.commands.get(cmd_name, app)
            child.name, child.rich_help_panel = cmd_name, part.panel
        return self.commands.get(cmd_name)
