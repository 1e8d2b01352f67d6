"""Faults that a served sandbox is told to have, so that people can see what their programs do about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from threading import Lock

from msgctl.errors import UsageError
from msgctl.operations import OPERATIONS
from msgctl.sandbox.emulator import BASE_PATH
from msgctl.sandbox.wire import UNKNOWN_ERROR, Refusal, Reply, quoted

LONGEST_DELAY = 3600.0


class Kind(Enum):
    """What goes wrong, by its name in ``--fault``."""

    REFUSE = "520"
    UNAVAILABLE = "503"
    TOO_MANY = "429"
    HTML = "html"
    DELAY = "delay"
    DROP = "drop"
    REJECT = "reject"
    TRUNCATE = "truncate"
    GARBAGE = "garbage"


INSTEAD = frozenset({Kind.REFUSE, Kind.UNAVAILABLE, Kind.TOO_MANY, Kind.HTML, Kind.REJECT})
"""Faults that come in place of the work; with the others, but DELAY, it is done and the answer suffers."""

FORMS = "520, 503, 429, html, delay=SECONDS, drop, reject, truncate or garbage, then :PROBABILITY and :PATH"

_PATHS = frozenset(operation.path for operation in OPERATIONS)
_PROBABILITY = re.compile(r"0*(?:0?\.[0-9]{1,9}|[01](?:\.0*)?)")
_SECONDS = re.compile(r"[0-9]{1,4}(?:\.[0-9]{0,9})?|\.[0-9]{1,9}")

_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>520: unknown error</title></head>"
    b"<body><h1>Error 520</h1><p>The web server returned an unknown error.</p></body></html>\n"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: how likely it is for a request, the path below the base path that it is for, seconds of a delay."""

    kind: Kind
    probability: float = 1.0
    path: str | None = None
    seconds: float = 0.0


def parse(spec: str) -> Fault:
    """A fault from ``KIND[:PROBABILITY][:PATH]``. Raises UsageError."""
    head, *rest = spec.split(":", 2)
    name, equals, seconds = head.partition("=")
    kind = next((kind for kind in Kind if kind.value == name), None)
    if kind is None or (kind is Kind.DELAY) != bool(equals):
        raise _malformed(spec, f"{quoted(head)} is no kind of fault")
    if equals and not (_SECONDS.fullmatch(seconds) and float(seconds) <= LONGEST_DELAY):
        raise _malformed(spec, f"{quoted(seconds)} is no number of seconds up to {LONGEST_DELAY:g}")
    probability = rest.pop(0) if rest and not rest[0].startswith("/") else "1"
    if not _PROBABILITY.fullmatch(probability):
        raise _malformed(spec, f"{quoted(probability)} is no probability from 0 to 1")
    path = ":".join(rest).removeprefix(BASE_PATH) if rest else None
    if path is not None and path not in _PATHS:
        raise _malformed(spec, f"{quoted(path)} is the path of no operation")
    return Fault(kind, float(probability), path, float(seconds) if equals else 0.0)


def _malformed(spec: str, why: str) -> UsageError:
    return UsageError(f"--fault {quoted(spec)}: {why}", f"Allowed are {FORMS}.")


class Faults:
    """Decides which faults a request meets. The same seed and the same requests meet the same faults."""

    def __init__(self, faults: Sequence[Fault] = (), seed: int | None = None) -> None:
        self._faults = tuple(faults)
        self._random = Random(seed)  # noqa: S311 - no secret: it has to be repeatable
        self._lock = Lock()

    def met(self, path: str) -> list[Fault]:
        """The faults that a request for a path below the base path meets, in the order they were given."""
        fitting = [fault for fault in self._faults if fault.path in (None, path)]
        with self._lock:
            return [fault for fault in fitting if self._random.random() < fault.probability]


def reply(kind: Kind) -> Reply:
    """The answer that takes the place of the work; for HTML it is the error page of a proxy."""
    if kind is Kind.HTML:
        return Reply(UNKNOWN_ERROR, _PAGE, {"content-type": "text/html; charset=utf-8"})
    msg = f"a fault that the sandbox was told to have (--fault {kind.value})"
    if kind is Kind.UNAVAILABLE:
        return Refusal("UNAVAILABLE", msg, status=503).reply()
    if kind is Kind.TOO_MANY:
        return Refusal("TOO_MANY_REQUESTS", msg, status=429, headers={"retry-after": "1"}).reply()
    return Refusal("UNKNOWN", msg).reply()
