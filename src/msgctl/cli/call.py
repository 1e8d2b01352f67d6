"""`msgctl call`: voice calls."""

from __future__ import annotations

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.context import App
from msgctl.cli.inputs import CountryCode, Message, MessageFile, Phones, message, option
from msgctl.cli.tree import command, group
from msgctl.errors import UsageError

app = group("Voice calls.")


@command(
    app,
    "send",
    "msgctl call send 573001234567 -m 'Your appointment is tomorrow at eight' --voice Lucia",
    "msgctl call send 573001234567 --audio-code A-1029 --retries 2 --leave-voicemail",
    performs=ops.SEND_CALL,
)
def send(
    ctx: typer.Context,
    phone: Phones,
    text: Message = None,
    message_file: MessageFile = None,
    voice: Annotated[str | None, option(ops.SEND_CALL.field("voice"), "NAME")] = None,
    audio_code: Annotated[str | None, option(ops.SEND_CALL.field("audio-code"), "ID")] = None,
    retries: Annotated[str | None, option(ops.SEND_CALL.field("retries"), "N")] = None,
    leave_voicemail: Annotated[
        bool | None,
        typer.Option("--leave-voicemail/--no-leave-voicemail", help=ops.SEND_CALL.field("leave-voicemail").help),
    ] = None,
    country_code: CountryCode = None,
) -> None:
    """Call each number and speak a message, or play a stored audio.

    The message is read from standard input when neither -m, --message-file nor --audio-code is given.
    """
    run = App.of(ctx)
    phones = run.recipients(phone)
    attempts = None if retries is None else values.limited(retries, ops.SEND_CALL.field("retries"))
    if audio_code is None:
        spoken = {
            "message": message(run, text, message_file),
            "voice": run.voice(voice, ops.SEND_CALL.field("voice")),
        }
    else:
        spoken = {"audio-code": _audio(audio_code, text, message_file, voice)}
    run.run(
        ops.SEND_CALL,
        {
            "phone": phones,
            "retries": attempts,
            "leave-voicemail": leave_voicemail,
            "country-code": run.country_code(country_code),
            **spoken,
        },
    )


def _audio(audio_code: str, text: str | None, message_file: str | None, voice: str | None) -> str:
    """The code of a stored audio, which has its own words and voice (interface, "Limits")."""
    given = {"--message": text, "--message-file": message_file, "--voice": voice}
    excluded = [option for option, value in given.items() if value is not None]
    if excluded:
        raise UsageError(
            f"--audio-code and {' and '.join(excluded)} exclude each other",
            "Give either --audio-code, or a message and --voice.",
        )
    return values.words(audio_code, "--audio-code")
