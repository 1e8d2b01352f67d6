"""Balance, blocked numbers, SMS, calls, and the state of a message."""

from __future__ import annotations

from msgctl import segments
from msgctl.sandbox import messages
from msgctl.sandbox.decode import Parameters
from msgctl.sandbox.messages import Content, Message, Scope
from msgctl.sandbox.protocol import Refusal, invalid, missing, quoted
from msgctl.text import timestamp


def balance(scope: Scope, _parameters: Parameters) -> dict[str, object]:
    (left,) = scope.db.execute("SELECT credits FROM account").fetchone()
    return {"status": left}


def block_phone(scope: Scope, parameters: Parameters) -> dict[str, object]:
    """Block a number. Blocking it again only changes its name."""
    phone = parameters.text("phone")
    known = scope.db.execute("SELECT id, name FROM blocked WHERE phone = ?", (phone,)).fetchone()
    block_id = known["id"] if known else messages.new_id(scope.random)
    name = parameters.optional("name") or (known["name"] if known else "")
    scope.db.execute("REPLACE INTO blocked (phone, id, name) VALUES (?, ?, ?)", (phone, block_id, name))
    return {"id": block_id, "status": "blocked", "phone": phone, "name": name}


def send_sms(scope: Scope, parameters: Parameters) -> dict[str, object]:
    text = parameters.text("sms")
    content = Content(messages.SMS, text, text, credits=segments.count(text).segments)
    sent = messages.send(scope, parameters.several("phone"), content)
    return {
        "id": sent[0].dispatch_id,
        "status": int(messages.accepted(sent)),
        "data": [sms_entry(message) for message in sent],
    }


def sms_entry(message: Message) -> dict[str, object]:
    """Return the entry of an SMS in the ``data`` of a dispatch."""
    return {
        "id": message.id,
        "status": message.states[0],
        "credits": message.credits,
        "sms": message.content.shown,
        "phone": message.phone,
    }


def send_call(scope: Scope, parameters: Parameters) -> dict[str, object]:
    _check_speech(parameters)
    text = parameters.optional("message") or ""
    content = Content(
        messages.CALL,
        text,
        text,
        credits=1,
        voice=parameters.optional("voice"),
        audio_code=parameters.optional("audio-code"),
        voicemail=parameters.flag("leave-voicemail"),
    )
    sent = messages.send(scope, parameters.several("phone"), content)
    return {
        "status": messages.status(sent),
        "id": sent[0].dispatch_id,
        "data": [_call_entry(message) for message in sent],
    }


def messages_state(scope: Scope, parameters: Parameters) -> dict[str, object]:
    """Return the state of one message, with its text; a code in it is masked."""
    message_id = parameters.text("id")
    row = scope.db.execute("SELECT * FROM messages WHERE id = ?", (message_id,)).fetchone()
    if row is None:
        raise Refusal("NOT_FOUND", f"id: no message {quoted(message_id)}", parameter="id")
    return {
        "state": messages.reached(row, scope.now)[-1],
        "credits": row["credits"],
        "phone": int(row["phone"]),
        "created": timestamp(row["created"]),
        "sms": row["shown"],
        "dispatch_id": row["dispatch_id"],
        "id": row["id"],
    }


def _check_speech(parameters: Parameters) -> None:
    """Refuse a call that has neither speech nor audio, or both (interface, "POST /call/send")."""
    spoken = [name for name in ("message", "voice") if parameters.optional(name) is not None]
    if parameters.optional("audio-code") is not None:
        if spoken:
            raise invalid("audio-code", f"must not be combined with {' and '.join(spoken)}")
        return
    for name in ("message", "voice"):
        if name not in spoken:
            raise missing(name, "when audio-code is not sent")


def _call_entry(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "state": message.states[0],
        "credits": message.credits,
        "message": message.content.shown,
        "phone": message.phone,
        "voice": message.content.voice or "",
    }
