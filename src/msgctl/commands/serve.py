"""`msgctl sandbox serve`: the sandbox over HTTP."""

from __future__ import annotations

import os
import select
import shlex
import signal
import tempfile
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import files, values
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import (
    ACCOUNT,
    ADDRESS,
    BEHAVIOUR,
    Choice,
    OptionGroup,
    choice_option,
    number_option,
    text_option,
    value_option,
)
from msgctl.cli.shell.process import signals_handled_by, write_error_of
from msgctl.config import profiles
from msgctl.errors import ConfigurationError, UsageError
from msgctl.jobs.settings import MAX_CREDITS
from msgctl.output.result import TextResult
from msgctl.sandbox.protocol import FAULT_KINDS, FAULT_SYNTAX
from msgctl.sandbox.responses import NAMES
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.sandbox.emulator import Network
    from msgctl.sandbox.serving import ServedSandbox

RESPONSES_HELP = "documented, as in the API, or observed, as real services respond."

FAULT_HELP = f"{FAULT_SYNTAX} Without a PATH, such as /send-sms, the next N requests include requests that only read."

MAX_PORT = 65535

RESPONSES = Choice(NAMES, "kind of responses")
"""Parses the name of the responses."""


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


Port = Annotated[int, number_option("--port", "Port to listen on; 0 for a free one.", 0, MAX_PORT, panel=ADDRESS)]


class Serving(OptionGroup):
    """The options of a sandbox that listens: its address, its account, and how it responds."""

    host: Annotated[str, text_option("--host", "ADDR", "Address to listen on.", panel=ADDRESS)] = "127.0.0.1"
    allow_host: Annotated[
        list[str] | None,
        value_option("--allow-host", "NAME", "Also accept requests for this host name (repeatable).", panel=ADDRESS),
    ] = None

    open_page: Annotated[
        bool, typer.Option("--open", help="Open the inbox page in a browser.", rich_help_panel=ADDRESS)
    ] = False

    client: Annotated[int, value_option("--client", "N", "Client ID to accept.", values.client, panel=ACCOUNT)] = 1
    key: Annotated[str, value_option("--key", "K", "Key to accept (any value).", _key, panel=ACCOUNT)] = "sandbox-key"
    credits: Annotated[
        int | None,
        number_option("--credits", "Credits of a new account. [default: 1000]", 0, MAX_CREDITS, panel=ACCOUNT),
    ] = None
    state: Annotated[
        str | None,
        text_option(
            "--state",
            "FILE",
            "Keep the data, but not faults and chosen responses, in this file. Without it, nothing is kept.",
            panel=BEHAVIOUR,
        ),
    ] = None
    allow_ip: Annotated[
        list[Any] | None,
        value_option("--allow-ip", "CIDR", "Allow only these addresses (repeatable).", _network, panel=ACCOUNT),
    ] = None

    fault: Annotated[
        list[str] | None,
        value_option(
            "--fault",
            "SPEC",
            f"Make requests fail (repeatable): {FAULT_HELP}",
            _fault,
            panel=BEHAVIOUR,
            complete=lambda: [*FAULT_KINDS],
        ),
    ] = None
    seed: Annotated[
        int | None,
        number_option("--seed", "Seed for identifiers, codes and faults: same seed, same results.", panel=BEHAVIOUR),
    ] = None
    clock: Annotated[
        str | None,
        value_option("--clock", "CHANGE", "Set the clock: stop, +10m, or a time to stop it at.", panel=BEHAVIOUR),
    ] = None
    responses: Annotated[
        str, choice_option("--responses", "NAME", f"Responses: {RESPONSES_HELP}", RESPONSES, panel=BEHAVIOUR)
    ] = NAMES[0]

    def open(self, context: Context, port: int, log: Callable[[str], None], store: Path | None = None) -> ServedSandbox:
        """Return a sandbox that listens; it is closed at the end of the run. A reset also empties its ``store``.

        Raises ConfigurationError if it cannot listen or use its state.
        """
        from msgctl.sandbox.emulator import SandboxSettings
        from msgctl.sandbox.server import Server
        from msgctl.sandbox.serving import ServedSandbox

        if self.state is not None:
            state = Path(self.state).absolute()
        else:
            with files.explained("use", Path(tempfile.gettempdir())):
                state = Path(context.stack.enter_context(tempfile.TemporaryDirectory()), "state.sqlite3")
        try:
            server = Server(self.host, port, log, self.allow_host or ())
        except (OSError, UnicodeError) as error:
            # Python repeats the address after the reason.
            reason = (getattr(error, "strerror", None) or "the address is malformed").partition(" (while")[0]
            raise ConfigurationError(
                f"Cannot listen on {quote(self.host)}, port {port}: {reason}", "Choose another --port or --host."
            ) from None
        context.stack.enter_context(closing(server))
        settings = SandboxSettings(
            self.client,
            self.key,
            self.credits,
            self.fault or (),
            self.responses,
            self.clock,
            self.seed,
            self.allow_ip or (),
            store,
        )
        sandbox = ServedSandbox(server, state, settings, clock=context.clock)
        return context.stack.enter_context(closing(sandbox))


def serve(context: Context, *, port: Port = 8520, serving: Serving) -> None:
    """Serve the sandbox over HTTP until it is stopped.

    Once it accepts connections, it prints the address of its inbox page, the base URL and the variables to export. It
    writes one log line per request on standard error.

    Programs can control it, too: `curl http://127.0.0.1:8520/sandbox` lists its own endpoints.
    """
    log = (lambda _: None) if context.options.quiet else log_line
    sandbox = serving.open(context, port, log)
    document = {
        "base_url": sandbox.base_url,
        "page": sandbox.page,
        "client": serving.client,
        "key": serving.key,
        "pid": os.getpid(),
    }

    signals: list[int] = []

    def stop(number: int, _frame: object) -> None:
        signals.append(number)
        sandbox.server.stop()

    with signals_handled_by(stop, also_ignored=True), suppress(KeyboardInterrupt):
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in sandbox.variables.items())
        context.printer.print(TextResult(f"# inbox page: {sandbox.page}\n{exports}", document))
        unwritten = write_error_of(context.stdout)
        if serving.open_page:
            webbrowser.open(sandbox.page)
        if unwritten is None or isinstance(unwritten, BrokenPipeError):  # the caller could not know the address
            sandbox.serve()
    if signal.SIGINT in signals:
        raise typer.Exit(130)


def log_line(line: str) -> None:
    """Write a line to standard error; it is dropped if the reader is slow, so that requests do not wait."""
    with suppress(OSError, ValueError):
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"{line}\n".encode(errors="backslashreplace"))
