"""`msgctl url`: create short URLs and count their clicks."""

from datetime import date, timedelta
from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.options import field_parser, option
from msgctl.cli.parsers import date_option, parser
from msgctl.cli.send import run
from msgctl.cli.tree import command, group
from msgctl.http.request import Value, build
from msgctl.output.result import Result

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
