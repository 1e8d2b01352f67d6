"""`msgctl balance`: the credits that are left."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl.cli.runs.single import run_request
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import number_option
from msgctl.cli.shell.tree import command, group
from msgctl.errors import ConditionError, MsgctlError
from msgctl.http.request import build
from msgctl.output.fields import of_record
from msgctl.output.result import Result, ServiceResult

app = group("Show the credits left in the account.")


@command(app, None, "msgctl balance", "msgctl balance --json", performs=ops.BALANCE)
def balance(ctx: typer.Context) -> Result | None:
    if ctx.invoked_subcommand is None:
        ctx.obj.check_fields(of_record(ops.BALANCE.record))
        return run_request(ctx.obj, build(ops.BALANCE, {}))
    return None


@command(
    app,
    "check",
    "msgctl balance check --min 500",
    "msgctl -q balance check --min 500 > /dev/null || test $? -ne 6 || echo Low",
    performs=ops.BALANCE,
)
def check(
    context: Context,
    minimum: Annotated[int, number_option("--min", "Lowest acceptable number of credits.")],
) -> Result:
    """Exit with 0 if at least N credits are left, with 6 if not.

    Other exit codes mean that msgctl could not read the balance: test for 6 in an alarm.
    """
    result = run_request(context, build(ops.BALANCE, {}))
    if not isinstance(result, ServiceResult):
        return result
    response = result.responses[0]
    if result.failures:
        return result
    from decimal import Decimal

    left = Decimal(response.document["status"])
    failures: list[MsgctlError] = []
    if left < minimum:
        what = f"{left:,} {'credit' if left == 1 else 'credits'} left, fewer than {minimum:,}"
        failures = [
            ConditionError(what, "Top up before you send more.", reason="low_balance", details=response.details)
        ]
    return result._replace(failures=failures)
