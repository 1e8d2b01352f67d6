"""Command lines from the examples of the commands, with hostile changes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from support.examples import EXAMPLES, Example
from support.tree import COMMANDS, Node

NASTY = [
    *("- -- --- -h --help -V @ = =1 ' \" \\ % %zz { {} {x} {{ 0 -1 +1 1.5 1e9 1e-9 nan inf -0 00 1_0".split(" ")),
    *(str(number) for power in (31, 63, 64) for number in (2**power - 1, 2**power, -(2**power))),
    *"3600 3601 65535 65536 1e999 0.1 4 256 257 1000 12345 , 573001234567 573001234567,573007654321".split(" "),
    *("", " ", "9" * 20, "9" * 5000, "1" * 16, "+57 300 123 45.67", "a" * 300, "😀" * 100, "a" * 70_000, "漢字"),
    *("\x1b[2J", "\x9b31m", "\u202eabc", "\x7f", "a\nb", "a\rb", "\t", "\u2028", "\ufeff", "e\u0301", "\u200d"),
    *"today yesterday 7d 999999d 0001-01-01 9999-12-31 2026-02-30 -7d CO co XX ß Mia mariana date browser".split(" "),
    *"json csv tsv table xml main sandbox id,phone data.id a..b 0.0.0 . ~ ~x / /dev/null a/../b memory".split(" "),
    *"https://example.com/ http:// //x http://[::1 https://x:99999 file:///etc/passwd".split(" "),
    *"customers.csv notice.txt body.json order.json nothing.txt 20261121-3f9a2c 20261121-ffffff sms send".split(" "),
    *"config/msgctl/config.toml state/msgctl/sandbox.sqlite3 127.0.0.1 127.0.0.0/8 ::1 http://u:p@127.0.0.1:1/".split(),
    *("exit 3", "٣", "²", "0x10"),
    *"503 503:0.1 drop:1:/send-sms delay=1e9 delay=-1 html:2 GET POST /balance a=b =b a=".split(" "),
    *("\udcff", "a\udc80b", "\udced\udca0\udc80"),  # arguments that are not UTF-8 (PEP 383)
]

# No letters of ASCII among those at random: what a shell is given must not happen to be a command.
texts = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Ll", "Lu"]) | st.sampled_from("éñß漢"), max_size=12
)
values = st.sampled_from(NASTY) | st.sampled_from(NASTY) | texts
stdins = st.none() | st.sampled_from(
    [b"", b"573001234567\n", b"{}", b"[]", b"\xff\xfe", b"\x00", b"phone\n573001234567\n"]
)

Draw = Any


def spellings(node: Node) -> list[tuple[str, bool]]:
    """Every spelling of every option of a command, and whether it takes a value."""
    options = [each for each in node.command.params if each.param_type_name == "option"]
    return [(name, not each.is_flag) for each in options for name in (*each.opts, *each.secondary_opts)]


@st.composite
def typed_options(draw: Draw, node: Node) -> list[str]:
    """An option in one of the forms in which it can be typed, its value anything."""
    name, takes_value = draw(st.sampled_from(spellings(node)))
    if name.startswith("--") and draw(st.integers(0, 9)) == 0:
        name = name[: draw(st.integers(3, len(name)))]
    if not takes_value and draw(st.integers(0, 9)):
        return [name]
    value = draw(values)
    form = draw(st.integers(0, 2))
    joined = f"{name}={value}" if name.startswith("--") else name + value
    return [[name, value], [joined], [name]][form]


@st.composite
def changed(draw: Draw, node: Node, arguments: list[str]) -> list[str]:
    """A command line with one random change."""
    place = draw(st.integers(0, len(arguments)))
    before, after = arguments[:place], arguments[place:]
    kind = draw(st.integers(0, 7))
    if kind <= 3:
        return [*before, *draw(typed_options(node)), *after]
    if kind == 4:
        return [*before, draw(values), *after[1:]]
    if kind == 5:
        return [*before, *after[1:]]
    if kind == 6:
        return [*before, *after[:1], *after]
    return [*before, draw(st.sampled_from(["--", "-", "", draw(values)])), *after]


@st.composite
def command_lines(draw: Draw) -> tuple[list[str], bytes | None]:
    """A command line and its standard input: an example of a command, or its bare name, with some changes."""
    node = draw(st.sampled_from(COMMANDS))
    shown = [each for each in EXAMPLES if each.node is node]
    example = draw(st.sampled_from([*shown, Example(node, f"msgctl {node.path}")]))
    arguments = example.arguments
    for _ in range(draw(st.integers(0, 4))):
        arguments = draw(changed(node, arguments))
    return arguments, draw(st.just(example.stdin) | stdins)
