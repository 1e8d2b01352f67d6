"""What can be offered as the value of an option or an argument.

Most follows from the fields of the operations, and from the word that stands for a value in the help (``CC``,
``FILE``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from msgctl.cli.job import OUTCOMES
from msgctl.operations import OPERATIONS, Operation
from msgctl.output.form import Format
from msgctl.sandbox.faults import FaultKind
from msgctl.sandbox.messages import KINDS


@dataclass(frozen=True, slots=True)
class Values:
    """What is offered: something that the script looks up, by its name, or ``words``."""

    source: str
    words: tuple[str, ...] = ()


TEXT = Values("text")
"""Anything: nothing can be offered."""
FILES = Values("files")
PROFILES = Values("profiles")
STORED_PROFILES = Values("stored")
"""Profiles without `sandbox`, which is built in."""
JOBS = Values("jobs")
COUNTRIES = Values("countries")

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SHELLS = ("bash", "zsh", "fish")


def _words(*words: str) -> Values:
    return Values("words", words)


@cache
def _of_options() -> dict[str, Values]:
    """By name and placeholder, where the name alone could be somebody else's."""
    faults = [f"{kind.value}=" if kind is FaultKind.DELAY else kind.value for kind in FaultKind]
    return {
        "--profile NAME": PROFILES,
        "--output FORM": _words(*(each.value for each in Format)),
        "--kind KIND": _words(*KINDS),
        "--fault SPEC": _words(*faults),
        "--only OUTCOME": _words(*OUTCOMES),
        "CC": COUNTRIES,
        "FILE": FILES,
        "PATH": FILES,
    }


@cache
def _of_arguments() -> dict[str, Values]:
    """By placeholder, after the command where the placeholder alone could be something else."""
    return {
        "profile show NAME": PROFILES,
        "profile use NAME": PROFILES,
        "profile remove NAME": STORED_PROFILES,
        "api PATH": _words(*(operation.path for operation in OPERATIONS)),
        "FILE": FILES,
        "JOB": JOBS,
        "METHOD": _words(*METHODS),
        "SHELL": _words(*SHELLS),
    }


def of_option(path: str, name: str, placeholder: str, operation: Operation | None) -> Values:
    """The values of an option of a command, by its long name."""
    choices = [field.choices for field in operation.fields if field.typed == name] if operation else []
    if any(choices):
        return _words(*choices[0])
    if (path, name) == ("profile add", "--voice"):  # a default for calls of both kinds
        fields = [field for each in OPERATIONS for field in each.fields if field.typed == name]
        return _words(*dict.fromkeys(word for field in fields for word in field.choices))
    table = _of_options()
    return table.get(f"{name} {placeholder}") or table.get(placeholder, TEXT)


def of_argument(path: str, placeholder: str) -> Values:
    """The values of an argument of a command."""
    table = _of_arguments()
    return table.get(f"{path} {placeholder}") or table.get(placeholder, TEXT)
