"""Track messages until their delivery state is final, for `state watch` and --wait, and store the states."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

from msgctl.cli.runs.polling import LAST_CHECK, Goal, Tracked, poll
from msgctl.cli.shell.context import Context
from msgctl.errors import (
    STORE_ERRORS,
    ConditionError,
    ConfigurationError,
    Hint,
    Interrupted,
    MsgctlError,
    UsageError,
)
from msgctl.http.response import Response
from msgctl.outcomes.delivery import reaches
from msgctl.outcomes.outcome import ACCEPTED
from msgctl.output.result import Format, ServiceResult
from msgctl.text import plural, shorten, some_of
from msgctl.values import quote

NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that affect every message."""
INTERVAL = 2.0
"""Seconds between two checks."""


def messages_of(sent: Iterable[tuple[str | None, str | None]]) -> list[Tracked]:
    """Return the messages that have an ID, each with its recipients. ``sent`` contains their IDs and phones."""
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
        self.max_wait = max_wait
        self.goal = Goal(until, context.words)
        self._context = context

    def follow(self) -> None:
        """Poll the messages until the end of the wait, and store their states."""
        if not self.messages:
            return
        self._context.client  # noqa: B018 (before the note of `poll`, because it fails without a credential)
        end = self._context.monotonic() + self.max_wait + LAST_CHECK
        try:
            poll(self._context, partial(self._check, end), self.max_wait, INTERVAL)
        finally:
            store_states(self._context, self.messages)

    def _check(self, end: float) -> bool:
        """Check each message that has not reached the goal, and show changes. Return whether any needs more time."""
        for message in self.messages:
            timeout = end - self._context.monotonic()
            if timeout <= 0:
                break
            if self.is_done(message):
                continue
            earlier = message.error
            message.check(self._context.client, timeout, self.goal.added)
            if isinstance(message.error, NOT_OF_ONE_MESSAGE):
                raise message.error
            if self._context.shows_notes and (changes := message.changes()):
                self._context.printer.print_states((phone or message.id, state) for phone, state in changes.items())
            error = message.error
            if error and error.retryable and not (earlier and earlier.message == error.message):
                self._context.note(f"{message.label}: {error.message}; trying again")
        return not all(map(self.is_done, self.messages))

    def is_done(self, message: Tracked) -> bool:
        """Return whether a message needs no more checks."""
        if message.error:
            return not (message.error.retryable or isinstance(message.error, NOT_OF_ONE_MESSAGE))
        return bool(message.states) and all(self.goal.is_over(state) for _, state in message.states)

    def documents(self) -> list[Response]:
        """Return the latest response about each message, understood or not, which --json prints."""
        latest = []
        for message in self.messages:
            unreadable = message.error.response if message.error else None
            latest.append(unreadable or message.response)
        return [response for response in latest if response]

    def failure(self, message: Tracked) -> MsgctlError | None:
        """Return the error of a message that did not reach the goal; None if it did."""
        error, name, reason, hint = message.error, quote(message.id), "state_not_reached", None
        if error and not error.retryable:
            return error
        now = shorten(message.in_words, 60)
        details = message.response.details if message.response else None
        if self.is_done(message):
            if all(self.goal.is_reached(state) for _, state in message.states):
                return None
            what, reason = f"Message {name} ended as {quote(message.in_words)}, not {self.goal}", "not_delivered"
        else:
            hint = Hint("Check again later: ", f"state get {message.label}")
            what = f"Message {name} did not reach {self.goal} in time (now: {now or 'unknown'})"
            if error:
                last = f" (last: {now})" if now else ""
                what, details = f"The state of message {name} could not be read{last}: {error.message}", error.details
        missing_words = ("delivered", self.open_states(message)[:1])
        return ConditionError(what, hint, reason=reason, missing_words=missing_words, details=details)

    def open_states(self, message: Tracked) -> list[str]:
        """Return the states that are not final, and that a word of the profile could make final."""
        return [state for _, state in message.states if state in message.texts and not self.goal.is_over(state)]


def store_states(context: Context, messages: Iterable[Tracked]) -> None:
    """Store the delivery states. If the store cannot be used, the command continues with a warning."""
    received = [message for message in messages if message.response and message.response.document.get("data")]
    if not received:
        return
    if store := context.optional_store:
        from msgctl.store import results

        account = context.profile.account
        phones_of = partial(results.phones_of, store, account)
        try:
            states = [state for message in received for state in message.received(context.words, phones_of)]
            results.store_states(store, account, states)
        except STORE_ERRORS as error:
            context.warn(f"{error.what}. The states are not stored.")


# --- the option --wait


class _Recipient(NamedTuple):
    """An accepted recipient, and the message if it has an ID."""

    phone: str
    message: Tracked | None

    @property
    def state(self) -> str | None:
        """The last state, if any is known."""
        return dict(self.message.states).get(self.phone) if self.message else None

    @property
    def in_words(self) -> str:
        """The phone with its last state: ``573001234567 [rejected]``."""
        return f"{self.phone} [{shorten(self.state, 60)}]" if self.state else self.phone

    @property
    def is_unread(self) -> bool:
        """Whether the last check could not read the state, although the message has an ID."""
        return self.message is not None and (self.state is None or self.message.error is not None)


def track_sent(context: Context, result: ServiceResult, max_wait: float, until: str | None) -> ServiceResult:
    """Track the accepted messages of a send until every state is final or wanted, and print its result.

    The result is printed first, except as csv, tsv or jsonl, which is printed at the end with the last states. Return
    the latest responses (for --json), with an error if a message was not delivered or did not reach ``until``.
    """
    accepted = [outcome for outcome in result.outcomes if outcome.outcome == ACCEPTED]
    tracker = Tracker(context, messages_of((outcome.id, outcome.phone) for outcome in accepted), max_wait, until)
    messages = {message.id: message for message in tracker.messages}
    recipients = [_Recipient(outcome.phone or "", messages.get(outcome.id or "")) for outcome in accepted]
    is_first = context.format in (Format.TABLE, Format.JSON)
    if is_first:
        context.printer.print(result._replace(is_tracked=True))
    try:
        tracker.follow()
    finally:
        if not is_first:
            context.printer.print(result._replace(states=_last_states(tracker.messages)))
    rows = [{"phone": recipient.phone, "state": recipient.state or "unknown"} for recipient in recipients]
    context.printer.print_last_states(rows)
    failures = [*result.failures]
    noun, done = "message", "delivered"
    if context.run.operation and context.run.operation.channel == "call":
        noun, done = "call", "answered"
    states = [recipient.state for recipient in recipients]
    if error := _error_of(tracker, recipients, noun):
        error.recipients = result.outcomes
        failures.append(error)
    elif all(state and reaches(state, "delivered", context.words) for state in states):
        if len(states) == 1:
            context.note(f"The {noun} was {done}.")
        elif states:
            context.note(f"All {noun}s were {done}.")
    responses = tracker.documents() if context.is_json else []
    return ServiceResult(responses, failures=failures)


def _last_states(messages: Sequence[Tracked]) -> dict[tuple[str, str | None], str]:
    """Return the last states by ID and phone; without a phone, the states of all who share the ID."""
    states: dict[tuple[str, str | None], str] = {}
    for message in messages:
        if message.response:
            states[message.id, None] = message.in_words
        states |= {(message.id, phone): state for phone, state in message.states if state}
    return states


def _error_of(tracker: Tracker, recipients: Sequence[_Recipient], noun: str) -> ConditionError | None:
    """Return the error about recipients who did not get the message in time; None if all of them did."""
    wanted = tracker.goal._replace(until=tracker.goal.until or "delivered")
    unread = [recipient for recipient in recipients if recipient.is_unread]
    readable = [recipient for recipient in recipients if recipient.message and not recipient.is_unread]
    missing = [recipient for recipient in readable if not wanted.is_reached(recipient.state)]
    late = [recipient for recipient in missing if not wanted.is_over(recipient.state)]
    parts, hint, details = [], None, None
    if missing or unread:
        hint = Hint("To check again: ", "state get --last")
    if missing:
        verb = "answered by" if noun == "call" else "delivered to"
        names = some_of([recipient.in_words for recipient in missing])
        parts.append(f"Not {verb} {names} ({len(missing)} of {plural(len(recipients), f'accepted {noun}')})")
    if late:
        parts.append(f"{plural(len(late), noun)} did not reach {tracker.goal} in {tracker.max_wait:g} s")
    if unread:
        what = f"The state of {some_of([recipient.in_words for recipient in unread])} could not be read"
        errors = [recipient.message.error for recipient in unread if recipient.message and recipient.message.error]
        if errors:
            what, details = f"{what}: {errors[0].message}", errors[0].details
        parts.append(what)
    if without_id := [recipient.phone for recipient in recipients if recipient.message is None]:
        parts.append(f"The state of {some_of(without_id)} cannot be checked: the service returned no ID")
    if not parts:
        return None
    messages = [recipient.message for recipient in (*late, *unread) if recipient.message]
    words = [state for message in messages for state in tracker.open_states(message)]
    reason = "not_delivered" if len(missing) > len(late) else "state_not_reached"
    return ConditionError(
        "; ".join(parts), hint, reason=reason, missing_words=("delivered", words[:1]), details=details
    )
