"""Track messages until their delivery state is final, for `state watch` and --wait, and poll for `job states`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

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
from msgctl.outcomes import delivery
from msgctl.outcomes.delivery import Delivery, classify, is_final, reaches
from msgctl.outcomes.outcome import ACCEPTED
from msgctl.outcomes.words import AddedWords
from msgctl.output.result import Format, ServiceResult
from msgctl.text import plural, shorten, some_of
from msgctl.values import quote

NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that affect every message."""
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
        return build(ops.MESSAGES_STATE, {"id": self.id})

    def states(self, response: Response, added: AddedWords) -> list[str | None]:
        """Return the state of each recipient, or of each message in the response if the recipients are not known."""
        messages = response.document.get("data", ())
        if self.phones:
            return delivery.states(messages, self.phones, added)
        return [delivery.state_of(message, added) for message in messages] or [None]


def targets_of(sent: Iterable[tuple[str | None, str | None]]) -> list[Target]:
    """Return the messages that have an ID, each with its recipients. ``sent`` are their IDs and phones."""
    phones: dict[str, list[str]] = {}
    for message_id, phone in sent:
        if message_id:
            of_message = phones.setdefault(message_id, [])
            if phone:
                of_message.append(phone)
    return [Target(*target) for target in phones.items()]


@dataclass
class Tracked:
    """A message and the results of its checks.

    ``response`` is the latest response about the message, with the ``states`` of its recipients. ``error`` is the error
    of the last check if it failed, and ``failure`` is the error of a message that did not reach the state.
    """

    target: Target
    response: Response | None = None
    states: Sequence[str | None] = ()
    error: MsgctlError | None = None
    failure: MsgctlError | None = None
    _notified: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The ID, shortened for a note."""
        return shorten(self.target.id, 60)

    @property
    def in_words(self) -> str:
        """The states in words; empty before the first response."""
        return ", ".join(dict.fromkeys(state or "missing" for state in self.states))

    def changes(self) -> list[tuple[str, str]]:
        """Return the states that are new since the last call, each after its phone, or else the ID of the message."""
        names: Sequence[str] = self.target.phones
        if not names and self.response:
            messages = self.response.document.get("data", ())
            names = [str(message.get("phone") or self.target.id) for message in messages]
        states = {name: state for name, state in zip(names, self.states, strict=False) if state}
        changed = [(name, state) for name, state in states.items() if self._notified.get(name) != state]
        self._notified |= states
        return changed


class Tracker:
    """Polls messages until each is in the state ``until`` (None: in any final state), or until the time is over."""

    def __init__(self, context: Context, targets: Sequence[Target], max_wait: float, until: str | None = None) -> None:
        self.messages = [Tracked(target) for target in targets]
        self._waiting = self.messages
        self.context = context
        self.max_wait = max_wait
        self.until = until
        self._words = context.words
        self._deadline = context.monotonic() + max_wait

    @property
    def goal(self) -> str:
        """The state to wait for, in words."""
        return self.until or "a final state"

    @property
    def documents(self) -> list[Response]:
        """The latest response about each message, understood or not, which --json prints."""
        latest = []
        for message in self.messages:
            unreadable = message.error.response if message.error else None
            latest.append(unreadable or message.response)
        return [response for response in latest if response]

    def follow(self) -> None:
        """Poll the messages until the end of the wait, and store their states."""
        try:
            poll(self.context, self._check_all, self.max_wait, INTERVAL)
        finally:
            learn(self.context, [(message.target, message.response) for message in self.messages if message.response])
        for message in self._waiting:
            message.failure = self._late(message)

    def _check_all(self) -> bool:
        """Check each message that has not reached the state, and show changes. Return whether any needs more time."""
        waiting = list(self._waiting)
        for message in self._waiting:
            reason = message.error and message.error.message
            if self._check(message):
                waiting.remove(message)
            for name, state in message.changes():
                show_state(self.context, name, state)
            late = self.context.monotonic() - self._deadline
            if message.error and message in waiting:
                if message.error.message != reason:
                    self.context.note(f"{message.label}: {message.error.message}; trying again")
                late += LAST_CHECK  # no more requests to a service that did not respond
            if late >= LAST_CHECK:
                break
        self._waiting = waiting
        return bool(waiting)

    def _check(self, message: Tracked) -> bool:
        """Check a message once. Return whether it needs no more checks."""
        timeout = max(self._deadline - self.context.monotonic(), LAST_CHECK)
        try:
            response = self.context.client.send(message.target.request, timeout=timeout)
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
        return reaches(state, self.until, self._words) if self.until else is_final(state, self._words)

    def _late(self, message: Tracked) -> ConditionError:
        """Return the error for a message that is not in a wanted state at the deadline."""
        name, now = quote(message.target.id), shorten(message.in_words, 60)
        hint = f"Check again later: msgctl state get {message.label}"
        late: list[str] = []
        details = None
        if message.response is not None:
            # A state that another field contradicts is not a text of the service, so it cannot be added.
            of_service = {str(row.get("state")) for row in message.response.document["data"]}
            late = [state for state in message.states if state in of_service and not is_final(state, self._words)]
            details = message.response.details
        what = f"Message {name} did not reach {self.goal} in time (now: {now or 'unknown'})"
        if failed := message.error:
            last = f" (last: {now})" if now else ""
            what = f"The state of message {name} could not be read{last}: {failed.message}"
            details = failed.details
        return ConditionError(what, hint, reason="state_not_reached", word=("delivered", late[:1]), details=details)


def poll(context: Context, check: Callable[[], bool], max_wait: float, interval: float, goal: str = "") -> None:
    """Call ``check`` until it returns False, or until the time is over; call it once more at the deadline.

    A note has the end of the wait and its ``goal``.
    """
    from datetime import timedelta

    deadline = context.monotonic() + max_wait
    now = context.now()
    end = now + timedelta(seconds=max_wait)
    day = "" if end.date() == now.date() else f"{end:%a %d %b} "
    context.note(f"waiting until {day}{end:%H:%M} {goal}".rstrip())
    is_last = False
    while not is_last:
        is_last = context.monotonic() >= deadline
        if not check():
            return
        if not is_last:
            context.sleep(max(0.0, min(interval, deadline - context.monotonic())))


SIGNS = {Delivery.DELIVERED: "✓", Delivery.FAILED: "✗", Delivery.NOT_ANSWERED: "✗", Delivery.ON_ITS_WAY: "○"}


def show_state(context: Context, name: str, state: str) -> None:
    """Print a new delivery state on standard error: ``573001234567  ✓ delivered``."""
    name, word = shorten(name, 60), shorten(state, 60)
    if not context.stderr.isatty():
        context.note(f"{name}  {SIGNS[classify(state, context.words)]} {word}")
    elif context.shows_notes:
        from rich.text import Text

        from msgctl.output.tables import delivery

        context.printer.explain([Text.assemble(name, "  ", delivery(word, context.words))])


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
        state = delivery.state_of(message, added)
        if state is not None and str(message["id"]) != target.id:
            yield str(message["id"]), None, state


# --- the option --wait


class _Recipient(NamedTuple):
    """An accepted recipient, with the ``name`` in errors, and the message if it has an ID."""

    name: str
    phone: str | None
    message: Tracked | None

    @property
    def state(self) -> str | None:
        """The last state, if any is known."""
        if self.message is None:
            return None
        states = zip(self.message.target.phones or (None,), self.message.states, strict=False)
        return dict(states).get(self.phone)


def track_sent(context: Context, result: ServiceResult, max_wait: float, until: str | None) -> ServiceResult:
    """Track the accepted messages of a send until every state is final or wanted, and print its result.

    The result is printed first; only csv, tsv and jsonl are printed at the end, with the last states. Return the latest
    responses (for --json), with an error if a message was not delivered or did not reach ``until``.
    """
    noun = "message"
    if context.operation and context.operation.channel == "call":
        noun = "call"
    accepted = [outcome for outcome in result.outcomes if outcome.outcome == ACCEPTED]
    tracker = Tracker(context, targets_of((outcome.id, outcome.phone) for outcome in accepted), max_wait, until)
    of_id = {message.target.id: message for message in tracker.messages}
    recipients = [
        _Recipient(outcome.phone or f"the {noun}", outcome.phone, of_id.get(outcome.id or "")) for outcome in accepted
    ]
    is_first = context.format in (Format.TABLE, Format.JSON)
    if is_first:
        context.printer.print(result._replace(is_tracked=True))
    try:
        tracker.follow()
    finally:
        if not is_first:
            context.printer.print(result._replace(states=_last_states(recipients)))
    if context.printer.shows_verdicts:
        _show_last(context, recipients)
    failures = [*result.failures]
    if error := _error_of(tracker, recipients, noun):
        error.recipients = result.outcomes
        failures.append(error)
    elif recipients and all(
        recipient.state and reaches(recipient.state, "delivered", context.words) for recipient in recipients
    ):
        done = "answered" if noun == "call" else "delivered"
        if len(recipients) == 1:
            context.note(f"The {noun} was {done}.")
        else:
            context.note(f"All {noun}s were {done}.")
    responses = tracker.documents if context.is_json else []
    return ServiceResult(responses, failures=failures)


def _last_states(recipients: Sequence[_Recipient]) -> dict[tuple[str, str | None], str]:
    """Return the last states by ID and phone; without a phone, the states of all who share the ID."""
    states: dict[tuple[str, str | None], str] = {}
    for recipient in recipients:
        if recipient.message and recipient.message.response:
            states[recipient.message.target.id, None] = recipient.message.in_words
        if recipient.message and recipient.state:
            states[recipient.message.target.id, recipient.phone] = recipient.state
    return states


def _error_of(tracker: Tracker, recipients: Sequence[_Recipient], noun: str) -> ConditionError | None:
    """Return the error about recipients who did not get the message in time; None if all of them did."""
    words = tracker.context.words
    missing, late, unread, without_id, parts = [], [], [], [], []
    for recipient in recipients:
        message, state = recipient.message, recipient.state
        if message is None:
            without_id.append(recipient.name)
        elif state is None or message.error:
            unread.append(recipient)
        elif not reaches(state, tracker.until or "delivered", words):
            missing.append(f"{recipient.name} [{shorten(state, 60)}]")
            if not is_final(state, words):
                late.append(message)
    if missing:
        done = "answered by" if noun == "call" else "delivered to"
        accepted = plural(len(recipients), f"accepted {noun}")
        parts.append(f"Not {done} {some_of(missing)} ({len(missing)} of {accepted})")
    if late:
        parts.append(f"{plural(len(late), noun)} did not reach {tracker.goal} in {tracker.max_wait:g} s")
    not_read = [recipient.message for recipient in unread if recipient.message]
    errors = [message.error for message in not_read if message.error]
    if unread:
        reason = f": {errors[0].message}" if errors else ""
        names = []
        for recipient in unread:
            last = f" [{shorten(recipient.state, 60)}]" if recipient.state else ""
            names.append(recipient.name + last)
        parts.append(f"The state of {some_of(names)} could not be read{reason}")
    if without_id:
        parts.append(f"The state of {some_of(without_id)} cannot be checked: the service returned no ID")
    if not parts:
        return None
    hint = "To check again: msgctl state get --last" if missing or unread else None
    reason = "not_delivered" if len(missing) > len(late) else "state_not_reached"
    failures = [message.failure for message in (*late, *not_read) if message.failure]
    word = next((failure.word for failure in failures if failure.word and failure.word[1]), None)
    details = errors[0].details if errors else None
    return ConditionError("; ".join(parts), hint, reason=reason, word=word, details=details)


def _show_last(context: Context, recipients: Sequence[_Recipient]) -> None:
    from msgctl.output.tables import Column, Viewer, listing

    rows = [{"phone": recipient.name, "state": recipient.state or "unknown"} for recipient in recipients]
    width = context.screen(context.stderr).width or 80
    context.printer.explain(listing([Column("phone"), Column("state")], rows, Viewer(context.now(), width)))
