"""`msgctl call`: make voice calls."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl.cli.options.bulk import JobOptions, JobRules, Source
from msgctl.cli.options.message import MessageOptions, TemplateOptions
from msgctl.cli.options.send import Numbers, Phones, SendOptions, WaitOptions, chosen_voice, option
from msgctl.cli.runs.single import send_message
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import MESSAGE, OptionGroup
from msgctl.cli.shell.tree import command, group
from msgctl.errors import UsageError
from msgctl.http.request import Value, build
from msgctl.output.result import Result

app = group("Make voice calls.")


class CallOptions(OptionGroup):
    """The options of a call, and the stored audio that replaces its message."""

    voice: Annotated[
        str | None, option(ops.SEND_CALL.field("voice"), "NAME", panel=MESSAGE, required="without --audio-code")
    ] = None
    audio_code: Annotated[str | None, option(ops.SEND_CALL.field("audio-code"), "ID", panel=MESSAGE)] = None
    retries: Annotated[str | None, option(ops.SEND_CALL.field("retries"), "N", panel=MESSAGE)] = None
    leave_voicemail: Annotated[
        bool | None,
        typer.Option(
            "--leave-voicemail/--no-leave-voicemail",
            help=ops.SEND_CALL.field("leave-voicemail").help,
            rich_help_panel=MESSAGE,
        ),
    ] = None

    def values(self, context: Context, message: MessageOptions) -> dict[str, Value]:
        """Return the parameters of a call without its message, which stored audio replaces. Raises UsageError."""
        parameters: dict[str, Value] = {"leave-voicemail": self.leave_voicemail, "retries": self.retries}
        if self.audio_code is None:
            has_message = not message.is_empty or not context.stdin.isatty()
            if not has_message and self.voice is None and context.profile.voice is None:
                hint = "Give -m TEXT and --voice NAME, or --audio-code ID."
                raise UsageError("The message and --voice are missing", hint)
            return {**parameters, "voice": chosen_voice(context, self.voice, ops.SEND_CALL.field("voice"))}
        excluded = {"--message": message.text, "--message-file": message.message_file, "--voice": self.voice}
        if named := [name for name, value in excluded.items() if value is not None]:
            raise UsageError(f"Use either --audio-code or {' and '.join(named)}, not both")
        return {**parameters, "audio-code": self.audio_code}


@command(
    app,
    "send",
    "msgctl call send 573001234567 -m 'See you tomorrow at eight' --voice Lucia",
    "msgctl call send 573001234567 --audio-code A-1029 --retries 2",
    "msgctl call send 573001234567 -m 'The door is open' --voice Lucia --wait",
    performs=ops.SEND_CALL,
)
def send(
    context: Context,
    phone: Phones,
    message: MessageOptions,
    call: CallOptions,
    numbers: Numbers,
    options: SendOptions,
    wait: WaitOptions,
) -> Result:
    """Call each number and speak a message, or play stored audio.

    Give a message and --voice, or --audio-code. Without -m and --message-file, msgctl reads the message from standard
    input.
    """
    phones = numbers.digits_of_all(context, phone)
    parameters = call.values(context, message)
    if call.audio_code is None:
        parameters["message"] = message.read(context)
    parameters |= {"phone": phones, "country-code": numbers.known(context)}
    return send_message(context, build(ops.SEND_CALL, parameters), options, wait)


@command(
    app,
    "bulk",
    "msgctl call bulk patients.csv -m 'See you at {hour}' --voice Lucia --dry-run",
    "msgctl call bulk patients.csv --audio-code A-1029 --rate 2 --yes",
    performs=ops.SEND_CALL,
    in_bulk=True,
)
def bulk_send(
    context: Context,
    message: TemplateOptions,
    call: CallOptions,
    source: Source,
    numbers: Numbers,
    job: JobOptions,
    rules: JobRules,
) -> Result:
    """Call each recipient in a file, as a job.

    In the message, msgctl replaces {column} with the value in the row, and {column|text} with the text if the value is
    empty. You see a summary with the cost, and must confirm. In scripts, use --yes.

    After a crash, `msgctl job resume` continues where it stopped; no one gets a call twice.
    """
    from msgctl.cli.runs.bulk import send_bulk
    from msgctl.cli.runs.bulk_list import Content

    fixed = {**call.values(context, message), "country-code": numbers.known(context)}
    templates = {"message": message.read(context)} if call.audio_code is None else {}
    return send_bulk(context, Content(ops.SEND_CALL, fixed, templates), source, numbers, job, rules)
