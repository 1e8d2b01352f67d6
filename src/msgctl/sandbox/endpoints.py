"""The sandbox's own endpoints: its inbox and controls under ``/sandbox``, the inbox page, and short URLs.

Each endpoint under ``/sandbox`` is a function with a description (`_endpoint`). The list at ``GET /sandbox``
is built from these descriptions. A served sandbox needs no credentials for them, and refuses web pages of another
origin.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from sqlite3 import Connection
from typing import NamedTuple, TypeVar
from urllib.parse import quote

from msgctl import __version__, files, segments
from msgctl.errors import UsageError
from msgctl.operations import Field, Kind, Place
from msgctl.sandbox import clicks, handlers, page
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.faults import active_faults, replace_all
from msgctl.sandbox.handlers import SECONDS_PER_STATE, SMS, SentMessage
from msgctl.sandbox.protocol import (
    JSON_TYPE,
    MAX_CLICKS,
    MAX_INBOX_WAIT,
    OWN_PATH,
    PAGE,
    UNKNOWN_ERROR,
    VISITS,
    JsonObject,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    parameters_of,
    quoted,
    sent_parameters,
    wrong_method,
)
from msgctl.sandbox.responses import NAMES
from msgctl.text import timestamp

NAME = "msgctl"
BAD_REQUEST = 400

MAX_NUMBER = 10**15
MAX_OVERVIEW = 300  # messages on the inbox page
MIN_NATIONAL = 7  # digits from which a number may lack its country code
MAX_TIME = 32_503_680_000.0  # the year 3000
CLOCK_SYNTAX = "Use +10m (s, m, h or d), stop, start, or a time such as 2026-12-01T09:00:00Z, at which it stops."

_UNITS = {"s": 1, "m": 60, "h": 60 * 60, "d": 24 * 60 * 60}
_ADVANCE = re.compile(r"\+(?:[0-9]{1,7}[smhd])+")
_COUNTRY = re.compile(r"[A-Z]{2}")
_KEPT_IN_LOCATION = "%/:=&?~#+!$,;'@()*[]"


class Endpoint(NamedTuple):
    """An endpoint and its parameters, which are in the query of a GET or in a JSON object."""

    method: str
    path: str
    summary: str
    handle: Callable[..., JsonObject | SandboxResponse]
    fields: tuple[Field, ...]


ENDPOINTS: list[Endpoint] = []

_Handler = TypeVar("_Handler", bound=Callable[..., JsonObject | SandboxResponse])


def _endpoint(method: str, path: str, summary: str, *fields: Field) -> Callable[[_Handler], _Handler]:
    """Make a function an endpoint; its arguments are the fields in the request."""
    place = Place.QUERY if method == "GET" else Place.JSON

    def add(handle: _Handler) -> _Handler:
        placed = tuple(field._replace(place=place) for field in fields)
        ENDPOINTS.append(Endpoint(method, OWN_PATH + path, summary, handle, placed))
        return handle

    return add


_field = partial(Field, typed="")
_optional = partial(Field, typed="", required=False)
_number = partial(Field, typed="", required=False, kind=Kind.INTEGER, least=0, most=MAX_NUMBER)
_WAIT = _optional(
    "wait", help="seconds to wait if there is nothing new", kind=Kind.NUMBER, least=0, most=MAX_INBOX_WAIT
)


@_endpoint("GET", "", "List these endpoints. A POST needs JSON and Content-Type: application/json.")
def about(_emulator: Emulator) -> JsonObject:
    listed = [
        {
            "method": endpoint.method,
            "path": endpoint.path,
            "summary": endpoint.summary,
            "parameters": {field.name: field.help for field in endpoint.fields},
        }
        for endpoint in ENDPOINTS
    ]
    return {"sandbox": NAME, "version": __version__, "endpoints": listed}


@_endpoint(
    "GET",
    "/inbox",
    "Return the messages that phones received, newest last.",
    _optional("phone", help="only this number, in any format"),
    _optional("after", help="only messages after this one: its ID, or a time"),
    _WAIT,
)
def inbox(emulator: Emulator, *, phone: str = "", after: str = "", wait: float = 0) -> SandboxResponse:
    messages = received(emulator, phone, after)
    response = json_response({"messages": messages})
    return response if messages else response._replace(wait=wait)


def received(emulator: Emulator, phone: str = "", after: str = "") -> list[JsonObject]:
    """Return the messages that phones received or will receive. Raises UsageError."""
    pattern = _pattern(phone) if phone else "%"
    with emulator.reading() as db:
        now = emulator.now(db)
        column, least = _after(db, after) if after else ("number", 0)
        newer = f"WHERE received AND {column} > ? AND phone LIKE ? ORDER BY number"
        return [_message(message, now) for message in handlers.stored_messages(db, newer, least, pattern)]


def _after(db: Connection, after: str) -> tuple[str, float]:
    """Return the column that orders messages, and its value for an ID or a time. Raises UsageError."""
    for message in handlers.stored_messages(db, "WHERE id = ?", after):
        return "number", message.number or 0
    try:
        return "created", _moment(after)
    except UsageError:
        raise UsageError(f"after must be the ID of a message or a time, not {quoted(after)}") from None


@_endpoint(
    "POST",
    "/click",
    "Simulate visits to a short URL.",
    _field("name", help="name of the short URL"),
    _number("count", help="number of visits, 1 if omitted", least=1, most=MAX_CLICKS),
    _optional("country", help="country of the visitors, random if omitted"),
)
def click(emulator: Emulator, *, name: str, count: int = 1, country: str | None = None) -> JsonObject:
    """Simulate visits now; the other fields of the visitors are random."""
    if country is not None:
        country = country.upper()
        if not _COUNTRY.fullmatch(country):
            raise UsageError(f"country must be a two-letter ISO 3166 code, not {quoted(country)}")
    with emulator.writing() as db:
        url = db.execute("SELECT number, premium FROM urls WHERE name = ?", (name,)).fetchone()
        if url is None:
            hint = "Create it in this sandbox. In the one inside msgctl, use: msgctl -p sandbox url shorten"
            raise UsageError(f"No short URL named {quoted(name)}", hint)
        now = emulator.now(db)
        clicks.add(db, url, now, (clicks.invent(emulator.random, country) for _ in range(count)))
    return {"name": name, "clicks": count}


@_endpoint(
    "POST",
    "/credit",
    "Set the balance.",
    _number("credits", help="the new balance"),
    _number("add", help="or the amount to add", least=-MAX_NUMBER),
)
def credit(emulator: Emulator, *, credits: int | None = None, add: int | None = None) -> JsonObject:
    if (credits is None) == (add is None):
        raise UsageError("Send either credits or add")
    with emulator.writing() as db:
        balance = emulator.read_account(db).credits + (add or 0) if credits is None else credits
        if not 0 <= balance <= MAX_NUMBER:
            raise UsageError(f"The balance must be from 0 to {MAX_NUMBER:,}, not {balance}")
        db.execute("UPDATE account SET credits = ?", (balance,))
    return {"status": balance}


@_endpoint("GET", "/fault", "Return the faults.")
@_endpoint(
    "POST",
    "/fault",
    "Replace the faults.",
    _field("faults", help="each KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]; empty to clear", kind=Kind.ARRAY),
)
def fault(emulator: Emulator, *, faults: list[str] | None = None) -> JsonObject:
    if faults is not None:
        replace_all(emulator, *faults)
    return {"faults": active_faults(emulator)}


@_endpoint("GET", "/clock", "Return the time of the sandbox.")
def clock(emulator: Emulator) -> JsonObject:
    with emulator.reading() as db:
        now = emulator.now(db)
    return {"time": timestamp(now), "stopped": emulator.account.stopped is not None}


@_endpoint(
    "POST",
    "/clock",
    "Change the clock.",
    _field("change", help="+10m (s, m, h, d), stop, start, or a time at which it stops"),
)
def set_clock(emulator: Emulator, *, change: str) -> JsonObject:
    """Change the clock (see `CLOCK_SYNTAX`)."""
    with emulator.writing() as db:
        now = emulator.now(db)
        stopped = emulator.account.stopped
        if change == "stop":
            stopped = now
        elif change == "start":
            stopped = None
        elif _ADVANCE.fullmatch(change):
            now += sum(int(step[:-1]) * _UNITS[step[-1]] for step in re.findall(r"[0-9]{1,7}[smhd]", change))
            stopped = None if stopped is None else now
        else:
            now = stopped = _moment(change)
        if not 0 <= now <= MAX_TIME:
            raise UsageError("The clock must stay between 1970 and 3000")
        db.execute("UPDATE account SET clock_offset = ?, clock_stopped = ?", (now - emulator.clock(), stopped))
    return clock(emulator)


@_endpoint("GET", "/responses", "Return the name of the responses.")
@_endpoint(
    "POST",
    "/responses",
    "Choose the responses.",
    _field("responses", help=" or ".join(NAMES), choices=NAMES),
)
def choose_responses(emulator: Emulator, *, responses: str | None = None) -> JsonObject:
    if responses is not None:
        if responses not in NAMES:
            raise UsageError(f"responses must be {' or '.join(NAMES)}, not {quoted(responses)}")
        with emulator.writing() as db:
            db.execute("UPDATE account SET responses = ?", (responses,))
    with emulator.reading() as db:
        return {"responses": emulator.read_account(db).responses}


@_endpoint("POST", "/reset", "Delete everything.")
def reset(emulator: Emulator) -> JsonObject:
    emulator.reset()
    apply_settings(emulator, is_new=True)
    if emulator.settings.store is not None:
        files.delete_database(emulator.settings.store)
    return {"status": "empty"}


def apply_settings(emulator: Emulator, *, is_new: bool) -> None:
    """Apply the settings of a sandbox. One that is not new keeps the credits that were left. Raises UsageError."""
    settings = emulator.settings
    if settings.credits is not None and is_new:
        credit(emulator, credits=settings.credits)
    replace_all(emulator, *settings.faults)
    choose_responses(emulator, responses=settings.responses)
    if settings.clock is not None:
        set_clock(emulator, change=settings.clock)


_URLS = """SELECT name, url_short AS urlShort, url_long AS urlLong, premium,
    (SELECT count(*) FROM clicks WHERE url = urls.number) AS clicks FROM urls ORDER BY number DESC LIMIT 100"""


@_endpoint(
    "GET",
    "/overview",
    "Return what the inbox page shows, newest first; only its version if nothing changed.",
    _optional("since", help="wait until the version differs from this"),
    _WAIT,
)
def overview(emulator: Emulator, *, since: str = "", wait: float = 0) -> JsonObject | SandboxResponse:
    version = emulator.version()
    if version == since:
        return json_response({"version": version})._replace(wait=wait)
    with emulator.reading() as db:
        now, balance = emulator.now(db), emulator.account.credits
        messages = handlers.stored_messages(db, "ORDER BY number DESC LIMIT ?", MAX_OVERVIEW)
        urls = db.execute(_URLS).fetchall()
    return {
        "version": version,
        "credits": balance,
        "clock": {"time": timestamp(now), "stopped": emulator.account.stopped is not None},
        "faults": active_faults(emulator),
        "responses": choose_responses(emulator)["responses"],
        "moving": any(message.reached(now) != message.states() for message in messages),
        "messages": [_with_links(_message(message, now), emulator.origin) for message in messages],
        "urls": [{**url, "premium": bool(url["premium"])} for url in urls],
        "requests": [page.described_request(*entry) for entry in reversed(emulator.requests.copy())],
    }


def _with_links(message: JsonObject, origin: str) -> JsonObject:
    """Split the text and the values of a message into strings and links to this sandbox's short URLs."""
    short_url = re.compile(rf"({re.escape(origin + VISITS)}[A-Za-z0-9_-]+)")

    def parts(text: str) -> list[str | JsonObject]:
        texts = short_url.split(text)  # every second one is a short URL
        pieces: list[str | JsonObject] = list(texts)
        for index in range(1, len(texts), 2):
            pieces[index] = {"text": texts[index], "path": texts[index].removeprefix(origin)}
        return pieces

    return {**message, "parts": parts(message["text"]), "value_parts": [*map(parts, message.get("values", ()))]}


def _message(message: SentMessage, now: float) -> JsonObject:
    """Return a message as a JSON object, with the states that it has reached."""
    states = message.reached(now)
    document = {
        "time": timestamp(message.created),
        "kind": message.kind,
        "phone": message.phone,
        "state": states[-1],
        "text": message.text,
        "code": message.code,
        "id": message.id,
        "credits": message.credits,
        "history": [
            {"state": state, "time": timestamp(message.created + number * SECONDS_PER_STATE)}
            for number, state in enumerate(states)
        ],
    }
    if message.kind == SMS:
        document["segments"] = segments.count(message.text).segments
    more = {"voice": message.voice, "audio_code": message.audio_code, "template": message.template}
    document.update({name: value for name, value in more.items() if value is not None})
    if message.template_values is not None:
        document["values"] = json.loads(message.template_values)
    return document


def _pattern(phone: str) -> str:
    """Return an SQL pattern for a phone number in any format, with or without the country code."""
    typed = "".join(char for char in phone if char in "+0123456789")
    digits = typed.removeprefix("+").removeprefix("00")
    if not (digits.isdecimal() and 5 <= len(digits) <= 15):
        raise UsageError(f"phone must have 5 to 15 digits, not {quoted(phone)}")
    return digits if typed != digits or len(digits) < MIN_NATIONAL else f"%{digits}"


def _moment(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(f"Unknown change of the clock {quoted(text)}", CLOCK_SYNTAX) from None


# --- responding


def respond_to_own_path(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Respond to a request for the page, a short URL or an endpoint; an error is 400, 404 or 405."""
    try:
        if request.path == PAGE:
            if request.method not in ("GET", "HEAD"):
                raise wrong_method(PAGE, "GET", "HEAD")
            return page.response()
        if request.path.startswith(VISITS):
            return _visit(emulator, request)
        return _carry_out(emulator, request)
    except UsageError as error:
        why = error.message + (f". {error.hint}" if error.hint else "")
        return Refusal("INVALID_PARAMETER", why, status=BAD_REQUEST).response()
    except Refusal as refusal:
        if refusal.status == UNKNOWN_ERROR:
            refusal.status = BAD_REQUEST
        return refusal.response()


def _carry_out(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    path = request.path.rstrip("/")
    endpoints = {endpoint.method: endpoint for endpoint in ENDPOINTS if endpoint.path == path}
    if not endpoints:
        raise Refusal("NOT_FOUND", f"nothing at the path {quoted(request.path)}", status=404)
    if request.method not in endpoints:
        raise wrong_method(path, *endpoints)
    endpoint = endpoints[request.method]
    if request.method == "POST" and not request.body:
        request = request._replace(headers={"content-type": JSON_TYPE}, body=b"{}")
    known = [field.name for field in endpoint.fields]
    place = Place.QUERY if request.method == "GET" else Place.JSON
    for name in sent_parameters(place, request):
        if name not in known:
            raise UsageError(f"unknown parameter {quoted(name)}: choose from {', '.join(known) or 'none'}")
    result = endpoint.handle(emulator, **parameters_of(endpoint.fields, request))
    return result if isinstance(result, SandboxResponse) else json_response(result)


def _visit(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Redirect to the long URL and count the visit; a HEAD request does not count."""
    if request.method not in ("GET", "HEAD"):
        raise wrong_method("a short URL", "GET", "HEAD")
    alias = request.path.removeprefix(VISITS)
    with emulator.writing() as db:
        # An alias is ASCII; other text may be impossible to store.
        row = alias.isascii() and db.execute("SELECT * FROM urls WHERE alias = ?", (alias,)).fetchone()
        if not row:
            raise Refusal("NOT_FOUND", f"no short URL ends in {quoted(alias)}", status=404)
        if request.method == "GET":
            clicks.add(db, row, emulator.now(db), [{}])
    location = quote(row["url_long"], safe=_KEPT_IN_LOCATION)
    return SandboxResponse(302, b"", {"location": location, "cache-control": "no-store"})
