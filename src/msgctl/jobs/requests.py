"""Make one request of a job, and return its outcome."""

from __future__ import annotations

import json

from msgctl.errors import (
    ConfigurationError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    TurnedAwayError,
    UsageError,
    of_thread,
)
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.http.response import because_of
from msgctl.jobs.settings import Settings
from msgctl.operations import Operation
from msgctl.outcomes.outcome import REFUSED, UNKNOWN, Outcome
from msgctl.store.results import Intent, RequestOutcome

MAX_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""
NOT_FOR_RECIPIENTS = frozenset({301, 307, 308, 401, 405, 415})
"""Statuses of refusals that are about the account or the address, so they would be the same for any recipients."""


def make(client: Client, operation: Operation, settings: Settings, intent: Intent, started: float) -> RequestOutcome:
    """Make a request once and return its outcome; nothing is raised."""
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        values = {**settings.fixed, **json.loads(intent.parameters), "phone": phones}
        # One attempt: a request that was not sent is tried again at the job's rate.
        response = client.send(build(operation, values), timeout=MAX_ATTEMPT)
    except Exception as raised:  # noqa: BLE001 (its recipients must not stay in flight)
        error = of_thread(raised)
        if isinstance(error, (NotReachedError, TurnedAwayError, ConfigurationError)):
            return RequestOutcome(intent, (), started, error)
        if isinstance(error, RefusedError) and error.http_status in NOT_FOR_RECIPIENTS:
            return RequestOutcome(intent, (), started, error)
        outcome = REFUSED if isinstance(error, (UsageError, RefusedError)) else UNKNOWN
        recipients = error.recipients or [Outcome(phone, outcome) for phone in intent.phones]
        rows = [recipient._replace(outcome=outcome, error=error.message) for recipient in recipients]
        return RequestOutcome(intent, rows, started, error)
    outcomes = response.outcomes
    if all(recipient.outcome != UNKNOWN for recipient in outcomes):
        return RequestOutcome(intent, outcomes, started)
    text = response.quotation
    rows = [recipient._replace(error=text) if recipient.outcome == UNKNOWN else recipient for recipient in outcomes]
    why = f"the response does not show whether it was accepted{because_of(outcomes)}"
    in_doubt = OutcomeUnknownError(why, word=("accepted", response.missing_words), details=response.details)
    return RequestOutcome(intent, rows, started, in_doubt)
