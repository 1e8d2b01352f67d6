"""`msgctl completion`: the completion scripts of the shells."""

from typing import Annotated

import typer

from msgctl import values
from msgctl.cli.context import Context

EXAMPLES = (
    'eval "$(msgctl completion bash)"',
    "msgctl completion zsh",
    "msgctl completion fish | source",
)

Shell = Annotated[str, typer.Argument(metavar="SHELL", help="The shell: bash, zsh or fish.")]


def completion(ctx: typer.Context, shell: Shell) -> None:
    """Print the script by which a shell completes msgctl.

    Load it with eval in bash and zsh, and with source in fish. Each shell also finds it in a folder of its own,
    which the manual page names.
    """
    from msgctl.cli import shells

    context = Context.of(ctx)
    name = values.choice(shell, list(shells.FILES), "shell")
    context.check_own_fields(())
    script = shells.script(name, ctx.find_root().command)
    context.printer.text({"shell": name, "script": script}, script)
