"""The options that every command takes, before the group or after the command."""

import copy
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any

import typer

from msgctl import __version__, values
from msgctl.output.form import Format

PANEL = "Common options"


class Options:
    """What the common options said; where one is given twice, the later wins."""

    profile: str | None = None
    format: Format = Format.TABLE
    fields: tuple[str, ...] = ()
    dry_run: bool = False
    yes: bool = False
    quiet: bool = False
    verbose: bool = False
    seconds: float = 30.0
    no_color: bool = False


def _stored(member: str, convert: Callable[[Any], Any] = lambda value: value) -> Callable[..., Any]:
    """A callback that puts an option's value, where given, into the `Options` of this run."""

    def store(ctx: typer.Context, value: Any) -> Any:
        if value is not None and not ctx.resilient_parsing:
            setattr(ctx.obj.options, member, convert(value))
        return value

    return store


def _format(text: str) -> Format:
    return Format(values.choice(text, [each.value for each in Format], "output format"))


def _fields(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    return tuple(values.words(name, "a name in --fields") for name in names)


def _seconds(text: str) -> float:
    return values.seconds(text, "--timeout")


def _version(ctx: typer.Context, value: bool | None) -> None:
    if value and not ctx.resilient_parsing:
        ctx.obj.stdout.write(f"msgctl {__version__}\n")
        raise typer.Exit


def _help(ctx: typer.Context, value: bool | None) -> None:
    if value and not ctx.resilient_parsing:
        from msgctl.cli import help_page

        help_page.show(ctx)
        raise typer.Exit


def _flag(member: str, *names: str, help: str, convert: Callable[[Any], Any] = bool) -> Any:
    return typer.Option(*names, help=help, is_eager=True, callback=_stored(member, convert), rich_help_panel=PANEL)


def _valued(member: str, *names: str, metavar: str, help: str, convert: Callable[[Any], Any] = str) -> Any:
    return typer.Option(
        *names,
        metavar=metavar,
        help=help,
        is_eager=True,
        callback=_stored(member, convert),
        rich_help_panel=PANEL,
    )


def _take(  # the body is never run: Typer reads the signature
    profile: Annotated[
        str | None,
        _valued("profile", "--profile", "-p", metavar="NAME", help="Profile to use; MSGCTL_PROFILE does the same."),
    ] = None,
    json: Annotated[
        bool | None,
        _flag(
            "format",
            "--json",
            help="Print the service's JSON unchanged; same as -o json.",
            convert=lambda _: Format.JSON,
        ),
    ] = None,
    output: Annotated[
        str | None,
        _valued(
            "format",
            "--output",
            "-o",
            metavar="FORM",
            help="Print a table, json, csv or tsv. [default: table]",
            convert=_format,
        ),
    ] = None,
    fields: Annotated[
        str | None,
        _valued(
            "fields", "--fields", metavar="A,B", help="Only these columns of a table, csv or tsv.", convert=_fields
        ),
    ] = None,
    dry_run: Annotated[
        bool | None, _flag("dry_run", "--dry-run", "-n", help="Print the request and send nothing.")
    ] = None,
    yes: Annotated[bool | None, _flag("yes", "--yes", "-y", help="Answer every question with yes.")] = None,
    quiet: Annotated[
        bool | None, _flag("quiet", "--quiet", "-q", help="No notes or progress on standard error.")
    ] = None,
    verbose: Annotated[
        bool | None, _flag("verbose", "--verbose", "-v", help="Show each request and answer on standard error.")
    ] = None,
    timeout: Annotated[
        str | None,
        _valued(
            "seconds",
            "--timeout",
            metavar="SECONDS",
            help="The whole time one request may take. [default: 30]",
            convert=_seconds,
        ),
    ] = None,
    no_color: Annotated[
        bool | None, _flag("no_color", "--no-color", help="No colour; NO_COLOR and TERM=dumb do the same.")
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
def options() -> tuple[Any, ...]:
    """The common options, built once and shared by every command: building them 40 times doubles the start-up."""
    app = typer.Typer(add_completion=False)
    app.command()(_take)
    parameters = tuple(typer.main.get_command(app).params)
    for parameter in parameters:
        parameter.expose_value = False
    return parameters


def options_beside(own: Iterable[Any]) -> list[Any]:
    """The common options of a command with parameters of its own, whose names win: ``-q`` of `msgctl api`."""
    taken = {name for each in own for name in each.opts}
    return [_without(each, taken) if taken.intersection(each.opts) else each for each in options()]


def _without(option: Any, taken: set[str]) -> Any:
    """The same option without some of its names."""
    renamed = copy.copy(option)
    renamed.opts = [name for name in option.opts if name not in taken]
    return renamed
