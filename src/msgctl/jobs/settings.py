"""The settings of a job: one frozen dataclass, which the store keeps as JSON.

Each option of a job is one field of `Settings` with its `Option`. The options of commands are built from the fields.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Annotated, Any, NamedTuple, get_type_hints

from msgctl import operations, values
from msgctl.errors import NOTHING_SENT, ConfigurationError
from msgctl.http.request import Value
from msgctl.jobs.schedule import COLOMBIA, Frequency, SendingHours, Window, described, is_colombian
from msgctl.operations import Operation
from msgctl.text import clean

MAX_CREDITS = 10**15
MAX_CANARY = 10**9
MAX_CONCURRENCY = 256
MAX_BATCH = 1000
MIN_RATE = 0.001
MAX_RATE = 100_000.0


class Option(NamedTuple):
    """The option of a field: ``parse`` reads its value, and None marks a flag. ``panel`` is its heading in the help.

    ``job resume`` has the option, too, if ``is_changeable``.
    """

    name: str
    help: str
    panel: str
    metavar: str = ""
    parse: Callable[[str], Any] | None = None
    is_changeable: bool = False


def _limit(text: str) -> str:
    return str(Frequency.parse(text))


@dataclass(frozen=True)
class Settings:
    """The content of a job, its account, and its rules.

    ``fixed`` are the parameters that all requests have. ``columns`` are the columns of the file except the
    ``phone_column``. ``phones`` describes where its phones are, and ``blank`` counts its blank rows. ``zone`` is the
    time zone of the job; None is the zone of the machine, if it has no known name. ``is_past_canary`` means that a
    person has resumed the job after --canary.
    """

    operation: str
    file: str
    profile: str
    base_url: str
    client: int
    fixed: Mapping[str, Value]
    columns: Sequence[str] = ()
    phone_column: str | None = None
    phones: str = ""
    blank: int = 0
    timezone: str | None = None
    is_past_canary: bool = False
    max_credits: Annotated[
        int | None,
        Option(
            "--max-credits",
            "Pause before the job costs more than N credits. Until the price is known, messages are sent one at a "
            "time.",
            "Safety",
            "N",
            partial(values.whole_number, name="--max-credits", most=MAX_CREDITS),
            is_changeable=True,
        ),
    ] = None
    at_most: Annotated[
        str | None,
        Option(
            "--at-most",
            "Maximum messages per person: N/day (since midnight) or N/week (since Monday). Counts the account's SMS, "
            "calls and chat-app messages in the store.",
            "Safety",
            "LIMIT",
            _limit,
        ),
    ] = None
    again: Annotated[
        bool,
        Option("--again", "Send even to people who got the same message in the last 12 hours.", "Safety"),
    ] = False
    canary: Annotated[
        int | None,
        Option(
            "--canary",
            "Pause after N recipients; only `msgctl job resume` continues.",
            "Safety",
            "N",
            partial(values.whole_number, name="--canary", least=1, most=MAX_CANARY),
        ),
    ] = None
    window: Annotated[
        str | None,
        Option(
            "--window",
            "Send only during these hours: 08:00-19:00 in the profile's time zone, or co for the hours of Colombian "
            "law, with --at in Bogotá time.",
            "When",
            "HOURS",
            str,
        ),
    ] = None
    days: Annotated[
        str | None,
        Option("--days", "With --window: only on these days, for example mon-sat.", "When", "DAYS", str),
    ] = None
    at: Annotated[
        str | None,
        Option(
            "--at",
            "Schedule the job: 2026-12-01 09:00, or 09:00 for its next occurrence. `msgctl job run-due` sends it.",
            "When",
            "TIME",
            str,
        ),
    ] = None
    batch_size: Annotated[
        int,
        Option(
            "--batch-size",
            "Maximum recipients per request; only recipients of the same message share a request.",
            "Speed",
            "N",
            partial(values.whole_number, name="--batch-size", least=1, most=MAX_BATCH),
        ),
    ] = 100
    concurrency: Annotated[
        int,
        Option(
            "--concurrency",
            "Maximum simultaneous requests.",
            "Speed",
            "N",
            partial(values.whole_number, name="--concurrency", least=1, most=MAX_CONCURRENCY),
            is_changeable=True,
        ),
    ] = 8
    rate: Annotated[
        float | None,
        Option(
            "--rate",
            "Maximum recipients per second.",
            "Speed",
            "RATE",
            partial(values.decimal, name="--rate", least=MIN_RATE, most=MAX_RATE),
            is_changeable=True,
        ),
    ] = None

    @property
    def performs(self) -> Operation:
        """The operation of each request."""
        return next(operation for operation in operations.OPERATIONS if operation.name == self.operation)

    @property
    def command(self) -> str:
        """The command that created the job."""
        return f"{self.operation.split()[0]} bulk"

    @property
    def zone(self) -> str | None:
        """The name of the job's time zone; None is the machine's time zone."""
        return COLOMBIA if self.window and is_colombian(self.window) else self.timezone

    @property
    def window_in_words(self) -> str | None:
        """The window in words: ``Mon-Sat 08:00-19:00``. The hours of Colombian law have their own time zone."""
        if self.window is None:
            return None
        words = described(self.window, self.days)
        return f"{words}, {COLOMBIA}" if is_colombian(self.window) else words

    def hours(self, clock: Callable[[], float]) -> SendingHours:
        """Return the hours at which the job may send. Raises UsageError and ConfigurationError."""
        window = None if self.window is None else Window.parse(self.window, self.days)
        return SendingHours(window, self.zone, clock)

    def dump(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Settings:
        """Return the settings in JSON of `dump`, to send with them. Raises ConfigurationError if some are not known."""
        own = json.loads(text)
        if unknown := sorted(own.keys() - {field.name for field in fields(cls)}):
            raise ConfigurationError(
                f"The job was written by a newer msgctl: this one does not know its setting {clean(unknown[0])}",
                "Update this msgctl.",
                consequence=NOTHING_SENT,
                reason="newer_store",
            )
        return cls(**own)

    @classmethod
    def shown(cls, text: str) -> Settings:
        """Return the known settings in the JSON of `dump`, so that a newer msgctl's job can be shown, too."""
        own = json.loads(text)
        return cls(**{field.name: own[field.name] for field in fields(cls) if field.name in own})


_HINTS = get_type_hints(Settings, include_extras=True)
OPTIONS: Mapping[str, Option] = {
    field.name: option for field in fields(Settings) for option in getattr(_HINTS[field.name], "__metadata__", ())
}
"""The options of a job by the names of their fields, in the order of the help."""
TYPES: Mapping[str, Any] = {name: _HINTS[name].__origin__ for name in OPTIONS}
"""The types of the options' values."""
DEFAULTS: Mapping[str, Any] = {field.name: field.default for field in fields(Settings) if field.name in OPTIONS}
