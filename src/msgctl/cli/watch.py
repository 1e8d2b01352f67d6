"""Waiting for delivery states.

Without ``--until`` a watch ends at a final state; with it, another final state ends it early, as not the one wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgctl import operations as ops
from msgctl.cli.context import Context
from msgctl.delivery_states import folded, is_final
from msgctl.errors import ConditionError, ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.http.response import Response
from msgctl.text import shorten
from msgctl.values import quote

LAST_LOOK = 1.0
"""Seconds that a look may take when the time of a watch is over."""


class Watch:
    """Looks at messages again and again; ``answers`` and ``failures`` hold what came of it."""

    def __init__(self, context: Context, *, until: Sequence[str], interval: float, max_wait: float) -> None:
        self._context = context
        self._until = frozenset(folded(state) for state in until)
        self._wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
        self._interval = interval
        self._deadline = context.monotonic() + max_wait
        self._latest: dict[str, Response] = {}
        self._lost = False
        self.failures: dict[str, MsgctlError] = {}

    @property
    def answers(self) -> list[Response]:
        """The last answer for each message, in the order asked."""
        return list(self._latest.values())

    def run(self, ids: Sequence[str]) -> None:
        """Look until each message is done or the time is over; when it is, look once more."""
        self._context.enable_gc()
        waiting = list(ids)
        while waiting:
            is_last = self._left() <= 0
            waiting = self._look(waiting, is_last=is_last)
            if is_last:
                break
            if waiting:
                self._context.sleep(max(0.0, min(self._interval, self._left())))
        for each in waiting:
            self._miss(each, "in time")

    def _look(self, ids: Sequence[str], *, is_last: bool) -> list[str]:
        """Look at each message once; those that are not done. A look that is late or lost is the last of its round."""
        waiting: list[str] = []
        for number, each in enumerate(ids):
            if not is_last and self._left() <= 0:
                return [*waiting, *ids[number:]]
            if not self._is_done(each, LAST_LOOK if is_last else self._left()):
                waiting.append(each)
            if is_last and self._lost:
                return [*waiting, *ids[number + 1 :]]
        return waiting

    def _left(self) -> float:
        """Seconds until the watch is over."""
        return self._deadline - self._context.monotonic()

    def _is_done(self, id: str, within: float) -> bool:
        self._lost = False
        try:
            # Not repeated here: looking again is what a watch does anyway.
            answer = self._context.perform(ops.MESSAGES_STATE, {"id": id}, timeout=within)
        except (ConfigurationError, Interrupted, UsageError):
            raise
        except MsgctlError as error:
            if not error.retryable:
                self.failures[id] = error
                return True
            self._lost = True
            self._context.note(f"{shorten(id, 60)}: {error.message}; looking again")
            return False
        before, state = self._state(id), _state_of(answer)
        self._latest[id] = answer
        if before != state:
            self._context.note(f"{shorten(id, 60)}: {shorten(state, 60)}")
        return self._is_end(id, state)

    def _is_end(self, id: str, state: str) -> bool:
        if folded(state) in self._until:
            return True
        if not is_final(state):
            return False
        if self._until:
            self._miss(id, "")
        return True

    def _miss(self, id: str, when: str) -> None:
        state = shorten(self._state(id) or "not known", 60)
        happened = f"did not come to {self._wanted} {when}; its state is {state}" if when else f"ended as {state}"
        wanted = "" if when else f", and not as {self._wanted}"
        self.failures[id] = ConditionError(
            f"message {quote(id)} {happened}{wanted}", "Look again later with: msgctl state get ID"
        )

    def _state(self, id: str) -> str | None:
        """The state seen last, None where none was seen yet."""
        answer = self._latest.get(id)
        return None if answer is None else _state_of(answer)


def _state_of(answer: Response) -> str:
    state = answer.document.get("state")
    return "not given" if state is None else str(state)
