"""`msgctl api`: any request with a profile's credentials, for endpoints without a command in msgctl."""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple
from urllib.parse import unquote

import typer

from msgctl import values
from msgctl.cli.options.message import json_body
from msgctl.cli.runs.single import dry_run
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import Choice, parser, value_option
from msgctl.cli.shell.tree import ACCOUNT, command, group
from msgctl.config.urls import percent_encoded, without_secrets
from msgctl.errors import MsgctlError, UsageError
from msgctl.http.request import Request
from msgctl.operations import METHODS, OPERATIONS, Effect, Operation, Place, Record
from msgctl.output.result import Format, OwnResult, RawResult
from msgctl.text import is_unsafe
from msgctl.values import quote

app = group("")


ANYTHING = Record("response", ())


class Pair(NamedTuple):
    """A parameter of a request."""

    name: str
    value: str


def _pair(text: str) -> Pair:
    """Return name and value, split at the first ``=``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"{quote(re.split('[: ]', text)[0])} has no value: give -f NAME=VALUE")
    if not name.strip():
        raise UsageError("A parameter has no name: give -f NAME=VALUE")
    if name in ("client", "key"):
        raise UsageError(f"Do not give {name} with -f: it comes from the profile", "Choose another with -p.")
    values.short_text(name, "A name in -f")
    advice = "Leave it out: msgctl sends no empty values."
    return Pair(name, values.prose(value, f"The value of {quote(name)} in -f", advice))


def _path(text: str) -> str:
    """Return the path percent-encoded, with its leading slash."""
    if fault := _path_fault(text):
        beginning = without_secrets(text)
        if query := re.search("[?#]", text):
            beginning += f"{query[0]}…"  # the rest may contain the key
        raise UsageError(
            f"{quote(beginning)} is not a valid PATH: {fault}",
            "Give the path under the base URL, for example /balance, and parameters with -f NAME=VALUE.",
        )
    return percent_encoded(f"/{text.removeprefix('/')}")


def _path_fault(text: str) -> str | None:
    """Return why a string is not a valid path under a base URL, or None if it is."""
    if not text:
        return "it is empty"
    if any(char.isspace() or is_unsafe(char) for char in text):
        return "it contains a space or a control character"
    if "://" in text or text.startswith("//"):
        return "it contains a host, but the key is only sent to the profile's host"
    if "?" in text or "#" in text:
        return "it contains a query or a fragment"
    if not {".", ".."}.isdisjoint(re.split(r"[/\\]", unquote(text))):
        return "it contains . or .. as a segment, which could lead out of the base URL"
    return None


@command(
    app,
    "api",
    "msgctl api GET /balance",
    "msgctl api POST /send-sms -f phone=573001234567 -f sms=Hello",
    "msgctl api POST /chatapp/send -f template=appointment --input body.json",
    effect=Effect.SENDS,
    has_more_columns=True,
    json="response",
    panel=ACCOUNT,
)
def api(
    context: Context,
    method: Annotated[
        str, typer.Argument(metavar="METHOD", help="GET, POST, PUT, PATCH or DELETE.", parser=Choice(METHODS, "method"))
    ],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Path under the base URL.", parser=parser(_path))],
    field: Annotated[list[Pair] | None, value_option("-f", "NAME=VALUE", "A parameter (repeatable).", _pair)] = None,
    body: Annotated[
        str | None, value_option("--input", "FILE", "Send the JSON in this file as the body; - is standard input.")
    ] = None,
) -> RawResult | OwnResult:
    """Make any request with the profile's credentials.

    Use it for endpoints without a command. It skips msgctl's safeguards: it does not check opt-outs, repeats or
    --once keys, and history and usage do not contain it.

    With GET or --input, it sends parameters in the query, otherwise as a form. msgctl adds the client and the key where
    the service expects them, and prints the body of the response unchanged. The exit code is 0 for a 2xx status, unless
    the body is a refusal. Otherwise it is 1; or 4 if the service turned the request away for now; or 5 if it may have
    carried out the request.

    msgctl may retry a GET request. It sends all other requests only once.
    """
    if method == "GET" and body is not None:
        raise UsageError("A GET request has no body", "Give parameters with -f NAME=VALUE, or write POST before PATH.")
    if context.options.fields or context.options.format in (Format.CSV, Format.TSV, Format.JSONL):
        raise UsageError("api prints the response unchanged: --fields, csv, tsv and jsonl do not apply")
    content = None if body is None else json_body(context, body)[0]
    context.run.operation = _operation(method, path, has_body=content is not None)
    context.run.effect = context.run.operation.effect
    pairs = tuple(field or ())
    if method == "GET" or content is not None:
        request = Request(context.run.operation, pairs, (), content)
    else:
        request = Request(context.run.operation, (), pairs)
    if context.options.dry_run:
        return dry_run(context, request)
    response = context.client.fetch(request)
    failures: list[MsgctlError] = []
    try:
        context.client.parse(request, response)
    except MsgctlError as error:
        failures = [error]
    return RawResult(response.body, failures=failures)


def _operation(verb: str, path: str, *, has_body: bool) -> Operation:
    """Return any request as an operation. Only a GET request is known to send nothing."""
    place, effect = Place.FORM, Effect.SENDS
    for operation in OPERATIONS:
        if (operation.method, operation.path) == (verb, path):
            place = operation.credentials
    if verb == "GET" or has_body:
        place = Place.QUERY
    if verb == "GET":
        effect = Effect.READS
    return Operation(f"{verb} {path}", verb, path, effect, (), ANYTHING, place)
