"""The command lines that make requests, as in `hostile`."""

from hostile.conftest import folder, lines, server, work

__all__ = ["folder", "lines", "server", "work"]
