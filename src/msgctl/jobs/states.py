"""The states that a recipient of a job can be in, and what leads from one to the next.

A recipient that can be sent to has no request at first, and is then in the state of its request::

    (no request) ──intent──> under way ──answered with 200────────────────────────> accepted
                               │ │ │
                               │ │ └──certainly not carried out──> refused ──┐
                               │ └──never left──────────────────> waiting <──┘ asked to send it again
                               │                                    │
                               │                                    └──intent──> under way
                               └──no usable answer, or the process ended──> unknown

    unknown ──asked to send it again──> again ──intent──> under way again ──answered with 200──> accepted
       ^ ^                                │                     │
       │ └──the run that was asked ended──┘                     │
       └──whatever else becomes of it: the first try is as doubtful as before

A row that cannot be sent to is ``invalid``, one whose phone stood there before ``duplicate``; both stay so.
"""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """What became of a recipient, in the words of the report."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    PENDING = "pending"
    INVALID = "invalid"
    DUPLICATE = "duplicate"


class State(StrEnum):
    """Where a request of a job stands; all its recipients stand there with it."""

    WAITING = "waiting"
    UNDER_WAY = "under way"
    AGAIN = "again"
    UNDER_WAY_AGAIN = "under way again"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class Event(StrEnum):
    """What happens to a request."""

    INTENT = "its intent is on the disk"
    ANSWERED = "the service accepted it"
    REFUSAL = "it was certainly not carried out"
    LOSS = "no usable answer came, or the process ended before one"
    NEVER_LEFT = "it did not leave this machine"
    RESENDING = "the user asked to send it again"
    CALLED_OFF = "the run in which it was to be sent again is over"


TRANSITIONS = {
    (None, Event.INTENT): State.UNDER_WAY,
    (State.WAITING, Event.INTENT): State.UNDER_WAY,
    (State.UNDER_WAY, Event.ANSWERED): State.ACCEPTED,
    (State.UNDER_WAY, Event.REFUSAL): State.REFUSED,
    (State.UNDER_WAY, Event.LOSS): State.UNKNOWN,
    (State.UNDER_WAY, Event.NEVER_LEFT): State.WAITING,
    (State.UNKNOWN, Event.RESENDING): State.AGAIN,
    (State.AGAIN, Event.CALLED_OFF): State.UNKNOWN,
    (State.AGAIN, Event.INTENT): State.UNDER_WAY_AGAIN,
    (State.UNDER_WAY_AGAIN, Event.ANSWERED): State.ACCEPTED,
    (State.UNDER_WAY_AGAIN, Event.REFUSAL): State.UNKNOWN,
    (State.UNDER_WAY_AGAIN, Event.LOSS): State.UNKNOWN,
    (State.UNDER_WAY_AGAIN, Event.NEVER_LEFT): State.UNKNOWN,
    (State.REFUSED, Event.RESENDING): State.WAITING,
}
"""Every step there is. Nothing leads from accepted to anywhere: whoever got a message gets no second one. And nothing
but an acceptance leads out of doubt: whoever may have got one is unknown until then."""

OUTCOMES = {
    State.WAITING: Outcome.PENDING,
    State.UNDER_WAY: Outcome.UNKNOWN,  # of a process that is gone; while one is at work, it is still open
    State.AGAIN: Outcome.UNKNOWN,
    State.UNDER_WAY_AGAIN: Outcome.UNKNOWN,
    State.ACCEPTED: Outcome.ACCEPTED,
    State.REFUSED: Outcome.REFUSED,
    State.UNKNOWN: Outcome.UNKNOWN,
}


class ImpossibleStepError(RuntimeError):
    """A mistake of ours, and none of whoever wrote the file: a step that there is not."""


def step(state: State | None, event: Event) -> State:
    """The state after an event. Raises ImpossibleStepError."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ImpossibleStepError(f"{event} of what is {state or 'not there yet'}") from None
