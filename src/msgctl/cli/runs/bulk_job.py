"""The job of a bulk command: when it starts, and whether the command creates it or continues an earlier one."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from msgctl import values
from msgctl.cli.runs import running
from msgctl.cli.shell import prompts
from msgctl.cli.shell.context import Context
from msgctl.errors import NOTHING_SENT, ConditionError, Hint, UsageError
from msgctl.jobs.limits import canary_left
from msgctl.jobs.schedule import machine_zone, parse_at
from msgctl.jobs.settings import DEFAULTS, OPTIONS, Settings
from msgctl.output.result import OwnResult
from msgctl.store import jobs, people, recipients
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import replayed_ending
from msgctl.store.schema import ENDED
from msgctl.text import plural


class Start(NamedTuple):
    """The start of a job: ``at`` is --at, and ``due`` is its first moment. Both are seconds since 1970; None is now."""

    at: float | None
    due: float | None
    zone: str | None
    """The time zone of the job; None for this machine's."""

    @classmethod
    def from_settings(cls, context: Context, settings: Settings) -> Start:
        """Return when a job with these settings starts. Raises UsageError."""
        if settings.days is not None and settings.window is None:
            raise UsageError("--days needs --window", "For example: --window 08:00-19:00 --days mon-sat")
        if settings.at is None and settings.window is None:
            return cls(None, None, settings.zone)
        clock, at = context.store.clock, None
        now = clock()
        if settings.at is not None:
            at = parse_at(settings.at, settings.zone, datetime.fromtimestamp(now, UTC)).timestamp()
        due = settings.hours(clock).closed_until(at or now)
        if due is None:  # the window is open
            due = at
        return cls(at, due, settings.zone)

    def check_not_past(self, context: Context) -> None:
        """Raise UsageError if --at is in the past. Not called if an earlier run of this command created the job."""
        if self.at is None or self.at > (now := context.store.clock()):
            return
        profile = context.profile
        hint = "Leave out --at to send now."
        if self.zone is None and profile.by and not profile.is_sandbox:
            hint += f"\nFor times in another zone: msgctl profile set {shlex.quote(profile.name)} --timezone ZONE"
        raise UsageError(f"--at {self.local(self.at)} is in the past (it is {self.local(now)})", hint)

    def local(self, seconds: float) -> str:
        """Return a time in seconds since 1970 in the job's time zone: ``2026-12-01 09:00 America/Bogota``."""
        local = datetime.fromtimestamp(seconds, UTC).astimezone(values.zone_of(self.zone))
        return f"{local:%Y-%m-%d %H:%M} {self.zone or local.tzname()}"


def named(context: Context, name: str, digest: bytes) -> Job | None:
    """Return the earlier job with a name. Raises UsageError if it is another job."""
    store, account = context.store, context.profile.account
    try:
        return jobs.named(store, account, name, digest)
    except UsageError as error:
        with suppress(ConditionError):  # it was removed
            job = jobs.named(store, account, name)
            if job is not None and job.shown_state not in ENDED:
                raise error.replaced(hint=Hint.joined(_still_sends(context, job), error.hint)) from None
        raise


def _still_sends(context: Context, job: Job) -> Hint:
    """Return the hint about an earlier job that has not ended."""
    state, verb = job.shown_state, "will"
    if state == "scheduled":
        state = f"scheduled for {context.time_in_words((job.due or 0) / 1000)}"
    elif state == "paused":
        verb = "can"
    return Hint(
        f'The job "{job.reference}" is {state}, and {verb} still send the other message.\n'
        "To prevent this, cancel it first: ",
        f"job cancel {job.typed}",
    )


def publish(
    context: Context, job_number: int, settings: Settings, digest: bytes, name: str | None, start: Start
) -> Job:
    """Make a job visible, and return it, or the earlier job with its name."""
    state, due = "active", None
    if start.due is not None:
        state, due = "scheduled", int(start.due * 1000)
    store, zone = context.store, settings.timezone  # stored, because another machine or cron may send the job
    if zone is None:
        zone = machine_zone(context.environ.get("TZ"), datetime.fromtimestamp(store.clock(), UTC))
    dump = replace(settings, timezone=zone).dump()
    try:
        job = jobs.publish(store, job_number, state=state, digest=digest, name=name, due=due, settings=dump)
        context.run.job = job.id
    except KeyboardInterrupt:
        job = jobs.get(store, job_number)
        if job.state != "importing":
            context.run.job = job.id  # the error mentions it
        raise
    return job


def begin(context: Context, job: Job) -> OwnResult:
    """Send a new job, or report when it will be sent."""
    context.note(Hint(f"Job {job.id}. Check it with: ", f"job show {job.typed}"))
    if job.due is None:
        return running.send_pending(context, job, "bulk")
    return running.scheduled(context, job)


def check_exclude(context: Context, job_number: int, earlier: Job, channel: str) -> None:
    """Raise UsageError if the earlier job with this name will send to people whom --exclude leaves out."""
    if earlier.is_running or earlier.state in ENDED:
        return
    pending = recipients.excluded_later(context.store, job_number, earlier.number)
    opted_out = people.opted_out(context.store, pending, channel)
    if number_left := len({*pending} - opted_out):
        raise UsageError(
            f'--exclude cannot change the job "{earlier.reference}": it would send to '
            f"{plural(number_left, 'person', 'people')} in these files",
            Hint(
                *("Cancel it: ", f"job cancel {earlier.typed}"),
                ". Then save its pending recipients, and send to them with --exclude and another name: ",
                f"job report {earlier.typed} --only pending --save rest.csv",
            ),
        )


def continue_earlier(context: Context, job: Job, wanted: Settings) -> OwnResult:
    """Continue the paused job with this name, or return the result of its earlier run."""
    context.run.job = job.id
    settings = Settings.load(job.settings)
    ending = replayed_ending(job, canary_left(context.store, settings, job))
    _note_options(context, job, settings, wanted)
    if ending is not None:
        return running.replayed(context, job, ending)
    limit = ""
    if settings.max_credits is not None:
        limit = f", up to the limit of {plural(settings.max_credits, 'credit')} for the whole job"
    pending = recipients.pending_messages(context.store, job.number, settings.performs.channel)
    question = f'Continue job "{job.reference}" and send {plural(pending.messages, "message")}{limit}?'
    prompts.confirm(context, question, NOTHING_SENT)
    return running.send_pending(context, job, "bulk")


def _note_options(context: Context, job: Job, settings: Settings, wanted: Settings) -> None:
    """Print a note for each option that differs from the job's own setting, because it has no effect."""
    for name, option in OPTIONS.items():
        value = getattr(wanted, name)
        if value == getattr(settings, name):
            continue
        if value == DEFAULTS[name]:
            context.note(f"The job keeps its own {option.name}.")
            continue
        note = f"{option.name} has no effect: the job keeps its own settings."
        if option.is_changeable and value is not None:
            note = Hint(f"{note} To change it: ", f"job resume {job.typed} {option.name} {value}")
        elif name == "at" and job.state == "scheduled" and not job.requests:
            note = Hint(f"{note} To change the time, choose another --name after: ", f"job cancel {job.typed}")
        context.note(note)
