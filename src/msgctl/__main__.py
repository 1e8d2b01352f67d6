"""The way in: `msgctl` and `python -m msgctl`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line and give its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Answered before the command tree is loaded, which costs five times as much as starting Python.
        from msgctl import __version__

        sys.stdout.write(f"msgctl {__version__}\n")
        return 0
    try:
        from msgctl.cli import run
    except KeyboardInterrupt:
        return 130
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
