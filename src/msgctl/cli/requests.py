"""What commands share: arguments and options, checks of what is typed, dry runs, and requests with their history."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from msgctl import operations, phones, recipients
from msgctl import values as checks
from msgctl.cli.context import Context
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    MsgctlError,
    NoProfileError,
    OutcomeUnknownError,
    UsageError,
)
from msgctl.http import request
from msgctl.http.request import Value
from msgctl.http.response import Response, check
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Effect, Field, Operation
from msgctl.output.result import Document, Format, OwnResult, Result, ServiceResult
from msgctl.storage import files
from msgctl.text import clean, plural, timestamp
from msgctl.values import MOST_MESSAGE_BYTES, quote

Values = Mapping[str, Value]
MOST_BODY_BYTES = 1024 * 1024
"""The largest JSON body, in bytes."""


def option(field: Field, metavar: str | None = None) -> Any:
    """Return the option for a field of an operation, with the field's own help."""
    choices = f": {', '.join(field.choices)}." if field.choices else "."
    return typer.Option(field.typed, metavar=metavar, help=field.help.removesuffix(".") + choices)


def checked(operation: Operation, typed: Mapping[str, str | None]) -> dict[str, str]:
    """Return the values typed for fields of an operation, by wire name. Raises UsageError if one is not allowed."""
    return {name: checks.of(operation.field(name), text) for name, text in typed.items() if text is not None}


def optional(text: str | None, name: str) -> str | None:
    """Return a short text, or None if the option was left out."""
    return None if text is None else checks.short_text(text, name)


Phones = Annotated[
    list[str],
    typer.Argument(metavar="PHONE...", help="Phone numbers; commas between them also work.", show_default=False),
]
Phone = Annotated[str, typer.Argument(metavar="PHONE", help="Phone number, with or without spaces and punctuation.")]
MessageFile = Annotated[
    str | None,
    typer.Option("--message-file", metavar="PATH", help="Read the message from a file; - is standard input."),
]


def read_message(context: Context, text: str | None, path: str | None, typed: str = "-m TEXT") -> str:
    """Return the message from its option, a file, or standard input; ``typed`` shows how the option is given.

    A file's final line ends are removed, as in the shell's ``$(…)``. What is not UTF-8 is read as Windows-1252.
    """
    if text is not None and path is not None:
        raise UsageError(f"Use either {'--message' if typed.startswith('-m ') else typed} or --message-file, not both")
    hint = f"Give it with {typed}, with --message-file PATH, or on standard input."
    if text is not None and text != "-":
        return checks.prose(text, "The message", hint)
    if text is None and path is None and context.stdin.isatty():
        raise UsageError("The message is missing", hint)
    content = read(context, path or "-", MOST_MESSAGE_BYTES, "the message")
    name = "Standard input" if path in (None, "-") else Path(str(path)).name
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = content.decode("cp1252")
        except UnicodeDecodeError as error:
            where = f"byte {content[error.start]:#04x} at position {error.start + 1}"
            raise UsageError(f"{name} is neither UTF-8 nor Windows-1252: {where}", "Give it as UTF-8 text.") from None
        context.note(f"{name} is not UTF-8; reading it as Windows-1252")
    return checks.prose(text.rstrip("\r\n"), "The message", hint)


class MessageOptions(NamedTuple):
    """Options that give the message."""

    text: Annotated[
        str | None, typer.Option("--message", "-m", metavar="TEXT", help="Text of the message; - reads standard input.")
    ] = None
    message_file: MessageFile = None


class TemplateOptions(NamedTuple):
    """Options that give the template of a bulk send."""

    text: Annotated[
        str | None,
        typer.Option("--message", "-m", metavar="TEMPLATE", help="Text of the message, with {column} placeholders."),
    ] = None
    message_file: Annotated[
        str | None,
        typer.Option("--message-file", metavar="PATH", help="Read the template from a file; - is standard input."),
    ] = None

    def read(self, context: Context) -> str:
        """Return the template."""
        if self == (None, None):
            raise UsageError("The message is missing", "Give it with -m TEMPLATE or --message-file PATH.")
        return read_message(context, *self, "-m TEMPLATE")


def read(context: Context, path: str, most: int, what: str) -> bytes:
    """Return the bytes of a file, or of standard input for ``-``; at most ``most`` of them."""
    name = "standard input" if path == "-" else quote(path)
    try:
        if path == "-":
            content = context.stdin.buffer.read(most + 1)
        else:
            with Path(path).open("rb") as file:
                content = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is closed, or the name is not valid"
        raise UsageError(f"Cannot read {what} from {name}: {reason}") from None
    if len(content) > most:
        raise UsageError(f"{what[0].upper()}{what[1:]} is too long: the maximum is {most} bytes")
    return content


def json_body(context: Context, path: str) -> tuple[bytes, Any]:
    """Return the bytes of a JSON document without a byte order mark (RFC 8259, section 8.1), and what it holds."""
    body = read(context, path, MOST_BODY_BYTES, "a JSON document").removeprefix(BOM_UTF8)
    try:
        return body, load_json(body)
    except ShapeError as error:
        name = "Standard input" if path == "-" else quote(path)
        raise UsageError(f"{name} cannot be the body: {error}", "Give one JSON document in UTF-8.") from None


CountryCode = Annotated[
    str | None,
    typer.Option("--country-code", metavar="CC", help="Country of national numbers, for example CO."),
]
COUNTRY_VARIABLE = "MSGCTL_COUNTRY_CODE"


@dataclass(eq=False, repr=False)
class Country:
    """How phone numbers are read by commands that do not send to them."""

    country_code: CountryCode = None
    no_number_check = False
    unchecked = ""
    """How to send without a check; empty for commands that do not send."""

    def code(self, context: Context) -> str | None:
        """Return the country code of the option, of MSGCTL_COUNTRY_CODE or of the profile, if any."""
        return self._of_run(context) or given(context, "country_code", None, checks.country_code)

    def known(self, context: Context) -> str | None:
        """Return the country to read numbers by. No profile is needed."""
        if code := self._of_run(context):
            return code
        try:
            return self.code(context)
        except ConfigurationError:
            return None

    def _of_run(self, context: Context) -> str | None:
        """Return the country code of the option or of MSGCTL_COUNTRY_CODE, without loading the profile."""
        if self.country_code is not None:
            return checks.country_code(self.country_code)
        variable = context.environ.get(COUNTRY_VARIABLE)
        try:
            return checks.country_code(variable) if variable else None
        except UsageError as error:
            raise ConfigurationError(
                f"{COUNTRY_VARIABLE} cannot be used: {error.message}", "Fix it, or give --country-code."
            ) from error

    def one(self, context: Context, text: str, *, sms: bool = False) -> str:
        """Return the digits of a number; a note says so if it belongs to another country than the known one.

        ``sms`` refuses fixed lines.
        """
        if self.no_number_check:
            return phones.as_typed(text).digits
        if "," in text:
            raise UsageError(f"{quote(text)} is a list: give one number")
        found = phones.read(text, self.known(context), sms=sms, unchecked=self.unchecked)
        if found.abroad:
            context.note(f"{found.digits} is a number in {found.abroad}")
        return found.digits

    def any(self, context: Context, text: str) -> str:
        """Return the digits of a number to look up. It may have been sent to without a check."""
        try:
            return self.one(context, text)
        except phones.InvalidPhoneError:
            return phones.as_typed(text).digits

    def all(self, context: Context, texts: Iterable[str], *, sms: bool = False) -> tuple[str, ...]:
        """Return the digits of several numbers, each once; an argument may be a comma-separated list."""
        seen: dict[str, None] = {}
        repeated: dict[str, None] = {}
        for text in texts:
            parts = text.split(",")
            if len(parts) > 1 and not all(part.strip() for part in parts):
                raise UsageError(f"{quote(text)} has a comma without a number beside it")
            if self.unchecked and not any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
                raise UsageError(
                    f"{quote(text)} is not a phone number",
                    "Give only numbers here, and the message with -m TEXT, in quotes.",
                )
            for part in parts:
                number = self.one(context, part, sms=sms)
                (repeated if number in seen else seen)[number] = None
        if repeated:
            context.note(f"Repeated numbers are used once: {', '.join(repeated)}")
        return tuple(seen)


@dataclass(eq=False, repr=False)
class Numbers(Country):
    """How phone numbers to send to are read."""

    no_number_check: Annotated[
        bool, typer.Option("--no-number-check", help="Send the digits as typed, for short codes and test numbers.")
    ] = False
    unchecked = "To send to it anyway, add --no-number-check."

    def known(self, context: Context) -> str | None:
        """Return the country to read numbers by. Raises ConfigurationError for a profile that cannot be used.

        Otherwise a national number would be blamed for it.
        """
        try:
            return self.code(context)
        except NoProfileError:
            return None


SAME_VOICE = {"marian": "Mariana", "mariana": "Marian"}
"""The one voice that the interface spells in two ways: Marian in calls, Mariana in verification calls."""


def voice(context: Context, text: str | None, field: Field) -> str:
    """Return the voice of the option or of the profile; a profile may use either spelling of Marian."""

    def spelled(name: str) -> str:
        other = SAME_VOICE.get(name.lower())
        return checks.choice(other if text is None and other in field.choices else name, field.choices, "voice")

    name = given(context, "voice", text, spelled)
    if name is None:
        raise UsageError("--voice is missing", f"Give --voice NAME: choose from {', '.join(field.choices)}.")
    return name


def given(context: Context, setting: str, text: str | None, convert: Callable[[str], str]) -> str | None:
    """Return the value of an option, else that of the profile, which is loaded only then."""
    if text is not None:
        return convert(text)
    default: str | None = getattr(context.profile, setting)
    if default is None:
        return None
    try:
        return convert(default)
    except UsageError as error:
        raise ConfigurationError(
            f"{context.profile.place}: {setting} cannot be used: {error.message}",
            f"Fix it, or give --{setting.replace('_', '-')}.",
        ) from error


# --- requests


class SendOptions(NamedTuple):
    """Options of the commands that send one message."""

    once: Annotated[
        str | None,
        typer.Option("--once", metavar="KEY", help="Send at most once per key; later runs print the first result."),
    ] = None
    resend_unknown: Annotated[
        bool, typer.Option("--resend-unknown", help="With --once: send again if the earlier outcome is unknown.")
    ] = False
    ignore_optout: Annotated[bool, typer.Option("--ignore-optout", help="Send even to numbers that opted out.")] = False


class WaitOptions(NamedTuple):
    """Options that track a message until it is delivered."""

    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until every message is delivered; exit 6 if one is not.")
    ] = False
    max_wait: Annotated[
        str | None, typer.Option("--max-wait", metavar="S", help="With --wait: maximum seconds to wait. [default: 300]")
    ] = None
    until: Annotated[
        list[str] | None,
        typer.Option("--until", metavar="STATE", help="With --wait: a state to wait for (repeatable)."),
    ] = None


NO_WAIT = WaitOptions()


def send(
    context: Context,
    operation: Operation,
    values: Values,
    options: SendOptions,
    wait: WaitOptions = NO_WAIT,
    body: bytes | None = None,
    *,
    numbers: Numbers,
) -> Result:
    """Perform an operation that sends, at most once per key; with --wait, also track its messages.

    The phones were read like ``numbers``. Raises UsageError for numbers that have opted out.
    """
    if options.resend_unknown and options.once is None:
        raise UsageError("--resend-unknown needs --once KEY")
    for name, value in (("--max-wait", wait.max_wait), ("--until", wait.until)):
        if value and not wait.wait:
            raise UsageError(f"{name} needs --wait")
    until = [checks.short_text(state, "--until") for state in wait.until or ()]
    seconds = checks.seconds(wait.max_wait or "300", "--max-wait", most=31 * 86400) if wait.wait else 0.0
    to = people = request.build(operation, values, body).phones
    if body is not None or numbers.no_number_check:
        reader = phones.Reader(numbers.known(context))
        people = [phone and reader.international(phone) for phone in to]
    if not options.ignore_optout and files.has_optouts():
        _refuse_optouts([phone for phone in (*to, *people) if phone])
    if options.once is None or context.options.dry_run:
        result = run(context, operation, values, body, people)
    else:
        from msgctl.cli import once

        result = once.send(context, operation, values, body, options, people)
    if not wait.wait or not isinstance(result, ServiceResult):
        return result
    from msgctl.cli.message_state import undelivered

    context.printer.print(result)
    return ServiceResult([], failures=[*result.failures, *undelivered(context, result.outcomes, seconds, until)])


def run(
    context: Context,
    operation: Operation,
    values: Values,
    body: bytes | None = None,
    people: Sequence[str | None] = (),
) -> ServiceResult | OwnResult:
    """Make the request of an operation and return its result; in a dry run, describe the request instead.

    ``people`` are the international numbers of the recipients if a job must not repeat the message to them.
    """
    built = request.build(operation, values, body)  # usage errors come before those of the profile
    check_fields(context, operation)
    if context.options.dry_run:
        return described([built.described(context.profile.base_url)])
    return perform(context, operation, values, body, people)


def perform(
    context: Context,
    operation: Operation,
    values: Values,
    body: bytes | None = None,
    people: Sequence[str | None] = (),
) -> ServiceResult:
    """Make a request; if it sends something or blocks a number, record it in the history (see `run`)."""
    client = context.client  # before anything is recorded: there may be no credential
    if operation.effect is Effect.READS:
        any_json = context.options.format is Format.JSON and not context.options.fields
        return ServiceResult([client.send(operation, values, body=body, any_json=any_json)], values=values)
    if operation.effect is Effect.CHANGES and operation is not operations.BLOCK_PHONE:
        response = client.send(operation, values, body=body)
        context.carried_out = True
        return ServiceResult([response], values=values)
    from msgctl.history.store import Contact, Send, message_of, recorded

    def warn(error: ConfigurationError) -> None:
        context.warn(f"Not recorded in the history: {error.message}." + (f"\n{error.hint}" if error.hint else ""))

    sent_request = request.build(operation, values, body)
    profile, to = context.profile, sent_request.phones
    message = message_of(operation, values, body)
    sent = Send(timestamp(context.clock(), "milliseconds"), profile.name, profile.base_url, operation.name, message)
    contact = None
    if people:
        since = timestamp(context.clock() - operations.REPEAT_SECONDS, "milliseconds")
        contact = Contact(profile.account, _digest(operation, values, body), people, since)
    if profile.keep_days is not None:
        from msgctl.cli.history import delete_old

        delete_old(context)
    with (
        context.permitted(operation, values, to) as settle,
        recorded(sent, to, warn, is_kept=profile.history, contact=contact) as kept,
    ):
        response = client.send(operation, values, body=body)
        context.carried_out = True
        result = judged(sent_request, response, values)
        kept.entries = [*result.outcomes, *recipients.unclaimed(operation, response.document, to)]
        if any(each.outcome == recipients.UNKNOWN for each in result.outcomes):
            kept.response = response.body.decode(errors="replace")
        settle(kept.entries)
    return result


def _digest(operation: Operation, values: Values, body: bytes | None) -> bytes:
    """Return the digest of a message; it is the same in a job."""
    if body is None:
        content = {name: values[name] for name in ("sms", "message", "body") if name in values}
    else:
        content = {name: value for name, value in json.loads(body).items() if name != "phone"}
    return operations.message_digest(operation, values, json.dumps(content))


def described(documents: Sequence[Document]) -> OwnResult:
    """Return descriptions of requests as a result, with columns such as ``headers.Accept`` and ``form.phone``."""
    columns = dict.fromkeys(
        f"{name}.{inner}" if inner else name
        for document in documents
        for name, value in document.items()
        for inner in (value if isinstance(value, dict) else [""])
    )
    shown = documents[0] if len(documents) == 1 else documents
    return OwnResult(shown, tuple(columns), view="request")


def check_fields(context: Context, operation: Operation) -> None:
    """Check --fields before anything is sent. Raises UsageError."""
    if context.options.fields:
        from msgctl.output import fields

        record = operation.record
        context.check_fields((*fields.of_record(record), *(field.name for field in record.fields)))


def judged(sent: request.Request, response: Response, values: Values) -> ServiceResult:
    """Return the result of a send: the recipients that are refused or not mentioned decide its exit code."""
    found = recipients.outcomes(sent.operation, response.document, sent.phones, is_own_body=sent.is_own_body)
    named: dict[str, list[str]] = {}
    for each in found:
        status = f" [{clean(each.status)}]" if each.status else ""
        named.setdefault(each.outcome, []).append((each.phone or "the message") + status)
    failures: list[MsgctlError] = []
    if unknown := named.get(recipients.UNKNOWN):
        what = f"The response does not say whether {some_of(unknown)} {'was' if len(unknown) == 1 else 'were'} accepted"
        failures = [OutcomeUnknownError(what, check(sent), **response.attached())]
    elif refused := named.get(recipients.REFUSED):
        what = f"The service refused {some_of(refused)} ({len(refused)} of {plural(len(found), 'recipient')})"
        failures = [ConditionError(what, reason="not_accepted", **response.attached())]
    return ServiceResult([response], outcomes=found, values=values, failures=failures)


def left_out(symbols: Sequence[str]) -> str:
    """Return the note about symbols that --gsm7 has left out."""
    return f"--gsm7 left out {some_of([clean(symbol) for symbol in symbols], 20)}"


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Return at most ``most`` names, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def _refuse_optouts(numbers: Sequence[str]) -> None:
    from msgctl.history import optouts

    if found := optouts.among(numbers):
        who = f"{found[0]} has" if len(found) == 1 else f"{', '.join(found)} have"
        fix = f"msgctl optout remove {' '.join(found)}"
        raise UsageError(f"{who} opted out of messages", f"To send anyway, add --ignore-optout, or run: {fix}")
