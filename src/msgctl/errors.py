"""The tree of errors, each with its exit code.

::

    MsgctlError
    ├── UsageError          2   the command line or an input file is wrong; nothing was sent
    ├── ConfigurationError  3   no profile, no credentials, an unreadable or unsafe file
    ├── NotReachedError     4   name, connection or TLS failed; nothing was sent
    ├── StoreNotReachedError 4  the store was not reached; nothing was sent
    ├── SharedStoreError    4   the shared store was not reached; nothing was sent
    ├── ServiceError        1   the service, or something before it, responded with an error
    │   ├── RefusedError    1   … that refuses the request
    │   └── UnreadableError 1   … or with something unusable, to a request that only reads
    ├── OutcomeUnknownError 5   the request was sent and no usable response came back
    ├── ConditionError      6   a condition that the user asked for is not met
    └── Interrupted       130   Ctrl-C, SIGTERM or SIGHUP
        └── Cancelled     130   the user answered no to a question

An error is composed once, where it is found. `msgctl.cli.errors` alone turns it into a message and an exit code. A
caller that has more details raises a copy: see `MsgctlError.within` and `MsgctlError.replaced`.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Self

RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
"""HTTP statuses of errors that may be temporary."""

RAISE_LIMIT = "Raise the limit (see: ulimit -a), or the container's limit"


class ExitCode(NamedTuple):
    """The name of an exit code in the help, and its description in the manual."""

    name: str
    description: str


EXIT_CODES = {
    0: ExitCode("done", "done"),
    1: ExitCode("refused", "the service refused the request; nothing was sent"),
    2: ExitCode("usage", "usage error, found before anything was sent"),
    3: ExitCode(
        "configuration", "configuration: no profile, no credentials, or a file that is unreadable or not private"
    ),
    4: ExitCode("not reached", "not reached; nothing was sent"),
    5: ExitCode("outcome unknown", "outcome unknown: the request was sent, but no usable response came back"),
    6: ExitCode("condition not met", "condition not met"),
    130: ExitCode("interrupted", "interrupted or cancelled"),
}

REASONS = {
    "invalid_phone": "a phone number is not valid",
    "invalid_file": "a file of recipients cannot be used",
    "low_balance": "balance check: fewer credits are left than --min",
    "state_not_reached": "a message did not reach the state in time",
    "other_state": "a message reached a final state other than the requested one",
    "not_delivered": "--wait: a message was not delivered",
    "state_unreadable": "the delivery state of a message could not be read",
    "not_accepted": "some recipients were not accepted",
    "running_elsewhere": "--once: the job is running on another machine",
    "credit_limit": "--max-credits stopped the job",
    "no_profile": "no profile is selected, or there is no such profile",
    "no_credentials": "the base URL, the client ID or the key is missing",
    "unsafe_file": "a file with a secret can be accessed by other users",
    "not_confirmed": "a question could not be asked, and --yes was not given",
    "rows_failed": "a row of the file failed",
    "no_message": "sandbox inbox --wait: no message arrived",
}
"""The reasons that are not the kind of an error."""


class MsgctlError(Exception):
    """Base of all errors.

    ``reason`` is a stable word for programs; by default, it is the kind. ``what`` is the message, ``consequence``
    reports what was or was not sent, and ``hint`` suggests the next step. ``retryable`` is true if the same request may
    succeed a little later (a refused connection), and false if it will not (an untrusted certificate).
    ``nothing_sent`` is true if it is certain that no request was sent.

    If the service responded, ``http_status`` is the status, and ``record`` contains the service's own ``error`` and
    ``msg``, unchanged. ``body`` is the text of the response, at most 4,000 characters, with the key redacted; history
    and jobs store it. ``document`` is its JSON, or None.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    retryable: bool = False
    nothing_sent: bool = False

    def __init__(
        self,
        what: str,
        hint: str | None = None,
        *,
        consequence: str = "",
        http_status: int | None = None,
        record: Mapping[str, Any] | None = None,
        body: str = "",
        document: Any = None,
        reason: str = "",
    ) -> None:
        super().__init__(what)
        self.reason = reason or self.kind
        self.what = what
        self.hint = hint
        self.consequence = consequence
        self.http_status = http_status
        self.record = record or {}
        self.body = body
        self.document = document

    @property
    def message(self) -> str:
        """The message, followed by the consequence if there is one."""
        return f"{self.what.rstrip('.')}; {self.consequence}" if self.consequence else self.what

    def __str__(self) -> str:
        return self.message

    def within(self, subject: str) -> Self:
        """Return a copy of this error that begins with its subject: a job, a message or a check."""
        return self.replaced(what=f"{subject}: {self.what}")

    def replaced(self, **changes: str | None) -> Self:
        """Return a copy of this error with another ``what``, ``hint`` or ``consequence``."""
        error = type(self).__new__(type(self), self.what)  # the constructors differ
        vars(error).update(vars(self) | changes)
        error.__cause__ = self.__cause__
        return error

    def details(self) -> dict[str, Any]:
        """Return the fields that describe the response in the error's JSON form."""
        if self.http_status is None:
            return {}
        body = self.body if self.document is None else self.document
        return {"http_status": self.http_status, **self.record, "body": body}


class UsageError(MsgctlError):
    """A value on the command line or in an input file cannot be used. Raised before anything is sent."""

    kind = "usage"
    exit_code = 2
    nothing_sent = True


class ConfigurationError(MsgctlError):
    """A profile, a credential or one of msgctl's own files is missing, damaged or unsafe. Nothing was sent."""

    kind = "configuration"
    exit_code = 3
    nothing_sent = True


class NoProfileError(ConfigurationError):
    """No profile is selected."""


class NotReachedError(MsgctlError):
    """The service was not reached, so nothing was sent."""

    kind = "not_reached"
    exit_code = 4
    nothing_sent = True

    def __init__(self, what: str, hint: str | None = None, *, retryable: bool = True) -> None:
        super().__init__(what, hint, consequence="nothing was sent")
        self.retryable = retryable


class SharedStoreError(MsgctlError):
    """The database that several machines share was not reached, or the connection to it was lost."""

    kind = "not_reached"
    exit_code = 4
    retryable = True
    nothing_sent = True


class StoreNotReachedError(MsgctlError):
    """The store was not reached in time, or the connection to it was lost. Nothing was sent."""

    kind = "store_not_reached"
    exit_code = 4
    retryable = True
    nothing_sent = True

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what, hint, consequence="nothing was sent")


class ServiceError(MsgctlError):
    """A response arrived without the requested record."""

    kind = "service"

    @property
    def retryable(self) -> bool:  # type: ignore[override]
        return self.http_status in RETRYABLE_STATUSES


class RefusedError(ServiceError):
    """The service refused the request: it was certainly not carried out."""

    kind = "refused"


class UnreadableError(ServiceError):
    """The response to a request that only reads is unusable, but is not a refusal."""

    kind = "unreadable"


class OutcomeUnknownError(MsgctlError):
    """The request was sent and no usable response came back: it may have been carried out.

    ``retryable`` means that a request that only reads may be made again; a send must not be.
    """

    kind = "outcome_unknown"
    exit_code = 5
    retryable = True


class ConditionError(MsgctlError):
    """A condition that the user asked for is not met: too few credits, a state that was not reached."""

    kind = "condition_not_met"
    exit_code = 6


class Interrupted(MsgctlError):  # noqa: N818 (InterruptedError is Python's own)
    """Stopped by a signal; the message says whether a request had been sent."""

    kind = "interrupted"
    exit_code = 130


class Cancelled(Interrupted):
    """The user answered no to a question. This is not an error: it is shown as a plain sentence."""

    kind = "cancelled"


def install_hint(package: str) -> str:
    """Return the hint that shows how to install an optional package beside msgctl."""
    return f"Install it: pip install '{package}', or with pipx: pipx inject msgctl '{package}'"


def no_more(what: str) -> ConfigurationError:
    """Return the error for a system resource that is used up (threads, memory, open files)."""
    return ConfigurationError(f"msgctl ran out of {what}", f"{RAISE_LIMIT}, then try again.")


def without_frames(error: MsgctlError) -> MsgctlError:
    """Return an error that is kept, without its traceback, whose frames contain the whole response."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def unexpected(error: Exception) -> MsgctlError:
    """Return the error for a bug in msgctl, or for a system resource that is used up."""
    may_be_sent = "If it was sending, the message may have been sent."
    number = error.errno if isinstance(error, OSError) else None
    has_no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    if isinstance(error, MemoryError) or number in (errno.ENOMEM, errno.EMFILE, errno.ENFILE) or has_no_thread:
        what = "msgctl ran out of memory, open files or threads and stopped"
        return OutcomeUnknownError(what, f"{may_be_sent} {RAISE_LIMIT}.")
    import traceback  # only needed in a run that fails
    from pathlib import Path

    # The text of an exception could contain a key.
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    what = f"msgctl stopped because of a bug ({type(error).__name__}{place})"
    return OutcomeUnknownError(what, f"{may_be_sent} Please report it.")
