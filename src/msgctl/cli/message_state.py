"""`msgctl state`: delivery states of SMS and calls."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import Annotated, NamedTuple

import typer

from msgctl import operations as ops
from msgctl import recipients, values
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.delivery import is_delivered, is_final, reaches
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    UnreadableError,
    UsageError,
)
from msgctl.http.request import build
from msgctl.http.response import Response
from msgctl.output.result import Format, OwnResult, ServiceResult
from msgctl.recipients import ACCEPTED, REFUSED, RecipientOutcome
from msgctl.text import plural, shorten
from msgctl.values import quote

app = group("Check the delivery state of SMS and calls.")


class Target(NamedTuple):
    """A message id and the recipients who share it, if they are known."""

    id: str
    phones: Sequence[str] = ()

    def states(self, response: Response) -> list[str | None]:
        """Return the state of each recipient, or of each message in the response if the recipients are not known."""
        messages = response.document.get("data", ())
        if self.phones:
            return recipients.states(messages, self.phones)
        return [None if message.get("state") is None else str(message["state"]) for message in messages] or [None]


class MessageIds(NamedTuple):
    """Which messages to look up."""

    id: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Message IDs, as printed when you sent the message.")
    ] = None
    last: Annotated[bool, typer.Option("--last", help="Use the last message this profile sent from this machine.")] = (
        False
    )

    def targets(self, context: Context) -> list[Target]:
        """Return the messages, each id once, after a check of --fields."""
        if self.id and self.last:
            raise UsageError("Use either --last or IDs, not both")
        if not self.id and not self.last:
            raise UsageError("ID is missing", "Give message IDs, or --last.")
        ids = dict.fromkeys(values.short_text(text, "ID") for text in self.id or ())
        found = [Target(each) for each in ids] or _last_targets(context)
        requests.check_fields(context, ops.MESSAGES_STATE)
        return found


class Seen(NamedTuple):
    """The ``latest`` response, its ``states`` or the failure of each message, by message id."""

    latest: dict[str, Response]
    states: dict[str, list[str | None]]
    failures: dict[str, MsgctlError]


NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that affect every message."""
LAST_CHECK = 1.0
"""Seconds that a check may take once the time is over."""


@command(
    app,
    "get",
    "msgctl state get 8f3c2a71",
    "msgctl state get --last",
    "msgctl state get 8f3c2a71 8f3c2a72 --json",
    performs=ops.MESSAGES_STATE,
)
def get(context: Context, messages: MessageIds) -> ServiceResult | OwnResult:
    """Show the delivery state of each message."""
    targets = messages.targets(context)
    if context.options.dry_run:
        return _described(context, targets)
    is_json = context.options.format is Format.JSON and not context.options.fields
    got: dict[str, Response] = {}
    failures: list[MsgctlError] = []
    for target in targets:
        try:
            response = context.client.send(ops.MESSAGES_STATE, {"id": target.id}, any_json=is_json)
        except NOT_OF_ONE_MESSAGE as error:
            failures.append(error)
            break
        except MsgctlError as error:
            failures.append(_named(target.id, error))
            continue
        if response.document.get("data") == []:
            failures.append(_without_state(target.id, response))
        if is_json or response.document["data"]:
            got[target.id] = response
    _learn(context, targets, got)
    return ServiceResult(list(got.values()), len(targets), failures=failures)


@command(
    app,
    "watch",
    "msgctl state watch 8f3c2a71",
    "msgctl state watch --last",
    "msgctl state watch 8f3c2a71 --until delivered --interval 5 --max-wait 600",
    performs=ops.MESSAGES_STATE,
)
def watch(
    context: Context,
    messages: MessageIds,
    until: Annotated[
        list[str] | None,
        typer.Option("--until", metavar="STATE", help="State to wait for (repeatable); any final state if omitted."),
    ] = None,
    interval: Annotated[str, typer.Option("--interval", metavar="S", help="Seconds between checks.")] = "2",
    max_wait: Annotated[str, typer.Option("--max-wait", metavar="S", help="Maximum seconds to wait.")] = "300",
) -> ServiceResult | OwnResult:
    """Wait until each message reaches a state; exit 6 if one does not."""
    states = [values.short_text(state, "--until") for state in until or []]
    pause = values.seconds(interval, "--interval")
    most = values.seconds(max_wait, "--max-wait", most=31 * 86400)
    targets = messages.targets(context)
    if context.options.dry_run:
        return _described(context, targets)
    seen, failures = Seen({}, {}, {}), list[MsgctlError]()
    try:
        follow(context, targets, seen, most, pause, states)
    except NOT_OF_ONE_MESSAGE as error:
        failures.append(error)
    except KeyboardInterrupt:
        failures.append(Interrupted("Interrupted"))
    failures += [_named(each.id, seen.failures[each.id]) for each in targets if each.id in seen.failures]
    is_json = context.options.format is Format.JSON
    shown = [each for each in seen.latest.values() if is_json or each.document["data"]]
    return ServiceResult(shown, len(targets), failures=failures)


def undelivered(
    context: Context, sent: Sequence[RecipientOutcome], max_wait: float, until: Sequence[str] = ()
) -> list[MsgctlError]:
    """Track the accepted messages until every state is final or wanted. Return an error if some are not delivered."""
    accepted = [each for each in sent if each.outcome == ACCEPTED]
    phones: dict[str, list[str]] = {}
    for each in accepted:
        if each.id:
            phones.setdefault(each.id, []).extend([each.phone] if each.phone else [])
    seen = Seen({}, {}, {})
    targets = [Target(*each) for each in phones.items()]
    follow(context, targets, seen, max_wait, until=until)
    states: dict[tuple[str | None, str | None], str | None] = {}
    for target in targets:
        found = seen.states.get(target.id, ())
        states |= {(target.id, phone): state for phone, state in zip(target.phones or (None,), found, strict=False)}
    missing = []
    for each in accepted:
        state = states.get((each.id, each.phone))
        if state is None or not (is_delivered(state) or any(reaches(state, wanted) for wanted in until)):
            missing.append(f"{each.phone or 'the message'} [{shorten(state or 'state unknown', 60)}]")
    if not missing:
        if accepted and not until:
            context.note("The message was delivered." if len(accepted) == 1 else "All messages were delivered.")
        return []
    what = (
        f"Not delivered to {requests.some_of(missing)} ({len(missing)} of {plural(len(accepted), 'accepted message')})"
    )
    error = next(iter(seen.failures.values()), None)
    why = f"The first failure: {error.message}. " if error else ""
    hint = f"{why}To check again: {context.printer.program} state get --last"
    return [ConditionError(what, hint, reason="not_delivered")]


def _described(context: Context, targets: Sequence[Target]) -> OwnResult:
    base_url = context.profile.base_url
    return requests.described([build(ops.MESSAGES_STATE, {"id": each.id}).described(base_url) for each in targets])


def _learn(context: Context, targets: Iterable[Target], responses: Mapping[str, Response]) -> None:
    """Store delivery states in the history. Errors are not reported, because the command does not depend on it."""
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
    if not learned or not context.profile.history:
        return
    from msgctl.history.store import reading

    with suppress(ConfigurationError), reading() as history:
        if history is not None:
            history.learn(learned)


def _without_state(id: str, response: Response) -> UnreadableError:
    """Return the error for an empty list of messages."""
    what = f"Message {quote(id)} has no state yet, or the service does not know it"
    return UnreadableError(what, "Check the ID, or try again a little later.", **response.attached())


def _named(id: str, error: MsgctlError) -> MsgctlError:
    """Return an error that names the message it is about."""
    if not isinstance(error, ConditionError):
        error.what = f"Message {quote(id)}: {error.what}"
    return error


def _last_targets(context: Context) -> list[Target]:
    """Return the messages of the profile's last send, without refused recipients."""
    from msgctl.history.store import SECONDS, reading

    profile = context.profile
    with reading() as history:
        entries = [] if history is None else history.last(profile.name, profile.base_url)
    phones: dict[str, list[str]] = {}
    accepted = [entry for entry in entries if entry["outcome"] != REFUSED] or entries
    for entry in accepted:
        if entry["id"]:
            phones.setdefault(entry["id"], []).extend([entry["phone"]] if entry["phone"] else [])
    if phones:
        return [Target(*each) for each in phones.items()]
    why = f"the history of this machine has no message of profile {profile.name}"
    if not profile.history:
        why += ", which says history = false"
    for last in entries[:1]:
        time = f"{last['time'][:SECONDS]}Z"
        why = f"the last message ({last['command']}, {time}) has no ID; its outcome is {last['outcome']}"
    raise UsageError(f"--last: {why}", "Give the ID of each message; msgctl history lists earlier ones.")


def follow(
    context: Context,
    targets: Sequence[Target],
    seen: Seen,
    max_wait: float,
    interval: float = 2.0,
    until: Sequence[str] = (),
) -> None:
    """Poll until each message is in a state of ``until`` or in a final state, or until the deadline.

    Poll once more at the deadline.
    """
    deadline = context.monotonic() + max_wait
    wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
    waiting, is_last, display = list(targets), False, None
    with ExitStack() as stack:
        stack.callback(lambda: _learn(context, targets, seen.latest))
        if context.printer.shows_verdicts and not context.options.verbose:
            from msgctl.output.progress import StateProgress

            color, clock = context.screen(context.stderr).color, context.monotonic
            ids = [each.id for each in targets]
            display = StateProgress(context.stderr, color=color, ids=ids, max_wait=max_wait, monotonic=clock)
            stack.enter_context(display)
        while waiting and not is_last:
            is_last = context.monotonic() >= deadline
            for target in [*waiting]:
                left = deadline - context.monotonic()
                try:
                    response = context.client.send(ops.MESSAGES_STATE, {"id": target.id}, timeout=max(left, LAST_CHECK))
                except NOT_OF_ONE_MESSAGE:
                    raise
                except MsgctlError as error:
                    if not error.retryable:
                        seen.failures[target.id] = error
                        waiting.remove(target)
                        continue
                    say = display.say if display else context.note
                    say(f"{shorten(target.id, 60)}: {error.message}; trying again")
                    if context.monotonic() >= deadline:
                        break  # the service does not respond, and the time is over
                    continue
                states = target.states(response)
                if seen.states.get(target.id) != states and not display:
                    context.note(f"{shorten(target.id, 60)}: {shorten(_in_words(states), 60)}")
                seen.states[target.id], seen.latest[target.id] = states, response
                is_wanted = all(_is_wanted(state, until) for state in states)
                if is_wanted or all(state and (is_final(state) or _is_wanted(state, until)) for state in states):
                    waiting.remove(target)
                    if not is_wanted:
                        what = f"Message {quote(target.id)} ended as {quote(_in_words(states))}, not {wanted}"
                        seen.failures[target.id] = ConditionError(what, reason="other_state", **response.attached())
            if display:
                display.show({key: _in_words(states) for key, states in seen.states.items()}, len(waiting))
            if waiting and not is_last:
                context.sleep(max(0.0, min(interval, deadline - context.monotonic())))
    seen.failures.update({each.id: _late(context, each.id, seen, wanted) for each in waiting})


def _is_wanted(state: str | None, until: Sequence[str]) -> bool:
    """Return whether a state is in ``until``, or is final if ``until`` is empty."""
    return state is not None and (any(reaches(state, each) for each in until) if until else is_final(state))


def _in_words(states: Sequence[str | None]) -> str:
    return ", ".join(dict.fromkeys(state or "missing" for state in states))


def _late(context: Context, id: str, seen: Seen, wanted: str) -> ConditionError:
    """Return the error for a message that is not in a state wanted when the time is over."""
    now = _in_words(seen.states.get(id, [])) or "unknown"
    what = f"Message {quote(id)} did not reach {wanted} in time (now: {shorten(now, 60)})"
    said = seen.latest[id].attached() if id in seen.latest else {}
    hint = f"Check again later: {context.printer.program} state get {shorten(id, 60)}"
    return ConditionError(what, hint, reason="state_not_reached", **said)
