"""The argument JOB: a name, an ID, the beginning of an ID, or --last."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from msgctl.cli.shell.completion import job_names
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import OptionGroup
from msgctl.errors import ConfigurationError, Hint, UsageError
from msgctl.store import jobs
from msgctl.store.jobs import Job

JobName = Annotated[str, typer.Argument(metavar="JOB", help="Job ID or name.", autocompletion=job_names)]
JobNames = Annotated[
    list[str] | None, typer.Argument(metavar="[JOB]...", help="Job IDs or names.", autocompletion=job_names)
]


class Which(OptionGroup):
    """The job to use."""

    job: Annotated[str | None, typer.Argument(metavar="[JOB]", help="Job ID or name.", autocompletion=job_names)] = None
    last: Annotated[bool, typer.Option("--last", help="Use the newest job that began on this machine.")] = False

    def resolve(self, context: Context) -> Job:
        hint = "Give a job ID or name, or --last."
        if self.job is None and not self.last:
            raise UsageError("JOB is missing", hint)
        if self.job is not None and self.last:
            raise UsageError("Use either --last or JOB, not both", hint)
        if self.job is not None:
            job = job_named(context, self.job)
        elif (last := jobs.last(context.store)) is not None:
            job = last
        else:
            raise UsageError("No job has begun on this machine", Hint("List the jobs: ", "job list"))
        context.run.job = job.id
        return job


def job_named(context: Context, name: str) -> Job:
    """Return the job with a name or ID. A name of the profile's account takes precedence. Raises UsageError."""
    account = None
    with suppress(ConfigurationError):  # the jobs of a store can be seen without a profile
        account = context.profile.account
    return jobs.find(context.store, name, account)
