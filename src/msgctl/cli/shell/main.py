"""Build the command tree, and run one command line: print its result or error, and return its exit code."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import typer

from msgctl import files
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.errors import print_error, usage_error
from msgctl.cli.shell.process import abandon, write_error_of
from msgctl.cli.shell.tree import Root, group
from msgctl.errors import ConfigurationError, Hint, Interrupted, MsgctlError, OutcomeUnknownError, unexpected
from msgctl.operations import Effect
from msgctl.output.result import Document, Format, Layout, OwnResult, Result
from msgctl.text import plural
from msgctl.values import quote

EPILOG = """\
Examples:
  msgctl -p sandbox sms send 573001234567 -m 'Hello'

msgctl help TOPIC: config, exit-codes, guarantees, recipes, security, servers
More: man msgctl"""
"""The last lines of the help page of msgctl itself."""

NOT_AGAIN = {
    Effect.SENDS: Hint("Do not resend to see the result: that would send a second message. See: ", "history"),
    Effect.CHANGES: "Do not repeat the command to see the result: that would make the request a second time.",
}


@cache
def build() -> Any:
    """Return the whole command tree. Programs that run several command lines, such as the tests, build it once."""
    root = group("SMS, calls, verification codes, short URLs and chat-app messages.", cls=Root, epilog=EPILOG)
    return typer.main.get_command(root)


def run(arguments: Sequence[str], context: Context) -> int:
    """Run one command line and return its exit code. No other function converts an error to a message or an exit code.

    Raises KeyboardInterrupt if even the end of the run is interrupted.
    """
    code = _run(arguments, context)
    try:
        context.stdout.flush()
    except KeyboardInterrupt:
        abandon(context.stdout)
        code = code or Interrupted.exit_code
    unwritten = write_error_of(context.stdout)
    if unwritten is None or isinstance(unwritten, BrokenPipeError):  # the reader closed the pipe
        return code
    why = f"could not be written to standard output: {unwritten.strerror}"
    error: MsgctlError = ConfigurationError(f"The output {why}", "Free some space, or write elsewhere.")
    if context.run.job is not None:
        error = error.with_hint(Hint("The job is stored. See: ", f"job show {context.run.job}"))
    if context.run.sent.count:
        error = OutcomeUnknownError(f"The request was sent, but its result {why}", _not_again(context))
    error_code = print_error(error, context)
    return code or error_code


def _run(arguments: Sequence[str], context: Context) -> int:
    """Run a command, print its result and failures, and return the exit code."""
    if abs(time.localtime().tm_gmtoff) >= 86_400:  # datetime would raise ValueError, perhaps only after a send
        zone = ConfigurationError(f"TZ must be less than a day from UTC, not {quote(os.environ.get('TZ', ''))}")
        return print_error(zone, context, arguments)
    try:
        with context.stack, build().make_context("msgctl", list(arguments), obj=context) as ctx:
            result = ctx.command.invoke(ctx)
            return 0 if result is None else _print(result, context)
    except typer.Exit as exit_:
        return exit_.exit_code
    except MsgctlError as error:
        return print_error(error, context, arguments)
    except typer.TyperException as error:
        return print_error(usage_error(error), context, arguments)
    except (KeyboardInterrupt, typer.Abort, EOFError):
        abandon(context.stdout)
        what = "Interrupted"
        if context.run.sent.count and not context.run.is_job_stored:
            what = "Interrupted after the request was sent"
        return print_error(Interrupted(what, _not_again(context)), context, arguments)
    except Exception as error:  # noqa: BLE001 (a traceback may leak request data)
        return print_error(unexpected(error, is_sent=bool(context.run.sent.count)), context, arguments)


def _print(result: Result, context: Context) -> int:
    """Print or save the result of a command, print its failures, and return the exit code."""
    if isinstance(result, OwnResult) and result.save is not None:
        _save(result, result.save, context)
    else:
        context.printer.print(result)
    if isinstance(result, OwnResult):
        is_table = context.format is Format.TABLE
        if is_table and result.empty and not result.content:
            context.note(result.empty)
        is_job_after_work = result.layout in (Layout.JOB_POLLED, Layout.JOB_RUN)
        if is_job_after_work and not result.failures and not context.printer.shows_verdicts:
            for hint in result.hints:
                context.note(Hint.joined("→", hint, separator=" "))
        if is_table and result.layout is Layout.CHECKS:  # the table shows the failures
            return result.failures[0].exit_code if result.failures else 0
    codes = [print_error(failure, context) for failure in result.failures]
    return codes[0] if codes else 0


def _save(result: OwnResult, path: Path, context: Context) -> None:
    """Write the rows of a result to a file."""
    from msgctl.output import spreadsheet

    columns = context.options.fields or result.columns
    header = not context.options.no_header
    rows = spreadsheet.save(path, columns, cast("Iterable[Document]", result.content), header=header, zone=context.zone)
    if context.printer.aside:
        context.note(context.printer.aside)
    context.note(f"Wrote {plural(rows, 'row')} to {files.shown(path)}.")


def _not_again(context: Context) -> str | None:
    """Return the advice for a request or a job whose result could not be printed."""
    run = context.run
    if run.job is not None:
        return Hint("See: ", f"job show {run.job}")
    if not run.sent.count:
        return None
    if run.operation is None and run.effect is Effect.SENDS:
        return Hint("See: ", "job list")
    if run.operation is None:
        return "Run the command again: it creates no short URL twice."
    if run.is_once or run.is_replayed:
        return "To see the result, run the same command again: it sends nothing."
    return NOT_AGAIN.get(run.operation.effect)
