"""The handlers of the operations: each takes the scope and the checked parameters, and returns the record.

A handler raises `protocol.Refusal` to refuse the request; its transaction is then rolled back.

Nothing runs in the background. The state of a message follows from its age. Its final state follows from the last four
digits of the number, so that programs can be tested against every case.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from sqlite3 import Connection
from typing import Any, NamedTuple
from uuid import UUID

from msgctl import operations, segments
from msgctl.operations import (
    PREMIUM_CATEGORIES,
    RESPONSE_CALL,
    RESPONSE_CALL_2FA,
    RESPONSE_CHATAPP,
    RESPONSE_SMS,
    RESPONSE_SMS_2FA,
    RESPONSE_STATE,
    Kind,
    Record,
    ResponseField,
)
from msgctl.sandbox import responses
from msgctl.sandbox.protocol import JsonObject, Refusal, invalid, missing, quoted
from msgctl.text import plural, timestamp

SMS = "sms"
CALL = "call"
CHATAPP = "chatapp"

ACCEPTED = "accepted"
BLOCKED = "blocked"

SECONDS_PER_STATE = 1.0
MINUTES_TO_EXPIRE = 10
MAX_WRONG_GUESSES = 5
"""Wrong guesses after which a code is void."""
DEFAULT_TEMPLATE = "verification-code"
MISSING_TEMPLATE = "missing"
"""The only name of a template that is refused."""
ALIAS_LENGTH = 7

_DIGITS = 6
_ALPHABET = string.ascii_letters + string.digits

_MESSAGE = {
    "0001": ("queued", "sent", "undelivered"),
    "0002": ("queued", "rejected"),
    "0003": ("queued",),
}
_CALL = {
    "0001": ("queued", "ringing", "not-answered"),
    "0002": ("queued", "busy"),
    "0003": ("queued", "ringing"),
}
_RECEIVED = {"delivered", "answered", "voicemail"}

Values = Mapping[str, Any]
"""The parameters of a request by their names, as `protocol.parameters_of` returns them."""


class Scope(NamedTuple):
    """The scope of a handler. The time is in seconds since 1970; short URLs begin with the origin.

    If ``is_observed``, the response is like the response of a service in use: the ID of a dispatch is a UUID, and
    messages-state accepts it, too, and returns a list of records.
    """

    db: Connection
    now: float
    credits: int
    random: Random
    origin: str
    is_observed: bool


# --- messages: their costs, storage and states


class SentMessage(NamedTuple):
    """One message to one number: a row of the table ``messages``.

    ``text`` is the message on the phone; ``shown`` is the message in responses, with a code masked.
    """

    id: str
    dispatch_id: str
    phone: str
    kind: str
    text: str
    shown: str
    credits: int
    created: float
    code: str | None = None
    voice: str | None = None
    audio_code: str | None = None
    template: str | None = None
    template_values: str | None = None
    voicemail: bool = False
    blocked: bool = False
    received: bool = False
    number: int | None = None

    def states(self, *, is_observed: bool = False) -> tuple[str, ...]:
        """Return the states of the message, one for each second."""
        if is_observed:
            # Some routes never report more than "sent".
            is_silent = self.kind != CALL and self.phone.endswith("3") and not self.blocked
            return responses.STATES["queued" if is_silent else self.states()[-1]]
        if self.blocked:
            return (BLOCKED,)
        if self.kind != CALL:
            return _MESSAGE.get(self.phone[-4:], ("queued", "sent", "delivered"))
        states = _CALL.get(self.phone[-4:], ("queued", "ringing", "answered"))
        return ("queued", "ringing", "voicemail") if self.voicemail and states[-1] == "not-answered" else states

    def reached(self, now: float, *, is_observed: bool = False) -> tuple[str, ...]:
        """Return the states so far, the current one last."""
        states = self.states(is_observed=is_observed)
        # Someone may have set the clock back.
        age = max((now - self.created) / SECONDS_PER_STATE, 0)
        return states[: int(min(age, len(states) - 1)) + 1]


_COLUMNS = ", ".join(SentMessage._fields)
_INSERT = f"INSERT INTO messages ({_COLUMNS}) VALUES ({', '.join('?' for _ in SentMessage._fields)})"  # noqa: S608


def stored_messages(db: Connection, clauses: str, *values: object) -> list[SentMessage]:
    """Return stored messages; ``clauses`` are the query after the table's name."""
    return [SentMessage(*row) for row in db.execute(f"SELECT {_COLUMNS} FROM messages {clauses}", values)]  # noqa: S608


def deliver(
    scope: Scope,
    phones: Iterable[str],
    kind: str,
    text: str,
    *,
    shown: str | None = None,
    credits: int = 1,
    **more: Any,
) -> list[SentMessage]:
    """Charge for and store one message to each number; a repeated number gets one message.

    A blocked number costs nothing. Raises Refusal if the account has too few credits for all of them together.
    """
    dispatch_id = _dispatch_id(scope)
    shown = text if shown is None else shown
    sent = []
    for phone in dict.fromkeys(phones):
        message = SentMessage(new_id(scope.random), dispatch_id, phone, kind, text, shown, credits, scope.now, **more)
        if scope.db.execute("SELECT 1 FROM blocked WHERE phone = ?", (phone,)).fetchone():
            # The code of a blocked message is not stored, since it never arrives.
            message = message._replace(text=shown, credits=0, code=None, blocked=True)
        sent.append(message._replace(received=message.states()[-1] in _RECEIVED))
    cost = sum(message.credits for message in sent)
    if cost > scope.credits:
        why = f"this send costs {plural(cost, 'credit')}; {scope.credits} left"
        raise Refusal("NOT_ENOUGH_CREDITS", why)
    scope.db.execute("UPDATE account SET credits = credits - ?", (cost,))
    scope.db.executemany(_INSERT, sent)
    return sent


def status(messages: Sequence[SentMessage]) -> str:
    """Return the status of a dispatch: ``accepted`` if any of its numbers is not blocked."""
    return BLOCKED if all(message.blocked for message in messages) else ACCEPTED


def new_id(random: Random) -> str:
    """Return an identifier of 16 hexadecimal digits."""
    return f"{random.getrandbits(64):016x}"


def _dispatch_id(scope: Scope) -> str:
    if scope.is_observed:
        return str(UUID(int=scope.random.getrandbits(128), version=4))
    return new_id(scope.random)


def _record(record: Record, scope: Scope, sent: Sequence[SentMessage]) -> JsonObject:
    """Return the record of a dispatch, with the fields of the API in their order."""
    facts = {
        "id": sent[0].dispatch_id,
        "status": status(sent),
        "minutes_to_expire": MINUTES_TO_EXPIRE,
        "data": [_entry(record.entries, scope, message) for message in sent],
    }
    return {field.name: facts[field.name] for field in record.fields}


def _entry(fields: Iterable[ResponseField], scope: Scope, message: SentMessage) -> JsonObject:
    """Return the fields of a message that the API lists, in its order; a code in its text is masked."""
    state = message.reached(scope.now, is_observed=scope.is_observed)[-1]
    facts: JsonObject = {
        "id": message.id,
        "dispatch_id": message.dispatch_id,
        "state": state,
        "status": state,
        "credits": 0 if state == responses.UNREACHABLE else message.credits,
        "sms": message.shown,
        "message": message.shown,
        "phone": message.phone,
        "voice": message.voice or "",
        "name": message.template or "",
        "created": message.created,
    }
    return {field.name: facts[field.name] if field.kind is Kind.STRING else int(facts[field.name]) for field in fields}


# --- balance, blocked numbers, SMS, calls, message states


def balance(scope: Scope, _values: Values) -> JsonObject:
    return {"status": scope.credits}


def block_phone(scope: Scope, values: Values) -> JsonObject:
    """Block a number. Blocking it again only changes its name."""
    phone = values["phone"]
    row = scope.db.execute("SELECT id, name FROM blocked WHERE phone = ?", (phone,)).fetchone()
    block_id, old_name = row or (new_id(scope.random), "")
    name = values.get("name") or old_name
    scope.db.execute("REPLACE INTO blocked (phone, id, name) VALUES (?, ?, ?)", (phone, block_id, name))
    return {"id": block_id, "status": BLOCKED, "phone": phone, "name": name}


def send_sms(scope: Scope, values: Values) -> JsonObject:
    text = values.get("sms") or values["message"]
    sent = deliver(scope, values["phone"], SMS, text, credits=segments.count(text).segments)
    return {**_record(RESPONSE_SMS, scope, sent), "status": int(status(sent) == ACCEPTED)}


def send_call(scope: Scope, values: Values) -> JsonObject:
    _check_speech(values)
    voice, audio_code = values.get("voice"), values.get("audio-code")
    voicemail = values.get("leave-voicemail", False)
    text = values.get("message", "")
    sent = deliver(scope, values["phone"], CALL, text, voice=voice, audio_code=audio_code, voicemail=voicemail)
    return _record(RESPONSE_CALL, scope, sent)


def messages_state(scope: Scope, values: Values) -> JsonObject | list[JsonObject]:
    """Return the state of a message, with its text; a code in it is masked."""
    messages = stored_messages(scope.db, "WHERE id = ?", values["id"])
    if scope.is_observed and not messages:
        messages = stored_messages(scope.db, "WHERE dispatch_id = ? ORDER BY number", values["id"])
    if not messages:
        raise Refusal("NOT_FOUND", "id: no message with this ID exists")
    records = [
        {**_entry(RESPONSE_STATE.fields, scope, message), "created": timestamp(message.created)} for message in messages
    ]
    return records if scope.is_observed else records[0]


def _check_speech(values: Values) -> None:
    """Refuse a call with neither speech nor audio, or with both (API, "POST /call/send")."""
    spoken = [name for name in ("message", "voice") if name in values]
    if "audio-code" in values:
        if spoken:
            raise invalid("audio-code", f"must not be combined with {' and '.join(spoken)}")
        return
    for name in ("message", "voice"):
        if name not in spoken:
            raise missing(name, "when audio-code is not sent")


# --- chat-app messages from templates


def send_by_chatapp(scope: Scope, values: Values) -> JsonObject:
    """Send a chat-app message: a code if there is an app name, or else a template."""
    template = values.get("template", DEFAULT_TEMPLATE)
    if template == MISSING_TEMPLATE:
        raise Refusal("INVALID_TEMPLATE", f"template: {quoted(template)} does not exist", parameter="template")
    if "app-name" in values:
        sent = _send_code(scope, values, CHATAPP, template=template)
    else:
        text = ": ".join(filter(None, (template, ", ".join(values["body"]))))
        body = json.dumps(values["body"])
        sent = deliver(scope, [values["phone"]], CHATAPP, text, template=template, template_values=body)
    record = {**_entry(RESPONSE_CHATAPP.fields, scope, sent[0]), "status": status(sent)}
    if sent[0].blocked:
        record["id"] = ""  # a record with an ID could mean that the message was accepted
    elif scope.is_observed:
        record["id"] = sent[0].dispatch_id
    return record


# --- verification codes: one for each phone and app name, used once, valid for ten minutes, void after wrong guesses


def send_code_by_sms(scope: Scope, values: Values) -> JsonObject:
    return _record(RESPONSE_SMS_2FA, scope, _send_code(scope, values, SMS))


def send_code_by_call(scope: Scope, values: Values) -> JsonObject:
    return _record(RESPONSE_CALL_2FA, scope, _send_code(scope, values, CALL, voice=values["voice"]))


def verify(scope: Scope, values: Values) -> JsonObject | Refusal:
    """Accept a code once. Return a refusal if it is wrong, used, void, expired, or was never sent.

    The refusal is returned instead of raised, so that the number of wrong guesses is stored.
    """
    key = (values["phone"], values["app-name"])
    row = scope.db.execute("SELECT * FROM codes WHERE phone = ? AND app_name = ?", key).fetchone()
    if row is None or row["code"] != values["code"]:
        scope.db.execute("UPDATE codes SET wrong_guesses = wrong_guesses + 1 WHERE phone = ? AND app_name = ?", key)
        scope.db.execute("DELETE FROM codes WHERE wrong_guesses >= ?", (MAX_WRONG_GUESSES,))
        return Refusal("INVALID_CODE", "code: not the last code sent, already used, or void")
    if scope.now >= row["expires"]:
        return Refusal("EXPIRED_CODE", f"code: expired {MINUTES_TO_EXPIRE} minutes after it was sent")
    scope.db.execute("DELETE FROM codes WHERE phone = ? AND app_name = ?", key)
    return {"status": "verified"}


def _send_code(scope: Scope, values: Values, kind: str, **more: Any) -> list[SentMessage]:
    """Send a new code, which replaces an older one. A blocked phone keeps its older code."""
    code = f"{scope.random.randrange(10**_DIGITS):0{_DIGITS}}"
    ending = f" is your {values['app-name']} code. It expires in {MINUTES_TO_EXPIRE} minutes."
    shown = "*" * _DIGITS + ending
    price = segments.count(code + ending).segments if kind == SMS else 1
    sent = deliver(scope, [values["phone"]], kind, code + ending, shown=shown, credits=price, code=code, **more)
    if status(sent) == ACCEPTED:
        row = (sent[0].phone, values["app-name"], code, scope.now + MINUTES_TO_EXPIRE * 60)
        scope.db.execute("REPLACE INTO codes (phone, app_name, code, expires) VALUES (?, ?, ?, ?)", row)
    return sent


# --- short URLs and the statistics of their clicks


def shorten(scope: Scope, values: Values) -> JsonObject:
    """Create a short URL. Raises Refusal if its name or alias is taken."""
    name, url_long, domain = values["name"], values["url-long"], values.get("domain-name")
    if _is_taken(scope, "name", name):
        raise Refusal("INVALID_NAME", f"name: a short URL {quoted(name)} exists, and names are unique")
    alias = values.get("alias")
    if alias is not None and _is_taken(scope, "alias", alias):
        raise Refusal("INVALID_NAME", f"alias: a short URL that ends in {quoted(alias)} exists")
    while alias is None or _is_taken(scope, "alias", alias):
        alias = "".join(scope.random.choices(_ALPHABET, k=ALIAS_LENGTH))
    url_short = f"https://{domain}/{alias}" if domain else f"{scope.origin}/u/{alias}"
    scope.db.execute(
        "INSERT INTO urls (name, alias, url_short, url_long, premium) VALUES (?, ?, ?, ?, ?)",
        (name, alias, url_short, url_long, values.get("is-premium", False)),
    )
    return {"urlShort": url_short, "urlLong": url_long, "msg": "The short URL was created."}


def statistic(scope: Scope, values: Values) -> JsonObject:
    """Return the clicks of a range of days, by the requested category or by all categories of the URL."""
    from msgctl.sandbox import clicks

    days = (values["since"], values["until"])
    if days[0] > days[1]:
        raise invalid("since", f"must not be later than until ({days[0]} is later than {days[1]})")
    name, category = values["name-url"], values.get("category")
    url = scope.db.execute("SELECT * FROM urls WHERE name = ?", (name,)).fetchone()
    if url is None:
        raise Refusal("NOT_FOUND", "name-url: no short URL with this name exists")
    available = [name for name in clicks.CATEGORIES if url["premium"] or name not in PREMIUM_CATEGORIES]
    if category is not None and category not in available:
        raise Refusal("NOT_PREMIUM", f"category: {category} is invalid for a plain URL")
    categories = [category] if category else available
    total, metrics = clicks.statistic(scope.db, url["number"], days, categories)
    return {"urlShort": url["url_short"], "urlLong": url["url_long"], "clicksNumber": total, "metrics": metrics}


def _is_taken(scope: Scope, column: str, value: str) -> bool:
    return scope.db.execute(f"SELECT 1 FROM urls WHERE {column} = ?", (value,)).fetchone() is not None  # noqa: S608


HANDLERS: Mapping[str, Callable[[Scope, Values], object]] = {
    operations.BALANCE.name: balance,
    operations.BLOCK_PHONE.name: block_phone,
    operations.SEND_SMS.name: send_sms,
    operations.SEND_CALL.name: send_call,
    operations.MESSAGES_STATE.name: messages_state,
    operations.SMS_2FA.name: send_code_by_sms,
    operations.CALL_2FA.name: send_code_by_call,
    operations.VERIFY_2FA.name: verify,
    operations.URL_SHORT.name: shorten,
    operations.URL_STATISTIC.name: statistic,
    operations.CHATAPP_SEND.name: send_by_chatapp,
    operations.CHATAPP_ORDER.name: send_by_chatapp,
    operations.CHATAPP_2FA.name: send_by_chatapp,
}
"""The handlers by the name of their operation."""
