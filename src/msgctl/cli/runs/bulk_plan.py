"""The plan of a bulk command: check the job before it is sent, estimate its cost, and ask whether to send it."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

from msgctl import operations as ops
from msgctl.cli.options.message import note_of_left_out
from msgctl.cli.runs.bulk_job import Start
from msgctl.cli.runs.bulk_list import Imported
from msgctl.cli.shell import prompts
from msgctl.cli.shell.context import Context
from msgctl.errors import NOTHING_SENT, NotReachedError, OutcomeUnknownError, ServiceError
from msgctl.http.request import build
from msgctl.jobs.limits import exclusion_rules
from msgctl.jobs.plan import ROW_COLUMNS, Plan, planned_rows
from msgctl.jobs.report import with_columns_of_file
from msgctl.jobs.tally import Tally
from msgctl.lists.faults import rows_left_out
from msgctl.lists.reader import name_of
from msgctl.output.result import Layout, OwnResult, StoredRows
from msgctl.store import jobs
from msgctl.text import plural


class PlannedJob:
    """A job before it is published: its plan, and ``error``, the reason if it cannot be sent."""

    def __init__(self, context: Context, rows: Imported, start: Start, *, skip_invalid: bool, lists_rows: bool) -> None:
        """Check the job, estimate its cost, and print notes about its rows. A dry run may list every row."""
        self.context = context
        self.rows = rows
        self.start = start
        store, settings = context.store, rows.settings
        self._exclusions = exclusion_rules(settings, start.due or store.clock())
        tally = Tally.of(store, rows.job_number, context.profile.account, self._exclusions)
        plan = Plan(settings, rows.faults, tally, start.due)
        repeated = [jobs.get(store, earlier) for earlier in sorted(tally.repeats_of)]
        self.error = plan.error(repeated, skip_invalid=skip_invalid, is_listed=lists_rows)
        if not self.error:
            plan = replace(plan, balance=_balance(context))
        elif context.options.dry_run:
            context.note("Balance not checked: the job cannot be sent as it is")
        self.plan = plan
        self._note(skip_invalid=skip_invalid)

    def confirm(self) -> None:
        """Show the summary and ask whether to send the job. Raises UsageError, or Cancelled."""
        context = self.context
        if self.error:
            raise self.error
        is_asked = not context.options.yes and context.stdin.isatty()
        if is_asked or context.shows_notes:
            self._explain()
        prompts.confirm(context, self._question(), NOTHING_SENT)

    def summary(self) -> OwnResult:
        """Return the summary as the result of a dry run."""
        failures = [self.error] if self.error else []
        return OwnResult(self.plan, self.plan.columns, Layout.PLAN, failures=failures)

    def every_row(self, save: Path | None) -> OwnResult:
        """Return every row as the result of a dry run. The summary is printed on standard error, or as JSON."""
        context, job_number, settings = self.context, self.rows.job_number, self.plan.settings
        summary = self.summary()
        columns = with_columns_of_file(ROW_COLUMNS, settings.columns)
        context.check_fields(columns)
        if context.is_json:
            context.printer.print(summary._replace(failures=()))
        elif context.shows_notes:
            self._explain()
        account = context.profile.account
        rows = StoredRows(lambda: planned_rows(context.store, job_number, account, settings, self._exclusions))
        return OwnResult(rows, columns, failures=summary.failures, save=save)

    def _explain(self) -> None:
        from msgctl.output import job_views  # Rich

        host = urlsplit(self.context.profile.base_url).hostname or ""
        self.context.printer.explain(job_views.plan_parts(self.plan, self.context.now(), host))

    def _question(self) -> str:
        plan, tally, balance = self.plan, self.plan.tally, self.plan.balance
        cost = ""
        if plan.is_limited:
            cost = f", up to the limit of {plural(plan.needed, 'credit')}"
        elif tally.credits:
            cost = f" for about {plural(tally.credits, 'credit')}"
        pause = ""
        canary = plan.settings.canary
        if canary is not None and canary < tally.messages:
            pause = f" The job pauses after {plural(canary, 'recipient')}."
        question = f"Send {plural(tally.messages, 'message')}{cost}?{pause}"
        if plan.due is not None:
            when = self.context.time_in_words(plan.due)
            comma = "," if cost.startswith(" ") else ""
            question = f"Schedule {plural(tally.messages, 'message')} for {when}{comma}{cost}?{pause}"
        if balance is not None and balance < plan.needed:
            question = f"You have {plural(balance, 'credit')}. {question}"
        return question

    def _note(self, *, skip_invalid: bool) -> None:
        """Print notes about rows that are left out, and about likely mistakes."""
        context, plan, tally = self.context, self.plan, self.plan.tally
        need_of_country = plan.faults.need_of_country
        if need_of_country and not self.error:
            context.note(f"{need_of_country}: add --country-code CC")
        for outcome, rows in tally.first_left_out.items():
            if outcome == "invalid" and (need_of_country or not skip_invalid):
                continue  # without a country, the reasons are misleading; without --skip-invalid, the error lists them
            if self.error and not tally.left_out[outcome]:
                continue  # the error has the reason for all of them
            for row in rows:
                phone = f"{row.phone}: " if row.phone else ""
                context.note(f"Line {row.line}: {phone}{row.reason}")
            if (more := tally.numbers_left_out[outcome] - len(rows)) > 0:
                context.note(f"… and {more:,} more")
        if plan.settings.blank:
            context.note(rows_left_out(plan.settings.blank, "blank", name_of(plan.settings.file)))
        if self.rows.left_out:
            context.note(note_of_left_out(self.rows.left_out))
        if self.start.at is not None and self.start.at != self.start.due:
            at = self.start.local(self.start.at)
            context.note(f"The window is closed at --at {at}: the job waits until it opens.")
        repeats = tally.excluded["repeats"]
        if repeats and tally.messages:
            context.warn(
                f"{plural(repeats, 'recipient')} got the same message in the last 12 hours and will be left out. "
                "To send to them too, add --again."
            )
        if (
            plan.balance is not None
            and plan.balance < plan.needed
            and (context.options.quiet or context.options.dry_run)
        ):
            context.warn(f"about {plural(plan.needed, 'credit')} needed, {plan.balance:,} left")


def _balance(context: Context) -> int | float | None:
    """Return the credits left; None, with a note, if they are unknown. Raises NotReachedError."""
    try:
        credits_left = Decimal(context.client.send(build(ops.BALANCE, {})).document["status"])
    except (NotReachedError, ServiceError, OutcomeUnknownError) as error:
        if isinstance(error, NotReachedError) and not context.options.dry_run:
            raise error.replaced(consequence="nothing was sent, and no job was created") from None
        context.note(f"Balance not checked: {error.message}")
        return None
    is_whole = credits_left == credits_left.to_integral_value()
    return int(credits_left) if is_whole else float(credits_left)
