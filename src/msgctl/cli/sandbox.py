"""`msgctl sandbox`: what the emulator of the service holds, and what happens to it from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import values
from msgctl.cli import serve, streams
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.config import profiles
from msgctl.config.base_url import base_url_fault
from msgctl.errors import UsageError
from msgctl.storage import paths

if TYPE_CHECKING:
    from msgctl.cli.remote_sandbox import RemoteSandbox
    from msgctl.sandbox.local import LocalSandbox

app = group(
    """The emulator behind `-p sandbox`: nothing is really sent.

    It follows the interface of the service. What the interface does not show, it makes up, and the service may differ
    there: what a message costs, the states, the values of `error`, the wording of codes and their ten minutes, how
    clicks are counted. Every template and audio exists. It does not carry messages, look up numbers, or retry calls.
    """
)

CLICK_COLUMNS = ("name", "clicks")
CREDIT_COLUMNS = ("status",)
INBOX_COLUMNS = ("time", "kind", "phone", "code", "text")
INBOX_MORE = ("number", "state", "id", "voice", "audio_code", "template")
SECONDS_BETWEEN_LOOKS = 0.5

BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="A sandbox that is served, as `msgctl sandbox serve` printed it."),
]

command(app, "serve", *serve.EXAMPLES)(serve.serve)


@command(
    app,
    "inbox",
    "msgctl sandbox inbox",
    "msgctl sandbox inbox 573001234567 --follow",
    "msgctl sandbox inbox 573001234567 -o csv --fields code | tail -n 1",
)
def inbox(
    ctx: typer.Context,
    phone: Annotated[str | None, typer.Argument(metavar="[PHONE]", help="Only what this phone received.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Only one kind: sms, call or chatapp.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on printing what arrives, until Ctrl-C.")] = False,
    base_url: BaseUrl = None,
) -> None:
    """Show what the phones received: texts and codes, the newest last."""
    from msgctl.sandbox import delivery

    context = Context.of(ctx)
    number = None if phone is None else values.phone(phone)
    wanted = None if kind is None else values.choice(kind, delivery.KINDS, "kind")
    context.check_own_fields((*INBOX_COLUMNS, *INBOX_MORE))
    sandbox = _sandbox(context, base_url)
    if not follow:
        context.show(sandbox.inbox(number, wanted), INBOX_COLUMNS, INBOX_MORE, empty=_emptiness(number, wanted))
        return
    try:
        context.enable_gc()
        context.printer.follow(_arriving(context, sandbox, number, wanted), INBOX_COLUMNS)
    except KeyboardInterrupt:
        streams.abandon(context.stdout)
        raise typer.Exit(130) from None


def _emptiness(phone: str | None, kind: str | None) -> str:
    """What there is to say of an inbox without messages."""
    of_kind = f" of kind {kind}" if kind else ""
    return f"{phone or 'no phone'} received {'no' if phone else 'any'} message{of_kind} yet"


def _arriving(
    context: Context, sandbox: LocalSandbox | RemoteSandbox, phone: str | None, kind: str | None
) -> Iterator[Mapping[str, Any]]:
    """Messages as they arrive, until nobody reads them any more."""
    last = 0
    while streams.fault_of(context.stdout) is None and streams.has_reader(context.stdout):
        for message in sandbox.inbox(phone, kind, last):
            last = max(last, int(message["number"]))
            yield message
        context.sleep(SECONDS_BETWEEN_LOOKS)


def _sandbox(context: Context, base_url: str | None) -> LocalSandbox | RemoteSandbox:
    """The sandbox that is meant: one that is served, or else this machine's."""
    from msgctl.sandbox.local import LocalSandbox

    return _served(context, base_url) or LocalSandbox(context.emulator)


def _served(context: Context, base_url: str | None) -> RemoteSandbox | None:
    """The sandbox at --base-url, or of the profile or the environment in use, if any.

    A default profile alone does not count: it may be the real service's.
    """
    named = context.options.profile or context.environ.get("MSGCTL_PROFILE")
    if base_url is not None:
        if fault := base_url_fault(base_url, allow_http=True):  # no key travels
            raise UsageError(f"{values.quote(base_url)} cannot be a base URL: {fault}")
    elif named != profiles.SANDBOX and (named or context.environ.get("MSGCTL_BASE_URL")):
        base_url = context.profile.base_url
    if base_url is None:
        return None
    from msgctl.cli.remote_sandbox import RemoteSandbox

    return context.on_close(RemoteSandbox(base_url, seconds=context.options.seconds))


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
    base_url: BaseUrl = None,
) -> None:
    """Visit a short URL; what is not given is made up."""
    from msgctl.sandbox import tools

    context = Context.of(ctx)
    context.refuse_dry_run("sandbox click")
    context.check_own_fields(CLICK_COLUMNS)
    given = {
        "country": None if country is None else values.country_code(country),
        "region": region,
        "city": city,
        "device": device,
        "brand": brand,
        "model": model,
        "operating_system": operating_system,
        "browser": browser,
        "lang": lang,
    }
    visitor = {
        member: values.words(text, f"--{member.replace('_', '-')}")
        for member, text in given.items()
        if text is not None
    }
    wanted = values.words(name, "NAME")
    visits = values.whole_number(count, "--count", 1, tools.MOST_CLICKS)
    span = values.whole_number(days, "--days", 1, tools.MOST_DAYS)
    made = _sandbox(context, base_url).click(wanted, visits, span, visitor)
    context.show({"name": name, "clicks": made}, CLICK_COLUMNS)


@command(app, "credit", "msgctl sandbox credit 500", "msgctl sandbox credit +50", "msgctl sandbox credit 0")
def credit(
    ctx: typer.Context,
    amount: Annotated[str, typer.Argument(metavar="N", help="Credits to have from now on; +N adds to those left.")],
    base_url: BaseUrl = None,
) -> None:
    """Set the credits of the sandbox account."""
    from msgctl.sandbox import tools

    context = Context.of(ctx)
    context.refuse_dry_run("sandbox credit")
    context.check_own_fields(CREDIT_COLUMNS)
    number = values.whole_number(amount.removeprefix("+"), "N", most=tools.MOST_CREDITS)
    left = _sandbox(context, base_url).credit(number, add=amount.startswith("+"))
    context.show({"status": left}, CREDIT_COLUMNS)


@command(app, "reset", "msgctl sandbox reset", "msgctl sandbox reset --yes")
def reset(ctx: typer.Context, base_url: BaseUrl = None) -> None:
    """Forget everything, and start with 1000 credits again.

    Messages, codes, blocked numbers, short URLs and their clicks are lost.
    """
    from msgctl.sandbox.state import remove

    context = Context.of(ctx)
    context.refuse_dry_run("sandbox reset")
    context.confirm("Forget everything in the sandbox?")
    if (remote := _served(context, base_url)) is None:
        remove(paths.sandbox_file())  # also where it is broken
    else:
        remote.reset()
    context.note("the sandbox is empty, with 1000 credits")
