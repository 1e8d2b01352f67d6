"""The global options, which every group and command accepts."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from functools import cache, partial
from typing import Annotated, Any

import typer

from msgctl import __version__, values
from msgctl.cli.shell.completion import column_names, profile_names
from msgctl.cli.shell.options import GLOBAL, Choice, OptionGroup, parser
from msgctl.errors import UsageError
from msgctl.output.result import Format


def show(ctx: typer.Context) -> None:
    """Print the help page of the command that ``ctx`` belongs to."""
    from typer import rich_utils

    has_color = ctx.obj.screen(ctx.obj.stdout).color
    rich_utils.COLOR_SYSTEM = "standard" if has_color else None  # Typer has no parameter for it
    with redirect_stdout(ctx.obj.stdout):
        ctx.get_help()


def _store(ctx: typer.Context, param: typer.CallbackParam, value: Any) -> None:
    """Store the value of an option in the `GlobalOptions` of this run; show the help or the version at once."""
    if value in (None, 0):  # 0: a counting option that was not given
        return
    if ctx.resilient_parsing and param.name in ("help", "version"):  # a completion
        return
    if param.name == "help":
        show(ctx)
        raise typer.Exit
    if param.name == "version":
        ctx.obj.stdout.write(f"msgctl {__version__}\n")
        raise typer.Exit
    if param.name == "json":
        ctx.obj.options.format = Format.JSON
    else:
        setattr(ctx.obj.options, str(param.name), value)


def _fields(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    return tuple(values.short_text(name, "A name in --fields") for name in names)


_option = partial(typer.Option, is_eager=True, callback=_store, rich_help_panel=GLOBAL)


_FORMATS = Choice(list(Format), "output format")


class GlobalOptions(OptionGroup):
    """The global options of a run; if one is given twice, the last one counts. --json sets ``format``."""

    profile: Annotated[
        str | None,
        _option(
            "--profile",
            "-p",
            metavar="NAME",
            help="Stored profile to use (MSGCTL_PROFILE).",
            autocompletion=profile_names,
        ),
    ] = None
    json: Annotated[bool, _option("--json", help="Print the service's JSON unchanged: -o json.")] = False
    format: Annotated[
        Format | None,
        _option(
            "--output",
            "-o",
            metavar="FORMAT",
            parser=_FORMATS,
            autocompletion=_FORMATS.complete,
            help="Print table, json, csv, tsv or jsonl. [default: table; tsv in a pipe]",
        ),
    ] = None
    fields: Annotated[
        Sequence[str],
        _option(
            "--fields",
            metavar="A,B",
            parser=_fields,
            autocompletion=column_names,
            help="Print only these columns, in this order. Not with --json.",
        ),
    ] = ()
    no_header: Annotated[bool, _option("--no-header", help="Print csv and tsv without the header line.")] = False
    dry_run: Annotated[bool, _option("--dry-run", "-n", help="Print the request and send nothing.")] = False
    yes: Annotated[bool, _option("--yes", "-y", help="Skip confirmations.")] = False
    quiet: Annotated[bool, _option("--quiet", "-q", help="Print no notes or progress.")] = False
    verbose: Annotated[
        int, _option("--verbose", "-v", count=True, help="Print requests and responses; -vv prints more.")
    ] = 0
    timeout: Annotated[
        float,
        _option(
            "--timeout",
            metavar="SECONDS",
            parser=parser(values.seconds, "--timeout"),
            help="Maximum total time per request. [default: 30]",
        ),
    ] = 30.0
    no_color: Annotated[bool, _option("--no-color", help="No colour; NO_COLOR and TERM=dumb do the same.")] = False
    help: Annotated[bool, _option("--help", "-h", help="Show help.")] = False
    version: Annotated[bool, _option("--version", "-V", help="Show the version.")] = False

    def check(self) -> None:
        """Raise UsageError if two options cannot be combined."""
        if self.fields and self.format is Format.JSON:
            raise UsageError("--fields cannot be combined with --json", "Select fields with jq, or use -o csv.")


@cache
def global_options() -> tuple[Any, ...]:
    """Return the global options, built once and shared: building them for 40 commands doubles the start-up time."""
    app = typer.Typer(add_completion=False)
    app.command()(GlobalOptions)
    parameters = tuple(typer.main.get_command(app).params)
    for parameter in parameters:
        parameter.expose_value = False
        parameter.default = None  # an option that was not given keeps its value
    return parameters
