"""How a message moves through its delivery states.

Nothing runs in the background: the state follows from the time since the message was sent, when somebody asks. What
happens to a message is known from the end of its number, so that every case can be tried.
"""

from __future__ import annotations

SMS = "sms"
CALL = "call"
CHATAPP = "chatapp"
KINDS = (SMS, CALL, CHATAPP)

SECONDS_PER_STATE = 1.0

_BLOCKED = ("blocked",)
_MESSAGE = {
    "": ("queued", "sent", "delivered"),
    "0001": ("queued", "sent", "undelivered"),
    "0002": ("queued", "rejected"),
    "0003": ("queued",),
}
_CALL = {
    "": ("queued", "ringing", "answered"),
    "0001": ("queued", "ringing", "not-answered"),
    "0002": ("queued", "busy"),
    "0003": ("queued", "ringing"),
}
_VOICEMAIL = ("queued", "ringing", "voicemail")
_JOURNEYS = {SMS: _MESSAGE, CHATAPP: _MESSAGE, CALL: _CALL}
_RECEIVED = {"delivered", "answered", "voicemail"}


def journey(kind: str, phone: str, *, blocked: bool, voicemail: bool) -> tuple[str, ...]:
    """The states that a message goes through, each a second after the one before.

    ``kind`` is one of `KINDS`; ``voicemail`` is whether a call leaves a message where nobody answers.
    """
    if blocked:
        return _BLOCKED
    states = _JOURNEYS[kind].get(phone[-4:], _JOURNEYS[kind][""])
    return _VOICEMAIL if voicemail and states[-1] == "not-answered" else states


def state_after(elapsed: float, states: tuple[str, ...]) -> str:
    """The state after so many seconds; a clock that was set back does not make a message come back."""
    return states[int(min(max(elapsed / SECONDS_PER_STATE, 0), len(states) - 1))]


def is_received(states: tuple[str, ...]) -> bool:
    """Whether the phone gets the message in the end."""
    return states[-1] in _RECEIVED
