"""`msgctl url`: create short URLs and count their clicks."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.options.bulk import InputFile
from msgctl.cli.options.send import field_parser, option
from msgctl.cli.runs.single import dry_run, run_request
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import OptionGroup, date_option, parser, save_option, text_option, value_option
from msgctl.cli.shell.tree import command, group
from msgctl.errors import ConditionError, ConfigurationError, MsgctlError, RefusedError, UsageError
from msgctl.http.request import Request, Value, build
from msgctl.output.result import Format, OwnResult, Result
from msgctl.text import plural

if TYPE_CHECKING:
    from msgctl.cli.runs.links import Link
    from msgctl.http.client import Client

SINCE, UNTIL = map(ops.URL_STATISTIC.field, ("since", "until"))
USUAL_DAYS = 7
CLICKS_DAYS = 90
"""The days that `url clicks` counts: a campaign is evaluated weeks later."""

IN_FLIGHT = 8
"""Maximum simultaneous requests of `url bulk` and `url clicks`."""

app = group("Create short URLs and count their clicks.")


class Days(OptionGroup):
    """The days whose clicks are counted."""

    since: Annotated[date | None, date_option("--since", f"{SINCE.help} [default: {USUAL_DAYS}d]")] = None
    until: Annotated[date | None, date_option("--until", UNTIL.help)] = None

    def period(self, context: Context, usual: int = USUAL_DAYS) -> tuple[date, date]:
        """Return the first and the last day; without --since, the last ``usual`` days. Raises UsageError."""
        today = context.now().date()
        first = self.since or today - timedelta(days=usual)
        return first, values.last_day(first, self.until, today)


class ClicksDays(Days):
    """The days whose clicks `url clicks` counts."""

    since: Annotated[date | None, date_option("--since", f"{SINCE.help} [default: {CLICKS_DAYS}d]")] = None


@command(
    app,
    "shorten",
    "msgctl url shorten https://example.com/offers --name offers",
    "msgctl url shorten https://example.com/sale --name sale --premium",
    performs=ops.URL_SHORT,
)
def shorten(
    context: Context,
    long_url: Annotated[
        str, typer.Argument(metavar="LONG_URL", help="URL to shorten.", parser=parser(values.long_url))
    ],
    name: Annotated[str, option(ops.URL_SHORT.field("name"), "NAME")],
    alias: Annotated[str | None, option(ops.URL_SHORT.field("alias"), "A")] = None,
    premium: Annotated[
        bool | None, typer.Option("--premium/--no-premium", help=ops.URL_SHORT.field("is-premium").help)
    ] = None,
    group_name: Annotated[str | None, option(ops.URL_SHORT.field("group-name"), "G")] = None,
    domain_name: Annotated[str | None, option(ops.URL_SHORT.field("domain-name"), "D")] = None,
    expiration_months: Annotated[str | None, option(ops.URL_SHORT.field("expiration-time-statistics"), "N")] = None,
) -> Result:
    """Create a short URL."""
    parameters: dict[str, Value] = {
        "url-long": long_url,
        "name": name,
        "alias": alias,
        "is-premium": premium,
        "group-name": group_name,
        "domain-name": domain_name,
        "expiration-time-statistics": expiration_months,
    }
    return run_request(context, build(ops.URL_SHORT, parameters))


@command(
    app,
    "stats",
    "msgctl url stats offers",
    "msgctl url stats offers --since 2026-01-01 --until 2026-01-31",
    "msgctl url stats offers --since 30d --category country -o csv",
    performs=ops.URL_STATISTIC,
)
def stats(
    context: Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the short URL.", parser=field_parser(ops.URL_STATISTIC.field("name-url"))
        ),
    ],
    days: Days,
    category: Annotated[str | None, option(ops.URL_STATISTIC.field("category"), "C")] = None,
) -> Result:
    """Show the clicks on a short URL."""
    since, until = days.period(context)
    parameters = {"name-url": name, "since": since.isoformat(), "until": until.isoformat(), "category": category}
    return run_request(context, build(ops.URL_STATISTIC, parameters))


# --- a file of links

LinkName = Annotated[str, text_option("--name", "NAME", "Name of each short URL; it may contain {column} and {line}.")]
SaveFile = Annotated[Path | None, save_option()]


@command(
    app,
    "bulk",
    "msgctl url bulk customers.csv --to 'https://shop.example/?c={name}' --name 'sale-{name}' > links.csv",
    effect=ops.Effect.CHANGES,
    output=("link",),
    has_more_columns=True,
    json="list",
)
def bulk(
    context: Context,
    file: InputFile,
    name: LinkName,
    to: Annotated[
        str, value_option("--to", "LONG_URL", "Long URL of each link; {column} works in its path and query.")
    ],
    save: SaveFile = None,
) -> OwnResult:
    """Create a short URL for each row of a file, and print the file with a column "link".

    The output is csv unless you choose another format. msgctl reuses existing short URLs, so you can safely
    repeat the command.
    """
    from msgctl.cli.runs.links import creation, search, short_url

    file.check_save(save)
    table = _read(context, file, "link", name, to)
    today = context.now().date()
    if context.options.dry_run:
        requests: list[Request] = []
        for row in table.rows:
            requests += (search(row.link, today), creation(row.link))
        if table.rows:
            first = table.rows[0].link
            number = plural(len(table.rows), "short URL")
            context.note(f"{number}; those that exist are reused. First: {first.name} leads to {first.long_url}")
        return dry_run(context, *requests, save=save)
    return _with_column(context, table, partial(short_url, today=today), save)


@command(
    app,
    "clicks",
    "msgctl url clicks customers.csv --name 'sale-{name}' --since 2026-01-01",
    effect=ops.Effect.READS,
    output=("clicks",),
    has_more_columns=True,
    json="list",
)
def clicks(context: Context, file: InputFile, name: LinkName, days: ClicksDays, save: SaveFile = None) -> OwnResult:
    """Count the clicks on the short URL of each row, and print the file with a column "clicks".

    The output is csv unless you choose another format.
    """
    from msgctl.cli.runs.links import clicks as count
    from msgctl.cli.runs.links import statistics

    since, until = days.period(context, CLICKS_DAYS)
    file.check_save(save)
    table = _read(context, file, "clicks", name)
    if context.options.dry_run:
        requests = [statistics(row.link, since, until) for row in table.rows]
        return dry_run(context, *requests, save=save)
    context.note(f"The clicks are from {since} to {until}.")
    return _with_column(context, table, partial(count, since=since, until=until), save)


class LinkedRow(NamedTuple):
    """A row of a file, its cells by column, and its link."""

    line: int
    cells: dict[str, str]
    link: "Link"


class Table(NamedTuple):
    """The rows of a file. ``columns`` include ``new_column``, which is added."""

    columns: Sequence[str]
    new_column: str
    rows: list[LinkedRow]


def _read(context: Context, file: InputFile, new_column: str, name: str, long_url: str | None = None) -> Table:
    """Return the rows of a file with their links. Raises UsageError, such as for a row that cannot have a link."""
    from msgctl.cli.runs.links import LinkTemplate
    from msgctl.lists.faults import rows_left_out
    from msgctl.lists.formats import FileError
    from msgctl.lists.header import find_column
    from msgctl.lists.reader import name_of
    from msgctl.lists.rows import InvalidRow

    lines_of: dict[str, int] = {}
    hint, is_cut = "Fix the file.", False
    with file.opened(context) as source:
        if find_column(new_column, source.columns) is not None:
            raise FileError(f"{name_of(file.file)} already has a column {new_column}", "Rename or remove it.")
        template = LinkTemplate(source, name, long_url)
        table = Table((*filter(None, source.columns), new_column), new_column, [])
        faults = source.faults
        for row in source.counted():
            if isinstance(row, InvalidRow):
                continue
            try:
                link = template.fill(row)
            except UsageError as error:
                faults.add(InvalidRow(row.line, "", error.message))
                continue
            first = lines_of.setdefault(link.name, row.line)
            if first != row.line:
                faults.add(InvalidRow(row.line, "", f"the same name as line {first}: {values.quote(link.name)}"))
                hint = "Use a column that is different in each row, or {line}."
            is_cut |= any(cell for name, cell in zip(source.columns, row.values, strict=True) if not name)
            cells = dict(zip(source.columns, row.values, strict=True))
            cells.pop("", None)
            table.rows.append(LinkedRow(row.line, cells, link))
    if faults.invalid:
        raise faults.error(hint, list_all="")
    if faults.blank:
        context.note(rows_left_out(faults.blank, "blank", faults.file))
    if is_cut:
        context.note("Left out the cells of columns without a heading.")
    context.check_fields(table.columns)
    return table


def _with_column(
    context: Context, table: Table, find: "Callable[[Client, Link], object]", save: Path | None
) -> OwnResult:
    """Return the rows with the value that ``find`` returns for each link, as csv unless -o was given.

    A row whose value is not found has an empty cell, and its error is a failure of the result.
    """
    context.usual_format = Format.CSV
    failures: list[MsgctlError] = []
    rows = _filled(context, table, find, failures)
    return OwnResult(rows, table.columns, failures=failures, save=save)


def _filled(
    context: Context, table: Table, find: "Callable[[Client, Link], object]", failures: list[MsgctlError]
) -> Iterator[dict[str, object]]:
    """Yield the rows with the new column. Add the error of each row without a value to ``failures``.

    After five consecutive refusals that are not about a row, but about the key, for example, no further request begins.
    """
    from msgctl.cli.runs.links import NOT_FOUND
    from msgctl.cli.runs.pool import Pool
    from msgctl.http.response import NOT_FOR_RECIPIENTS
    from msgctl.jobs.limits import FailureCounter
    from msgctl.outcomes.outcome import REFUSED

    pool, refusals, number_left = Pool(context, IN_FLIGHT), FailureCounter(), 0
    results = pool.map(lambda client, row: find(client, row.link), table.rows)
    for row, result in zip(table.rows, results, strict=True):
        if isinstance(result, ConfigurationError):  # it affects every row
            raise result
        kind = ""
        if isinstance(result, RefusedError) and result.http_status in NOT_FOR_RECIPIENTS:
            kind = REFUSED
        if refusals.count(kind):
            pool.is_stopped = True
        cell = result
        if isinstance(result, MsgctlError):
            what, cell = f"Line {row.line} ({values.quote(row.link.name)}): {result.message}", None
            failures.append(ConditionError(what, result.hint, reason="rows_failed", details=result.details))
        number_left += result is None
        yield {**row.cells, table.new_column: cell}
    if number_left:
        rows = f"{plural(number_left, 'row was', 'rows were')} not requested, because"
        failures.append(ConditionError(f"{rows} the service would refuse each of them", reason="rows_failed"))
    statuses = {failure.details.http_status for failure in failures if failure.details}
    if table.new_column == "clicks" and len(failures) == len(table.rows) and statuses and statuses.issubset(NOT_FOUND):
        context.note("No row has a link. Check that --name is the same as in url bulk.")
