"""`msgctl version`: the version of msgctl."""

import typer

from msgctl import __version__
from msgctl.cli.context import Context

EXAMPLES = ("msgctl version",)


def version(ctx: typer.Context) -> None:
    """Show the version; `msgctl --version` does the same."""
    context = Context.of(ctx)
    context.check_own_fields(("version",))
    context.printer.value("version", f"msgctl {__version__}")
