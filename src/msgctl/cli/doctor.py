"""`msgctl doctor`: diagnose problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgctl.cli.context import Context
from msgctl.cli.tree import HELP, command, group
from msgctl.errors import MsgctlError
from msgctl.operations import Effect
from msgctl.output.result import Format, OwnResult, Result

app = group("")


@command(
    app,
    "doctor",
    "msgctl doctor",
    "msgctl doctor --json",
    "msgctl doctor --dry-run",
    effect=Effect.READS,
    panel=HELP,
)
def doctor(context: Context) -> Result:
    """Diagnose problems and suggest fixes.

    Checks in order the program, the profile and its file, the connection to the service, and the credentials, by asking
    for the balance. --timeout limits each step; --dry-run skips the checks that need the network.

    The exit code is the one that a request would fail with, or 0 if no check failed.
    """
    from msgctl.doctor import FIELDS, Doctor

    context.check_fields(FIELDS)
    checks = Doctor(
        environ=context.environ,
        named=context.options.profile,
        find_config=lambda: context.config_path,
        connect=context.connect,
        timeout=context.options.timeout,
        clock=context.clock,
        monotonic=context.monotonic,
        offline=context.options.dry_run,
    )

    failures: list[MsgctlError] = []

    def documents() -> Iterator[dict[str, Any]]:
        for finding in checks.examine():
            if finding.error is not None and not failures:
                finding.error.what = f"{finding.check}: {finding.error.what}"
                if context.options.format is Format.TABLE:
                    finding.error.hint = None  # the table shows it already
                failures.append(finding.error)
            yield dict(zip(FIELDS, finding, strict=False))

    return OwnResult(documents(), FIELDS, view="doctor", shows_failures=True, failures=failures)
