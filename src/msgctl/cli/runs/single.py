"""The request of a command: its dry run, its intent and outcome in the store, and sending it once per key.

Commands that send to people need the store. Verification codes and blocks are sent without it, with a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from msgctl import operations
from msgctl.cli.shell.context import Context
from msgctl.errors import STORE_ERRORS, MsgctlError, OutcomeUnknownError, RefusedError, StoreNotReachedError
from msgctl.http.request import Request
from msgctl.http.response import Response, outcomes_after, stored_details, stored_response
from msgctl.jsontext import ShapeError
from msgctl.outcomes.outcome import ACCEPTED, REFUSED, UNKNOWN, Outcome
from msgctl.output.fields import flat
from msgctl.output.result import Document, Layout, OwnResult, Result, ServiceResult
from msgctl.text import some_of
from msgctl.values import quote

if TYPE_CHECKING:
    from pathlib import Path

    from msgctl.cli.options.send import SendOptions, WaitOptions
    from msgctl.store.sends import Key, SendRecord, Single, StoredResult

MESSAGE_PARAMETERS = ("sms", "message", "audio-code", "template", "body", "app-name")
"""The parameters that the history shows as the message."""
RESEND = "If it was not sent, send it with --resend-unknown."
CODE = r"(?<![\w-])(?=[\w-]*\d)[\w-]{1,12}(?![\w-])|(?<=[-_])\d{5,8}(?![^\W_])"
"""Text that may be a verification code, which is never stored: a word with a digit, but not a UUID."""
MIN_CODE = 4
"""Minimum characters of a code. A shorter text is a status, such as 1."""


def send_message(context: Context, request: Request, options: SendOptions, wait: WaitOptions | None = None) -> Result:
    """Make a request to people, at most once per key; with --wait, track its messages, too.

    Raises UsageError for numbers that have opted out.
    """
    options.check()
    if wait is not None:
        wait.check()
    request = request._replace(contacts=request.contacts or request.phones)
    key = None
    if options.once is not None:
        key = _key(context, request, options.once, resend_unknown=options.resend_unknown)
        context.run.is_once = not options.resend_unknown
    channel = None if options.ignore_optout else request.operation.channel
    result = run_request(context, request, key=key, channel=channel)
    if isinstance(result, OwnResult) or wait is None or not wait.wait:
        return result
    from msgctl.cli.runs.tracking import track_sent

    return track_sent(context, result, wait.max_wait or 300.0, wait.until)


def run_request(
    context: Context, request: Request, *, key: Key | None = None, channel: str | None = None
) -> ServiceResult | OwnResult:
    """Make a request like `perform`; in a dry run, describe it instead."""
    if context.options.dry_run:
        return dry_run(context, request)
    try:
        return perform(context, request, key=key, channel=channel)
    except MsgctlError as error:
        if responses := printed_beside(context, error):
            return ServiceResult(responses, failures=[error])
        raise


def perform(
    context: Context,
    request: Request,
    *,
    key: Key | None = None,
    channel: str | None = None,
    may_repeat: bool = False,
) -> ServiceResult:
    """Make a request. If it sends something or blocks a number, store its intent and its outcome.

    It is sent at most once under ``key``. People who have opted out of ``channel`` are refused. Later jobs count the
    same message to these people as a repeat, unless ``may_repeat``.
    """
    if not request.operation.is_recorded:
        return ServiceResult([context.client.send(request)], values=request.values)
    from msgctl.store.sends import SendRecord, StoredResult

    single = _single(context, request, channel, may_repeat=may_repeat)
    store = context.store if request.contacts else context.optional_store
    record = SendRecord(store, single, key) if store else None
    earlier = record.earlier() if record else None
    result = earlier or Attempt(context, request, record).make()
    if isinstance(result, StoredResult):
        return _replayed(context, request, result, key)
    return result


class Attempt:
    """One attempt to send a request: its intent, the request, and its outcome in the store."""

    def __init__(self, context: Context, request: Request, record: SendRecord | None) -> None:
        self._context = context
        self._client = context.client  # before the intent, because it fails without a credential
        self._request = request
        self._record = record
        self._sent_before = context.run.sent.count
        self._outcomes: Sequence[Outcome] = ()
        """The outcomes of the recipients; empty if the request was certainly not sent."""

    def make(self) -> ServiceResult | StoredResult:
        """Make the request and return its result; or return the result of an earlier send under its key."""
        end: ServiceResult | MsgctlError | None = None
        try:
            if earlier := self._begin():
                return earlier
            end = self._make_request()
            self._store(end)
        except MsgctlError:  # of the store, before anything was sent
            raise
        except BaseException as interruption:  # Ctrl-C at any instruction: a request may have left this machine
            end = end or self._interrupted()
            self._store(end)
            if isinstance(end, ServiceResult) or not isinstance(interruption, KeyboardInterrupt):
                raise
        if isinstance(end, MsgctlError):
            raise end
        return end

    def _begin(self) -> StoredResult | None:
        """Store the intent, or return the result of an earlier send. Only requests to people need the store."""
        try:
            return self._record.begin() if self._record else None
        except STORE_ERRORS as error:
            if self._record and self._request.contacts:
                with suppress(*STORE_ERRORS):  # the intent may be stored, although its transaction failed
                    self._record.store.db.reconnect()
                    self._record.end([])
                raise
            self._context.warn(f"{error.what}. This is not recorded in the history.")
            self._record = None
            return None

    def _make_request(self) -> ServiceResult | MsgctlError:
        """Make the request, and return its result or error."""
        may_send = self._record.may_send if self._record else None
        try:
            return judged(self._client.send(self._request, may_send=may_send))
        except MsgctlError as error:
            return self._failed(error)

    def _failed(self, error: MsgctlError) -> MsgctlError:
        """Return the error of the request, with the outcomes of its recipients if it was sent or refused."""
        self._outcomes = ()
        if isinstance(error, RefusedError) or self._context.run.sent.count > self._sent_before:
            error.recipients = self._outcomes = outcomes_after(error, self._request.phones)
        return error

    def _interrupted(self) -> MsgctlError:
        """Return the error of a request that was interrupted at any moment, perhaps while the client counted it."""
        from msgctl.http.client import interrupted

        sent = self._context.run.sent
        if not self._client.is_sent:
            sent.count = self._sent_before
        return self._failed(interrupted(self._request, is_sent=sent.count > self._sent_before))

    def _store(self, end: ServiceResult | MsgctlError) -> None:
        """Store how the request ended. A store that cannot be used does not change the result of the command."""
        if isinstance(end, ServiceResult):
            self._outcomes = end.outcomes
        self._context.run.recipients = outcomes = self._outcomes
        if (record := self._record) is None:
            return
        from msgctl.store import removal

        if not self._request.contacts and not self._request.operation.blocks:  # the response may repeat the code
            outcomes = [
                outcome._replace(status=_without_code(outcome.status), error=_without_code(outcome.error))
                for outcome in outcomes
            ]
        result = _result_to_keep(end, outcomes)
        try:
            try:
                record.end(outcomes, result)
            except StoreNotReachedError:  # the session may have been lost during the request
                record.store.db.reconnect()
                record.end(outcomes, result)
        except STORE_ERRORS as error:
            under = " under --once" if record.key else ""
            self._context.warn(f"The result is not stored{under}: {error.what}.")
            return
        if record.key:
            with suppress(*STORE_ERRORS):  # the next send under a key deletes them
                removal.delete_old_keys(record.store)


def _result_to_keep(end: ServiceResult | MsgctlError, outcomes: Sequence[Outcome]) -> StoredResult | None:
    """Return the result that is stored under a key; None frees the key, because nothing was sent."""
    from msgctl.store.sends import StoredResult

    if isinstance(end, ServiceResult):
        (response,) = end.responses
        code = end.failures[0].exit_code if end.failures else 0
        return StoredResult(code, response.http_status, response.body)
    if isinstance(end, RefusedError) or not outcomes:
        return None
    return StoredResult(5, end.http_status, end.body.encode() or None, end.message, end.hint or "")


def _without_code(text: str | None) -> str | None:
    return re.sub(CODE, "****", text) if text and len(text) >= MIN_CODE else text


def judged(response: Response) -> ServiceResult:
    """Return the result of a send. Recipients that are refused or not mentioned determine its exit code."""
    error = response.error()
    failures = [error] if error else []
    return ServiceResult([response], response.outcomes, response.request.values, failures)


def printed_beside(context: Context, error: MsgctlError) -> list[Response]:
    """Return the 2xx response that --json prints beside its error, if there is one."""
    if error.response is None or not context.is_json:
        return []
    return [error.response]


# --- the store


def _single(context: Context, request: Request, channel: str | None, *, may_repeat: bool) -> Single:
    """Return the content of a request that the store keeps."""
    from msgctl.store.sends import Single

    message = {name: request.values[name] for name in MESSAGE_PARAMETERS if request.values.get(name)}
    if request.is_own_body and request.json is not None:
        message["own_body"] = request.json.decode()
    if request.operation.blocks and request.values.get("name"):
        message["message"] = request.values["name"]
    digest = None
    if request.contacts and not may_repeat:
        digest = _digest(request)
    return Single(
        account=context.profile.account,
        profile=context.profile.name,
        command=request.operation.name,
        parameters=json.dumps(message),
        phones=request.contacts or request.phones,
        is_contact=bool(request.contacts),
        digest=digest,
        channel=channel,
    )


def _digest(request: Request) -> bytes:
    """Return the digest of a message, which is the same in single sends and jobs."""
    if request.is_own_body:
        content = {name: value for name, value in json.loads(request.json or b"{}").items() if name != "phone"}
    else:
        content = {name: request.values[name] for name in ("sms", "message", "body") if name in request.values}
    return operations.message_digest(request.operation, request.values)(json.dumps(content))


def _key(context: Context, request: Request, key: str, *, resend_unknown: bool) -> Key:
    """Return a ``--once`` key with a digest of the operation, its recipients in any order, and all other values."""
    import hashlib

    from msgctl.store.sends import Key

    values: dict[str, Any] = {**request.values}
    if "country-code" in values:
        values["country-code"] = None  # as 0.3.0 stored a key without a country; the number has it
    if isinstance(numbers := values.get("phone"), (list, tuple)):
        values["phone"] = sorted(set(numbers))
    content = json.dumps([request.operation.name, values], sort_keys=True).encode()
    if request.is_own_body and request.json is not None:
        content += request.json
    is_final = partial(_is_final, context, request)
    return Key(key, hashlib.sha256(content).digest(), context.options.timeout, resend_unknown, is_final)


def _is_final(context: Context, request: Request, earlier: StoredResult) -> bool:
    """Return whether the message of a result with an unknown outcome must not be resent.

    Either words that were added to the profile make the outcome certain, or a recipient certainly has the message.
    """
    if earlier.message or earlier.http_status is None:
        return False
    response = stored_response(request, earlier.body or b"", earlier.http_status, context.words)
    outcomes = {outcome.outcome for outcome in response.outcomes}
    return ACCEPTED in outcomes or UNKNOWN not in outcomes


def _replayed(context: Context, request: Request, earlier: StoredResult, key: Key | None) -> ServiceResult:
    """Return the stored result of an earlier run. Raises OutcomeUnknownError if it is unknown."""
    context.run.sent.add(1)  # before the rest, which Ctrl-C may interrupt
    context.run.is_replayed = True
    context.note_sandbox()
    content = earlier.body or b""
    name = quote(key.key) if key else ""
    if not earlier.message and earlier.http_status is not None:
        context.note(f"This is the result of the first run with --once {name}.")
        result = judged(stored_response(request, content, earlier.http_status, context.words))
        if all(outcome.outcome == REFUSED for outcome in result.outcomes):
            context.run.sent.add(-1)
        context.run.recipients = result.outcomes
        accepted = [outcome.phone for outcome in result.outcomes if outcome.phone and outcome.outcome == ACCEPTED]
        hint = ""
        if key and key.resend_unknown and accepted:
            hint = f"Nothing is resent, because {some_of(accepted)} got it. Send to the others with another key."
        elif not accepted and any(outcome.outcome == UNKNOWN for outcome in result.outcomes):
            hint = RESEND
        if hint and result.failures:
            result = result._replace(failures=[result.failures[0].with_hint(hint)])
        return result
    error = OutcomeUnknownError(
        f"The first run with --once {name} may have sent the message",
        "\n".join(filter(None, (f"The first run: {earlier.message}", earlier.hint, RESEND))),
        details=stored_details(earlier.http_status, content),
        recipients=[Outcome(phone, UNKNOWN) for phone in request.phones],
    )
    if earlier.http_status is not None and 200 <= earlier.http_status < 300:
        with suppress(ShapeError):  # the first run printed it, too, unless it is not JSON
            error.response = stored_response(request, content, earlier.http_status)
    raise error


# --- the dry run


def dry_run(context: Context, *requests: Request, save: Path | None = None) -> OwnResult:
    """Return descriptions of requests as a result, with columns such as ``headers.Accept`` and ``form.phone``."""
    documents: list[Document] = [request.described(context.profile.base_url) for request in requests]
    rows = [flat(document) for document in documents]
    columns = tuple(dict.fromkeys(name for row in rows for name in row))
    if save is not None:
        return OwnResult(rows, columns, save=save)
    if not context.is_json:
        documents = rows
    if len(documents) == 1:
        return OwnResult(documents[0], columns, Layout.REQUEST)
    return OwnResult(documents, columns, Layout.REQUEST)
