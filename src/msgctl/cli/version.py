"""`msgctl version`: the version of msgctl."""

import typer

from msgctl import __version__
from msgctl.cli.context import Context
from msgctl.output.result import TextResult

EXAMPLES = ("msgctl version",)


def version(ctx: typer.Context) -> TextResult:
    """Show the version; `msgctl --version` does the same."""
    Context.of(ctx).check_own_fields(())
    return TextResult(f"msgctl {__version__}\n", {"version": __version__})
