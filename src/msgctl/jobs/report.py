"""Report on a job: its counts, and the outcome of each recipient."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgctl.credits import as_credits
from msgctl.jobs.ending import paused_because
from msgctl.jobs.settings import Settings
from msgctl.outcomes.delivery import Delivery, classify, is_final
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.store import recipients, results
from msgctl.store.history import content_as_text
from msgctl.store.jobs import Job
from msgctl.store.queue import OPTED_OUT, REPEATED
from msgctl.store.recipients import Reported
from msgctl.store.store import Store
from msgctl.text import timestamp

OUTCOMES = ("accepted", "refused", "unknown", "pending", "invalid", "duplicate", "excluded")
DELIVERED, UNDELIVERED, ON_ITS_WAY = "delivered", "undelivered", "on-its-way"
DELIVERIES = (DELIVERED, UNDELIVERED, ON_ITS_WAY)
"""Accepted recipients by delivery state: `UNDELIVERED` is final, but not delivered."""
EXCLUSIONS = {OPTED_OUT: "opted_out", REPEATED: "repeats"}
"""The counts of people whom a job left out, by reason; any other reason is a limit."""
COLUMNS = ("line", "phone", "outcome", "time", "id", "status", "state", "credits", "error", "message")


@dataclass(frozen=True)
class Summary:
    """A summary of a job, as ``job show`` prints it. Times are ISO 8601.

    A request in flight is pending while the job is running, and otherwise unknown. Fields that are not in `JOB_FIELDS`
    are for a terminal; ``states`` counts the delivery states, and is None if they were not read.
    """

    job: str
    name: str | None
    command: str
    file: str
    profile: str
    state: str
    recipients: int
    accepted: int
    refused: int
    unknown: int
    pending: int
    invalid: int
    duplicate: int
    excluded: int
    requests: int
    credits: int | float
    machine: str
    phone_column: str | None
    due: str | None
    created: str
    updated: str
    phones: str = ""
    blank: int = 0
    window: str | None = None
    at_most: str | None = None
    max_credits: int | None = None
    paused: str = ""
    opted_out: int = 0
    repeats: int = 0
    over_limit: int = 0
    states: Mapping[str, int] | None = None
    words: AddedWords = NO_WORDS
    replayed: bool = False
    attempt: int = 1

    @property
    def sendable(self) -> int:
        """How many recipients the job sends to, without the recipients left out."""
        return self.accepted + self.refused + self.unknown + self.pending

    @property
    def delivered(self) -> int:
        """How many messages were delivered."""
        return self._in(DELIVERED)

    @property
    def undelivered(self) -> int:
        """How many messages have a final state other than delivered."""
        return self._in(UNDELIVERED)

    @property
    def on_its_way(self) -> int:
        """How many accepted messages have no final state."""
        return self.accepted - self.delivered - self.undelivered

    def _in(self, delivery: str) -> int:
        return sum(number for state, number in (self.states or {}).items() if _delivery(state, self.words) == delivery)

    def document(self) -> dict[str, Any]:
        """Return the fields by name; without delivery states, only the fields of a list."""
        # Not `asdict`, which copies every value: half the time of a list of 2,000 jobs.
        names = LIST_FIELDS if self.states is None else JOB_FIELDS
        document = {name: getattr(self, name) for name in names}
        if self.replayed:
            document["replayed"] = True
        return document


JOB_FIELDS = (
    *("job", "name", "command", "file", "profile", "state", "recipients", *OUTCOMES, "requests"),
    *("delivered", "undelivered", "on_its_way", "credits", "machine", "phone_column", "due", "created", "updated"),
)
"""The columns of a job."""
LIST_FIELDS = tuple(name for name in JOB_FIELDS if name not in ("delivered", "undelivered", "on_its_way"))
"""The columns of a list of jobs. A list does not read delivery states, because it would read every recipient."""


def summary(job: Job) -> Summary:
    """Return the summary of a job."""
    in_flight_pending = job.sending if job.is_running else 0
    due = None
    if job.due is not None and job.shown_state == "scheduled":
        due = timestamp(job.due / 1000)
    settings = Settings.shown(job.settings)
    return Summary(
        job=job.id,
        name=job.name,
        command=job.command,
        file=settings.file,
        profile=job.profile,
        state=job.shown_state,
        recipients=job.recipients,
        accepted=job.accepted,
        refused=job.refused,
        unknown=job.unknown + job.sending - in_flight_pending,
        pending=job.pending + in_flight_pending,
        invalid=job.invalid,
        duplicate=job.duplicate,
        excluded=job.excluded,
        requests=job.requests,
        credits=as_credits(job.credits) or 0,
        machine=job.machine,
        phone_column=settings.phone_column,
        due=due,
        created=timestamp(job.created / 1000),
        updated=timestamp(job.updated / 1000),
        phones=settings.phones,
        blank=settings.blank,
        attempt=job.attempt,
    )


def details(store: Store, job: Job, words: AddedWords) -> Summary:
    """Return the summary of a job, with why it is paused, its limits, who is left out, and its delivery states.

    ``words`` are the words of its profile.
    """
    settings = Settings.shown(job.settings)
    exclusions: Counter[str] = Counter()
    if job.excluded:
        for reason, number in results.exclusions(store, job.number).items():
            exclusions[EXCLUSIONS.get(reason, "over_limit")] += number
    states = {state: number for state, number in results.states(store, job.number).items() if state is not None}
    return replace(
        summary(job),
        window=settings.window_in_words,
        at_most=settings.at_most,
        max_credits=settings.max_credits,
        paused=paused_because(job),
        opted_out=exclusions["opted_out"],
        repeats=exclusions["repeats"],
        over_limit=exclusions["over_limit"],
        states=states,
        words=words,
    )


def selected(store: Store, job: int, only: Collection[str], words: AddedWords) -> tuple[list[str], list[str]]:
    """Return the outcomes and the delivery states that select recipients; ``only`` may contain `DELIVERIES`."""
    outcomes = [name for name in only if name in OUTCOMES]
    wanted = {name for name in only if name in DELIVERIES}
    if not wanted:
        return outcomes, []
    return outcomes, [state or "" for state in results.states(store, job) if _delivery(state, words) in wanted]


def _delivery(state: str | None, words: AddedWords) -> str:
    """Return the class of a delivery state, one of `DELIVERIES`."""
    if state is None or not is_final(state, words):
        return ON_ITS_WAY
    return DELIVERED if classify(state, words) is Delivery.DELIVERED else UNDELIVERED


class Report:
    """Every row of the file with its outcome, in the order of the file; each iteration reads the store again.

    ``only`` limits it to some of `OUTCOMES` and `DELIVERIES`.
    """

    def __init__(self, store: Store, job: Job, words: AddedWords, only: Collection[str] = ()) -> None:
        self._store = store
        self._job = job
        self._words = words
        self._only = only
        settings = Settings.shown(job.settings)
        self._fixed = settings.fixed
        self.columns = with_columns_of_file(COLUMNS, settings.columns)

    def __bool__(self) -> bool:
        """Return whether there are any rows."""
        return next(self._recipients(), None) is not None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self._row, self._recipients())

    def _recipients(self) -> Iterator[Reported]:
        outcomes: Sequence[str] = ()
        states: Sequence[str] = ()
        if self._only:
            outcomes, states = selected(self._store, self._job.number, self._only, self._words)
            if not (outcomes or states):
                return iter(())
        is_running = self._job.is_running
        return recipients.report(self._store, self._job.number, outcomes=outcomes, states=states, is_running=is_running)

    def _row(self, recipient: Reported) -> dict[str, Any]:
        own = cells_of(recipient.columns, len(self.columns) - len(COLUMNS))
        time = message = None
        if recipient.time is not None:
            time = timestamp(recipient.time / 1000)
        if recipient.parameters is not None:
            message = content_as_text(self._fixed, recipient.parameters)
        values = (
            *(recipient.line, recipient.phone, recipient.outcome, time, recipient.id, recipient.status),
            *(recipient.state, as_credits(recipient.credits), _error(recipient), message),
            *own,
        )
        return dict(zip(self.columns, values, strict=True))


def cells_of(columns: str | None, number: int) -> list[str | None]:
    """Return the cells of a row's own columns from their JSON, which omits empty cells at the end."""
    if columns is None:
        return [None] * number
    cells = json.loads(columns)
    return [*cells, *[""] * (number - len(cells))]


def with_columns_of_file(columns: Sequence[str], own: Iterable[str]) -> tuple[str, ...]:
    """Return columns with the file's own columns; a name that is already used becomes ``file.NAME``."""
    names = tuple(columns)
    for name in own:
        while name in names:
            name = f"file.{name}"  # noqa: PLW2901
        names += (name,)
    return names


def _error(recipient: Reported) -> str | None:
    outcome = recipient.outcome
    if outcome in ("accepted", "pending"):
        return None
    if recipient.error:
        return recipient.error
    if outcome == "refused":
        return f"the service responded {recipient.status}" if recipient.status else "the service refused this number"
    return "no response shows whether this number was accepted"
