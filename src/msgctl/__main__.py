"""The way in: `msgctl` and `python -m msgctl`."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command line and give its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]) and _tell_version():
        return 0
    try:
        from msgctl.cli import run
    except KeyboardInterrupt:
        return 130
    return run(sys.argv[1:])


def _tell_version() -> bool:
    """Answer before the command tree is loaded, which costs five times as much as starting Python.

    False where standard output takes nothing: the tree knows what to do then.
    """
    from msgctl import __version__

    try:
        os.write(sys.stdout.fileno(), f"msgctl {__version__}\n".encode())
    except (OSError, AttributeError):  # closed, full, or no reader
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
