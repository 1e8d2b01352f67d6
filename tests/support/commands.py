"""The commands that make a request, grouped by its effect, each with a response that it can read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

PHONE = "573001234567"


@dataclass(frozen=True)
class Command:
    """A command line, its method and path below the base URL, and a record for its response."""

    line: tuple[str, ...]
    method: str
    path: str
    record: dict[str, Any]


def _command(line: str, request: str, record: dict[str, Any]) -> Command:
    method, path = request.split()
    return Command(tuple(line.split()), method, path, record)


_CHATAPP: dict[str, Any] = {"id": "d1", "status": "sent", "phone": PHONE, "name": "Ana"}
_ENTRY: dict[str, Any] = {"id": "m1", "status": "sent", "credits": 1, "sms": "Hola", "phone": PHONE}
_SMS_2FA = {"id": "d1", "status": "ok", "minutes_to_expire": 5, "data": [_ENTRY]}
_CALL_ENTRY: dict[str, Any] = {"id": "m1", "state": "queued", "credits": 2, "phone": PHONE, "voice": "Mia"}
_CALL = {"status": "ok", "id": "d1", "data": [{**_CALL_ENTRY, "message": "Hola"}]}
_CALL_2FA = {"status": "ok", "id": "d1", "minutes_to_expire": 5, "data": [_CALL_ENTRY]}
_SHORT = {"urlShort": "https://s.example/p", "urlLong": "https://example.com/a"}

READS = {
    "balance": _command("balance", "GET /balance", {"status": 1500}),
    "state get": _command("state get m1", "GET /messages-state", {"state": "delivered", "id": "m1"}),
    "url stats": _command(
        "url stats promo --since 2026-01-01", "POST /url/short-statistic", {**_SHORT, "clicksNumber": 0, "metrics": []}
    ),
}
CHANGES = {
    "block add": _command(f"block add {PHONE}", "POST /block-phone", _CHATAPP),
    "2fa verify": _command(
        f"2fa verify {PHONE} --app-name Shop --code 123456", "POST /2fa/verification-code", {"status": "verified"}
    ),
    "url shorten": _command(
        "url shorten https://example.com/a --name promo", "POST /url/short", {**_SHORT, "msg": "created"}
    ),
}
SENDS = {
    "sms send": _command(f"sms send {PHONE} -m Hola", "POST /send-sms", {"id": "d1", "status": 1, "data": [_ENTRY]}),
    "call send": _command(f"call send {PHONE} -m Hola --voice Mia", "POST /call/send", _CALL),
    "2fa send-sms": _command(f"2fa send-sms {PHONE} --app-name Shop", "POST /2fa/send-sms", _SMS_2FA),
    "2fa send-call": _command(
        f"2fa send-call {PHONE} --app-name Shop --voice Mariana --retries 1", "POST /call/2fa/send-call", _CALL_2FA
    ),
    "2fa send-chatapp": _command(f"2fa send-chatapp {PHONE} --app-name Shop", "POST /2fa/send-chatapp", _CHATAPP),
    "chatapp send": _command(f"chatapp send {PHONE} Ana --template hello", "POST /chatapp/send", _CHATAPP),
    "chatapp order": _command(f"chatapp order {PHONE} A-7 --template order", "POST /chatapp/store/order", _CHATAPP),
}
MADE_ONCE = {**CHANGES, **SENDS}
ALL = {**READS, **MADE_ONCE}


def each(commands: dict[str, Command]) -> pytest.MarkDecorator:
    """Run a test with every one of the commands, as its parameter ``command``."""
    return pytest.mark.parametrize("command", list(commands.values()), ids=list(commands))
