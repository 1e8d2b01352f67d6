"""The option --wait: track the messages of one send, and report the recipients who did not get their message."""

from collections.abc import Sequence
from typing import NamedTuple

from msgctl import operations as ops
from msgctl.cli.runs.tracking import NOT_REACHED, Target, Tracked, Tracker, is_displayed
from msgctl.cli.shell.context import Context
from msgctl.errors import ConditionError
from msgctl.outcomes.judge import ACCEPTED, Outcome, is_delivered, is_final, reaches
from msgctl.outcomes.words import AddedWords
from msgctl.output.result import Format, ServiceResult
from msgctl.text import plural, shorten, some_of


class _Sent(NamedTuple):
    """An accepted recipient: the ``name`` in errors, the message if it has an ID, and the last state."""

    name: str
    message: Tracked | None
    state: str | None


def track_sent(context: Context, outcomes: Sequence[Outcome], max_wait: float, until: str | None) -> ServiceResult:
    """Track the accepted messages of a send until every state is final or wanted.

    Return the latest responses (for --json), with an error if a message was not delivered or did not reach ``until``.
    """
    accepted = [outcome for outcome in outcomes if outcome.outcome == ACCEPTED]
    tracker = Tracker(context, _targets(accepted), max_wait, until)
    tracker.follow()
    noun = "call" if context.operation is ops.SEND_CALL else "message"
    sent = _sent(accepted, tracker.messages, noun)
    if is_displayed(context):
        _show(context, sent)
    failures = []
    if error := _Undelivered(sent, noun, until, context.words).error(tracker.goal, max_wait):
        error.recipients = outcomes
        failures.append(error)
    elif sent and all(recipient.state and is_delivered(recipient.state, context.words) for recipient in sent):
        done = "answered" if noun == "call" else "delivered"
        context.note(f"The {noun} was {done}." if len(sent) == 1 else f"All {noun}s were {done}.")
    responses = tracker.responses if context.options.format is Format.JSON else []
    return ServiceResult(responses, failures=failures)


def _sent(accepted: Sequence[Outcome], messages: Sequence[Tracked], noun: str) -> list[_Sent]:
    """Return the accepted recipients with their messages and states."""
    of_id = {message.target.id: message for message in messages}
    states: dict[tuple[str, str | None], str | None] = {}
    for message in messages:
        for phone, state in zip(message.target.phones or (None,), message.states, strict=False):
            states[message.target.id, phone] = state
    sent = []
    for outcome in accepted:
        key = outcome.id or ""
        sent.append(_Sent(outcome.phone or f"the {noun}", of_id.get(key), states.get((key, outcome.phone))))
    return sent


class _Undelivered:
    """The recipients of a send who did not get its message in time, by reason."""

    def __init__(self, sent: Sequence[_Sent], noun: str, until: str | None, added: AddedWords) -> None:
        self._sent = sent
        self._noun = noun
        self._without_id: list[_Sent] = []
        self._unread: list[tuple[_Sent, Tracked]] = []
        self._missing: list[str] = []
        self._late: list[str] = []
        self._word: tuple[str, Sequence[str]] | None = None
        for recipient in sent:
            message, state = recipient.message, recipient.state
            if message is None:
                self._without_id.append(recipient)
            elif state is None or message.error:
                self._unread.append((recipient, message))
            elif not reaches(state, until or "delivered", added):
                self._missing.append(f"{recipient.name} [{shorten(state, 60)}]")
                if message.is_late and not is_final(state, added):
                    self._late.append(state)
                    self._word = self._word or message.word

    @property
    def _are_late(self) -> bool:
        """Whether all of them only need more time."""
        are_late = all(message.is_late for _, message in self._unread)
        return are_late and len(self._late) == len(self._missing) and not self._without_id

    def error(self, goal: str, max_wait: float) -> ConditionError | None:
        """Return the error about them, or None if there are no such messages."""
        parts = []
        if self._missing:
            done = "answered by" if self._noun == "call" else "delivered to"
            accepted = plural(len(self._sent), f"accepted {self._noun}")
            parts.append(f"Not {done} {some_of(self._missing)} ({len(self._missing)} of {accepted})")
        if self._late:
            parts.append(f"{plural(len(self._late), self._noun)} did not reach {goal} in {max_wait:g} s")
        if self._unread:
            errors = [message.error for _, message in self._unread if message.error]
            statuses = sorted({str(error.http_status) for error in errors if error.http_status})
            status = f" ({', '.join(statuses)})" if statuses else ""
            names = some_of([recipient.name for recipient, _ in self._unread])
            parts.append(f"The state of {names} could not be read{status}")
        if self._without_id:
            names = some_of([recipient.name for recipient in self._without_id])
            parts.append(f"The state of {names} cannot be checked: the service returned no ID")
        if not parts:
            return None
        hint = None
        if self._missing or self._unread:
            hint = f"{self._first_failure}To check again: msgctl state get --last"
        return ConditionError(
            "; ".join(parts),
            hint,
            reason=NOT_REACHED if self._are_late else "not_delivered",
            word=self._word,
        )

    @property
    def _first_failure(self) -> str:
        """A sentence about the first error other than a missed deadline, if there is one."""
        messages = [recipient.message for recipient in self._sent if recipient.message]
        for error in (*(message.error for message in messages), *(message.failure for message in messages)):
            if error and error.reason != NOT_REACHED:
                return f"The first failure: {error.message}. "
        return ""


def _targets(accepted: Sequence[Outcome]) -> list[Target]:
    """Return the messages with an ID, each with its recipients."""
    phones: dict[str, list[str]] = {}
    for outcome in accepted:
        if outcome.id:
            phones.setdefault(outcome.id, []).extend([outcome.phone] if outcome.phone else [])
    return [Target(*target) for target in phones.items()]


def _show(context: Context, sent: Sequence[_Sent]) -> None:
    """Print the last state of each message, in place of the display that is gone."""
    from msgctl.output.tables import Column, listing

    rows = [{"phone": recipient.name, "state": recipient.state or "unknown"} for recipient in sent]
    width = context.screen(context.stderr).width or 80
    context.printer.explain(listing([Column("phone"), Column("state")], rows, context.now(), width))
