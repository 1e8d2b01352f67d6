"""Track messages until their delivery state is final."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from msgctl import operations as ops
from msgctl.cli.context import Context
from msgctl.errors import (
    STORE_ERRORS,
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    UsageError,
)
from msgctl.http.request import Request, build
from msgctl.http.response import Response, listed
from msgctl.outcomes import judge
from msgctl.outcomes.judge import ACCEPTED, RecipientOutcome, is_delivered, is_final, reaches
from msgctl.output.result import Format, ServiceResult
from msgctl.text import plural, shorten, some_of
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

    def states(self, response: Response) -> list[str | None]:
        """Return the state of each recipient, or of each message in the response if the recipients are not known."""
        messages = response.document.get("data", ())
        if self.phones:
            return judge.states(messages, self.phones)
        return [None if message.get("state") is None else str(message["state"]) for message in messages] or [None]


class Tracker:
    """Polls messages until each is in the state ``until`` (None: in any final state), or until the time is over.

    ``latest`` contains the latest response about each message, ``states`` its states, and ``failures`` the error of a
    message that did not reach the state, all by message id. ``errors`` are the errors of messages whose last check
    failed.
    """

    def __init__(self, context: Context, targets: Sequence[Target], max_wait: float, until: str | None = None) -> None:
        self.latest: dict[str, Response] = {}
        self.states: dict[str, list[str | None]] = {}
        self.failures: dict[str, MsgctlError] = {}
        self.errors: dict[str, MsgctlError] = {}
        self._context = context
        self._targets = targets
        self._max_wait = max_wait
        self._until = until
        self._deadline = context.monotonic() + max_wait
        self._display: StateProgress | None = None
        self._shown_errors: dict[str, str] = {}

    @property
    def goal(self) -> str:
        """The state to wait for, in words."""
        return self._until or "a final state"

    @property
    def first_failure(self) -> str:
        """A sentence about the first error other than a missed deadline, if there is one."""
        for error in (*self.errors.values(), *self.failures.values()):
            if error.reason != NOT_REACHED:
                return f"The first failure: {error.message}. "
        return ""

    def is_late(self, message: str) -> bool:
        """Return whether a message did not reach the state before the deadline."""
        return message in self.failures and self.failures[message].reason == NOT_REACHED

    def follow(self) -> None:
        """Poll the messages. Poll once more at the deadline."""
        context, waiting, is_last = self._context, list(self._targets), False
        with ExitStack() as stack:
            stack.callback(lambda: learn(context, self._targets, self.latest))
            if is_displayed(context):
                self._display = stack.enter_context(self._new_display())
            while waiting and not is_last:
                is_last = context.monotonic() >= self._deadline
                waiting = self._check_all(waiting)
                if self._display:
                    words = {message: _in_words(states) for message, states in self.states.items()}
                    self._display.show(words, len(waiting))
                if waiting and not is_last:
                    context.sleep(max(0.0, min(INTERVAL, self._deadline - context.monotonic())))
        for target in waiting:
            self.failures[target.id] = self._late(target.id)

    def _new_display(self) -> "StateProgress":
        from msgctl.output.progress import StateProgress

        return StateProgress(
            self._context.stderr,
            color=self._context.screen(self._context.stderr).color,
            ids=[target.id for target in self._targets],
            max_wait=self._max_wait,
            monotonic=self._context.monotonic,
        )

    def _check_all(self, targets: Sequence[Target]) -> list[Target]:
        """Check each message once, and return the messages that need another check."""
        waiting = list(targets)
        for target in targets:
            before = self.states.get(target.id)
            if self._check(target):
                waiting.remove(target)
            elif error := self.errors.get(target.id):
                self._show_error(target.id, error)
                if self._context.monotonic() >= self._deadline:
                    break  # the service did not respond before the deadline
            states = self.states.get(target.id)
            if states and states != before and not self._display:
                self._context.note(f"{shorten(target.id, 60)}: {shorten(_in_words(states), 60)}")
        return waiting

    def _check(self, target: Target) -> bool:
        """Check a message once. Return whether it needs no more checks."""
        context = self._context
        try:
            timeout = max(self._deadline - context.monotonic(), LAST_CHECK)
            response = context.client.send(target.request, timeout=timeout)
        except NOT_OF_ONE_MESSAGE:
            raise
        except MsgctlError as error:
            self.errors[target.id] = error
            if not error.retryable:
                self.failures[target.id] = error
            return not error.retryable
        self.errors.pop(target.id, None)
        states = target.states(response)
        self.states[target.id], self.latest[target.id] = states, response
        if all(self._is_wanted(state) for state in states):
            return True
        if not all(state and (is_final(state) or self._is_wanted(state)) for state in states):
            return False
        what = f"Message {quote(target.id)} ended as {quote(_in_words(states))}, not {self.goal}"
        self.failures[target.id] = ConditionError(what, reason="not_delivered", details=response.details)
        return True

    def _is_wanted(self, state: str | None) -> bool:
        if state is None:
            return False
        return reaches(state, self._until) if self._until else is_final(state)

    def _show_error(self, id: str, error: MsgctlError) -> None:
        """Print the error of a check, unless the last one printed for the message was the same."""
        if self._shown_errors.get(id) == error.message:
            return
        self._shown_errors[id] = error.message
        show = self._display.say if self._display else self._context.note
        show(f"{shorten(id, 60)}: {error.message}; trying again")

    def _late(self, id: str) -> ConditionError:
        """Return the error for a message that is not in a wanted state at the deadline."""
        hint = f"Check again later: {self._context.printer.program} state get {shorten(id, 60)}"
        states = self.states.get(id, ())
        if error := self.errors.get(id):
            last = f" (last: {shorten(_in_words(states), 60)})" if states else ""
            what = f"The state of message {quote(id)} could not be read{last}: {error.message}"
            return ConditionError(what, hint, reason=NOT_REACHED, details=error.details)
        now = _in_words(states) or "unknown"
        what = f"Message {quote(id)} did not reach {self.goal} in time (now: {shorten(now, 60)})"
        state = next((state for state in states if state and not is_final(state)), None)
        return ConditionError(
            what,
            hint,
            reason=NOT_REACHED,
            word=("delivered", state) if state else None,
            details=self.latest[id].details if id in self.latest else None,
        )


class _Sent(NamedTuple):
    """An accepted message, named after its recipient, with its last state."""

    name: str
    id: str | None
    state: str | None


def track_sent(
    context: Context, outcomes: Sequence[RecipientOutcome], max_wait: float, until: str | None
) -> ServiceResult:
    """Track the accepted messages of a send until every state is final or wanted.

    Return the latest responses (for --json), with an error if a message was not delivered or did not reach ``until``.
    """
    accepted = [outcome for outcome in outcomes if outcome.outcome == ACCEPTED]
    targets = _targets(accepted)
    tracker = Tracker(context, targets, max_wait, until)
    tracker.follow()
    noun = "call" if context.operation is ops.SEND_CALL else "message"
    states: dict[tuple[str | None, str | None], str | None] = {}
    for target in targets:
        for phone, state in zip(target.phones or (None,), tracker.states.get(target.id, ()), strict=False):
            states[target.id, phone] = state
    messages = []
    for outcome in accepted:
        state = states.get((outcome.id, outcome.phone))
        messages.append(_Sent(outcome.phone or f"the {noun}", outcome.id, state))
    if is_displayed(context):
        _show(context, messages)
    error = _undelivered(context, tracker, messages, noun, max_wait, until)
    if error:
        error.recipients = listed(outcomes)
    if error is None and messages and all(message.state and is_delivered(message.state) for message in messages):
        done = "answered" if noun == "call" else "delivered"
        context.note(f"The {noun} was {done}." if len(messages) == 1 else f"All {noun}s were {done}.")
    responses = []
    if context.options.format is Format.JSON:
        responses = [tracker.latest[target.id] for target in targets if target.id in tracker.latest]
    return ServiceResult(responses, failures=[error] if error else [])


def _undelivered(
    context: Context, tracker: Tracker, messages: Sequence[_Sent], noun: str, max_wait: float, until: str | None
) -> ConditionError | None:
    """Return the error for messages that are not delivered; None if all are."""
    without_id = [message.name for message in messages if not message.id]
    unread, missing, late = list[str](), list[str](), list[str]()
    is_only_late = not without_id
    for message in messages:
        if not message.id:
            continue
        if message.state is None or message.id in tracker.errors:
            unread.append(message.name)
            is_only_late &= tracker.is_late(message.id)
        elif not reaches(message.state, until or "delivered"):
            missing.append(f"{message.name} [{shorten(message.state, 60)}]")
            if tracker.is_late(message.id) and not is_final(message.state):
                late.append(message.state)
            else:
                is_only_late = False
    parts = []
    if missing:
        done = "answered by" if noun == "call" else "delivered to"
        accepted = plural(len(messages), f"accepted {noun}")
        parts.append(f"Not {done} {some_of(missing)} ({len(missing)} of {accepted})")
    if late:
        parts.append(f"{plural(len(late), noun)} did not reach {tracker.goal} in {max_wait:g} s")
    if unread:
        statuses = sorted({str(error.http_status) for error in tracker.errors.values() if error.http_status})
        status = f" ({', '.join(statuses)})" if statuses else ""
        parts.append(f"The state of {some_of(unread)} could not be read{status}")
    if without_id:
        parts.append(f"The state of {some_of(without_id)} cannot be checked: the service returned no ID")
    if not parts:
        return None
    hint = None
    if missing or unread:
        hint = f"{tracker.first_failure}To check again: {context.printer.program} state get --last"
    reason = NOT_REACHED if is_only_late else "not_delivered"
    return ConditionError("; ".join(parts), hint, reason=reason, word=("delivered", late[0]) if late else None)


def _targets(accepted: Sequence[RecipientOutcome]) -> list[Target]:
    """Return the messages with an ID, each with its recipients."""
    phones: dict[str, list[str]] = {}
    for outcome in accepted:
        if outcome.id:
            phones.setdefault(outcome.id, []).extend([outcome.phone] if outcome.phone else [])
    return [Target(*target) for target in phones.items()]


def is_displayed(context: Context) -> bool:
    """Return whether a person sees the states change on the terminal."""
    return context.printer.shows_verdicts and not context.options.verbose


def _show(context: Context, messages: Sequence[_Sent]) -> None:
    """Print the last state of each message, in place of the display that is gone."""
    from msgctl.output.tables import Column, listing

    rows = [{"phone": message.name, "state": message.state or "unknown"} for message in messages]
    width = context.screen(context.stderr).width or 80
    context.printer.explain(listing([Column("phone"), Column("state")], rows, context.clock(), width))


def _in_words(states: Sequence[str | None]) -> str:
    return ", ".join(dict.fromkeys(state or "missing" for state in states))


def learn(context: Context, targets: Sequence[Target], responses: dict[str, Response]) -> None:
    """Store the delivery states. If the store cannot be used, the command continues with a warning."""
    learned: list[tuple[str, str | None, str]] = []
    for target in targets:
        if target.id in responses:
            learned += _learned(target, responses[target.id])
    if not learned:
        return
    if store := context.optional_store:
        from msgctl.store import results

        try:
            results.learn_states(store, context.profile.account, learned)
        except STORE_ERRORS as error:
            context.warn(f"{error.what}. The states are not stored.")


def _learned(target: Target, response: Response) -> Iterator[tuple[str, str | None, str]]:
    """Yield the message id, the phone (None: all that share the id) and the state of each message in a response."""
    states = target.states(response)
    known = {state for state in states if state}
    for phone, state in zip(target.phones, states, strict=False):
        if state:
            yield target.id, phone, state
    if not target.phones and len(known) == 1:
        yield target.id, None, known.pop()
    for message in response.document.get("data", ()):
        if message.get("state") is not None and str(message["id"]) != target.id:
            yield str(message["id"]), None, str(message["state"])


def named(id: str, error: MsgctlError) -> MsgctlError:
    """Return an error that mentions its message."""
    return error if isinstance(error, ConditionError) else error.within(f"Message {quote(id)}")
