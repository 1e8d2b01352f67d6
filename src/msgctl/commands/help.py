"""The commands that explain msgctl: help, commands, completion."""

import re
from typing import Annotated, Any

import typer

from msgctl.cli.shell.completion import FILES, script
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import Choice
from msgctl.cli.shell.tree import UnknownCommandError, children_of, command, group
from msgctl.output.result import OwnResult, TextResult

COMMAND_COLUMNS = ("name", "effect", "summary")
"""The columns of `msgctl commands`."""

MAX_WIDTH = 80
"""Columns of a page of the manual."""

SHELL = Choice([*FILES], "shell")

app = group("")


def _subjects(ctx: typer.Context) -> list[str]:
    """Return the words that may follow: the names of groups and commands, and the topics."""
    group: Any = ctx.find_root().command
    names = ctx.params.get("command") or ()
    for name in names:
        group = group.get_command(ctx, name)
    topics = [] if names else _topics()
    return [*(name for name, _ in children_of(group)), *topics]


def _topics() -> list[str]:
    from msgctl.reference.manual import TOPICS

    return [topic.removeprefix("msgctl-") for topic in TOPICS]


@command(app, "help", "msgctl help", "msgctl help sms send", "msgctl help exit-codes")
def help(  # noqa: A001
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...",
            help="A command, such as sms send, or a topic: config, exit-codes, guarantees, recipes, security, servers.",
            autocompletion=_subjects,
        ),
    ] = None,
) -> TextResult | OwnResult | None:
    """Show help for a command, or a page of the manual.

    With --json, it prints the description of the commands, as `msgctl commands --json`.
    """
    from msgctl.cli.shell.errors import usage_error
    from msgctl.reference import manual
    from msgctl.reference.description import as_json, describe

    root: Any = ctx.find_root()
    context: Context = ctx.obj
    path = " ".join(command or ())
    if f"msgctl-{path}" in manual.TOPICS:
        width = min(context.screen(context.stdout).width or MAX_WIDTH, MAX_WIDTH)
        text = manual.for_terminal(manual.part(path), width)
        return TextResult(text, {"topic": path, "text": text})
    if context.is_json:
        nodes = describe(root.command)
        if path in nodes:
            chosen = {name: node for name, node in nodes.items() if not name or not path or node.is_in(path)}
            return OwnResult(as_json(chosen), ())
    with root.command.make_context(root.info_name, [*(command or ()), "--help"], obj=root.obj) as below:
        try:
            root.command.invoke(below)
        except UnknownCommandError as error:
            hint = f"Topics: {', '.join(_topics())}"
            word = re.compile(rf"\b{re.escape(path)}\b", re.IGNORECASE)
            mentions = {topic: len(word.findall(manual.part(topic))) for topic in _topics()}
            if any(mentions.values()):
                hint += f"\nThe manual mentions it here: msgctl help {max(mentions, key=lambda name: mentions[name])}"
            raise usage_error(error).with_hint(hint) from None
    return None


@command(app, "commands", "msgctl commands", "msgctl commands --json", output=COMMAND_COLUMNS)
def commands(ctx: typer.Context) -> OwnResult:
    """Describe every command, its options and its output.

    With --json, a program that knows only this description can use all of msgctl. `effect` is reads, changes or
    sends, for the effect on the service, and local for a command that makes no request. `output` lists the columns of
    tsv. `json` is the shape of --json: response (the service's document), responses (several, one after another),
    object, list, or lines (one object per line). A duration is in seconds. Each of the `reasons` begins with its exit
    code. With --json, an error is one line of JSON on standard error; `man msgctl` lists its fields. A cell of jsonl
    has the type that the service sent, and credits may have decimals.
    """
    from msgctl.reference.description import as_json, describe

    context: Context = ctx.obj
    description = as_json(describe(ctx.find_root().command))
    if context.is_json:
        return OwnResult(description, ())
    return OwnResult(description["commands"], COMMAND_COLUMNS)


@command(
    app, "completion", 'eval "$(msgctl completion bash)"', "msgctl completion zsh", "msgctl completion fish | source"
)
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="The shell: bash, zsh or fish.", parser=SHELL)],
) -> TextResult:
    """Print the shell completion script.

    In bash, add `eval "$(msgctl completion bash)"` to ~/.bashrc. In zsh, use zsh instead of bash, after compinit. In
    fish, use `msgctl completion fish | source`.
    """
    text = script(shell)
    return TextResult(text, {"shell": shell, "script": text})
