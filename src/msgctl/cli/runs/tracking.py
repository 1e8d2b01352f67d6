"""Track messages until their delivery state is final."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from msgctl import operations as ops
from msgctl.cli.shell.context import Context
from msgctl.errors import (
    STORE_ERRORS,
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    UsageError,
)
from msgctl.http.request import Request, build
from msgctl.http.response import Response
from msgctl.outcomes import judge
from msgctl.outcomes.judge import is_final, reaches
from msgctl.outcomes.words import AddedWords
from msgctl.text import shorten
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.output.progress import StateProgress

NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that affect every message."""
NOT_REACHED = "state_not_reached"
"""The reason of an error about a message that is not in a wanted state at the deadline."""
INTERVAL = 2.0
"""Seconds between two checks."""
LAST_CHECK = 1.0
"""Seconds that the last check may take after the deadline."""


class Target(NamedTuple):
    """A message id and the recipients who share it, if they are known."""

    id: str
    phones: Sequence[str] = ()

    @property
    def request(self) -> Request:
        """The request for the state."""
        return build(ops.MESSAGES_STATE, {"id": self.id})

    def states(self, response: Response, added: AddedWords) -> list[str | None]:
        """Return the state of each recipient, or of each message in the response if the recipients are not known."""
        messages = response.document.get("data", ())
        if self.phones:
            return judge.states(messages, self.phones, added)
        return [judge.state_of(message, added) for message in messages] or [None]


@dataclass
class Tracked:
    """A message and what its checks have found.

    ``response`` is the latest one about the message, with the ``states`` of its recipients. ``error`` is the error of
    the last check if it failed, and ``failure`` is the error of a message that did not reach the state.
    """

    target: Target
    response: Response | None = None
    states: Sequence[str | None] = ()
    error: MsgctlError | None = None
    failure: MsgctlError | None = None

    @property
    def label(self) -> str:
        """The ID, shortened for a note."""
        return shorten(self.target.id, 60)

    @property
    def in_words(self) -> str:
        """The states in words; empty before the first response."""
        return ", ".join(dict.fromkeys(state or "missing" for state in self.states))

    @property
    def word(self) -> tuple[str, Sequence[str]] | None:
        """The kind and the texts that a profile could add, if the message did not reach the state."""
        return self.failure.word if self.failure else None

    @property
    def is_late(self) -> bool:
        """Whether the message did not reach the state before the deadline."""
        return self.failure is not None and self.failure.reason == NOT_REACHED


class Tracker:
    """Polls messages until each is in the state ``until`` (None: in any final state), or until the time is over."""

    def __init__(self, context: Context, targets: Sequence[Target], max_wait: float, until: str | None = None) -> None:
        self.messages = [Tracked(target) for target in targets]
        self._context = context
        self._max_wait = max_wait
        self._until = until
        self._words = context.words
        self._deadline = context.monotonic() + max_wait
        self._display: StateProgress | None = None

    @property
    def goal(self) -> str:
        """The state to wait for, in words."""
        return self._until or "a final state"

    @property
    def responses(self) -> list[Response]:
        """The latest response about each message."""
        return [message.response for message in self.messages if message.response]

    def follow(self) -> None:
        """Poll the messages. Poll once more at the deadline."""
        context, waiting, is_last = self._context, self.messages, False
        with ExitStack() as stack:
            stack.callback(self._learn)
            if is_displayed(context):
                self._display = stack.enter_context(self._new_display())
            while waiting and not is_last:
                is_last = context.monotonic() >= self._deadline
                waiting = self._check_all(waiting)
                if self._display:
                    words = {message.target.id: message.in_words for message in self.messages}
                    self._display.show(words, len(waiting))
                if waiting and not is_last:
                    context.sleep(max(0.0, min(INTERVAL, self._deadline - context.monotonic())))
        for message in waiting:
            message.failure = self._late(message)

    def _learn(self) -> None:
        learn(self._context, [(message.target, message.response) for message in self.messages if message.response])

    def _new_display(self) -> "StateProgress":
        from msgctl.output.progress import StateProgress

        return StateProgress(
            self._context.stderr,
            color=self._context.screen(self._context.stderr).color,
            ids=[message.target.id for message in self.messages],
            max_wait=self._max_wait,
            words=self._words,
            monotonic=self._context.monotonic,
        )

    def _check_all(self, messages: Sequence[Tracked]) -> list[Tracked]:
        """Check each message once, show what has changed, and return the messages that need another check."""
        waiting = list(messages)
        for message in messages:
            words = message.in_words
            reason = message.error and message.error.message
            if self._check(message):
                waiting.remove(message)
            elif message.error:
                if message.error.message != reason:
                    self._say(f"{message.label}: {message.error.message}; trying again")
                if self._context.monotonic() >= self._deadline:
                    break  # the service did not respond before the deadline
            if message.in_words != words and not self._display:
                self._say(f"{message.label}: {shorten(message.in_words, 60)}")
        return waiting

    def _say(self, note: str) -> None:
        if self._display:
            self._display.say(note)
        else:
            self._context.note(note)

    def _check(self, message: Tracked) -> bool:
        """Check a message once. Return whether it needs no more checks."""
        timeout = max(self._deadline - self._context.monotonic(), LAST_CHECK)
        try:
            response = self._context.client.send(message.target.request, timeout=timeout)
        except NOT_OF_ONE_MESSAGE:
            raise
        except MsgctlError as error:
            message.error = error
            if not error.retryable:
                message.failure = error
            return not error.retryable
        message.error = None
        message.response, message.states = response, message.target.states(response, self._words)
        is_wanted = [self._is_wanted(state) for state in message.states]
        if all(is_wanted):
            return True
        for state, wanted in zip(message.states, is_wanted, strict=True):
            if not wanted and not (state and is_final(state, self._words)):
                return False
        what = f"Message {quote(message.target.id)} ended as {quote(message.in_words)}, not {self.goal}"
        message.failure = ConditionError(what, reason="not_delivered", details=response.details)
        return True

    def _is_wanted(self, state: str | None) -> bool:
        if state is None:
            return False
        return reaches(state, self._until, self._words) if self._until else is_final(state, self._words)

    def _late(self, message: Tracked) -> ConditionError:
        """Return the error for a message that is not in a wanted state at the deadline."""
        name, now = quote(message.target.id), shorten(message.in_words, 60)
        hint = f"Check again later: msgctl state get {message.label}"
        if error := message.error:
            last = f" (last: {now})" if now else ""
            what = f"The state of message {name} could not be read{last}: {error.message}"
            return ConditionError(what, hint, reason=NOT_REACHED, details=error.details)
        what = f"Message {name} did not reach {self.goal} in time (now: {now or 'unknown'})"
        # A state that another field contradicts is not a text of the service, so it cannot be added.
        of_service = {str(row.get("state")) for row in message.response.document["data"]} if message.response else set()
        late = [state for state in message.states if state in of_service and not is_final(state, self._words)]
        return ConditionError(
            what,
            hint,
            reason=NOT_REACHED,
            word=("delivered", late[:1]),
            details=message.response.details if message.response else None,
        )


def is_displayed(context: Context) -> bool:
    """Return whether a person sees the states change on the terminal."""
    return context.printer.shows_verdicts and not context.options.verbose


def learn(context: Context, responses: Iterable[tuple[Target, Response]]) -> None:
    """Store the delivery states. If the store cannot be used, the command continues with a warning."""
    learned: list[tuple[str, str | None, str]] = []
    for target, response in responses:
        learned += _learned(target, response, context.words)
    if not learned:
        return
    if store := context.optional_store:
        from msgctl.store import results

        try:
            results.learn_states(store, context.profile.account, learned)
        except STORE_ERRORS as error:
            context.warn(f"{error.what}. The states are not stored.")


def _learned(target: Target, response: Response, added: AddedWords) -> Iterator[tuple[str, str | None, str]]:
    """Yield the message id, the phone (None: all that share the id) and the state of each message in a response."""
    states = target.states(response, added)
    known = {state for state in states if state}
    for phone, state in zip(target.phones, states, strict=False):
        if state:
            yield target.id, phone, state
    if not target.phones and len(known) == 1:
        yield target.id, None, known.pop()
    for message in response.document.get("data", ()):
        state = judge.state_of(message, added)
        if state is not None and str(message["id"]) != target.id:
            yield str(message["id"]), None, state


def named(id: str, error: MsgctlError) -> MsgctlError:
    """Return an error that mentions its message."""
    return error if isinstance(error, ConditionError) else error.within(f"Message {quote(id)}")
