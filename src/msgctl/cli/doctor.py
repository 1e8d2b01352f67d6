"""`msgctl doctor`: diagnose problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from msgctl.cli.context import Context
from msgctl.errors import MsgctlError
from msgctl.output.form import Format

EXAMPLES = (
    "msgctl doctor",
    "msgctl doctor --json",
    "msgctl doctor --dry-run",
)


def doctor(ctx: typer.Context) -> None:
    """Diagnose problems and suggest fixes.

    Checks in order the program, the profile and its file, the connection to the service, and the credentials, by asking
    for the balance. --timeout limits each step; --dry-run skips the checks that need the network.

    The exit code is the one that a request would fail with, or 0 if no check failed.
    """
    from msgctl.doctor import FIELDS, DoctorContext, examine

    context = Context.of(ctx)
    context.check_own_fields(FIELDS)
    failures: list[MsgctlError] = []
    checks = DoctorContext(
        environ=context.environ,
        named=context.options.profile,
        find_config=lambda: context.config_path,
        connect=context.connect,
        timeout=context.options.seconds,
        clock=context.clock,
        monotonic=context.monotonic,
        offline=context.options.dry_run,
    )

    def documents() -> Iterator[dict[str, Any]]:
        for finding in examine(checks):
            if finding.error is not None:
                finding.error.what = f"{finding.check}: {finding.error.what}"
                failures.append(finding.error)
            yield finding.document()

    context.printer.checklist(documents(), FIELDS)
    if failures:
        if context.options.format is Format.TABLE:
            failures[0].hint = None  # the checklist shows it already
        raise failures[0]
