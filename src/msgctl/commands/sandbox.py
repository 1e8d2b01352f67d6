"""`msgctl sandbox`: the inbox of the emulator of the service, and its controls."""

from __future__ import annotations

from typing import Annotated

import typer

from msgctl import files, values
from msgctl.cli.options.send import COUNTRY_VARIABLE, Country, CountryCode
from msgctl.cli.runs.controls import Controls, served_at
from msgctl.cli.shell import prompts
from msgctl.cli.shell.completion import country_codes
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import number_option, value_option
from msgctl.cli.shell.tree import command, group
from msgctl.commands import sandbox_exec, serve
from msgctl.config import profiles
from msgctl.errors import ConditionError
from msgctl.output.result import Layout, OwnResult, TextResult
from msgctl.sandbox.protocol import FAULT_KINDS, MAX_CLICKS, MAX_INBOX_WAIT

app = group(
    """The emulator behind `-p sandbox`: nothing is really sent.

    It follows the service's public API. The API does not specify these details, so the sandbox invents them: the cost
    of a message, the states, the values of `error`, the text and lifetime of codes, and how clicks are counted. The
    real service may differ. The sandbox accepts any audio name, and any template except `missing`.
    """
)

CLICK_COLUMNS = ("name", "clicks")
CREDIT_COLUMNS = ("status",)
FAULT_COLUMNS = ("fault",)
CLOCK_COLUMNS = ("time", "stopped")
RESPONSES_COLUMNS = ("responses",)
INBOX_LIMIT = 1000
"""Messages that the inbox shows without --limit."""
INBOX_COLUMNS = ("time", "kind", "phone", "code", "text")


BaseUrl = Annotated[
    str | None, value_option("--base-url", "URL", "URL of a running sandbox, as printed by `msgctl sandbox serve`.")
]


command(
    app,
    "serve",
    "msgctl sandbox serve --port 8520 --client 12345 --key test --credits 100",
    "msgctl sandbox serve --port 0 --json",
    "msgctl sandbox serve --fault 503:0.1 --fault drop:0.05:/send-sms --seed 7",
    "msgctl sandbox serve --responses observed",
)(serve.serve)
command(
    app,
    "exec",
    "msgctl sandbox exec -- pytest",
    "msgctl sandbox exec --fault drop:0.1 -- sh -c 'msgctl sms send 573001234567 -m Hello'",
    json="lines",
    runs_another=True,
)(sandbox_exec.run_beside)


@command(
    app,
    "inbox",
    "msgctl sandbox inbox",
    "msgctl sandbox inbox 573001234567",
    "msgctl sandbox inbox 573001234567 --wait 30 -o csv --fields code | tail -n 1",
    output=INBOX_COLUMNS,
    json="list",
)
def inbox(
    context: Context,
    *,
    phone: Annotated[str | None, typer.Argument(metavar="[PHONE]", help="Only messages to this number.")] = None,
    country_code: CountryCode = None,
    wait: Annotated[
        float | None,
        value_option(
            "--wait",
            "SECONDS",
            "Wait until there is a message; exit with 6 if none arrives.",
            values.seconds,
            "--wait",
            MAX_INBOX_WAIT,
        ),
    ] = None,
    limit: Annotated[int, number_option("--limit", "Only the newest N messages.", 1)] = INBOX_LIMIT,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Show messages that phones received, newest last.

    Codes have a separate column, for scripts. If there is a message already, --wait returns at once. To wait for a new
    one, run `msgctl sandbox reset` before the send, or use another number.
    """
    if phone is not None and (country_code is not None or context.environ.get(COUNTRY_VARIABLE)):
        phone = Country(country_code).digits_to_find(context, phone)
    received = Controls(context, base_url).ask("GET", "/inbox", phone=phone, wait=wait)["messages"]
    if wait is not None and not received:
        raise ConditionError(f"No message arrived in {wait:g} s", reason="no_message")
    messages = [{name: message.get(name) for name in INBOX_COLUMNS} for message in received[-limit:]]
    if len(received) > limit:
        context.note(f"The newest {limit:,} of {len(received):,} messages; --limit N shows more.")
    whose = f" to {phone}" if phone else ""
    return OwnResult(messages, INBOX_COLUMNS, Layout.INBOX, empty=f"No messages{whose} yet.")


@command(
    app,
    "click",
    "msgctl sandbox click offers",
    "msgctl sandbox click offers --count 40 --country CO",
    output=CLICK_COLUMNS,
)
def click(
    context: Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the short URL.")],
    count: Annotated[int, number_option("--count", "Number of visits.", 1, MAX_CLICKS)] = 1,
    country: Annotated[
        str | None,
        value_option(
            "--country", "CC", "Country of the visitors, for example CO.", values.country_code, complete=country_codes
        ),
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Simulate visits to a short URL.

    The device, and the country if you omit it, are random.
    """
    done = Controls(context, base_url).ask("POST", "/click", name=name, count=count, country=country)
    return OwnResult(done, CLICK_COLUMNS)


@command(
    app,
    "credit",
    "msgctl sandbox credit 500",
    "msgctl sandbox credit +50",
    "msgctl sandbox credit 0",
    output=CREDIT_COLUMNS,
)
def credit(
    context: Context,
    *,
    amount: Annotated[str, typer.Argument(metavar="N", help="New balance; +N adds to the current one.")],
    base_url: BaseUrl = None,
) -> OwnResult:
    """Set the balance of the sandbox account."""
    number = values.whole_number(amount.removeprefix("+"), "N")
    fields = {"add" if amount.startswith("+") else "credits": number}
    return OwnResult(Controls(context, base_url).ask("POST", "/credit", **fields), CREDIT_COLUMNS, Layout.BALANCE)


@command(
    app,
    "fault",
    "msgctl sandbox fault 503:next=2",
    "msgctl sandbox fault drop:0.1:/send-sms delay=2",
    "msgctl sandbox fault clear",
    output=FAULT_COLUMNS,
    json="list",
)
def fault(
    context: Context,
    *,
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC...]",
            help=f"New faults, replacing the current ones; clear removes all. {serve.FAULT_HELP}",
            autocompletion=lambda: [*FAULT_KINDS, "clear"],
        ),
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Make requests fail on purpose, or show the faults that are set."""
    faults = [] if specs == ["clear"] else specs
    method = "POST" if specs else "GET"
    done = Controls(context, base_url).ask(method, "/fault", faults=faults)
    return OwnResult([{"fault": spec} for spec in done["faults"]], FAULT_COLUMNS, empty="No faults are set.")


@command(app, "clock", "msgctl sandbox clock +10m", "msgctl sandbox clock stop", output=CLOCK_COLUMNS)
def clock(
    context: Context,
    *,
    change: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHANGE]",
            help="Choose +10m (or s, h, d), stop, start, or a time to stop at.",
            autocompletion=lambda: ["start", "stop"],
        ),
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Show or change the sandbox clock, which controls delivery states and expiry."""
    method = "GET" if change is None else "POST"
    done = Controls(context, base_url).ask(method, "/clock", change=change)
    return OwnResult({name: done[name] for name in CLOCK_COLUMNS}, CLOCK_COLUMNS)


@command(app, "responses", "msgctl sandbox responses observed", "msgctl sandbox responses", output=RESPONSES_COLUMNS)
def responses(
    context: Context,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help=f"New responses: {serve.RESPONSES_HELP}", parser=serve.RESPONSES),
    ] = None,
    base_url: BaseUrl = None,
) -> OwnResult:
    """Choose or show the sandbox's responses."""
    method = "GET" if name is None else "POST"
    done = Controls(context, base_url).ask(method, "/responses", responses=name)
    return OwnResult(done, RESPONSES_COLUMNS)


@command(app, "reset", "msgctl sandbox reset", "msgctl sandbox reset --yes", asks=True)
def reset(context: Context, base_url: BaseUrl = None) -> TextResult:
    """Delete everything in the sandbox.

    This removes messages, codes, blocked numbers, short URLs and their clicks. It empties the store that belongs to the
    sandbox, too (history, jobs, opt-outs and --once keys of `-p sandbox` or of `sandbox exec`). It restores the
    credits, faults, clock and responses with which the sandbox was started: with `-p sandbox`, 1000 credits and no
    faults.
    """
    from msgctl.sandbox import emulator

    if served_at(context, base_url) is None:
        prompts.confirm(context, "Delete everything in the sandbox, with its history, jobs and opt-outs?")
        # Both work even if a file is damaged.
        emulator.reset(files.state_path(profiles.SANDBOX_STATE))
        files.delete_database(files.state_path(profiles.SANDBOX_STORE))
    else:
        served = Controls(context, base_url)  # first, because it fails without a sandbox
        prompts.confirm(context, "Delete everything in the sandbox?")
        served.ask("POST", "/reset")
    context.note("The sandbox is empty, with its initial settings.")
    return TextResult("", {"status": "empty"})
