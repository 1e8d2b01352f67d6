"""Delivery states that are final.

The interface does not list the values of a state, so these are the words in common use.
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
    """Return a state in the spelling that is compared: lower case, its words joined by hyphens."""
    return state.strip().casefold().replace("_", "-").replace(" ", "-")


def is_final(state: str) -> bool:
    """Tell whether a state does not change any more."""
    return folded(state) in FINAL_STATES
