"""Help pages: Typer's own, with Rich on a terminal and plain elsewhere."""

from __future__ import annotations

import copy
import io
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

from typer.core import TyperGroup

from msgctl.cli.context import Context
from msgctl.cli.options import PANEL
from msgctl.cli.terminal import is_terminal
from msgctl.cli.tree import asks, examples_of, operation_of

if TYPE_CHECKING:
    import typer

WIDTH = 80
"""Columns of a help page at most: longer lines are hard to read."""
EXAMPLES = ("msgctl -p sandbox sms send 573001234567 -m 'Hello'", "msgctl sms bulk customers.csv -m 'Hello {name}' -n")
EXIT_CODES = (
    "0 done, 1 refused, 2 usage, 3 configuration, 4 not reached,",
    "5 outcome unknown, 6 condition not met, 130 interrupted",
)
GLOBAL_OPTIONS = "Global options (-p -o --json --fields -q -v --timeout …): msgctl --help"


def show(ctx: typer.Context) -> None:
    """Print the help page of the command that ``ctx`` belongs to."""
    context = Context.of(ctx)
    command: Any = copy.copy(ctx.command)
    is_root = ctx.parent is None
    if is_root:
        command.commands = {part: _named(part, text, panel) for panel, part, text in command.listing(ctx)}
    command.params = [_shown(each, command, is_root=is_root) for each in command.params]
    ctx.command = command
    if is_terminal(context.stdout) or context.environ.get("FORCE_COLOR"):
        _show_rich(ctx, context, is_root=is_root)
        return
    ctx.max_content_width = WIDTH
    command.epilog = "\b\n" + "\n".join(_epilog(command, is_root=is_root))
    context.stdout.write(command.get_help(ctx) + "\n")


def _named(name: str, text: str, panel: str | None) -> TyperGroup:
    """Return a placeholder for a part of the tree on the root's page, so that the part need not be loaded."""
    return TyperGroup(name=name, help=text, rich_help_panel=panel)


def _shown(option: Any, command: Any, *, is_root: bool) -> Any:
    """Return a copy of an option for one page, which shows only those global options that matter to the command."""
    shown = copy.copy(option)
    if option.rich_help_panel == PANEL and not is_root:
        matters = (option.name == "dry_run" and operation_of(command)) or (option.name == "yes" and asks(command))
        shown.hidden, shown.rich_help_panel = not matters, None
    return shown


def _epilog(command: Any, *, is_root: bool) -> list[str]:
    examples = EXAMPLES if is_root else examples_of(command)
    lines = ["Examples:", *(f"  {example}" for example in examples), ""] if examples else []
    if is_root:
        return [*lines, "Exit codes:", *(f"  {line}" for line in EXIT_CODES), "", "See also: man msgctl"]
    return [*lines, GLOBAL_OPTIONS]


def _show_rich(ctx: typer.Context, context: Context, *, is_root: bool) -> None:
    from rich.markup import escape
    from typer import rich_utils

    from msgctl.output.screen import Screen

    screen = Screen.of(context.stdout, color=context.has_color(context.stdout))
    rich_utils.COLOR_SYSTEM = "standard" if screen.color else None
    rich_utils.FORCE_TERMINAL = screen.color
    rich_utils.MAX_WIDTH = min(screen.width or WIDTH, WIDTH)
    rich_utils.STYLE_HELPTEXT = rich_utils.STYLE_USAGE = ""
    rich_utils.STYLE_OPTION = rich_utils.STYLE_SWITCH = rich_utils.STYLE_COMMANDS_TABLE_FIRST_COLUMN = "cyan"
    command: Any = ctx.command
    command.epilog = "\n\n".join(escape(line) for line in _epilog(command, is_root=is_root))
    command.help = escape(command.help or "")
    for param in command.params:
        param.help = escape(param.help or "")
    page = io.StringIO()
    with redirect_stdout(page):
        rich_utils.rich_format_help(obj=command, ctx=ctx, markup_mode="rich")
    context.stdout.write(page.getvalue())
