"""The entry point: `msgctl` and `python -m msgctl`."""

from __future__ import annotations

import os
import signal


def _leave(*_: object) -> None:
    """End the process at once on Ctrl-C while modules load, before any work has begun."""
    os._exit(130)


# Before anything else: an interrupt during an import would print a traceback.
if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _leave)

import gc  # noqa: E402
import sys  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to load than --version takes
    from typing import NoReturn


def console() -> NoReturn:
    """Run the command line and end the process with its exit code.

    The process ends with `os._exit` after the last flush, because Python's own shutdown takes a fifth of a short run.
    Otherwise, threads that a second Ctrl-C abandoned could write to a stream that Python is closing.
    """
    try:
        code = main()
    except KeyboardInterrupt:
        code = 130
    os._exit(code)


def main() -> int:
    """Run the command line and return its exit code. Raises KeyboardInterrupt if the end of the run is interrupted."""
    gc.set_threshold(100_000)  # a collection frees nothing in a run of one request
    if sys.argv[1:] in (["--version"], ["-V"]):
        from msgctl import __version__  # loading the command tree takes five times as long as starting Python

        try:
            os.write(1, f"msgctl {__version__}\n".encode())
        except OSError:
            pass  # the stream is closed or full, or has no reader: the command tree reports it
        else:
            return 0
    from msgctl.cli.shell.context import Context
    from msgctl.cli.shell.main import run
    from msgctl.cli.shell.process import interruptible, standard_streams

    with interruptible():
        stdin, stdout, stderr = standard_streams()
        context = Context(stdin=stdin, stdout=stdout, stderr=stderr)
        if "_MSGCTL_COMPLETE" in os.environ:  # a shell runs msgctl to complete a command line
            from msgctl.cli.shell.completion import complete
            from msgctl.cli.shell.main import build

            complete(build(), context)
        return run(sys.argv[1:], context)


if __name__ == "__main__":
    console()
