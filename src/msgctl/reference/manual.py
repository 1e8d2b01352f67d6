"""The manual pages: the help of the command tree, and the text in ``pages/``.

There is one page for msgctl, one for each group or command of the root (``msgctl-sms.1``) except those that explain
msgctl itself, and one for each of `TOPICS`. Each is composed in a small markup, and written as roff, the language of
man(7).

A blank line ends a block. A block begins with:

- ``# TITLE``: a section; ``## Title``: a subsection.
- ``- text``: a list item; further lines are indented by two spaces.
- ``: term``: a term, explained in the following lines, which are indented by two spaces.
- four spaces: an example, printed as it is.
- ``| a | b | c |``: a row of a table with three columns; the first row is the header.
- ``%include NAME``: the text of ``pages/NAME.txt``.
- anything else: a paragraph; a backslash at the end of a line breaks it.

In a text, ```code``` is printed literally, and ``*word*`` is a placeholder.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgctl import __version__
from msgctl.errors import REASONS
from msgctl.reference.description import Node, Parameter
from msgctl.text import capitalized

DATE = "2026-11-27"
"""The date on the pages, fixed so that every run writes the same files."""

PAGES = Path(__file__).parent / "pages"
TOPICS = {
    "msgctl-config": (1, "profiles and settings of msgctl"),
    "msgctl-exit-codes": (1, "exit codes of msgctl and their meaning"),
    "msgctl-guarantees": (7, "what msgctl promises, and what it does not"),
    "msgctl-recipes": (7, "scripts for cron, alarms, containers and logins"),
    "msgctl-security": (7, "threat model, keys and files of msgctl"),
    "msgctl-servers": (7, "installation, systemd, shared stores and monitoring of msgctl"),
}
"""The pages that do not describe a command, each with its section of the manual and its summary."""

_INLINE = re.compile(r"`([^`]+)`|(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])")
# Without these escapes, roff prints typographic hyphens, quotes and accents, which a shell does not understand.
_LITERAL = str.maketrans(
    {"\\": r"\e", "-": r"\-", "'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", '"': r"\(dq"}
)


def manual_pages(nodes: Mapping[str, Node]) -> dict[str, str]:
    """Return the roff text of every page by file name."""
    texts = {"msgctl": ("SMS, calls, verification codes, short URLs and chat-app messages", _main_page(nodes))}
    for name in _with_page(nodes):
        about = nodes[name].summary.rstrip(".")
        texts[f"msgctl-{name}"] = (about, _command_page([node for node in nodes.values() if node.is_in(name)]))
    sections = {"msgctl": 1}
    for name, (section, about) in TOPICS.items():
        texts[name] = (about, [part(name.removeprefix("msgctl-"))])
        sections[name] = section
    written = {}
    for name, (about, blocks) in texts.items():
        section = sections.get(name, 1)
        others = ", ".join(f"`{other}`({number})" for other, number in sections.items() if other != name)
        title = f'.TH {_literal(name.upper())} {section} {DATE} "msgctl {__version__}" "msgctl manual"'
        # The first line makes man(1) run tbl(1). ".ad l": text is not justified.
        head = ["'\\\" t", title, ".ad l", ".SH NAME", rf"{_literal(name)} \- {_inline(about)}"]
        written[f"{name}.{section}"] = "\n".join([*head, *_roff("\n\n".join([*blocks, "# SEE ALSO", others]))]) + "\n"
    return written


def _with_page(nodes: Mapping[str, Node]) -> list[str]:
    """Return the groups and commands of the root that have a page."""
    return [name for name in nodes[""].children if name not in ("commands", "completion", "help")]


def part(name: str) -> str:
    """Return a text of ``pages/``, or an empty string. The text ``_reasons`` is the list of `REASONS`."""
    if name == "_reasons":
        reasons = ((name, *text.split(": ", 1)) for name, text in REASONS.items())
        return "\n".join(f": `{name}` ({code})\n  {capitalized(text)}." for name, code, text in reasons)
    path = PAGES / f"{name}.txt"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def for_terminal(text: str, width: int) -> str:
    """Return a text for a terminal of this width, without the marks of code and placeholders."""
    lines: list[str] = []

    def add(text: str, first: str = "", rest: str = "") -> None:
        unmarked = _INLINE.sub(lambda match: match[1] or match[2], " ".join(text.split()))
        lines.extend(textwrap.wrap(unmarked, width, initial_indent=first, subsequent_indent=rest))

    for block in _blocks(text):
        if block.startswith("    "):
            lines.append(block)
        elif block.startswith("| "):
            header, *rows = ([cell.strip() for cell in row.strip("|").split(" | ")] for row in block.split("\n"))
            for row in rows:
                add(row[0])
                for name, cell in zip(header[1:], row[1:], strict=True):
                    add(f"{name}: {cell}", "    ", "    ")
        elif block.startswith(("- ", ": ")):
            for item in re.split(r"\n(?=[-:] )", block):
                term, _, explanation = item.removeprefix(": ").partition("\n")
                if item.startswith("- "):
                    add(item, rest="  ")
                else:
                    add(term)
                    add(explanation, "    ", "    ")
        else:
            add(block.lstrip("# "))
        lines.append("")
    return "\n".join(lines)


def _main_page(nodes: Mapping[str, Node]) -> list[str]:
    introduction, sections = _split(part("msgctl"))
    children = [nodes[name] for name in nodes[""].children]
    overview = []
    for panel in dict.fromkeys(node.panel for node in children):
        lines = []
        for node in children:
            if node.panel == panel:
                see = f" See `msgctl-{node.path}`(1)." if node.path in _with_page(nodes) else ""
                lines.append(f": `msgctl {node.path}`\n  {node.summary}{see}")
        overview += [f"## {panel}", "\n".join(lines)]
    return [
        "# SYNOPSIS",
        "`msgctl` [*OPTIONS*] *COMMAND* ...",
        "# DESCRIPTION",
        introduction,
        "# COMMANDS",
        *overview,
        "# OPTIONS",
        "Every command accepts these options, before the group or after the command. But `--dry-run` is a usage error "
        "for a command that makes no request:",
        _parameters(nodes[""]),
        sections,
    ]


def _command_page(nodes: Sequence[Node]) -> list[str]:
    """Return the blocks of a page about a group with its commands, or about a single command."""
    page = nodes[0]
    runnable = [node for node in nodes if node.is_command]
    introduction, sections = _split(part(page.path) or _usual(nodes))
    commands = []
    for node in runnable:
        commands += [f"## msgctl {node.path}"] if page.is_group else []
        commands += [_parameters(node)] if node is page else [node.help, _parameters(node)]
    return [
        "# SYNOPSIS",
        "\\\n".join(map(_synopsis, runnable)),
        "# DESCRIPTION",
        page.help,
        introduction,
        "# COMMANDS" if page.is_group else "# OPTIONS",
        *commands,
        "`msgctl`(1) describes the options that every command accepts.",
        sections,
    ]


def _usual(nodes: Iterable[Node]) -> str:
    """Return the sections of a page without text in ``pages/``."""
    examples = "\n".join(f"    {example}" for node in nodes for example in node.facts.examples)
    return f"# EXIT STATUS\n\n%include _exit\n\n%include _environment\n\n# EXAMPLES\n\n{examples}"


def _synopsis(node: Node) -> str:
    required = [_option(option) for option in node.options if option.required]
    return " ".join([f"`msgctl {node.path}` [*OPTIONS*]", *required, *map(_argument, node.arguments)])


def _parameters(node: Node) -> str:
    listed = [(_argument(argument), argument.help, argument.default) for argument in node.arguments]
    for option in node.options:
        required = " Required." if option.required else ""
        listed.append((_option(option), option.help + required, option.default))
    return "\n".join(
        f": {tag}\n  {text}" + (f" The default is {default}." if default is not None else "")
        for tag, text, default in listed
    )


def _argument(argument: Parameter) -> str:
    name = argument.names[0] if argument.required else f"[{argument.names[0]}]"
    return f"*{name}...*" if argument.multiple else f"*{name}*"


def _option(option: Parameter) -> str:
    return ", ".join(f"`{name}`" for name in (*option.names, *option.off)) + (
        f" *{option.value}*" if option.value else ""
    )


def _split(text: str) -> tuple[str, str]:
    """Return the text before its first section, and the rest."""
    before, heading, after = f"\n{text}".partition("\n# ")
    return before, heading + after


# --- from the markup to roff


def _blocks(text: str) -> Iterator[str]:
    """Yield the blocks of a page, and of the parts that it includes."""
    whole = re.sub(r"^%include (\S+)$", lambda match: part(match[1]), text, flags=re.MULTILINE)
    yield from filter(None, re.split(r"\n(?:[ ]*\n)+", whole.strip("\n")))


def _roff(text: str) -> Iterator[str]:
    """Yield the roff lines of a text."""
    after_heading = False
    for block in _blocks(text):
        break_before = [] if after_heading else [".PP"]
        after_heading = block.startswith("#")
        if after_heading:
            yield f'.{"SS" if block.startswith("##") else "SH"} "{_literal(block.lstrip("# "))}"'
        elif block.startswith("    "):
            example = [_line(_literal(line.removeprefix("    "))) for line in block.split("\n")]
            yield from [*break_before, ".RS 4", ".EX", *example, ".EE", ".RE"]
        elif block.startswith(("- ", ": ")):
            yield from _list(block)
        elif block.startswith("| "):
            yield from _table(block)
        else:
            yield from [*break_before, "\n.br\n".join(map(_paragraph, block.split("\\\n")))]


def _list(block: str) -> Iterator[str]:
    for item in re.split(r"\n(?=[-:] )", block):
        if item.startswith("- "):
            yield from [r".IP \(bu 2", _paragraph(item.removeprefix("- "))]
        else:
            term, _, text = item.removeprefix(": ").partition("\n")
            yield from [".TP", _paragraph(term), _paragraph(text)]


def _table(block: str) -> Iterator[str]:
    """Yield a table of tbl(1), which fits 80 columns. Its words are not hyphenated, because that is hard to read."""
    header, *rows = ([_paragraph(cell) for cell in row.strip("|").split(" | ")] for row in block.split("\n"))
    yield from [".nh", ".TS", "lb lb lb", "lw(20n) lw(19n) lw(26n).", "\t".join(header)]
    for row in rows:
        yield from ["_", "\t".join(f"T{{\n{cell}\nT}}" for cell in row)]
    yield ".TE"


def _paragraph(text: str) -> str:
    """Return a paragraph as one line."""
    return _line(_inline(" ".join(text.split())))


def _inline(text: str) -> str:
    """Return a text with code in bold and placeholders in italics. Their words are never hyphenated."""
    written, end = "", 0
    for span in _INLINE.finditer(text):
        words = " ".join(rf"\%{word}" for word in _literal(span[1] or span[2]).split(" "))
        written += text[end : span.start()] + rf"\f{'B' if span[1] else 'I'}{words}\fR"
        end = span.end()
    return written + text[end:]


def _literal(text: str) -> str:
    """Return the roff for literal text."""
    return text.translate(_LITERAL)


def _line(text: str) -> str:
    """Return a line of text that roff does not read as a macro."""
    return rf"\&{text}" if text[:1] in {".", "'"} else text
