"""`msgctl sandbox serve` and `record`: the sandbox over HTTP, and a recorder of the real service."""

from __future__ import annotations

import os
import secrets
import select
import shlex
import tempfile
import webbrowser
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.help import ACCOUNT, ADDRESS, BEHAVIOUR
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.options import MAX_CREDITS
from msgctl.cli.parsers import number_option, parser, text_option
from msgctl.cli.process import fault_of, signals_handled_by
from msgctl.config import profiles
from msgctl.errors import ConfigurationError, OutcomeUnknownError, UsageError
from msgctl.output.result import TextResult
from msgctl.storage import files
from msgctl.text import clean
from msgctl.values import quote

if TYPE_CHECKING:
    import httpx

    from msgctl.sandbox.emulator import Emulator, Network
    from msgctl.sandbox.protocol import Redact, SandboxRequest
    from msgctl.sandbox.server import Respond, Server

FAULT_HELP = (
    "KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]. Kinds: 520, 503, 429, html, delay=SECONDS, drop, reject, "
    "truncate, garbage."
)

RESPONSES_HELP = "documented, observed, mixed or a TOML file."

MAX_SETTINGS = 2**20
"""The bytes of a TOML file for --responses."""

SERVE_EXAMPLES = (
    "msgctl sandbox serve --port 8520 --client 12345 --key test --credits 100",
    "msgctl sandbox serve --port 0 --json",
    "msgctl sandbox serve --fault 503:0.1 --fault drop:0.05:/send-sms --seed 7",
    "msgctl sandbox serve --responses observed",
)

RECORD_EXAMPLES = ("msgctl sandbox record --to exchanges.jsonl -p main",)


MAX_PORT = 65535


def _key(text: str) -> str:
    if fault := profiles.key_fault(text):
        raise UsageError(f"--key {fault}", "Choose any other text.")
    return text


def _network(text: str) -> Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise UsageError(
            f"--allow-ip must be an address or a network, not {quote(text)}",
            "For example 192.0.2.0/24 or 2001:db8::/32.",
        ) from None


def _fault(text: str) -> str:
    from msgctl.sandbox import faults

    faults.parse(text)
    return text


class Listening(OptionGroup):
    """The address of a server, and the host names that it accepts."""

    port: Annotated[
        int, number_option("--port", "Port to listen on; 0 for a free one.", 0, MAX_PORT, panel=ADDRESS)
    ] = 8520
    host: Annotated[
        str, typer.Option("--host", metavar="ADDR", help="Address to listen on.", rich_help_panel=ADDRESS)
    ] = "127.0.0.1"
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="Also accept requests for this host name (repeatable).",
            rich_help_panel=ADDRESS,
        ),
    ] = None

    def server(self, context: Context, redact: Redact) -> Server:
        """Open a server that logs to standard error. Raises UsageError, and ConfigurationError if it cannot listen."""
        from msgctl.sandbox.server import Server

        log = (lambda _: None) if context.options.quiet else _log
        try:
            server = Server(self.host, self.port, log, self.allow_host or (), redact)
        except (OSError, UnicodeError) as error:
            # After its reason, Python repeats the address.
            reason = (getattr(error, "strerror", None) or "the address is malformed").partition(" (while")[0]
            raise ConfigurationError(
                f"Cannot listen on {quote(self.host)}, port {self.port}: {reason}", "Choose another --port or --host."
            ) from None
        return context.stack.enter_context(closing(server))


class Account(OptionGroup):
    """The sandbox's account, and its state file."""

    client: Annotated[
        int,
        typer.Option(
            "--client",
            metavar="N",
            help="Client ID to accept.",
            parser=parser(values.client),
            rich_help_panel=ACCOUNT,
        ),
    ] = 1
    key: Annotated[
        str,
        typer.Option("--key", metavar="K", help="Key to accept (any value).", parser=_key, rich_help_panel=ACCOUNT),
    ] = "sandbox-key"
    credits: Annotated[
        int | None,
        number_option("--credits", "Credits of a new account; 1000 if omitted.", 0, MAX_CREDITS, panel=ACCOUNT),
    ] = None
    state: Annotated[
        str | None,
        text_option("--state", "FILE", "Keep all data in this file; without it, nothing is kept.", panel=BEHAVIOUR),
    ] = None
    allow_ip: Annotated[
        list[Any] | None,
        typer.Option(
            "--allow-ip",
            metavar="CIDR",
            help="Allow only these addresses (repeatable).",
            parser=_network,
            rich_help_panel=ACCOUNT,
        ),
    ] = None

    def path(self, context: Context) -> Path:
        """Return the state file; if none was given, a temporary file that is deleted at the end."""
        if self.state is not None:
            return Path(self.state).absolute()
        with files.explained("use", Path(tempfile.gettempdir())):
            return Path(context.stack.enter_context(tempfile.TemporaryDirectory()), "state.sqlite3")


class Behaviour(OptionGroup):
    """How the sandbox responds."""

    fault: Annotated[
        list[str] | None,
        typer.Option(
            "--fault",
            metavar="SPEC",
            help=f"Make requests fail (repeatable): {FAULT_HELP}",
            parser=_fault,
            rich_help_panel=BEHAVIOUR,
        ),
    ] = None
    seed: Annotated[
        int | None,
        number_option("--seed", "Seed for identifiers, codes and faults: same seed, same results.", panel=BEHAVIOUR),
    ] = None
    clock: Annotated[
        str | None,
        typer.Option(
            "--clock",
            metavar="CHANGE",
            help="Set the clock: stop, +10m, or a time to stop it at.",
            rich_help_panel=BEHAVIOUR,
        ),
    ] = None
    responses: Annotated[
        str,
        typer.Option(
            "--responses", metavar="NAME", help=f"Respond as services do: {RESPONSES_HELP}", rich_help_panel=BEHAVIOUR
        ),
    ] = "documented"
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            help="Replay responses that `msgctl sandbox record` wrote to a file.",
            rich_help_panel=BEHAVIOUR,
        ),
    ] = None

    def operate(self) -> Any:
        """Return the function that replays a recording; None to respond as usual. Raises UsageError."""
        from msgctl.http.redaction import redact_body
        from msgctl.sandbox.recording import recorded_lines, replayer

        if self.replay is None:
            return None
        if self.responses != "documented":
            raise UsageError("Use either --replay or --responses, not both")
        return replayer(recorded_lines(Path(self.replay)), quote(self.replay), redact_body)

    def apply(self, emulator: Emulator, settings: Mapping[str, Any]) -> None:
        """Set the faults, the responses (see `response_settings`) and the clock of an emulator. Raises UsageError."""
        from msgctl.sandbox import faults
        from msgctl.sandbox.endpoints import choose_responses, set_clock

        faults.replace_all(emulator, *(self.fault or []))
        choose_responses(emulator, **settings)
        if self.clock is not None:
            set_clock(emulator, change=self.clock)


def serve(
    context: Context,
    *,
    listening: Listening,
    account: Account,
    behaviour: Behaviour,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the inbox page in a browser.", rich_help_panel=ADDRESS)
    ] = False,
) -> None:
    """Serve the sandbox over HTTP until it is stopped.

    As soon as it accepts connections, it prints the address of its inbox page, the base URL and the variables to
    export. It writes one log line per request on standard error.
    """
    from msgctl.sandbox.emulator import Emulator
    from msgctl.sandbox.endpoints import credit
    from msgctl.sandbox.protocol import BASE_PATH
    from msgctl.sandbox.service import respond

    settings = response_settings(behaviour.responses, "--responses")
    operate = behaviour.operate()
    path = account.path(context)
    with files.explained("use", path):
        is_new = not path.is_file() or path.stat().st_size == 0
    redact = redacting(account.key)
    server = listening.server(context, redact)
    base_url = server.origin + BASE_PATH
    emulator = Emulator(
        path,
        clock=context.clock,
        seed=behaviour.seed,
        client=account.client,
        key=account.key,
        base_url=base_url,
        operate=operate,
        allowed=account.allow_ip or [],
        redact=redact,
    )
    context.stack.enter_context(closing(emulator))
    if account.credits is not None and is_new:  # a restarted server continues with what was left
        credit(emulator, credits=account.credits)
    behaviour.apply(emulator, settings)
    # Programs and msgctl find the server with these variables; the key is not a secret.
    variables = {"MSGCTL_BASE_URL": base_url, "MSGCTL_CLIENT": str(account.client), "MSGCTL_KEY": account.key}
    page = f"{server.origin}/"
    document = {"base_url": base_url, "page": page, "client": account.client, "key": account.key, "pid": os.getpid()}
    announcement = TextResult(f"# inbox page: {page}\n{exports(variables)}", document)
    _serve_until_stopped(context, server, partial(respond, emulator), announcement, page if open_page else None)


def redacting(key: str) -> Redact:
    """Return a function that removes the key, in any spelling, and the values of parameters ``key`` from a text."""
    from msgctl.http.redaction import redact
    from msgctl.sandbox.protocol import masked

    return lambda text: masked(redact(text, key))


def response_settings(chosen: str, name: str) -> dict[str, Any]:
    """Return the checked settings of the responses with a name, or in a TOML file. Raises UsageError.

    ``name`` is the option or argument, for messages.
    """
    import tomllib

    from msgctl.sandbox.responses import NAMES, checked

    if chosen in NAMES:
        return {"responses": chosen}
    path = Path(values.short_text(chosen, name))
    with files.explained("read", path):
        if not path.exists():
            raise UsageError(f"{name} must be {RESPONSES_HELP.rstrip('.')}, not {quote(chosen)}")
    content = files.read_limited(path, MAX_SETTINGS)
    try:
        settings = tomllib.loads(content.decode())
    except ValueError as error:  # invalid UTF-8 too
        raise UsageError(f"{quote(chosen)} is not TOML: {clean(str(error))}") from None
    if not settings:
        raise UsageError(f"{quote(chosen)} has no settings")
    checked(settings, f"{quote(chosen)}: ")
    return settings


def record(
    context: Context,
    to: Annotated[
        str, typer.Option("--to", metavar="FILE", help="Append each exchange to this file, as a line of JSON.")
    ],
    listening: Listening,
) -> None:
    """Forward requests to the service and record each exchange.

    It forwards to the profile's service. The requests are real: they cost credits and send messages.

    It prints the variables to export, with a random key. Requests with this key are forwarded with the profile's key,
    which is neither recorded nor returned. Phone numbers and messages are recorded.

    `msgctl sandbox serve --replay FILE` then replays the responses.
    """
    import httpx

    from msgctl.http.redaction import redact_body
    from msgctl.http.transport import NetworkTransport
    from msgctl.sandbox.protocol import BASE_PATH
    from msgctl.sandbox.recording import recorder, with_key

    profile = context.profile
    if profile.is_sandbox:
        raise UsageError("The sandbox itself cannot be recorded", "Choose the profile of a service with -p.")
    client, key = profile.credential()
    own_key = secrets.token_hex(16)
    transport = context.stack.enter_context(closing(NetworkTransport(profile.base_url)))

    def forward(request: SandboxRequest) -> httpx.Response:
        request = with_key(request, own_key, key)
        url = profile.base_url + request.path.removeprefix(BASE_PATH) + (f"?{request.query}" if request.query else "")
        passed = ("accept", "content-type", "user-agent")
        headers = {name: value for name, value in request.headers.items() if name in passed}
        found = fetch(transport, request.method, url, headers, request.body, context.options.timeout, "the service")
        shown = {name: value for name, value in found.headers.items() if name == "content-type"}
        return httpx.Response(found.status_code, headers=shown, content=redact_body(found.content, key))

    server = listening.server(context, redacting(own_key))
    with files.explained("write", path := Path(to)):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        with files.explained("protect", path):
            os.fchmod(descriptor, 0o600)  # an existing file may be readable by others
        files.check(path, os.fstat(descriptor))
        base_url = server.origin + BASE_PATH
        variables = {"MSGCTL_BASE_URL": base_url, "MSGCTL_CLIENT": str(client), "MSGCTL_KEY": own_key}
        text = f"# recording to {clean(to)}\n{exports(variables)}"
        document = {
            "base_url": base_url,
            "client": client,
            "key": own_key,
            "service": profile.base_url,
            "file": to,
            "pid": os.getpid(),
        }
        _serve_until_stopped(context, server, recorder(forward, redact_body, file), TextResult(text, document))


def exports(variables: Mapping[str, str]) -> str:
    """Return the lines that export variables in a shell."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def fetch(
    transport: httpx.BaseTransport,
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes,
    seconds: float,
    whose: str,
) -> httpx.Response:
    """Make one request and return its whole response, whatever its status. Raises MsgctlError."""
    import httpx

    from msgctl.http.transport import describe

    extensions: dict[str, Any] = {"timeout": httpx.Timeout(seconds).as_dict()}
    try:
        request = httpx.Request(method, url, headers=headers, content=content, extensions=extensions)
        response = transport.handle_request(request)
        fault = response.extensions.get("fault")
    except httpx.InvalidURL as error:
        raise UsageError(f"Cannot reach {whose}: {error}") from None
    except httpx.HTTPError as error:
        fault = describe(error, seconds)
    if fault:
        raise OutcomeUnknownError(f"No response from {whose}: {fault}", "Try again.")
    return response


def _serve_until_stopped(
    context: Context, server: Server, respond: Respond, announcement: TextResult, page: str | None = None
) -> None:
    """Print the server's URL, open its page if it has one, and serve until a signal."""

    def stop(_signal: int, _frame: object) -> None:
        if server.is_stopping:  # a second signal also ends a request that is being forwarded
            raise KeyboardInterrupt
        server.stop()

    with signals_handled_by(stop, also_ignored=True), suppress(KeyboardInterrupt):
        context.printer.print(announcement)
        unwritten = fault_of(context.stdout)
        if page is not None:
            webbrowser.open(page)
        if unwritten is None or isinstance(unwritten, BrokenPipeError):  # the caller could not know the address
            server.serve_forever(respond)


def _log(line: str) -> None:
    """Write a line to standard error; it is dropped if the reader is slow, so that requests do not wait."""
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))
