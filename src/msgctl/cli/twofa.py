"""`msgctl 2fa`: verification codes."""

from typing import Annotated

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import defaults
from msgctl.cli.context import Context
from msgctl.cli.inputs import AppName, CountryCode, Phone, code, option, optional
from msgctl.cli.tree import command, group
from msgctl.output.result import Result

app = group("Verification codes by SMS, call and chat app.")


@command(app, "send-sms", "msgctl 2fa send-sms 573001234567 --app-name Shop", performs=ops.SMS_2FA)
def send_sms(ctx: typer.Context, phone: Phone, app_name: AppName = None, country_code: CountryCode = None) -> Result:
    """Send a verification code by SMS."""
    context = Context.of(ctx)
    return context.run(
        ops.SMS_2FA,
        {
            "phone": values.phone(phone),
            "app-name": defaults.app_name(context, app_name),
            "country-code": defaults.country_code(context, country_code),
        },
    )


@command(
    app,
    "send-call",
    "msgctl 2fa send-call 573001234567 --app-name Shop --voice Mariana --retries 2",
    performs=ops.CALL_2FA,
)
def send_call(
    ctx: typer.Context,
    phone: Phone,
    app_name: AppName = None,
    voice: Annotated[str | None, option(ops.CALL_2FA.field("voice"), "NAME")] = None,
    retries: Annotated[str, option(ops.CALL_2FA.field("retries"), "N")] = "1",
    country_code: CountryCode = None,
) -> Result:
    """Speak a verification code in a call."""
    context = Context.of(ctx)
    return context.run(
        ops.CALL_2FA,
        {
            "phone": values.phone(phone),
            "retries": values.limited(retries, ops.CALL_2FA.field("retries")),
            "app-name": defaults.app_name(context, app_name),
            "voice": defaults.voice(context, voice, ops.CALL_2FA.field("voice")),
            "country-code": defaults.country_code(context, country_code),
        },
    )


@command(
    app,
    "send-chatapp",
    "msgctl 2fa send-chatapp 573001234567 --app-name Shop --template login_code",
    performs=ops.CHATAPP_2FA,
)
def send_chatapp(
    ctx: typer.Context,
    phone: Phone,
    app_name: AppName = None,
    template: Annotated[str | None, option(ops.CHATAPP_2FA.field("template"), "NAME")] = None,
    country_code: CountryCode = None,
) -> Result:
    """Send a verification code by chat app."""
    context = Context.of(ctx)
    return context.run(
        ops.CHATAPP_2FA,
        {
            "phone": values.phone(phone),
            "template": optional(template, "--template"),
            "app-name": defaults.app_name(context, app_name),
            "country-code": defaults.country_code(context, country_code),
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
    ctx: typer.Context,
    phone: Phone,
    app_name: AppName = None,
    code_text: Annotated[str | None, option(ops.VERIFY_2FA.field("code"), "CODE")] = None,
    country_code: CountryCode = None,
) -> Result:
    """Verify a code that was sent.

    Without --code, the code is asked for on a terminal.
    """
    context = Context.of(ctx)
    given = {
        "phone": values.phone(phone),
        "app-name": defaults.app_name(context, app_name),
        "country-code": defaults.country_code(context, country_code),
    }
    return context.run(ops.VERIFY_2FA, {**given, "code": code(context, code_text)})
