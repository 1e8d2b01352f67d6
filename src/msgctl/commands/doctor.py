"""`msgctl doctor`: diagnose problems."""

from __future__ import annotations

from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.errors import MsgctlError
from msgctl.operations import Effect
from msgctl.output.result import OwnResult

app = group("")


@command(
    app,
    "doctor",
    "msgctl doctor",
    "msgctl doctor --json",
    "msgctl doctor --dry-run",
    effect=Effect.READS,
    dry_run_help="Skip the checks that need the network.",
    output=("check", "status", "found", "fix"),
)
def doctor(context: Context) -> OwnResult:
    """Diagnose problems and suggest fixes.

    It checks the program, the profile and its file, the connection to the service, and then the credentials, by reading
    the balance. --timeout limits each step; --dry-run skips the checks that need the network.

    A request would fail with the same exit code. It is 0 if no check failed.
    """
    from msgctl.doctor import DOCTOR_FIELDS, Doctor

    context.check_fields(DOCTOR_FIELDS)
    failures: list[MsgctlError] = []
    return OwnResult(Doctor(context, failures).examine(), DOCTOR_FIELDS, view="doctor", failures=failures)
