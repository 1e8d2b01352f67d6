"""What people see, held against files in ``views/`` that anyone can read.

``MSGCTL_WRITE_VIEWS=1 pytest tests/output/test_views.py`` writes them anew. In the files with colour, ESC is written
as ``^[``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.service import Service, answer
from support.tool import Tool

VIEWS = Path(__file__).parent / "views"
WRITES = "MSGCTL_WRITE_VIEWS" in os.environ  # read before the tests take such variables away
FIRST, SECOND, THIRD = "573001234567", "573001230002", "81312345678"
READY = "Your order is ready"
JAPANESE = "ご注文の品が届きました。"
LONG = "El pedido 4417 está listo. Pasa por él hoy hasta las 18:00, trae tu documento. 🎉 谢谢您的订单"


def sms(phone: str, status: str = "queued", credits: int = 1, text: str = READY) -> dict[str, Any]:
    return {"id": f"5be1f296{phone[-8:]}", "status": status, "credits": credits, "sms": text, "phone": phone}


def dispatch(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": "b387be2e83b51614", "status": 1, **more, "data": list(entries)}


def state(id: str, word: str) -> dict[str, Any]:
    created = "2026-09-21 14:46:23"
    return {"state": word, "credits": 1, "phone": int(FIRST), "created": created, "sms": READY, "id": id}


METRICS = [
    *(
        {"date": {"property": f"2026-09-{day:02}", "clicks": clicks}}
        for day, clicks in [(17, 136), (18, 289), (20, 97)]
    ),
    *({"hour": {"property": f"{hour:02}:00", "clicks": clicks}} for hour, clicks in [(8, 80), (9, 122), (20, 84)]),
    *({"country": {"property": name, "clicks": clicks}} for name, clicks in [("CO", 1003), ("MX", 224), ("US", 1)]),
    *({"device": {"property": name, "clicks": clicks}} for name, clicks in [("mobile", 719), ("desktop", 496)]),
]
STATISTICS = {
    "urlShort": "https://s.example/u/yJuL9wV",
    "urlLong": "https://example.com/offers/november",
    "clicksNumber": 1228,
    "metrics": METRICS,
}

CALL = {"id": "e76ba6ddfcf240be", "state": "queued", "credits": 1, "message": READY, "phone": FIRST, "voice": "Mia"}
BLOCKED = {"id": "b04120cd7a23458f", "status": "blocked", "phone": FIRST, "name": "Ana"}
SHORT = {"urlShort": "https://s.example/u/8z8hAGz", "urlLong": "https://example.com/offers/november", "msg": "created"}

SHOWN: dict[str, tuple[tuple[str, ...], list[dict[str, Any]]]] = {
    "sms send": (("sms", "send", FIRST, SECOND, "-m", READY), [dispatch(sms(FIRST), sms(SECOND))]),
    "sms send, one refused": (
        ("sms", "send", FIRST, SECOND, THIRD, "-m", READY),
        [dispatch(sms(FIRST, "queued", 2, LONG), sms(SECOND, "rejected", 0), sms(THIRD, "queued", 12, JAPANESE))],
    ),
    "call send": (
        ("call", "send", FIRST, "-m", READY, "--voice", "Mia"),
        [{"status": "ok", "id": "d1", "data": [CALL]}],
    ),
    "chatapp send": (
        ("chatapp", "send", FIRST, "Ana", "--template", "hello"),
        [{"id": "c1a66ba6ddfcf240", "status": "sent", "phone": FIRST, "name": "hello"}],
    ),
    "balance": (("balance",), [{"status": 1988}]),
    "balance check": (("balance", "check", "--min", "100000"), [{"status": 584}]),
    "block add": (("block", "add", FIRST, "--name", "Ana"), [BLOCKED]),
    "2fa send-sms": (
        ("2fa", "send-sms", FIRST, "--app-name", "Shop"),
        [dispatch(sms(FIRST, text="****** is your Shop code."), minutes_to_expire=10)],
    ),
    "2fa verify": (("2fa", "verify", FIRST, "--app-name", "Shop", "--code", "184830"), [{"status": "verified"}]),
    "url shorten": (
        ("url", "shorten", "https://example.com/offers/november", "--name", "offers"),
        [SHORT],
    ),
    "url stats": (("url", "stats", "offers", "--since", "2026-09-17"), [STATISTICS]),
    "state get": (
        ("state", "get", "f851daa8f64749b2", "9d7adb11ab4432ff"),
        [state("f851daa8f64749b2", "delivered"), state("9d7adb11ab4432ff", "rejected")],
    ),
    "a refusal": (("balance",), [{"error": "INVALID_KEY", "msg": "The key is not valid"}]),
    "a mistake": (("sms", "sned"), []),
}  # fmt: skip


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def held(name: str, shown: str) -> None:
    """Compare a view with its file, or write the file."""
    path = VIEWS / f"{name.replace(', ', '-').replace(' ', '-')}.txt"
    shown = shown.replace("\x1b", "^[")
    if WRITES:
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == shown


def show(name: str, service: Service, tool: Tool, *options: str) -> str:
    """Both streams of a command on a terminal: first what standard error says, then the result."""
    line, records = SHOWN[name]
    service.will(*(answer(record, 520 if "error" in record else 200) for record in records))
    done = tool(*line, *options, terminal=True)
    return f"{done.err}---\n{done.out}"


@pytest.mark.parametrize("name", SHOWN)
def test_each_view_at_100_60_and_40_columns(
    name: str, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for columns in (100, 60, 40):
        monkeypatch.setenv("COLUMNS", str(columns))
        pages.append(f"=== {columns} columns\n{show(name, service, tool, '--no-color')}")
    held(name, "\n".join(pages))


@pytest.mark.parametrize("name", ["sms send, one refused", "url stats", "balance", "a refusal"])
def test_the_colours_of_a_view(name: str, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    held(f"{name}, in colour", show(name, service, tool))


def test_the_history_at_100_60_and_40_columns(service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sms send, one refused", "call send", "block add"):
        tool.clock.now += 400
        show(name, service, tool)
    pages = []
    for columns in (100, 60, 40):
        monkeypatch.setenv("COLUMNS", str(columns))
        pages.append(f"=== {columns} columns\n{tool('history', '--no-color', terminal=True).out}")
    held("history", "\n".join(pages))


def test_more_than_a_block_of_rows_keeps_its_columns(service: Service, tool: Tool) -> None:
    phones = [f"57300{number:07}" for number in range(1, 251)]
    service.will(answer(dispatch(*(sms(phone, text=f"Hello {phone}") for phone in phones))))
    lines = tool("sms", "send", ",".join(phones), "-m", "Hello", "--no-color", terminal=True).out.splitlines()
    rows = [line for line in lines if line.startswith("57300")]
    assert [line.split()[0] for line in rows] == phones
    assert len({line.index("○") for line in rows}) == 1
    assert len([line for line in lines if line.startswith("Phone")]) == 1
