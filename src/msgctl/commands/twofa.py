"""`msgctl 2fa`: send and verify codes."""

import shlex
from typing import Annotated

from msgctl import operations as ops
from msgctl import values
from msgctl.cli.options.send import Numbers, Phone, chosen_voice, option, setting
from msgctl.cli.runs.single import run_request
from msgctl.cli.shell import prompts
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import OptionGroup, text_option, value_option
from msgctl.cli.shell.tree import command, group
from msgctl.errors import UsageError
from msgctl.http.request import build
from msgctl.output.result import Result

app = group("Send and verify codes by SMS, call or chat app.")


class CodeRecipient(OptionGroup):
    """The recipient of a code, and the application."""

    phone: Phone
    app_name: Annotated[
        str | None,
        text_option("--app-name", "NAME", "Name of the application the code is for. [required unless in the profile]"),
    ] = None

    def values(self, context: Context, numbers: Numbers, *, sms: bool = False) -> dict[str, str | None]:
        """Return the parameters that these operations share: phone, application and country. Raises UsageError."""
        number = numbers.digits_of(context, self.phone, sms=sms)
        name = self.app_name or setting(context, "app_name", lambda text: values.short_text(text, "--app-name"))
        if name is None:
            hint = "Give --app-name NAME, the application the code is for."
            profile = context.profile
            if profile.by and not profile.is_sandbox:
                hint += f" Or store it: msgctl profile set {shlex.quote(profile.name)} --app-name NAME"
            raise UsageError("--app-name is missing", hint)
        return {"phone": number, "app-name": name, "country-code": numbers.known(context)}


@command(app, "send-sms", "msgctl 2fa send-sms 573001234567 --app-name Shop", performs=ops.SMS_2FA)
def send_sms(context: Context, to: CodeRecipient, numbers: Numbers) -> Result:
    """Send a verification code by SMS."""
    return run_request(context, build(ops.SMS_2FA, to.values(context, numbers, sms=True)))


@command(
    app, "send-call", "msgctl 2fa send-call 573001234567 --app-name Shop --voice Mia --retries 2", performs=ops.CALL_2FA
)
def send_call(
    context: Context,
    to: CodeRecipient,
    voice: Annotated[str | None, option(ops.CALL_2FA.field("voice"), "NAME", required="unless in the profile")] = None,
    retries: Annotated[str, option(ops.CALL_2FA.field("retries"), "N")] = "1",
    *,
    numbers: Numbers,
) -> Result:
    """Send a verification code by voice call."""
    if to.app_name is None and voice is None and context.profile.app_name is None and context.profile.voice is None:
        raise UsageError("--app-name and --voice are missing", "Give --app-name NAME and --voice NAME.")
    parameters = to.values(context, numbers) | {"retries": retries}
    parameters["voice"] = chosen_voice(context, voice, ops.CALL_2FA.field("voice"))
    return run_request(context, build(ops.CALL_2FA, parameters))


@command(
    app,
    "send-chatapp",
    "msgctl 2fa send-chatapp 573001234567 --app-name Shop --template login_code",
    performs=ops.CHATAPP_2FA,
)
def send_chatapp(
    context: Context,
    to: CodeRecipient,
    template: Annotated[str | None, option(ops.CHATAPP_2FA.field("template"), "NAME")] = None,
    *,
    numbers: Numbers,
) -> Result:
    """Send a verification code by chat app."""
    return run_request(context, build(ops.CHATAPP_2FA, to.values(context, numbers) | {"template": template}))


@command(
    app,
    "verify",
    "msgctl 2fa verify 573001234567 --app-name Shop --code 123456",
    "msgctl 2fa verify 573001234567 --app-name Shop --code - < code.txt",
    performs=ops.VERIFY_2FA,
)
def verify(
    context: Context,
    to: CodeRecipient,
    code: Annotated[str | None, value_option("--code", "CODE", ops.VERIFY_2FA.field("code").help)] = None,
    *,
    numbers: Numbers,
) -> Result:
    """Verify a code; exit with 1 if it is wrong.

    Without --code, msgctl asks for the code on a terminal.
    """
    if code is None and not context.stdin.isatty():
        if to.app_name is None and context.profile.app_name is None:
            raise UsageError("--app-name and --code are missing", "Give --app-name NAME and --code CODE.")
        raise UsageError("--code is missing", "Give --code CODE, or --code - to read it from standard input.")
    parameters = to.values(context, numbers)
    if code is None:
        code = prompts.ask(context, "Code: ")
    elif code == "-":
        code = prompts.read_line(context)
    code = "".join(code.split())
    if not code:
        raise UsageError("The code is empty", "Give the code that the phone received.")
    parameters["code"] = values.short_text(code, "--code")
    return run_request(context, build(ops.VERIFY_2FA, parameters))
