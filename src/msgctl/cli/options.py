"""The global options, which every command accepts before the group and after its own name."""

import copy
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any

import typer

from msgctl import __version__, values
from msgctl.output.result import Format

PANEL = "Global options"


class GlobalOptions:
    """The values of the global options; if one is given twice, the later one wins."""

    profile: str | None = None
    format: Format = Format.TABLE
    fields: tuple[str, ...] = ()
    no_header: bool = False
    dry_run: bool = False
    yes: bool = False
    quiet: bool = False
    verbose: int = 0
    seconds: float = 30.0
    no_color: bool = False


def _stored(name: str, convert: Callable[[Any], Any] = lambda value: value) -> Callable[..., Any]:
    """Return a callback that stores an option's value in the `GlobalOptions` of this run."""

    def store(ctx: typer.Context, value: Any) -> Any:
        if value not in (None, 0) and not ctx.resilient_parsing:  # 0: a counter that was not given
            setattr(ctx.obj.options, name, convert(value))
        return value

    return store


def _format(text: str) -> Format:
    return Format(values.choice(text, [each.value for each in Format], "output format"))


def _fields(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    return tuple(values.words(name, "A name in --fields") for name in names)


def _seconds(text: str) -> float:
    return values.seconds(text, "--timeout")


def _version(ctx: typer.Context, value: bool | None) -> None:
    if value and not ctx.resilient_parsing:
        ctx.obj.stdout.write(f"msgctl {__version__}\n")
        raise typer.Exit


def _help(ctx: typer.Context, value: bool | None) -> None:
    if value and not ctx.resilient_parsing:
        from msgctl.cli.help import show

        show(ctx)
        raise typer.Exit


def _option(name: str, *names: str, help: str, metavar: str | None = None, convert: Callable[[Any], Any] = bool) -> Any:
    """Return a global option: with a value if it has a ``metavar``, else a flag."""
    store = _stored(name, convert)
    return typer.Option(*names, help=help, metavar=metavar, is_eager=True, callback=store, rich_help_panel=PANEL)


def _signature(  # never called: Typer reads the signature
    profile: Annotated[
        str | None,
        _option(
            "profile", "--profile", "-p", metavar="NAME", help="Stored profile to use (MSGCTL_PROFILE).", convert=str
        ),
    ] = None,
    json: Annotated[
        bool | None,
        _option(
            "format",
            "--json",
            help="Print the service's JSON unchanged; same as -o json.",
            convert=lambda _: Format.JSON,
        ),
    ] = None,
    output: Annotated[
        str | None,
        _option(
            "format",
            "--output",
            "-o",
            metavar="FORMAT",
            help="Output format: table, json, csv or tsv. [default: table]",
            convert=_format,
        ),
    ] = None,
    fields: Annotated[
        str | None,
        _option("fields", "--fields", metavar="A,B", help="Show only these fields, in this order.", convert=_fields),
    ] = None,
    no_header: Annotated[
        bool | None, _option("no_header", "--no-header", help="Omit the header line of csv and tsv.")
    ] = None,
    dry_run: Annotated[
        bool | None, _option("dry_run", "--dry-run", "-n", help="Print the request and send nothing.")
    ] = None,
    yes: Annotated[bool | None, _option("yes", "--yes", "-y", help="Skip confirmation prompts.")] = None,
    quiet: Annotated[
        bool | None, _option("quiet", "--quiet", "-q", help="No notes or progress on standard error.")
    ] = None,
    verbose: Annotated[
        int | None,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help="Show each request and response on standard error; -vv adds headers and bodies.",
            is_eager=True,
            callback=_stored("verbose", int),
            rich_help_panel=PANEL,
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        _option(
            "seconds",
            "--timeout",
            metavar="SECONDS",
            help="Maximum total time per request. [default: 30]",
            convert=_seconds,
        ),
    ] = None,
    no_color: Annotated[
        bool | None, _option("no_color", "--no-color", help="No colour; NO_COLOR and TERM=dumb do the same.")
    ] = None,
    help: Annotated[
        bool | None,
        typer.Option("--help", "-h", help="Show this page.", is_eager=True, callback=_help, rich_help_panel=PANEL),
    ] = None,
    version: Annotated[
        bool | None,
        typer.Option(
            "--version", "-V", help="Show the version.", is_eager=True, callback=_version, rich_help_panel=PANEL
        ),
    ] = None,
) -> None:
    raise NotImplementedError


@cache
def global_options() -> tuple[Any, ...]:
    """Return the global options, built once and shared: building them for 40 commands doubles the start-up time."""
    app = typer.Typer(add_completion=False)
    app.command()(_signature)
    parameters = tuple(typer.main.get_command(app).params)
    for parameter in parameters:
        parameter.expose_value = False
    return parameters


def beside(own: Iterable[Any]) -> list[Any]:
    """Return the global options for a command whose own option names win, as ``-q`` of `msgctl api` does."""
    used = {name for each in own for name in each.opts}
    return [_without(each, used) if used.intersection(each.opts) else each for each in global_options()]


def _without(option: Any, names: set[str]) -> Any:
    """Return an option without some of its names."""
    renamed = copy.copy(option)
    renamed.opts = [name for name in option.opts if name not in names]
    return renamed
