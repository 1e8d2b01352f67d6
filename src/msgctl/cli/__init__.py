"""The command tree, and the one place where a run ends: in its result, or in an error and its exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer

from msgctl.cli import balance, block, call, chatapp, message_state, profile, sandbox, sms, twofa, url
from msgctl.cli.context import App
from msgctl.cli.report import report, unexpected, usage
from msgctl.cli.tree import group
from msgctl.errors import MsgctlError, StoppedError

SEND, VERIFY, LOOK, ACCOUNT, TEST = "Send", "Verify", "Look", "Account", "Test"


def build() -> Any:
    """The whole command tree."""
    root = group("SMS, calls, verification codes, short URLs and chat-app messages from the command line.")
    root.callback(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})(_greet)
    for panel, name, owner in (
        (SEND, "sms", sms.app),
        (SEND, "call", call.app),
        (SEND, "chatapp", chatapp.app),
        (VERIFY, "2fa", twofa.app),
        (LOOK, "state", message_state.app),
        (LOOK, "url", url.app),
        (ACCOUNT, "balance", balance.app),
        (ACCOUNT, "block", block.app),
        (ACCOUNT, "profile", profile.app),
        (TEST, "sandbox", sandbox.app),
    ):
        root.add_typer(owner, name=name, rich_help_panel=panel)
    return typer.main.get_command(root)


def _greet(ctx: typer.Context) -> None:
    """`msgctl` alone shows what there is."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def run(arguments: Sequence[str], app: App | None = None) -> int:
    """Run one command line and give its exit code. Nothing else turns an error into a message or a code."""
    app = app or App()
    _tolerate_any_encoding(app)
    try:
        code = _run(arguments, app)
        app.stdout.flush()
    except BrokenPipeError:
        return _pipe_closed()
    finally:
        app.close()
    return code


def _run(arguments: Sequence[str], app: App) -> int:
    try:
        with build().make_context("msgctl", list(arguments), obj=app) as ctx:
            ctx.command.invoke(ctx)
    except typer.Exit as exit_:
        return exit_.exit_code
    except MsgctlError as error:
        return report(error, app, arguments)
    except typer.TyperException as error:
        return report(usage(error), app, arguments)
    except (KeyboardInterrupt, typer.Abort, EOFError):
        return report(StoppedError("interrupted"), app, arguments)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 (a traceback shows what is none of anybody's business)
        return report(unexpected(error), app, arguments)
    return 0


def _tolerate_any_encoding(app: App) -> None:
    """A character that the locale cannot write is written as an escape, and is not a crash."""
    for stream in (app.stdout, app.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _pipe_closed() -> int:
    """Whoever read the output has seen enough. What is still buffered must not fail once more at exit."""
    sink = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            os.dup2(sink, stream.fileno())
    return 0
