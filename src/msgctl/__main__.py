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
    if (text := _known_beforehand(sys.argv[1:])) is not None and _tell(text):
        return 0
    _die_of_interrupts()
    from msgctl.cli import run

    return run(sys.argv[1:])


def _die_of_interrupts() -> None:
    """Let Ctrl-C end the process at once while the command tree is loaded: nothing was begun that has to be ended."""
    import signal

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _known_beforehand(arguments: list[str]) -> str | None:
    """What is answered before the command tree is loaded, which costs five times as much as starting Python.

    The help page is kept as it is in a pipe; on a terminal it has the terminal's width and colours.
    """
    if arguments in (["--version"], ["-V"]):
        from msgctl import __version__

        return f"msgctl {__version__}\n"
    if arguments in ([], ["--help"], ["-h"]) and not (os.isatty(1) or os.environ.get("FORCE_COLOR")):
        with open(os.path.join(os.path.dirname(__file__), "help.txt"), encoding="ascii") as file:  # noqa: PTH118, PTH120, PTH123
            return file.read()
    return None


def _tell(text: str) -> bool:
    """Write to standard output; false where that takes nothing: the tree knows what to do then."""
    left = text.encode()
    try:
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]
    except (OSError, AttributeError):  # closed, full, or no reader
        return False
    return True


if __name__ == "__main__":
    console()
