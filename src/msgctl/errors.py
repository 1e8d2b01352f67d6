"""The tree of errors, each with its exit code.

::

    MsgctlError
    ├── UsageError          2   the command line or an input file is wrong; nothing was sent
    ├── ConfigurationError  3   no profile, no credentials, a file that cannot be read or is not safe
    ├── NotReachedError     4   no name, no connection, no TLS; nothing was sent
    ├── ServiceError        1   the service (or something before it) answered, and not as it should
    │   ├── RefusedError    1   … with a status other than 200
    │   └── UnreadableError 1   … with 200, to a request that only reads, and no record that can be read
    ├── OutcomeUnknownError 5   the request went out and no usable answer came back
    ├── ConditionError      6   a condition that was asked for is not met
    └── StoppedError      130   Ctrl-C, SIGTERM or SIGHUP

They are raised where a thing is found out and turned into a message and an exit code in one place, `cli.report`.
"""

from __future__ import annotations

import errno
from typing import Any, ClassVar

PASSING_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses of an answer that may be another one a little later."""

RAISE_LIMIT = "Raise the limit (see: ulimit -a), or that of the container"


class MsgctlError(Exception):
    """What every error has: ``message`` says what happened and what was or was not sent, ``hint`` what to do next.

    ``passing`` is true where the same request may succeed a little later (a refused connection), and false where it
    will not (a certificate that is not trusted). ``nothing_sent`` is true where it is certain that no request left.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    passing: bool = False
    nothing_sent: bool = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def details(self) -> dict[str, Any]:
        """Further members of the error's JSON form."""
        return {}


class UsageError(MsgctlError):
    """Something typed, or in an input file, cannot be used. Raised before anything is sent."""

    kind = "usage"
    exit_code = 2
    nothing_sent = True


class ConfigurationError(MsgctlError):
    """A profile, a credential or a file of msgctl's own is missing, broken or not safe. Nothing was sent."""

    kind = "configuration"
    exit_code = 3
    nothing_sent = True


class NotReachedError(MsgctlError):
    """The service was not reached, so nothing was sent."""

    kind = "not_reached"
    exit_code = 4
    nothing_sent = True

    def __init__(self, message: str, hint: str | None = None, *, passing: bool = True) -> None:
        super().__init__(f"{message}; nothing was sent", hint)
        self.passing = passing


class ServiceError(MsgctlError):
    """An answer arrived that is not the record asked for; ``error`` and ``msg`` are the service's own, unchanged."""

    kind = "service"
    exit_code = 1

    def __init__(
        self, message: str, hint: str | None = None, *, http_status: int, record: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint)
        self.http_status = http_status
        self.record = record or {}
        self.passing = http_status in PASSING_STATUSES

    def details(self) -> dict[str, Any]:
        own: dict[str, Any] = {name: self.record[name] for name in ("error", "msg") if name in self.record}
        return {"http_status": self.http_status, **own}


class RefusedError(ServiceError):
    """The service answered with a status other than 200.

    ``certain`` is true where the request was surely not carried out, or only reads, and false where the answer may come
    from a proxy that had passed it on.
    """

    kind = "refused"

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        http_status: int,
        record: dict[str, Any] | None = None,
        certain: bool = True,
    ) -> None:
        super().__init__(message, hint, http_status=http_status, record=record)
        self.certain = certain


class UnreadableError(ServiceError):
    """The service answered 200 to a request that only reads, and the answer cannot be read."""

    kind = "unreadable"


class OutcomeUnknownError(MsgctlError):
    """The request went out and no usable answer came back: it may have been carried out.

    ``passing``: a request that reads may be made again. Whether a request is one that reads is not known here.
    """

    kind = "outcome_unknown"
    exit_code = 5
    passing = True

    def __init__(self, message: str, hint: str | None = None, *, http_status: int | None = None) -> None:
        super().__init__(message, hint)
        self.http_status = http_status

    def details(self) -> dict[str, Any]:
        return {} if self.http_status is None else {"http_status": self.http_status}


class ConditionError(MsgctlError):
    """A condition that the user asked for is not met: too few credits, a state that did not come."""

    kind = "condition_not_met"
    exit_code = 6


class StoppedError(MsgctlError):
    """Stopped by a signal, or by a person who was asked; the message says whether a request had gone out."""

    kind = "interrupted"
    exit_code = 130

    def __init__(self, message: str, hint: str | None = None, *, nothing_sent: bool = False) -> None:
        super().__init__(message, hint)
        self.nothing_sent = nothing_sent


def no_more(what: str) -> ConfigurationError:
    """The system allows no more of something (threads, memory, open files), and nothing was begun without it."""
    return ConfigurationError(f"the system gave msgctl no more {what}", f"{RAISE_LIMIT}, then try again.")


def unexpected(error: Exception) -> MsgctlError:
    """A mistake in msgctl itself, or a limit of the system that it met somewhere."""
    if what := _lacking(error):
        return OutcomeUnknownError(
            f"msgctl stopped because the system gave it no more {what}",
            f"If it was sending, that may have happened. {RAISE_LIMIT}.",
        )
    return OutcomeUnknownError(
        f"msgctl stopped at a mistake of its own ({place_of(error)})",
        "If it was sending, that may have happened. Please report it.",
    )


def _lacking(error: Exception) -> str | None:
    """What the system refused more of, where that is the error."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM:
        return "memory"
    if number in (errno.EMFILE, errno.ENFILE):
        return "open files"
    return "threads" if isinstance(error, RuntimeError) and "start new thread" in str(error) else None


def place_of(error: Exception) -> str:
    """What kind of exception was raised, and where, but not what it held, which could be a key."""
    import traceback  # only a run that fails needs it
    from pathlib import Path

    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
