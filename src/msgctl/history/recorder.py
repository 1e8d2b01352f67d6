"""Record sends in the history. A send that cannot be recorded is sent anyway."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from msgctl import operations as ops
from msgctl.errors import ConfigurationError, MsgctlError, RefusedError
from msgctl.history.store import NOT_SENT, History, Send
from msgctl.operations import Operation
from msgctl.recipients import REFUSED, UNKNOWN, RecipientOutcome

COMMANDS = {
    ops.SEND_SMS.name: "sms send",
    ops.SEND_CALL.name: "call send",
    ops.CHATAPP_SEND.name: "chatapp send",
    ops.CHATAPP_ORDER.name: "chatapp order",
    ops.SMS_2FA.name: "2fa send-sms",
    ops.CALL_2FA.name: "2fa send-call",
    ops.CHATAPP_2FA.name: "2fa send-chatapp",
    ops.BLOCK_PHONE.name: "block add",
}
"""The commands that are recorded, by operation."""

MOST_RESPONSE = 4000
"""How much of a response is stored, in characters."""
_CODE = re.compile(r"(?<![0-9])[0-9]{4,8}(?![0-9])")


class Recorder:
    """Records one send for the time of a block: before the block, and its result.

    The block calls `result` with what the service said; if it raises instead, the error tells the outcome. ``warn``
    is called with the error if the history cannot be written. Without a path, nothing is recorded.
    """

    def __init__(
        self, path: Path | None, send: Send, phones: Sequence[str | None], warn: Callable[[ConfigurationError], None]
    ) -> None:
        self._path, self._send, self._phones, self._warn = path, send, phones, warn
        self._history: History | None = None
        self._number: int | None = None
        self._is_begun = False
        self._result: tuple[Sequence[RecipientOutcome], str] | None = None

    def __enter__(self) -> Recorder:
        try:
            if self._path is not None:
                with self._warned():
                    self._history = History(self._path)
                    self._number = self._history.begin(self._send, self._phones)
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        self._is_begun = True
        return self

    def result(self, entries: Sequence[RecipientOutcome], response: str = "") -> None:
        """Record the outcome of each recipient, and the text of a response that leaves one in doubt."""
        self._result = (entries, stored(self._send.command, response))
        self._finish()

    def __exit__(self, _: object, error: BaseException | None, traceback: TracebackType | None) -> None:
        # A second Ctrl-C must not replace the error that says whether the request was sent.
        with suppress(KeyboardInterrupt):
            if error is not None:
                if self._result is None:
                    body = getattr(error, "body", "")
                    outcome = self._outcome(error)
                    self._result = (
                        [RecipientOutcome(phone, outcome) for phone in self._phones],
                        stored(self._send.command, body),
                    )
                self._finish()
            if self._history is not None:
                self._history.close()

    def _outcome(self, error: BaseException) -> str:
        if isinstance(error, RefusedError):
            return REFUSED
        nothing_sent = not self._is_begun or (isinstance(error, MsgctlError) and error.nothing_sent)
        return NOT_SENT if nothing_sent else UNKNOWN

    def _finish(self) -> None:
        if self._history is not None and self._number is not None and self._result is not None:
            with self._warned():
                self._history.finish(self._number, *self._result)

    @contextmanager
    def _warned(self) -> Iterator[None]:
        try:
            yield
        except ConfigurationError as error:
            self._warn(error)


def stored(command: str, response: str) -> str:
    """Return a response as the history stores it: verification codes are masked."""
    response = response[:MOST_RESPONSE]
    return _CODE.sub("******", response) if command.startswith("2fa") else response


def phones_of(values: Mapping[str, Any], body: bytes | None) -> list[str | None]:
    """Return the recipients of a request; None if a body of the user's own names none."""
    phone = values.get("phone") if body is None else _object(body).get("phone")
    if isinstance(phone, (list, tuple)) and body is None:
        return list(phone)
    return [str(phone) if isinstance(phone, (str, int)) else None]


def message_of(operation: Operation, values: Mapping[str, Any], body: bytes | None) -> str:
    """Return what is sent as one text: the message, the audio, the template and its values, or the app name."""
    if operation in (ops.CHATAPP_SEND, ops.CHATAPP_ORDER):
        given = values.get("body") if body is None else _template_values(body)
        text = (body or b"").decode() if given is None else ", ".join(given)
        return f"{values['template']}: {text}" if text else str(values["template"])
    if audio := values.get("audio-code"):
        return f"audio {audio}"
    if "app-name" in values:
        return f"verification code for {values['app-name']}"
    return str(values.get("sms") or values.get("message") or values.get("name") or "")


def _template_values(body: bytes) -> list[str] | None:
    """Return the template values of a body of the usual shape, else None."""
    document = _object(body)
    given = document.get("body")
    is_usual = document.keys() == {"phone", "body"} and isinstance(given, list)
    return given if is_usual and all(isinstance(each, str) for each in given or ()) else None


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
