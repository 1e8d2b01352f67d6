"""The options of bulk commands and of the commands about jobs. Most are built from the fields of `Settings`."""

import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import RECIPIENTS, SAFETY, OptionGroup, number_option, parser, save_option, value_option
from msgctl.errors import UsageError
from msgctl.jobs.settings import DEFAULTS, OPTIONS, TYPES
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.lists.table import Recipients

MAX_HEADER_ROW = 10_000
MAX_NAME = 100
"""Maximum characters of the name of a job."""


class InputFile(OptionGroup):
    """A file with a header and rows, and how to read it. Bulk commands and `url` read the same files."""

    file: Annotated[
        str, typer.Argument(metavar="FILE", help="CSV with a header, JSON Lines, or .xlsx; - is standard input.")
    ]
    sheet: Annotated[
        str | None,
        value_option(
            "--sheet",
            "NAME",
            "Sheet of the workbook. [default: the only visible one with recipients]",
            panel=RECIPIENTS,
        ),
    ] = None
    header_row: Annotated[
        int | None,
        number_option(
            "--header-row",
            "Row of the column names. [default: found in the first 20 rows]",
            least=1,
            most=MAX_HEADER_ROW,
            panel=RECIPIENTS,
        ),
    ] = None
    skip_hidden: Annotated[
        bool, typer.Option("--skip-hidden", help="Leave out rows that Excel hides.", rich_help_panel=RECIPIENTS)
    ] = False

    def check_save(self, path: Path | None) -> None:
        """Raise UsageError if --save would replace the input file."""
        if path is not None and path.exists() and Path(self.file).exists() and path.samefile(self.file):
            raise UsageError(f"--save would replace the list itself, {quote(self.file)}", "Choose another file.")

    def opened(self, context: Context, **rules: Any) -> "AbstractContextManager[Recipients]":
        """Open the file; ``rules`` are other fields of `Reading`. Raises UsageError."""
        from msgctl.lists.header import Reading
        from msgctl.lists.reader import opened

        reading = Reading(self.sheet, self.header_row, skip_hidden=self.skip_hidden, **rules)
        return opened(self.file, context.stdin.buffer, reading, note=context.note)


class Source(InputFile):
    """A file of people with their phones."""

    phone_column: Annotated[
        str | None,
        value_option(
            "--phone-column", "NAME", "Column with the phone numbers. [default: found by its heading]", panel=RECIPIENTS
        ),
    ] = None
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Skip invalid rows.", rich_help_panel=RECIPIENTS)
    ] = False

    def opened(self, context: Context, **rules: Any) -> "AbstractContextManager[Recipients]":
        return super().opened(context, phone_column=self.phone_column, **rules)


class SettingsOptions(OptionGroup):
    """Options that are fields of `Settings`."""

    def values(self) -> dict[str, Any]:
        """Return the values that were given or have a default, by the names of the fields."""
        return {name: value for name, value in vars(self).items() if value is not None}


def options_of(names: Iterable[str], *, is_change: bool = False) -> type[SettingsOptions]:
    """Return a group with some of the options of `Settings`. With ``is_change``, they have no defaults."""
    annotations: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name in names:
        option, default = OPTIONS[name], DEFAULTS[name]
        values[name] = None if is_change else default
        arguments: dict[str, Any] = {"help": option.help, "rich_help_panel": option.panel}
        if is_change:
            arguments["help"] += " [default: the job's own]"
        if option.parse is not None:
            arguments |= {"metavar": option.metavar, "parser": parser(option.parse)}
        annotations[name] = Annotated[TYPES[name] | None, typer.Option(option.name, **arguments)]
    return type("JobOptions", (SettingsOptions,), {"__annotations__": annotations, "__module__": __name__, **values})


class JobOptions(options_of(OPTIONS)):  # type: ignore[misc]  # the options are the fields of Settings
    """The options of a job whose requests may have several numbers."""


_JOB_NAME = re.compile("[A-Za-z0-9._-]+")
_JOB_ID = re.compile("[0-9]{8}-[0-9a-f]{6}")


def _job_name(text: str) -> str:
    if len(text) <= MAX_NAME and _JOB_NAME.fullmatch(text) and not _JOB_ID.fullmatch(text):
        return text
    raise UsageError(
        f'--name must contain only letters, digits, "-", "_" and ".", and must not look like an ID, not {quote(text)}',
        "For example: --name orders-2026-11-21",
    )


class JobRules(OptionGroup):
    """Options of bulk commands beside `Settings`: the name, excluded numbers, and a test of the message."""

    name: Annotated[
        str | None,
        value_option(
            "--name",
            "NAME",
            "Name of the job. The same command under the same name continues the job, or prints its result.",
            _job_name,
            panel=SAFETY,
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        value_option(
            "--exclude",
            "FILE",
            "Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx. Repeatable.",
            panel=RECIPIENTS,
        ),
    ] = None
    test_to: Annotated[
        str | None,
        value_option(
            "--test-to",
            "PHONE",
            "Send only the message of the first row, to this number, without confirmation.",
            panel=SAFETY,
        ),
    ] = None
    save: Annotated[
        Path | None,
        save_option("With --dry-run: write every row with its outcome to FILE.xlsx or FILE.csv.", panel=SAFETY),
    ] = None
