"""Runs msgctl as another user, where root starts it: ``python as_user.py UID ARGUMENT...``.

All that it may need is loaded before, since that user may not be able to read where Python is.
"""

from __future__ import annotations

import os
import pkgutil
import sys
from contextlib import suppress
from importlib import import_module

MORE = (
    "decimal",
    "encodings.idna",
    "encodings.utf_8_sig",
    "getpass",
    "platformdirs.unix",
    "rich.console",
    "tomli_w",
    "tomllib",
)


def main() -> int:
    import typer

    import msgctl

    names = [
        each.name
        for package in (typer, msgctl)
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    for name in (*MORE, *names):
        if not name.endswith("__main__"):
            with suppress(ImportError, AssertionError):  # it is for another system, or an optional library
                import_module(name)
    from msgctl.__main__ import main

    if os.geteuid() == 0:
        uid = int(sys.argv[1])
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    sys.argv = ["msgctl", *sys.argv[2:]]
    return main()


if __name__ == "__main__":
    sys.exit(main())
