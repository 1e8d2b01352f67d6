"""`msgctl chatapp`: send chat-app messages from templates."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import phones
from msgctl import values as checks
from msgctl.cli.options.bulk import JobRules, Source, options_of
from msgctl.cli.options.message import json_body
from msgctl.cli.options.send import Numbers, SendOptions, option
from msgctl.cli.runs.single import send_message
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import MESSAGE, OptionGroup, parser, value_option
from msgctl.cli.shell.tree import command, group
from msgctl.errors import UsageError
from msgctl.http.request import Value, build
from msgctl.jobs.settings import OPTIONS
from msgctl.operations import Operation
from msgctl.output.result import Result
from msgctl.text import shorten

app = group("Send chat-app messages from templates.")

Template = Annotated[str, option(ops.CHATAPP_SEND.field("template"), "NAME", panel=MESSAGE)]


class TemplateMessage(OptionGroup):
    """The content of a message: values of a template, or a JSON object."""

    template: Template
    phone: Annotated[str | None, typer.Argument(metavar="[PHONE]", help="Phone number, with its country code.")] = None
    value: Annotated[
        list[str] | None,
        typer.Argument(metavar="[VALUE]...", help="Template values, in order.", parser=parser(checks.prose, "A VALUE")),
    ] = None
    body: Annotated[
        str | None,
        value_option(
            "--body",
            "FILE",
            "Send the JSON object of this file instead of PHONE and VALUEs; - is standard input.",
            panel=MESSAGE,
        ),
    ] = None


class SingleJobOptions(options_of(name for name in OPTIONS if name != "batch_size")):  # type: ignore[misc]
    """The options of a job whose requests have one number."""


@command(
    app,
    "send",
    "msgctl chatapp send 573001234567 Ana 8:00 --template appointment",
    "msgctl chatapp send --template appointment --body body.json",
    performs=ops.CHATAPP_SEND,
)
def send(context: Context, content: TemplateMessage, numbers: Numbers, options: SendOptions) -> Result:
    """Send a chat-app message from a template."""
    return _send(context, ops.CHATAPP_SEND, content, numbers, options)


@command(
    app,
    "order",
    "msgctl chatapp order 573001234567 Ana 1029 '45 EUR' --template order_ready",
    "msgctl chatapp order --template order_ready --body - < order.json",
    performs=ops.CHATAPP_ORDER,
)
def order(context: Context, content: TemplateMessage, numbers: Numbers, options: SendOptions) -> Result:
    """Send an order notification from a custom template."""
    return _send(context, ops.CHATAPP_ORDER, content, numbers, options)


@command(
    app,
    "bulk",
    "msgctl chatapp bulk patients.csv --template appointment --dry-run",
    "msgctl chatapp bulk patients.csv '{name}' '{hour}' --template visit --yes",
    performs=ops.CHATAPP_SEND,
    in_bulk=True,
)
def bulk_send(
    context: Context,
    source: Source,
    template: Template,
    value: Annotated[
        list[str] | None, typer.Argument(metavar="[VALUE]...", help="Template values, with {column} placeholders.")
    ] = None,
    *,
    numbers: Numbers,
    job: SingleJobOptions,
    rules: JobRules,
) -> Result:
    """Send a message to each recipient in a file, as a job.

    If you give no VALUE, the other columns fill the template in order. You see a summary and must confirm.
    In scripts, use --yes.

    After a crash, `msgctl job resume` continues where it stopped; no one gets a message twice.
    """
    from msgctl.cli.runs.bulk import send_bulk
    from msgctl.cli.runs.bulk_list import Content

    check = partial(checks.prose, name="a VALUE")
    fixed, templates = {"template": template}, {"body": value or ()}
    content = Content(ops.CHATAPP_SEND, fixed, templates, check)
    return send_bulk(context, content, source, numbers, job, rules)


def _send(
    context: Context, operation: Operation, content: TemplateMessage, numbers: Numbers, options: SendOptions
) -> Result:
    values: dict[str, Value] = {"template": content.template}
    body = None
    if content.body is not None:
        if content.phone is not None:
            raise UsageError("Use either --body or PHONE and VALUEs, not both")
        body, document = json_body(context, content.body)
        if not isinstance(document, dict) or not document:
            raise UsageError("The body is not a JSON object", 'Example: {"phone": "573001234567", "body": ["Ana"]}')
    elif content.phone is None:
        raise UsageError("PHONE is missing", "Give PHONE and VALUEs, or --body FILE.")
    else:
        values["body"] = content.value or []
        values["phone"] = numbers.digits_of(context, content.phone)
    request = build(operation, values, body)
    if body is not None:
        request = request._replace(contacts=_contacts(context, request.phones, numbers, options))
    return send_message(context, request, options)


def _contacts(
    context: Context, typed: Sequence[str | None], numbers: Numbers, options: SendOptions
) -> Sequence[str | None]:
    """Return the international numbers of the recipients that a body specifies, or else the numbers in it."""
    reader = phones.Reader(numbers.known(context))
    international = {phone: reader.international(phone) for phone in typed if phone}
    unclear = [phone for phone, number in international.items() if number is None]
    if unclear and not options.ignore_optout:
        who = shorten(", ".join(unclear))
        context.warn(f"msgctl cannot know whether {who} opted out: write the whole number with its country.")
    if None in typed and not options.ignore_optout:
        context.warn('msgctl cannot know who gets the message, or whether they opted out: the body has no "phone".')
    return [phone and (international[phone] or phone) for phone in typed]
