"""Wait for delivery states.

Without ``--until`` the wait for a message ends at a final state; with it, another final state ends it as a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from msgctl import operations as ops
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.delivery_states import folded, is_final
from msgctl.errors import ConditionError, ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.http.response import Response
from msgctl.text import shorten
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.output.progress import StateProgress

LAST_CHECK = 1.0
"""Seconds that a check may take once the time is over."""


class StateWatcher:
    """Polls the states of messages; collects the latest ``responses`` and the ``failures``."""

    def __init__(self, context: Context, *, until: Sequence[str], interval: float, max_wait: float) -> None:
        self._context = context
        self._until = frozenset(folded(state) for state in until)
        self._wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
        self._interval = interval
        self._deadline = context.monotonic() + max_wait
        self._latest: dict[str, Response] = {}
        self._max_wait = max_wait
        self._display: StateProgress | None = None
        self._lost = False
        self.failures: dict[str, MsgctlError] = {}

    @property
    def responses(self) -> list[Response]:
        """The latest response for each message, in the order asked."""
        return list(self._latest.values())

    def run(self, ids: Sequence[str]) -> None:
        """Poll until each message is done or the time is over; then poll once more."""
        self._context.enable_gc()
        with ExitStack() as stack:
            if self._context.printer.shows_verdicts and not self._context.options.verbose:
                self._display = stack.enter_context(self._progress(ids))
            self._wait(ids)

    def _progress(self, ids: Sequence[str]) -> StateProgress:
        from msgctl.output.progress import StateProgress

        stream, monotonic = self._context.stderr, self._context.monotonic
        color = self._context.has_color(stream)
        return StateProgress(stream, color=color, ids=ids, max_wait=self._max_wait, monotonic=monotonic)

    def _wait(self, ids: Sequence[str]) -> None:
        waiting = list(ids)
        while waiting:
            is_last = self._left() <= 0
            waiting = self._poll(waiting, is_last=is_last)
            if self._display:
                self._display.show({each: _state_of(response) for each, response in self._latest.items()}, len(waiting))
            if is_last:
                break
            if waiting:
                self._context.sleep(max(0.0, min(self._interval, self._left())))
        for each in waiting:
            state = shorten(self._state(each) or "unknown", 60)
            self._fail(each, f"did not reach {self._wanted} in time (now: {state})")

    def _poll(self, ids: Sequence[str], *, is_last: bool) -> list[str]:
        """Check each message once and return those that are not done. Stops when the time is over."""
        waiting: list[str] = []
        for number, each in enumerate(ids):
            if not is_last and self._left() <= 0:
                return [*waiting, *ids[number:]]
            if not self._is_done(each, LAST_CHECK if is_last else self._left()):
                waiting.append(each)
            if is_last and self._lost:
                return [*waiting, *ids[number + 1 :]]
        return waiting

    def _left(self) -> float:
        return self._deadline - self._context.monotonic()

    def _is_done(self, id: str, timeout: float) -> bool:
        self._lost = False
        try:
            response = requests.read(self._context, ops.MESSAGES_STATE, {"id": id}, timeout)
        except (ConfigurationError, Interrupted, UsageError):
            raise
        except MsgctlError as error:
            if not error.retryable:
                self.failures[id] = error
                return True
            self._lost = True
            self._say(f"{shorten(id, 60)}: {error.message}; trying again")
            return False
        before, state = self._state(id), _state_of(response)
        self._latest[id] = response
        if before != state and not self._display:
            self._say(f"{shorten(id, 60)}: {shorten(state, 60)}")
        if folded(state) in self._until:
            return True
        if is_final(state) and self._until:
            self._fail(id, f"ended as {quote(state)}, not {self._wanted}")
        return is_final(state)

    def _say(self, text: str) -> None:
        if self._display:
            self._display.say(text)
        else:
            self._context.note(text)

    def _fail(self, id: str, what: str) -> None:
        hint = f"Check again later: msgctl state get {shorten(id, 60)}"
        self.failures[id] = ConditionError(f"Message {quote(id)} {what}", hint)

    def _state(self, id: str) -> str | None:
        response = self._latest.get(id)
        return None if response is None else _state_of(response)


def _state_of(response: Response) -> str:
    state = response.document.get("state")
    return "missing" if state is None else str(state)
