"""A dispatch as the history takes it: noted before it is made, and when it is known what came of it.

A dispatch that cannot be noted is made all the same, and its outcome is what it is: the history is never in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgctl import operations as ops
from msgctl import recipients as attribution
from msgctl.errors import ConfigurationError, MsgctlError, RefusedError
from msgctl.http.request import Request
from msgctl.http.response import Response, ShapeError, load_json
from msgctl.storage import paths
from msgctl.times import timestamp

if TYPE_CHECKING:
    from msgctl.cli.context import Context
    from msgctl.history import Entry, History, Outcome

COMMANDS = {
    ops.SEND_SMS.name: "sms send",
    ops.SEND_CALL.name: "call send",
    ops.CHATAPP_SEND.name: "chatapp send",
    ops.CHATAPP_ORDER.name: "chatapp order",
}
"""What is noted. The operations that send verification codes are not among them."""

_Pair = tuple[str | None, Mapping[str, Any] | None]

MOST_UNASKED = 100
"""Entries that are noted beyond those asked for; a hostile answer could hold a million."""


@contextmanager
def noted(context: Context, request: Request) -> Iterator[Callable[[Response], None]]:
    """Note in the history that a request is about to be made in the block, and how that ends.

    The block calls what it is given with the answer. Does nothing where a request is no dispatch, or the profile keeps
    no history.
    """
    if request.operation.name not in COMMANDS or not context.profile.history:
        yield lambda _: None
        return
    note = _Note(context, request)
    try:
        note.intend()
        yield note.answered
    except BaseException as error:
        # A second Ctrl-C must not take the place of what is known of the request.
        with suppress(KeyboardInterrupt):
            note.ended(error)
        raise


class _Note:
    """One dispatch on its way into the history."""

    def __init__(self, context: Context, request: Request) -> None:
        self._context = context
        self._request = request
        self._phones = _phones(request)
        self._history: History | None = None
        self._number: int | None = None
        self._is_intended = False
        self._answer: Response | None = None

    def intend(self) -> None:
        """Note that the request is about to leave."""
        from msgctl.history import Dispatch, History

        profile = self._context.profile
        dispatch = Dispatch(
            timestamp(self._context.clock()),
            profile.name,
            profile.base_url,
            COMMANDS[self._request.operation.name],
            _message(self._request),
        )
        with self._warned():
            self._history = self._context.on_close(History(paths.history_file()))
            self._number = self._history.intend(dispatch, self._phones)
        self._is_intended = True

    def answered(self, answer: Response) -> None:
        """Note what the service answered."""
        self._answer = answer
        self._settle(_entries(answer, self._phones))

    def ended(self, error: BaseException) -> None:
        """Note that no answer came, or that the answer was not noted to the end."""
        from msgctl.history import Entry

        if self._answer is not None:
            self._settle(_entries(self._answer, self._phones))
        else:
            outcome = self._outcome(error)
            self._settle([Entry(phone, outcome) for phone in self._phones])

    def _outcome(self, error: BaseException) -> Outcome:
        from msgctl.history import Outcome

        if isinstance(error, RefusedError) and error.certain:
            return Outcome.REFUSED
        nothing_sent = not self._is_intended or (isinstance(error, MsgctlError) and error.nothing_sent)
        return Outcome.NOT_SENT if nothing_sent else Outcome.UNKNOWN

    def _settle(self, entries: Sequence[Entry]) -> None:
        if self._history is not None and self._number is not None:
            with self._warned():
                self._history.settle(self._number, entries)

    @contextmanager
    def _warned(self) -> Iterator[None]:
        """Say that something is not noted, also under --quiet, which is about notes and progress."""
        try:
            yield
        except ConfigurationError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            self._context.say(self._context.wrapped(f"Warning: not noted in the history: {error.message}.{hint}"))


def _phones(request: Request) -> list[str | None]:
    """The recipients of a request; None where a body of the user's own names none."""
    if request.json is None:
        return list(dict(request.form)["phone"].split(","))
    return [_text(_body(request).get("phone"))]


def _message(request: Request) -> str:
    """What is sent, in one text: the message, the audio, or the template and its values."""
    if request.json is None:
        form = dict(request.form)
        return form.get("sms") or form.get("message") or f"audio-code {form['audio-code']}"
    template = dict(request.query)["template"]
    body = _body(request)
    given = body.get("body")
    if (
        body.keys() != {"phone", "body"}
        or not isinstance(given, list)
        or not all(isinstance(each, str) for each in given)
    ):
        return f"{template}: {request.json.decode()}"
    return f"{template}: {', '.join(given)}" if given else template


def _body(request: Request) -> Mapping[str, Any]:
    """The JSON object that is sent; empty where it is nested as deep as can be read, and not from here."""
    try:
        body: Mapping[str, Any] = load_json(request.json or b"")
    except ShapeError:
        return {}
    return body


def _entries(answer: Response, phones: Sequence[str | None]) -> list[Entry]:
    """What the answer says of each recipient, in the order asked, and then what else it tells of.

    A recipient that it is silent about while it tells of others may have been left out.
    """
    from msgctl.history import Entry, Outcome

    if not answer.operation.answer.entries:
        pairs: Iterable[_Pair] = [(phones[0], answer.document)]
    elif told := answer.document.get("data"):
        pairs = _paired(list(islice(told, len(phones) + MOST_UNASKED)), phones)
    else:
        pairs = [(phone, {}) for phone in phones]
    # An SMS has a status, a call a state.
    return [
        Entry(phone)
        if entry is None
        else Entry(
            phone or _text(entry.get("phone")),
            Outcome.ACCEPTED,
            _text(entry.get("id")),
            _text(entry.get("status", entry.get("state"))),
            _text(entry.get("credits")),
        )
        for phone, entry in pairs
    ]


def _paired(told: Sequence[Mapping[str, Any]], phones: Sequence[str | None]) -> Iterator[_Pair]:
    """Each recipient with its entry, if any; then each entry that is nobody's."""
    places = attribution.places(told, [phone or "" for phone in phones])
    for phone, place in zip(phones, places, strict=True):
        yield phone, None if place is None else told[place]
    claimed = set(places)
    yield from ((None, entry) for place, entry in enumerate(told) if place not in claimed)


def _text(value: Any) -> str | None:
    """A plain value of JSON as text; what is no plain value is nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str) else None  # a number is a string of digits, too
