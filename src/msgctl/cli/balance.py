"""`msgctl balance`: credits left."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.errors import ConditionError, UnreadableError
from msgctl.http.response import credits_left

app = group("Credits left in the account.")


@app.callback(invoke_without_command=True)
def balance(ctx: typer.Context) -> None:
    """Credits left in the account."""
    if ctx.invoked_subcommand is None:
        Context.of(ctx).run(ops.BALANCE, {})


@command(app, "show", "msgctl balance show", "msgctl balance --json", performs=ops.BALANCE)
def show(ctx: typer.Context) -> None:
    """Show the credits left; `msgctl balance` alone does the same."""
    Context.of(ctx).run(ops.BALANCE, {})


@command(
    app,
    "check",
    "msgctl balance check --min 500",
    "msgctl -q balance check --min 500 || echo 'Credits are running out' | mail -s msgctl ops@example.com",
    performs=ops.BALANCE,
)
def check(
    ctx: typer.Context,
    minimum: Annotated[str, typer.Option("--min", metavar="N", help="Credits that have to be left.")],
) -> None:
    """Exit with 0 while at least N credits are left, else with 6."""
    least = values.whole_number(minimum, "--min")
    context = Context.of(ctx)
    answer = context.run(ops.BALANCE, {})
    if answer is None:
        return
    left = credits_left(answer)
    if left is None:
        raise UnreadableError("the answer to balance cannot be read: its status is not a number", http_status=200)
    if left < least:
        raise ConditionError(f"{left} credits are left, fewer than {least}", "Buy credits before more is sent.")
