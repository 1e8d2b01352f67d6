"""`msgctl 2fa`: send and verify codes."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import inputs, requests
from msgctl.cli.context import Context
from msgctl.cli.inputs import AppName, Numbers, Phone, code, option, optional
from msgctl.cli.process import is_terminal
from msgctl.cli.tree import command, group
from msgctl.errors import UsageError
from msgctl.output.result import Result

app = group("Send and verify codes by SMS, call or chat app.")

Voice = Annotated[
    str | None,
    typer.Option(
        "--voice",
        metavar="NAME",
        help=f"Voice that speaks the code: {', '.join(ops.VERIFICATION_VOICES)}. [required unless in the profile]",
    ),
]


@command(app, "send-sms", "msgctl 2fa send-sms 573001234567 --app-name Shop", performs=ops.SMS_2FA)
def send_sms(
    context: Context,
    phone: Phone,
    *,
    app_name: AppName = None,
    numbers: Numbers,
) -> Result:
    """Send a verification code by SMS."""
    return requests.run(
        context,
        ops.SMS_2FA,
        {
            "phone": numbers.one(context, phone, sms=True),
            "app-name": inputs.app_name(context, app_name),
            "country-code": numbers.code(context),
        },
    )


@command(
    app,
    "send-call",
    "msgctl 2fa send-call 573001234567 --app-name Shop --voice Mariana --retries 2",
    performs=ops.CALL_2FA,
)
def send_call(
    context: Context,
    phone: Phone,
    *,
    app_name: AppName = None,
    voice: Voice = None,
    retries: Annotated[str, option(ops.CALL_2FA.field("retries"), "N")] = "1",
    numbers: Numbers,
) -> Result:
    """Send a verification code by voice call."""
    inputs.require_app_name_and_voice(context, app_name, voice)
    return requests.run(
        context,
        ops.CALL_2FA,
        {
            "phone": numbers.one(context, phone),
            "retries": values.limited(retries, ops.CALL_2FA.field("retries")),
            "app-name": inputs.app_name(context, app_name),
            "voice": inputs.voice(context, voice, ops.CALL_2FA.field("voice")),
            "country-code": numbers.code(context),
        },
    )


@command(
    app,
    "send-chatapp",
    "msgctl 2fa send-chatapp 573001234567 --app-name Shop --template login_code",
    performs=ops.CHATAPP_2FA,
)
def send_chatapp(
    context: Context,
    phone: Phone,
    *,
    app_name: AppName = None,
    template: Annotated[str | None, option(ops.CHATAPP_2FA.field("template"), "NAME")] = None,
    numbers: Numbers,
) -> Result:
    """Send a verification code by chat app."""
    return requests.run(
        context,
        ops.CHATAPP_2FA,
        {
            "phone": numbers.one(context, phone),
            "template": optional(template, "--template"),
            "app-name": inputs.app_name(context, app_name),
            "country-code": numbers.code(context),
        },
    )


@command(
    app,
    "verify",
    "msgctl 2fa verify 573001234567 --app-name Shop --code 123456",
    "msgctl 2fa verify 573001234567 --app-name Shop --code - < code.txt",
    performs=ops.VERIFY_2FA,
)
def verify(
    context: Context,
    phone: Phone,
    *,
    app_name: AppName = None,
    code_text: Annotated[str | None, option(ops.VERIFY_2FA.field("code"), "CODE")] = None,
    numbers: Numbers,
) -> Result:
    """Verify a code; exit 1 if it is wrong.

    Without --code, msgctl asks for the code on a terminal.
    """
    if app_name is None and code_text is None and context.profile.app_name is None and not is_terminal(context.stdin):
        raise UsageError("--app-name and --code are missing", "Give --app-name NAME and --code CODE.")
    given: dict[str, str | None] = {
        "phone": numbers.one(context, phone),
        "app-name": inputs.app_name(context, app_name),
        "country-code": numbers.code(context),
    }
    given["code"] = code(context, code_text)
    return requests.run(context, ops.VERIFY_2FA, given)
