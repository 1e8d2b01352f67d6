"""The words that delivery states are told in.

The interface does not show which values a state can take, so these are the words that the field uses.
"""

from __future__ import annotations

FINAL_STATES = frozenset(
    """
    delivered undelivered undeliverable not-delivered rejected failed error expired cancelled canceled blocked deleted
    read seen answered not-answered no-answer busy completed voicemail
    """.split()
)
"""States that do not change any more."""


def folded(state: str) -> str:
    """A state as it is compared with others: spelled alike, however the words are joined."""
    return state.strip().casefold().replace("_", "-").replace(" ", "-")


def is_final(state: str) -> bool:
    """Whether a state does not change any more."""
    return folded(state) in FINAL_STATES
