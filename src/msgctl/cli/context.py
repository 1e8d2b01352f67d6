"""One run of the tool: what the common options said, and what is made from them when it is first asked for."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

import typer

from msgctl.cli.options import Options
from msgctl.cli.terminal import has_color, is_terminal
from msgctl.config import file as config
from msgctl.config import profiles
from msgctl.errors import Cancelled, UsageError
from msgctl.http import request
from msgctl.operations import Operation
from msgctl.output.form import Format
from msgctl.output.result import OwnResult, ServiceResult
from msgctl.storage import paths

if TYPE_CHECKING:
    from datetime import date

    from msgctl.config.credential import Credential
    from msgctl.http.client import Client
    from msgctl.http.exchange import Outgoing, Reply
    from msgctl.http.response import Response
    from msgctl.output.printer import Printer
    from msgctl.sandbox.emulator import Emulator


class SupportsClose(Protocol):
    def close(self) -> None: ...


Closeable = TypeVar("Closeable", bound=SupportsClose)

MOST_TYPED = 4096
"""The longest line that is taken from a terminal, in bytes; terminals themselves take no longer ones."""


class Context:
    """The members that commands work with. Time and streams are given, so that tests can give their own."""

    def __init__(
        self,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.environ = os.environ if environ is None else environ
        self.clock = clock
        self.monotonic = monotonic
        self.sleep = sleep
        self.options = Options()
        self.operation: Operation | None = None
        """What the command that was typed performs, as far as it is known."""
        self.is_understood = False
        """Whether the whole command line was read, so that `options` holds all that was asked for."""
        self.carried_out = False
        """Whether a request that sends or changes something was made and answered."""
        self._opened: list[SupportsClose] = []

    @staticmethod
    def of(ctx: typer.Context) -> Context:
        context: Context = ctx.obj
        return context

    # --- what is made when first asked for

    @cached_property
    def config_path(self) -> Path:
        return paths.config_file(self.environ)

    @cached_property
    def profile(self) -> profiles.Profile:
        """The profile to use. Raises ConfigurationError."""
        named = self.options.profile
        if profiles.SANDBOX in (named, self.environ.get("MSGCTL_PROFILE") if named is None else None):
            return profiles.sandbox()  # whatever the file holds, and also where it is broken
        return profiles.find(config.load(self.config_path), self.environ, named)

    @cached_property
    def printer(self) -> Printer:
        from msgctl.output.printer import Printer
        from msgctl.output.screen import Screen

        screen = Screen.of(self.stdout, self.has_color(self.stdout))
        return Printer(screen, self.options.format, self.options.fields)

    @cached_property
    def emulator(self) -> Emulator:
        from msgctl.sandbox.emulator import Emulator
        from msgctl.sandbox.state import State

        return self.on_close(
            Emulator(
                State(paths.sandbox_file()),
                clock=self.clock,
                client=profiles.SANDBOX_CLIENT,
                key=profiles.SANDBOX_KEY,
                base_url=profiles.SANDBOX_URL,
            )
        )

    @cached_property
    def client(self) -> Client:
        return self.connect(self.profile.credential())

    def connect(self, credential: Credential) -> Client:
        """A client of the profile's service, for a credential that was fetched. It is closed at the end of the run."""
        from msgctl.http.client import Client

        if self.profile.is_sandbox:
            self.note("sandbox: answered by the emulator on this machine; nothing was really sent")
        return self.on_close(
            Client(
                self.profile.base_url,
                credential,
                seconds=self.options.seconds,
                log=self.trace,
                sleep=self.sleep,
                local=self._answer_locally() if self.profile.is_sandbox else None,
            )
        )

    def today(self) -> date:
        """The day on this machine's calendar."""
        from datetime import datetime

        return datetime.fromtimestamp(self.clock()).astimezone().date()

    def enable_gc(self) -> None:
        """This run may go on for long: collect garbage, which a short one does without."""
        gc.enable()

    def _answer_locally(self) -> Callable[[Outgoing], Reply]:
        from msgctl.cli.emulated import answered_by

        return answered_by(self.emulator)

    def on_close(self, opened: Closeable) -> Closeable:
        """Close something at the end of the run."""
        self._opened.append(opened)
        return opened

    def close(self) -> None:
        """Close what was opened, the last first."""
        while self._opened:
            self._opened.pop().close()

    # --- making requests

    def run(
        self, operation: Operation, given: Mapping[str, request.Value], body: bytes | None = None
    ) -> ServiceResult | OwnResult:
        """Perform an operation; in a dry run, describe its request."""
        if self.options.dry_run:
            return self.describe(operation, [given], body)
        response = self.perform(operation, given, body)
        return ServiceResult([response])

    def perform(
        self,
        operation: Operation,
        given: Mapping[str, request.Value],
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        """Perform an operation and return its response.

        ``timeout`` is a time in seconds that bounds it further; it is not retried then.
        """
        request.build(operation, given, body)  # usage errors come before those of the profile
        self.check_fields(operation)
        from msgctl.cli import requests

        return requests.send(self, operation, given, body, timeout=timeout)

    def describe(
        self, operation: Operation, each: Sequence[Mapping[str, request.Value]], body: bytes | None = None
    ) -> OwnResult:
        """Describe the requests of an operation, credentials masked, for a dry run."""
        from msgctl.cli import dry_run

        self.check_fields(operation)
        return dry_run.describe([request.build(operation, given, body) for given in each], self.profile.base_url)

    def check_fields(self, operation: Operation) -> None:
        """Check --fields before anything is sent. Raises UsageError."""
        self._refuse_fields_of_json()
        if self.options.fields:
            from msgctl.output.fields import check_fields

            check_fields(self.options.fields, operation.answer)

    def show(
        self,
        document: Mapping[str, Any] | Collection[Mapping[str, Any]],
        columns: Sequence[str],
        more: Sequence[str] = (),
        *,
        spare: Sequence[str] = (),
        empty: str = "",
    ) -> None:
        """Print a document of the tool's own at once. Commands return an `OwnResult` instead."""
        self.check_own_fields((*columns, *more))
        self.printer.print(OwnResult(document, tuple(columns), tuple(more), spare))
        if empty and not document and self.shows_tables:
            self.note(empty)

    @property
    def shows_tables(self) -> bool:
        """Whether results are tables for a person at a terminal."""
        return self.options.format is Format.TABLE and is_terminal(self.stdout)

    def check_own_fields(self, columns: Iterable[str]) -> None:
        """Find out about --fields before anything is done. Raises UsageError."""
        self._refuse_fields_of_json()
        if self.options.fields:
            from msgctl.output.fields import check_own_fields

            check_own_fields(self.options.fields, tuple(columns))

    def _refuse_fields_of_json(self) -> None:
        if self.options.fields and self.options.format is Format.JSON:
            raise UsageError(
                "--fields narrows a table, csv or tsv, and --json prints the whole document", "Leave one of them out."
            )

    # --- what a person is told and asked

    def has_color(self, stream: TextIO) -> bool:
        return has_color(stream, self.environ, refused=self.options.no_color)

    def note(self, text: str) -> None:
        """A line on standard error, unless --quiet."""
        if not self.options.quiet:
            self.say(self.wrapped(text))

    def warn(self, text: str) -> None:
        """Print a warning on standard error, even with --quiet, but not under --json."""
        if self.options.format is not Format.JSON:
            self.say(self.wrapped(f"Warning: {text}"))

    def trace(self, text: str) -> None:
        """A line on standard error under --verbose."""
        if self.options.verbose:
            self.say(text)

    def wrapped(self, text: str) -> str:
        """Text broken at words, where standard error is a terminal."""
        if not is_terminal(self.stderr):
            return text
        from msgctl.output.cells import fold
        from msgctl.output.screen import Screen

        width = Screen.of(self.stderr, color=False).width
        if width is None:
            return text
        return "\n".join(part for line in text.split("\n") for part in fold(line, width) or [""])

    def say(self, text: str) -> None:
        self.stderr.write(text + "\n")
        self.stderr.flush()

    def confirm(self, question: str, otherwise: str = "nothing was changed") -> None:
        """Ask before something is lost or spent, on a terminal. Raises Cancelled where the answer is not yes."""
        if self.options.yes or not is_terminal(self.stdin):
            return
        if self.ask(f"{question} [y/N] ").strip().casefold() not in {"y", "yes"}:
            raise Cancelled("stopped", consequence=otherwise)

    def ask(self, prompt: str) -> str:
        """One line from the terminal. Raises Cancelled where there is none.

        Bytes that are no text come as lone surrogates (PEP 383), like those of an argument.
        """
        self.stderr.write(prompt)
        self.stderr.flush()
        line = self.stdin.buffer.readline(MOST_TYPED).decode("utf-8", "surrogateescape")
        if not line:
            self.stderr.write("\n")
            raise Cancelled("cancelled", consequence="nothing was done")
        return line

    def refuse_dry_run(self, command: str) -> None:
        """Keep ``-n`` from being taken for harmless where nothing could be shown instead. Raises UsageError."""
        if self.options.dry_run:
            raise UsageError(f"{command} makes no request, so --dry-run has nothing to show", "Leave --dry-run out.")
