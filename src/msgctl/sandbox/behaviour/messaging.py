"""Balance, blocked numbers, SMS, calls, and the state of a message."""

from __future__ import annotations

from msgctl import segments
from msgctl.sandbox import delivery
from msgctl.sandbox.dispatch import Content, Context, Message, accepted, new_id, send, state_of, status
from msgctl.sandbox.parameters import Parameters
from msgctl.sandbox.wire import Refusal, invalid, missing, quoted
from msgctl.times import timestamp


def balance(context: Context, _parameters: Parameters) -> dict[str, object]:
    (left,) = context.db.execute("SELECT credits FROM account").fetchone()
    return {"status": left}


def block_phone(context: Context, parameters: Parameters) -> dict[str, object]:
    """Block a number; where it is blocked already, only a new name is kept."""
    phone = parameters.text("phone")
    known = context.db.execute("SELECT id, name FROM blocked WHERE phone = ?", (phone,)).fetchone()
    block_id = known["id"] if known else new_id(context.random)
    name = parameters.optional("name") or (known["name"] if known else "")
    context.db.execute("REPLACE INTO blocked (phone, id, name) VALUES (?, ?, ?)", (phone, block_id, name))
    return {"id": block_id, "status": "blocked", "phone": phone, "name": name}


def send_sms(context: Context, parameters: Parameters) -> dict[str, object]:
    text = parameters.text("sms")
    content = Content(delivery.SMS, text, text, credits=segments.count(text).segments)
    messages = send(context, parameters.several("phone"), content)
    return {"id": messages[0].dispatch_id, "status": int(accepted(messages)), "data": [sms_entry(m) for m in messages]}


def sms_entry(message: Message) -> dict[str, object]:
    """The entry of an SMS in the ``data`` of a dispatch."""
    return {
        "id": message.id,
        "status": message.first_state,
        "credits": message.credits,
        "sms": message.content.shown,
        "phone": message.phone,
    }


def send_call(context: Context, parameters: Parameters) -> dict[str, object]:
    _check_speech(parameters)
    text = parameters.optional("message") or ""
    content = Content(
        delivery.CALL,
        text,
        text,
        credits=1,
        voice=parameters.optional("voice"),
        audio_code=parameters.optional("audio-code"),
        voicemail=parameters.flag("leave-voicemail"),
    )
    messages = send(context, parameters.several("phone"), content)
    return {
        "status": status(messages),
        "id": messages[0].dispatch_id,
        "data": [_call_entry(message) for message in messages],
    }


def messages_state(context: Context, parameters: Parameters) -> dict[str, object]:
    """The state of one message; it has the text, in which a code is masked."""
    message_id = parameters.text("id")
    row = context.db.execute("SELECT * FROM messages WHERE id = ?", (message_id,)).fetchone()
    if row is None:
        raise Refusal("NOT_FOUND", f"id: there is no message {quoted(message_id)}")
    return {
        "state": state_of(row, context.now),
        "credits": row["credits"],
        "phone": int(row["phone"]),
        "created": timestamp(row["created"]),
        "sms": row["shown"],
        "dispatch_id": row["dispatch_id"],
        "id": row["id"],
    }


def _check_speech(parameters: Parameters) -> None:
    """A call speaks a message with a voice, or plays an audio, and never both (interface, "POST /call/send")."""
    spoken = [name for name in ("message", "voice") if parameters.optional(name) is not None]
    if parameters.optional("audio-code") is not None:
        if spoken:
            raise invalid("audio-code", f"must not be combined with {' and '.join(spoken)}")
        return
    for name in ("message", "voice"):
        if name not in spoken:
            raise missing(name, "where audio-code is not sent")


def _call_entry(message: Message) -> dict[str, object]:
    return {
        "id": message.id,
        "state": message.first_state,
        "credits": message.credits,
        "message": message.content.shown,
        "phone": message.phone,
        "voice": message.content.voice or "",
    }
