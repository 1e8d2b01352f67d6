"""A single send in the store: its intent before the request, its outcome afterwards, and its ``--once`` key.

Commands that send to people need the store. Verification codes and blocks are sent without it, with a warning.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgctl import operations
from msgctl.cli.shell.context import Context
from msgctl.errors import STORE_ERRORS, MsgctlError, RefusedError
from msgctl.http.request import Request
from msgctl.outcomes.judge import Outcome

if TYPE_CHECKING:
    from msgctl.store.once import Begun, Key, Result

MESSAGE_PARAMETERS = ("sms", "message", "audio-code", "template", "body", "app-name")
"""The parameters that the history shows as the message."""
MAX_RESPONSE = 4000
"""Maximum characters of a response in doubt that are stored."""


def key_of(context: Context, request: Request, key: str, *, resend_unknown: bool) -> Key:
    """Return a ``--once`` key with a digest of the operation, its recipients in any order, and all other values."""
    from msgctl.store.once import Key

    values: dict[str, Any] = dict(request.values)
    if isinstance(phones := values.get("phone"), (list, tuple)):
        values["phone"] = sorted(set(phones))
    content = json.dumps([request.operation.name, values], sort_keys=True).encode()
    if request.is_own_body and request.json is not None:
        content += request.json
    return Key(key, hashlib.sha256(content).digest(), context.options.timeout, resend_unknown)


def earlier(context: Context, key: Key) -> Result | None:
    """Return the result of an earlier send under a key, before the credential is needed."""
    from msgctl.store import once

    return once.find(context.store, context.profile.account, key)


def begin(
    context: Context, request: Request, *, key: Key | None, channel: str | None, may_repeat: bool
) -> Begun | Result | None:
    """Store the intent of a request; return None if it is sent without the store.

    People who have opted out of ``channel`` are refused. With ``may_repeat``, later jobs do not count the message as a
    repeat. Return the result of an earlier send under the key, if there is one.
    """
    from msgctl.store import once

    digest = None
    if request.people and not may_repeat:
        digest = _digest(request)
    single = once.Single(
        account=context.profile.account,
        profile=context.profile.name,
        command=request.operation.name,
        parameters=json.dumps(_message(request)),
        phones=request.people or request.phones,
        is_contact=bool(request.people),
        digest=digest,
        channel=channel,
    )
    if request.people:
        return once.begin(context.store, single, key)
    if context.optional_store is None:
        return None
    try:
        return once.begin(context.optional_store, single)
    except STORE_ERRORS as error:
        context.warn(f"{error.what}. This is not recorded in the history.")
        return None


def end(
    context: Context,
    begun: Begun | None,
    outcomes: Sequence[Outcome],
    result: Result,
    *,
    body: str = "",
) -> None:
    """Store the outcome of a request that got a response; ``body`` is the response if an outcome is in doubt."""
    if begun is not None:
        _end(context, begun, outcomes, result, body[:MAX_RESPONSE])


def fail(context: Context, begun: Begun | None, error: MsgctlError) -> None:
    """Store the outcome of a request that failed. The key is free again if it was certainly not carried out."""
    from msgctl.store.once import Result

    if begun is None:
        return
    if error.nothing_sent and not isinstance(error, RefusedError):
        undo(context, begun)
        return
    result = None
    outcome = "refused"
    if not isinstance(error, RefusedError):
        outcome = "unknown"
        result = Result(5, error.http_status, error.body.encode() or None, error.message, error.hint or "")
    outcomes = [Outcome(phone, outcome, error=error.message) for phone in begun.intent.phones]
    _end(context, begun, outcomes, result, error.body[:MAX_RESPONSE])


def undo(context: Context, begun: Begun | None) -> None:
    """Delete the intent of a request that was certainly not sent, and free its key."""
    if begun is not None:
        _end(context, begun, [], None, "")


def _end(
    context: Context,
    begun: Begun,
    rows: Sequence[Outcome],
    result: Result | None,
    body: str,
) -> None:
    from msgctl.store import once, removal

    try:
        store = context.optional_store or context.store
        once.end(store, begun, rows, result, body=body or None)
        if begun.key:
            removal.delete_old_keys(store)
    except STORE_ERRORS as error:
        under = " under --once" if begun.key else ""
        context.warn(f"The result is not stored{under}: {error.what}.")


def _message(request: Request) -> Mapping[str, Any]:
    """Return the parameters that the history shows, and the user's own body as text."""
    message = {name: request.values[name] for name in MESSAGE_PARAMETERS if request.values.get(name)}
    if request.is_own_body and request.json is not None:
        message["own_body"] = request.json.decode()
    if request.operation is operations.BLOCK_PHONE and request.values.get("name"):
        message["message"] = request.values["name"]
    return message


def _digest(request: Request) -> bytes:
    """Return the digest of a message; it is the same in a job."""
    if request.is_own_body:
        content = {name: value for name, value in json.loads(request.json or b"{}").items() if name != "phone"}
    else:
        content = {name: request.values[name] for name in ("sms", "message", "body") if name in request.values}
    return operations.message_digest(request.operation, request.values)(json.dumps(content))
