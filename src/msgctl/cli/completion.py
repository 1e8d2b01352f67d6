"""`msgctl completion`: the shell completion scripts."""

from typing import Annotated

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.output.result import TextResult

EXAMPLES = (
    'eval "$(msgctl completion bash)"',
    "msgctl completion zsh",
    "msgctl completion fish | source",
)

Shell = Annotated[str, typer.Argument(metavar="SHELL", help="The shell: bash, zsh or fish.")]


def completion(ctx: typer.Context, shell: Shell) -> TextResult:
    """Print the shell completion script.

    Load it with eval in bash and zsh, and with source in fish. `man msgctl-completion` shows how to install it.
    """
    from msgctl.reference import completions
    from msgctl.reference.description import describe

    context = Context.of(ctx)
    name = values.choice(shell, list(completions.FILES), "shell")
    context.check_own_fields(())
    script = completions.script(name, describe(ctx.find_root().command))
    return TextResult(script, {"shell": name, "script": script})
