"""The manual pages: the help of the command tree, and the text in ``pages/``.

There is one page for msgctl, one for each group or command of the root (``msgctl-sms.1``), and two more for the
configuration file and the exit codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from msgctl import __version__
from msgctl.operations import Effect
from msgctl.reference import roff
from msgctl.reference.description import Description, Node, Parameter

DATE = "2026-11-22"
"""The date on the pages. A clock would make them differ from run to run."""

PAGES = Path(__file__).parent / "pages"
TOPICS = {
    "msgctl-config": "profiles and settings of msgctl",
    "msgctl-exit-codes": "exit codes of msgctl and their meaning",
}
"""The pages that describe no command."""


def pages(description: Description) -> dict[str, str]:
    """Return the roff text of every page by file name."""
    written = {"msgctl": _main_page(description)}
    written |= {f"msgctl-{name}": _command_page(description.below(name)) for name in description.root.children}
    written |= {name: _topic_page(name, about) for name, about in TOPICS.items()}
    return {f"{name}.1": "\n".join([*lines, *_see_also(name, written)]) + "\n" for name, lines in written.items()}


def part(name: str) -> str:
    """Return a text of ``pages/``, or an empty string."""
    path = PAGES / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _head(name: str, about: str) -> list[str]:
    head = roff.title(name, DATE, f"msgctl {__version__}")
    return [*head, roff.section("NAME"), rf"{roff.literal(name)} \- {roff.inline(about)}"]


def _main_page(description: Description) -> Iterator[str]:
    yield from _head("msgctl", "SMS, calls, verification codes, short URLs and chat-app messages")
    yield roff.section("SYNOPSIS")
    yield f"{roff.bold('msgctl')} [{roff.italic('OPTIONS')}] {roff.italic('COMMAND')} ..."
    yield roff.section("DESCRIPTION")
    introduction, sections = _split(part("msgctl"))
    yield from roff.lines(introduction, part, after_heading=True)
    yield roff.section("COMMANDS")
    yield from _overview(description)
    yield roff.section("OPTIONS")
    yield "Every command accepts these options, before the group or after the command:"
    for option in description.options:
        yield from _parameter(_option(option), option)
    yield from roff.lines(sections, part)


def _overview(description: Description) -> Iterator[str]:
    """Yield one line per group or command, under the headings of the help page."""
    children = [description.below(name)[0] for name in description.root.children]
    for panel in dict.fromkeys(node.panel for node in children):
        yield roff.subsection(panel or "More")
        for node in children:
            if node.panel == panel:
                text = f"{node.summary} See `msgctl-{node.path}`(1)."
                yield from roff.tagged(roff.bold(f"msgctl {node.path}"), roff.inline(text))


def _command_page(nodes: tuple[Node, ...]) -> Iterator[str]:
    """Yield the page of a group with its commands, or of a single command."""
    page = nodes[0]
    runnable = [node for node in nodes if not node.is_group or node.options or node.arguments]
    yield from _head(f"msgctl-{page.path}", page.summary.rstrip("."))
    yield roff.section("SYNOPSIS")
    yield "\n.br\n".join(map(_synopsis, runnable))
    yield roff.section("DESCRIPTION")
    yield from _help(page)
    introduction, sections = _split(part(page.path) or _usual(nodes))
    yield from roff.lines(introduction, part)
    yield roff.section("COMMANDS" if page.is_group else "OPTIONS")
    listed = [line for node in runnable for line in _command(node, page)]
    yield from [*listed, ".PP"] if listed else []
    yield roff.inline("`msgctl`(1) describes the options that every command accepts.")
    yield from roff.lines(sections, part)


def _usual(nodes: tuple[Node, ...]) -> str:
    """Return the sections of a page that has no text in ``pages/``."""
    effects = {node.effect for node in nodes}
    kind = "read" if effects <= {None, Effect.READS} else "send"
    exits = "_exit-local" if effects == {None} else f"_exit-{kind}"
    examples = [f"    {example}" for node in nodes for example in node.examples]
    return "\n\n".join(
        ["# EXIT STATUS", f"%include {exits}", "%include _environment", "# EXAMPLES", "\n".join(examples)]
    )


def _command(node: Node, page: Node) -> Iterator[str]:
    """Yield the arguments and options of a command, under its name and help unless the page is all about it."""
    if page.is_group:
        yield roff.subsection(f"msgctl {node.path}")
    if node is not page:
        yield from _help(node)
    for argument in node.arguments:
        yield from _parameter(roff.italic(argument.usage), argument)
    for option in node.options:
        yield from _parameter(_option(option), option)


def _synopsis(node: Node) -> str:
    required = [_option(option) for option in node.options if option.required]
    arguments = [roff.italic(argument.usage) for argument in node.arguments]
    return " ".join([roff.bold(f"msgctl {node.path}"), f"[{roff.italic('OPTIONS')}]", *required, *arguments])


def _option(option: Parameter) -> str:
    return ", ".join(map(roff.bold, option.names)) + (f" {roff.italic(option.value)}" if option.value else "")


def _parameter(tag: str, parameter: Parameter) -> list[str]:
    text = parameter.help
    if parameter.required and parameter.names[0].startswith("-"):
        text += " Required."
    if parameter.default is not None:
        text += f" The default is {parameter.default}."
    return roff.tagged(tag, roff.inline(text))


def _help(node: Node) -> Iterator[str]:
    for number, paragraph in enumerate(node.help.split("\n\n")):
        yield from [".PP"] * bool(number)
        yield roff.paragraph(paragraph)


def _topic_page(name: str, about: str) -> Iterator[str]:
    yield from _head(name, about)
    yield from roff.lines(part(name.removeprefix("msgctl-")), part)


def _split(text: str) -> tuple[str, str]:
    """Return the text before its first section, and the rest."""
    before, heading, after = f"\n{text}".partition("\n# ")
    return before, heading + after


def _see_also(name: str, pages: Iterable[str]) -> Iterator[str]:
    yield roff.section("SEE ALSO")
    yield ",\n".join(f"{roff.bold(other)}(1)" for other in sorted(pages) if other != name)
