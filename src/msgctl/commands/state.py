"""`msgctl state`: delivery states of SMS and calls."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.runs.polling import Tracked
from msgctl.cli.runs.single import dry_run, printed_beside
from msgctl.cli.runs.tracking import NOT_OF_ONE_MESSAGE, Tracker, messages_of, store_states
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import OptionGroup, max_wait_option, parser, until_option
from msgctl.cli.shell.tree import command, group
from msgctl.errors import ConditionError, Hint, Interrupted, MsgctlError, UnreadableError, UsageError
from msgctl.http.response import Response
from msgctl.outcomes.outcome import REFUSED
from msgctl.output.result import OwnResult, ServiceResult
from msgctl.text import timestamp
from msgctl.values import quote

app = group("Check the delivery state of SMS and calls.")


class MessageIds(OptionGroup):
    """The messages to look up."""

    id: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID]...",
            help="Message IDs, as printed when you sent the message.",
            parser=parser(values.short_text, "ID"),
        ),
    ] = None
    last: Annotated[bool, typer.Option("--last", help="Use the last message this profile sent from this machine.")] = (
        False
    )

    def messages(self, context: Context) -> list[Tracked]:
        """Return the messages, each ID once."""
        if self.id and self.last:
            raise UsageError("Use either --last or IDs, not both")
        if self.last:
            return _last_messages(context)
        if not self.id:
            raise UsageError("ID is missing", "Give message IDs, or --last.")
        return [Tracked(message_id) for message_id in dict.fromkeys(self.id)]


@command(
    app,
    "get",
    "msgctl state get 8f3c2a71",
    "msgctl state get --last",
    "msgctl state get 8f3c2a71 8f3c2a72 --json",
    performs=ops.MESSAGES_STATE,
    json="responses",
)
def get(context: Context, ids: MessageIds) -> ServiceResult | OwnResult:
    """Show the delivery state of each message."""
    messages = ids.messages(context)
    if context.options.dry_run:
        return dry_run(context, *(message.request for message in messages))
    responses: list[Response] = []
    failures: list[MsgctlError] = []
    for message in messages:
        try:
            response = context.client.send(message.request)
        except NOT_OF_ONE_MESSAGE as error:
            failures.append(error)
            break
        except MsgctlError as error:
            failures.append(_named(message.id, error))
            responses += printed_beside(context, error)
            continue
        message.receive(response, context.words)
        if response.document["data"] == []:
            what = f"Message {quote(message.id)} has no state yet, or the service does not know it"
            fix = "Check the ID, or try again later."
            failures.append(UnreadableError(what, fix, details=response.details))
        if context.is_json or response.document["data"]:
            responses.append(response)
    store_states(context, messages)
    return ServiceResult(responses, failures=failures)


@command(
    app,
    "watch",
    "msgctl state watch 8f3c2a71",
    "msgctl state watch --last",
    "msgctl state watch 8f3c2a71 --until delivered --max-wait 600",
    performs=ops.MESSAGES_STATE,
    json="responses",
)
def watch(
    context: Context,
    ids: MessageIds,
    until: Annotated[
        str | None, until_option("State to wait for, sent or delivered; any final state if omitted.")
    ] = None,
    max_wait: Annotated[float, max_wait_option("Maximum seconds to wait.")] = 300,
) -> ServiceResult | OwnResult:
    """Wait until each message reaches a state; exit with 6 if one does not.

    Without --until, any final state counts, even if the message was not delivered.
    """
    messages = ids.messages(context)
    if context.options.dry_run:
        return dry_run(context, *(message.request for message in messages))
    tracker = Tracker(context, messages, max_wait, until)
    failures: list[MsgctlError] = []
    try:
        tracker.follow()
    except NOT_OF_ONE_MESSAGE as error:
        failures.append(error)
    except KeyboardInterrupt:
        failures.append(Interrupted("Interrupted"))
    ended = messages if not failures else filter(tracker.is_done, messages)
    failures += [_named(message.id, failure) for message in ended if (failure := tracker.failure(message))]
    responses = tracker.documents()
    if not context.is_json:
        latest = [message.response for message in messages if message.response]
        responses = [response for response in latest if response.document["data"]]
    return ServiceResult(responses, failures=failures)


def _named(id: str, error: MsgctlError) -> MsgctlError:
    return error if isinstance(error, ConditionError) else error.within(f"Message {quote(id)}")


def _last_messages(context: Context) -> list[Tracked]:
    """Return the messages of the profile's last send, without refused recipients."""
    from msgctl.store import history

    profile = context.profile
    entries = history.last_send(context.store, profile.account)
    accepted = [entry for entry in entries if entry.outcome != REFUSED] or entries
    if messages := messages_of((entry.id, entry.phone) for entry in accepted):
        return messages
    why = f"profile {profile.name} has sent no single message from this machine"
    if entries:
        last = entries[0]
        time = timestamp(last.time // 1000)
        why = f"the last message ({last.command}, {time}) has no ID; its outcome is {last.outcome}"
    give, of_job = "Give the ID of each message; ", " lists earlier ones.\nFor a job: "
    hint = Hint(give, "history", of_job, "job states --last")
    raise UsageError(f"--last: {why}", hint)
