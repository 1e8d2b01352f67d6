"""Help pages: one layout, coloured by Rich on a terminal, and plain where scripts and pagers read it.

Plain help also takes half the time. Everything is laid out here and nothing is read as markup, so that `[PHONE]` stays
what it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgctl.cli.tree import Group, examples_of
from msgctl.output.cells import fold, width_of
from msgctl.output.plain import BLANK, Line, Span, texts
from msgctl.output.screen import Screen

USUAL_WIDTH = 80
MOST_WIDTH = 100
"""Lines longer than this are hard to read, however wide the terminal is."""
LEAST_TEXT = 28
"""Columns that a description needs to stand beside its name; with fewer it stands beneath."""
LONGEST_NAME = 28
INDENT = 2
TITLE, NAME = "bold", "cyan"

Rows = list[tuple[str, str]]


def show(ctx: Any) -> None:
    """Print the help page of a context's command or group on standard output."""
    Screen.of(ctx.obj.stdout, color=False).write(text(ctx) + "\n")


def text(ctx: Any) -> str:
    """The help page, without its last line end, as it suits standard output: its width, and whether it is coloured."""
    app = ctx.obj
    screen = Screen.of(app.stdout, app.has_color(app.stdout))
    lines = page(ctx, min(screen.width or USUAL_WIDTH, MOST_WIDTH))
    if not screen.color:
        return "".join(texts(lines)).rstrip("\n")
    from msgctl.output.table import painted  # Rich, which plain help does without

    return "".join(painted(lines)).rstrip("\n")


def page(ctx: Any, width: int) -> Iterator[Line]:
    """The help page in lines of at most ``width`` columns; examples stay whole, so that they can be copied."""
    yield from _usage(ctx, width)
    for paragraph in (ctx.command.help or "").split("\n\n"):
        yield BLANK
        for part in fold(" ".join(paragraph.split()), width):
            yield (Span(part),)
    for title, rows in _sections(ctx):
        yield BLANK
        yield (Span(f"{title}:", TITLE),)
        yield from _rows(rows, width)
    if isinstance(ctx.command, Group):
        yield BLANK
        yield (Span("More: ", TITLE), Span(f"{ctx.command_path} COMMAND --help"))
    examples = examples_of(ctx.command)
    if examples:
        yield BLANK
        yield (Span("Examples:", TITLE),)
    for example in examples:
        yield (Span(" " * INDENT), Span(example))


def _usage(ctx: Any, width: int) -> Iterator[Line]:
    """Arguments in the form of the manual pages: `PHONE...`, `[VALUE]...`."""
    arguments = [each.metavar for each in ctx.command.params if each.param_type_name == "argument"]
    command = ["COMMAND"] if isinstance(ctx.command, Group) else []
    words = " ".join([ctx.command_path, "[OPTIONS]", *arguments, *command])
    label = "Usage: "
    for number, part in enumerate(fold(words, width - len(label))):
        yield (Span(" " * len(label)) if number else Span(label, TITLE), Span(part))


def _sections(ctx: Any) -> Iterable[tuple[str, Rows]]:
    """What is asked for first comes first: a group's commands, arguments, own options, options of every command."""
    sections: dict[str, Rows] = {}
    if isinstance(ctx.command, Group):
        for panel, *row in ctx.command.listing(ctx):
            sections.setdefault(panel or "Commands", []).append((row[0], row[1]))
    for parameter in sorted(ctx.command.params, key=lambda each: each.param_type_name):  # arguments before options
        usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
        panel = parameter.rich_help_panel or usual
        sections.setdefault(panel, []).append((_name(parameter), _description(parameter)))
    return sections.items()


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar)
    names = ", ".join(sorted(parameter.opts, key=len))
    if parameter.secondary_opts:
        names = names.replace("--", "--[no-]", 1)
    return f"{names} {parameter.metavar}" if parameter.metavar else names


def _description(parameter: Any) -> str:
    text = parameter.help or ""
    if parameter.param_type_name == "argument":
        return text  # the usage line shows whether it is required
    if parameter.required:
        return f"{text} [required]"
    return f"{text} [default: {parameter.default}]" if isinstance(parameter.default, str) else text


def _aligned(rows: Rows) -> Rows:
    """Long names below each other where some have a short one before them, as in most manuals."""
    if not any(name[0] == "-" != name[1] for name, _ in rows):
        return rows
    return [(name if name[1] != "-" else f"    {name}", text) for name, text in rows]


def _rows(rows: Rows, width: int) -> Iterator[Line]:
    """Descriptions beside their names where there is room for them, else beneath."""
    aligned = _aligned(rows)
    column = max((width_of(name) for name, _ in aligned if width_of(name) <= LONGEST_NAME), default=0)
    if width - column - 2 * INDENT >= LEAST_TEXT:
        return _beside(aligned, column, width)
    return _beneath(rows, width)


def _beside(rows: Rows, column: int, width: int) -> Iterator[Line]:
    margin = column + 2 * INDENT
    for name, text in rows:
        gap = margin - INDENT - width_of(name)
        parts = fold(text, width - margin)
        if gap < INDENT:
            yield (Span(" " * INDENT), Span(name, NAME))
        else:
            yield (Span(" " * INDENT), Span(name, NAME), Span(" " * gap), Span(parts.pop(0)))
        for part in parts:
            yield (Span(" " * margin), Span(part))


def _beneath(rows: Rows, width: int) -> Iterator[Line]:
    for name, text in rows:
        yield (Span(" " * INDENT), Span(name, NAME))
        for part in fold(text, width - 3 * INDENT):
            yield (Span(" " * 3 * INDENT), Span(part))
