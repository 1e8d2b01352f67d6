"""`msgctl commands`: every command, for people as a table and for programs as JSON."""

import typer

from msgctl.cli.context import Context
from msgctl.output.result import Format, OwnResult

EXAMPLES = ("msgctl commands", "msgctl commands --json")
COLUMNS = ("name", "effect", "summary")


def commands(ctx: typer.Context) -> OwnResult:
    """Describe every command, its options and its output.

    With --json, a program that knows only this description can use all of msgctl. `effect` says what a command does to
    the service: it reads, changes or sends something; a local command makes no request.
    """
    from msgctl.reference.commands import document
    from msgctl.reference.description import describe

    context = Context.of(ctx)
    description = document(describe(ctx.find_root().command))
    listed = description["commands"]
    more = [name for name in listed[0] if name not in COLUMNS]
    if context.options.format is Format.JSON and not context.options.fields:
        return OwnResult(description, (), has_fields=False)
    return OwnResult(listed, COLUMNS, more=more)
