"""The sandbox's own endpoints below ``/sandbox``: its inbox and its controls.

Each one is described once, in `ENDPOINTS`. The list at ``GET /sandbox``, the OpenAPI document, the server and the
commands follow from that. A served sandbox takes them without credentials, and refuses web pages of another origin.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from sqlite3 import Connection, Row
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from msgctl import __version__, segments
from msgctl.errors import UsageError
from msgctl.sandbox import clicks, messages
from msgctl.sandbox.decode import JSON_TYPE, MAX_BODY
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.faults import replace_all, stored
from msgctl.sandbox.messages import SentMessage
from msgctl.sandbox.protocol import (
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
    quoted,
    wrong_method,
)
from msgctl.sandbox.request_log import RequestLog
from msgctl.text import timestamp

PATH = "/sandbox"
NAME = "msgctl"
BAD_REQUEST = 400

MAX_CREDITS = 10**15
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
_SECONDS_BETWEEN_CHECKS = 0.2


class LocalSandbox:
    """The sandbox on the state of an emulator in this process; `cli.remote_sandbox` has a served one.

    The methods below `ask` carry out one endpoint each. They raise UsageError and ConfigurationError.
    """

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.state = emulator.state
        self.requests = RequestLog()

    def ask(self, method: str, path: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out the endpoint at a path below ``/sandbox``. Raises UsageError if a field is wrong."""
        (endpoint,) = (each for each in ENDPOINTS if (each.method, each.path) == (method, PATH + path))
        return endpoint.handle(self, **_checked(endpoint, fields))

    def about(self) -> dict[str, Any]:
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

    def inbox(
        self, phone: str = "", kind: str | None = None, after: int = 0, limit: int = MAX_CREDITS, wait: float = 0
    ) -> dict[str, Any]:
        """Return the messages that reached their phone or will; wait for one if there are no messages yet."""
        if kind is not None and kind not in messages.KINDS:
            raise UsageError(f"Unknown kind of message {quoted(kind)}. Choose from {', '.join(messages.KINDS)}")
        _check_range("limit", limit, 1, MAX_CREDITS)
        query = (
            "WHERE received AND number > ? AND kind = coalesce(?, kind) AND phone LIKE ? ORDER BY number DESC LIMIT ?"
        )
        values = (after, kind, _pattern(phone) if phone else "%", limit)
        until = time.monotonic() + wait
        while True:
            with self.state.changed:  # held while reading, so that no change is missed before the wait
                with self.state.reading() as db:
                    now = self.emulator.now(db)
                    found = messages.find(db, query, *values)
                left = until - time.monotonic()
                if found or left <= 0:
                    return {"messages": [described(message, now) for message in reversed(found)]}
                # Changes of other processes are found by checking again.
                self.state.changed.wait(min(left, _SECONDS_BETWEEN_CHECKS))

    def click(self, name: str, count: int = 1, days: int = 1, **visitor: str) -> dict[str, Any]:
        """Simulate visits at random times in the last ``days`` days; missing fields of the visitor are random."""
        _check_range("count", count, 1, MAX_CLICKS)
        _check_range("days", days, 1, MAX_DAYS)
        if "country" in visitor:
            visitor["country"] = visitor["country"].upper()
            if not _COUNTRY.fullmatch(visitor["country"]):
                raise UsageError(f"country must be a two-letter ISO 3166 code, not {quoted(visitor['country'])}")
        random = self.emulator.random
        with self.state.writing() as db:
            url = db.execute("SELECT number, premium FROM urls WHERE name = ?", (name,)).fetchone()
            if url is None:
                raise UsageError(f"No short URL named {quoted(name)}", "Make one with: msgctl -p sandbox url shorten")
            last = self.emulator.now(db)
            midnight = datetime.fromtimestamp(last).astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
            first = last if days == 1 else midnight.timestamp() - (days - 1) * _DAY
            clicks.add(db, url, ((random.uniform(first, last), clicks.invent(random, visitor)) for _ in range(count)))
        return {"name": name, "clicks": count}

    def credit(self, credits: int | None = None, add: int | None = None) -> dict[str, Any]:
        """Set the credits, or add to them. Raises UsageError if the balance would be below 0."""
        if (credits is None) == (add is None):
            raise UsageError("Send either credits or add")
        with self.state.writing() as db:
            (left,) = db.execute("SELECT credits FROM account").fetchone()
            balance = credits if credits is not None else left + add
            _check_range("credits", balance, 0, MAX_CREDITS)
            db.execute("UPDATE account SET credits = ?", (balance,))
        return {"status": balance}

    def faults(self) -> dict[str, Any]:
        return {"faults": stored(self.state)}

    def set_faults(self, faults: list[str]) -> dict[str, Any]:
        replace_all(self.state, *faults)
        return self.faults()

    def clock(self) -> dict[str, Any]:
        with self.state.reading() as db:
            return {"time": timestamp(self.emulator.now(db)), "stopped": self.emulator.stopped is not None}

    def set_clock(self, change: str) -> dict[str, Any]:
        """Change the clock (see `CLOCK_SYNTAX`)."""
        with self.state.writing() as db:
            now, stopped = self.emulator.now(db), self.emulator.stopped
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
            offset = now - self.emulator.clock()
            db.execute("UPDATE account SET clock_offset = ?, clock_stopped = ?", (offset, stopped))
        return self.clock()

    def reset(self) -> dict[str, Any]:
        self.state.reset()
        return {"status": "empty"}

    def overview(self, since: str = "", wait: float = 0) -> dict[str, Any]:
        """Return everything that the inbox page shows, once its version differs from ``since``."""
        until = time.monotonic() + wait
        while True:
            with self.state.changed:
                version = f"{self.state.changes}.{self.requests.count}"
                left = until - time.monotonic()
                if version != since or left <= 0:
                    break
                self.state.changed.wait(left)
        with self.state.reading() as db:
            now = self.emulator.now(db)
            shown = messages.find(db, "ORDER BY number DESC LIMIT ?", MAX_OVERVIEW)
            (credits_left,) = db.execute("SELECT credits FROM account").fetchone()
            urls = [_url(db, row) for row in db.execute("SELECT * FROM urls ORDER BY number DESC LIMIT 100").fetchall()]
        return {
            "version": version,
            "credits": credits_left,
            "clock": self.clock(),
            "faults": stored(self.state),
            "moving": any(message.reached(now) != message.states for message in shown),
            "messages": [described(message, now) for message in shown],
            "urls": urls,
            "requests": self.requests.described(),
        }


def described(message: SentMessage, now: float) -> dict[str, Any]:
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
            {"state": state, "time": timestamp(message.created + number * messages.SECONDS_PER_STATE)}
            for number, state in enumerate(states)
        ],
    }
    if message.kind == messages.SMS:
        document["segments"] = segments.count(message.text).segments
    more = {"voice": message.voice, "audio_code": message.audio_code, "template": message.template}
    document.update({name: value for name, value in more.items() if value is not None})
    if message.template_values is not None:
        document["values"] = json.loads(message.template_values)
    return document


def _url(db: Connection, row: Row) -> dict[str, Any]:
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


# --- the description of the endpoints, and reading requests by it


class EndpointParameter(NamedTuple):
    """A parameter of an endpoint; ``kind`` is a type of JSON Schema. In a query, a number is text."""

    help: str
    kind: str = "string"
    required: bool = False


class Endpoint(NamedTuple):
    """An endpoint: its parameters, in the query of a GET or in a JSON object, and types of fields that it returns."""

    method: str
    path: str
    summary: str
    handle: Callable[..., dict[str, Any]]
    parameters: Mapping[str, EndpointParameter] = {}
    returns: Mapping[str, Any] = {}


_WAIT = EndpointParameter("seconds to wait if there is nothing new", "number")
_CREDIT = {
    "credits": EndpointParameter("the new balance", "integer"),
    "add": EndpointParameter("or a change of it", "integer"),
}
_SPECS = {
    "faults": EndpointParameter("each KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]; none clears", "array", True)
}
_CHANGE = {"change": EndpointParameter("+10m (s, m, h, d), stop, start, or a time at which it stops", required=True)}
_CLOCK = {"time": str, "stopped": bool}

ENDPOINTS = (
    Endpoint("GET", PATH, "List these endpoints.", LocalSandbox.about, {}, {"sandbox": str}),
    Endpoint(
        "GET",
        f"{PATH}/inbox",
        "Return the messages that phones received, newest last.",
        LocalSandbox.inbox,
        {
            "phone": EndpointParameter("only this number, in any spelling"),
            "kind": EndpointParameter("only sms, call or chatapp"),
            "after": EndpointParameter("only messages after this number", "integer"),
            "limit": EndpointParameter("only the newest", "integer"),
            "wait": _WAIT,
        },
        {"messages": list[dict[str, Any]]},
    ),
    Endpoint(
        "POST",
        f"{PATH}/click",
        "Simulate visits to a short URL.",
        LocalSandbox.click,
        {
            "name": EndpointParameter("name of the short URL", required=True),
            "count": EndpointParameter("number of visits, 1 if omitted", "integer"),
            "days": EndpointParameter("number of days to spread them over, 1 if omitted", "integer"),
            **dict.fromkeys(clicks.VISITOR, EndpointParameter("of the visitor; random if omitted")),
        },
        {"name": str, "clicks": int},
    ),
    Endpoint("POST", f"{PATH}/credit", "Set the balance.", LocalSandbox.credit, _CREDIT, {"status": int}),
    Endpoint("GET", f"{PATH}/fault", "Return the faults.", LocalSandbox.faults, {}, {"faults": list[str]}),
    Endpoint("POST", f"{PATH}/fault", "Replace the faults.", LocalSandbox.set_faults, _SPECS, {"faults": list[str]}),
    Endpoint("GET", f"{PATH}/clock", "Return the time of the sandbox.", LocalSandbox.clock, {}, _CLOCK),
    Endpoint("POST", f"{PATH}/clock", "Change the clock.", LocalSandbox.set_clock, _CHANGE, _CLOCK),
    Endpoint("POST", f"{PATH}/reset", "Delete everything.", LocalSandbox.reset, {}, {"status": str}),
    Endpoint(
        "GET",
        f"{PATH}/overview",
        "Return messages, short URLs, requests, balance, faults and clock, newest first.",
        LocalSandbox.overview,
        {"since": EndpointParameter("wait until the version differs from this"), "wait": _WAIT},
        {"version": str},
    ),
)


def respond(sandbox: LocalSandbox, request: SandboxRequest) -> SandboxResponse:
    """Carry out a request below ``/sandbox``. Raises Refusal."""
    path = request.path.rstrip("/")
    methods = [endpoint.method for endpoint in ENDPOINTS if endpoint.path == path]
    if not methods:
        raise Refusal("NOT_FOUND", f"nothing at the path {quoted(masked(request.path))}", status=404)
    if request.method not in methods:
        raise wrong_method(path, *methods)
    try:
        given = _query(request) if request.method == "GET" else _document(request)
        return json_response(sandbox.ask(request.method, path.removeprefix(PATH), given))
    except UsageError as error:
        why = error.message + (f". {error.hint}" if error.hint else "")
        raise Refusal("INVALID_PARAMETER", why, status=BAD_REQUEST) from error


def _query(request: SandboxRequest) -> dict[str, Any]:
    try:
        return dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise UsageError("cannot read the query string") from None


def _document(request: SandboxRequest) -> dict[str, Any]:
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


def _checked(endpoint: Endpoint, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that were sent, converted; an empty one counts as not sent. Raises UsageError."""
    found = {}
    for name, parameter in endpoint.parameters.items():
        value = given.get(name)
        if value is not None and value != "":
            found[name] = _CONVERTERS[parameter.kind](name, value)
        elif parameter.required:
            raise UsageError(f"{name} is required")
    return found


def _text(name: str, value: Any) -> str:
    try:
        if isinstance(value, str) and value.encode():
            return value
    except UnicodeEncodeError:
        pass
    raise UsageError(f"{name} must be a string of Unicode text")


def _strings(name: str, value: Any) -> list[str]:
    if not isinstance(value, list):
        raise UsageError(f"{name} must be an array of strings")
    return [_text(name, each) for each in value]


def _number(name: str, value: Any) -> int:
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 15:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MAX_CREDITS:
        raise UsageError(f"{name} must be a whole number of at most 15 digits")
    return value


def _seconds(name: str, value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1
    if not 0 <= seconds <= MAX_WAIT:
        raise UsageError(f"{name} must be a number of seconds from 0 to {MAX_WAIT:g}")
    return seconds


_CONVERTERS: Mapping[str, Callable[[str, Any], Any]] = {
    "string": _text,
    "integer": _number,
    "number": _seconds,
    "array": _strings,
}
