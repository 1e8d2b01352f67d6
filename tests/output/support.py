"""Answers as a service could send them, and what a printer makes of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from msgctl import operations
from msgctl.http.response import Response, read
from msgctl.operations import Operation
from msgctl.output.form import Format
from msgctl.output.printer import Printer
from msgctl.output.screen import Screen

DISPATCH = "8f3a2b6c-1d2e-4f5a-8b7c-9d0e1f2a3b4c"
FIRST = "0b9d7c55-7f0e-4b7e-a9a5-3f6f7d2c1e10"
SECOND = "5c1e2d3f-4a5b-4c6d-8e7f-901a2b3c4d5e"


def printed(
    show: Callable[[Printer], None],
    width: int | None = None,
    format: Format = Format.TABLE,
    *,
    fields: Sequence[str] = (),
    color: bool = False,
    encoding: str = "utf-8",
) -> str:
    """What stands on standard output afterwards."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="")
    unicode = encoding == "utf-8"
    show(Printer(Screen(stream, width, color, unicode), format, fields))
    return raw.getvalue().decode(encoding)


def answer(operation: Operation, document: dict[str, Any]) -> Response:
    return read(operation, json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def dispatch(*texts: str) -> Response:
    """An SMS dispatch to two numbers, or to one for each text given."""
    both = texts or ("Hola Ana, tu pedido sale hoy.", "Hola Luis, tu pedido sale hoy.")
    entries = [
        {"id": FIRST, "status": "sent", "credits": 1, "sms": both[0], "phone": "573001234567"},
        *(
            {"id": SECOND, "status": "rejected", "credits": 0, "sms": text, "phone": "573001230002"}
            for text in both[1:]
        ),
    ]
    return answer(operations.SEND_SMS, {"id": DISPATCH, "status": 1, "data": entries})


def state(id: str, state: str) -> Response:
    return answer(
        operations.MESSAGES_STATE,
        {
            "state": state,
            "credits": 1,
            "phone": 573001234567,
            "created": "2024-05-01 10:00:00",
            "sms": "Hola",
            "dispatch_id": DISPATCH,
            "id": id,
        },
    )


def clicks(category: str, property: Any, clicks: Any, **more: Any) -> dict[str, Any]:
    return {category: {"property": property, "clicks": clicks, **more}}


def statistics(*metrics: dict[str, Any], total: int = 96) -> Response:
    return answer(
        operations.URL_STATISTIC,
        {
            "urlShort": "https://s.example/spring",
            "urlLong": "https://www.example.com/landing/spring-sale",
            "clicksNumber": total,
            "metrics": list(metrics),
        },
    )
