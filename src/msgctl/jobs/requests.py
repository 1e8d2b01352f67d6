"""Make one request of a job, and return its outcome."""

from __future__ import annotations

import json

from msgctl.errors import (
    ConfigurationError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    TurnedAwayError,
    of_thread,
)
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.http.response import outcomes_after
from msgctl.http.transport import TooLateError
from msgctl.jobs.settings import Settings
from msgctl.operations import Operation
from msgctl.outcomes.outcome import UNKNOWN
from msgctl.store.results import Intent, RequestOutcome
from msgctl.store.store import boot_time

MAX_ATTEMPT = 3600.0
"""Maximum seconds of a request. The client's own limit, --timeout, is never longer."""
NOT_FOR_RECIPIENTS = frozenset({301, 307, 308, 401, 405, 415})
"""Statuses of refusals that are about the account or the address, so they would be the same for any recipients."""


def make(client: Client, operation: Operation, settings: Settings, intent: Intent, started: float) -> RequestOutcome:
    """Make a request once and return its outcome, which includes the error of the request."""
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        values = {**settings.fixed, **json.loads(intent.parameters), "phone": phones}
        # One attempt: a request that was not sent is tried again at the job's rate.
        response = client.send(
            build(operation, values), timeout=MAX_ATTEMPT, may_send=lambda: boot_time() <= intent.expires
        )
    except TooLateError:  # its recipients may have opted out while the connection was opened
        return RequestOutcome(intent, (), started)
    except Exception as raised:  # noqa: BLE001 (its recipients must not stay in flight)
        error = of_thread(raised)
        if isinstance(error, (NotReachedError, TurnedAwayError, ConfigurationError)):
            return RequestOutcome(intent, (), started, error)
        if isinstance(error, RefusedError) and error.http_status in NOT_FOR_RECIPIENTS:
            return RequestOutcome(intent, (), started, error)
        return RequestOutcome(intent, outcomes_after(error, intent.phones), started, error)
    if all(recipient.outcome != UNKNOWN for recipient in response.outcomes):
        return RequestOutcome(intent, response.outcomes, started)
    why = response.doubt("it was accepted")
    in_doubt = OutcomeUnknownError(why, word=("accepted", response.missing_words), details=response.details)
    return RequestOutcome(intent, response.outcomes, started, in_doubt)
