"""`msgctl sandbox`: what the emulator of the service received, and its controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import values
from msgctl.cli import process, prompts, serve
from msgctl.cli.context import Context
from msgctl.cli.process import is_terminal
from msgctl.cli.tree import command, group
from msgctl.config import profiles
from msgctl.config.base_url import base_url_fault
from msgctl.errors import ConditionError, Interrupted, UsageError
from msgctl.output.result import OwnResult, StreamResult
from msgctl.storage import paths

if TYPE_CHECKING:
    from msgctl.cli.remote_sandbox import RemoteSandbox
    from msgctl.sandbox.endpoints import LocalSandbox

app = group(
    """The emulator behind `-p sandbox`: nothing is really sent.

    It follows the service's public API. Details the API does not specify are invented, and the real service may differ:
    what a message costs, the states, the values of `error`, the wording of codes and their ten minutes, how clicks are
    counted. Any template or audio name is accepted.
    """
)

CLICK_COLUMNS = ("name", "clicks")
CREDIT_COLUMNS = ("status",)
FAULT_COLUMNS = ("fault",)
CLOCK_COLUMNS = ("time", "stopped")
INBOX_COLUMNS = ("time", "kind", "phone", "code", "text")
INBOX_MORE = ("number", "state", "id", "credits", "segments", "history", "voice", "audio_code", "template", "values")
FOLLOW_SECONDS = 0.5

BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="URL of a running sandbox, as printed by `msgctl sandbox serve`."),
]

command(app, "serve", *serve.SERVE_EXAMPLES)(serve.serve)
command(app, "record", *serve.RECORD_EXAMPLES)(serve.record)


@command(
    app,
    "inbox",
    "msgctl sandbox inbox",
    "msgctl sandbox inbox 573001234567 --follow",
    "msgctl sandbox inbox 573001234567 --wait 30 -o csv --fields code | tail -n 1",
)
def inbox(
    ctx: typer.Context,
    phone: Annotated[str | None, typer.Argument(metavar="[PHONE]", help="Only messages to this number.")] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="KIND", help="Only one kind: sms, call or chatapp.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Keep printing new messages until Ctrl-C.")] = False,
    wait: Annotated[
        str | None, typer.Option("--wait", metavar="SECONDS", help="Wait for a message; exit 6 if none arrives.")
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult | StreamResult:
    """Show the messages that phones received, with their codes, newest last."""
    from msgctl.sandbox.endpoints import MAX_WAIT
    from msgctl.sandbox.messages import KINDS

    context = Context.of(ctx)
    fields: dict[str, Any] = {}
    if phone is not None:
        fields["phone"] = values.words(phone, "PHONE")
    if kind is not None:
        fields["kind"] = values.choice(kind, KINDS, "--kind")
    if wait is not None:
        fields["wait"] = values.seconds(wait, "--wait", most=MAX_WAIT)
    if follow and wait is not None:
        raise UsageError("Use either --follow or --wait, not both")
    context.check_fields((*INBOX_COLUMNS, *INBOX_MORE))
    sandbox = _sandbox(context, base_url)
    context.enable_gc()
    if follow:
        return StreamResult(_arriving(context, sandbox, fields), INBOX_COLUMNS, view="inbox")
    found = sandbox.ask("GET", "/inbox", fields)["messages"]
    if wait is not None and not found:
        raise ConditionError(f"No message arrived in {fields['wait']:g} s")
    empty = f"No {kind + ' ' if kind else ''}messages{f' to {phone}' if phone else ''} yet."
    return OwnResult(found, INBOX_COLUMNS, INBOX_MORE, view="inbox", empty=empty)


def _arriving(
    context: Context, sandbox: LocalSandbox | RemoteSandbox, fields: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield messages as they arrive, until the reader of standard output is gone."""
    last = 0
    try:
        while process.fault_of(context.stdout) is None and process.has_reader(context.stdout):
            for message in sandbox.ask("GET", "/inbox", {**fields, "after": last})["messages"]:
                last = message.get("number", last)
                yield message
            context.sleep(FOLLOW_SECONDS)
    except KeyboardInterrupt:  # the usual way to end it
        process.abandon(context.stdout)
        raise typer.Exit(Interrupted.exit_code) from None


def _sandbox(context: Context, base_url: str | None) -> LocalSandbox | RemoteSandbox:
    """Return the sandbox in use: a served one, else this machine's."""
    from msgctl.sandbox.endpoints import LocalSandbox

    return _served(context, base_url) or LocalSandbox(context.emulator)


def _served(context: Context, base_url: str | None) -> RemoteSandbox | None:
    """Return the sandbox at --base-url, or of the profile or the environment in use, if any.

    The default profile does not count: it may be the real service's.
    """
    named = context.options.profile or context.environ.get("MSGCTL_PROFILE")
    if base_url is not None:
        if fault := base_url_fault(base_url, allow_http=True):  # no key is sent
            raise UsageError(f"--base-url {fault}: {values.quote(base_url)}")
    elif named != profiles.SANDBOX and (named or context.environ.get("MSGCTL_BASE_URL")):
        base_url = context.profile.base_url
    if base_url is None:
        return None
    from msgctl.cli.remote_sandbox import RemoteSandbox

    return context.on_close(RemoteSandbox(base_url, seconds=context.options.timeout))


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
    country: Annotated[str | None, typer.Option("--country", metavar="CC", help="Country, for example CO.")] = None,
    region: Annotated[str | None, typer.Option("--region", metavar="NAME", help="Region.")] = None,
    city: Annotated[str | None, typer.Option("--city", metavar="NAME", help="City.")] = None,
    device: Annotated[str | None, typer.Option("--device", metavar="NAME", help="Kind of device.")] = None,
    brand: Annotated[str | None, typer.Option("--brand", metavar="NAME", help="Brand of the device.")] = None,
    model: Annotated[str | None, typer.Option("--model", metavar="NAME", help="Model of the device.")] = None,
    operating_system: Annotated[
        str | None, typer.Option("--operating-system", metavar="NAME", help="Operating system.")
    ] = None,
    browser: Annotated[str | None, typer.Option("--browser", metavar="NAME", help="Browser.")] = None,
    lang: Annotated[str | None, typer.Option("--lang", metavar="NAME", help="Language of the browser.")] = None,
    days: Annotated[str, typer.Option("--days", metavar="N", help="Spread the visits over the last N days.")] = "1",
    base_url: BaseUrl = None,
) -> OwnResult:
    """Simulate visits to a short URL; options you omit get random values."""
    from msgctl.sandbox import endpoints

    context = _checked(ctx, "click", CLICK_COLUMNS)
    fields: dict[str, Any] = {
        "name": values.words(name, "NAME"),
        "count": values.whole_number(count, "--count", 1, endpoints.MAX_CLICKS),
        "days": values.whole_number(days, "--days", 1, endpoints.MAX_DAYS),
    }
    if country is not None:
        fields["country"] = values.country_code(country)
    visitor = {
        "region": region,
        "city": city,
        "device": device,
        "brand": brand,
        "model": model,
        "operating_system": operating_system,
        "browser": browser,
        "lang": lang,
    }
    for field, text in visitor.items():
        if text is not None:
            fields[field] = values.words(text, f"--{field.replace('_', '-')}")
    return OwnResult(_sandbox(context, base_url).ask("POST", "/click", fields), CLICK_COLUMNS)


@command(app, "credit", "msgctl sandbox credit 500", "msgctl sandbox credit +50", "msgctl sandbox credit 0")
def credit(
    ctx: typer.Context,
    amount: Annotated[str, typer.Argument(metavar="N", help="New balance; +N adds to the current one.")],
    base_url: BaseUrl = None,
) -> OwnResult:
    """Set the balance of the sandbox account."""
    from msgctl.sandbox.endpoints import MAX_CREDITS

    context = _checked(ctx, "credit", CREDIT_COLUMNS)
    number = values.whole_number(amount.removeprefix("+"), "N", most=MAX_CREDITS)
    fields = {"add" if amount.startswith("+") else "credits": number}
    return OwnResult(_sandbox(context, base_url).ask("POST", "/credit", fields), CREDIT_COLUMNS)


@command(
    app,
    "fault",
    "msgctl sandbox fault 503:next=2",
    "msgctl sandbox fault drop:0.1:/send-sms delay=2",
    "msgctl sandbox fault clear",
)
def fault(
    ctx: typer.Context,
    specs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SPEC...]", help=f"Faults to set in place of others, or clear: {serve.FAULT_HELP}"),
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Make requests fail on purpose, or show the faults that are set."""
    context = _checked(ctx, "fault", FAULT_COLUMNS)
    wanted = [] if specs == ["clear"] else specs
    sandbox = _sandbox(context, base_url)
    done = sandbox.ask("POST", "/fault", {"faults": wanted}) if specs else sandbox.ask("GET", "/fault", {})
    return OwnResult([{"fault": spec} for spec in done["faults"]], FAULT_COLUMNS, empty="No faults are set.")


@command(app, "clock", "msgctl sandbox clock +10m", "msgctl sandbox clock stop")
def clock(
    ctx: typer.Context,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHANGE]", help="One of +10m (s, m, h or d), stop, start, or a time at which it stops."
        ),
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Change or show the clock that delivery states and expiry follow."""
    context = _checked(ctx, "clock", CLOCK_COLUMNS)
    fields = {} if change is None else {"change": values.words(change, "CHANGE")}
    done = _sandbox(context, base_url).ask("POST" if fields else "GET", "/clock", fields)
    return OwnResult({name: done[name] for name in CLOCK_COLUMNS}, CLOCK_COLUMNS)


@command(app, "reset", "msgctl sandbox reset", "msgctl sandbox reset --yes", asks=True)
def reset(ctx: typer.Context, base_url: BaseUrl = None) -> None:
    """Delete everything in the sandbox, and start with 1000 credits again.

    This removes messages, codes, blocked numbers, short URLs and their clicks, faults, and changes of the clock.
    """
    from msgctl.sandbox import state

    context = _checked(ctx, "reset", ())
    remote = _served(context, base_url)
    if not context.options.yes and not is_terminal(context.stdin):
        raise UsageError("This deletes everything in the sandbox. Not a terminal: confirm with --yes")
    prompts.confirm(context, "Delete everything in the sandbox?")
    if remote is None:
        state.reset(paths.state("sandbox.sqlite3"))  # even a damaged one
    else:
        remote.ask("POST", "/reset", {})
    context.note("The sandbox is empty, with 1000 credits.")


def _checked(ctx: typer.Context, name: str, columns: tuple[str, ...]) -> Context:
    """Return the context after the checks that all these commands share."""
    context = Context.of(ctx)
    context.refuse_dry_run(f"sandbox {name}")
    context.check_fields(columns)
    return context
