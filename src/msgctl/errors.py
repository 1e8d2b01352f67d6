"""The tree of errors, each with its exit code.

::

    MsgctlError
    ├── UsageError          2   the command line or an input file is wrong; nothing was sent
    ├── ConfigurationError  3   no profile, no credentials, an unreadable or unsafe file
    ├── NotReachedError     4   name, connection or TLS failed; nothing was sent
    ├── StoreNotReachedError 4  the store could not be reached; nothing was sent
    ├── ServiceError        1   the service, or something before it, responded with an error
    │   ├── RefusedError    1   … that refuses the request
    │   ├── UnreadableError 1   … or with something unusable, to a request that only reads
    │   └── TurnedAwayError 4   … or that it cannot carry out the request for now; nothing was sent
    ├── OutcomeUnknownError 5   the request was sent and no usable response came back
    │   └── BugError        5   a bug stopped msgctl, perhaps before anything was sent
    ├── ConditionError      6   a condition that the user asked for is not met
    └── Interrupted       130   Ctrl-C, SIGTERM or SIGHUP
        └── Cancelled     130   the user answered no to a question

An error is composed once, where it is found. Only `msgctl.cli.shell.errors` converts it to a message and an exit code.
A caller that has more details raises a copy: see `MsgctlError.within` and `MsgctlError.replaced`.
"""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
"""HTTP statuses of errors that may be temporary."""

NOTHING_SENT = "nothing was sent"
MAY_BE_SENT = "it may have been sent"
RAISE_LIMIT = "Raise the limit (see: ulimit -a), or the container's limit"


class ExitCode(NamedTuple):
    """The name of an exit code in the help, and its description in the manual."""

    name: str
    description: str


EXIT_CODES = {
    0: ExitCode("done", "done"),
    1: ExitCode("refused", "the service refused the request, or a response to a read makes no sense"),
    2: ExitCode("usage", "usage: an error on the command line or in an input file, found before anything was sent"),
    3: ExitCode(
        "configuration",
        "configuration: no profile, no credentials, or an unreadable, unsafe or damaged file or store",
    ),
    4: ExitCode(
        "not carried out",
        "not carried out: the service or the store was not reached, or it turned the request away for now. "
        "Nothing was sent; of a job: it can be continued, some messages may have been sent",
    ),
    5: ExitCode(
        "outcome unknown",
        "outcome unknown: the request was sent and no certain response came back; the service may have carried it out",
    ),
    6: ExitCode(
        "condition not met",
        "condition not met: a balance below --min, a wait that did not reach its state, "
        "or a send or job with recipients not accepted",
    ),
    130: ExitCode("interrupted", "interrupted, or not confirmed: its reasons are interrupted and cancelled"),
}

REASONS = {
    "unauthorized": "1: the service does not accept the credentials or this machine's address (401, 403)",
    "not_verified": "1: 2fa verify: the code, or else the credentials or the base URL, may be wrong",
    "unreadable": "1: the response to a read makes no sense",
    "refused": "1: the service refused the request, or a check of doctor failed",
    "invalid_phone": "2: a phone number is not valid",
    "invalid_file": "2: a file is missing, cannot be read, or contains a row that cannot be sent",
    "opted_out": "2: a recipient has opted out",
    "repeats": "2: every recipient has already got the message",
    "key_reused": "2: the --once key or the --name belongs to another message or other recipients",
    "not_confirmed": "2: the command needs --yes without a terminal",
    "usage": "2: any other error on the command line or in an input file",
    "no_profile": "3: no profile is selected",
    "no_credentials": "3: the client ID or the key is missing",
    "unsafe_file": "3: a file with a key is readable by other users",
    "damaged_store": "3: the store is damaged",
    "newer_store": "3: the store belongs to a newer version",
    "configuration": "3: any other error of the configuration",
    "not_reached": "4: the service was not reached",
    "rate_limited": "4: the service turned the request away for now (429)",
    "unavailable": "4: a read got no response, or a failure such as 503 (after a send: outcome_unknown)",
    "store_not_reached": "4: the store was not reached",
    "outcome_unknown": "5: the request was sent and no conclusive response came back",
    "low_balance": "6: fewer credits are left than --min (balance check)",
    "not_accepted": "6: some recipients were not accepted (a send or a job)",
    "not_delivered": "6: a message was not delivered, or reached another final state (--wait, state watch, job states)",
    "state_not_reached": "6: the time ran out before a message reached the state, or its state could not be read",
    "running_elsewhere": "6: another process or machine runs the job or uses the key",
    "paused": "6: the job is paused: another process paused it, or five unknown requests in a row",
    "cancelled": "6: the job is cancelled",
    "credit_limit": "6: --max-credits paused the job",
    "too_late": "6: job run-due found the job more than 12 hours after its time, and paused it",
    "job_removed": "6: the job of this --name was removed (bulk commands)",
    "rows_failed": "6: some rows of the file failed (url bulk, url clicks)",
    "no_message": "6: no message arrived (sandbox inbox --wait)",
}
"""The reasons of errors, each with its exit code."""


class Hint(str):
    """A hint: text, a command of msgctl (without ``msgctl``) for the account of the run, text, and so on.

    As a string, it contains the commands without a profile; `shown` adds the profile.
    """

    def __new__(cls, *parts: str) -> Self:
        hint = super().__new__(cls, _filled(parts, "msgctl"))
        hint.parts = parts
        return hint

    parts: Sequence[str]

    @classmethod
    def joined(cls, *hints: str | None, separator: str = "\n") -> Self:
        """Join hints into one; None and empty hints are left out."""
        parts: list[str] = []
        for hint in filter(None, hints):
            if parts:
                parts += (separator, "")
            parts += hint.parts if isinstance(hint, Hint) else [hint]
            if len(parts) % 2:
                parts.append("")
        return cls(*parts)

    def shown(self, profile: str) -> str:
        """Return the text for a run with ``-p profile``, so that copied commands act on the same account."""
        return _filled(self.parts, f"msgctl -p {shlex.quote(profile)}")


def _filled(parts: Sequence[str], program: str) -> str:
    """Return the text of a hint, whose commands begin with ``program``."""
    pieces = [*parts]
    pieces[1::2] = [f"{program} {command}" if command else "" for command in parts[1::2]]
    return "".join(pieces)


class ResponseDetails(NamedTuple):
    """The part of a response that an error shows.

    ``record`` contains the service's own ``error`` and ``msg``. ``body`` is the text of the response, at most 4,000
    characters, with the key redacted; a --once key and the ending of a job store it. ``document`` is its JSON; None if
    it is incomplete.
    """

    http_status: int
    record: Mapping[str, Any]
    body: str
    document: Any


class MsgctlError(Exception):
    """Base of all errors.

    ``reason`` is a stable word for programs; by default, it is the kind. ``what`` is the message, ``consequence``
    reports whether anything was sent (by default, the usual one), and ``hint`` suggests the next step. ``retryable`` is
    true if the same request may succeed later (a refused connection), and false if it will not (an untrusted
    certificate).

    If the service responded, the error has ``details``. ``response`` is a 2xx response that --json prints unchanged.
    ``recipients`` are the outcomes of a send's recipients (`msgctl.outcomes.outcome.Outcome`). ``missing_words`` is a
    pair: a kind of words, and the strings to add to the profile. ``job`` is the ID of the job that the error is about,
    if the run is not about a single job.
    """

    kind: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1
    usual_consequence: ClassVar[str] = ""
    retryable: bool = False

    def __init__(
        self,
        what: str,
        hint: str | None = None,
        *,
        consequence: str | None = None,
        details: ResponseDetails | None = None,
        reason: str = "",
        recipients: Sequence[Any] = (),
        missing_words: tuple[str, Sequence[str]] | None = None,
    ) -> None:
        super().__init__(what)
        self.reason = reason or self.kind
        self.what = what
        self.hint = hint
        self.consequence = self.usual_consequence if consequence is None else consequence
        self.details = details
        self.recipients = recipients
        self.missing_words = missing_words
        self.response: Any = None
        self.job: str | None = None

    @property
    def message(self) -> str:
        """The message, with the consequence after its first line if there is one."""
        if not self.consequence:
            return self.what
        first, newline, rest = self.what.partition("\n")
        return f"{first.rstrip('.')}; {self.consequence}{newline}{rest}"

    @property
    def http_status(self) -> int | None:
        """The status of the response; None if there was no response."""
        return None if self.details is None else self.details.http_status

    @property
    def body(self) -> str:
        """The text of the response; empty if there was no response."""
        return "" if self.details is None else self.details.body

    def __str__(self) -> str:
        return self.message

    def within(self, subject: str) -> Self:
        """Return a copy of this error that begins with its subject: a job, a message or a check."""
        return self.replaced(what=f"{subject}: {self.what}")

    def with_hint(self, *lines: str) -> Self:
        """Return a copy of this error with more lines in its hint."""
        return self.replaced(hint=Hint.joined(self.hint, *lines))

    def replaced(self, **changes: str | None) -> Self:
        """Return a copy of this error with another ``what``, ``hint`` or ``consequence``."""
        error = type(self).__new__(type(self), self.what)  # the constructors differ
        vars(error).update(vars(self) | changes)
        error.__cause__ = self.__cause__
        return error

    def document(self) -> dict[str, Any]:
        """Return the fields of the JSON of an error that come from its recipients and response."""
        document: dict[str, Any] = {}
        # a short URL has no recipient
        if any(recipient.phone for recipient in self.recipients):
            document["recipients"] = [
                {"phone": recipient.phone, "outcome": recipient.outcome, "id": recipient.id}
                for recipient in self.recipients
            ]
        if details := self.details:
            body = details.body if details.document is None else details.document
            document |= {"http_status": details.http_status, **details.record, "body": body}
        return document


class UsageError(MsgctlError):
    """A value on the command line or in an input file cannot be used. Raised before anything is sent."""

    kind = "usage"
    exit_code = 2


class ConfigurationError(MsgctlError):
    """A profile, a credential or one of msgctl's own files is missing, damaged or unsafe. Nothing was sent."""

    kind = "configuration"
    exit_code = 3


class NoProfileError(ConfigurationError):
    """No profile is selected."""


class StoreMovedError(ConfigurationError):
    """The store was moved to another one: ``new`` is its path, or its URL without the password."""

    def __init__(self, what: str, hint: str, new: str) -> None:
        super().__init__(what, hint, consequence=NOTHING_SENT)
        self.new = new


class MissingStoreError(ConfigurationError):
    """There is no store yet, and the caller does not create one."""


class NotReachedError(MsgctlError):
    """The service could not be reached, so nothing was sent."""

    kind = "not_reached"
    exit_code = 4
    usual_consequence = NOTHING_SENT

    def __init__(self, what: str, hint: str | None = None, *, retryable: bool = True, **details: Any) -> None:
        super().__init__(what, hint, **details)
        self.retryable = retryable


class StoreNotReachedError(MsgctlError):
    """The store could not be reached in time, or the connection to it was lost. Nothing was sent."""

    kind = "store_not_reached"
    exit_code = 4
    usual_consequence = NOTHING_SENT
    retryable = True


STORE_ERRORS = (ConfigurationError, StoreNotReachedError)
"""Errors of a store that cannot be used."""


class ServiceError(MsgctlError):
    """The service responded without the requested record, or did not respond to a read."""

    kind = "service"


class RefusedError(ServiceError):
    """The service refused the request: it was certainly not carried out."""

    kind = "refused"


class UnreadableError(ServiceError):
    """The response to a request that only reads is unusable, but is not a refusal."""

    kind = "unreadable"


class TurnedAwayError(ServiceError):
    """The service did not carry out the request for now, or did not respond to a request that only reads."""

    kind = "turned_away"
    exit_code = 4
    retryable = True
    retry_after: float | None = None
    """The seconds of the header Retry-After."""


class OutcomeUnknownError(MsgctlError):
    """The request was sent and no certain response came back: it may have been carried out."""

    kind = "outcome_unknown"
    exit_code = 5


class BugError(OutcomeUnknownError):
    """A bug stopped msgctl; the message reports whether a request may have been carried out."""


class ConditionError(MsgctlError):
    """A condition that the user asked for is not met: too few credits, a state that was not reached."""

    kind = "condition_not_met"
    exit_code = 6


class Interrupted(MsgctlError):  # noqa: N818 (InterruptedError is Python's own)
    """Stopped by a signal; the message reports whether a request had been sent."""

    kind = "interrupted"
    exit_code = 130


class Cancelled(Interrupted):
    """The user answered no to a question. This is not an error: it is shown as a plain sentence."""

    kind = "cancelled"


def install_hint(library: str, beginning: str = "Install it") -> str:
    """Return the hint that installs a library for this msgctl, with the tool that installed msgctl.

    ``beginning`` is its text before the command. The hint never installs msgctl by name, because the package of that
    name on PyPI belongs to a stranger.
    """
    from pathlib import Path

    environment = Path(sys.prefix)
    command = f"{shlex.quote(sys.executable)} -m pip install '{library}'"
    if (environment / "pipx_metadata.json").exists():
        command = f"pipx inject {shlex.quote(environment.name)} '{library}'"
    elif (environment / "uv-receipt.toml").exists():
        command = f"uv tool install --with '{library}' {shlex.quote(_source() or 'DIRECTORY-OF-MSGCTL')}"
    return f"{beginning}: {command}"


def _source() -> str | None:
    """Return the URL that msgctl was installed from (PEP 610); None if it is not known."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        url = json.loads(distribution("msgctl").read_text("direct_url.json") or "{}").get("url")
    except (PackageNotFoundError, ValueError):
        return None
    return str(url) if url else None


def no_more(what: str) -> ConfigurationError:
    """Return the error for a system resource that is used up (threads, memory, open files)."""
    return ConfigurationError(f"msgctl ran out of {what}", f"{RAISE_LIMIT}, then try again.")


def without_frames(error: MsgctlError) -> MsgctlError:
    """Return an error without its traceback, whose frames would keep the whole response in memory."""
    error.__traceback__ = error.__context__ = error.__cause__ = None
    return error


def of_thread(error: Exception) -> MsgctlError:
    """Return the error that a thread reports for an exception, without its traceback."""
    if not isinstance(error, MsgctlError):
        error = unexpected(error, is_sent=False)
    return without_frames(error)


def unexpected(error: Exception, *, is_sent: bool) -> MsgctlError:
    """Return the error for a bug in msgctl, or for a system resource that is used up.

    ``is_sent`` means that a request may have been carried out.
    """
    number = error.errno if isinstance(error, OSError) else None
    has_no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    if isinstance(error, MemoryError) or number in (errno.ENOMEM, errno.EMFILE, errno.ENFILE) or has_no_thread:
        out_of = no_more("memory, open files or threads")
        if not is_sent:
            return out_of
        return OutcomeUnknownError(out_of.what, f"{RAISE_LIMIT}.", consequence=MAY_BE_SENT)
    import traceback  # only needed in a run that fails
    from pathlib import Path

    # The text of an exception could contain a key.
    frames = traceback.extract_tb(error.__traceback__)
    where = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    what = f"msgctl stopped because of a bug ({type(error).__name__}{where})"
    consequence = MAY_BE_SENT if is_sent else NOTHING_SENT
    return BugError(what, "Please report it.", consequence=consequence)
