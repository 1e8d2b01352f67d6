"""`msgctl job run-due`: send the jobs whose time has come. Made for cron."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing, suppress
from copy import copy

from msgctl.cli import job_progress
from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError
from msgctl.jobs.ledger import Ledger, facts
from msgctl.jobs.report import SUMMARY, summary
from msgctl.jobs.schedule import SendingHours
from msgctl.jobs.store import Store
from msgctl.output.result import Document, Format, OwnResult


def run(context: Context, store: Store) -> OwnResult | None:
    """Send the jobs that are due, one by one. Return None without any, or if another process sends them."""
    jobs = [job for job in store.ids() if _is_due(context, store, job)]
    if not jobs:
        return _result(context, [], [])
    documents: list[Document] = []
    failures: list[MsgctlError] = []
    with suppress(ConfigurationError), store.locked("run-due"):
        for job in jobs:
            try:
                if (result := _run(context, store, job)) is not None and isinstance(result.documents, dict):
                    documents.append(result.documents)
                    failures += result.failures
            except MsgctlError as error:
                error.what = f"Job {job}: {error.what}"
                failures.append(error)
            if any(isinstance(failure, Interrupted) for failure in failures):
                break
    return _result(context, documents, failures)


def _result(context: Context, documents: Collection[Document], failures: list[MsgctlError]) -> OwnResult | None:
    """Return the jobs that were sent. Without any, print nothing, or an empty array as JSON."""
    if not (documents or failures or context.options.format is Format.JSON):
        return None
    return OwnResult(documents, SUMMARY, view="jobs", failures=failures)


def _is_due(context: Context, store: Store, job: str) -> bool:
    with suppress(ConfigurationError):  # a damaged one must not keep the others from being sent; `job list` reports it
        _, _, due = facts(store.path(job))
        return due is not None and due <= context.clock() and not store.is_running(job)
    return False


def _run(context: Context, store: Store, job: str) -> OwnResult | None:
    """Send a job, or continue one whose process was killed. Return None if its window is closed."""
    with store.locked(job), closing(Ledger(store.path(job), clock=context.clock)) as ledger:
        if context.options.profile not in (None, ledger.spec.profile) or ledger.due is None:
            return None
        ledger.check()
        ledger.recover()
        hours = SendingHours.of(ledger.spec, context.clock)
        if hours is not None and not {*hours.open_zones()} & {*ledger.pending_zones()}:
            return None
        if not ledger.totals.unsent:
            ledger.end_schedule()
            return job_progress.result(summary(job, ledger, running=False))
        own = _of_profile(context)
        with own.stack:
            job_progress.check_account(own, ledger, job)
            try:
                return job_progress.send(own, job, ledger, waits=False)
            finally:
                context.carried_out |= own.carried_out


def _of_profile(context: Context) -> Context:
    """Return a context for one job, which has a profile of its own."""
    own = Context(
        stdin=context.stdin,
        stdout=context.stdout,
        stderr=context.stderr,
        environ=context.environ,
        clock=context.clock,
        monotonic=context.monotonic,
        sleep=context.sleep,
    )
    own.options = copy(context.options)
    own.operation, own.is_understood = context.operation, True
    return own
