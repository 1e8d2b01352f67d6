"""Standard output contains only the result: the bytes of the response with --json, or a table, csv or tsv."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from weakref import WeakSet

import pytest

from msgctl.output.printer import Printer, Screen
from msgctl.output.result import Format, OwnResult, StoredRows
from support.commands import ALL, PHONE, SENDS
from support.service import Service, respond
from support.tool import Tool

SMS = SENDS["sms send"].line


BODIES: dict[str, bytes] = {
    "as usual": b'{"status":1500}',
    "line ends and tabs": b'\r\n{ "status"\t:\r\n1500 ,"new":[ ] }\n\n',
    "no digit lost": b'{"status":12345678901234567890123456789.10,"a":1.0,"b":1e400,"c":-0,"d":1E+2}',
    "unknown fields in their order": b'{"zeta":1,"status":2,"alpha":{"z":null,"a":[true,false]}}',
    "escapes as they were": b'{"status":"\\u00e9\\/\\u001b","x":"\xc3\xa9"}',
    "a lone surrogate": b'{"status":"\\ud800"}',
    "control characters in a name": b'{"status":1,"\\u0000\\u001b":"\\u009b"}',
    "DEL": b'{"status":"\x7f"}',
    "direction marks": '{"status":"\u202eabc\u2066"}'.encode(),
    "a byte order mark": b'\xef\xbb\xbf{"status":1}',
    "markup": b'{"status":"[bold red]x[/]"}',
    "the largest response": b'{"status":"' + b"x" * 262_000 + b'"}',
}  # fmt: skip


def test_json_of_every_command_is_the_bytes_of_the_service(service: Service, tool: Tool) -> None:
    for command in ALL.values():
        body = json.dumps({**command.record, "new": [1.10, {"x": "ñ"}]}, indent=3, ensure_ascii=False).encode()
        service.always(respond(body))
        assert tool(*command.line, "--json").stdout == body + b"\n", command.line


@pytest.mark.parametrize("body", list(BODIES.values()), ids=list(BODIES))
def test_json_on_a_terminal_is_the_same_value_without_control_characters(
    body: bytes, service: Service, tool: Tool
) -> None:
    service.will(respond(body))
    outcome = tool("balance", "--json", terminal=True)
    text = body.decode("utf-8-sig").replace("\r\n", "\n")
    assert "".join(filter(str.isspace, outcome.out)).strip("\n") == "".join(filter(str.isspace, text)).strip("\n")
    assert re.sub(r"[\n\t]", "", outcome.out).isprintable()
    exact: dict[str, Any] = {"parse_int": str, "parse_float": str, "object_pairs_hook": list}
    assert json.loads(outcome.out, **exact) == json.loads(text, **exact)


# --- tables, csv, tsv


def dispatch(text: str) -> dict[str, Any]:
    entry = {"id": "m1", "status": "sent", "credits": 1, "sms": text, "phone": PHONE}
    return {"id": "d1", "status": 1, "data": [entry], "origin": "new field"}


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=1+1", "'=1+1"),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-2+3+cmd|x", "'-2+3+cmd|x"),
        ("+57 300 123-4567", "+57 300 123-4567"),
        ("+573001234567", "+573001234567"),
        ("+57-300-1234567", "'+57-300-1234567"),
        ("-1-2", "'-1-2"),
        ("-(1)", "'-(1)"),
        ("+1 - 2", "'+1 - 2"),
        ("-e5", "'-e5"),
        ("-", "'-"),
        ("-12.5", "-12.5"),
        ("-.5", "-.5"),
        ("-1.5e+10", "-1.5e+10"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1+1", "'\t=1+1"),
        ("\r=1+1", "'\r=1+1"),
    ],
)
def test_a_cell_of_csv_is_never_a_formula_and_other_formats_keep_it(
    text: str, cell: str, service: Service, tool: Tool
) -> None:
    service.always(respond(dispatch(text)))
    assert list(csv.reader(io.StringIO(tool(*SMS, "-o", "csv", "--fields", "sms").out, newline="")))[1] == [cell]
    assert tool(*SMS, "-o", "tsv", "--fields", "sms").out.splitlines() == [
        "sms",
        text.replace("\t", "\\t").replace("\r", "\\r"),
    ]
    assert json.loads(tool(*SMS, "-o", "jsonl", "--fields", "sms").out) == {"sms": text}


def test_newlines_in_a_cell_stay_in_csv_and_are_escaped_in_tsv(service: Service, tool: Tool) -> None:
    service.always(respond(dispatch("one\ntwo\r\nthree\u2028\x0b\n")))
    cells = [*csv.reader(io.StringIO(tool(*SMS, "-o", "csv", "--fields", "sms").out, newline=""))]
    assert cells == [["sms"], ["one\ntwo\r\nthree\u2028\\x0b\n"]]
    shown = tool(*SMS, "-o", "csv", "--fields", "sms", terminal=True).out
    assert shown == 'sms\n"one\ntwo\nthree\\u2028\\x0b\n"\n'
    assert tool(*SMS, "-o", "tsv", "--fields", "sms").out == "sms\none\\ntwo\\r\\nthree\u2028\\x0b\\n\n"


def test_jsonl_keeps_each_type_and_digit(service: Service, tool: Tool) -> None:
    entry = b'{"id":7,"status":true,"credits":1.10,"sms":{"a":[1e400]},"phone":""}'
    service.always(respond(b'{"id":"d1","status":12345678901234567890123,"data":[%s]}' % entry))
    line = '{"id":7,"status":true,"credits":1.10,"sms":{"a":[1e400]},"phone":null,"dispatch.id":"d1","dispatch.status":'
    assert tool(*SMS, "-o", "jsonl").out == line + "12345678901234567890123}\n"


@pytest.mark.parametrize("form", ["tsv", "json", "csv", "jsonl"])
def test_a_report_is_printed_row_by_row(form: str) -> None:
    alive: WeakSet[Row] = WeakSet()
    most = 0

    def rows() -> Iterator[Row]:
        nonlocal most
        for number in range(1000):
            row = Row(line=number)
            alive.add(row)
            most = max(most, len(alive))
            yield row

    out = io.TextIOWrapper(io.BytesIO())
    screen = Screen(out, None, color=False)
    Printer(screen, screen, Format(form), now=datetime.now).print(OwnResult(StoredRows(rows), ("line",)))
    assert 1 <= most <= 10


class Row(dict[str, Any]):
    """A document that can be referred to weakly."""

    __hash__ = object.__hash__  # type: ignore[assignment]
