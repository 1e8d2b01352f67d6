"""`msgctl sms`: send text messages."""

from dataclasses import asdict, fields
from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import segments as counting
from msgctl.cli.options.bulk import JobOptions, JobRules, Source
from msgctl.cli.options.message import (
    MaxSegments,
    MessageFile,
    MessageOptions,
    TemplateOptions,
    note_of_left_out,
    read_message,
)
from msgctl.cli.options.send import Numbers, Phones, SendOptions, WaitOptions
from msgctl.cli.runs.single import send_message
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import MESSAGE
from msgctl.cli.shell.tree import command, group
from msgctl.http.request import build
from msgctl.output.result import OwnResult, Result
from msgctl.text import plural

app = group("Send text messages.")

Gsm7 = Annotated[
    bool,
    typer.Option(
        "--gsm7",
        help="Replace letters outside GSM-7 (á → a) and leave out emoji, so that the message needs fewer segments.",
        rich_help_panel=MESSAGE,
    ),
]


@command(
    app,
    "send",
    "msgctl sms send 573001234567 -m 'Your order is ready'",
    "msgctl sms send 3001234567 --country-code CO --message-file notice.txt",
    "df -h / | msgctl sms send 573001234567",
    "msgctl sms send 573001234567 -m 'The disk is full' --once disk-2026-11-21",
    "msgctl sms send 573001234567 -m 'Your code is 4821' --wait --max-wait 60",
    performs=ops.SEND_SMS,
)
def send(
    context: Context,
    phone: Phones,
    message: MessageOptions,
    numbers: Numbers,
    *,
    gsm7: Gsm7 = False,
    max_segments: MaxSegments = counting.MAX_SEGMENTS,
    options: SendOptions,
    wait: WaitOptions,
) -> Result:
    """Send one SMS to each number, in one request.

    Without -m and --message-file, msgctl reads the message from standard input.
    """
    phones = numbers.digits_of_all(context, phone, sms=True)
    sms = _text(context, message.read(context), gsm7=gsm7, recipient_count=len(phones))
    count = counting.count(sms)
    counting.check_segments(count, max_segments)
    if context.options.dry_run:
        cost = plural(count.segments * len(phones), "credit")
        context.note(f"{plural(count.segments, 'segment')} to {plural(len(phones), 'number')}: about {cost}")
    parameters = {"phone": phones, "sms": sms, "country-code": numbers.known(context)}
    return send_message(context, build(ops.SEND_SMS, parameters), options, wait)


@command(
    app,
    "bulk",
    "msgctl sms bulk customers.csv -m 'Hi {name}, your order is ready' --dry-run",
    "msgctl sms bulk customers.csv -m 'Hi {name}' --yes --max-credits 500",
    "msgctl sms bulk customers.csv -m 'Hi {name}' --yes --test-to 573005550100",
    performs=ops.SEND_SMS,
    in_bulk=True,
)
def bulk_send(
    context: Context,
    message: TemplateOptions,
    source: Source,
    numbers: Numbers,
    *,
    gsm7: Gsm7 = False,
    max_segments: MaxSegments = counting.MAX_SEGMENTS,
    job: JobOptions,
    rules: JobRules,
) -> Result:
    """Send an SMS to each recipient in a file, as a job.

    In the message, msgctl replaces {column} with the value in the row, and {column|text} with the text if the value is
    empty. You see a summary with the cost, and must confirm. In scripts, use --yes.

    After a crash, `msgctl job resume` continues where it stopped; no one gets a message twice.
    """
    from msgctl.cli.runs.bulk import send_bulk
    from msgctl.cli.runs.bulk_list import Content

    templates = {"sms": message.read(context)}
    fixed = {"country-code": numbers.known(context)}
    content = Content(ops.SEND_SMS, fixed, templates, gsm7=gsm7, max_segments=max_segments)
    return send_bulk(context, content, source, numbers, job, rules)


@command(
    app,
    "segments",
    "msgctl sms segments 'Su pedido está listo'",
    "msgctl sms segments --json < notice.txt",
    output=[field.name for field in fields(counting.Count)],
)
def segments(
    context: Context,
    text: Annotated[str | None, typer.Argument(metavar="[TEXT]", help="The message. [default: standard input]")] = None,
    message_file: MessageFile = None,
    gsm7: Gsm7 = False,
) -> OwnResult:
    """Count the segments of a message and show its encoding. Nothing is sent."""
    sms = _text(context, read_message(context, text, message_file, "TEXT"), gsm7=gsm7)
    count = asdict(counting.count(sms))
    return OwnResult({**count, "not_gsm7": list(count["not_gsm7"])}, tuple(count))


def _text(context: Context, text: str, *, gsm7: bool, recipient_count: int = 1) -> str:
    """Return the text of an SMS, converted if ``gsm7``; otherwise note how many credits this would save."""
    if gsm7:
        text, left_out = counting.to_gsm7(text)
        if left_out:
            context.note(note_of_left_out(left_out))
    elif saved := counting.saved_by_gsm7(text):
        context.note(f"--gsm7 would save {plural(saved * recipient_count, 'credit')}")
    return text
