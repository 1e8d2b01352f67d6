"""The manual pages: what the command tree knows, and the hand-written parts of ``pages/``.

A page for the tool, one for each of its groups and commands (``msgctl-sms.1``), and two about the configuration file
and the exit codes, which are written by hand alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from typer.core import TyperGroup

from msgctl import __version__
from msgctl.cli import options
from msgctl.reference import markup, roff

DATE = "2026-11-21"
"""The day of this edition. It is not read from a clock: the pages are the same whenever they are written."""

PARTS = Path(__file__).parent / "pages"
BY_HAND = {
    "msgctl-config": "profiles and settings of msgctl",
    "msgctl-exit-codes": "what the exit codes of msgctl mean",
}
"""The pages without a command, and what they are about."""


class Node(NamedTuple):
    """A command or a group with options of its own, and what is typed to reach it: ``msgctl sms send``."""

    path: str
    command: Any

    @property
    def arguments(self) -> list[Any]:
        return [each for each in self.command.params if each.param_type_name == "argument"]

    @property
    def options(self) -> list[Any]:
        """The options that not every command takes."""
        return [
            each
            for each in self.command.params
            if each.param_type_name == "option" and each not in options.global_options()
        ]


def pages(root: Any) -> dict[str, str]:
    """The text of every page, by its file name."""
    named = {f"msgctl-{name}": command for name, command in root.commands.items()}
    written = {"msgctl": _tool_page(root), **{name: _group_page(name, command) for name, command in named.items()}}
    written |= {name: _hand_page(name, about) for name, about in BY_HAND.items()}
    return {f"{name}.1": "\n".join([*lines, *_see_also(name, written)]) + "\n" for name, lines in written.items()}


def part(name: str) -> str:
    """The hand-written part of a page, empty where there is none."""
    path = PARTS / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _at_first_section(text: str) -> tuple[str, str]:
    """What a part says before its first section, and the rest."""
    before, heading, after = f"\n{text}".partition("\n# ")
    return before, heading + after


def _head(name: str, about: str) -> list[str]:
    head = roff.title(name, DATE, f"msgctl {__version__}")
    return [*head, roff.heading("NAME"), rf"{roff.literal(name)} \- {markup.inline(about)}"]


def _tool_page(root: Any) -> Iterator[str]:
    yield from _head("msgctl", "SMS, calls, verification codes, short URLs and chat-app messages")
    yield roff.heading("SYNOPSIS")
    yield f"{roff.bold('msgctl')} [{roff.italic('OPTIONS')}] {roff.italic('COMMAND')} ..."
    yield roff.heading("DESCRIPTION")
    before, after = _at_first_section(part("msgctl"))
    yield from markup.lines(before, part, after_heading=True)
    yield roff.heading("COMMANDS")
    yield from _listing(root)
    yield roff.heading("OPTIONS")
    yield "Every command takes these, before the group or after the command:"
    for option in options.global_options():
        yield from roff.tagged(_option(option), _explanation(option))
    yield from markup.lines(after, part)


def _listing(root: Any) -> Iterator[str]:
    """A line a group or command, under the purpose that it serves."""
    panels: dict[str, list[str]] = {}
    for name, command in root.commands.items():
        panel = command.rich_help_panel if isinstance(command.rich_help_panel, str) else "More"
        panels.setdefault(panel, []).append(name)
    for panel, names in panels.items():
        yield roff.subheading(panel)
        for name in names:
            about = f"{root.commands[name].get_short_help_str(200)} See `msgctl-{name}`(1)."
            yield from roff.tagged(roff.bold(f"msgctl {name}"), markup.inline(about))


def _group_page(name: str, command: Any) -> Iterator[str]:
    nodes = list(_nodes(name.replace("-", " ", 1), command))
    yield from _head(name, command.get_short_help_str(200).rstrip("."))
    yield roff.heading("SYNOPSIS")
    for number, node in enumerate(nodes):
        yield from [".br"] * bool(number)
        yield _synopsis(node)
    yield roff.heading("DESCRIPTION")
    before, after = _at_first_section(part(name.removeprefix("msgctl-")))
    yield from _help(command)
    yield from markup.lines(before, part)
    yield roff.heading("COMMANDS" if isinstance(command, TyperGroup) else "OPTIONS")
    listed = [line for node in nodes for line in (_command if isinstance(command, TyperGroup) else _parameters)(node)]
    yield from [*listed, ".PP"] if listed else []
    yield markup.inline("The options that every command takes are in `msgctl`(1).")
    yield from markup.lines(after, part)


def _nodes(path: str, command: Any) -> Iterator[Node]:
    """What can be run: a command, or the commands of a group, and the group itself if it takes more than they do."""
    node = Node(path, command)
    if not isinstance(command, TyperGroup) or node.options or node.arguments:
        yield node
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from _nodes(f"{path} {name}", child)


def _command(node: Node) -> Iterator[str]:
    yield roff.subheading(node.path)
    if not isinstance(node.command, TyperGroup):  # what a group is for stands above
        yield from _help(node.command)
    yield from _parameters(node)


def _parameters(node: Node) -> Iterator[str]:
    for argument in node.arguments:
        yield from roff.tagged(roff.italic(argument.metavar), _explanation(argument))
    for option in node.options:
        yield from roff.tagged(_option(option), _explanation(option))


def _synopsis(node: Node) -> str:
    required = [_option(each) for each in node.options if each.required]
    arguments = [roff.italic(each.metavar) for each in node.arguments]
    return " ".join([roff.bold(node.path), f"[{roff.italic('OPTIONS')}]", *required, *arguments])


def _option(option: Any) -> str:
    names = [*sorted(option.opts, key=len), *option.secondary_opts]
    value = f" {roff.italic(option.metavar)}" if option.metavar else ""
    return ", ".join(map(roff.bold, names)) + value


def _explanation(parameter: Any) -> str:
    text = parameter.help or ""
    if parameter.param_type_name == "option" and parameter.required:
        text += " Required."
    if isinstance(parameter.default, str):
        text += f" The default is {parameter.default}."
    return markup.inline(text)


def _help(command: Any) -> Iterator[str]:
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        yield from [".PP"] * bool(number)
        yield roff.line(markup.inline(" ".join(paragraph.split())))


def _hand_page(name: str, about: str) -> Iterator[str]:
    yield from _head(name, about)
    yield from markup.lines(part(name.removeprefix("msgctl-")), part)


def _see_also(name: str, pages: Iterable[str]) -> Iterator[str]:
    yield roff.heading("SEE ALSO")
    yield ",\n".join(f"{roff.bold(other)}(1)" for other in sorted(pages) if other != name)
