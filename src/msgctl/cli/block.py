"""`msgctl block`: numbers that get no message any more."""

from __future__ import annotations

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import App
from msgctl.cli.inputs import Phone, option, optional
from msgctl.cli.tree import command, group

app = group("Numbers that get no message any more.")


@command(
    app,
    "add",
    "msgctl block add 573001234567",
    "msgctl block add '+57 300 123 4567' --name 'Ana Ruiz'",
    performs=ops.BLOCK_PHONE,
)
def add(
    ctx: typer.Context,
    phone: Phone,
    name: Annotated[str | None, option(ops.BLOCK_PHONE.field("name"), "NAME")] = None,
) -> None:
    """Stop all sending to a number."""
    App.of(ctx).run(
        ops.BLOCK_PHONE,
        {"phone": values.phone(phone), "name": optional(name, "--name")},
    )
