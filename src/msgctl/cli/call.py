"""`msgctl call`: make voice calls."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import bulk, bulk_options, inputs, requests
from msgctl.cli.context import Context
from msgctl.cli.inputs import (
    Message,
    MessageFile,
    Numbers,
    Phones,
    Template,
    TemplateFile,
    message,
    option,
    template_text,
)
from msgctl.cli.process import is_terminal
from msgctl.cli.tree import command, group
from msgctl.errors import UsageError
from msgctl.http import request
from msgctl.output.result import OwnResult, Result

app = group("Make voice calls.")

Voice = Annotated[
    str | None,
    typer.Option(
        "--voice",
        metavar="NAME",
        help=f"Voice that speaks the message: {', '.join(ops.CALL_VOICES)}. [required without --audio-code]",
    ),
]
AudioCode = Annotated[str | None, option(ops.SEND_CALL.field("audio-code"), "ID")]
Retries = Annotated[str | None, option(ops.SEND_CALL.field("retries"), "N")]
LeaveVoicemail = Annotated[
    bool | None,
    typer.Option("--leave-voicemail/--no-leave-voicemail", help=ops.SEND_CALL.field("leave-voicemail").help),
]


@command(
    app,
    "send",
    "msgctl call send 573001234567 -m 'Your appointment is tomorrow at eight' --voice Lucia",
    "msgctl call send 573001234567 --audio-code A-1029 --retries 2 --leave-voicemail",
    "msgctl call send 573001234567 -m 'The door is open' --voice Lucia --wait",
    performs=ops.SEND_CALL,
)
def send(
    context: Context,
    phone: Phones,
    *,
    text: Message = None,
    message_file: MessageFile = None,
    voice: Voice = None,
    audio_code: AudioCode = None,
    retries: Retries = None,
    leave_voicemail: LeaveVoicemail = None,
    numbers: Numbers,
    options: requests.SendOptions,
    wait: requests.WaitOptions,
) -> Result:
    """Call each number and speak a message, or play a stored audio.

    A message and --voice are required, unless --audio-code is given. Without -m and --message-file, the message is read
    from standard input.
    """
    phones = numbers.all(context, phone)
    attempts = _attempts(retries)
    if audio_code is None:
        _require_speech(context, text, message_file, voice)
        spoken = {
            "message": message(context, text, message_file),
            "voice": inputs.voice(context, voice, ops.SEND_CALL.field("voice")),
        }
    else:
        spoken = {"audio-code": _audio(audio_code, text, message_file, voice)}
    country = numbers.code(context)
    given = {"phone": phones, "retries": attempts, "leave-voicemail": leave_voicemail, "country-code": country}
    return requests.send(context, ops.SEND_CALL, {**given, **spoken}, options, wait)


@command(
    app,
    "bulk",
    "msgctl call bulk patients.csv -m 'Your appointment is at {hour}' --voice Lucia --dry-run",
    "msgctl call bulk patients.csv --audio-code A-1029 --rate 2 --yes",
    performs=ops.SEND_CALL,
    in_bulk=True,
)
def bulk_send(
    context: Context,
    *,
    text: Template = None,
    message_file: TemplateFile = None,
    voice: Voice = None,
    audio_code: AudioCode = None,
    retries: Retries = None,
    leave_voicemail: LeaveVoicemail = None,
    source: bulk_options.Source,
    numbers: Numbers,
    limits: bulk_options.BatchLimits,
    rules: bulk_options.Rules,
) -> OwnResult:
    """Call each recipient in a file, as a job.

    In the message, {column} is replaced from the recipient's row. You see a summary and must confirm. In scripts, use
    --yes.

    After a crash, `msgctl job resume` continues where it stopped; no one gets a call twice.
    """
    fixed: dict[str, request.Value] = {
        "retries": _attempts(retries),
        "leave-voicemail": leave_voicemail,
        "country-code": numbers.code(context),
    }
    templates: dict[str, str] = {}
    if audio_code is None:
        templates["message"] = template_text(context, text, message_file)
        fixed["voice"] = inputs.voice(context, voice, ops.SEND_CALL.field("voice"))
    else:
        fixed["audio-code"] = _audio(audio_code, text, message_file, voice)
    messages = bulk.Messages(templates)
    return bulk.start(context, "call bulk", ops.SEND_CALL, source, numbers, limits, fixed, messages, rules)


def _attempts(retries: str | None) -> str | None:
    return inputs.checked(ops.SEND_CALL, {"retries": retries}).get("retries")


def _require_speech(context: Context, text: str | None, message_file: str | None, voice: str | None) -> None:
    """Name the message and the voice at once if both are missing."""
    no_message = text is None and message_file is None and is_terminal(context.stdin)
    if no_message and voice is None and context.profile.voice is None:
        raise UsageError("The message and --voice are missing", "Give -m TEXT and --voice NAME, or --audio-code ID.")


def _audio(audio_code: str, text: str | None, message_file: str | None, voice: str | None) -> str:
    """Return the code of a stored audio, which excludes a message and a voice (interface, "Limits")."""
    given = {"--message": text, "--message-file": message_file, "--voice": voice}
    excluded = [option for option, value in given.items() if value is not None]
    if excluded:
        raise UsageError(
            f"Use either --audio-code or {' and '.join(excluded)}, not both",
        )
    return values.words(audio_code, "--audio-code")
