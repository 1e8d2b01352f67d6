"""Send one request of a job: an intent goes in, its result comes out."""

from __future__ import annotations

from collections.abc import Sequence

from msgctl import recipients
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, RefusedError, UsageError, unexpected
from msgctl.http.client import Client
from msgctl.http.response import Response
from msgctl.jobs.spec import Entry, Intent, JobSpec, Result
from msgctl.jobs.states import Event

LONGEST_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""

_EVENTS = {
    recipients.ACCEPTED: Event.ACCEPTED,
    recipients.REFUSED: Event.REFUSED,
    recipients.UNKNOWN: Event.LOST,
}


def send(client: Client, spec: JobSpec, intent: Intent) -> Result:
    """Send a request once and return its result; nothing is raised."""
    operation = spec.performs
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        # One attempt: what was not sent gets another turn at the job's pace.
        response = client.send(operation, {**spec.fixed, **intent.parameters, "phone": phones}, timeout=LONGEST_ATTEMPT)
        found = entries(response, intent.phones)
    except MsgctlError as error:
        return _failed(intent, _event(error), error)
    except Exception as error:  # noqa: BLE001 (its recipients must not stay in flight)
        return _failed(intent, Event.LOST, unexpected(error))
    all_accepted = all(entry.event is Event.ACCEPTED for entry in found)
    return Result(intent, found, body=None if all_accepted else response.body.decode("utf-8", "replace"))


def entries(response: Response, phones: Sequence[str]) -> list[Entry]:
    """Return what a response says of each phone."""
    found = recipients.outcomes(response.operation, response.document, phones)
    return [Entry(_EVENTS[each.outcome], each.id, each.status, each.credits) for each in found]


def _failed(intent: Intent, event: Event, error: MsgctlError) -> Result:
    return Result(intent, [Entry(event)] * len(intent.phones), error, getattr(error, "body", None) or None)


def _event(error: MsgctlError) -> Event:
    """Return what an error means for the recipients; whatever is not certain counts as lost."""
    if isinstance(error, (NotReachedError, ConfigurationError)):
        return Event.NOT_SENT
    if isinstance(error, (UsageError, RefusedError)):
        return Event.REFUSED
    return Event.LOST
