"""`msgctl block`: block numbers from receiving SMS."""

from collections.abc import Sequence
from typing import Annotated

from msgctl import operations as ops
from msgctl.cli.options.send import Numbers, Phones, option
from msgctl.cli.runs.single import dry_run, perform, printed_beside
from msgctl.cli.shell import prompts
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import MESSAGE
from msgctl.cli.shell.tree import command, group
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.http.request import Request, build
from msgctl.http.response import Response
from msgctl.outcomes.outcome import Outcome
from msgctl.output.result import OwnResult, ServiceResult
from msgctl.phones import with_country
from msgctl.text import plural

app = group("Block numbers from receiving SMS.")


@command(
    app,
    "add",
    "msgctl block add 573001234567",
    "msgctl block add '+57 300 123 4567' --name 'Ana Ruiz'",
    "msgctl block add 573001234567 573007654321 --yes",
    performs=ops.BLOCK_PHONE,
    json="responses",
    asks=True,
)
def add(
    context: Context,
    phone: Phones,
    *,
    name: Annotated[str | None, option(ops.BLOCK_PHONE.field("name"), "NAME", panel=MESSAGE)] = None,
    numbers: Numbers,
) -> ServiceResult | OwnResult:
    """Stop all SMS to a number.

    The API cannot undo it, so msgctl asks first on a terminal. Each number is one request.
    """
    phones = numbers.digits_of_all(context, phone, other_text="the name with --name NAME")
    if name is not None and len(phones) > 1:
        raise UsageError("--name needs a single number", "Block each number with its own name.")
    requests = [build(ops.BLOCK_PHONE, {"phone": number, "name": name}) for number in phones]
    if context.options.dry_run:
        return dry_run(context, *requests)
    if context.stdin.isatty():
        who = with_country(phones[0]) if len(phones) == 1 else plural(len(phones), "number")
        prompts.confirm(context, f"Block {who}? The API cannot undo it.")
    return _block(context, requests)


def _block(context: Context, requests: Sequence[Request]) -> ServiceResult:
    """Make the requests, one after the other, and return their results as one."""
    responses: list[Response] = []
    outcomes: list[Outcome] = []
    failures: list[MsgctlError] = []
    for request in requests:
        try:
            result = perform(context, request)
        except (ConfigurationError, Interrupted) as error:  # it affects every number
            failures.append(error)
            break
        except MsgctlError as error:
            if len(requests) > 1:
                error = error.within(str(request.values["phone"]))
            failures.append(error)
            responses += printed_beside(context, error)
        else:
            responses += result.responses
            outcomes += result.outcomes
            failures += result.failures
    return ServiceResult(responses, outcomes, requests[0].values, failures)
