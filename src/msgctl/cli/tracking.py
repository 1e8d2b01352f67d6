"""Track messages until their delivery state is final."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

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
from msgctl.http.response import Response
from msgctl.outcomes import judge
from msgctl.outcomes.judge import ACCEPTED, RecipientOutcome, is_delivered, is_final, reaches
from msgctl.text import plural, shorten, some_of
from msgctl.values import quote


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


class Seen(NamedTuple):
    """The ``latest`` response and the ``states`` of each message, by message ID.

    ``errors`` contains the errors of messages whose last check failed.
    """

    latest: dict[str, Response]
    states: dict[str, list[str | None]]
    failures: dict[str, MsgctlError]
    errors: dict[str, MsgctlError]


NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that affect every message."""
NOT_REACHED = "state_not_reached"
"""The reason of an error about a message that is not in a wanted state at the deadline."""
INTERVAL = 2.0
"""Seconds between two checks."""
LAST_CHECK = 1.0
"""Seconds that the last check may take after the deadline."""


def undelivered(
    context: Context, sent: Sequence[RecipientOutcome], max_wait: float, until: Sequence[str] = ()
) -> list[MsgctlError]:
    """Track the accepted messages until every state is final or wanted. Return an error if some are not delivered."""
    accepted = [each for each in sent if each.outcome == ACCEPTED]
    seen = Seen({}, {}, {}, {})
    targets = _targets(accepted)
    follow(context, targets, seen, max_wait, until)
    states: dict[tuple[str | None, str | None], str | None] = {}
    for target in targets:
        found = seen.states.get(target.id, ())
        states |= {(target.id, phone): state for phone, state in zip(target.phones or (None,), found, strict=False)}
    if is_displayed(context):
        _show(context, accepted, states)
    noun, done, by = (
        ("call", "answered", "by") if context.operation is ops.SEND_CALL else ("message", "delivered", "to")
    )
    missing, unread, late, without_id = [], [], 0, []
    for each in accepted:
        state = states.get((each.id, each.phone))
        if not each.id:
            without_id.append(each.phone or f"the {noun}")
        elif state is None or each.id in seen.errors:
            unread.append(each.phone or f"the {noun}")
        elif not (is_delivered(state) or any(reaches(state, wanted) for wanted in until)):
            missing.append(f"{each.phone or f'the {noun}'} [{shorten(state, 60)}]")
            late += each.id in seen.failures and seen.failures[each.id].reason == NOT_REACHED
    if not missing and not unread and not without_id:
        if accepted and all(is_delivered(state) for state in states.values() if state):
            context.note(f"The {noun} was {done}." if len(accepted) == 1 else f"All {noun}s were {done}.")
        return []
    parts = []
    if missing:
        parts = [f"Not {done} {by} {some_of(missing)} ({len(missing)} of {plural(len(accepted), f'accepted {noun}')})"]
    if late:
        parts.append(f"{plural(late, noun)} did not reach {_any_of(until)} in {max_wait:g} s")
    if unread:
        statuses = sorted({str(each.http_status) for each in seen.errors.values() if each.http_status})
        status = f" ({', '.join(statuses)})" if statuses else ""
        parts.append(f"The state of {some_of(unread)} could not be read{status}")
    if without_id:
        parts.append(f"The state of {some_of(without_id)} cannot be checked: the service returned no ID")
    failures = (*seen.errors.values(), *seen.failures.values())
    error = next((each for each in failures if each.reason != NOT_REACHED), None)
    why = f"The first failure: {error.message}. " if error else ""
    hint = f"{why}To check again: {context.printer.program} state get --last" if missing or unread else None
    return [ConditionError("; ".join(parts), hint, reason="not_delivered")]


def _targets(accepted: Iterable[RecipientOutcome]) -> list[Target]:
    """Return the messages with an ID, each with its recipients."""
    phones: dict[str, list[str]] = {}
    for each in accepted:
        if each.id:
            phones.setdefault(each.id, []).extend([each.phone] if each.phone else [])
    return [Target(*each) for each in phones.items()]


def is_displayed(context: Context) -> bool:
    """Return whether a person sees the states change on the terminal."""
    return context.printer.shows_verdicts and not context.options.verbose


def _show(
    context: Context,
    accepted: Iterable[RecipientOutcome],
    states: Mapping[tuple[str | None, str | None], str | None],
) -> None:
    """Print the last state of each message, after the live display has ended."""
    from msgctl.output.tables import Column, listing

    rows = [{"phone": each.phone, "state": states.get((each.id, each.phone)) or "unknown"} for each in accepted]
    width = context.screen(context.stderr).width or 80
    context.printer.explain(listing([Column("phone"), Column("state")], rows, context.clock(), width))


def follow(
    context: Context,
    targets: Sequence[Target],
    seen: Seen,
    max_wait: float,
    until: Sequence[str] = (),
) -> None:
    """Poll until each message is in a state of ``until`` or in a final state, or until the deadline.

    Poll once more at the deadline.
    """
    deadline = context.monotonic() + max_wait
    wanted = _any_of(until)
    waiting, is_last, display = list(targets), False, None
    said: dict[str, str] = {}
    with ExitStack() as stack:
        stack.callback(lambda: learn(context, targets, seen.latest))
        if is_displayed(context):
            from msgctl.output.progress import StateProgress

            color, clock = context.screen(context.stderr).color, context.monotonic
            ids = [each.id for each in targets]
            display = StateProgress(context.stderr, color=color, ids=ids, max_wait=max_wait, monotonic=clock)
            stack.enter_context(display)
        while waiting and not is_last:
            is_last = context.monotonic() >= deadline
            for target in [*waiting]:
                before = seen.states.get(target.id)
                if _check(context, target, seen, deadline, until):
                    waiting.remove(target)
                elif error := seen.errors.get(target.id):
                    _say_changed(display.say if display else context.note, target.id, error, said)
                    if context.monotonic() >= deadline:
                        break  # the service did not respond before the deadline
                if not display and (states := seen.states.get(target.id)) and states != before:
                    context.note(f"{shorten(target.id, 60)}: {shorten(_in_words(states), 60)}")
            if display:
                display.show({key: _in_words(states) for key, states in seen.states.items()}, len(waiting))
            if waiting and not is_last:
                context.sleep(max(0.0, min(INTERVAL, deadline - context.monotonic())))
    seen.failures.update({each.id: _late(context, each.id, seen, wanted) for each in waiting})


def _check(context: Context, target: Target, seen: Seen, deadline: float, until: Sequence[str]) -> bool:
    """Check a message once and add the result to ``seen``. Return whether the message needs no more checks."""
    try:
        response = context.client.send(target.request, timeout=max(deadline - context.monotonic(), LAST_CHECK))
    except NOT_OF_ONE_MESSAGE:
        raise
    except MsgctlError as error:
        seen.errors[target.id] = error
        if _may_recover(error):
            return False
        seen.failures[target.id] = error
        return True
    seen.errors.pop(target.id, None)
    states = target.states(response)
    seen.states[target.id], seen.latest[target.id] = states, response
    if all(_is_wanted(state, until) for state in states):
        return True
    if not all(state and (is_final(state) or _is_wanted(state, until)) for state in states):
        return False
    what = f"Message {quote(target.id)} ended as {quote(_in_words(states))}, not {_any_of(until)}"
    seen.failures[target.id] = ConditionError(what, reason="not_delivered", details=response.details)
    return True


def _say_changed(say: Callable[[str], None], id: str, error: MsgctlError, said: dict[str, str]) -> None:
    """Print the error of a check, unless it is the last error of this message in ``said``."""
    if said.get(id) != error.message:
        said[id] = error.message
        say(f"{shorten(id, 60)}: {error.message}; trying again")


def _may_recover(error: MsgctlError) -> bool:
    """Return whether the next check may succeed: the service failed, but refused nothing."""
    return error.retryable


def _is_wanted(state: str | None, until: Sequence[str]) -> bool:
    """Return whether a state is in ``until``, or is final if ``until`` is empty."""
    return state is not None and (any(reaches(state, each) for each in until) if until else is_final(state))


def _in_words(states: Sequence[str | None]) -> str:
    return ", ".join(dict.fromkeys(state or "missing" for state in states))


def _any_of(until: Sequence[str]) -> str:
    return " or ".join(shorten(state, 40) for state in until) or "a final state"


def _late(context: Context, id: str, seen: Seen, wanted: str) -> ConditionError:
    """Return the error for a message that is not in a wanted state at the deadline."""
    hint = f"Check again later: {context.printer.program} state get {shorten(id, 60)}"
    if error := seen.errors.get(id):
        last = f" (last: {shorten(_in_words(seen.states[id]), 60)})" if id in seen.states else ""
        return ConditionError(
            f"The state of message {quote(id)} could not be read{last}: {error.message}",
            hint,
            reason=NOT_REACHED,
            details=error.details,
        )
    now = _in_words(seen.states.get(id, [])) or "unknown"
    what = f"Message {quote(id)} did not reach {wanted} in time (now: {shorten(now, 60)})"
    details = seen.latest[id].details if id in seen.latest else None
    state = next((state for state in seen.states.get(id, ()) if state), None)
    return ConditionError(what, hint, reason=NOT_REACHED, word=("delivered", state) if state else None, details=details)


def learn(context: Context, targets: Iterable[Target], responses: Mapping[str, Response]) -> None:
    """Store the delivery states. If the store cannot be used, the command continues with a warning."""
    learned: list[tuple[str, str | None, str]] = []
    for target in targets:
        if (response := responses.get(target.id)) is None:
            continue
        states = target.states(response)
        learned += [(target.id, phone, state) for phone, state in zip(target.phones, states, strict=False) if state]
        if not target.phones and len(found := {state for state in states if state}) == 1:
            learned += [(target.id, None, state) for state in found]
        learned += [
            (str(message["id"]), None, str(message["state"]))
            for message in response.document.get("data", ())
            if message.get("state") is not None and str(message["id"]) != target.id
        ]
    if not learned:
        return
    if store := context.optional_store:
        from msgctl.store import results

        try:
            results.learn_states(store, context.profile.account, learned)
        except STORE_ERRORS as error:
            context.warn(f"{error.what}. The states are not stored.")


def named(id: str, error: MsgctlError) -> MsgctlError:
    """Return an error that mentions its message."""
    return error if isinstance(error, ConditionError) else error.within(f"Message {quote(id)}")
