"""`msgctl 2fa`: send and verify codes."""

import shlex
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import values
from msgctl.cli import prompts
from msgctl.cli.context import Context
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.options import Numbers, Phone, chosen_voice, field_parser, option, setting
from msgctl.cli.parsers import Choices, Chosen, text_option
from msgctl.cli.send import check_fields, perform, run
from msgctl.cli.tree import command, group
from msgctl.delivery import words
from msgctl.errors import Cancelled, Interrupted, RefusedError, UsageError
from msgctl.http.request import Request, Value, build
from msgctl.http.response import SERVICE_ERROR
from msgctl.operations import Effect
from msgctl.output.result import Result
from msgctl.text import plural

app = group("Send and verify codes by SMS, call or chat app.")


class CodeRecipient(OptionGroup):
    """The recipient of a code, and the application."""

    phone: Phone
    app_name: Annotated[
        str | None,
        text_option("--app-name", "NAME", "Name of the application the code is for. [required unless in the profile]"),
    ] = None

    def values(self, context: Context, numbers: Numbers, *, sms: bool = False) -> dict[str, str | None]:
        """Return the parameters of all these operations: phone, application and country. Raises UsageError."""
        number = numbers.one(context, self.phone, sms=sms)
        name = self.app_name or setting(context, "app_name", lambda text: values.short_text(text, "--app-name"))
        if name is None:
            profile = context.profile
            stored = "" if profile.is_sandbox else f", or store it as app_name in profile {profile.name}"
            raise UsageError("--app-name is missing", f"Give --app-name NAME, the application the code is for{stored}.")
        return {"phone": number, "app-name": name, "country-code": numbers.code(context)}


def _voice_option(required: str) -> Any:
    """Return the option --voice; ``required`` is the condition under which it is required."""
    text = f"Voice that speaks the code: {', '.join(ops.VERIFICATION_VOICES)}. [required {required}]"
    return typer.Option("--voice", metavar="NAME", help=text, parser=field_parser(ops.CALL_2FA.field("voice")))


@command(app, "send-sms", "msgctl 2fa send-sms 573001234567 --app-name Shop", performs=ops.SMS_2FA)
def send_sms(context: Context, to: CodeRecipient, numbers: Numbers) -> Result:
    """Send a verification code by SMS."""
    return run(context, build(ops.SMS_2FA, to.values(context, numbers, sms=True)))


@command(
    app,
    "send-call",
    "msgctl 2fa send-call 573001234567 --app-name Shop --voice Mia --retries 2",
    performs=ops.CALL_2FA,
)
def send_call(
    context: Context,
    to: CodeRecipient,
    voice: Annotated[str | None, _voice_option("unless in the profile")] = None,
    retries: Annotated[str, option(ops.CALL_2FA.field("retries"), "N")] = "1",
    *,
    numbers: Numbers,
) -> Result:
    """Send a verification code by voice call."""
    if to.app_name is None and voice is None and context.profile.app_name is None and context.profile.voice is None:
        raise UsageError("--app-name and --voice are missing", "Give --app-name NAME and --voice NAME.")
    given = to.values(context, numbers) | {"retries": retries}
    given["voice"] = chosen_voice(context, voice, ops.CALL_2FA.field("voice"))
    return run(context, build(ops.CALL_2FA, given))


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
    return run(context, build(ops.CHATAPP_2FA, to.values(context, numbers) | {"template": template}))


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
    code: Annotated[str | None, typer.Option("--code", metavar="CODE", help=ops.VERIFY_2FA.field("code").help)] = None,
    *,
    numbers: Numbers,
) -> Result:
    """Verify a code; exit 1 if it is wrong.

    Without --code, msgctl asks for the code on a terminal.
    """
    if code is None and not context.stdin.isatty():
        if to.app_name is None and context.profile.app_name is None:
            raise UsageError("--app-name and --code are missing", "Give --app-name NAME and --code CODE.")
        raise UsageError("--code is missing", "Give --code CODE, or --code - to read it from standard input.")
    given = to.values(context, numbers)
    if code is None:
        code = prompts.ask(context, "Code: ")
    elif code == "-":
        code = prompts.read_line(context, 1024, "the code")
    code = "".join(code.split())
    if not code:
        raise UsageError("The code is empty", "Give the code that the phone received.")
    given["code"] = values.short_text(code, "--code")
    try:
        return run(context, build(ops.VERIFY_2FA, given))
    except RefusedError as error:
        raise _explained(context, error) from None


MAX_TRIES = 3
"""Codes that `2fa ask` checks, and codes that it sends."""
WAYS = {"sms": ops.SMS_2FA, "call": ops.CALL_2FA, "chatapp": ops.CHATAPP_2FA}
BY_SMS = Chosen(["sms"])
BY_WAY = {"sms": "by SMS", "call": "by call", "chatapp": "by chat app"}


@command(
    app,
    "ask",
    "msgctl 2fa ask 573001234567 --app-name Shop",
    "msgctl 2fa ask 573001234567 --app-name Shop --via sms,call --voice Mia",
    begins_with=ops.SMS_2FA,
    effect=Effect.SENDS,
)
def ask(
    context: Context,
    to: CodeRecipient,
    via: Annotated[
        Chosen,
        typer.Option(
            "--via",
            metavar="WAYS",
            help="How to send codes, in this order: sms, call, chatapp, or several with commas.",
            parser=Choices([*WAYS], "way"),
        ),
    ] = BY_SMS,
    voice: Annotated[str | None, _voice_option("with --via call, unless in the profile")] = None,
    code: Annotated[
        str | None,
        typer.Option("--code", metavar="CODE", help="Only -, which reads codes from standard input, one per line."),
    ] = None,
    *,
    numbers: Numbers,
) -> Result:
    """Send a code, ask for it, and check it; exit 1 if it is wrong.

    You have three tries. Press Enter without a code to send another code, by the next method of --via; at most three
    codes are sent. Standard output contains only the result of the last check.
    """
    if code not in (None, "-"):
        raise UsageError("--code must be -, to read codes from standard input", "To check a code: msgctl 2fa verify")
    if code is None and not (context.stdin.isatty() or context.options.dry_run):
        raise UsageError("Cannot ask for the code: this is not a terminal", "Give --code - to read standard input.")
    given = to.values(context, numbers, sms="sms" in via)
    of_call = {}
    if "call" in via:
        of_call = {"retries": "1", "voice": chosen_voice(context, voice, ops.CALL_2FA.field("voice"))}
    sends = {way: build(WAYS[way], {**given, **(of_call if way == "call" else {})}) for way in via}
    if context.options.dry_run:
        return run(context, sends[via[0]])
    check_fields(context, ops.VERIFY_2FA)
    return _ask(context, given, sends, asks=code is None)


def _ask(context: Context, given: Mapping[str, Value], sends: Mapping[str, Request], *, asks: bool) -> Result:
    """Send codes, each by the next way, and check the typed ones until one is right. Raises RefusedError."""
    ways = [*sends]
    sent, tries, error = 0, 0, RefusedError("No code was given")
    typed = ""
    while tries < MAX_TRIES:
        if not typed and sent < MAX_TRIES:
            way = ways[sent % len(ways)]
            for failure in perform(context, sends[way]).failures:
                raise failure
            sent += 1
            context.note(f"A code was sent to {given['phone']} {BY_WAY[way]}.")
        again = f" (Enter: another {BY_WAY[ways[sent % len(ways)]]})" if sent < MAX_TRIES else ""
        try:
            typed = _typed_code(context, f"Code{again}: ", asks=asks)
        except KeyboardInterrupt:
            to = f"{given['phone']} --app-name {shlex.quote(str(given['app-name']))}"
            hint = f"Check it with: {context.printer.program} 2fa verify {to}"
            raise Interrupted("Interrupted", hint, consequence="the code was sent") from None
        tries += bool(typed) or sent == MAX_TRIES
        if typed:
            try:
                return run(context, build(ops.VERIFY_2FA, {**given, "code": typed}))
            except RefusedError as refusal:
                error = _explained(context, refusal)
                if refusal.http_status not in (200, 400, SERVICE_ERROR):
                    raise error from None
            if tries < MAX_TRIES:
                context.note(f"{error.message}. {plural(MAX_TRIES - tries, 'try', 'tries')} left.")
    raise error


def _typed_code(context: Context, prompt: str, *, asks: bool) -> str:
    """Return a code without spaces, from the terminal or a line of standard input; empty if none was typed."""
    if asks:
        try:
            line = prompts.ask(context, prompt)
        except Cancelled:
            raise Cancelled("Cancelled", consequence="no code was verified") from None
    else:
        content = context.stdin.buffer.readline(prompts.MAX_LINE)
        if not content:
            raise RefusedError("Standard input ended before the right code")
        line = content.decode("utf-8", "replace")
    return "".join(char for char in line if char.isprintable() and not char.isspace())


def _explained(context: Context, error: RefusedError) -> RefusedError:
    """Return the refusal of a code in plain words; the service's message follows with -v."""
    found = words(f"{error.record.get('error')} {error.record.get('msg')}")
    if error.http_status not in (400, SERVICE_ERROR) or {"code", "codigo"}.isdisjoint(found):
        return error
    return RefusedError(
        "The code is wrong, used or expired",
        f"{error.message}." if context.options.verbose else None,
        http_status=error.http_status,
        record=error.record,
        body=error.body,
        document=error.document,
    )
