"""`msgctl url`: create short URLs and count their clicks."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import requests
from msgctl.cli.context import Context
from msgctl.cli.inputs import option, optional
from msgctl.cli.tree import command, group
from msgctl.output.result import Result

app = group("Create short URLs and count their clicks.")


@command(
    app,
    "shorten",
    "msgctl url shorten https://example.com/offers --name offers",
    "msgctl url shorten https://example.com/offers --name offers --alias sale --premium --expiration-months 6",
    performs=ops.URL_SHORT,
)
def shorten(
    ctx: typer.Context,
    long_url: Annotated[str, typer.Argument(metavar="LONG_URL", help="URL to shorten.")],
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
    return requests.run(
        Context.of(ctx),
        ops.URL_SHORT,
        {
            "url-long": values.long_url(long_url),
            "name": values.words(name, "--name"),
            "alias": optional(alias, "--alias"),
            "is-premium": premium,
            "group-name": optional(group_name, "--group-name"),
            "domain-name": optional(domain_name, "--domain-name"),
            "expiration-time-statistics": None
            if expiration_months is None
            else values.limited(expiration_months, ops.URL_SHORT.field("expiration-time-statistics")),
        },
    )


@command(
    app,
    "stats",
    "msgctl url stats offers --since 7d",
    "msgctl url stats offers --since 2026-01-01 --until 2026-01-31 --category country",
    performs=ops.URL_STATISTIC,
)
def stats(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the short URL.")],
    since: Annotated[str, option(ops.URL_STATISTIC.field("since"), "DATE")],
    until: Annotated[str | None, option(ops.URL_STATISTIC.field("until"), "DATE")] = None,
    category: Annotated[str | None, option(ops.URL_STATISTIC.field("category"), "C")] = None,
) -> Result:
    """Show the clicks on a short URL."""
    context = Context.of(ctx)
    first, last = values.days(since, until, context.today())
    categories = ops.URL_STATISTIC.field("category").choices
    return requests.run(
        context,
        ops.URL_STATISTIC,
        {
            "name-url": values.words(name, "NAME"),
            "since": first,
            "until": last,
            "category": None if category is None else values.choice(category, categories, "category"),
        },
    )
