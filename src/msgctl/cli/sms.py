"""`msgctl sms`: text messages."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import segments as counting
from msgctl.cli.context import App
from msgctl.cli.inputs import GSM7_HELP, CountryCode, Message, MessageFile, Phones, in_gsm7, message
from msgctl.cli.tree import command, group

app = group("SMS text messages.")


@command(
    app,
    "send",
    "msgctl sms send 573001234567 -m 'Your order is ready'",
    "msgctl sms send 573001234567,573007654321 --message-file notice.txt --country-code CO",
    "df -h / | msgctl sms send 573001234567",
    performs=ops.SEND_SMS,
)
def send(
    ctx: typer.Context,
    phone: Phones,
    text: Message = None,
    message_file: MessageFile = None,
    country_code: CountryCode = None,
    gsm7: Annotated[bool, typer.Option("--gsm7", help=GSM7_HELP)] = False,
) -> None:
    """Send one SMS to each number, in one request.

    The message is read from standard input when neither -m nor --message-file is given.
    """
    run = App.of(ctx)
    phones = run.recipients(phone)
    sms = message(run, text, message_file)
    run.run(
        ops.SEND_SMS,
        {
            "phone": phones,
            "sms": in_gsm7(sms) if gsm7 else sms,
            "country-code": run.country_code(country_code),
        },
    )


@command(app, "segments", "msgctl sms segments 'Mañana a las 8'", "msgctl sms segments --json < notice.txt")
def segments(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="The message; standard input if left out.")
    ] = None,
    message_file: MessageFile = None,
) -> None:
    """Count the segments of a message, and say which alphabet it needs. Nothing is sent."""
    run = App.of(ctx)
    count = asdict(counting.count(message(run, text, message_file)))
    run.own({**count, "not_gsm7": list(count["not_gsm7"])}, count)
