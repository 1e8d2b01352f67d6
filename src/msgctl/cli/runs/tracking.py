"""Track messages until their delivery state is final, for `state watch` and --wait, and poll for `job states`."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from msgctl.cli.shell.context import Context
from msgctl.errors import (
    STORE_ERRORS,
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    UsageError,
)
from msgctl.http.response import Response
from msgctl.jobs.polling import Goal, Poller, Tracked, not_reached
from msgctl.outcomes.delivery import Delivery, classify, reaches
from msgctl.outcomes.outcome import ACCEPTED
from msgctl.output.result import Format, ServiceResult
from msgctl.text import plural, shorten, some_of
from msgctl.values import quote

NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that affect every message."""
INTERVAL = 2.0
"""Seconds between two checks."""


def messages_of(sent: Iterable[tuple[str | None, str | None]]) -> list[Tracked]:
    """Return the messages that have an ID, each with its recipients. ``sent`` are their IDs and phones."""
    phones: dict[str, list[str]] = {}
    for message_id, phone in sent:
        if message_id:
            of_message = phones.setdefault(message_id, [])
            if phone:
                of_message.append(phone)
    return [Tracked(*message) for message in phones.items()]


class Tracker:
    """Polls messages until each is in the state ``until`` (None: in any final state), or until the time is over."""

    def __init__(self, context: Context, messages: Sequence[Tracked], max_wait: float, until: str | None) -> None:
        self.messages = messages
        self.context = context
        self.max_wait = max_wait
        self.goal = goal = Goal(until, context.words)
        deadline = context.monotonic() + max_wait
        self._is_over = False
        self._poller = Poller(lambda: context.client, goal.added, context.monotonic, deadline)

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
        if not self.messages:
            return
        try:
            poll(self.context, self._check, self.max_wait, INTERVAL)
            self._is_over = True
        finally:
            learn(self.context, self.messages)

    def _check(self) -> bool:
        """Check each message that has not reached the goal, and show changes. Return whether any needs more time."""
        waiting = [message for message in self.messages if not self.is_done(message)]
        noted = {message.id: message.error.message for message in waiting if message.error}
        for message in self._poller.run(waiting):
            if isinstance(message.error, NOT_OF_ONE_MESSAGE):
                raise message.error
            for phone, state in message.changes().items():
                show_state(self.context, phone or message.id, state)
            if message.error and message.error.retryable and message.error.message != noted.get(message.id):
                self.context.note(f"{message.label}: {message.error.message}; trying again")
        return not all(map(self.is_done, self.messages))

    def is_done(self, message: Tracked) -> bool:
        """Return whether a message needs no more checks."""
        if message.error:
            return not (message.error.retryable or isinstance(message.error, NOT_OF_ONE_MESSAGE))
        return bool(message.states) and all(map(self.goal.is_over, message.states))

    def failure(self, message: Tracked) -> MsgctlError | None:
        """Return the error of a message that did not reach the goal; None if it did, or if `follow` was interrupted."""
        if not (self._is_over or self.is_done(message)):
            return None
        if message.error and not message.error.retryable:
            return message.error
        name, now = quote(message.id), shorten(message.in_words, 60)
        details = message.response.details if message.response else None
        if self.is_done(message):
            if all(map(self.goal.is_reached, message.states)):
                return None
            ended = f"Message {name} ended as {quote(message.in_words)}, not {self.goal}"
            return not_reached(self.goal, None, ended=ended, is_undelivered=True, details=details)
        late, unread = f"Message {name}", ""
        if message.error:
            last = f" (last: {now})" if now else ""
            late, unread = "", f"The state of message {name} could not be read{last}"
        return not_reached(
            self.goal,
            f"Check again later: msgctl state get {message.label}",
            late=late,
            when=f"in time (now: {now or 'unknown'})",
            unread=unread,
            failure=message.error,
            details=details,
            states=self.open_states(message),
        )

    def open_states(self, message: Tracked) -> list[str]:
        """Return the states that are not final, and that a word of the profile could make final."""
        return [state for state in message.states if state in message.texts and not self.goal.is_over(state)]


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


def learn(context: Context, messages: Iterable[Tracked]) -> None:
    """Store the delivery states. If the store cannot be used, the command continues with a warning."""
    learned = [state for message in messages for state in message.learned(context.words)]
    if not learned:
        return
    if store := context.optional_store:
        from msgctl.store import results

        try:
            results.learn_states(store, context.profile.account, learned)
        except STORE_ERRORS as error:
            context.warn(f"{error.what}. The states are not stored.")


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
        states = zip(self.message.phones or (None,), self.message.states, strict=False)
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
    tracker = Tracker(context, messages_of((outcome.id, outcome.phone) for outcome in accepted), max_wait, until)
    of_id = {message.id: message for message in tracker.messages}
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
            states[recipient.message.id, None] = recipient.message.in_words
        if recipient.message and recipient.state:
            states[recipient.message.id, recipient.phone] = recipient.state
    return states


def _error_of(tracker: Tracker, recipients: Sequence[_Recipient], noun: str) -> ConditionError | None:
    """Return the error about recipients who did not get the message in time; None if all of them did."""
    missing, unread, without_id = [], [], []
    late: list[Tracked] = []
    not_read: list[Tracked] = []
    goal = tracker.goal._replace(until=tracker.goal.until or "delivered")
    for recipient in recipients:
        message, state = recipient.message, recipient.state
        shown = f"{recipient.name} [{shorten(state, 60)}]" if state else recipient.name
        if message is None:
            without_id.append(recipient.name)
        elif state is None or message.error:
            unread.append(shown)
            not_read.append(message)
        elif not goal.is_reached(state):
            missing.append(shown)
            if not goal.is_over(state):
                late.append(message)
    ended = ""
    if missing:
        done = "answered by" if noun == "call" else "delivered to"
        accepted = plural(len(recipients), f"accepted {noun}")
        ended = f"Not {done} {some_of(missing)} ({len(missing)} of {accepted})"
    return not_reached(
        tracker.goal,
        "To check again: msgctl state get --last" if missing or unread else None,
        ended=ended,
        is_undelivered=len(missing) > len(late),
        late=plural(len(late), noun) if late else "",
        when=f"in {tracker.max_wait:g} s",
        unread=f"The state of {some_of(unread)} could not be read" if unread else "",
        without_id=some_of(without_id) if without_id else "",
        failure=next((message.error for message in not_read if message.error), None),
        states=[state for message in (*late, *not_read) for state in tracker.open_states(message)],
    )


def _show_last(context: Context, recipients: Sequence[_Recipient]) -> None:
    from msgctl.output.tables import Column, Viewer, listing

    rows = [{"phone": recipient.name, "state": recipient.state or "unknown"} for recipient in recipients]
    width = context.screen(context.stderr).width or 80
    context.printer.explain(listing([Column("phone"), Column("state")], rows, Viewer(context.now(), width)))
