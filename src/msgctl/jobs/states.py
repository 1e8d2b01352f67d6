"""The states of a recipient and the transitions between them::

    pending ──intent──> sending ──> accepted
       ^                 │ │ └────> refused ──resend──> pending
       └──not sent───────┘ └──────> unknown ──resend──> again ──intent──> sending again ──> accepted
                                       ^                  │                     │
                                       └──the run ended───┴──any other outcome──┘

A recipient that may already have got a message stays unknown until a later request is accepted. No transition leaves
``accepted``. Nothing is sent to ``invalid``, ``duplicate`` and ``excluded`` rows. If a recipient opts out or has got as
many messages as --at-most allows, ``pending`` becomes ``excluded``, and ``again`` becomes ``unknown``.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of a recipient, as in the report."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    PENDING = "pending"
    INVALID = "invalid"
    DUPLICATE = "duplicate"
    EXCLUDED = "excluded"


class State(StrEnum):
    """The state of a recipient in the ledger."""

    PENDING = "pending"
    SENDING = "sending"
    AGAIN = "again"
    SENDING_AGAIN = "sending again"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    DUPLICATE = "duplicate"
    EXCLUDED = "excluded"


class Event(StrEnum):
    """An event that changes the state of a recipient."""

    INTENT = "its request is about to be sent"
    # These three are the outcomes of `msgctl.recipients`.
    ACCEPTED = "accepted"
    REFUSED = "refused"
    LOST = "unknown"
    NOT_SENT = "its request was not sent"
    RESEND = "the user asked to send it again"
    RUN_ENDED = "the run that should send it again ended"
    LEFT_OUT = "the recipient opted out, or has got enough messages"


TRANSITIONS = {
    (State.PENDING, Event.INTENT): State.SENDING,
    (State.PENDING, Event.LEFT_OUT): State.EXCLUDED,
    (State.SENDING, Event.ACCEPTED): State.ACCEPTED,
    (State.SENDING, Event.REFUSED): State.REFUSED,
    (State.SENDING, Event.LOST): State.UNKNOWN,
    (State.SENDING, Event.NOT_SENT): State.PENDING,
    (State.REFUSED, Event.RESEND): State.PENDING,
    (State.UNKNOWN, Event.RESEND): State.AGAIN,
    (State.AGAIN, Event.INTENT): State.SENDING_AGAIN,
    (State.AGAIN, Event.RUN_ENDED): State.UNKNOWN,
    (State.AGAIN, Event.LEFT_OUT): State.UNKNOWN,
    (State.SENDING_AGAIN, Event.ACCEPTED): State.ACCEPTED,
    (State.SENDING_AGAIN, Event.REFUSED): State.UNKNOWN,
    (State.SENDING_AGAIN, Event.LOST): State.UNKNOWN,
    (State.SENDING_AGAIN, Event.NOT_SENT): State.UNKNOWN,
}
"""All transitions; any other transition is a bug in msgctl."""

LEFT_OUT = (State.INVALID, State.DUPLICATE, State.EXCLUDED)
"""Rows of the file that the job does not send to."""
IN_FLIGHT = (State.SENDING, State.SENDING_AGAIN)


def outcome(state: State, *, running: bool) -> Outcome:
    """Return the outcome for a state; a request in flight is pending only while a process waits for its response."""
    if state is State.SENDING:
        return Outcome.PENDING if running else Outcome.UNKNOWN
    if state in (State.AGAIN, State.SENDING_AGAIN):
        return Outcome.UNKNOWN
    return Outcome(state)
