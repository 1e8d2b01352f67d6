"""The commands that explain msgctl: help, commands, completion."""

from typing import Annotated, Any

import typer

from msgctl.cli.shell.completion import FILES, script
from msgctl.cli.shell.parsers import Choice
from msgctl.cli.shell.tree import command, group
from msgctl.output.result import Format, OwnResult, TextResult

COLUMNS = ("name", "effect", "summary")
"""The columns of `msgctl commands`."""

SHELL = Choice([*FILES], "shell")

app = group("")


@command(app, "help", "msgctl help", "msgctl help sms send")
def help(  # noqa: A001
    ctx: typer.Context,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND]...", help="The command, such as 'sms send'.")
    ] = None,
) -> None:
    """Show help for a command."""
    root: Any = ctx.find_root()
    with root.command.make_context(root.info_name, [*(command or ()), "--help"], obj=root.obj) as below:
        root.command.invoke(below)


@command(app, "commands", "msgctl commands", "msgctl commands --json", output=COLUMNS)
def commands(ctx: typer.Context) -> OwnResult:
    """Describe every command, its options and its output.

    With --json, a program that knows only this description can use all of msgctl. `effect` is reads, changes or
    sends, for the effect on the service, and local for a command that makes no request.
    """
    from msgctl.reference.description import describe, document

    context = ctx.obj
    description = document(describe(ctx.find_root().command))
    listed = description["commands"]
    context.check_fields(listed[0])
    if context.options.format is Format.JSON and not context.options.fields:
        return OwnResult(description, ())
    return OwnResult(listed, COLUMNS)


@command(
    app,
    "completion",
    'eval "$(msgctl completion bash)"',
    "msgctl completion zsh",
    "msgctl completion fish | source",
)
def completion(
    shell: Annotated[
        str,
        typer.Argument(
            metavar="SHELL", help="The shell: bash, zsh or fish.", parser=SHELL, autocompletion=SHELL.complete
        ),
    ],
) -> TextResult:
    """Print the shell completion script.

    Load it with eval in bash and zsh, and with source in fish.
    """
    text = script(shell)
    return TextResult(text, {"shell": shell, "script": text})
