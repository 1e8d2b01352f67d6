"""Completion of command lines: Typer's scripts, and names of files, columns, countries, profiles and jobs.

The scripts run msgctl with ``_MSGCTL_COMPLETE`` set, which makes Typer print the possible completions.
"""

import io
import os
import sys
from contextlib import closing, redirect_stdout, suppress
from typing import Any, NoReturn

import typer

from msgctl.cli.shell.options import Choices
from msgctl.config import file as config
from msgctl.config.profiles import SANDBOX
from msgctl.errors import MsgctlError

VARIABLE = "_MSGCTL_COMPLETE"
FILES = {"bash": "msgctl.bash", "zsh": "_msgctl", "fish": "msgctl.fish"}
"""The file name of each shell's script."""
MAX_STORE_WAIT = 1.0
"""Seconds to wait for each response of a store: a user waits for TAB. A connection takes at most two seconds."""
_TYPER: Any = typer.completion
"""Typer's functions, which have no types."""
# zsh runs the file as the function _msgctl at the first TAB; at other times, it only defines the function.
_FIRST_TAB = '[[ $funcstack[1] != _msgctl ]] || _msgctl_completion "$@"'
# "-o default" makes bash complete file names if there is nothing else. Bash 3.2, of macOS, has no compopt.
_LAST_LINE = "_MSGCTL_COMPLETE=complete_bash $1 ) )"


def complete(command: Any, context: Any) -> NoReturn:
    """Print the possible completions of a shell's command line, and end the process.

    If there are no completions, Typer lets the shell complete file names. That is wrong for most parameters, such as a
    phone number. Then msgctl prints nothing, and exits with 1 in bash.
    """
    _TYPER.completion_init()
    code: Any = 0
    with redirect_stdout(io.StringIO()) as printed:
        try:
            command.main([], "msgctl", obj=context)
        except SystemExit as end:
            code = end.code
    text = printed.getvalue()
    is_bash = os.environ[VARIABLE].endswith("bash")
    is_fish_condition = os.environ.get("_TYPER_COMPLETE_FISH_ACTION") == "is-args"
    has_none = bool(code) if is_fish_condition else text.strip() in ("", "_files")
    if has_none and not (context.run.completes_files or (is_bash and _is_redirected())):
        text, code = "", int(is_bash)
    sys.stdout.write(text)
    sys.exit(code)


def _is_redirected() -> bool:
    """Return whether bash completes the file of a redirection, such as ``< FILE``."""
    typed, index = os.environ.get("COMP_WORDS", "").split("\n"), int(os.environ.get("COMP_CWORD", "0"))
    return any(word.startswith(("<", ">")) for word in typed[max(index - 1, 0) : index + 1])


def script(shell: str) -> str:
    """Return the completion script of a shell, one of `FILES`."""
    text: str = _TYPER.get_completion_script(prog_name="msgctl", complete_var=VARIABLE, shell=shell)
    if shell == "zsh":
        text += f"\n\n{_FIRST_TAB}"
    if shell == "bash":
        text = text.replace(_LAST_LINE, f"{_LAST_LINE} || compopt +o default 2>/dev/null")
    return text + "\n"


def file_names(ctx: typer.Context) -> list[str]:
    """Let the shell complete file names."""
    ctx.obj.run.completes_files = True
    return []


def column_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the columns of a command, after the ones that were typed already."""
    columns = getattr(ctx.command, "facts").columns  # noqa: B009 (Typer's type has no facts)
    return Choices(columns, "column").complete(incomplete)


def country_codes(incomplete: str) -> list[str]:
    """Return the countries that have phone numbers."""
    from phonenumbers import SUPPORTED_REGIONS

    codes = sorted(SUPPORTED_REGIONS)
    return [code.lower() for code in codes] if incomplete.islower() else codes


def profile_names(ctx: typer.Context) -> list[str]:
    """Return the names of the profiles. Typer selects the ones that begin with the text."""
    names = [SANDBOX]
    with suppress(MsgctlError):
        names += config.load(ctx.obj.config_path).profiles
    return names


def job_names(ctx: typer.Context) -> list[str]:
    """Return the names and IDs of the jobs in the store."""
    from msgctl.store import jobs
    from msgctl.store.store import open_store

    with (
        suppress(MsgctlError),
        closing(open_store(ctx.obj.store_location, timeout=MAX_STORE_WAIT, creates=False)) as store,
    ):
        return [name for job in jobs.listed(store) for name in (job.name, job.id) if name]
    return []
