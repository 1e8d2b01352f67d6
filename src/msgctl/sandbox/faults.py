"""Faults that the sandbox simulates, so that people can test how their programs react."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgctl.errors import UsageError
from msgctl.operations import OPERATIONS, Field, Kind
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import (
    BASE_PATH,
    FAULT_KINDS,
    FAULT_SYNTAX,
    UNKNOWN_ERROR,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    checked,
    invalid,
    json_response,
    quoted,
)

_DELAY = Field("the delay", "", "", kind=Kind.NUMBER, least=0, most=3600)
_NEXT = Field("next", "", "", kind=Kind.INTEGER, least=1, most=999_999)
_PROBABILITY = Field("the probability", "", "", kind=Kind.NUMBER, least=0, most=1)
_PATHS = [operation.path for operation in OPERATIONS]
_REQUESTS = frozenset((operation.method, BASE_PATH + operation.path) for operation in OPERATIONS)
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
    """One fault: its probability, or the number of requests that it affects; and the path of an operation, or None."""

    kind: str
    probability: float = 1.0
    path: str | None = None
    seconds: float = 0.0
    next: int | None = None


def parse(spec: str) -> Fault:
    """Return the fault of a SPEC (see `FAULT_SYNTAX`). Raises UsageError."""
    try:
        return _parsed(*spec.split(":", 2))
    except Refusal as refusal:
        what = f"Cannot read the fault {quoted(spec)}: {refusal.reason.msg}"
        raise UsageError(what, f"Use {FAULT_SYNTAX}") from None


def _parsed(head: str, *parts: str) -> Fault:
    rest = [*parts]
    kind, equals, delay = head.partition("=")
    if kind + equals not in FAULT_KINDS:
        raise invalid(f"the kind {quoted(head)}", "is unknown")
    fault = Fault(kind)
    if equals:
        fault = fault._replace(seconds=checked(_DELAY, delay))
    if rest and not rest[0].startswith("/"):
        how_often = rest.pop(0)
        if how_often.startswith("next="):
            fault = fault._replace(next=checked(_NEXT, how_often.removeprefix("next=")))
        else:
            fault = fault._replace(probability=checked(_PROBABILITY, how_often))
    if rest:
        path = ":".join(rest).removeprefix(BASE_PATH)
        if path not in _PATHS:
            raise invalid("the path", f"must be one of {', '.join(_PATHS)}, not {quoted(path)}")
        fault = fault._replace(path=path)
    return fault


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
    return [spec if number is None else re.sub("next=[0-9]+", f"next={number}", spec) for spec, number in rows]


def respond_with_faults(emulator: Emulator, request: SandboxRequest) -> SandboxResponse:
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
