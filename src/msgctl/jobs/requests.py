"""Make one request of a job, and return its outcome."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    RefusedError,
    TurnedAwayError,
    UsageError,
    unexpected,
    without_frames,
)
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.jobs.settings import Settings
from msgctl.operations import Operation
from msgctl.outcomes.judge import Outcome
from msgctl.store.results import Intent, RequestOutcome

MAX_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""
NOT_FOR_RECIPIENTS = frozenset({301, 307, 308, 401, 405, 415})
"""Statuses of refusals that are about the account or the address, so they would be the same for any recipients."""


class RequestResult(NamedTuple):
    """The outcome of a request. Without ``rows``, it was not sent; ``error`` may contain the reason.

    ``started`` is when it began, on the monotonic clock.
    """

    intent: Intent
    started: float
    rows: Sequence[Outcome] = ()
    error: MsgctlError | None = None

    @property
    def failure(self) -> str:
        """How the request failed as a whole: ``refused`` or ``unknown``; otherwise empty."""
        outcomes = {row.outcome for row in self.rows}
        if len(outcomes) != 1 or "accepted" in outcomes:
            return ""
        return outcomes.pop()


def send(client: Client, operation: Operation, settings: Settings, intent: Intent, started: float) -> RequestResult:
    """Make a request once and return its outcome; nothing is raised."""
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        values = {**settings.fixed, **json.loads(intent.parameters), "phone": phones}
        # One attempt: a request that was not sent is tried again at the job's rate.
        response = client.send(build(operation, values), timeout=MAX_ATTEMPT)
    except Exception as raised:  # noqa: BLE001 (its recipients must not stay in flight)
        error = without_frames(raised if isinstance(raised, MsgctlError) else unexpected(raised, is_sent=False))
        if isinstance(error, (NotReachedError, TurnedAwayError, ConfigurationError)):
            return RequestResult(intent, started, error=error)
        if isinstance(error, RefusedError) and error.http_status in NOT_FOR_RECIPIENTS:
            return RequestResult(intent, started, error=error)
        outcome = "refused" if isinstance(error, (UsageError, RefusedError)) else "unknown"
        recipients = error.recipients or [Outcome(phone, outcome) for phone in intent.phones]
        rows = [recipient._replace(outcome=outcome, error=error.message) for recipient in recipients]
        return RequestResult(intent, started, rows, error)
    return RequestResult(intent, started, response.outcomes)


def completed(outcomes: Sequence[RequestResult]) -> list[RequestOutcome]:
    """Return the outcomes of requests that were sent, as the store keeps them."""
    return [RequestOutcome(outcome.intent, outcome.rows) for outcome in outcomes if outcome.rows]
