"""`msgctl url`: create short URLs and count their clicks."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.job_options import SkipHidden
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.options import field_parser, option
from msgctl.cli.parsers import date_option, parser, text_option
from msgctl.cli.send import dry_run, run
from msgctl.cli.tree import command, group
from msgctl.errors import ConditionError, ConfigurationError, MsgctlError, UsageError
from msgctl.http.request import Value, build
from msgctl.output.result import Format, OwnResult, Result
from msgctl.text import plural

if TYPE_CHECKING:
    from msgctl.http.client import Client
    from msgctl.jobs.links import Link
    from msgctl.jobs.rows import Row

SINCE, UNTIL = map(ops.URL_STATISTIC.field, ("since", "until"))
USUAL_DAYS = 7

app = group("Create short URLs and count their clicks.")


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
    given: dict[str, Value] = {
        "url-long": long_url,
        "name": name,
        "alias": alias,
        "is-premium": premium,
        "group-name": group_name,
        "domain-name": domain_name,
        "expiration-time-statistics": expiration_months,
    }
    return run(context, build(ops.URL_SHORT, given))


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
            metavar="NAME",
            help="Name of the short URL.",
            parser=field_parser(ops.URL_STATISTIC.field("name-url")),
        ),
    ],
    since: Annotated[date | None, date_option("--since", f"{SINCE.help} [default: {USUAL_DAYS}d]")] = None,
    until: Annotated[date | None, date_option("--until", UNTIL.help)] = None,
    category: Annotated[str | None, option(ops.URL_STATISTIC.field("category"), "C")] = None,
) -> Result:
    """Show the clicks on a short URL."""
    today = context.today()
    first = since or today - timedelta(days=USUAL_DAYS)
    last = values.last_day(first, until, today)
    given = {"name-url": name, "since": first.isoformat(), "until": last.isoformat(), "category": category}
    return run(context, build(ops.URL_STATISTIC, given))


# --- a file of links


class LinkFile(OptionGroup):
    """A file with a row for each short URL."""

    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="CSV with a header, JSON Lines, or .xlsx; - is standard input."),
    ]
    name: Annotated[str, text_option("--name", "NAME", "Name of each short URL; it may contain {column} and {line}.")]
    skip_hidden: SkipHidden = False

    def read(self, context: Context, new_column: str, long_url: str | None = None) -> "Table":
        """Return the rows with their links. Raises UsageError, such as for a row that cannot have a link."""
        from msgctl.jobs.columns import find_column
        from msgctl.jobs.formats import FileError
        from msgctl.jobs.links import LinkTemplate
        from msgctl.jobs.reader import name_of, opened
        from msgctl.jobs.rows import InvalidRow

        rows: list[tuple[Row, Link]] = []
        lines: dict[str, int] = {}
        blank = 0
        with opened(self.file, context.stdin.buffer, skip_hidden=self.skip_hidden, note=context.note) as found:
            if find_column(new_column, found.columns) is not None:
                raise FileError(f"{name_of(self.file)} already has a column {new_column}", "Rename or remove it.")
            template = LinkTemplate(found.columns, self.name, long_url)
            for row in found.rows:
                if row is None:
                    blank += 1
                    continue
                where = f"Line {row.line} of {name_of(self.file)}"
                if isinstance(row, InvalidRow):
                    raise FileError(f"{where}: {row.reason}")
                try:
                    link = template.fill(row)
                except UsageError as error:
                    raise FileError(f"{where}: {error.message}", error.hint) from None
                first = lines.setdefault(link.name, row.line)
                if first != row.line:
                    what = f"{where} has the same name as line {first}: {values.quote(link.name)}"
                    raise FileError(what, "Use a column that is different in each row, or {line}.")
                rows.append((row, link))
        if blank:
            context.note(f"Left out {plural(blank, 'blank row')}.")
        return Table(found.columns, new_column, rows)


class Table:
    """The rows of a file with their links, and the name of the column that is added."""

    def __init__(self, columns: Sequence[str], new_column: str, rows: "Sequence[tuple[Row, Link]]") -> None:
        self._places = [place for place, name in enumerate(columns) if name]
        self.columns = (*(columns[place] for place in self._places), new_column)
        self.rows = rows

    def row(self, row: "Row", value: object) -> dict[str, object]:
        """Return a row with the value of the new column."""
        return dict(zip(self.columns, (*(row.values[place] for place in self._places), value), strict=True))


@command(
    app,
    "bulk",
    "msgctl url bulk customers.csv --to 'https://shop.example/?c={name}' --name 'sale-{name}' > links.csv",
    effect=ops.Effect.CHANGES,
    output=("link",),
)
def bulk(
    context: Context,
    links: LinkFile,
    to: Annotated[
        str,
        typer.Option("--to", metavar="LONG_URL", help="Where the links lead; {column} works in its path and query."),
    ],
) -> OwnResult:
    """Create a short URL for each row of a file, and print the file with a column "link".

    Short URLs that exist already are used again, so you can safely repeat the command.
    """
    from msgctl.jobs.links import creation, look_up, short_url

    table = links.read(context, "link", to)
    context.check_fields(table.columns)
    today = context.today()
    if context.options.dry_run:
        requests = [(look_up(link, today), creation(link)) for _, link in table.rows]
        return dry_run(context, *chain.from_iterable(requests))
    return _with_column(context, table, partial(short_url, today=today))


@command(
    app,
    "clicks",
    "msgctl url clicks customers.csv --name 'sale-{name}' --since 2026-01-01",
    effect=ops.Effect.READS,
    output=("clicks",),
)
def clicks(
    context: Context,
    links: LinkFile,
    since: Annotated[date | None, date_option("--since", f"{SINCE.help} [default: {USUAL_DAYS}d]")] = None,
    until: Annotated[date | None, date_option("--until", UNTIL.help)] = None,
) -> OwnResult:
    """Count the clicks on the short URL of each row, and print the file with a column "clicks"."""
    from msgctl.jobs.links import clicks as count
    from msgctl.jobs.links import statistics

    today = context.today()
    first = since or today - timedelta(days=USUAL_DAYS)
    last = values.last_day(first, until, today)
    table = links.read(context, "clicks")
    context.check_fields(table.columns)
    if context.options.dry_run:
        return dry_run(context, *(statistics(link, first, last) for _, link in table.rows))
    return _with_column(context, table, partial(count, since=first, until=last))


def _with_column(context: Context, table: Table, find: "Callable[[Client, Link], object]") -> OwnResult:
    """Return the rows with the value that ``find`` returns for each link, as csv unless -o was given.

    A row whose value is not found has an empty cell, and its error is a failure of the result.
    """
    from msgctl.jobs.links import in_order

    if not context.options.has_format:
        context.options.format = Format.CSV
    client = context.client  # first, because it fails without a credential
    failures: list[MsgctlError] = []

    def rows() -> Iterator[dict[str, Any]]:
        found = in_order(client, [link for _, link in table.rows], find)
        for (row, link), value in zip(table.rows, found, strict=True):
            if isinstance(value, ConfigurationError):  # it concerns every row
                raise value
            if isinstance(value, MsgctlError):
                failures.append(_failed(row.line, link.name, value))
                yield table.row(row, None)
            else:
                yield table.row(row, value)
        # Of a row that did not fail, the link may be new.
        is_certain = len(failures) == len(table.rows) and all(failure.nothing_sent for failure in failures)
        for failure in failures:
            failure.nothing_sent = is_certain

    return OwnResult(rows(), table.columns, failures=failures)


def _failed(line: int, name: str, error: MsgctlError) -> ConditionError:
    failure = ConditionError(
        f"Line {line} ({values.quote(name)}): {error.message}",
        error.hint,
        reason="rows_failed",
        details=error.details,
    )
    failure.nothing_sent = error.nothing_sent
    return failure
