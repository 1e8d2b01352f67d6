"""`msgctl sandbox exec`: run a command beside a sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from msgctl import files
from msgctl.cli.shell.completion import file_names
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.process import signals_handled_by
from msgctl.commands.serve import Port, Serving, log_line
from msgctl.errors import UsageError
from msgctl.values import quote

SECONDS_TO_END = 5.0
"""Seconds after Ctrl-C in a terminal until msgctl passes SIGINT on to a command that has not ended."""


class CommandNotFoundError(UsageError):
    """The command of `sandbox exec` cannot be started; the exit code is the one that shells use."""

    exit_code = 127


def run_beside(
    context: Context,
    *,
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="COMMAND...", help="Command to run, with its arguments, after `--`.", autocompletion=file_names
        ),
    ],
    port: Port = 0,
    serving: Serving,
) -> None:
    """Serve a sandbox while a command runs.

    The command finds the sandbox through MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY. It uses an empty store, which
    is deleted at the end, and no stored profile. Do not use `-p sandbox` in the command: it still selects the sandbox
    inside msgctl, with its own records. `sandbox exec` exits with the command's exit code.
    """
    log = log_line if context.options.verbose else (lambda _: None)
    with files.explained("use", Path(tempfile.gettempdir())):
        folder = context.stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    store = Path(folder, "store.sqlite3")
    sandbox = serving.open(context, port, log, store)
    environ = {**context.environ, **sandbox.variables}
    del environ["MSGCTL_PROFILE"]
    context.stdout.flush()
    with sandbox.in_thread():
        if serving.open_page:
            webbrowser.open(sandbox.page)
        code = _run(command, environ)
    raise typer.Exit(code)


def _run(command: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command and return its exit code, 128 and the signal that ended it, or 127 if it cannot be started."""
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []
    has_terminal = _group_in_foreground() is not None

    def pass_on(number: int, _frame: object) -> None:
        if process is None:
            early.append(number)
        elif not has_terminal:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        elif number == signal.SIGINT and _group_in_foreground() == os.getpgrp():
            # The terminal sent it to the command, too, and a second SIGINT often ends a program without its clean-up.
            timer = threading.Timer(SECONDS_TO_END, process.send_signal, [number])
            timer.daemon = True
            timer.start()
        else:
            process.send_signal(number)

    # A shell that gets SIGINT waits for its command. So without a terminal, the command gets a group, and each of its
    # processes the signal. In a terminal, a second group could not read the keyboard.
    group = None
    if not has_terminal:
        group = 0
    with signals_handled_by(pass_on):
        try:
            process = subprocess.Popen(command, env=environ, process_group=group)  # noqa: S603 - the user's command
        except OSError as error:
            raise CommandNotFoundError(f"Cannot run {quote(command[0])}: {error.strerror}") from None
        for number in early:
            pass_on(number, None)
        code = process.wait()
    return code if code >= 0 else 128 - code


def _group_in_foreground() -> int | None:
    """Return the process group that gets Ctrl-C in the terminal; None if there is no terminal."""
    try:
        with open("/dev/tty", "rb") as terminal:  # noqa: PTH123 (a device)
            return os.tcgetpgrp(terminal.fileno())
    except OSError:
        return None
