"""One run of msgctl: its options, streams and clock, the objects that commands use, and the facts of its error."""

import os
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgctl import files
from msgctl.cli.shell.global_options import GlobalOptions
from msgctl.config import file as config_file
from msgctl.config import profiles
from msgctl.config.urls import location_of, resolved
from msgctl.errors import STORE_ERRORS, ConfigurationError, Hint, NoProfileError, StoreMovedError
from msgctl.http import SentCounter
from msgctl.operations import Effect, Operation
from msgctl.output.result import Format

if TYPE_CHECKING:
    from datetime import date, datetime, tzinfo

    from msgctl.config.profiles import Credential
    from msgctl.http.client import Client
    from msgctl.outcomes.outcome import Outcome
    from msgctl.outcomes.words import AddedWords
    from msgctl.output.printer import Printer, Screen
    from msgctl.sandbox.emulator import Emulator
    from msgctl.store.store import Store

MAX_CHECK = 2.0
"""Seconds that a command waits for a store that it does not need."""
MAX_CLOCK_ERROR = 60.0
"""Seconds that this machine's clock may differ from the clock of a store on a server."""
STORE_CHANGES = {"optout add", "optout remove", "optout import", "job cancel", "job remove", "history clear"}
"""The commands that change only the store."""


class Run:
    """The facts about a run that its error and its notes report."""

    command = "msgctl"
    """The command without ``msgctl``, such as ``sms send``, once it is known."""
    operation: Operation | None = None
    """The operation of the command, once it is known."""
    effect: Effect | None = None
    """The effect of the command on the service; None if it makes no request."""
    is_understood = False
    """Whether the whole command line was parsed, so that `Context.options` is complete."""
    completes_files = False
    """Whether the shell may complete the name of a file here."""
    recipients: Sequence["Outcome"] = ()
    """The outcomes of the recipients of a single send, once they are known."""
    job: str | None = None
    """The ID of the job that the command is about, once it is known."""
    is_job_stored = False
    """Whether all results of the job that this run has sent are stored."""
    is_replayed = False
    """Whether the result comes from an earlier run with the same key or name."""
    is_once = False
    """Whether a repeated command sends nothing, because of its --once key."""
    is_sandbox_noted = False

    def __init__(self) -> None:
        self.sent = SentCounter()
        """The requests that may have sent or changed something; the contexts and clients of a run share it."""


class Context:
    """The streams, options and clock of a run, and the profile, store and client that its commands use.

    They are created when they are first needed, and closed at the end. For another profile or store, use
    `with_profile`. Streams and time are parameters, so that tests can replace them.
    """

    def __init__(
        self,
        *,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], float] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.environ = os.environ if environ is None else environ
        self._given_clock = clock
        self.clock = clock or time.time
        self.monotonic = monotonic
        self.sleep = sleep
        self.options = GlobalOptions()
        self.usual_format = Format.TABLE if stdout.isatty() else Format.TSV
        """The output format of a run without -o and --json."""
        self.run = Run()
        self.stack = ExitStack()
        """Resources to close at the end of the run."""

    # --- created when first needed

    @cached_property
    def config_path(self) -> Path:
        return files.config_file(self.environ)

    @cached_property
    def config(self) -> config_file.ConfigFile:
        """The configuration file. Warns about settings that msgctl does not know. Raises ConfigurationError."""
        config = config_file.load(self.config_path)
        if not self._is_doctor:
            for fault in profiles.unknown_settings(config):
                self.warn(fault)
        return config

    @property
    def _is_doctor(self) -> bool:
        """Whether the command itself reports faults of the configuration file and the store."""
        return self.run.command == "doctor"

    @cached_property
    def profile(self) -> profiles.Profile:
        """The profile to use. Raises ConfigurationError."""
        return self.chosen(self.options.profile)

    def chosen(self, name: str | None) -> profiles.Profile:
        """Return the profile with a name, or without one the profile of a run without -p. Raises ConfigurationError."""
        profile = profiles.choose(lambda: self.config, self.environ, name).checked()
        if not profile.by:
            config_file.refuse_unsafe(self.environ)
        return profile

    @property
    def words(self) -> "AddedWords":
        """The words of the service that the profile adds; none without a profile."""
        from msgctl.outcomes.words import NO_WORDS, AddedWords

        with suppress(ConfigurationError):
            return AddedWords(self.profile.words)
        return NO_WORDS

    def words_of(self, profile: str) -> "AddedWords":
        """Return the words that a stored profile adds, if the file can be read."""
        from msgctl.outcomes.words import NO_WORDS, AddedWords

        with suppress(ConfigurationError):
            return AddedWords(profiles.stored(self.config, profile).setting("words") or {})
        return NO_WORDS

    def use(self, profile: profiles.Profile) -> None:
        """Use the profile of a job, or one that is not saved yet, for the rest of the run. The store stays the same."""
        for cached in ("credential", "client"):
            vars(self).pop(cached, None)
        self.profile = profile

    def with_profile(self, name: str | None, store: "Store | None" = None) -> "Context":
        """Return a context of the same run with another profile and client, and its store or ``store``."""
        other = copy(self)
        for cached in ("profile", "credential", "client", "store", "optional_store", "printer"):
            vars(other).pop(cached, None)
        other.options, other.run, other.stack = copy(self.options), copy(self.run), ExitStack()
        other.options.profile = name
        if store is not None:
            other.store = store
        return other

    @cached_property
    def printer(self) -> "Printer":
        from msgctl.output.printer import Printer

        return Printer(
            self.screen(self.stdout),
            self.screen(self.stderr),
            self.format,
            self.options.fields,
            header=not self.options.no_header,
            quiet=self.options.quiet,
            now=self.now,
            for_profile=self.for_profile,
            words=lambda: self.words,
        )

    @cached_property
    def store(self) -> "Store":
        """The store of this run. Raises StoreNotReachedError and ConfigurationError."""
        return self._open_store(self.options.timeout)

    @cached_property
    def optional_store(self) -> "Store | None":
        """The `store` for a command that can do without it; None, with a warning, if it cannot be used."""
        if "store" not in vars(self):
            try:
                self.store = self._open_store(min(self.options.timeout, MAX_CHECK))
            except STORE_ERRORS as error:
                self.warn(f"{error.what}. This command continues without it.")
                return None
        return self.store

    def _open_store(self, timeout: float) -> "Store":
        from msgctl.store.store import open_store

        try:
            store = open_store(self.store_location, timeout=timeout, clock=self._given_clock)
        except StoreMovedError as error:
            raise error.with_hint(*self.commands_for_store(error.new)) from None
        except STORE_ERRORS as error:
            if self.run.command in STORE_CHANGES:
                error = error.replaced(consequence="nothing was changed")
            raise error from None
        if abs(store.machine_error) > MAX_CLOCK_ERROR:
            way = "ahead of" if store.machine_error > 0 else "behind"
            self.warn(
                f"This machine's clock is {abs(store.machine_error):,.0f} seconds {way} the clock of the store, which "
                "decides when messages are sent. Correct this machine's clock."
            )
        return self.stack.enter_context(closing(store))

    @property
    def chosen_store(self) -> str | Path | None:
        """The URL or path of the store in MSGCTL_STORE or the profile; None for the usual file."""
        profile = None
        with suppress(NoProfileError):  # `msgctl optout` needs no profile
            profile = self.profile
        if profile and profile.is_sandbox:
            return files.state_path(profiles.SANDBOX_STORE)
        location = self.environ.get("MSGCTL_STORE") or (profile and profile.store)
        return location_of(location) if location else None

    @property
    def store_location(self) -> str | Path:
        """The URL or path of the store, including the usual file, in one spelling."""
        return resolved(self.chosen_store or files.state_path("store.sqlite3", "MSGCTL_STORE"))

    def commands_for_store(self, new: str) -> list[str]:
        """Return the commands that change the store of all profiles that use this run's store."""
        if not self.environ.get("MSGCTL_STORE"):
            location, names = str(self.store_location), []
            for name in self.config.profiles:
                with suppress(ConfigurationError):
                    if str(self.with_profile(name).store_location) == location:
                        names.append(name)
            if names:
                return [f"msgctl profile set {shlex.quote(name)} --store {shlex.quote(new)}" for name in names]
        return [f"export MSGCTL_STORE={shlex.quote(new)}"]

    @cached_property
    def emulator(self) -> "Emulator":
        from msgctl.sandbox.emulator import Emulator, SandboxSettings

        settings = SandboxSettings(profiles.SANDBOX_CLIENT, profiles.SANDBOX_KEY)
        path = files.state_path(profiles.SANDBOX_STATE)
        return self.stack.enter_context(closing(Emulator(path, settings, clock=self.clock)))

    @cached_property
    def credential(self) -> "Credential":
        """The client ID and the key of the profile. Raises ConfigurationError."""
        return self.profile.credential(is_quiet=self.is_json)

    @cached_property
    def client(self) -> "Client":
        credential = self.credential
        if self.chosen_store is not None and not (self.profile.is_sandbox or self._is_doctor):
            self.optional_store  # noqa: B018 (it warns)
        from msgctl.http.client import Client

        transport = None
        if self.profile.is_sandbox:
            from msgctl.sandbox.transport import SandboxTransport

            transport = partial(SandboxTransport, self.emulator, self.sleep)
            self.note_sandbox()
        client = Client(
            self.profile.base_url,
            credential,
            timeout=self.options.timeout,
            log=self.say,
            verbosity=self.options.verbose,
            counter=self.run.sent,
            sleep=self.sleep,
            transport=transport,
            added=self.words,
        )
        return self.stack.enter_context(closing(client))

    @property
    def zone(self) -> "tzinfo | None":
        """The time zone of times for people: the zone of the profile, or None for this machine's zone."""
        from msgctl.values import zone_of

        with suppress(ConfigurationError):
            return zone_of(self.profile.timezone)
        return None

    def now(self) -> "datetime":
        """Return the time in `zone`; without a time zone, the local time of this machine."""
        from datetime import datetime

        return datetime.fromtimestamp(self.clock(), self.zone)

    def time_in_words(self, seconds: float) -> str:
        """Return a time in seconds since 1970 in `zone`: ``Tue 2026-12-01 09:00 America/Bogota``."""
        from datetime import UTC, datetime

        local = datetime.fromtimestamp(seconds, UTC).astimezone(self.zone)
        return f"{local:%a %Y-%m-%d %H:%M} {self.zone or local.tzname()}"

    def start_of(self, day: "date") -> int:
        """Return when a day begins in `zone`, in milliseconds since 1970."""
        from datetime import datetime

        if day.year < 1970:
            return 0
        return int(datetime(day.year, day.month, day.day, tzinfo=self.zone).timestamp() * 1000)

    # --- standard output and standard error

    @property
    def format(self) -> Format:
        return self.options.format or self.usual_format

    @property
    def is_json(self) -> bool:
        """Whether --json was given: then standard error has only JSON, too."""
        return self.options.format is Format.JSON

    @property
    def shows_notes(self) -> bool:
        return not (self.options.quiet or self.is_json)

    def screen(self, stream: TextIO) -> "Screen":
        """Return the screen of a stream. In this order, --no-color, NO_COLOR, FORCE_COLOR and TERM decide on colour."""
        from msgctl.output.printer import Screen, terminal_width

        is_terminal = stream.isatty()
        is_refused = self.options.no_color or self.environ.get("NO_COLOR")
        has_color = is_terminal and self.environ.get("TERM", "") not in ("", "dumb", "unknown")
        color = not is_refused and (has_color or bool(self.environ.get("FORCE_COLOR")))
        width = terminal_width(stream) if is_terminal else None
        return Screen(stream, width, color)

    def for_profile(self, text: str) -> str:
        """Return a text with the -p of this run in its commands, if it is a `Hint`."""
        if self.options.profile and isinstance(text, Hint):
            return text.shown(self.options.profile)
        return text

    def note(self, text: str) -> None:
        """Print a line on standard error, unless --quiet or --json, which keeps standard error for JSON only."""
        if self.shows_notes:
            self._write(self.for_profile(text))

    def warn(self, text: str) -> None:
        """Print a warning on standard error, even with --quiet, but not under --json."""
        if not self.is_json:
            self._write(f"Warning: {text}")

    def _write(self, text: str) -> None:
        """Print a text, wrapped unless it contains a command to copy."""
        if "msgctl " not in text:
            text = self.wrapped(text)
        self.say(text)

    def wrapped(self, text: str, *, indent: int = 0) -> str:
        """Return a text wrapped at words if standard error is a terminal; lines after the first are indented."""
        if not self.stderr.isatty():
            return text
        from textwrap import TextWrapper

        from msgctl.output.printer import terminal_width

        width = terminal_width(self.stderr) - indent
        wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        return ("\n" + " " * indent).join(part for line in text.split("\n") for part in wrapper.wrap(line) or [""])

    def say(self, text: str) -> None:
        """Print a line on standard error."""
        self.stderr.write(text + "\n")
        self.stderr.flush()

    def check_fields(self, columns: Iterable[str]) -> None:
        """Check --fields before a request is made. Raises UsageError."""
        if self.options.fields:
            from msgctl.output import fields

            fields.check_names(self.options.fields, columns)

    def note_sandbox(self) -> None:
        """Print that nothing is really sent, once in a run, if the profile is the sandbox."""
        try:
            if self.run.is_sandbox_noted or not self.profile.is_sandbox:
                return
        except NoProfileError:  # `msgctl optout` needs no profile
            return
        self.run.is_sandbox_noted = True
        is_sent = self.run.effect is Effect.SENDS and not self.options.dry_run
        note = "sandbox: not really sent" if is_sent else "sandbox: simulated"
        if self.printer.shows_verdicts:
            self.printer.aside = f"({note})"
        else:
            self.note(note)
