"""Record sends in the history. A send that cannot be recorded is sent anyway."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from typing import Any

from msgctl import operations as ops
from msgctl.errors import ConfigurationError, MsgctlError, RefusedError
from msgctl.history.store import NOT_SENT, History, Send, path
from msgctl.operations import Operation
from msgctl.recipients import REFUSED, UNKNOWN, RecipientOutcome

MOST_RESPONSE = 4000
"""How much of a response is stored, in characters."""
Record = Callable[[Sequence[RecipientOutcome], str], None]
"""Records the outcome of each recipient, and the text of a response that leaves one in doubt."""
_CODE = re.compile(r"(?<![0-9])[0-9]{4,8}(?![0-9])")


@contextmanager
def recorded(
    send: Send, phones: Sequence[str | None], warn: Callable[[ConfigurationError], None], *, is_kept: bool = True
) -> Iterator[Record]:
    """Record one send before the block, and its result after it.

    The block calls the yielded function with the outcomes; if it raises instead, the outcome follows from the error.
    ``warn`` is called with the error if the history cannot be written. Without ``is_kept``, nothing is recorded.
    """
    with ExitStack() as stack:
        finish: Callable[[Sequence[RecipientOutcome], str], None] | None = None
        result: tuple[Sequence[RecipientOutcome], str] | None = None

        def record(entries: Sequence[RecipientOutcome], response: str) -> None:
            nonlocal result
            result = entries, stored(send.command, response)
            if finish is not None:
                try:
                    finish(*result)
                except ConfigurationError as error:
                    warn(error)

        try:
            if is_kept:
                history = stack.enter_context(closing(History(path())))
                finish = partial(history.finish, history.begin(send, phones))
        except ConfigurationError as error:
            warn(error)
        try:
            yield record
        except BaseException as error:
            with suppress(KeyboardInterrupt):  # a second Ctrl-C must not hide whether the request was sent
                record(
                    *result
                    or ([RecipientOutcome(each, _outcome(error)) for each in phones], getattr(error, "body", ""))
                )
            raise


def _outcome(error: BaseException) -> str:
    if isinstance(error, RefusedError):
        return REFUSED
    return NOT_SENT if isinstance(error, MsgctlError) and error.nothing_sent else UNKNOWN


def stored(command: str, response: str) -> str:
    """Return a response as the history stores it: verification codes are masked."""
    response = response[:MOST_RESPONSE]
    return _CODE.sub("******", response) if command.startswith("2fa") else response


def phones_of(values: Mapping[str, Any], body: bytes | None) -> list[str | None]:
    """Return the recipients of a request; None if a body of the user's own names none."""
    phone = values.get("phone")
    if body is not None:
        with suppress(ValueError, RecursionError, AttributeError):  # not JSON, or not an object
            phone = json.loads(body).get("phone")
    elif isinstance(phone, (list, tuple)):
        return list(phone)
    return [str(phone) if isinstance(phone, (str, int)) else None]


def message_of(operation: Operation, values: Mapping[str, Any], body: bytes | None) -> str:
    """Return what is sent as one text: the message, the audio, the template and its values, or the app name."""
    if operation in (ops.CHATAPP_SEND, ops.CHATAPP_ORDER):
        text = ", ".join(values.get("body", ())) if body is None else body.decode()
        return f"{values['template']}: {text}" if text else str(values["template"])
    if audio := values.get("audio-code"):
        return f"audio {audio}"
    if "app-name" in values:
        return f"verification code for {values['app-name']}"
    return str(values.get("sms") or values.get("message") or values.get("name") or "")
