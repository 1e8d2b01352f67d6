"""`msgctl doctor`: why does it not work?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import typer

from msgctl.cli.context import Context
from msgctl.errors import MsgctlError
from msgctl.output.form import Format

if TYPE_CHECKING:
    from msgctl.diagnosis.case import Case

EXAMPLES = (
    "msgctl doctor",
    "msgctl doctor --json",
    "msgctl doctor --dry-run",
)


def doctor(ctx: typer.Context) -> None:
    """Find out why it does not work, and say what to mend.

    Checks in order the program, the profile and its file, the way to the service, and the credentials, by asking for
    the balance. --timeout bounds each step; --dry-run leaves out what asks the network.

    Ends with the exit code that a request would fail with, and with 0 where nothing failed.
    """
    from msgctl.diagnosis.findings import COLUMNS

    context = Context.of(ctx)
    context.check_own_fields(COLUMNS)
    failures: list[tuple[str, MsgctlError]] = []
    with closing(_case(context)) as case:
        context.printer.checklist(_documents(case, failures), COLUMNS)
    if failures:
        check, error = failures[0]
        error.what = f"{check}: {error.what}"
        if context.options.format is Format.TABLE:
            error.hint = None  # it stands above
        raise error


def _case(context: Context) -> Case:
    from msgctl.diagnosis.case import Case

    return Case(
        environ=context.environ,
        named=context.options.profile,
        find_config=lambda: context.config_path,
        connect=context.connect,
        seconds=context.options.seconds,
        clock=context.clock,
        monotonic=context.monotonic,
        offline=context.options.dry_run,
    )


def _documents(case: Case, failures: list[tuple[str, MsgctlError]]) -> Iterator[dict[str, Any]]:
    """What each check found, as data; the errors of those that failed are put into ``failures``."""
    from msgctl.diagnosis.examination import examine

    for finding in examine(case):
        if finding.error is not None:
            failures.append((finding.check, finding.error))
        yield finding.document()
