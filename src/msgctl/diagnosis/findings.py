"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from msgctl.errors import MsgctlError

COLUMNS = ("check", "status", "found", "mend")


class Status(Enum):
    """How a check ended. A warning is no failure: requests can be made all the same."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


class Result(NamedTuple):
    """What a check gives: how it ended, what it found, and what to do."""

    status: Status
    found: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check under its name; ``error`` is what a request would have failed with."""

    check: str
    status: Status
    found: str
    mend: str | None = None
    error: MsgctlError | None = None

    def document(self) -> dict[str, Any]:
        """The finding as data, its members in the order of `COLUMNS`."""
        return {"check": self.check, "status": self.status.value, "found": self.found, "mend": self.mend}


def ok(found: str) -> Result:
    return Result(Status.OK, found)


def warning(found: str, mend: str) -> Result:
    return Result(Status.WARNING, found, mend)


def skipped(found: str) -> Result:
    return Result(Status.SKIPPED, found)
