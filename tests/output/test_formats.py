"""JSON, csv, tsv and the choice of columns: what scripts rely on."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl import operations
from msgctl.errors import UsageError
from msgctl.http.response import read
from msgctl.output.fields import check_fields, check_own_fields
from msgctl.output.form import Format
from msgctl.output.printer import Printer
from msgctl.output.screen import Screen
from msgctl.text import is_unsafe
from output.support import DISPATCH, FIRST, SECOND, answer, clicks, dispatch, printed, state, statistics

ODD_BODY = b'\xef\xbb\xbf { "status" : 1.0e2,\r\n "x": "\xc3\xb1\xe2\x80\xae", "x": 00 }'.replace(b"00", b"0.10")


def test_json_in_a_pipe_is_the_body_to_the_byte() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Printer(Screen(stream, None, False, False), Format.JSON).answer(read(operations.BALANCE, ODD_BODY))
    assert raw.getvalue() == ODD_BODY


def test_json_comes_after_what_was_printed_before() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8")
    stream.write("first ")
    Printer(Screen(stream, None, False, True), Format.JSON).answer(answer(operations.BALANCE, {"status": 1}))
    assert raw.getvalue() == b'first {"status": 1}'


def test_json_reaches_a_stream_without_bytes() -> None:
    stream = io.StringIO()
    Printer(Screen(stream, None, False, True), Format.JSON).answer(answer(operations.BALANCE, {"status": 1}))
    assert stream.getvalue() == '{"status": 1}'


def test_json_on_a_terminal_is_indented_and_safe() -> None:
    odd = read(operations.BALANCE, ODD_BODY)
    assert printed(lambda printer: printer.answer(odd), 80, Format.JSON) == (
        '{\n  "status": 1.0e2,\n  "x": "ñ\\u202e",\n  "x": 0.10\n}\n'
    )
    assert printed(lambda printer: printer.answer(odd), 80, Format.JSON, encoding="ascii").isascii()


@pytest.mark.parametrize("width", [None, 80])
def test_several_answers_are_one_json_document_a_line(width: int | None) -> None:
    both = [read(operations.BALANCE, ODD_BODY), answer(operations.BALANCE, {"status": 3})]
    shown = "ñ\u202e" if width is None else "ñ\\u202e"
    assert printed(lambda printer: printer.answers(both), width, Format.JSON) == (
        f'{{"status":1.0e2,"x":"{shown}","x":0.10}}\n{{"status":3}}\n'
    )


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        (Format.TABLE, "/a\\x1b b\n"),
        (Format.JSON, '{"path":"/a\\u001b b"}\n'),
        (Format.CSV, "path\n/a\\x1b b\n"),
    ],
)
def test_a_single_value_is_bare_in_a_table_and_a_member_elsewhere(form: Format, shown: str) -> None:
    assert printed(lambda printer: printer.value("path", "/a\x1b b"), None, form) == shown


def test_csv_has_the_interfaces_members_in_order_and_a_row_an_entry() -> None:
    assert printed(lambda printer: printer.answer(dispatch("a,b", "c")), 40, Format.CSV) == (
        f'id,status,credits,sms,phone\n{FIRST},sent,1,"a,b",573001234567\n{SECOND},rejected,0,c,573001230002\n'
    )


def test_several_answers_share_one_csv_header() -> None:
    output = printed(lambda printer: printer.answers([state(FIRST, "sent"), state(SECOND, "sent")]), None, Format.CSV)
    assert [line.partition(",")[0] for line in output.splitlines()] == ["state", "sent", "sent"]


def test_tsv_has_no_quotes_and_writes_tabs_and_line_ends_visibly() -> None:
    output = printed(lambda printer: printer.answer(dispatch('say "a"\tb\nc')), None, Format.TSV)
    assert output.splitlines()[1] == f'{FIRST}\tsent\t1\tsay "a"\\tb\\nc\t573001234567'


def test_statistics_are_one_csv_row_with_the_metrics_as_json() -> None:
    stats = statistics(clicks("lang", "es", 3))
    [row] = csv.DictReader(io.StringIO(printed(lambda printer: printer.answer(stats), None, Format.CSV)))
    assert json.loads(row["metrics"]) == [{"lang": {"property": "es", "clicks": 3}}]
    assert row["clicksNumber"] == "96"


def test_members_that_the_service_added_come_after_the_known_ones() -> None:
    entry = {"route": {"via": [1.50]}, "id": "m1", "phone": "573001234567", "=sum": True, "sms": None}
    added = answer(operations.SEND_SMS, {"id": "d1", "data": [entry], "trace": "t1"})
    assert printed(lambda printer: printer.answer(added), None, Format.TSV) == (
        'id\tstatus\tcredits\tsms\tphone\troute\t\'=sum\nm1\t\t\t\t573001234567\t{"via":[1.5]}\ttrue\n'
    )
    table = printed(lambda printer: printer.answer(added))
    assert table.splitlines()[0] == "id d1   status    trace t1"
    assert table.splitlines()[2].split() == ["phone", "status", "credits", "id", "sms", "route", "=sum"]


@pytest.mark.parametrize("cell", ["=1+1", "@SUM(A1)"])
def test_a_cell_that_a_spreadsheet_would_run_is_marked(cell: str) -> None:
    for delimited in (Format.CSV, Format.TSV):
        assert f"'{cell}" in printed(lambda printer: printer.answer(dispatch(cell)), None, delimited)
    assert f"'{cell}" not in printed(lambda printer: printer.answer(dispatch(cell)))


@given(text=st.text(), format=st.sampled_from([Format.CSV, Format.TSV]))
def test_any_text_is_one_clean_row(text: str, format: Format) -> None:
    output = printed(lambda printer: printer.answer(dispatch(text)), None, format)
    assert output.count("\n") == 2
    assert not any(is_unsafe(char) for char in output if char not in "\n\t")


@pytest.mark.parametrize("format", [Format.TABLE, Format.CSV, Format.TSV])
def test_fields_choose_the_columns_and_their_order(format: Format) -> None:
    fields = ("sms", "data.phone", "data.1.id")
    output = printed(lambda printer: printer.answer(dispatch("Hola", "Adios")), None, format, fields=fields)
    rows = [line.replace(",", " ").split() for line in output.splitlines()]
    assert rows == [list(fields), ["Hola", "573001234567", SECOND], ["Adios", "573001230002", SECOND]]


def test_a_field_of_an_entry_is_never_filled_from_the_dispatch() -> None:
    bare = answer(operations.SEND_SMS, {"id": DISPATCH, "data": [{"phone": "573001234567"}]})
    output = printed(lambda printer: printer.answer(bare), None, Format.CSV, fields=("phone", "id"))
    assert output == "phone,id\n573001234567,\n"


def test_fields_of_a_record_without_entries_reach_into_it() -> None:
    stats = statistics(clicks("lang", "es", 3))
    fields = ("clicksNumber", "metrics.0.lang.property", "metrics.7.lang")
    assert printed(lambda printer: printer.answer(stats), fields=fields) == (
        "clicksNumber             96\nmetrics.0.lang.property  es\nmetrics.7.lang\n"
    )


@pytest.mark.parametrize("field", ["id", "data", "data.phone", "data.0.sms", "status"])
def test_fields_of_the_record_and_of_its_entries_are_accepted(field: str) -> None:
    check_fields([field], operations.RESPONSE_SMS)


@pytest.mark.parametrize("field", ["phoen", "", "data.phoen", ".phone", "\x1b[2J"])
def test_an_unknown_field_is_a_usage_error_that_lists_the_known_ones(field: str) -> None:
    with pytest.raises(UsageError, match="id, status, credits, sms, phone") as caught:
        check_fields(["id", field], operations.RESPONSE_SMS)
    assert not any(map(is_unsafe, caught.value.message))


def test_a_misspelled_field_gets_a_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        check_own_fields(["outcom"], ("line", "outcome"))
    assert caught.value.hint == "Did you mean outcome?"


OWN = {"job": "j1", "count": 2, "not_gsm7": ["á", "\x1b"], "done": False, "error": None}


def test_a_document_of_ones_own_is_a_listing_a_row_or_json() -> None:
    columns = ("job", "count", "not_gsm7")
    assert printed(lambda printer: printer.own(OWN, columns)) == (
        'job       j1\ncount     2\nnot_gsm7  ["á","\\u001b"]\n'
    )
    assert printed(lambda printer: printer.own(OWN, columns), None, Format.TSV) == (
        'job\tcount\tnot_gsm7\nj1\t2\t["á","\\u001b"]\n'
    )
    in_pipe = printed(lambda printer: printer.own(OWN, columns), None, Format.JSON)
    assert in_pipe == json.dumps(OWN, ensure_ascii=False, separators=(",", ":")) + "\n"
    on_terminal = printed(lambda printer: printer.own(OWN, columns), 80, Format.JSON)
    assert on_terminal == json.dumps(OWN, ensure_ascii=False, indent=2) + "\n"


def test_documents_of_ones_own_are_a_table_or_a_json_array() -> None:
    rows = [{"job": "j1", "state": "done"}, {"job": "j22"}]
    assert printed(lambda printer: printer.own(rows, ("job", "state"))) == "job  state\nj1   done\nj22\n"
    assert printed(lambda printer: printer.own(rows, ("job", "state")), fields=("state",)) == "state\ndone\n\n"
    assert json.loads(printed(lambda printer: printer.own(rows, ("job",)), None, Format.JSON)) == rows


@pytest.mark.parametrize(("format", "text"), [(Format.TABLE, ""), (Format.JSON, "[]\n"), (Format.CSV, "job,state\n")])
def test_no_documents_are_no_rows(format: Format, text: str) -> None:
    assert printed(lambda printer: printer.own([], ("job", "state")), None, format) == text


def test_a_file_name_that_is_not_unicode_is_json_all_the_same() -> None:
    output = printed(lambda printer: printer.own({"file": "\udcff"}, ("file",)), None, Format.JSON)
    assert output == '{"file":"\\udcff"}\n'


def test_what_an_encoding_lacks_is_written_visibly() -> None:
    output = printed(lambda printer: printer.answer(dispatch("añ✓")), None, encoding="latin-1")
    assert output.splitlines()[-1].endswith("añ\\u2713")


class _Pipe(io.BytesIO):
    """A pipe whose reader has gone, until it is mended so that it can be thrown away."""

    broken = True

    def write(self, data: Any) -> int:
        if self.broken:
            raise BrokenPipeError
        return super().write(data)


@pytest.mark.parametrize("format", list(Format))
def test_a_closed_pipe_is_noticed_while_printing(format: Format) -> None:
    pipe = _Pipe()
    stream = io.TextIOWrapper(pipe)
    with pytest.raises(BrokenPipeError):
        Printer(Screen(stream, None, False, True), format).answer(dispatch())
    pipe.broken = False
    stream.close()


def test_json_is_whole_where_a_stream_takes_it_in_parts() -> None:
    class Unbuffered(io.BytesIO):
        def write(self, data: Any) -> int:
            return super().write(bytes(data)[:7])

    raw = Unbuffered()
    stream = io.TextIOWrapper(raw)
    Printer(Screen(stream, None, False, True), Format.JSON).answer(dispatch())
    assert raw.getvalue() == dispatch().body
