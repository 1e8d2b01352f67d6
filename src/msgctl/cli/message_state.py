"""`msgctl state`: delivery states of SMS and calls."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import Annotated, NamedTuple

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.errors import ConditionError, ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.http.request import build
from msgctl.http.response import Response
from msgctl.output.result import OwnResult, ServiceResult
from msgctl.recipients import ACCEPTED, RecipientOutcome, folded, is_delivered, is_final
from msgctl.text import plural, shorten
from msgctl.values import quote

app = group("Check the delivery state of SMS and calls.")


class MessageIds(NamedTuple):
    """Which messages to look up."""

    id: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Message IDs, as printed when you sent the message.")
    ] = None
    last: Annotated[bool, typer.Option("--last", help="Use the last message this profile sent from this machine.")] = (
        False
    )

    def ids(self, context: Context) -> list[str]:
        """Return the ids, each once, after a check of --fields."""
        if self.id and self.last:
            raise UsageError("Use either --last or IDs, not both")
        if not self.id and not self.last:
            raise UsageError("ID is missing", "Give message IDs, or --last.")
        found = list(dict.fromkeys(values.short_text(text, "ID") for text in self.id or _last_ids(context)))
        requests.check_fields(context, ops.MESSAGES_STATE)
        return found


class Seen(NamedTuple):
    """What was learned of messages, by id: the ``latest`` responses, their ``states``, and the ``failures``."""

    latest: dict[str, Response]
    states: dict[str, str]
    failures: dict[str, MsgctlError]


NOT_OF_ONE_MESSAGE = (ConfigurationError, Interrupted, UsageError)
"""Errors that the next message would have too."""
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
    ids = messages.ids(context)
    if context.options.dry_run:
        return _described(context, ids)
    got: list[Response] = []
    failures: list[MsgctlError] = []
    for each in ids:
        try:
            got.append(context.client.send(ops.MESSAGES_STATE, {"id": each}))
        except NOT_OF_ONE_MESSAGE as error:
            failures.append(error)
            break
        except MsgctlError as error:
            failures.append(_named(each, error))
    _learn(context, got)
    return ServiceResult(got, len(ids), failures=failures)


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
    ids = messages.ids(context)
    if context.options.dry_run:
        return _described(context, ids)
    seen, failures = Seen({}, {}, {}), list[MsgctlError]()
    try:
        follow(context, ids, seen, most, pause, states)
    except NOT_OF_ONE_MESSAGE as error:
        failures.append(error)
    except KeyboardInterrupt:
        failures.append(Interrupted("Interrupted"))
    failures += [_named(each, seen.failures[each]) for each in ids if each in seen.failures]
    return ServiceResult(list(seen.latest.values()), len(ids), failures=failures)


def undelivered(context: Context, sent: Sequence[RecipientOutcome], max_wait: float) -> list[MsgctlError]:
    """Follow the messages that were accepted to a final state. Return an error that names those not delivered."""
    accepted = [each for each in sent if each.outcome == ACCEPTED]
    seen = Seen({}, {}, {})
    follow(context, list(dict.fromkeys(each.id for each in accepted if each.id)), seen, max_wait)
    states = [(each.phone or "the message", seen.states.get(each.id or "", "state unknown")) for each in accepted]
    missing = [f"{who} [{shorten(state, 60)}]" for who, state in states if not is_delivered(state)]
    if not missing:
        if accepted:
            context.note("The message was delivered." if len(accepted) == 1 else "All messages were delivered.")
        return []
    what = (
        f"Not delivered to {requests.some_of(missing)} ({len(missing)} of {plural(len(accepted), 'accepted message')})"
    )
    error = next(iter(seen.failures.values()), None)
    why = f"The first failure: {error.message}. " if error else ""
    return [ConditionError(what, f"{why}To check again: {context.printer.program} state get --last")]


def _described(context: Context, ids: Sequence[str]) -> OwnResult:
    base_url = context.profile.base_url
    return requests.described([build(ops.MESSAGES_STATE, {"id": each}).described(base_url) for each in ids])


def _learn(context: Context, responses: Iterable[Response]) -> None:
    """Store delivery states in the history. It is a convenience, so nothing is said if that fails."""
    documents = [each.document for each in responses]
    states = {str(each["id"]): str(each["state"]) for each in documents if each.get("id") and each.get("state")}
    if not states or not context.profile.history:
        return
    from msgctl.history.store import reading

    with suppress(ConfigurationError), reading() as history:
        if history is not None:
            history.learn(states)


def _named(id: str, error: MsgctlError) -> MsgctlError:
    """Return an error that names the message it is about."""
    if not isinstance(error, ConditionError):
        error.what = f"Message {quote(id)}: {error.what}"
    return error


def _last_ids(context: Context) -> list[str]:
    """Return the message ids of the last send of the profile."""
    from msgctl.history.store import SECONDS, reading

    profile = context.profile
    with reading() as history:
        entries = [] if history is None else history.last(profile.name, profile.base_url)
    if ids := [entry["id"] for entry in entries if entry["id"]]:
        return ids
    why = f"the history of this machine has no message of profile {profile.name}"
    if not profile.history:
        why += ", which says history = false"
    for last in entries[:1]:
        time = f"{last['time'][:SECONDS]}Z"
        why = f"the last message ({last['command']}, {time}) has no ID; its outcome is {last['outcome']}"
    raise UsageError(f"--last: {why}", "Give the ID of each message; msgctl history lists earlier ones.")


def follow(
    context: Context, ids: Sequence[str], seen: Seen, max_wait: float, interval: float = 2.0, until: Sequence[str] = ()
) -> None:
    """Poll until each message is in one of the states, or a final one, or the time is over; then poll once more."""
    deadline = context.monotonic() + max_wait
    wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
    ends = {folded(state) for state in until}
    waiting, is_last, display = list(ids), False, None
    with ExitStack() as stack:
        stack.callback(lambda: _learn(context, seen.latest.values()))
        if context.printer.shows_verdicts and not context.options.verbose:
            from msgctl.output.progress import StateProgress

            color, clock = context.screen(context.stderr).color, context.monotonic
            display = StateProgress(context.stderr, color=color, ids=ids, max_wait=max_wait, monotonic=clock)
            stack.enter_context(display)
        while waiting and not is_last:
            is_last = context.monotonic() >= deadline
            for each in [*waiting]:
                left = deadline - context.monotonic()
                try:
                    response = context.client.send(ops.MESSAGES_STATE, {"id": each}, timeout=max(left, LAST_CHECK))
                except NOT_OF_ONE_MESSAGE:
                    raise
                except MsgctlError as error:
                    if not error.retryable:
                        seen.failures[each] = error
                        waiting.remove(each)
                        continue
                    (display.say if display else context.note)(f"{shorten(each, 60)}: {error.message}; trying again")
                    if context.monotonic() >= deadline:
                        break  # the service does not respond, and the time is over
                    continue
                said = response.document.get("state")
                state = "missing" if said is None else str(said)
                if seen.states.get(each) != state and not display:
                    context.note(f"{shorten(each, 60)}: {shorten(state, 60)}")
                seen.states[each], seen.latest[each] = state, response
                is_wanted = folded(state) in ends or (is_final(state) and not ends)
                if is_wanted or is_final(state):
                    waiting.remove(each)
                    if not is_wanted:
                        what = f"Message {quote(each)} ended as {quote(state)}, not {wanted}"
                        seen.failures[each] = ConditionError(what, **response.attached())
            if display:
                display.show(seen.states, len(waiting))
            if waiting and not is_last:
                context.sleep(max(0.0, min(interval, deadline - context.monotonic())))
    seen.failures.update({each: _late(context, each, seen, wanted) for each in waiting})


def _late(context: Context, id: str, seen: Seen, wanted: str) -> ConditionError:
    """Return the error for a message that is not in a state wanted when the time is over."""
    what = f"Message {quote(id)} did not reach {wanted} in time (now: {shorten(seen.states.get(id, 'unknown'), 60)})"
    said = seen.latest[id].attached() if id in seen.latest else {}
    return ConditionError(what, f"Check again later: {context.printer.program} state get {shorten(id, 60)}", **said)
