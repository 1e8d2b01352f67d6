"""`msgctl sandbox record`: record the responses of the real service."""

from __future__ import annotations

import os
import shlex
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated

import typer

from msgctl import operations, values
from msgctl.cli import serve
from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError, UsageError
from msgctl.http.request import Request
from msgctl.operations import Effect, Operation, Record
from msgctl.output.result import TextResult
from msgctl.text import clean
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.http.client import Client
    from msgctl.sandbox.protocol import SandboxResponse
    from msgctl.sandbox.recording import Forwarded

EXAMPLES = ("msgctl sandbox record --to exchanges.jsonl -p main",)

To = Annotated[str, typer.Option("--to", metavar="FILE", help="Append each exchange to this file, as a line of JSON.")]


def record(
    ctx: typer.Context,
    to: To,
    port: serve.Port = "8521",
    host: serve.Host = "127.0.0.1",
    allow_host: serve.AllowHost = None,
) -> None:
    """Forward requests to the profile's service, and record each exchange.

    These requests are real: they cost credits and send messages. Programs need the account's own client and key, which
    are not recorded; phone numbers and texts are. `msgctl sandbox serve --replay FILE` then replays the responses.
    """
    from msgctl.sandbox.emulator import BASE_PATH
    from msgctl.sandbox.recording import Recorder

    context = Context.of(ctx)
    context.refuse_dry_run("sandbox record")
    number = values.whole_number(port, "--port", most=65535)
    profile = context.profile
    if profile.is_sandbox:
        raise UsageError("The sandbox itself cannot be recorded", "Choose the profile of a service with -p.")
    credential = profile.credential()
    forwarder = _Forwarder(context.connect(credential))
    with closing(_Lines(to)) as lines, serve.listen(context, host, number, allow_host or ()) as server:
        server.service = Recorder(forwarder.forward, lines.add, client=credential.client, key=credential.key.reveal())
        base_url = server.origin + BASE_PATH
        text = f"# recording to {clean(to)}\nexport MSGCTL_BASE_URL={shlex.quote(base_url)}\n"
        document = {"base_url": base_url, "service": profile.base_url, "file": to, "pid": os.getpid()}
        serve.serve_until_stopped(context, server, TextResult(text, document))


class _Forwarder:
    """Makes the requests of any number of threads, one at a time, by the rules of every other request of msgctl."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._lock = Lock()

    def forward(self, asked: Forwarded) -> SandboxResponse:
        from msgctl.sandbox.protocol import SandboxResponse

        request = Request(_operation(asked), asked.query, asked.form, asked.json)
        with self._lock:
            reply = self._client.fetch(request)
        content_type = reply.headers.get("content-type")
        headers = {"content-type": content_type} if content_type else {}
        return SandboxResponse(reply.status_code, reply.content, headers)


def _operation(asked: Forwarded) -> Operation:
    """Return the operation of a request. Of an unknown one only a GET may be retried."""
    for known in operations.OPERATIONS:
        if (known.method, known.path) == (asked.method, asked.path):
            return known._replace(credentials=asked.credentials)
    effect = Effect.READS if asked.method == "GET" else Effect.SENDS
    name = f"{asked.method} {asked.path}"
    return Operation(name, asked.method, asked.path, effect, asked.credentials, (), Record("response", ()))


class _Lines:
    """A private file to which any number of threads add lines."""

    def __init__(self, name: str) -> None:
        try:
            descriptor = os.open(Path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "invalid file name"
            raise ConfigurationError(f"Cannot write {quote(name)}: {reason}") from None
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")
        self._lock = Lock()

    def add(self, line: str) -> None:
        with self._lock:
            self._file.write(line)
            self._file.flush()

    def close(self) -> None:
        self._file.close()
