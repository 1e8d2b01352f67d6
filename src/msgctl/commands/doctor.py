"""`msgctl doctor`: diagnose problems."""

from __future__ import annotations

from msgctl.cli.shell.context import Context
from msgctl.cli.shell.tree import command, group
from msgctl.doctor import DOCTOR_FIELDS, examine
from msgctl.errors import MsgctlError
from msgctl.operations import Effect
from msgctl.output.result import Layout, OwnResult

app = group("")


@command(
    app,
    "doctor",
    "msgctl doctor",
    "msgctl doctor --json",
    "msgctl doctor --dry-run",
    effect=Effect.READS,
    dry_run_help="Skip checks that need the network.",
    output=DOCTOR_FIELDS,
    json="list",
)
def doctor(context: Context) -> OwnResult:
    """Diagnose problems and suggest fixes.

    It checks the profile and its file, the store, and then the service and the credentials, by reading the balance.
    --dry-run skips the checks that need the network. The exit code is 1 if a check failed.
    """
    context.check_fields(DOCTOR_FIELDS)
    failures: list[MsgctlError] = []
    return OwnResult(examine(context, failures), DOCTOR_FIELDS, Layout.CHECKS, failures=failures)
