"""`msgctl mcp`: the commands as tools for programs."""

from __future__ import annotations

from typing import Annotated

import typer

from msgctl.cli.context import Context
from msgctl.cli.options import MAX_CREDITS, Country
from msgctl.cli.parsers import number_option
from msgctl.cli.tree import HELP, command, group
from msgctl.errors import ConfigurationError, UsageError
from msgctl.operations import Effect

app = group("")


@command(
    app,
    "mcp",
    "msgctl mcp",
    "msgctl mcp --max-credits 50 --only-to team.txt",
    effect=Effect.SENDS,
    dry_run_help="Return requests instead of making them.",
    panel=HELP,
)
def mcp(
    context: Context,
    max_credits: Annotated[
        int | None,
        number_option("--max-credits", "Also send, for at most this many credits per UTC day.", 0, MAX_CREDITS),
    ] = None,
    only_to: Annotated[
        str | None,
        typer.Option(
            "--only-to",
            metavar="FILE",
            help="Send only to the numbers in this file: one per line, CSV, JSON Lines or .xlsx.",
        ),
    ] = None,
) -> None:
    """Serve the commands as tools over the Model Context Protocol (MCP).

    A program starts this command and talks to it over standard input and output. It may read the balance, delivery
    states, jobs and the history. If you give --max-credits, it may also send, block numbers, verify codes and create
    short URLs. All servers of an account share these credits. Until the price of an operation in a country is known,
    the program sends there to one number at a time.

    The program cannot choose another profile, see a key, or name a file on this machine.
    """
    from msgctl.mcp.server import Allowance, Toolbox, serve

    if only_to is not None and max_credits is None:
        raise UsageError("--only-to needs --max-credits N")
    allowance = None
    if max_credits is not None:
        allowance = Allowance(max_credits, None if only_to is None else _numbers(context, only_to))
    try:
        import mcp  # noqa: F401
    except ImportError:
        from msgctl import extras

        raise ConfigurationError(
            "msgctl mcp needs the mcp package, which is not installed", f"Install it: {extras.install('mcp')}"
        ) from None
    serve(context, Toolbox(context, allowance))


def _numbers(context: Context, file: str) -> frozenset[str]:
    """Return the numbers in a file. Raises UsageError."""
    from msgctl.jobs.reader import numbers_in

    # Standard input belongs to the protocol, so - is a file.
    file = "./-" if file == "-" else file
    return frozenset(numbers_in(file, context.stdin.buffer, Country().known(context)))
