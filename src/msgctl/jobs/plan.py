"""The summary of a job before it is sent or in a dry run, and the errors about its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgctl.errors import NOTHING_SENT, UsageError
from msgctl.jobs.report import cells_of, with_columns_of_file
from msgctl.jobs.settings import Settings
from msgctl.jobs.tally import Tally, with_exclusions
from msgctl.lists.faults import LIST_ALL, Faults
from msgctl.lists.formats import FileError
from msgctl.outcomes.outcome import LEFT_OUT, PENDING
from msgctl.store.history import content_as_text
from msgctl.store.jobs import Job
from msgctl.store.queue import ExclusionRules
from msgctl.store.recipients import FileRow
from msgctl.store.store import Store
from msgctl.text import plural, timestamp

PLAN_FIELDS = (
    *("command", "file", "profile", "phone_column", "phones", "recipients", "invalid", "duplicate", "excluded"),
    *("messages", "segments", "credits", "countries", "balance", "first", "most_expensive"),
    *("opted_out", "repeats", "over_limit", "blank", "at_most", "max_credits", "window", "due"),
)
"""The columns of a plan. Its document has the first rows that are left out, too."""
_OPTIONAL = {
    *("opted_out", "repeats", "over_limit", "blank"),
    *("at_most", "max_credits", "window", "due", "most_expensive"),
}


@dataclass(frozen=True)
class Plan:
    """A job before it is sent: its settings, its messages, and the rows of its file that are left out, by outcome.

    ``due`` is in seconds since 1970. ``balance`` is None if it was not checked.
    """

    settings: Settings
    faults: Faults
    tally: Tally
    due: float | None
    balance: int | float | None = None

    @property
    def number(self) -> int:
        """The number of rows."""
        return self.tally.messages + sum(self.tally.numbers_left_out.values())

    @property
    def is_limited(self) -> bool:
        """Whether the job will probably pause at --max-credits before all messages are sent."""
        limit = self.settings.max_credits
        return limit is not None and limit < self.tally.credits

    @property
    def needed(self) -> int:
        """The estimated credits, at most --max-credits."""
        limit = self.settings.max_credits
        return self.tally.credits if limit is None else min(self.tally.credits, limit)

    @property
    def columns(self) -> list[str]:
        """The columns of a table, without empty values that are optional."""
        document = self.document()
        return [name for name in PLAN_FIELDS if name not in _OPTIONAL or document[name]]

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON. Times are ISO 8601."""
        settings, tally, segments, due = self.settings, self.tally, None, None
        if settings.performs.channel == "sms":
            segments = tally.credits
        if self.due is not None:
            due = timestamp(self.due)
        return {
            "command": settings.command,
            "file": settings.file,
            "profile": settings.profile,
            "phone_column": settings.phone_column,
            "phones": settings.phones,
            "recipients": self.number,
            **tally.numbers_left_out,
            "messages": tally.messages,
            "segments": segments,
            "credits": tally.credits,
            "countries": dict(tally.countries.most_common()),
            "balance": self.balance,
            "first": tally.first and tally.first.message,
            "most_expensive": tally.most_expensive and _described(tally.most_expensive),
            **{name: tally.excluded[name] for name in ("opted_out", "repeats", "over_limit")},
            "blank": settings.blank,
            "at_most": settings.at_most,
            "max_credits": settings.max_credits,
            "window": settings.window_in_words,
            "due": due,
            **{f"{outcome}_rows": tally.document_left_out(outcome) for outcome in LEFT_OUT},
        }

    def error(self, repeated: Sequence[Job], *, skip_invalid: bool, is_listed: bool) -> UsageError | None:
        """Return the error for a file with invalid rows, or without recipients; None if the job can be sent.

        ``repeated`` are the jobs that sent the same message. ``is_listed`` means that a dry run lists every row.
        """
        if not self.number:
            return FileError(f"{self.faults.file} has no recipients, only a header", "Add one line per recipient.")
        is_invalid = self.faults.invalid > 0 and not skip_invalid
        if is_invalid or (not self.tally.messages and self.faults.need_of_country):
            them = "it" if self.faults.invalid == 1 else "them"
            list_all = "" if is_listed else LIST_ALL
            hint = f"Fix {them}, or skip {them} with --skip-invalid."
            return self.faults.error(hint, list_all, consequence=NOTHING_SENT)
        if self.tally.messages:
            return None
        return self._repeated(repeated) if self.tally.excluded["repeats"] else self._none_left()

    def _repeated(self, repeated: Sequence[Job]) -> UsageError:
        named = [f'job "{job.reference}"' for job in repeated if job.id and job.removed is None]
        by = named[0] if named else "an earlier send"
        recipients = plural(self.tally.excluded["repeats"], "recipient")
        return UsageError(
            f"No recipients are left: {by} sent this message to {recipients} in the last 12 hours",
            "To resend it to them, add --again.",
            consequence=NOTHING_SENT,
            reason="repeats",
        )

    def _none_left(self) -> UsageError:
        excluded, consequence, reason = self.tally.excluded, NOTHING_SENT, "usage"
        hint = ""
        all_of_them = f"All recipients in {self.faults.file}"
        if self.faults.invalid:
            all_of_them = f"All valid recipients in {self.faults.file}"
        if self.tally.left_out["excluded"] or (excluded["opted_out"] and excluded["over_limit"]):
            what = f"{all_of_them} are excluded"
        elif excluded["opted_out"]:
            what, reason = f"{all_of_them} have opted out", "opted_out"
        elif excluded["over_limit"]:
            what = f"{all_of_them} have reached the limit of {self.settings.at_most}"
        else:
            first = self.faults.first[0]
            what = f"{self.faults.file} has no valid rows: line {first.line}: {first.reason}"
            reason, hint = "invalid_file", self.faults.doubt_of_country
        return UsageError(what, hint, consequence=consequence, reason=reason)


ROW_COLUMNS = ("line", "phone", "outcome", "reason", "segments", "message")


def planned_rows(
    store: Store, job: int, account: str, settings: Settings, rules: ExclusionRules
) -> Iterator[dict[str, Any]]:
    """Yield every row of the file of a new job with the outcome that it would have now, ``pending`` if it is sent."""
    columns = with_columns_of_file(ROW_COLUMNS, settings.columns)
    for row, exclusion in with_exclusions(store, job, account, rules):
        outcome, reason = row.outcome or PENDING, row.reason
        if exclusion is not None:
            outcome, reason = "excluded", exclusion.reason
        segments = message = None
        if row.outcome is None and settings.performs.channel == "sms":
            segments = row.cost
        if row.parameters is not None:
            message = content_as_text(settings.fixed, row.parameters)
        own = cells_of(row.columns, len(settings.columns))
        yield dict(zip(columns, (row.line, row.phone, outcome, reason, segments, message, *own), strict=True))


def _described(row: FileRow) -> dict[str, Any]:
    return {"line": row.line, "phone": row.phone, "segments": row.cost, "credits": row.cost, **row.message}
