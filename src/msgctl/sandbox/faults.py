"""Faults that the sandbox simulates, so that people can test how their programs react."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgctl.errors import UsageError
from msgctl.operations import OPERATIONS
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import (
    BASE_PATH,
    FAULT_KINDS,
    FAULT_SYNTAX,
    UNKNOWN_ERROR,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    quoted,
)

MAX_DELAY = 3600.0
MAX_NEXT = 999_999
_PATHS = frozenset(operation.path for operation in OPERATIONS)
_REQUESTS = frozenset((operation.method, BASE_PATH + operation.path) for operation in OPERATIONS)
_PROBABILITY = re.compile(r"0*(?:0?\.[0-9]{1,9}|[01](?:\.0*)?)")
_SECONDS = re.compile(r"[0-9]{1,4}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")
_COUNT = re.compile(r"next=0*([1-9][0-9]{0,5})")
_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>520: unknown error</title></head>"
    b"<body><h1>Error 520</h1><p>The web server returned an unknown error.</p></body></html>\n"
)


def _error(kind: str, error: str, reason: str = "", **more: str) -> SandboxResponse:
    msg = f"{reason}simulated by the sandbox (fault {kind})"
    return Refusal(error, msg, status=int(kind), headers=more).response()


INSTEAD = {
    "520": _error("520", "INVALID_PARAMETER", "invalid parameters, "),
    "503": _error("503", "UNAVAILABLE"),
    "429": _error("429", "TOO_MANY_REQUESTS", **{"retry-after": "1"}),
    "html": SandboxResponse(UNKNOWN_ERROR, _PAGE, {"content-type": "text/html; charset=utf-8"}),
    "reject": SandboxResponse(UNKNOWN_ERROR, b""),
}
"""Responses that replace the operation. With other faults, the operation is carried out, and only its response
changes.
"""

_BREAKDOWN = json_response({"error": 1000, "msg": "Error interno del sistema"}, UNKNOWN_ERROR)
"""The response of a service that breaks down after it has carried out a request."""


class Fault(NamedTuple):
    """One fault: its probability for a request, or the number of requests it affects; an operation's path, or None."""

    kind: str
    probability: float = 1.0
    path: str | None = None
    seconds: float = 0.0
    next: int | None = None


def parse(spec: str) -> Fault:
    """Return the fault of a SPEC (see `FAULT_SYNTAX`). Raises UsageError."""

    def malformed(why: str) -> UsageError:
        return UsageError(f"Cannot read the fault {quoted(spec)}: {why}", f"Use {FAULT_SYNTAX}")

    head, *rest = spec.split(":", 2)
    name, equals, seconds = head.partition("=")
    if name + equals not in FAULT_KINDS:
        raise malformed(f"unknown kind of fault {quoted(head)}")
    if equals and not (_SECONDS.fullmatch(seconds) and float(seconds) <= MAX_DELAY):
        raise malformed(f"the delay must be a number of seconds up to {MAX_DELAY:g}, not {quoted(seconds)}")
    how_often = rest.pop(0) if rest and not rest[0].startswith("/") else "1"
    count = _COUNT.fullmatch(how_often)
    if how_often.startswith("next=") and not count:
        raise malformed(f"next must be a whole number from 1 to {MAX_NEXT:,}, not {quoted(how_often[5:])}")
    if not count and not _PROBABILITY.fullmatch(how_often):
        raise malformed(f"the probability must be between 0 and 1, not {quoted(how_often)}")
    path = ":".join(rest).removeprefix(BASE_PATH) if rest else None
    if path is not None and path not in _PATHS:
        raise malformed(f"unknown path {quoted(path)}")
    probability = 1.0 if count else float(how_often)
    return Fault(name, probability, path, float(seconds or 0), int(count[1]) if count else None)


def replace_all(emulator: Emulator, *specs: str) -> None:
    """Replace all faults. Raises UsageError, and changes nothing, if one cannot be read."""
    rows = [(spec, parse(spec).next) for spec in specs]
    with emulator.writing() as db:
        db.execute("DELETE FROM faults")
        db.executemany("INSERT INTO faults (spec, remaining) VALUES (?, ?)", rows)


def active_faults(emulator: Emulator) -> list[str]:
    """Return the faults that are set, with the remaining number of requests of each."""
    with emulator.reading() as db:
        rows = db.execute("SELECT spec, remaining FROM faults ORDER BY number").fetchall()
    return [spec if left is None else re.sub("next=[0-9]+", f"next={left}", spec) for spec, left in rows]


def respond(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
    """Carry out a request with the faults that apply to it, in the order they were set.

    Faults apply only to requests to the operations; other requests do not count.
    """
    if (request.method, request.path) not in _REQUESTS:
        return emulator.carry_out(request)
    path = request.path.removeprefix(BASE_PATH)
    applied = list[Fault]()
    with emulator.writing() as db:
        for number, spec in db.execute("SELECT number, spec FROM faults").fetchall():
            fault = parse(spec)
            if fault.path in (None, path) and emulator.chance.random() < fault.probability:
                applied.append(fault)
                db.execute("UPDATE faults SET remaining = remaining - 1 WHERE number = ?", (number,))
        db.execute("DELETE FROM faults WHERE remaining = 0")
    kinds = [fault.kind for fault in applied]
    response = next((INSTEAD[kind] for kind in kinds if kind in INSTEAD), None)
    if response is None:
        response = emulator.carry_out(request)
        if "breakdown" in kinds:
            response = _BREAKDOWN
    return response._replace(faults=tuple(kinds), delay=sum(fault.seconds for fault in applied))
