"""`msgctl url`: short URLs and their clicks."""

from __future__ import annotations

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import App
from msgctl.cli.tree import command, group

app = group("Short URLs and their clicks.")


@command(
    app,
    "shorten",
    "msgctl url shorten https://example.com/offers --name offers",
    "msgctl url shorten https://example.com/offers --name offers --alias sale --premium --expiration-months 6",
    performs=ops.URL_SHORT,
)
def shorten(
    ctx: typer.Context,
    long_url: Annotated[str, typer.Argument(metavar="LONG_URL", help="The URL that the short one leads to.")],
    name: Annotated[
        str, typer.Option("--name", metavar="NAME", help="Name of the short URL, by which its statistics are read.")
    ],
    alias: Annotated[
        str | None, typer.Option("--alias", metavar="A", help="Wanted last part of the short URL.")
    ] = None,
    premium: Annotated[
        bool | None, typer.Option("--premium", help="Make a premium URL, with complete statistics.")
    ] = None,
    group_name: Annotated[
        str | None, typer.Option("--group-name", metavar="G", help="Group that the URL belongs to.")
    ] = None,
    domain_name: Annotated[
        str | None, typer.Option("--domain-name", metavar="D", help="Domain of the short URL.")
    ] = None,
    expiration_months: Annotated[
        str | None,
        typer.Option(
            "--expiration-months",
            metavar="N",
            help="Months until the statistics expire; 0 for the service's default.",
        ),
    ] = None,
) -> None:
    """Make a short URL."""
    App.of(ctx).run(
        ops.URL_SHORT,
        {
            "url-long": values.long_url(long_url),
            "name": values.words(name, "--name"),
            "alias": None if alias is None else values.words(alias, "--alias"),
            "is-premium": premium,
            "group-name": None if group_name is None else values.words(group_name, "--group-name"),
            "domain-name": None if domain_name is None else values.words(domain_name, "--domain-name"),
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
    since: Annotated[
        str, typer.Option("--since", metavar="DATE", help="First day: YYYY-MM-DD, today, yesterday, or 7d.")
    ],
    until: Annotated[str | None, typer.Option("--until", metavar="DATE", help="Last day; today if left out.")] = None,
    category: Annotated[
        str | None,
        typer.Option(
            "--category",
            metavar="C",
            help=f"One category alone: {', '.join(ops.PLAIN_CATEGORIES)}; "
            f"of a premium URL also {', '.join(ops.PREMIUM_CATEGORIES)}.",
        ),
    ] = None,
) -> None:
    """Show the clicks on a short URL."""
    run = App.of(ctx)
    first, last = values.days(since, until, run.today())
    categories = ops.URL_STATISTIC.field("category").choices
    run.run(
        ops.URL_STATISTIC,
        {
            "name-url": values.words(name, "NAME"),
            "since": first,
            "until": last,
            "category": None if category is None else values.choice(category, categories, "category"),
        },
    )
