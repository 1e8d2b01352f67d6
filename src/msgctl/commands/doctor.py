"""`msgctl doctor`: checks that report a finding and how to fix it.

They examine this machine and the store first, and then make one request: the balance.
"""

from __future__ import annotations

import platform
import shlex
import ssl
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgctl import __version__, files
from msgctl import operations as ops
from msgctl.cli.shell.context import MAX_CLOCK_ERROR, Context
from msgctl.cli.shell.tree import command, group
from msgctl.config import profiles
from msgctl.config.urls import is_loopback
from msgctl.errors import Interrupted, MsgctlError, RefusedError
from msgctl.http import request
from msgctl.http.response import is_about_credentials
from msgctl.jobs.ending import resume_hint
from msgctl.operations import Effect
from msgctl.output.result import Layout, OwnResult
from msgctl.store import jobs
from msgctl.text import clean, plural, shorten

if TYPE_CHECKING:
    from msgctl.config.profiles import Profile
    from msgctl.http.transport import RawResponse
    from msgctl.store.jobs import Job
    from msgctl.store.store import Store

app = group("")

ADDRESS_HINT = (
    "The service refuses every address that the account's Security menu does not allow: allow the public IP address of "
    "this machine, or of its proxy."
)
MAX_NAMES = 5
"""Maximum jobs that a finding lists."""
MAX_DELAY = 5 * 60_000
"""Milliseconds for which a job may be overdue without a warning: cron runs `job run-due` only once a minute."""
BALANCE = request.build(ops.BALANCE, {})


@dataclass
class Finding:
    """The result of a check: the finding, its status, and the fix. The status is ok, warning, failed or skipped."""

    found: str
    status: str = "ok"
    fix: str | None = None


FIELDS = ("check", "status", "found", "fix")


class NotCheckedError(Exception):
    """A check was skipped: an earlier check that it needs has failed, or this run makes no request to a service."""


class Machine:
    """The objects that the checks examine. Each part raises NotCheckedError if an earlier check has failed."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.failed: list[str] = []
        """The names of the checks that have failed with an error; other checks may depend on them."""
        self.store: Store | None = None
        """The store, if it can be used."""
        self.jobs: list[Job] = []

    def needs(self, *checks: str) -> None:
        """Raise NotCheckedError if one of these checks has failed."""
        if failed := [check for check in checks if check in self.failed]:
            raise NotCheckedError(f"not checked: {failed[0]} failed")

    @cached_property
    def response(self) -> RawResponse:
        """The response to the only request. Raises NotCheckedError with --dry-run, and MsgctlError."""
        if self.context.options.dry_run:
            raise NotCheckedError("left out by --dry-run")
        return self.context.client.fetch(BALANCE)


def check_version(_machine: Machine) -> Finding:
    """Report the versions of msgctl, Python and the TLS library."""
    return Finding(f"msgctl {__version__}, Python {platform.python_version()}, {ssl.OPENSSL_VERSION}")


def check_file(machine: Machine) -> Finding:
    """Check that the configuration file can be read, is private, and has only known settings."""
    context = machine.context
    if (context.options.profile or context.environ.get("MSGCTL_PROFILE")) == profiles.SANDBOX:
        raise NotCheckedError("not used by the sandbox")
    if not context.config_path.exists():
        return Finding(f"{clean(str(context.config_path))} does not exist")  # cron may set another home directory
    if faults := profiles.unknown_settings(context.config):
        return Finding("; ".join(faults), "failed", "Correct or remove the setting.")
    return Finding(files.shown(context.config_path))


def check_profile(machine: Machine) -> Finding:
    """Check the settings of the profile, and report the option, variable or setting that selects it."""
    machine.needs("file")
    profile = machine.context.profile
    if not profile.by:
        return Finding(f"from {', '.join(profiles.VARIABLES.values())}")
    by = "the default" if profile.by == "default_profile" else f"from {profile.by}"
    return Finding(f"{shorten(profile.name, 64)} ({by})")


def check_base_url(machine: Machine) -> Finding:
    """Check that the base URL uses https."""
    machine.needs("file", "profile")
    profile = machine.context.profile
    parts = urlsplit(profile.base_url)
    if parts.scheme.lower() == "http" and not is_loopback(parts.hostname or ""):
        found = f"{profile.base_url} is plain http, which exposes the key"
        return Finding(found, "warning", "Use https:// if the service offers it, and remove allow_http.")
    return Finding(profile.base_url)


def check_key(machine: Machine) -> Finding:
    """Check that the profile has a client ID and a key, and report the key's source, but not the key."""
    machine.needs("file", "profile")
    context = machine.context
    profile = context.profile
    client, key = context.credential
    if profile.is_sandbox:
        return Finding("built in")
    origins = {"key": "the configuration file", "key_command": "the key command"}
    origin = "MSGCTL_KEY" if not profile.by else origins[profile.key_source]
    found = f"client {client}; key from {origin}"
    if len(key) < profiles.MIN_KEY:
        return Finding(f"{found}. {profiles.SHORT_KEY}", "warning", "Ask the service for a longer key.")
    if key != key.strip():
        return Finding(
            f"{found}, with a space at its start or end", "warning", "If it is refused, save it without the space."
        )
    return Finding(found)


def check_store(machine: Machine) -> Finding:
    """Check that msgctl can write to the store."""
    machine.needs("file", "profile")
    store = machine.context.store
    store.check_writes()
    machine.store, machine.jobs = store, jobs.listed(store)
    found = f"{store.db.place}: {plural(len(machine.jobs), 'job')}; this machine is {store.machine}"
    if isinstance(store.location, Path) and (mode := stat.S_IMODE(store.location.stat().st_mode)) & 0o077:
        fix = f"chmod 600 {files.typed(store.location)}*"
        return Finding(f"{found}; the file is not private (mode {mode:04o})", "warning", fix)
    return Finding(found)


def check_jobs(machine: Machine) -> Finding | None:
    """Report jobs that are paused and have recipients left."""
    paused = [job for job in machine.jobs if job.shown_state == "paused" and job.pending]
    if not paused:
        return None
    names = ", ".join(job.reference for job in paused[:MAX_NAMES])
    pending = plural(sum(job.pending for job in paused), "pending recipient")
    found = f"{plural(len(paused), 'paused job')} with {pending}: {names}"
    fixes = [machine.context.for_profile(resume_hint(job)) for job in paused[:MAX_NAMES]]
    return Finding(found, "warning", "\n".join(fixes))


def check_run_due(machine: Machine) -> Finding | None:
    """Report scheduled jobs that are overdue, and why `msgctl job run-due` does not send them."""
    if machine.store is None:
        return None
    scheduled = [job for job in machine.jobs if job.state == "scheduled"]
    if any(job.is_running for job in scheduled):  # a run-due is at work, and sends the others next
        return None
    now = machine.store.now()
    overdue = [job for job in scheduled if (job.due or now + 1) <= now]
    if not overdue:
        return None
    failure = jobs.failure_of_run_due(machine.store)
    if failure and any(job.number == failure.job and (job.due or 0) <= failure.time for job in overdue):
        return Finding(f"{_overdue(overdue)}: `msgctl job run-due` fails: {failure.error}", "failed", failure.hint)
    late = [job for job in overdue if (job.due or now) < now - MAX_DELAY]
    them = "it" if len(late or overdue) == 1 else "them"
    found = f"{_overdue(late or overdue)}: no `msgctl job run-due` has sent {them}"
    if late:
        return Finding(found, "warning", "Run it from cron every minute.")
    return Finding(f"{found} yet; after {MAX_DELAY // 60_000} minutes, this is a warning")


def _overdue(overdue: list[Job]) -> str:
    verb = "is" if len(overdue) == 1 else "are"
    return f"{plural(len(overdue), 'job')} {verb} overdue"


def check_clock(machine: Machine) -> Finding | None:
    """Compare this machine's clock with the clock of the database."""
    difference = machine.store.machine_error if machine.store else 0.0
    if abs(difference) <= MAX_CLOCK_ERROR:
        return None
    direction = "ahead of" if difference > 0 else "behind"
    found = f"this machine's clock is {abs(difference):,.0f} s {direction} the clock of the database"
    return Finding(found, "warning", "Set it, for example with: timedatectl set-ntp true")


def check_service(machine: Machine) -> Finding:
    """Check that the service responds."""
    machine.needs("file", "profile", "base URL", "key")
    if machine.context.profile.is_sandbox:
        return Finding("simulated in this process")
    began = monotonic()
    response = machine.response
    return Finding(f"responded with status {response.status} in {(monotonic() - began) * 1000:.0f} ms")


def check_credentials(machine: Machine) -> Finding:
    """Check that the service accepts the client ID and key from this machine's address."""
    machine.needs("file", "profile", "base URL", "key", "service")
    try:
        left = machine.context.client.parse(BALANCE, machine.response).document["status"]
    except RefusedError as error:
        if error.reason == "unauthorized" or is_about_credentials(error.what):
            raise error.replaced(hint=f"{_key_hint(machine.context.profile)}\n{ADDRESS_HINT}") from None
        if error.details and error.details.record.get("error"):  # the service itself refuses, not a proxy
            raise error.with_hint(ADDRESS_HINT) from None
        raise
    return Finding(f"accepted; {Decimal(left):,} {'credit' if left == '1' else 'credits'} left")


def _key_hint(profile: Profile) -> str:
    """Return the hint to check the client ID and the key, with the place from which this run reads them."""
    if not profile.by:
        return "Check the client ID and the key in MSGCTL_CLIENT and MSGCTL_KEY."
    if profile.key_source == "key_command":
        return "Check the client ID and the key that the key command prints."
    command = f"msgctl profile set {shlex.quote(profile.name)} --key-stdin"
    return f"Check the client ID and the key. To replace the key: {command}"


CHECKS: dict[str, Callable[[Machine], Finding | None]] = {
    "version": check_version,
    "file": check_file,
    "profile": check_profile,
    "base URL": check_base_url,
    "key": check_key,
    "store": check_store,
    "jobs": check_jobs,
    "run-due": check_run_due,
    "clock": check_clock,
    "service": check_service,
    "credentials": check_credentials,
}


class FailedCheckError(MsgctlError):
    """A check of doctor has failed."""

    kind = "check_failed"


def examine(context: Context, failures: list[MsgctlError]) -> Iterator[dict[str, str | None]]:
    """Run the checks in order and yield each finding as soon as it is known. Raises Interrupted on Ctrl-C.

    If a check has failed, an error with exit code 1 is added to ``failures``.
    """
    machine, failed, reason = Machine(context), [], "refused"
    for name, check in CHECKS.items():
        try:
            finding = check(machine)
        except NotCheckedError as error:
            finding = Finding(str(error), "skipped")
        except Interrupted:
            raise
        except MsgctlError as error:
            finding = Finding(error.what, "failed", error.hint)
            machine.failed.append(name)
            if error.exit_code == FailedCheckError.exit_code:
                reason = error.reason
        if finding is None:  # nothing to report
            continue
        if finding.status == "failed":
            failed.append(name)
        yield {"check": name, "status": finding.status, "found": finding.found, "fix": finding.fix}
    if failed:
        what = f"{plural(len(failed), 'check')} failed: {', '.join(failed)}"
        failures.append(FailedCheckError(what, reason=reason))


@command(
    app,
    "doctor",
    "msgctl doctor",
    "msgctl doctor --json",
    "msgctl doctor --dry-run",
    effect=Effect.READS,
    dry_run_help="Skip checks that need the network.",
    output=FIELDS,
    json="list",
)
def doctor(context: Context) -> OwnResult:
    """Diagnose problems and suggest fixes.

    It checks the profile, its file and the store. Then it reads the balance to check the service and the credentials.
    --dry-run skips the checks that need the network. The exit code is 1 if a check failed.
    """
    failures: list[MsgctlError] = []
    return OwnResult(examine(context, failures), FIELDS, Layout.CHECKS, failures=failures)
