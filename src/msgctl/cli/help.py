"""Help pages: Typer's own, with Rich on a terminal and plain elsewhere."""

import copy
import io
import re
import textwrap
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from msgctl.output.printer import Screen

PANEL = "Global options"
MESSAGE, RECIPIENTS, SAFETY, WHEN, SPEED, DELIVERY = "Message", "Recipients", "Safety", "When", "Speed", "Delivery"
ACCOUNT, PREFERENCES, ADDRESS, BEHAVIOUR = "Account", "Defaults", "Address", "Behaviour"
PANELS = (None, ADDRESS, ACCOUNT, PREFERENCES, MESSAGE, RECIPIENTS, SAFETY, WHEN, SPEED, DELIVERY, BEHAVIOUR)
"""The panels of options, in the order of a page."""
MAX_OPTIONS = 8
"""Options that a page shows without panels."""
WIDTH = 80
"""Maximum columns of a plain help page."""
MAX_WIDTH = 100
"""Columns of a help page on a terminal at most: longer lines are hard to read."""
NARROW = 70
"""Minimum columns of a terminal for boxes: in fewer, they would cut words."""
ROOT_EPILOG = ("Example: msgctl -p sandbox sms send 573001234567 -m 'Hello'", "Exit codes and more: man msgctl")
GLOBAL_OPTIONS = "Global options (-p -o --json --fields -q -v --timeout etc.): msgctl --help"


def show(ctx: typer.Context) -> None:
    """Print the help page of the command that ``ctx`` belongs to."""
    context = ctx.obj
    command: Any = copy.copy(ctx.command)
    is_root = ctx.parent is None
    if is_root:
        # Placeholders, so that the parts need not be loaded.
        parts = [TyperGroup(name=each.name, help=each.help) for each in command.parts]
        command = TyperGroup(
            name=command.name, commands=parts, params=command.params, help=command.help, rich_markup_mode=None
        )
    command.params = _in_panels([_shown(each, command, is_root=is_root) for each in command.params])
    ctx.command = command
    screen = context.screen(context.stdout)
    if screen.width is not None and screen.width >= NARROW:
        _show_rich(ctx, screen, is_root=is_root)
        return
    ctx.max_content_width, lines = WIDTH, _epilog(command, is_root=is_root)
    if screen.width is not None:
        ctx.terminal_width, ctx.formatter_class = screen.width, _narrow(ctx.formatter_class)
        lines = [_folded(line, screen.width - 2) for line in lines]
        for child in getattr(command, "commands", {}).values():
            child.short_help = child.get_short_help_str(200)  # the help page folds it; the default is to cut it
    command.epilog = "\b\n" + "\n".join(lines).replace("\n\n", "\n\n\b\n")  # \b keeps the lines of a paragraph
    context.stdout.write(command.get_help(ctx) + "\n")


def _shown(option: Any, command: Any, *, is_root: bool) -> Any:
    """Return a copy of an option for one page, hidden if it is a global option that the command rarely needs."""
    shown = copy.copy(option)
    if option.rich_help_panel == PANEL and not is_root:
        facts = command.facts
        matters = {"dry_run": facts.has_dry_run, "yes": facts.asks}
        shown.hidden, shown.rich_help_panel = not matters.get(option.name), SAFETY
        if option.name == "dry_run" and facts.dry_run_help:
            shown.help = facts.dry_run_help
    return shown


def _in_panels(params: list[Any]) -> list[Any]:
    """Return parameters sorted by panel; a few options need no panels."""
    options = [each for each in params if each.param_type_name == "option" and not each.hidden]
    if len(options) <= MAX_OPTIONS:
        for each in options:
            if each.rich_help_panel != PANEL:
                each.rich_help_panel = None
    order = {panel: place for place, panel in enumerate(PANELS)}
    return sorted(params, key=lambda each: order.get(each.rich_help_panel, len(order)))


def write_options(params: Sequence[Any], ctx: Any, formatter: Any) -> None:
    """Write the arguments and options of a plain page in their panels. Typer does so only with Rich."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for param in params:
        if (record := param.get_help_record(ctx)) is not None:
            name = "Arguments" if param.param_type_name == "argument" else param.rich_help_panel
            sections.setdefault("Options" if name in (None, PANEL) else name, []).append(record)
    for name, rows in sections.items():
        with formatter.section(name):
            formatter.write_dl(rows)


def _epilog(command: Any, *, is_root: bool) -> list[str]:
    if is_root:
        return [*ROOT_EPILOG]
    examples = command.facts.examples
    lines = ["Examples:", *(f"  {example}" for example in examples), ""] if examples else []
    return [*lines, GLOBAL_OPTIONS]


def _folded(line: str, width: int) -> str:
    """Return a line folded at blanks, with the following lines indented."""
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _narrow(formatter: Any) -> Any:
    """Return a formatter of plain pages that leaves two thirds of a narrow terminal to the descriptions."""

    class Narrow(formatter):  # type: ignore[misc]
        def write_dl(self, rows: Any, col_max: int = 30, col_spacing: int = 2) -> None:
            super().write_dl(rows, min(col_max, self.width // 3), col_spacing)

    return Narrow


def _hide_type(param: Any) -> None:
    """Hide <str> beside an argument, and <int> beside an option that is counted."""
    if hasattr(param, "type"):
        param.type = copy.copy(param.type)
        param.type.get_metavar = lambda **_: ""
    elif not param.metavar or param.param_type_name == "argument":  # Typer 0.29
        param.display_type_rich = lambda **_: None


def _show_rich(ctx: typer.Context, screen: "Screen", *, is_root: bool) -> None:
    from rich.markup import escape
    from typer import rich_utils

    # Typer has no parameters for these.
    rich_utils.COLOR_SYSTEM = "standard" if screen.color else None
    rich_utils.FORCE_TERMINAL = screen.color
    rich_utils.MAX_WIDTH = min(screen.width or MAX_WIDTH, MAX_WIDTH)
    rich_utils.STYLE_HELPTEXT = rich_utils.STYLE_USAGE = ""
    rich_utils.STYLE_OPTION = rich_utils.STYLE_SWITCH = rich_utils.STYLE_COMMANDS_TABLE_FIRST_COLUMN = "cyan"
    command: Any = ctx.command
    lines = [_folded(line, rich_utils.MAX_WIDTH - 2) for line in _epilog(command, is_root=is_root)]
    command.epilog = escape("\n".join(lines))
    # In this mode Typer would keep the line breaks of all paragraphs but the first.
    command.help = escape(re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or ""))
    for param in command.params:
        param.help = escape(param.help or "")
        _hide_type(param)
        if param.secondary_opts:
            param.opts, param.secondary_opts = [f"--[no-]{param.opts[0].removeprefix('--')}"], []
    page = io.StringIO()
    with redirect_stdout(page):
        rich_utils.rich_format_help(obj=command, ctx=ctx, markup_mode="rich")
    lines = page.getvalue().splitlines()
    # Typer's first and last lines are blank, apart from escape sequences.
    screen.stream.write("\n".join(lines[1:-1]) + "\n")
