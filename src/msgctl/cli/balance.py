"""`msgctl balance`: credits left."""

from collections.abc import Iterator
from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import Context
from msgctl.cli.tree import command, group
from msgctl.errors import ConditionError, MsgctlError, UnreadableError
from msgctl.http.response import Response, credits_left
from msgctl.output.result import Result, ServiceResult

app = group("Credits left in the account.")


@app.callback(invoke_without_command=True)
def balance(ctx: typer.Context) -> Result | None:
    """Credits left in the account."""
    if ctx.invoked_subcommand is None:
        return Context.of(ctx).run(ops.BALANCE, {})
    return None


@command(app, "show", "msgctl balance show", "msgctl balance --json", performs=ops.BALANCE)
def show(ctx: typer.Context) -> Result:
    """Show the credits left; `msgctl balance` alone does the same."""
    return Context.of(ctx).run(ops.BALANCE, {})


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
) -> Result:
    """Exit with 0 while at least N credits are left, else with 6."""
    least = values.whole_number(minimum, "--min")
    context = Context.of(ctx)
    result = context.run(ops.BALANCE, {})
    if isinstance(result, ServiceResult):
        result.failures.extend(_shortage(result.responses[0], least))
    return result


def _shortage(response: Response, least: int) -> Iterator[MsgctlError]:
    left = credits_left(response)
    if left is None:
        yield UnreadableError("The response to balance cannot be read: its status is not a number", http_status=200)
    elif left < least:
        yield ConditionError(
            f"Balance is {left:,} {'credit' if left == 1 else 'credits'}, below {least}", "Top up before sending more."
        )
