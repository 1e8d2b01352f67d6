"""`msgctl sandbox serve` and `record`: the sandbox over HTTP, and a recorder of the real service."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TextIO

import typer

from msgctl import operations, values
from msgctl.cli import process
from msgctl.cli.context import Context
from msgctl.config import profiles
from msgctl.errors import ConfigurationError, UsageError
from msgctl.http.request import Request
from msgctl.operations import Effect, Operation, Record
from msgctl.output.result import TextResult
from msgctl.text import clean
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.http.client import Client as HttpClient
    from msgctl.sandbox.protocol import SandboxRequest, SandboxResponse
    from msgctl.sandbox.recording import Forwarded
    from msgctl.sandbox.server import Server
    from msgctl.sandbox.service import Network
    from msgctl.sandbox.state import SandboxState

MEMORY = "memory"
MAX_LINES = 10_000
"""Lines of the log that may wait for a reader; more are dropped."""

FAULT_HELP = (
    "KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]. Kinds: 520, 503, 429, html, delay=SECONDS, drop, reject, "
    "truncate, garbage."
)

SERVE_EXAMPLES = (
    "msgctl sandbox serve --port 8520 --client 12345 --key test --credits 100",
    "msgctl sandbox serve --port 0 --json",
    "msgctl sandbox serve --fault 503:0.1 --fault drop:0.05:/send-sms --seed 7",
)

RECORD_EXAMPLES = ("msgctl sandbox record --to exchanges.jsonl -p main",)

To = Annotated[str, typer.Option("--to", metavar="FILE", help="Append each exchange to this file, as a line of JSON.")]
Port = Annotated[str, typer.Option("--port", metavar="N", help="Port to listen on; 0 for a free one.")]
Host = Annotated[str, typer.Option("--host", metavar="ADDR", help="Address to listen on.")]
Client = Annotated[str, typer.Option("--client", metavar="N", help="Client ID to accept.")]
Key = Annotated[str, typer.Option("--key", metavar="K", help="Key to accept (any value).")]
Credits = Annotated[
    str | None, typer.Option("--credits", metavar="N", help="Credits of a new account; 1000 if omitted.")
]
Kept = Annotated[str, typer.Option("--state", metavar="FILE", help="Store all data in this file.")]
AllowIp = Annotated[
    list[str] | None,
    typer.Option("--allow-ip", metavar="CIDR", help="Allow only these addresses (repeatable)."),
]
Fault = Annotated[
    list[str] | None,
    typer.Option("--fault", metavar="SPEC", help=f"Make requests fail (repeatable): {FAULT_HELP}"),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="Also accept requests for this host name (repeatable)."),
]
Clock = Annotated[
    str | None,
    typer.Option("--clock", metavar="CHANGE", help="Set the clock: stop, +10m, or a time at which it stops."),
]
Open = Annotated[bool, typer.Option("--open", help="Open the inbox page in a browser.")]
ReplayFile = Annotated[
    str | None,
    typer.Option("--replay", metavar="FILE", help="Replay responses from a file of `msgctl sandbox record`."),
]
Seed = Annotated[
    str | None,
    typer.Option("--seed", metavar="N", help="Seed for identifiers, codes and faults: same seed, same results."),
]


def serve(
    ctx: typer.Context,
    port: Port = "8520",
    host: Host = "127.0.0.1",
    client: Client = "1",
    key: Key = "sandbox-key",
    credits: Credits = None,
    state: Kept = MEMORY,
    allow_ip: AllowIp = None,
    fault: Fault = None,
    seed: Seed = None,
    clock: Clock = None,
    allow_host: AllowHost = None,
    replay: ReplayFile = None,
    open_page: Open = False,
) -> None:
    """Serve the sandbox over HTTP until it is stopped.

    As soon as it accepts connections, it prints the address of its inbox page, the base URL and the variables to
    export. It writes one log line per request on standard error.
    """
    from msgctl.sandbox import faults
    from msgctl.sandbox.emulator import Emulator
    from msgctl.sandbox.endpoints import LocalSandbox
    from msgctl.sandbox.protocol import BASE_PATH
    from msgctl.sandbox.service import Service

    context = Context.of(ctx)
    number = values.whole_number(port, "--port", most=65535)
    account = values.whole_number(client, "--client", most=profiles.LARGEST_CLIENT)
    if key_fault := profiles.key_fault(key):
        raise UsageError(f"--key {key_fault}", "Choose any other text.")
    allowed = [_network(text) for text in allow_ip or []]
    chosen = None if seed is None else values.whole_number(seed, "--seed")
    for spec in fault or []:
        faults.parse(spec)
    operate = None if replay is None else _replay(replay)
    with ExitStack() as stack:
        kept = stack.enter_context(_state(state, credits))
        listening = stack.enter_context(listen(context, host, number, allow_host or ()))
        base_url = listening.origin + BASE_PATH
        emulator = Emulator(kept, clock=context.clock, seed=chosen, client=account, key=key, base_url=base_url)
        faults.replace_all(kept, *(fault or []))
        if clock is not None:
            LocalSandbox(emulator).set_clock(clock)
        listening.service = Service(emulator, allowed=allowed, operate=operate)
        serve_until_stopped(context, listening, _announcement(listening.origin, base_url, account, key), open_page)


def record(
    ctx: typer.Context,
    to: To,
    port: Port = "8521",
    host: Host = "127.0.0.1",
    allow_host: AllowHost = None,
) -> None:
    """Forward requests to the profile's service, and record each exchange.

    These requests are real: they cost credits and send messages. Programs need the account's own client and key, which
    are not recorded; phone numbers and texts are. `msgctl sandbox serve --replay FILE` then replays the responses.
    """
    from msgctl.sandbox.protocol import BASE_PATH
    from msgctl.sandbox.recording import ExchangeRecorder

    context = Context.of(ctx)
    number = values.whole_number(port, "--port", most=65535)
    profile = context.profile
    if profile.is_sandbox:
        raise UsageError("The sandbox itself cannot be recorded", "Choose the profile of a service with -p.")
    credential = profile.credential()
    forward = partial(_forward, context.connect(credential))
    with _private(to) as file, listen(context, host, number, allow_host or ()) as server:
        server.service = ExchangeRecorder(forward, file, client=credential.client, key=credential.key.reveal())
        base_url = server.origin + BASE_PATH
        text = f"# recording to {clean(to)}\nexport MSGCTL_BASE_URL={shlex.quote(base_url)}\n"
        document = {"base_url": base_url, "service": profile.base_url, "file": to, "pid": os.getpid()}
        serve_until_stopped(context, server, TextResult(text, document))


def serve_until_stopped(context: Context, server: Server, announcement: TextResult, open_page: bool = False) -> None:
    """Print where the server is, and serve until a signal ends it."""
    context.enable_gc()
    with process.signals_handled_by(_stop, also_ignored=True):
        try:
            context.printer.print(announcement)
            unwritten = process.fault_of(context.stdout)
            if open_page:
                webbrowser.open(server.origin + "/")
            if unwritten is None or isinstance(unwritten, BrokenPipeError):  # the caller could not know the address
                server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            process.abandon(context.stdout)


def _replay(name: str) -> Callable[[SandboxRequest], SandboxResponse]:
    """Return a service that replays a record. Raises ConfigurationError."""
    from msgctl.sandbox.recording import Replay

    try:
        with Path(name).open(encoding="utf-8") as lines:
            return Replay(lines, quote(name)).respond
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ConfigurationError(f"Cannot read {quote(name)}: {reason}") from None


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise UsageError(
            f"--allow-ip must be an address or a network, not {quote(text)}",
            "For example 192.0.2.0/24 or 2001:db8::/32.",
        ) from None


@contextmanager
def _state(where: str, credits: str | None) -> Iterator[SandboxState]:
    """Open the state in the file, or in a temporary one, and set the credits of a new one."""
    from msgctl.sandbox.endpoints import MAX_CREDITS
    from msgctl.sandbox.state import SandboxState

    amount = None if credits is None else values.whole_number(credits, "--credits", most=MAX_CREDITS)
    values.words(where, "--state")
    with ExitStack() as stack:
        try:
            if where == MEMORY:
                where = stack.enter_context(tempfile.TemporaryDirectory(prefix="msgctl-sandbox-")) + "/state.sqlite3"
            path = Path(where).absolute()
        except OSError as error:  # no folder for temporary files, or the working folder is gone
            hint = "Set TMPDIR, or use --state with an absolute path."
            raise ConfigurationError(f"Cannot use {quote(where)} for the state: {error.strerror}", hint) from None
        is_new = not path.is_file() or path.stat().st_size == 0
        state = SandboxState(path)
        stack.callback(state.close)
        if amount is not None and is_new:  # a restarted server continues with what was left
            state.set_credits(amount)
        yield state


@contextmanager
def listen(context: Context, host: str, port: int, allowed_hosts: Iterable[str] = ()) -> Iterator[Server]:
    """Open a server that logs to standard error. Raises ConfigurationError if it cannot listen there."""
    from msgctl.sandbox.server import Server

    try:
        server = Server(host, port, (lambda _: None) if context.options.quiet else _Log(context), allowed_hosts)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "the address is malformed"
        raise ConfigurationError(
            f"Cannot listen on {quote(host)}, port {port}: {reason}", "Choose another --port or --host."
        ) from None
    with server:
        yield server


def _stop(_signal: int, _frame: object) -> NoReturn:
    """End the server at the first signal, and ignore further ones."""
    for each in process.STOPPING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


class _Log:
    """Writes lines to standard error in its own thread, so that requests do not wait for a reader."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lines: queue.Queue[str] = queue.Queue(MAX_LINES)
        threading.Thread(target=self._write, name="log", daemon=True).start()

    def __call__(self, line: str) -> None:
        with suppress(queue.Full):
            self._lines.put_nowait(line)

    def _write(self) -> None:
        while True:
            line = self._lines.get() + "\n"
            try:
                # Bypass the stream's buffer: a blocked write would hold its lock until the end.
                os.write(self._context.stderr.fileno(), line.encode(errors="backslashreplace"))
            except ValueError:  # a stream in memory
                self._context.note(line.rstrip())
            except OSError:
                return


def _announcement(page: str, base_url: str, client: int, key: str) -> TextResult:
    """Return the variables with which programs, and msgctl itself, find the server; the key is not a secret."""
    variables = {"MSGCTL_BASE_URL": base_url, "MSGCTL_CLIENT": str(client), "MSGCTL_KEY": key}
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    document = {"base_url": base_url, "page": f"{page}/", "client": client, "key": key, "pid": os.getpid()}
    return TextResult(f"# inbox page: {page}/\n{exports}", document)


def _forward(client: HttpClient, asked: Forwarded) -> SandboxResponse:
    """Make a request by the rules of all requests of msgctl."""
    from msgctl.sandbox.protocol import SandboxResponse

    reply = client.fetch(Request(_operation(asked), asked.query, asked.form, asked.json))
    content_type = reply.headers.get("content-type")
    return SandboxResponse(reply.status_code, reply.content, {"content-type": content_type} if content_type else {})


def _operation(asked: Forwarded) -> Operation:
    """Return the operation of a request. Of an unknown one only a GET may be retried."""
    for known in operations.OPERATIONS:
        if (known.method, known.path) == (asked.method, asked.path):
            return known._replace(credentials=asked.credentials)
    effect = Effect.READS if asked.method == "GET" else Effect.SENDS
    name = f"{asked.method} {asked.path}"
    return Operation(name, asked.method, asked.path, effect, (), Record("response", ()), asked.credentials)


def _private(name: str) -> TextIO:
    """Open a file to add lines to; a new one is private. Raises ConfigurationError."""
    try:
        descriptor = os.open(Path(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "invalid file name"
        raise ConfigurationError(f"Cannot write {quote(name)}: {reason}") from None
    return os.fdopen(descriptor, "w", encoding="utf-8")
