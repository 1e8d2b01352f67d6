"""What is fuzzed: each parser with bytes, and what must hold of what it makes of them.

A target takes bytes that may be anything. It raises nothing, or an error of msgctl's own whose text can be shown.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from msgctl import phones, segments, values
from msgctl.errors import MsgctlError, UsageError
from msgctl.http.response import ShapeError, load_json, read
from msgctl.jobs.reader import InvalidRow, RecipientReader, Row, RowError, opened
from msgctl.jobs.template import Template
from msgctl.operations import OPERATIONS
from msgctl.output import jsontext
from msgctl.output.printer import Printer
from msgctl.output.result import Format, ServiceResult
from msgctl.output.screen import Screen
from support.runs import RAW_CONTROL

Target = Callable[[bytes], None]


def shown(*texts: str | None) -> None:
    """Texts that a person reads must hold nothing that acts on a terminal."""
    for text in texts:
        assert not RAW_CONTROL.search(text or ""), repr(text)


@contextmanager
def refused(*errors: type[MsgctlError]) -> Iterator[None]:
    """The errors that bytes may lead to."""
    try:
        yield
    except errors as error:
        shown(error.message, error.hint)


def recipients(data: bytes) -> None:
    """A file of recipients, read to its end."""
    column = "phone" if len(data) % 2 else "PHONE "
    with refused(UsageError), opened(io.BytesIO(data), "customers.csv", column) as found:
        _check_rows(found)


def _check_rows(found: RecipientReader) -> None:
    for each in found:
        if isinstance(each, InvalidRow):
            shown(each.phone, each.reason)
            continue
        assert each.phone.isascii()
        assert each.phone.isdecimal()
        assert 5 <= len(each.phone) <= 15
        assert len(each.values) == len(found.columns)
        "".join(each.values).encode()


def an_answer(data: bytes) -> None:
    """An answer to each operation, printed in each form."""
    for operation in OPERATIONS:
        with suppress(ShapeError):
            answer = read(operation, data)
            for form in Format:
                for width in (None, 20):
                    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
                    screen = Screen(stream, width, color=False)
                    Printer(screen, screen, form, clock=lambda: 0.0, quiet=True).print(ServiceResult([answer]))
                    if form is not Format.JSON or width:
                        shown(stream.buffer.getvalue().decode())


def json_text(data: bytes) -> None:
    """JSON laid out anew: it means what it meant, and every digit is there."""
    try:
        document = load_json(data)
        text = data.decode("utf-8-sig")
    except (ShapeError, UnicodeDecodeError):
        return
    with suppress(RecursionError):
        assert load_json("".join(jsontext.indent(text)).encode()) == document
        assert load_json(jsontext.compact(text).encode()) == document
        assert json.loads(jsontext.escape(text, ascii_only=True)) == json.loads(text)


def a_template(data: bytes) -> None:
    """A template, filled from a row."""
    text = data.decode("utf-8", "surrogateescape")
    with refused(UsageError):
        template = Template.parse(text, ("phone", "name", "Hour"))
        with suppress(RowError):
            template.fill(Row(2, "573001234567", ("573001234567", "Ana", "")))


def typed_values(data: bytes) -> None:
    """What a person types: phones, dates, URLs, numbers, texts; and the segments of a message."""
    text = data.decode("utf-8", "surrogateescape")
    with refused(UsageError):
        number = phones.read(text).digits
        assert number.isascii()
        assert number.isdecimal()
    with refused(UsageError):
        values.long_url(text)
    with refused(UsageError):
        values.country_code(text)
    with refused(UsageError):
        values.seconds(text, "a time")
    with refused(UsageError):
        message = values.message(text)
        assert segments.count(message).segments > 0
        with refused(UsageError):
            segments.to_gsm7(message)


TARGETS: dict[str, tuple[Target, tuple[bytes, ...]]] = {
    "recipients": (
        recipients,
        (
            b"phone,name\n573001234567,Ana\n",
            b'\xef\xbb\xbfsep=;\nphone;"n""a"\n+57 300 1;\xe9\n',
            b'{"phone": "573001234567", "a": [1]}\n',
        ),
    ),
    "answers": (
        an_answer,
        (
            b'{"id":"d1","status":1,"data":[{"id":"m1","status":"sent","credits":1,"sms":"x","phone":"57300"}]}',
            b'{"urlShort":"s","urlLong":"l","clicksNumber":2,"metrics":[{"date":{"property":"2026-01-01","clicks":2}}]}',
            b'{"state":"delivered","credits":1,"phone":573,"created":"x","sms":"\\u001b","dispatch_id":"d","id":"m"}',
        ),
    ),
    "json": (json_text, (b'{"a":[1.10,-0,1e5,"\\ud83d\\ude00\\u0000",{"b":null}],"a":true}',)),
    "templates": (a_template, (b"Hola {name}, {{x}} {hour}", b"{", b"}}")),
    "values": (typed_values, (b"+57 300 123-45.67", b"https://user@a.example:8443/p?q#f", b"7d", "Mañana €".encode())),
}
"""By name: the target, and samples to begin with."""
