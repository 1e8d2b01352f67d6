"""`msgctl help`: the help of any command."""

from typing import Annotated

import typer

from msgctl.cli.tree import show_help

EXAMPLES = ("msgctl help", "msgctl help sms send")


def help(  # noqa: A001
    ctx: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="The command, such as 'sms send'.")
    ] = None,
) -> None:
    """Show help for a command."""
    show_help(ctx.find_root(), command or ())
