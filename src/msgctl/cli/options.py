"""The options and arguments that several commands share, with their parsers."""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from msgctl import phones
from msgctl import values as checks
from msgctl.cli.context import Context
from msgctl.cli.help import DELIVERY, MESSAGE, RECIPIENTS, SAFETY
from msgctl.cli.option_group import OptionGroup
from msgctl.cli.parsers import Choice, max_wait_option, parser, until_option
from msgctl.errors import ConfigurationError, NoProfileError, UsageError
from msgctl.jobs.settings import DEFAULTS, OPTIONS, TYPES
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Field
from msgctl.text import clean, some_of, storable
from msgctl.values import MAX_MESSAGE_BYTES, quote

MAX_NAME = 100
"""Maximum characters of the name of a job."""
MAX_BODY_BYTES = 1024 * 1024
"""The largest JSON body, in bytes."""


def field_parser(field: Field) -> Callable[[Any], str]:
    """Return the parser for a field of an operation that is a choice, a number (sent as text), or a short text."""
    return Choice(field.choices, field.typed.lstrip("-")) if field.choices else parser(checks.of, field)


def option(field: Field, metavar: str | None = None, panel: str | None = None) -> Any:
    """Return the option for a field of an operation, with the field's own help and rules."""
    choices = f": {', '.join(field.choices)}." if field.choices else "."
    convert = field_parser(field)
    return typer.Option(
        field.typed,
        metavar=metavar,
        help=field.help.removesuffix(".") + choices,
        parser=convert,
        autocompletion=getattr(convert, "complete", None),
        rich_help_panel=panel,
    )


Phones = Annotated[
    list[str],
    typer.Argument(metavar="PHONE...", help="Phone numbers; commas between them also work.", show_default=False),
]
Phone = Annotated[str, typer.Argument(metavar="PHONE", help="Phone number, with or without spaces and punctuation.")]


def _message(metavar: str, help: str) -> Any:
    return typer.Option("--message", "-m", metavar=metavar, help=help, rich_help_panel=MESSAGE)


def _message_file(help: str) -> Any:
    return typer.Option("--message-file", metavar="PATH", help=help, rich_help_panel=MESSAGE)


MessageFile = Annotated[str | None, _message_file("Read the message from a file; - is standard input.")]


def read_message(context: Context, text: str | None, path: str | None, typed: str = "-m TEXT") -> str:
    """Return the message from its option, a file, or standard input; ``typed`` shows how the option is given.

    A file's final line ends are removed, as in the shell's ``$(…)``.
    """
    if text is not None and path is not None:
        raise UsageError(f"Use either {'--message' if typed.startswith('-m ') else typed} or --message-file, not both")
    hint = f"Give it with {typed}, with --message-file PATH, or on standard input."
    if text is not None and text != "-":
        return checks.prose(text, "The message", hint)
    if text is None and path is None and context.stdin.isatty():
        raise UsageError("The message is missing", hint)
    text = utf8(read(context, path or "-", MAX_MESSAGE_BYTES, "the message"), path or "-")
    return checks.prose(text.rstrip("\r\n"), "The message", hint)


class MessageOptions(OptionGroup):
    """The message of a send."""

    text: Annotated[str | None, _message("TEXT", "Text of the message; - reads standard input.")] = None
    message_file: MessageFile = None

    reads_stdin = True
    """Whether the message may come from standard input without an option."""

    def read(self, context: Context) -> str:
        """Return the message."""
        return read_message(context, self.text, self.message_file)


class TemplateOptions(MessageOptions):
    """The template of a bulk send."""

    text: Annotated[str | None, _message("TEMPLATE", "Text of the message, with {column} placeholders.")] = None
    message_file: Annotated[str | None, _message_file("Read the template from a file; - is standard input.")] = None

    reads_stdin = False

    def read(self, context: Context) -> str:
        """Return the template."""
        if self.is_empty:
            raise UsageError("The message is missing", "Give it with -m TEMPLATE or --message-file PATH.")
        return read_message(context, self.text, self.message_file, "-m TEMPLATE")


def note_of_left_out(symbols: Sequence[str]) -> str:
    """Return the note about symbols that --gsm7 left out."""
    return f"--gsm7 left out {some_of([clean(symbol) for symbol in symbols], 20)}"


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
        raise UsageError(f"{what[0].upper()}{what[1:]} is too long: the maximum is {most:,} bytes")
    return content


def utf8(content: bytes, path: str) -> str:
    """Return the text of a file, or of standard input for ``-``, without a byte order mark.

    Raises UsageError with the position of the first wrong byte.
    """
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        name = "Standard input" if path == "-" else quote(path)
        wrong = f"byte {content[error.start]:#04x} at position {error.start + 1:,}"
        raise UsageError(f"{name} is not UTF-8 text: {wrong}", "Save it as UTF-8.") from None


def json_body(context: Context, path: str) -> tuple[bytes, Any]:
    """Return the bytes of a JSON document without a byte order mark (RFC 8259, section 8.1), and its value."""
    body = utf8(read(context, path, MAX_BODY_BYTES, "a JSON document"), path).encode()
    try:
        return body, load_json(body)
    except ShapeError as error:
        name = "Standard input" if path == "-" else quote(path)
        raise UsageError(f"{name} cannot be the body: {error}", "Give one JSON document in UTF-8.") from None


CountryCode = Annotated[
    str | None,
    typer.Option(
        "--country-code",
        metavar="CC",
        help="Country of national numbers, for example CO.",
        parser=parser(checks.country_code),
        rich_help_panel=RECIPIENTS,
    ),
]
COUNTRY_VARIABLE = "MSGCTL_COUNTRY_CODE"


class Country(OptionGroup):
    """Options for phone numbers, in commands that do not send to them."""

    country_code: CountryCode = None
    no_number_check = False
    unchecked = ""
    """The hint to send without a check; empty for commands that do not send."""

    def code(self, context: Context) -> str | None:
        """Return the country code of the option, of MSGCTL_COUNTRY_CODE or of the profile, if any."""
        return self._of_run(context) or setting(context, "country_code", checks.country_code)

    def known(self, context: Context) -> str | None:
        """Return the country of national numbers. No profile is needed."""
        if code := self._of_run(context):
            return code
        try:
            return self.code(context)
        except ConfigurationError:
            return None

    def _of_run(self, context: Context) -> str | None:
        """Return the country code of the option or of MSGCTL_COUNTRY_CODE, without loading the profile."""
        if self.country_code is not None:
            return self.country_code
        variable = context.environ.get(COUNTRY_VARIABLE)
        try:
            return checks.country_code(variable) if variable else None
        except UsageError as error:
            raise ConfigurationError(
                f"{COUNTRY_VARIABLE} cannot be used: {error.message}", "Fix it, or give --country-code."
            ) from error

    def one(self, context: Context, text: str, *, sms: bool = False) -> str:
        """Return the digits of a number, with a note if it belongs to another country than expected.

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
        """Return the digits of a number to look up, which may have been used without a check."""
        try:
            return self.one(context, text)
        except phones.InvalidPhoneError:
            return phones.as_typed(text).digits

    def all(
        self, context: Context, texts: Iterable[str], *, sms: bool = False, other_text: str = "the message with -m TEXT"
    ) -> tuple[str, ...]:
        """Return the digits of several numbers, each once; an argument may be a comma-separated list.

        ``other_text`` is the advice for a word among the numbers.
        """
        seen: dict[str, None] = {}
        repeated: dict[str, None] = {}
        for text in texts:
            parts = text.split(",")
            if len(parts) > 1 and not all(part.strip() for part in parts):
                raise UsageError(f"{quote(text)} has a comma without a number beside it")
            if self.unchecked and not any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
                raise UsageError(
                    f"{quote(text)} is not a phone number",
                    f"Give only numbers here, and {other_text}, in quotes.",
                )
            for part in parts:
                number = self.one(context, part, sms=sms)
                (repeated if number in seen else seen)[number] = None
        if repeated:
            context.note(f"Repeated numbers are used once: {', '.join(repeated)}")
        return tuple(seen)


NoNumberCheck = Annotated[
    bool,
    typer.Option(
        "--no-number-check",
        help="Use the digits as typed, for short codes and test numbers.",
        rich_help_panel=RECIPIENTS,
    ),
]


class StoredNumbers(Country):
    """Options for phone numbers that may have been used without a check."""

    no_number_check: NoNumberCheck = False


class Numbers(Country):
    """Options for phone numbers of recipients."""

    no_number_check: NoNumberCheck = False
    unchecked = "To send to it anyway, add --no-number-check."

    def known(self, context: Context) -> str | None:
        """Return the country of national numbers. Raises ConfigurationError for a profile that cannot be used.

        Otherwise, the error would mention the number instead of the profile.
        """
        try:
            return self.code(context)
        except NoProfileError:
            return None


SAME_VOICE = {"marian": "Mariana", "mariana": "Marian"}
"""The voice that the API spells in two ways: Marian in calls, Mariana in verification calls."""


def chosen_voice(context: Context, text: str | None, field: Field) -> str:
    """Return the voice of the option or of the profile; a profile may use either spelling of Marian."""

    def spelled(name: str) -> str:
        other = SAME_VOICE.get(name.lower())
        return checks.choice(other if other in field.choices else name, field.choices, "voice")

    name = text or setting(context, "voice", spelled)
    if name is None:
        raise UsageError("--voice is missing", f"Give --voice NAME: choose from {', '.join(field.choices)}.")
    return name


def setting(context: Context, name: str, convert: Callable[[str], str]) -> str | None:
    """Return the profile's default for an option, if any. Raises ConfigurationError if it cannot be used."""
    default: str | None = getattr(context.profile, name)
    if default is None:
        return None
    try:
        return convert(default)
    except UsageError as error:
        raise ConfigurationError(
            f"{context.profile.place}: {name} cannot be used: {error.message}",
            f"Fix it, or give --{name.replace('_', '-')}.",
        ) from error


MAX_KEY = 200
"""Maximum characters of a --once key."""


def once_key(text: str) -> str:
    """Return the key of --once. Raises UsageError."""
    if not text.strip() or len(text) > MAX_KEY:
        raise UsageError(
            f"--once needs a key of 1 to {MAX_KEY} characters, not {quote(text)}",
            'Choose one for each message, for example --once "disk-$(date +%F)"',
        )
    return storable(text)


class SendOptions(OptionGroup):
    """Options of the commands that send one message."""

    once: Annotated[
        str | None,
        typer.Option(
            "--once",
            metavar="KEY",
            help="Send at most once per key. Later runs with the same store print the first result.",
            parser=parser(once_key),
            rich_help_panel=SAFETY,
        ),
    ] = None
    resend_unknown: Annotated[
        bool,
        typer.Option(
            "--resend-unknown",
            help="With --once: send again if the earlier outcome is unknown.",
            rich_help_panel=SAFETY,
        ),
    ] = False
    ignore_optout: Annotated[
        bool, typer.Option("--ignore-optout", help="Send even to numbers that opted out.", rich_help_panel=RECIPIENTS)
    ] = False


class WaitOptions(OptionGroup):
    """Options that track a message until it is delivered."""

    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Wait until every message is delivered; exit with 6 if one is not.", rich_help_panel=DELIVERY
        ),
    ] = False
    max_wait: Annotated[
        float | None,
        max_wait_option("With --wait: maximum seconds to wait. [default: 300]", DELIVERY),
    ] = None
    until: Annotated[
        str | None,
        until_option("With --wait: wait for this state, sent or delivered.", DELIVERY),
    ] = None


# --- bulk commands

PhoneColumn = Annotated[
    str | None,
    typer.Option(
        "--phone-column",
        metavar="NAME",
        help="Column with the phone numbers; detected if omitted.",
        rich_help_panel=RECIPIENTS,
    ),
]


SkipHidden = Annotated[
    bool,
    typer.Option("--skip-hidden", help="Leave out rows that Excel hides.", rich_help_panel=RECIPIENTS),
]


class Source(OptionGroup):
    """A file of recipients."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Recipients: CSV with a header, JSON Lines, or .xlsx; - is standard input."
        ),
    ]
    phone_column: PhoneColumn = None
    skip_invalid: Annotated[
        bool, typer.Option("--skip-invalid", help="Skip invalid rows.", rich_help_panel=RECIPIENTS)
    ] = False
    skip_hidden: SkipHidden = False


def _group_of(names: Iterable[str], *, is_change: bool = False) -> type[OptionGroup]:
    """Return a group with some of the options of `Settings`. With ``is_change``, they have no defaults."""
    annotations: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name in names:
        option, default = OPTIONS[name], DEFAULTS[name]
        values[name] = None if is_change else default
        given: dict[str, Any] = {"help": option.help, "rich_help_panel": option.panel}
        if is_change:
            given["help"] += " [default: the job's own]"
        if option.parse is not None:
            given |= {"metavar": option.metavar, "parser": parser(option.parse)}
        annotations[name] = Annotated[TYPES[name] | None, typer.Option(option.name, **given)]
    return type("JobOptions", (OptionGroup,), {"__annotations__": annotations, "__module__": __name__, **values})


class _Given:
    """The values of a group's options by the names of the fields of `Settings`."""

    def values(self) -> dict[str, Any]:
        """Return the values that were given or have a default."""
        return {name: value for name, value in vars(self).items() if value is not None}


class JobOptions(_Given, _group_of(OPTIONS)):  # type: ignore[misc]  # the options are the fields of Settings
    """The options of a job whose requests may have several numbers."""


class SingleJobOptions(_Given, _group_of(name for name in OPTIONS if name != "batch_size")):  # type: ignore[misc]
    """The options of a job whose requests have one number."""


class ChangedOptions(
    _Given,
    _group_of((name for name, option in OPTIONS.items() if option.is_changeable), is_change=True),  # type: ignore[misc]
):
    """The options that change a job when it is resumed."""


_JOB_NAME = re.compile("[A-Za-z0-9._-]+")
_JOB_ID = re.compile("[0-9]{8}-[0-9a-f]{6}")


def _job_name(text: str) -> str:
    if len(text) <= MAX_NAME and _JOB_NAME.fullmatch(text) and not _JOB_ID.fullmatch(text):
        return text
    raise UsageError(
        f'--name must contain only letters, digits, "-", "_" and ".", and must not look like an ID, not {quote(text)}',
        "For example: --name orders-2026-11-21",
    )


class JobRules(OptionGroup):
    """Options of bulk commands beside `Settings`: the name, excluded numbers, and a test of the message."""

    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Name of the job. The same command under the same name continues the job, or prints its result.",
            parser=parser(_job_name),
            rich_help_panel=SAFETY,
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="FILE",
            help="Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx. Repeatable.",
            rich_help_panel=RECIPIENTS,
        ),
    ] = None
    test_to: Annotated[
        str | None,
        typer.Option(
            "--test-to",
            metavar="PHONE",
            help="Send only the message of the first row, to this number.",
            rich_help_panel=SAFETY,
        ),
    ] = None
