"""`msgctl state`: delivery states of SMS and calls."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple

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

if TYPE_CHECKING:
    from msgctl.output.progress import StateProgress

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
        found = list(dict.fromkeys(values.words(text, "ID") for text in self.id or _last_ids(context)))
        requests.check_fields(context, ops.MESSAGES_STATE)
        return found


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
    "msgctl state watch 8f3c2a71 --until delivered --until rejected --interval 5 --max-wait 600",
    performs=ops.MESSAGES_STATE,
)
def watch(
    context: Context,
    messages: MessageIds,
    until: Annotated[
        list[str] | None,
        typer.Option("--until", metavar="STATE", help="State to wait for (repeatable). [default: any final state]"),
    ] = None,
    interval: Annotated[str, typer.Option("--interval", metavar="S", help="Seconds between checks.")] = "2",
    max_wait: Annotated[str, typer.Option("--max-wait", metavar="S", help="Maximum seconds to wait.")] = "300",
) -> ServiceResult | OwnResult:
    """Wait until each message reaches a state; exit 6 if one does not."""
    watcher = StateWatcher(
        context,
        until=[values.words(state, "--until") for state in until or []],
        interval=values.seconds(interval, "--interval"),
        max_wait=values.seconds(max_wait, "--max-wait", most=31 * 86400),
    )
    ids = messages.ids(context)
    if context.options.dry_run:
        return _described(context, ids)
    failures: list[MsgctlError] = []
    try:
        watcher.run(ids)
    except NOT_OF_ONE_MESSAGE as error:
        failures.append(error)
    except KeyboardInterrupt:
        failures.append(Interrupted("Interrupted"))
    failures += [_named(each, watcher.failures[each]) for each in ids if each in watcher.failures]
    return ServiceResult(list(watcher.latest.values()), len(ids), failures=failures)


def undelivered(context: Context, sent: Sequence[RecipientOutcome], max_wait: float) -> list[MsgctlError]:
    """Follow the messages that were accepted to a final state. Return an error that names those not delivered."""
    accepted = [each for each in sent if each.outcome == ACCEPTED]
    watcher = StateWatcher(context, until=(), interval=2.0, max_wait=max_wait)
    watcher.run(list(dict.fromkeys(each.id for each in accepted if each.id)))
    states = [(each.phone or "the message", watcher.states.get(each.id or "", "state unknown")) for each in accepted]
    missing = [f"{who} [{shorten(state, 60)}]" for who, state in states if not is_delivered(state)]
    if not missing:
        if accepted:
            context.note("The message was delivered." if len(accepted) == 1 else "All messages were delivered.")
        return []
    what = (
        f"Not delivered to {requests.some_of(missing)} ({len(missing)} of {plural(len(accepted), 'accepted message')})"
    )
    error = next(iter(watcher.failures.values()), None)
    why = f"The first failure: {error.message}. " if error else ""
    return [ConditionError(what, f"{why}To check again: msgctl state get --last")]


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
    from msgctl.history.store import reading

    profile = context.profile
    with reading() as history:
        entries = [] if history is None else history.last(profile.name, profile.base_url)
    if ids := [entry["id"] for entry in entries if entry["id"]]:
        return ids
    why = f"the history of this machine has no message of profile {profile.name}"
    if not profile.history:
        why += ", which says history = false"
    for last in entries[:1]:
        why = f"the last message ({last['command']}, {last['time']}) has no ID; its outcome is {last['outcome']}"
    raise UsageError(f"--last: {why}", "Give the ID of each message; msgctl history lists earlier ones.")


class StateWatcher:
    """Polls the states of messages; collects by id the ``latest`` responses, their ``states``, and the ``failures``."""

    def __init__(self, context: Context, *, until: Sequence[str], interval: float, max_wait: float) -> None:
        self._context = context
        self._until = frozenset(folded(state) for state in until)
        self._wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
        self._interval = interval
        self._max_wait = max_wait
        self._deadline = context.monotonic() + max_wait
        self._display: StateProgress | None = None
        self._lost = False
        self.latest: dict[str, Response] = {}
        self.states: dict[str, str] = {}
        self.failures: dict[str, MsgctlError] = {}

    def run(self, ids: Sequence[str]) -> None:
        """Poll until each message is done or the time is over; then poll once more."""
        context = self._context
        with ExitStack() as stack:
            stack.callback(lambda: _learn(context, self.latest.values()))
            if context.printer.shows_verdicts and not context.options.verbose:
                from msgctl.output.progress import StateProgress

                color, clock = context.screen(context.stderr).color, context.monotonic
                display = StateProgress(context.stderr, color=color, ids=ids, max_wait=self._max_wait, monotonic=clock)
                self._display = stack.enter_context(display)
            waiting = list(ids)
            while waiting:
                is_last, self._lost = self._left() <= 0, False
                waiting = [each for each in waiting if not self._is_done(each)]
                if self._display:
                    self._display.show(self.states, len(waiting))
                if is_last:
                    break
                if waiting:
                    context.sleep(max(0.0, min(self._interval, self._left())))
        for each in waiting:
            state = shorten(self.states.get(each, "unknown"), 60)
            self._fail(each, f"did not reach {self._wanted} in time (now: {state})")

    def _left(self) -> float:
        return self._deadline - self._context.monotonic()

    def _is_done(self, id: str) -> bool:
        left = self._left()
        if left <= 0 and self._lost:  # the service does not respond, and the time is over
            return False
        try:
            response = self._context.client.send(ops.MESSAGES_STATE, {"id": id}, timeout=max(left, LAST_CHECK))
            self._lost = False
        except NOT_OF_ONE_MESSAGE:
            raise
        except MsgctlError as error:
            self._lost = error.retryable
            if not self._lost:
                self.failures[id] = error
                return True
            self._say(f"{shorten(id, 60)}: {error.message}; trying again")
            return False
        state = response.document.get("state")
        state = "missing" if state is None else str(state)
        before, self.states[id], self.latest[id] = self.states.get(id), state, response
        if before != state and not self._display:
            self._say(f"{shorten(id, 60)}: {shorten(state, 60)}")
        if folded(state) in self._until:
            return True
        if is_final(state) and self._until:
            self._fail(id, f"ended as {quote(state)}, not {self._wanted}")
        return is_final(state)

    def _say(self, text: str) -> None:
        (self._display.say if self._display else self._context.note)(text)

    def _fail(self, id: str, what: str) -> None:
        hint = f"Check again later: msgctl state get {shorten(id, 60)}"
        self.failures[id] = ConditionError(f"Message {quote(id)} {what}", hint)
