"""Completion of command lines: Typer's scripts, and names of profiles and jobs.

The scripts run msgctl with ``_MSGCTL_COMPLETE`` set, which makes Typer print the possible completions.
"""

from contextlib import suppress
from typing import Any, NoReturn

import typer

from msgctl import files
from msgctl.config import file as config
from msgctl.config.profiles import SANDBOX
from msgctl.errors import MsgctlError

VARIABLE = "_MSGCTL_COMPLETE"
FILES = {"bash": "msgctl.bash", "zsh": "_msgctl", "fish": "msgctl.fish"}
"""The file name of each shell's script."""
_TYPER: Any = typer.completion
"""Typer's functions, which have no types."""
# zsh runs the file as the function _msgctl at the first TAB; at other times, it only defines the function.
_FIRST_TAB = '[[ $funcstack[1] != _msgctl ]] || _msgctl_completion "$@"'


def complete(command: Any, context: Any) -> NoReturn:
    """Print the possible completions of a shell's command line, and end the process."""
    _TYPER.completion_init()
    command.main([], "msgctl", obj=context)
    raise AssertionError("Typer ends the process")


def script(shell: str) -> str:
    """Return the completion script of a shell, one of `FILES`."""
    text: str = _TYPER.get_completion_script(prog_name="msgctl", complete_var=VARIABLE, shell=shell)
    if shell == "zsh":
        text += f"\n\n{_FIRST_TAB}"
    return text + "\n"


def profile_names(ctx: typer.Context) -> list[str]:
    """Return the names of the profiles. Typer selects the ones that begin with the text."""
    names = [SANDBOX]
    with suppress(MsgctlError):
        names += config.load(ctx.obj.config_path).profiles
    return names


def job_names(ctx: typer.Context) -> list[str]:
    """Return the names and IDs of the jobs in the store."""
    from msgctl.store import jobs

    with suppress(MsgctlError):
        location = ctx.obj.store_location or files.state("store.sqlite3")
        if isinstance(location, str) or location.exists():  # completion creates no file
            return [name for job in jobs.listed(ctx.obj.store) for name in (job.name, job.id) if name]
    return []
