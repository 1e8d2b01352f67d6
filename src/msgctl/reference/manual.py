"""The manual pages: the help of the command tree, and the text in ``pages/``.

There is one page for msgctl, one for each group or command of the root (``msgctl-sms.1``), and two more for the
configuration file and the exit codes. Each is composed in the markup of `roff`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgctl import __version__
from msgctl.operations import Effect
from msgctl.reference import roff
from msgctl.reference.description import Node, Parameter

DATE = "2026-11-22"
"""The date on the pages. A clock would make them differ from run to run."""

PAGES = Path(__file__).parent / "pages"
TOPICS = {
    "msgctl-config": "profiles and settings of msgctl",
    "msgctl-exit-codes": "exit codes of msgctl and their meaning",
}
"""The pages that describe no command."""


def pages(nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return the roff text of every page by file name."""
    texts = {"msgctl": ("SMS, calls, verification codes, short URLs and chat-app messages", _main_page(nodes))}
    for name in nodes[""].children:
        about = nodes[name].summary.rstrip(".")
        texts[f"msgctl-{name}"] = (about, _command_page([each for each in nodes.values() if each.is_in(name)]))
    texts |= {name: (about, part(name.removeprefix("msgctl-"))) for name, about in TOPICS.items()}
    written = {}
    for name, (about, text) in texts.items():
        others = ", ".join(f"`{other}`(1)" for other in ("msgctl", *TOPICS) if other != name)
        whole = f"{text}\n\n# SEE ALSO\n\n{others}"
        written[f"{name}.1"] = roff.page(name, about, whole, part, source=f"msgctl {__version__}", date=DATE)
    return written


def part(name: str) -> str:
    """Return a text of ``pages/``, or an empty string."""
    path = PAGES / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _main_page(nodes: Mapping[str, Node]) -> str:
    introduction, sections = _split(part("msgctl"))
    children = [nodes[name] for name in nodes[""].children]
    overview = []
    for panel in dict.fromkeys(node.panel for node in children):
        listed = [node for node in children if node.panel == panel]
        lines = [f": `msgctl {node.path}`\n  {node.summary} See `msgctl-{node.path}`(1)." for node in listed]
        overview += [f"## {panel}", "\n".join(lines)]
    return _joined(
        "# SYNOPSIS",
        "`msgctl` [*OPTIONS*] *COMMAND* ...",
        "# DESCRIPTION",
        introduction,
        "# COMMANDS",
        *overview,
        "# OPTIONS",
        "Every command accepts these options, before the group or after the command:",
        _parameters(nodes[""]),
        sections,
    )


def _command_page(nodes: Sequence[Node]) -> str:
    """Return the page of a group with its commands, or of a single command."""
    page = nodes[0]
    runnable = [node for node in nodes if not node.is_group or node.options or node.arguments]
    introduction, sections = _split(part(page.path) or _usual(nodes))
    commands = []
    for node in runnable:
        commands += [f"## msgctl {node.path}"] if page.is_group else []
        commands += [_parameters(node)] if node is page else [node.help, _parameters(node)]
    return _joined(
        "# SYNOPSIS",
        "\\\n".join(map(_synopsis, runnable)),
        "# DESCRIPTION",
        page.help,
        introduction,
        "# COMMANDS" if page.is_group else "# OPTIONS",
        *commands,
        "`msgctl`(1) describes the options that every command accepts.",
        sections,
    )


def _usual(nodes: Iterable[Node]) -> str:
    """Return the sections of a page that has no text in ``pages/``."""
    effects = {node.facts.effect for node in nodes}
    kind = "local" if effects == {None} else "read" if effects <= {None, Effect.READS} else "send"
    examples = "\n".join(f"    {example}" for node in nodes for example in node.facts.examples)
    return _joined("# EXIT STATUS", f"%include _exit-{kind}", "%include _environment", "# EXAMPLES", examples)


def _synopsis(node: Node) -> str:
    required = [_option(option) for option in node.options if option.required]
    return " ".join([f"`msgctl {node.path}` [*OPTIONS*]", *required, *map(_argument, node.arguments)])


def _parameters(node: Node) -> str:
    listed = [(_argument(each), each.help, each) for each in node.arguments]
    listed += [(_option(each), each.help + " Required." * each.required, each) for each in node.options]
    return "\n".join(
        f": {tag}\n  {text}" + (f" The default is {each.default}." if each.default is not None else "")
        for tag, text, each in listed
    )


def _argument(argument: Parameter) -> str:
    name = argument.names[0] if argument.required else f"[{argument.names[0]}]"
    return f"*{name}{'...' * argument.multiple}*"


def _option(option: Parameter) -> str:
    return ", ".join(f"`{name}`" for name in option.names) + (f" *{option.value}*" if option.value else "")


def _split(text: str) -> tuple[str, str]:
    """Return the text before its first section, and the rest."""
    before, heading, after = f"\n{text}".partition("\n# ")
    return before, heading + after


def _joined(*blocks: str) -> str:
    return "\n\n".join(blocks)
