"""Verification codes: one for a phone and an app name, sent three ways, good once and for ten minutes."""

from __future__ import annotations

import hmac

from msgctl import segments
from msgctl.sandbox import delivery
from msgctl.sandbox.behaviour.chatapp import record
from msgctl.sandbox.behaviour.messaging import sms_entry
from msgctl.sandbox.dispatch import Content, Context, Message, send, status
from msgctl.sandbox.parameters import Parameters
from msgctl.sandbox.wire import Refusal

MINUTES_TO_EXPIRE = 10
DEFAULT_TEMPLATE = "verification-code"

_DIGITS = 6


def send_sms(context: Context, parameters: Parameters) -> dict[str, object]:
    message = _send_code(context, parameters, delivery.SMS)
    return {
        "id": message.dispatch_id,
        "status": status([message]),
        "minutes_to_expire": MINUTES_TO_EXPIRE,
        "data": [sms_entry(message)],
    }


def send_call(context: Context, parameters: Parameters) -> dict[str, object]:
    message = _send_code(context, parameters, delivery.CALL, voice=parameters.text("voice"))
    entry = {
        "id": message.id,
        "state": message.first_state,
        "credits": message.credits,
        "phone": int(message.phone),
        "voice": message.content.voice,
    }
    return {
        "status": status([message]),
        "id": message.dispatch_id,
        "minutes_to_expire": MINUTES_TO_EXPIRE,
        "data": [entry],
    }


def send_chatapp(context: Context, parameters: Parameters) -> dict[str, object]:
    template = parameters.optional("template") or DEFAULT_TEMPLATE
    return record(_send_code(context, parameters, delivery.CHATAPP, template=template))


def verify(context: Context, parameters: Parameters) -> dict[str, object]:
    """Use a code up. Raises Refusal where it is wrong, used, expired or was never sent."""
    place = (parameters.text("phone"), parameters.text("app-name"))
    row = context.db.execute("SELECT code, expires FROM codes WHERE phone = ? AND app_name = ?", place).fetchone()
    if row is None or not hmac.compare_digest(row["code"].encode(), parameters.text("code").encode()):
        raise Refusal("INVALID_CODE", "code: it is not the code that was sent last, or it was used")
    if context.now >= row["expires"]:
        raise Refusal("EXPIRED_CODE", f"code: it expired, {MINUTES_TO_EXPIRE} minutes after it was sent")
    context.db.execute("DELETE FROM codes WHERE phone = ? AND app_name = ?", place)
    return {"status": "verified"}


def _send_code(
    context: Context, parameters: Parameters, kind: str, *, voice: str | None = None, template: str | None = None
) -> Message:
    """Send a new code, in place of an older one, unless the phone is blocked."""
    phone, app_name = parameters.text("phone"), parameters.text("app-name")
    code = f"{context.random.randrange(10**_DIGITS):0{_DIGITS}}"
    text = _wording(code, app_name)
    content = Content(
        kind,
        text,
        shown=_wording("*" * _DIGITS, app_name),
        credits=segments.count(text).segments if kind == delivery.SMS else 1,
        code=code,
        voice=voice,
        template=template,
    )
    (message,) = send(context, [phone], content)
    if not message.blocked:
        expires = context.now + MINUTES_TO_EXPIRE * 60
        context.db.execute(
            "REPLACE INTO codes (phone, app_name, code, expires) VALUES (?, ?, ?, ?)", (phone, app_name, code, expires)
        )
    return message


def _wording(code: str, app_name: str) -> str:
    return f"{code} is your {app_name} code. It expires in {MINUTES_TO_EXPIRE} minutes."
