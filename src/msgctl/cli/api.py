"""`msgctl api`: any request with a profile's credentials, for endpoints that msgctl has no command for."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl import operations, values
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.cli.inputs import MOST_BODY_BYTES, read
from msgctl.cli.tree import ACCOUNT, command, group
from msgctl.config.base_url import path_fault, percent_encoded, without_secrets
from msgctl.errors import MsgctlError, RefusedError, UsageError
from msgctl.http.request import Pairs, Request
from msgctl.http.response import ShapeError, load_json
from msgctl.operations import Effect, Operation, Place, Record
from msgctl.output.result import Format, OwnResult, RawResult
from msgctl.values import quote

if TYPE_CHECKING:
    import httpx

    from msgctl.http.client import Client


app = group("")


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ADDED = ("client", "key")
"""Parameters that come from the profile."""
ANYTHING = Record("answer", ())
CHECK_PATH = (
    "Check METHOD and PATH. PATH is relative to the base URL, which ends in a version such as /api/v1; "
    "msgctl -n api … shows the whole URL."
)

Parameters = list[str] | None


@command(
    app,
    "api",
    "msgctl api GET /balance",
    "msgctl api POST /send-sms -f phone=573001234567 -f sms=Hello",
    "msgctl api POST /chatapp/send -q template=appointment --input body.json",
    "msgctl api -i GET /balance",
    effect=Effect.SENDS,
    panel=ACCOUNT,
)
def api(
    ctx: typer.Context,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, POST, PUT, PATCH or DELETE.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Path below the base URL.")],
    form: Annotated[
        Parameters,
        typer.Option("--form", "-f", metavar="NAME=VALUE", help="Form field (repeatable)."),
    ] = None,
    query: Annotated[
        Parameters,
        typer.Option("--query", "-q", metavar="NAME=VALUE", help="Query parameter (repeatable)."),
    ] = None,
    body: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE", help="Send the JSON in this file as the body; - is standard input."),
    ] = None,
    include: Annotated[
        bool, typer.Option("--include", "-i", help="Print the status line and the headers first.")
    ] = False,
) -> RawResult | OwnResult:
    """Make any request with the profile's credentials.

    Use it for endpoints msgctl has no command for. Client and key are added where the service expects them. The body of
    the response is printed unchanged. A non-success status exits with 1.

    GET requests may be retried; all other requests are sent only once.

    For this command -q means --query; --quiet has no short form.
    """
    context = Context.of(ctx)
    verb = values.choice(method, METHODS, "method")
    where = _path(path)
    made = _request(verb, where, _parameters(form, "-f"), _parameters(query, "-q"), _json(context, body, form))
    context.operation = made.operation
    _refuse_columns(context)
    if context.options.dry_run:
        return requests.described([made.described(context.profile.base_url)])
    reply = context.client.fetch(made)
    context.carried_out |= reply.is_success and made.operation.effect is not Effect.READS
    return RawResult(reply.content, _head(reply) if include else (), failures=[*_refusal(context.client, made, reply)])


def _path(text: str) -> str:
    """Return the path percent-encoded, with its leading slash."""
    if fault := path_fault(text):
        shown = without_secrets(text)
        left_out = re.search("[?#]", text)  # the rest may contain the key
        raise UsageError(
            f"{quote(f'{shown}{left_out[0]}…' if left_out else shown)} is not a valid PATH: {fault}",
            "Give the path below the base URL, for example /balance, and parameters with -q NAME=VALUE.",
        )
    return percent_encoded(text if text.startswith("/") else f"/{text}")


def _parameters(texts: Parameters, option: str) -> Pairs:
    return tuple(_parameter(text, option) for text in texts or ())


def _parameter(text: str, option: str) -> tuple[str, str]:
    """Return name and value, split at the first ``=``."""
    name, equals, value = text.partition("=")
    if not equals:
        advice = "For api, -q means --query; --quiet has no short form." if option == "-q" else None
        raise UsageError(f"{quote(re.split('[: ]', text)[0])} has no value: give {option} NAME=VALUE", advice)
    if not name.strip():
        raise UsageError(f"A parameter has no name: give {option} NAME=VALUE")
    if name in ADDED:
        raise UsageError(
            f"Do not give {name} with {option}: it comes from the profile",
            "Choose another profile with -p.",
        )
    values.words(name, f"A name in {option}")
    advice = "Leave it out: msgctl sends no empty values."
    return name, values.prose(value, f"The value of {quote(name)} in {option}", advice)


def _json(context: Context, path: str | None, form: Parameters) -> bytes | None:
    """Return the bytes of the JSON document to send, without a byte order mark (RFC 8259, section 8.1)."""
    if path is None:
        return None
    if form:
        raise UsageError("Use either --input or -f, not both")
    content = read(context, path, MOST_BODY_BYTES, "a JSON document").removeprefix(BOM_UTF8)
    try:
        load_json(content)
    except ShapeError as error:
        raise UsageError(f"The body is not JSON: {error}") from None
    return content


def _request(method: str, path: str, form: Pairs, query: Pairs, body: bytes | None) -> Request:
    """Return the request; it is sent only once unless it is a GET. Raises UsageError for a GET with a body."""
    if method == "GET" and (form or body is not None):
        raise UsageError("A GET request has no body", "Give parameters with -q NAME=VALUE.")
    operation = Operation(
        f"{method} {path}",
        method,
        path,
        Effect.READS if method == "GET" else Effect.SENDS,
        (),
        ANYTHING,
        _place_of_credentials(method, path, has_json=body is not None),
    )
    return Request(operation, query, form, body)


def _place_of_credentials(method: str, path: str, *, has_json: bool) -> Place:
    """Return where client and key are placed: as in the operation at this path, else by the general rules 2 to 4."""
    if method == "GET" or has_json:
        return Place.QUERY
    known = {operation.path: operation.credentials for operation in operations.OPERATIONS if operation.method != "GET"}
    return known.get(path, Place.FORM)


def _refuse_columns(context: Context) -> None:
    if context.options.fields or context.options.format in (Format.CSV, Format.TSV):
        raise UsageError("api prints the response unchanged: --fields, csv and tsv do not apply")


def _head(reply: httpx.Response) -> list[str]:
    status = f"{reply.http_version} {reply.status_code} {reply.reason_phrase}".rstrip()
    return [status, *(f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in reply.headers.raw), ""]


def _refusal(client: Client, made: Request, reply: httpx.Response) -> Iterator[MsgctlError]:
    try:
        client.parse(made, reply)
    except MsgctlError as error:
        if isinstance(error, RefusedError) and reply.status_code in (404, 405):
            error.hint = CHECK_PATH
        yield error
