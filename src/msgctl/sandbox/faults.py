"""Faults that the sandbox simulates, so that people can see how their programs react."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from msgctl.errors import UsageError
from msgctl.operations import OPERATIONS
from msgctl.sandbox.emulator import BASE_PATH, Emulator
from msgctl.sandbox.protocol import UNKNOWN_ERROR, Refusal, SandboxRequest, SandboxResponse, quoted
from msgctl.sandbox.state import State

MAX_DELAY = 3600.0
MAX_NEXT = 1_000_000

SYNTAX = (
    "Use KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]. "
    "Kinds: 520, 503, 429, html, delay=SECONDS, drop, reject, truncate, garbage."
)


class FaultKind(Enum):
    """The kinds of fault, by their names in a SPEC."""

    REFUSE = "520"
    UNAVAILABLE = "503"
    TOO_MANY = "429"
    HTML = "html"
    DELAY = "delay"
    DROP = "drop"
    REJECT = "reject"
    TRUNCATE = "truncate"
    GARBAGE = "garbage"


INSTEAD = {FaultKind.REFUSE, FaultKind.UNAVAILABLE, FaultKind.TOO_MANY, FaultKind.HTML, FaultKind.REJECT}
"""Faults that replace the operation. With the others it is carried out, and only its response is affected."""

_PATHS = frozenset(operation.path for operation in OPERATIONS)
_PROBABILITY = re.compile(r"0*(?:0?\.[0-9]{1,9}|[01](?:\.0*)?)")
_SECONDS = re.compile(r"[0-9]{1,4}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")
_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>520: unknown error</title></head>"
    b"<body><h1>Error 520</h1><p>The web server returned an unknown error.</p></body></html>\n"
)


class Fault(NamedTuple):
    """One fault: its probability for a request, or the number of requests it is for; the operation's path, or None."""

    kind: FaultKind
    probability: float = 1.0
    path: str | None = None
    seconds: float = 0.0
    next: int | None = None


class Outcome(NamedTuple):
    """A response, and the faults that it met."""

    response: SandboxResponse
    faults: tuple[FaultKind, ...] = ()


def parse(spec: str) -> Fault:
    """Return the fault of a SPEC (see `SYNTAX`). Raises UsageError."""
    head, *rest = spec.split(":", 2)
    name, equals, seconds = head.partition("=")
    kind = next((kind for kind in FaultKind if kind.value == name), None)
    if kind is None or (kind is FaultKind.DELAY) != bool(equals):
        raise _malformed(spec, f"unknown kind of fault {quoted(head)}")
    if equals and not (_SECONDS.fullmatch(seconds) and float(seconds) <= MAX_DELAY):
        raise _malformed(spec, f"the delay must be a number of seconds up to {MAX_DELAY:g}, not {quoted(seconds)}")
    how_often = rest.pop(0) if rest and not rest[0].startswith("/") else "1"
    count = None
    if how_often.startswith("next="):
        count, how_often = _count(spec, how_often.removeprefix("next=")), "1"
    if not _PROBABILITY.fullmatch(how_often):
        raise _malformed(spec, f"the probability must be between 0 and 1, not {quoted(how_often)}")
    path = ":".join(rest).removeprefix(BASE_PATH) if rest else None
    if path is not None and path not in _PATHS:
        near = f"/{path}" if f"/{path}" in _PATHS else None
        raise _malformed(spec, f"unknown path {quoted(path)}" + (f". Did you mean {near}?" if near else ""))
    return Fault(kind, float(how_often), path, float(seconds) if equals else 0.0, count)


def replace_all(state: State, *specs: str) -> None:
    """Set exactly these faults. Raises UsageError, with nothing changed, if one cannot be read."""
    faults = [parse(spec) for spec in specs]
    with state.writing() as db:
        db.execute("DELETE FROM faults")
        rows = [(spec, fault.next) for spec, fault in zip(specs, faults, strict=True)]
        db.executemany("INSERT INTO faults (spec, remaining) VALUES (?, ?)", rows)
    state.check_faults()


def respond(
    emulator: Emulator,
    request: SandboxRequest,
    sleep: Callable[[float], None] = time.sleep,
    operate: Callable[[SandboxRequest], SandboxResponse] | None = None,
) -> Outcome:
    """Carry out an operation with the faults that the state has; ``operate`` replaces the emulator."""
    operate = operate or emulator.respond
    met = _met(emulator, request.path.removeprefix(BASE_PATH))
    if not met:
        return Outcome(operate(request))
    kinds = tuple(fault.kind for fault in met)
    sleep(sum(fault.seconds for fault in met))
    instead = next((kind for kind in kinds if kind in INSTEAD), None)
    return Outcome(_response(instead) if instead else operate(request), kinds)


def _met(emulator: Emulator, path: str) -> list[Fault]:
    """Return the faults that a request for a path meets, in the order they were set."""
    if path not in _PATHS or not emulator.state.has_faults():
        return []
    met = []
    with emulator.state.writing() as db:
        for number, spec, remaining in db.execute("SELECT number, spec, remaining FROM faults").fetchall():
            fault = parse(spec)
            if fault.path not in (None, path) or emulator.chance.random() >= fault.probability:
                continue
            met.append(fault)
            if remaining == 1:
                db.execute("DELETE FROM faults WHERE number = ?", (number,))
            elif remaining:
                db.execute("UPDATE faults SET remaining = remaining - 1 WHERE number = ?", (number,))
    return met


def _response(kind: FaultKind) -> SandboxResponse:
    """Return the response that replaces the operation's; for HTML it is a proxy's error page."""
    if kind is FaultKind.HTML:
        return SandboxResponse(UNKNOWN_ERROR, _PAGE, {"content-type": "text/html; charset=utf-8"})
    msg = f"the sandbox has the fault {kind.value}"
    if kind is FaultKind.UNAVAILABLE:
        return Refusal("UNAVAILABLE", msg, status=503).response()
    if kind is FaultKind.TOO_MANY:
        return Refusal("TOO_MANY_REQUESTS", msg, status=429, headers={"retry-after": "1"}).response()
    return Refusal("UNKNOWN", msg).response()


def _count(spec: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= 7 and 1 <= int(text) <= MAX_NEXT):
        raise _malformed(spec, f"next must be a whole number from 1 to {MAX_NEXT}, not {quoted(text)}")
    return int(text)


def _malformed(spec: str, why: str) -> UsageError:
    return UsageError(f"Cannot read the fault {quoted(spec)}: {why}", SYNTAX)
