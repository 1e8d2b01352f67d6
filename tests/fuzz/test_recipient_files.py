"""Whatever is in a file of recipients: it is refused before anything is sent, or each gets what may be sent."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fuzz.damage import VALUES, contents
from fuzz.world import World, tries

LINES = (
    ("sms", "bulk", "-", "-m", "Hola {name}"),
    ("sms", "bulk", "-", "-m", "Hola", "--skip-invalid"),
    ("sms", "bulk", "-", "-m", "{name} {{}}", "--gsm7", "--skip-invalid", "--batch-size", "2"),
    ("call", "bulk", "-", "-m", "{ name }", "--voice", "Mia", "--skip-invalid", "--json"),
    ("chatapp", "bulk", "-", "--template", "t", "--skip-invalid"),
    ("block", "bulk", "-", "--skip-invalid"),
    ("sms", "bulk", "-", "-m", "x {NAME}", "--phone-column", "PHONE", "-n"),
)
CSV = 'phone,name\n573001234567,Ana\n573007654321,"Lu""is\nRuiz"\n+57 300 999 99.99,Íñigo €\n'
JSON_LINES = '{"phone": "573001234567", "name": "Ana"}\n{"phone": 573007654321, "name": "Lu\\u00eds", "age": 3}\n'
SAMPLES = [
    text.encode(encoding)
    for text in (CSV, CSV.replace(",", ";"), JSON_LINES)
    for encoding in ("utf-8", "cp1252", "utf-16")
]

phones = st.sampled_from(
    ["573001234567", "+57 (300) 765.43-21", "57300", "12", "", "5.73E+11", "573001234567.0", "Ana", "\x1b[2J"]
)
names = st.sampled_from(
    ["Ana", "", " ", "a\nb", "\x1b[2J", "\u202e", "{name}", "x" * 3000, "é" * 100, "=1+1", "😀", "\ud800"]
)
headers = st.lists(st.sampled_from(["phone", "name", "Phone", " name ", "", "PHONE", "x", "\x1b"]), max_size=3)
rows = st.lists(st.tuples(phones, names), max_size=4)


@st.composite
def tables(draw: Any) -> bytes:
    """CSV that is well formed, whatever it says."""
    target = io.StringIO()
    writer = csv.writer(
        target, delimiter=draw(st.sampled_from(",;\t")), lineterminator=draw(st.sampled_from(["\n", "\r\n", "\r"]))
    )
    writer.writerow(["phone", "name", *draw(headers)] if draw(st.integers(0, 4)) else draw(headers))
    writer.writerows([phone, name, *draw(st.lists(names, max_size=2))] for phone, name in draw(rows))
    return target.getvalue().encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "cp1252"])), "replace")


@st.composite
def objects(draw: Any) -> bytes:
    """JSON Lines that are well formed, whatever they say."""
    lines = [
        {"phone": phone, "name": name, **draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=2))}
        for phone, name in draw(rows)
    ]
    lines += draw(st.lists(VALUES, max_size=2))
    return "\n".join(json.dumps(line) for line in lines).encode()


@tries(160)
@given(content=contents(*SAMPLES) | tables() | objects(), line=st.sampled_from(LINES))
def test_any_file_of_recipients_ends_well(content: bytes, line: tuple[str, ...], world: World) -> None:
    world.renew()
    outcome = world.run([*line, "--yes", "-p", "main"], stdin=content)
    assert outcome.code != 3, outcome.err  # a mistake in a file of recipients is none of the ledger
