"""Waiting for delivery states.

The interface does not show which values a state can take. Without ``--until`` a watch ends at the words that the field
uses for states that do not change any more; with it, such a word ends the watch early, as not the one waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgctl import operations as ops
from msgctl.answers import Answer
from msgctl.cli.context import App
from msgctl.errors import ConditionError, ConfigurationError, MsgctlError, StoppedError, UsageError
from msgctl.text import shorten
from msgctl.values import quote

FINAL_STATES = frozenset(
    """
    delivered undelivered undeliverable not-delivered rejected failed error expired cancelled canceled blocked deleted
    read seen answered not-answered no-answer busy completed voicemail
    """.split()
)


class Watch:
    """Looks at messages again and again; ``answers`` and ``failures`` hold what came of it."""

    def __init__(self, run: App, *, until: Sequence[str], interval: float, max_wait: float) -> None:
        self._run = run
        self._until = frozenset(_folded(state) for state in until)
        self._wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
        self._interval = interval
        self._deadline = run.clock() + max_wait
        self._latest: dict[str, Answer] = {}
        self.failures: dict[str, MsgctlError] = {}

    @property
    def answers(self) -> list[Answer]:
        """The last answer for each message, in the order asked."""
        return list(self._latest.values())

    def run(self, ids: Sequence[str]) -> None:
        """Look until each message is done or the time is over."""
        waiting = list(ids)
        while waiting:
            waiting = [each for each in waiting if not self._is_done(each)]
            left = self._deadline - self._run.clock()
            if waiting and left <= 0:
                for each in waiting:
                    self._miss(each, "in time")
                return
            if waiting:
                self._run.sleep(min(self._interval, left))

    def _is_done(self, id: str) -> bool:
        try:
            answer = self._run.perform(ops.MESSAGES_STATE, {"id": id})
        except (ConfigurationError, StoppedError, UsageError):
            raise
        except MsgctlError as error:
            if not error.passing:
                self.failures[id] = error
                return True
            self._run.note(f"{shorten(id, 60)}: {error.message}; looking again")
            return False
        if answer is None:  # a dry run looks once
            return True
        state = str(answer.document.get("state"))
        before = self._latest.get(id)
        self._latest[id] = answer
        if before is None or before.document.get("state") != answer.document.get("state"):
            self._run.note(f"{shorten(id, 60)}: {shorten(state, 60)}")
        return self._is_end(id, state)

    def _is_end(self, id: str, state: str) -> bool:
        folded = _folded(state)
        if folded in self._until:
            return True
        if folded not in FINAL_STATES:
            return False
        if self._until:
            self._miss(id, "any more")
        return True

    def _miss(self, id: str, when: str) -> None:
        answer = self._latest.get(id)
        state = shorten(str(answer.document.get("state")), 60) if answer else "not known"
        self.failures[id] = ConditionError(
            f"message {quote(id)} did not come to {self._wanted} {when}; its state is {state}"
        )


def _folded(state: str) -> str:
    return state.strip().casefold().replace("_", "-").replace(" ", "-")
