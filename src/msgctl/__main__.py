"""The way in: `msgctl` and `python -m msgctl`."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to load than it takes to answer --version
    from typing import NoReturn


def console() -> NoReturn:
    """Run the command line and end the process with its exit code.

    At once: all that was to be written is, and to take everything down first, as Python does, costs a fifth of a short
    run. Threads that a second Ctrl-C left behind may be about to write to a stream that is being taken down, too.
    """
    try:
        code = main()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except KeyboardInterrupt:
        code = 130
    os._exit(code)


def main() -> int:
    """Run the command line and give its exit code. Raises KeyboardInterrupt where even its end is interrupted."""
    # A run of one request ends before a collection would free anything; what lives longer turns it on again.
    gc.disable()
    _die_of_interrupts()
    if sys.argv[1:] in (["--version"], ["-V"]):
        from msgctl import __version__  # loading the command tree takes five times as long as starting Python

        try:
            os.write(1, f"msgctl {__version__}\n".encode())
        except OSError:
            pass  # closed, full, or without a reader: the tree knows what to do
        else:
            return 0
    from msgctl.cli import run

    return run(sys.argv[1:])


def _die_of_interrupts() -> None:
    """Let Ctrl-C end the process at once while the command tree is loaded: nothing was begun that has to be ended."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    console()
