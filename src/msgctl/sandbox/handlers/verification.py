"""Verification codes: one for each phone and app name, used once, valid for ten minutes, sent in three ways."""

from __future__ import annotations

import hmac

from msgctl import segments
from msgctl.sandbox import messages
from msgctl.sandbox.decode import Parameters
from msgctl.sandbox.handlers.chatapp import chatapp_record
from msgctl.sandbox.handlers.messaging import sms_entry
from msgctl.sandbox.messages import Content, Message, Scope
from msgctl.sandbox.protocol import Refusal

MINUTES_TO_EXPIRE = 10
DEFAULT_TEMPLATE = "verification-code"

_DIGITS = 6


def send_sms(scope: Scope, parameters: Parameters) -> dict[str, object]:
    message = _send_code(scope, parameters, messages.SMS)
    return {
        "id": message.dispatch_id,
        "status": messages.status([message]),
        "minutes_to_expire": MINUTES_TO_EXPIRE,
        "data": [sms_entry(message)],
    }


def send_call(scope: Scope, parameters: Parameters) -> dict[str, object]:
    message = _send_code(scope, parameters, messages.CALL, voice=parameters.text("voice"))
    entry = {
        "id": message.id,
        "state": message.states[0],
        "credits": message.credits,
        "phone": int(message.phone),
        "voice": message.content.voice,
    }
    return {
        "status": messages.status([message]),
        "id": message.dispatch_id,
        "minutes_to_expire": MINUTES_TO_EXPIRE,
        "data": [entry],
    }


def send_chatapp(scope: Scope, parameters: Parameters) -> dict[str, object]:
    template = parameters.optional("template") or DEFAULT_TEMPLATE
    return chatapp_record(_send_code(scope, parameters, messages.CHATAPP, template=template))


def verify(scope: Scope, parameters: Parameters) -> dict[str, object]:
    """Accept a code once. Raises Refusal if it is wrong, used, expired, or was never sent."""
    key = (parameters.text("phone"), parameters.text("app-name"))
    row = scope.db.execute("SELECT code, expires FROM codes WHERE phone = ? AND app_name = ?", key).fetchone()
    if row is None or not hmac.compare_digest(row["code"].encode(), parameters.text("code").encode()):
        raise Refusal("INVALID_CODE", "code: not the last code sent, or already used", parameter="code")
    if scope.now >= row["expires"]:
        raise Refusal("EXPIRED_CODE", f"code: expired {MINUTES_TO_EXPIRE} minutes after it was sent", parameter="code")
    scope.db.execute("DELETE FROM codes WHERE phone = ? AND app_name = ?", key)
    return {"status": "verified"}


def _send_code(
    scope: Scope, parameters: Parameters, kind: str, *, voice: str | None = None, template: str | None = None
) -> Message:
    """Send a new code, which replaces an older one. A blocked phone keeps its older code."""
    phone, app_name = parameters.text("phone"), parameters.text("app-name")
    code = f"{scope.random.randrange(10**_DIGITS):0{_DIGITS}}"
    text = _wording(code, app_name)
    content = Content(
        kind,
        text,
        shown=_wording("*" * _DIGITS, app_name),
        credits=segments.count(text).segments if kind == messages.SMS else 1,
        code=code,
        voice=voice,
        template=template,
    )
    (message,) = messages.send(scope, [phone], content)
    if not message.blocked:
        expires = scope.now + MINUTES_TO_EXPIRE * 60
        scope.db.execute(
            "REPLACE INTO codes (phone, app_name, code, expires) VALUES (?, ?, ?, ?)", (phone, app_name, code, expires)
        )
    return message


def _wording(code: str, app_name: str) -> str:
    return f"{code} is your {app_name} code. It expires in {MINUTES_TO_EXPIRE} minutes."
