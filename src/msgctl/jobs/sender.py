"""Send one request of a job: an intent goes in, its result comes out."""

from __future__ import annotations

from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, RefusedError, UsageError, unexpected
from msgctl.http.client import Client
from msgctl.jobs.spec import Intent, JobSpec, RequestResult
from msgctl.recipients import REFUSED, UNKNOWN, RecipientOutcome, exit_code, outcomes

LONGEST_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""


def send(client: Client, spec: JobSpec, intent: Intent) -> RequestResult:
    """Send a request once and return its result; nothing is raised."""
    operation = spec.performs
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        # One attempt: a request that was not sent is tried again at the job's rate.
        response = client.send(operation, {**spec.fixed, **intent.parameters, "phone": phones}, timeout=LONGEST_ATTEMPT)
        found = outcomes(response.operation, response.document, intent.phones)
    except MsgctlError as error:
        return _failed(intent, error)
    except Exception as error:  # noqa: BLE001 (its recipients must not stay in flight)
        return _failed(intent, unexpected(error))
    is_in_doubt = exit_code(found) != 0
    return RequestResult(intent, found, body=response.body.decode("utf-8", "replace") if is_in_doubt else None)


def _failed(intent: Intent, error: MsgctlError) -> RequestResult:
    """Return the result of a request that failed; whatever is not certain is unknown."""
    outcome = REFUSED if isinstance(error, (UsageError, RefusedError)) else UNKNOWN
    found = [RecipientOutcome(phone, outcome) for phone in intent.phones]
    was_sent = not isinstance(error, (NotReachedError, ConfigurationError))
    return RequestResult(intent, found, error, getattr(error, "body", None) or None, was_sent)
