"""The option --wait: track the messages of one send, and report the recipients who did not get their message."""

from collections.abc import Sequence
from typing import NamedTuple

from msgctl.cli.runs.tracking import NOT_REACHED, Target, Tracked, Tracker
from msgctl.cli.shell.context import Context
from msgctl.errors import ConditionError
from msgctl.outcomes.judge import ACCEPTED, Outcome, is_final, reaches
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
    noun = "message"
    if context.operation and context.operation.channel == "call":
        noun = "call"
    sent = _sent(accepted, tracker.messages, noun)
    if context.printer.shows_verdicts:
        _show(context, sent)
    failures = []
    if error := _error(context, sent, noun, tracker, max_wait, until):
        error.recipients = outcomes
        failures.append(error)
    elif sent and all(recipient.state and reaches(recipient.state, "delivered", context.words) for recipient in sent):
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


def _error(
    context: Context, sent: Sequence[_Sent], noun: str, tracker: Tracker, max_wait: float, until: str | None
) -> ConditionError | None:
    """Return the error about recipients who did not get the message in time; None if all got it."""
    missing, late, unread, without_id, parts = [], [], [], [], []
    for recipient in sent:
        message, state = recipient.message, recipient.state
        if message is None:
            without_id.append(recipient.name)
        elif state is None or message.error:
            unread.append(recipient)
        elif not reaches(state, until or "delivered", context.words):
            missing.append(f"{recipient.name} [{shorten(state, 60)}]")
            if not is_final(state, context.words):
                late.append(message)
    if missing:
        done = "answered by" if noun == "call" else "delivered to"
        accepted = plural(len(sent), f"accepted {noun}")
        parts.append(f"Not {done} {some_of(missing)} ({len(missing)} of {accepted})")
    if late:
        parts.append(f"{plural(len(late), noun)} did not reach {tracker.goal} in {max_wait:g} s")
    errors = [recipient.message.error for recipient in unread if recipient.message and recipient.message.error]
    if unread:
        reason = f": {errors[0].message}" if errors else ""
        names = some_of([recipient.name for recipient in unread])
        parts.append(f"The state of {names} could not be read{reason}")
    if without_id:
        parts.append(f"The state of {some_of(without_id)} cannot be checked: the service returned no ID")
    if not parts:
        return None
    return ConditionError(
        "; ".join(parts),
        "To check again: msgctl state get --last" if missing or unread else None,
        reason="not_delivered" if len(missing) > len(late) else NOT_REACHED,
        word=next((message.failure.word for message in late if message.failure), None),
        details=errors[0].details if errors else None,
    )


def _targets(accepted: Sequence[Outcome]) -> list[Target]:
    """Return the messages with an ID, each with its recipients."""
    phones: dict[str, list[str]] = {}
    for outcome in accepted:
        if outcome.id:
            phones.setdefault(outcome.id, []).extend([outcome.phone] if outcome.phone else [])
    return [Target(*target) for target in phones.items()]


def _show(context: Context, sent: Sequence[_Sent]) -> None:
    """Print the last state of each message."""
    from msgctl.output.tables import Column, listing

    rows = [{"phone": recipient.name, "state": recipient.state or "unknown"} for recipient in sent]
    width = context.screen(context.stderr).width or 80
    context.printer.explain(listing([Column("phone"), Column("state")], rows, context.now(), width))
