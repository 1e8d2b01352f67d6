"""The command tree, and the one place that prints results and errors and determines the exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from msgctl.cli import process
from msgctl.cli.context import Context
from msgctl.cli.errors import report
from msgctl.cli.tree import Root, group
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, OutcomeUnknownError, unexpected
from msgctl.output.result import OwnResult, Result
from msgctl.output.screen import tolerate_any_encoding

NOT_AGAIN = "Do not send again to see the result: that would send a second message. See: msgctl history"


def build() -> Any:
    """Return the whole command tree."""
    root = group("SMS, calls, verification codes, short URLs and chat-app messages from the command line.", cls=Root)
    return typer.main.get_command(root)


def run(arguments: Sequence[str], context: Context | None = None) -> int:
    """Run one command line and return its exit code. Nothing else turns an error into a message or a code.

    Without a ``context`` this is the only run of the process, with its streams and signals. Raises KeyboardInterrupt
    if even the end of the run is interrupted.
    """
    if context is None:
        with process.interruptible():
            stdin, stdout, stderr = process.standard_streams()
            return run(arguments, Context(stdin=stdin, stdout=stdout, stderr=stderr))
    for stream in (context.stdout, context.stderr):
        tolerate_any_encoding(stream)
    code = _run(arguments, context)
    try:
        context.stdout.flush()
    except KeyboardInterrupt:
        process.abandon(context.stdout)
        code = code or Interrupted.exit_code
    fault = process.fault_of(context.stdout)
    if fault is None or isinstance(fault, BrokenPipeError):  # the reader closed the pipe
        return code
    told = report(_not_written(fault, context), context)
    return code or told


def _run(arguments: Sequence[str], context: Context) -> int:
    try:
        with context.stack, build().make_context("msgctl", list(arguments), obj=context) as ctx:
            return _print(ctx.command.invoke(ctx), context)
    except typer.Exit as exit_:
        return exit_.exit_code
    except MsgctlError as error:
        return report(error, context, arguments)
    except typer.TyperException as error:
        from msgctl.cli import errors

        return report(errors.usage(error), context, arguments)
    except (KeyboardInterrupt, typer.Abort, EOFError):
        process.abandon(context.stdout)
        return report(_interrupted(context), context, arguments)
    except Exception as error:  # noqa: BLE001 (a traceback may leak request data)
        return report(unexpected(error), context, arguments)


def _print(result: Result | None, context: Context) -> int:
    """Print what a command returned, then what failed in it, and return the exit code."""
    if result is None:
        return 0
    context.printer.print(result)
    if isinstance(result, OwnResult) and result.empty and not result.documents and context.shows_tables:
        context.note(result.empty)
    is_told = isinstance(result, OwnResult) and result.view == "doctor" and context.shows_tables
    codes = [failure.exit_code if is_told else report(failure, context) for failure in result.failures]
    return codes[0] if codes else 0


def _interrupted(context: Context) -> Interrupted:
    if context.carried_out:
        return Interrupted("Interrupted after the request was carried out", NOT_AGAIN)
    return Interrupted("Interrupted")


def _not_written(fault: OSError, context: Context) -> MsgctlError:
    """Return the error for a result that could not be written to standard output."""
    why = f"could not be written to standard output: {fault.strerror}"
    if context.carried_out:
        return OutcomeUnknownError(
            f"The request was carried out, but its result {why}",
            NOT_AGAIN,
        )
    return ConfigurationError(f"The output {why}", "Free some space, or write elsewhere.")
