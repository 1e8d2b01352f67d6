"""The sandbox's own endpoints below ``/sandbox``: its inbox and its controls.

Each one is a function here, described by its signature and the decorator `_endpoint`. The list at ``GET /sandbox``, the
OpenAPI document and the commands follow from that. A served sandbox takes them without credentials, and refuses web
pages of another origin.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from sqlite3 import Connection, Row
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_type_hints
from urllib.parse import parse_qsl

from msgctl import __version__, segments
from msgctl.errors import UsageError
from msgctl.sandbox import clicks, handlers, request_log
from msgctl.sandbox.emulator import OWN_PATH, Emulator
from msgctl.sandbox.faults import replace_all, stored
from msgctl.sandbox.handlers import KINDS, SECONDS_PER_STATE, SMS, SentMessage
from msgctl.sandbox.protocol import (
    JSON_TYPE,
    MAX_BODY,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
    quoted,
    wrong_method,
)
from msgctl.text import timestamp

NAME = "msgctl"
BAD_REQUEST = 400

MAX_NUMBER = 10**15
MAX_CLICKS = 100_000
MAX_DAYS = 3_650
MAX_WAIT = 3600.0
MAX_OVERVIEW = 300  # messages on the inbox page
MIN_NATIONAL = 7  # digits from which a number may lack its country code
LATEST = 32_503_680_000.0  # the year 3000
CLOCK_SYNTAX = "Use +10m (s, m, h or d), stop, start, or a time such as 2026-12-01T09:00:00Z, at which it stops."

_DAY = 24 * 60 * 60
_UNITS = {"s": 1, "m": 60, "h": 60 * 60, "d": _DAY}
_ADVANCE = re.compile(r"\+(?:[0-9]{1,7}[smhd])+")
_COUNTRY = re.compile(r"[A-Z]{2}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_TYPES: Mapping[Any, str] = {str: "string", int: "integer", int | None: "integer", float: "number", list[str]: "array"}

Document = dict[str, Any]


class EndpointParameter(NamedTuple):
    """A parameter of an endpoint; ``kind`` is a type of JSON Schema. In a query, a number is text."""

    kind: str
    help: str
    required: bool


class Endpoint(NamedTuple):
    """An endpoint: its parameters, in the query of a GET or in a JSON object, and fields of its response."""

    method: str
    path: str
    summary: str
    handle: Callable[..., Document | SandboxResponse]
    parameters: Mapping[str, EndpointParameter]
    returns: Mapping[str, Any]


ENDPOINTS: list[Endpoint] = []

_Handler = TypeVar("_Handler", bound=Callable[..., Document | SandboxResponse])


def _endpoint(method: str, path: str, summary: str, **returns: Any) -> Callable[[_Handler], _Handler]:
    """Make a function an endpoint; its parameters are annotated with their type and their help."""

    def add(handle: _Handler) -> _Handler:
        hints = get_type_hints(handle, include_extras=True)
        parameters: dict[str, EndpointParameter] = {}
        for name, parameter in list(inspect.signature(handle).parameters.items())[1:]:
            kind, text = get_args(hints[name])
            described = EndpointParameter(_TYPES[kind], text, parameter.default is inspect.Parameter.empty)
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                parameters |= dict.fromkeys(clicks.VISITOR, described._replace(required=False))
            else:
                parameters[name] = described
        ENDPOINTS.append(Endpoint(method, OWN_PATH + path, summary, handle, parameters, returns))
        return handle

    return add


Wait = Annotated[float, "seconds to wait if there is nothing new"]


@_endpoint("GET", "", "List these endpoints.", sandbox=str)
def about(_emulator: Emulator) -> Document:
    listed = [
        {
            "method": each.method,
            "path": each.path,
            "summary": each.summary,
            "parameters": {name: parameter.help for name, parameter in each.parameters.items()},
        }
        for each in ENDPOINTS
    ]
    return {"sandbox": NAME, "version": __version__, "endpoints": listed}


@_endpoint("GET", "/inbox", "Return the messages that phones received, newest last.", messages=list[Document])
def inbox(
    emulator: Emulator,
    phone: Annotated[str, "only this number, in any spelling"] = "",
    kind: Annotated[str, "only sms, call or chatapp"] = "",
    after: Annotated[int, "only messages after this number"] = 0,
    limit: Annotated[int, "only the newest"] = MAX_NUMBER,
    wait: Wait = 0,
) -> SandboxResponse:
    """Return the messages that reached their phone or will."""
    if kind and kind not in KINDS:
        raise UsageError(f"kind must be one of {', '.join(KINDS)}, not {quoted(kind)}")
    _check_range("limit", limit, 1, MAX_NUMBER)
    query = "WHERE received AND number > ? AND kind LIKE ? AND phone LIKE ? ORDER BY number DESC LIMIT ?"
    with emulator.state.reading() as db:
        now, _ = emulator.now(db)
        found = handlers.find(db, query, after, kind or "%", _pattern(phone) if phone else "%", limit)
    response = json_response({"messages": [_message(message, now) for message in reversed(found)]})
    return response if found else response._replace(wait=wait)


@_endpoint("POST", "/click", "Simulate visits to a short URL.", name=str, clicks=int)
def click(
    emulator: Emulator,
    name: Annotated[str, "name of the short URL"],
    count: Annotated[int, "number of visits, 1 if omitted"] = 1,
    days: Annotated[int, "number of days to spread them over, 1 if omitted"] = 1,
    **visitor: Annotated[str, "of the visitor; random if omitted"],
) -> Document:
    """Simulate visits at random times in the last ``days`` days; missing fields of the visitor are random."""
    _check_range("count", count, 1, MAX_CLICKS)
    _check_range("days", days, 1, MAX_DAYS)
    if "country" in visitor:
        visitor["country"] = visitor["country"].upper()
        if not _COUNTRY.fullmatch(visitor["country"]):
            raise UsageError(f"country must be a two-letter ISO 3166 code, not {quoted(visitor['country'])}")
    random = emulator.random
    with emulator.state.writing() as db:
        url = db.execute("SELECT number, premium FROM urls WHERE name = ?", (name,)).fetchone()
        if url is None:
            raise UsageError(f"No short URL named {quoted(name)}", "Make one with: msgctl -p sandbox url shorten")
        last, _ = emulator.now(db)
        midnight = datetime.fromtimestamp(last).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        first = last if days == 1 else midnight.timestamp() - (days - 1) * _DAY
        clicks.add(db, url, ((random.uniform(first, last), clicks.invent(random, visitor)) for _ in range(count)))
    return {"name": name, "clicks": count}


@_endpoint("POST", "/credit", "Set the balance.", status=int)
def credit(
    emulator: Emulator,
    credits: Annotated[int | None, "the new balance"] = None,
    add: Annotated[int | None, "or a change of it"] = None,
) -> Document:
    if (credits is None) == (add is None):
        raise UsageError("Send either credits or add")
    with emulator.state.writing() as db:
        _, left = emulator.now(db)
        balance = left + (add or 0) if credits is None else credits
        _check_range("credits", balance, 0, MAX_NUMBER)
        db.execute("UPDATE account SET credits = ?", (balance,))
    return {"status": balance}


@_endpoint("GET", "/fault", "Return the faults.", faults=list[str])
def faults(emulator: Emulator) -> Document:
    return {"faults": stored(emulator.state)}


@_endpoint("POST", "/fault", "Replace the faults.", faults=list[str])
def set_faults(
    emulator: Emulator,
    faults: Annotated[list[str], "each KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]; none clears"],
) -> Document:
    replace_all(emulator.state, *faults)
    return {"faults": stored(emulator.state)}


@_endpoint("GET", "/clock", "Return the time of the sandbox.", time=str, stopped=bool)
def clock(emulator: Emulator) -> Document:
    with emulator.state.reading() as db:
        now, _ = emulator.now(db)
    return {"time": timestamp(now), "stopped": emulator.stopped is not None}


@_endpoint("POST", "/clock", "Change the clock.", time=str, stopped=bool)
def set_clock(
    emulator: Emulator, change: Annotated[str, "+10m (s, m, h, d), stop, start, or a time at which it stops"]
) -> Document:
    """Change the clock (see `CLOCK_SYNTAX`)."""
    with emulator.state.writing() as db:
        now, _ = emulator.now(db)
        stopped = emulator.stopped
        if change == "stop":
            stopped = now
        elif change == "start":
            stopped = None
        elif _ADVANCE.fullmatch(change):
            now += sum(int(step[:-1]) * _UNITS[step[-1]] for step in re.findall(r"[0-9]+[smhd]", change))
            stopped = None if stopped is None else now
        else:
            now = stopped = _moment(change)
        if not 0 <= now <= LATEST:
            raise UsageError("The clock must stay between 1970 and 3000")
        db.execute("UPDATE account SET clock_offset = ?, clock_stopped = ?", (now - emulator.clock(), stopped))
    return clock(emulator)


@_endpoint("POST", "/reset", "Delete everything.", status=str)
def reset(emulator: Emulator) -> Document:
    emulator.state.reset()
    emulator.stopped = None
    return {"status": "empty"}


@_endpoint(
    "GET", "/overview", "Return what the inbox page shows, newest first; only the version if it is old.", version=str
)
def overview(
    emulator: Emulator,
    since: Annotated[str, "wait until the version differs from this"] = "",
    wait: Wait = 0,
) -> Document | SandboxResponse:
    version = emulator.state.version()
    if version == since:
        return json_response({"version": version})._replace(wait=wait)
    with emulator.state.reading() as db:
        now, left = emulator.now(db)
        shown = handlers.find(db, "ORDER BY number DESC LIMIT ?", MAX_OVERVIEW)
        urls = [_url(db, row) for row in db.execute("SELECT * FROM urls ORDER BY number DESC LIMIT 100").fetchall()]
    return {
        "version": version,
        "credits": left,
        "clock": {"time": timestamp(now), "stopped": emulator.stopped is not None},
        "faults": stored(emulator.state),
        "moving": any(message.reached(now) != message.states() for message in shown),
        "messages": [_message(message, now) for message in shown],
        "urls": urls,
        "requests": [request_log.described(*each) for each in reversed(emulator.requests.copy())],
    }


def _message(message: SentMessage, now: float) -> Document:
    """Return a message as a JSON object, with the states that it has reached."""
    states = message.reached(now)
    document = {
        "number": message.number,
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


def _url(db: Connection, row: Row) -> Document:
    query = "SELECT date, sum(NOT is_bot), sum(is_bot) FROM clicks WHERE url = ? GROUP BY date ORDER BY date"
    days = [{"date": date, "clicks": count, "bots": bots} for date, count, bots in db.execute(query, (row["number"],))]
    return {
        "name": row["name"],
        "urlShort": row["url_short"],
        "urlLong": row["url_long"],
        "premium": bool(row["premium"]),
        "clicks": sum(day["clicks"] for day in days),
        "bots": sum(day["bots"] for day in days),
        "days": days[-30:],
    }


def _pattern(phone: str) -> str:
    """Return an SQL pattern for a phone number in any spelling; a national one lacks the country code."""
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


def _check_range(name: str, number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise UsageError(f"{name} must be {least} to {most}, not {number}; nothing was changed")


# --- reading requests


def respond(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Carry out a request below ``/sandbox``: 400, 404 or 405 with the error record if it is refused."""
    path = request.path.rstrip("/")
    found = {endpoint.method: endpoint for endpoint in ENDPOINTS if endpoint.path == path}
    if not found:
        return Refusal("NOT_FOUND", f"nothing at the path {quoted(masked(request.path))}", status=404).response()
    if request.method not in found:
        return wrong_method(path, *found).response()
    endpoint = found[request.method]
    try:
        given = _query(request) if request.method == "GET" else _document(request)
        result = endpoint.handle(emulator, **_checked(endpoint, given))
        return result if isinstance(result, SandboxResponse) else json_response(result)
    except UsageError as error:
        why = error.message + (f". {error.hint}" if error.hint else "")
        return Refusal("INVALID_PARAMETER", why, status=BAD_REQUEST).response()


def _query(request: SandboxRequest) -> Document:
    try:
        return dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise UsageError("cannot read the query string") from None


def _document(request: SandboxRequest) -> Document:
    if request.body and request.media_type() != JSON_TYPE:
        raise UsageError(f"Content-Type must be {JSON_TYPE}")
    if len(request.body) > MAX_BODY:
        raise UsageError(f"the body must not be larger than {MAX_BODY} bytes")
    try:
        document = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise UsageError("the body must be JSON") from None
    if not isinstance(document, dict):
        raise UsageError("the body must be a JSON object")
    return document


def _checked(endpoint: Endpoint, given: Mapping[str, Any]) -> Document:
    """Return the parameters that were sent, converted; an empty one counts as not sent. Raises UsageError."""
    found = {}
    for name, parameter in endpoint.parameters.items():
        value = given.get(name)
        if value is not None and value != "":
            found[name] = _converted(name, value, parameter.kind)
        elif parameter.required:
            raise UsageError(f"{name} is required")
    return found


def _converted(name: str, value: Any, kind: str) -> Any:
    if kind == "string":
        if isinstance(value, str) and not _SURROGATE.search(value):
            return value
        raise UsageError(f"{name} must be a string of Unicode text")
    if kind == "array":
        if isinstance(value, list):
            return [_converted(name, each, "string") for each in value]
        raise UsageError(f"{name} must be an array of strings")
    if kind == "integer":
        if re.fullmatch("-?[0-9]{1,15}", str(value)) and not isinstance(value, bool):
            return int(value)
        raise UsageError(f"{name} must be a whole number of at most 15 digits, not {quoted(str(value))}")
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1
    if not 0 <= seconds <= MAX_WAIT:
        raise UsageError(f"{name} must be a number of seconds from 0 to {MAX_WAIT:g}")
    return seconds
