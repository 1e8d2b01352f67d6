"""`msgctl state`: delivery states of SMS and calls."""

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.config import profiles
from msgctl.errors import ConditionError, ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.http.response import Response
from msgctl.output.result import OwnResult, ServiceResult
from msgctl.recipients import ACCEPTED, RecipientOutcome, folded, is_delivered, is_final
from msgctl.text import shorten
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.output.progress import StateProgress

app = group("Check the delivery state of SMS and calls.")

Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID]...", help="Message IDs, as printed when you sent the message.")
]
Last = Annotated[bool, typer.Option("--last", help="Use the last message this profile sent from this machine.")]


@command(
    app,
    "get",
    "msgctl state get 8f3c2a71",
    "msgctl state get --last",
    "msgctl state get 8f3c2a71 8f3c2a72 --json",
    performs=ops.MESSAGES_STATE,
)
def get(
    ctx: typer.Context,
    id: Ids = None,
    last: Last = False,
) -> ServiceResult | OwnResult:
    """Show the delivery state of each message."""
    context = Context.of(ctx)
    identifiers = _identifiers(context, id or [], last=last)
    if context.options.dry_run:
        return requests.describe(context, ops.MESSAGES_STATE, [{"id": each} for each in identifiers])
    requests.check_fields(context, ops.MESSAGES_STATE)
    got: list[Response] = []
    failures: list[MsgctlError] = []
    for each in identifiers:
        try:
            got.append(requests.read(context, ops.MESSAGES_STATE, {"id": each}))
        except (ConfigurationError, Interrupted, UsageError) as error:  # they are not about this one message
            failures.append(error)
            break
        except MsgctlError as error:
            failures.append(_named(each, error))
    _learn(context, got)
    return ServiceResult(got, len(identifiers), failures=failures)


@command(
    app,
    "watch",
    "msgctl state watch 8f3c2a71",
    "msgctl state watch --last",
    "msgctl state watch 8f3c2a71 --until delivered --until rejected --interval 5 --max-wait 600",
    performs=ops.MESSAGES_STATE,
)
def watch(
    ctx: typer.Context,
    id: Ids = None,
    last: Last = False,
    until: Annotated[
        list[str] | None,
        typer.Option("--until", metavar="STATE", help="State to wait for (repeatable). [default: any final state]"),
    ] = None,
    interval: Annotated[str, typer.Option("--interval", metavar="S", help="Seconds between checks.")] = "2",
    max_wait: Annotated[str, typer.Option("--max-wait", metavar="S", help="Maximum seconds to wait.")] = "300",
) -> ServiceResult | OwnResult:
    """Wait until each message reaches a state; exit 6 if one does not."""
    context = Context.of(ctx)
    watcher = StateWatcher(
        context,
        until=[values.words(state, "--until") for state in until or []],
        interval=values.seconds(interval, "--interval"),
        max_wait=values.seconds(max_wait, "--max-wait", most=31 * 86400),
    )
    identifiers = _identifiers(context, id or [], last=last)
    if context.options.dry_run:
        return requests.describe(context, ops.MESSAGES_STATE, [{"id": each} for each in identifiers])
    requests.check_fields(context, ops.MESSAGES_STATE)
    failures: list[MsgctlError] = []
    try:
        watcher.run(identifiers)
    except (ConfigurationError, Interrupted, UsageError) as error:
        failures.append(error)
    except KeyboardInterrupt:
        failures.append(Interrupted("Interrupted"))
    _learn(context, watcher.responses)
    failures += [_named(each, watcher.failures[each]) for each in identifiers if each in watcher.failures]
    return ServiceResult(watcher.responses, len(identifiers), failures=failures)


def undelivered(context: Context, sent: Sequence[RecipientOutcome], max_wait: float) -> list[MsgctlError]:
    """Follow the messages that were accepted to a final state. Return an error that names those not delivered."""
    accepted = [each for each in sent if each.outcome == ACCEPTED]
    watcher = StateWatcher(context, until=(), interval=2.0, max_wait=max_wait)
    watcher.run(list(dict.fromkeys(each.id for each in accepted if each.id)))
    _learn(context, watcher.responses)
    missing = []
    for each in accepted:
        state = watcher.state(each.id) if each.id else None
        if not is_delivered(state or ""):
            missing.append(f"{each.phone or 'the message'} [{shorten(state or 'state unknown', 60)}]")
    if not missing:
        if accepted:
            context.note("The message was delivered." if len(accepted) == 1 else "All messages were delivered.")
        return []
    named = ", ".join(missing[:5]) + (f" and {len(missing) - 5:,} more" if len(missing) > 5 else "")
    what = f"Not delivered to {named} ({len(missing)} of {len(accepted)} accepted messages)"
    error = next(iter(watcher.failures.values()), None)
    why = f"The first failure: {error.message}. " if error else ""
    return [ConditionError(what, f"{why}To check again: msgctl state get --last")]


def _identifiers(context: Context, ids: list[str], *, last: bool) -> list[str]:
    """Return the ids of the messages to look up, each once."""
    if ids and last:
        raise UsageError("Use either --last or IDs, not both")
    if not ids and not last:
        raise UsageError("ID is missing", "Give message IDs, or --last.")
    return list(dict.fromkeys(values.words(text, "ID") for text in ids or last_ids(context)))


def _learn(context: Context, responses: Sequence[Response]) -> None:
    """Store delivery states in the history. It is a convenience, so nothing is said if that fails."""
    documents = [each.document for each in responses]
    states = {str(each["id"]): str(each["state"]) for each in documents if each.get("id") and each.get("state")}
    if not states or not context.profile.history:
        return
    from msgctl.history import reading

    with suppress(ConfigurationError), reading() as history:
        if history is not None:
            history.learn(states)


def _named(id: str, error: MsgctlError) -> MsgctlError:
    """Return an error that names the message it is about."""
    if not isinstance(error, ConditionError):
        error.what = f"Message {values.quote(id)}: {error.what}"
    return error


def last_ids(context: Context) -> list[str]:
    """Return the message ids of the last send of the profile."""
    profile = context.profile
    if not profile.history:
        raise UsageError(
            f"--last does not work: profile {profile.name} keeps no history (history = false)",
            "Give the ID of each message.",
        )
    from msgctl.history import reading

    with reading() as history:
        entries = [] if history is None else history.last(profile.name, profile.base_url)
        newest = [] if history is None or entries else history.entries(1)
    if not entries:
        other = newest[0]["profile"] if newest else None
        hint = f" For the last message of profile {other}: msgctl -p {other} state get --last"
        raise UsageError(
            f"--last: nothing was sent with profile {profile.name} from this machine",
            f"Give the ID of each message.{hint if other not in (None, profile.name, profiles.ENVIRONMENT) else ''}",
        )
    if ids := [entry["id"] for entry in entries if entry["id"]]:
        return ids
    last = entries[0]
    raise UsageError(
        f"--last: the last message ({last['command']}, {last['time']}) has no ID; its outcome is {last['outcome']}",
        "Give the ID of each message; msgctl history lists earlier ones.",
    )


LAST_CHECK = 1.0
"""Seconds that a check may take once the time is over."""


class StateWatcher:
    """Polls the states of messages; collects the latest ``responses`` and the ``failures``."""

    def __init__(self, context: Context, *, until: Sequence[str], interval: float, max_wait: float) -> None:
        self._context = context
        self._until = frozenset(folded(state) for state in until)
        self._wanted = " or ".join(shorten(state, 40) for state in until) or "a final state"
        self._interval = interval
        self._deadline = context.monotonic() + max_wait
        self._latest: dict[str, Response] = {}
        self._max_wait = max_wait
        self._display: StateProgress | None = None
        self._lost = False
        self.failures: dict[str, MsgctlError] = {}

    @property
    def responses(self) -> list[Response]:
        """The latest response for each message, in the order asked."""
        return list(self._latest.values())

    def run(self, ids: Sequence[str]) -> None:
        """Poll until each message is done or the time is over; then poll once more."""
        self._context.enable_gc()
        with ExitStack() as stack:
            if self._context.printer.shows_verdicts and not self._context.options.verbose:
                self._display = stack.enter_context(self._progress(ids))
            self._wait(ids)

    def _progress(self, ids: Sequence[str]) -> "StateProgress":
        from msgctl.output.progress import StateProgress

        stream, monotonic = self._context.stderr, self._context.monotonic
        color = self._context.has_color(stream)
        return StateProgress(stream, color=color, ids=ids, max_wait=self._max_wait, monotonic=monotonic)

    def _wait(self, ids: Sequence[str]) -> None:
        waiting = list(ids)
        while waiting:
            is_last = self._left() <= 0
            waiting = self._poll(waiting, is_last=is_last)
            if self._display:
                self._display.show({each: _state_of(response) for each, response in self._latest.items()}, len(waiting))
            if is_last:
                break
            if waiting:
                self._context.sleep(max(0.0, min(self._interval, self._left())))
        for each in waiting:
            state = shorten(self.state(each) or "unknown", 60)
            self._fail(each, f"did not reach {self._wanted} in time (now: {state})")

    def _poll(self, ids: Sequence[str], *, is_last: bool) -> list[str]:
        """Check each message once and return those that are not done. Stops when the time is over."""
        waiting: list[str] = []
        for number, each in enumerate(ids):
            if not is_last and self._left() <= 0:
                return [*waiting, *ids[number:]]
            if not self._is_done(each, LAST_CHECK if is_last else self._left()):
                waiting.append(each)
            if is_last and self._lost:
                return [*waiting, *ids[number + 1 :]]
        return waiting

    def _left(self) -> float:
        return self._deadline - self._context.monotonic()

    def _is_done(self, id: str, timeout: float) -> bool:
        self._lost = False
        try:
            response = requests.read(self._context, ops.MESSAGES_STATE, {"id": id}, timeout)
        except (ConfigurationError, Interrupted, UsageError):
            raise
        except MsgctlError as error:
            if not error.retryable:
                self.failures[id] = error
                return True
            self._lost = True
            self._say(f"{shorten(id, 60)}: {error.message}; trying again")
            return False
        before, state = self.state(id), _state_of(response)
        self._latest[id] = response
        if before != state and not self._display:
            self._say(f"{shorten(id, 60)}: {shorten(state, 60)}")
        if folded(state) in self._until:
            return True
        if is_final(state) and self._until:
            self._fail(id, f"ended as {quote(state)}, not {self._wanted}")
        return is_final(state)

    def _say(self, text: str) -> None:
        if self._display:
            self._display.say(text)
        else:
            self._context.note(text)

    def _fail(self, id: str, what: str) -> None:
        hint = f"Check again later: msgctl state get {shorten(id, 60)}"
        self.failures[id] = ConditionError(f"Message {quote(id)} {what}", hint)

    def state(self, id: str) -> str | None:
        """Return the latest state of a message, if it is known."""
        response = self._latest.get(id)
        return None if response is None else _state_of(response)


def _state_of(response: Response) -> str:
    state = response.document.get("state")
    return "missing" if state is None else str(state)
