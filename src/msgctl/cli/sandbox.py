"""`msgctl sandbox`: what the emulator of the service holds, and what happens to it from outside."""

from __future__ import annotations

from typing import Annotated

import typer

from msgctl import paths, values
from msgctl.cli.context import App
from msgctl.cli.tree import command, group

app = group("The emulator behind `-p sandbox`: nothing is really sent.")

INBOX_COLUMNS = ("time", "kind", "phone", "code", "text")
INBOX_MORE = ("state", "id", "voice", "audio_code", "template")


@command(
    app,
    "inbox",
    "msgctl sandbox inbox",
    "msgctl sandbox inbox 573001234567",
    "msgctl sandbox inbox 573001234567 -o csv --fields code | tail -n 1",
)
def inbox(
    ctx: typer.Context,
    phone: Annotated[str | None, typer.Argument(metavar="[PHONE]", help="Only what this phone received.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Only one kind: sms, call or chatapp.")
    ] = None,
) -> None:
    """Show what the phones received: texts and codes, the newest last."""
    from msgctl.sandbox import delivery, tools

    run = App.of(ctx)
    number = None if phone is None else values.phone(phone)
    wanted = None if kind is None else values.choice(kind, delivery.KINDS, "kind of message")
    run.own(tools.inbox(run.emulator.state, run.clock, number, wanted), INBOX_COLUMNS, INBOX_MORE)


@command(
    app,
    "click",
    "msgctl sandbox click offers",
    "msgctl sandbox click offers --count 40 --country CO --browser Firefox",
)
def click(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the short URL.")],
    count: Annotated[str, typer.Option("--count", metavar="N", help="Number of visits.")] = "1",
    country: Annotated[
        str | None, typer.Option("--country", metavar="CC", help="Country of the visitors, for example CO.")
    ] = None,
    region: Annotated[str | None, typer.Option("--region", metavar="NAME", help="Their region.")] = None,
    city: Annotated[str | None, typer.Option("--city", metavar="NAME", help="Their city.")] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="NAME", help="Kind of device.")] = None,
    brand: Annotated[str | None, typer.Option("--brand", metavar="NAME", help="Its brand.")] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Its model.")] = None,
    operating_system: Annotated[
        str | None, typer.Option("--operating-system", metavar="NAME", help="Its operating system.")
    ] = None,
    browser: Annotated[str | None, typer.Option("--browser", metavar="NAME", help="The browser.")] = None,
    lang: Annotated[str | None, typer.Option("--lang", metavar="NAME", help="Language of the browser.")] = None,
    days: Annotated[str, typer.Option("--days", metavar="N", help="Spread them over the last N days.")] = "1",
) -> None:
    """Visit a short URL; what is not given is made up."""
    from msgctl.sandbox import tools

    run = App.of(ctx)
    run.refuse_dry_run("sandbox click")
    made = tools.click(
        run.emulator,
        values.words(name, "NAME"),
        values.whole_number(count, "a number of visits", 1, tools.MOST_CLICKS),
        days=values.whole_number(days, "a number of days", 1, tools.MOST_DAYS),
        country=None if country is None else values.country_code(country),
        region=_words("--region", region),
        city=_words("--city", city),
        device=_words("--device", device),
        brand=_words("--brand", brand),
        model=_words("--model", model),
        operating_system=_words("--operating-system", operating_system),
        browser=_words("--browser", browser),
        lang=_words("--lang", lang),
    )
    run.own({"name": name, "clicks": made}, ("name", "clicks"))


def _words(option: str, text: str | None) -> str | None:
    return None if text is None else values.words(text, option)


@command(app, "credit", "msgctl sandbox credit 500", "msgctl sandbox credit +50", "msgctl sandbox credit 0")
def credit(
    ctx: typer.Context,
    amount: Annotated[str, typer.Argument(metavar="N", help="Credits to have from now on; +N adds to those left.")],
) -> None:
    """Set the credits of the sandbox account."""
    from msgctl.sandbox import tools

    run = App.of(ctx)
    run.refuse_dry_run("sandbox credit")
    number = values.whole_number(amount.removeprefix("+"), "a number of credits", most=tools.MOST_CREDITS)
    change = tools.add_credit if amount.startswith("+") else tools.set_credit
    left = change(run.emulator.state, number)
    run.own({"status": left}, ("status",))


@command(app, "reset", "msgctl sandbox reset", "msgctl sandbox reset --yes")
def reset(ctx: typer.Context) -> None:
    """Forget everything, and start with 1000 credits again.

    Messages, codes, blocked numbers, short URLs and their clicks are lost.
    """
    from msgctl.sandbox import tools

    run = App.of(ctx)
    run.refuse_dry_run("sandbox reset")
    run.confirm("Forget everything in the sandbox?")
    tools.reset(paths.sandbox_file())
    run.note("the sandbox is empty, with 1000 credits")
