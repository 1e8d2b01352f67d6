"""`msgctl block`: block numbers from receiving messages."""

from functools import partial
from typing import Annotated

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.help import MESSAGE
from msgctl.cli.options import Numbers, OnceJob, Pace, Phone, Rules, Source, option
from msgctl.cli.parsers import text_option
from msgctl.cli.send import run
from msgctl.cli.tree import command, group
from msgctl.http.request import build
from msgctl.output.result import OwnResult, Result

app = group("Block numbers from receiving messages.")


@command(
    app,
    "add",
    "msgctl block add 573001234567",
    "msgctl block add '+57 300 123 4567' --name 'Ana Ruiz'",
    performs=ops.BLOCK_PHONE,
)
def add(
    context: Context,
    phone: Phone,
    *,
    name: Annotated[str | None, option(ops.BLOCK_PHONE.field("name"), "NAME", panel=MESSAGE)] = None,
    numbers: Numbers,
) -> Result:
    """Block a number."""
    number = numbers.one(context, phone)
    return run(context, build(ops.BLOCK_PHONE, {"phone": number, "name": name}))


@command(
    app,
    "bulk",
    "msgctl block bulk unsubscribed.csv --dry-run",
    "msgctl block bulk unsubscribed.csv --name '{name}' --yes",
    performs=ops.BLOCK_PHONE,
    in_bulk=True,
)
def bulk_add(
    context: Context,
    source: Source,
    name: Annotated[
        str | None, text_option("--name", "TEMPLATE", "Name of the contact, with {column} placeholders.", panel=MESSAGE)
    ] = None,
    *,
    numbers: Numbers,
    limits: Pace,
    once: OnceJob = None,
) -> OwnResult:
    """Block each number in a file, as a job.

    You see a summary and must confirm. In scripts, use --yes. After a crash, `msgctl job resume` continues.
    """
    from msgctl.cli import bulk

    templates = {} if name is None else {"name": name}
    check = partial(values.short_text, name="--name")
    return bulk.start(context, ops.BLOCK_PHONE, source, numbers, limits, {}, templates, check, rules=Rules(once=once))
