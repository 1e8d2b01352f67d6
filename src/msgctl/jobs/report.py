"""Report on a job: its counts, and the outcome of each recipient."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from msgctl.config import profiles
from msgctl.credits import as_credits
from msgctl.errors import Hint
from msgctl.jobs.ending import resend_hint, resume_hint, stopped_by
from msgctl.jobs.settings import Settings
from msgctl.outcomes.delivery import Delivery, classify, is_final
from msgctl.outcomes.outcome import ACCEPTED, LEFT_OUT, PENDING, REFUSED, UNKNOWN
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.store import recipients, results
from msgctl.store.history import content_as_text
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import Ending, Why
from msgctl.store.queue import OPTED_OUT, REPEATED
from msgctl.store.recipients import PendingMessages, RecipientResult
from msgctl.store.results import HasState
from msgctl.store.store import Store
from msgctl.text import timestamp

ROW_OUTCOMES = (ACCEPTED, REFUSED, UNKNOWN, PENDING, *LEFT_OUT)
DELIVERED, UNDELIVERED, ON_ITS_WAY = "delivered", "undelivered", "on-its-way"
DELIVERIES = (DELIVERED, UNDELIVERED, ON_ITS_WAY)
"""The delivery states of accepted recipients; `UNDELIVERED` is any final state except delivered."""
EXCLUSIONS = {OPTED_OUT: "opted_out", REPEATED: "repeats"}
"""The counts of people whom a job left out, by reason; any other reason is a limit."""
REPORT_COLUMNS = ("line", "phone", "outcome", "time", "id", "status", "state", "credits", "error", "message")


JOB_FIELDS = (
    *("job", "name", "command", "file", "profile", "state", "recipients", *ROW_OUTCOMES, "requests"),
    *("delivered", "undelivered", "on_its_way", "credits", "machine", "phone_column", "due", "created", "updated"),
)
"""The columns of a job."""
LIST_FIELDS = tuple(name for name in JOB_FIELDS if name not in ("delivered", "undelivered", "on_its_way"))
"""The columns of a list of jobs. A list does not read delivery states, because it would read every recipient."""


class Deliveries(NamedTuple):
    """The numbers of accepted messages that are delivered, undelivered, or without a final state."""

    delivered: int
    undelivered: int
    on_its_way: int


@dataclass(frozen=True)
class Summary:
    """A job and its settings, as ``job show`` prints them.

    ``states`` counts the delivery states. ``exclusions`` counts the people left out while the job was sending, by the
    names in `EXCLUSIONS`. In a list, neither is read, and ``states`` is None. ``words`` are the words of its profile.
    ``pending`` is only read for people.
    """

    job: Job
    settings: Settings
    states: Mapping[str, int] | None = None
    exclusions: Counter[str] = field(default_factory=Counter)
    words: AddedWords = NO_WORDS
    is_replayed: bool = False
    pending: PendingMessages | None = None

    @property
    def outcomes(self) -> dict[str, int]:
        """The numbers of recipients by outcome. A request in flight is pending while the job runs, then unknown."""
        job = self.job
        outcomes = {name: getattr(job, name) for name in ROW_OUTCOMES}
        outcomes[PENDING if job.is_running else UNKNOWN] += job.sending
        return outcomes

    @property
    def due(self) -> float | None:
        """When it is due, in seconds since 1970; None unless it is scheduled."""
        if self.job.due is None or self.job.shown_state != "scheduled":
            return None
        return self.job.due / 1000

    @property
    def credits(self) -> int | float:
        """The credits that the service has charged."""
        return as_credits(self.job.credits) or 0

    @property
    def paused(self) -> str:
        """Why it is paused; empty if it is not, or if the reason is not known."""
        job = self.job
        if job.shown_state != "paused":
            return ""
        if job.state == "paused" and not job.ending:  # by the second Ctrl-C, which leaves no ending
            return "Interrupted"
        return stopped_by(Ending.load(job.ending))

    @property
    def deliveries(self) -> Deliveries:
        classes = Counter[str]()
        for state, number in (self.states or {}).items():
            classes[_delivery(state, self.words)] += number
        delivered, undelivered = classes[DELIVERED], classes[UNDELIVERED]
        return Deliveries(delivered, undelivered, self.job.accepted - delivered - undelivered)

    def document(self) -> dict[str, Any]:
        """Return `JOB_FIELDS` by name, or without delivery states `LIST_FIELDS`, with times in ISO 8601."""
        job, due = self.job, None
        if self.due is not None:
            due = timestamp(self.due)
        values = {
            "job": job.id,
            "name": job.name,
            "command": job.command,
            "file": self.settings.file,
            "profile": job.profile,
            "state": job.shown_state,
            "recipients": job.recipients,
            **self.outcomes,
            "requests": job.requests,
            **self.deliveries._asdict(),
            "credits": self.credits,
            "machine": job.machine,
            "phone_column": self.settings.phone_column,
            "due": due,
            "created": timestamp(job.created / 1000),
            "updated": timestamp(job.updated / 1000),
        }
        names = LIST_FIELDS if self.states is None else JOB_FIELDS
        document = {name: values[name] for name in names}
        return {**document, "replayed": True} if self.is_replayed else document


def summary(job: Job) -> Summary:
    """Return the summary of a job for a list."""
    return Summary(job, Settings.shown(job.settings))


def details(store: Store, job: Job, words: AddedWords) -> Summary:
    """Return the summary of a job with its delivery states, and the numbers of people it left out."""
    exclusions: Counter[str] = Counter()
    if job.excluded:
        for reason, number in results.exclusion_counts(store, job.number).items():
            exclusions[EXCLUSIONS.get(reason, "over_limit")] += number
    states = {state: number for state, number in results.state_counts(store, job.number).items() if state is not None}
    return replace(summary(job), states=states, exclusions=exclusions, words=words)


def next_steps(summary: Summary, now: int, *, is_polled: bool = False) -> list[str]:
    """Return hints for the next steps with a job, at a time in milliseconds since 1970.

    ``is_polled`` means that `job states` has just read the states.
    """
    job, name, deliveries = summary.job, summary.job.typed, summary.deliveries
    if job.is_running:
        return [Hint("Check it again: ", f"job show {name}")]
    if job.state == "scheduled":
        return _steps_of_scheduled(job, now)
    steps: list[str] = []
    if job.unknown:
        steps.append(Hint("List recipients with unknown outcome: ", f"job report {name} --only unknown"))
    if job.command in ("sms bulk", "call bulk"):
        if deliveries.on_its_way > 0:
            check = Hint("Check the delivery: ", f"job states {name}")
            if is_polled:
                check = Hint("Wait for the rest: ", f"job states {name} --follow")
            steps.append(check)
        if deliveries.undelivered and is_polled:
            # The pending recipients of a cancelled job will never get the message.
            not_reached = f"pending,{UNDELIVERED}" if job.state == "cancelled" and job.pending else UNDELIVERED
            steps.append(Hint("See who was not reached: ", f"job report {name} --only {not_reached}"))
        if deliveries.undelivered and job.state != "cancelled":
            steps.append(Hint("Resend to them: ", f"job resend {name} --only undelivered"))
    if job.shown_state == "paused":
        how = Ending.load(job.ending)
        if how.why is Why.CANARY:  # first, see whether these people got it
            steps.append(resume_hint(job))
        else:
            steps[:0] = filter(None, (how.hint, resume_hint(job)))
    if job.refused and job.state != "cancelled":
        steps.append(resend_hint(job))
    return steps or [Hint("List the recipients: ", f"job report {name}")]


def _steps_of_scheduled(job: Job, now: int) -> list[str]:
    cron: str = Hint("", "job run-due")
    if job.profile == profiles.SANDBOX:  # no other run-due uses its store
        cron = "msgctl -p sandbox job run-due"
    if (job.due or 0) > now:
        then = "To send it then, run from cron every minute (otherwise nothing is sent):"
        return [Hint.joined(then, cron, separator=" ")]
    in_time = Hint.joined("To send such jobs in time, run from cron every minute:", cron, separator=" ")
    return [Hint("To send it now: ", f"job resume {job.typed}"), in_time]


def selected(only: Collection[str], words: AddedWords) -> tuple[list[str], HasState | None]:
    """Return the outcomes in ``only``, and a function that selects its delivery states; None if it has none."""
    outcomes = [name for name in only if name in ROW_OUTCOMES]
    if not {*only}.intersection(DELIVERIES):
        return outcomes, None
    return outcomes, lambda state: _delivery(state, words) in only


def _delivery(state: str | None, words: AddedWords) -> str:
    """Return the class of a delivery state, one of `DELIVERIES`."""
    if state is None or not is_final(state, words):
        return ON_ITS_WAY
    return DELIVERED if classify(state, words) is Delivery.DELIVERED else UNDELIVERED


def report_rows(store: Store, job: Job, words: AddedWords, only: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield every row of the file with its outcome; ``only`` limits them to some of `ROW_OUTCOMES` and `DELIVERIES`."""
    settings = Settings.shown(job.settings)
    columns = with_columns_of_file(REPORT_COLUMNS, settings.columns)
    outcomes, has_state = selected(only, words)
    chosen = recipients.with_results(
        store, job.number, outcomes=outcomes, has_state=has_state, is_running=job.is_running
    )
    for recipient in chosen:
        time = message = None
        if recipient.time is not None:
            time = timestamp(recipient.time / 1000)
        if recipient.parameters is not None:
            message = content_as_text(settings.fixed, recipient.parameters)
        values = (
            *(recipient.line, recipient.phone, recipient.outcome, time, recipient.id, recipient.status),
            *(recipient.state, as_credits(recipient.credits), _error(recipient), message),
            *cells_of(recipient.columns, len(settings.columns)),
        )
        yield dict(zip(columns, values, strict=True))


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


def _error(recipient: RecipientResult) -> str | None:
    outcome = recipient.outcome
    if outcome in (ACCEPTED, PENDING):
        return None
    if recipient.error:
        return recipient.error
    if outcome == REFUSED:
        return f'the service responded "{recipient.status}"' if recipient.status else "the service refused this number"
    return "no response shows whether this number was accepted"
