"""The options and arguments that several commands share, with their parsers."""

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import phones
from msgctl import values as checks
from msgctl.cli.shell.completion import country_codes
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import (
    DELIVERY,
    RECIPIENTS,
    SAFETY,
    Choice,
    OptionGroup,
    max_wait_option,
    parser,
    until_option,
    value_option,
)
from msgctl.errors import ConfigurationError, NoProfileError, UsageError
from msgctl.operations import Effect, Field
from msgctl.text import storable
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.lists.rows import PhoneCells


def field_parser(field: Field) -> Callable[[Any], str]:
    """Return the parser for a field of an operation: a choice, a number (sent as a string), or a short string."""
    return Choice(field.choices, field.typed.lstrip("-")) if field.choices else parser(checks.of_field, field)


def option(field: Field, metavar: str | None = None, panel: str | None = None, *, required: str = "") -> Any:
    """Return the option for a field of an operation, with the field's own help and rules.

    ``required`` is the condition under which it is required, such as "without --audio-code".
    """
    text = field.help
    if field.choices:
        text = f"{text.removesuffix('.')}: {', '.join(field.choices)}."
    if required:
        text += f" [required {required}]"
    return typer.Option(field.typed, metavar=metavar, help=text, parser=field_parser(field), rich_help_panel=panel)


Phones = Annotated[
    list[str],
    typer.Argument(metavar="PHONE...", help="Phone numbers; commas between them also work.", show_default=False),
]
Phone = Annotated[str, typer.Argument(metavar="PHONE", help="Phone number, with or without spaces and punctuation.")]


CountryCode = Annotated[
    str | None,
    value_option(
        "--country-code",
        "CC",
        "Country of national numbers, for example CO.",
        checks.country_code,
        panel=RECIPIENTS,
        complete=country_codes,
    ),
]
COUNTRY_VARIABLE = "MSGCTL_COUNTRY_CODE"


class Country(OptionGroup):
    """Options for phone numbers, in commands that do not send to them."""

    country_code: CountryCode = None
    no_number_check = False
    unchecked = ""
    """The option that skips the number check; empty for commands that do not send."""

    def known(self, context: Context) -> str | None:
        """Return the country of national numbers from the option, MSGCTL_COUNTRY_CODE or the profile, if any.

        Commands that do not send work without a valid profile. For the others, an invalid profile raises
        ConfigurationError, because an error about the number would mislead.
        """
        if self.country_code is not None:
            return self.country_code
        if variable := context.environ.get(COUNTRY_VARIABLE):
            try:
                return checks.country_code(variable)
            except UsageError as error:
                raise ConfigurationError(
                    f"{COUNTRY_VARIABLE} cannot be used: {error.message}", "Fix it, or give --country-code."
                ) from error
        try:
            return setting(context, "country_code", checks.country_code)
        except ConfigurationError as error:
            if self.unchecked and not isinstance(error, NoProfileError):
                raise
            return None

    def digits_of(self, context: Context, text: str, *, sms: bool = False) -> str:
        """Return the digits of a number, with a note if it may belong to an unexpected country.

        ``sms`` refuses numbers that cannot be mobiles.
        """
        if self.no_number_check:
            return phones.as_typed(text).digits
        if "," in text:
            raise UsageError(f"{quote(text)} is a list: give one number", reason="invalid_phone")
        home = self.known(context)
        phone = phones.parse_number(text, home, sms=sms, unchecked=self.unchecked)
        if phone.abroad:
            context.note(f"{phone.digits} is a number in {phone.abroad}")
        if home is None and context.run.effect is not Effect.SENDS and phones.may_be_national(text):
            context.note(f"{quote(text)} is read as {phones.with_country(phone.digits)}. {phones.NAME_COUNTRY}")
        return phone.digits

    def cells(self, context: Context, *, sms: bool = False) -> "PhoneCells":
        """Return the reader of the phones in a file."""
        from msgctl.lists.rows import PhoneCells

        return PhoneCells(self.known(context), sms=sms, check=not self.no_number_check)

    def digits_to_find(self, context: Context, text: str) -> str:
        """Return the digits of a number to look up. An earlier send may have used it without a check."""
        try:
            return self.digits_of(context, text)
        except phones.InvalidPhoneError as error:
            digits = phones.as_typed(text).digits
            if error.needs_country:
                context.note(f"Looking for the number {digits}. {phones.NAME_COUNTRY}")
            return digits

    def digits_of_all(
        self, context: Context, texts: Sequence[str], *, sms: bool = False, other_text: str = "the message with -m TEXT"
    ) -> tuple[str, ...]:
        """Return the digits of several numbers, each once; an argument may be a comma-separated list.

        ``other_text`` is the advice if an argument contains no number.
        """
        seen: dict[str, None] = {}
        repeated: dict[str, None] = {}
        for text in texts:
            parts = text.split(",")
            if len(parts) > 1 and not all(part.strip() for part in parts):
                what = f"{quote(text)} has a comma without a number beside it"
                raise UsageError(what, reason="invalid_phone")
            if self.unchecked and not any(map(str.isdigit, text)) and any(map(str.isalpha, text)):
                raise UsageError(
                    f"{quote(text)} is not a phone number",
                    f"Give only numbers here, and {other_text}, in quotes.",
                    reason="invalid_phone",
                )
            for part in parts:
                try:
                    number = self.digits_of(context, part, sms=sms)
                except phones.InvalidPhoneError as error:
                    raise self._with_hint_to_quote(context, error, texts) from None
                if number in seen:
                    repeated[number] = None
                seen[number] = None
        if repeated:
            context.note(f"Repeated numbers are used once: {', '.join(repeated)}")
        return tuple(seen)

    def _with_hint_to_quote(self, context: Context, error: UsageError, texts: Sequence[str]) -> UsageError:
        """Return the error for an argument, with another hint if the arguments together are one number."""
        together = " ".join(texts)
        if len(texts) == 1:
            return error
        try:
            phones.parse_number(together, self.known(context))
        except phones.InvalidPhoneError:
            return error
        return error.replaced(hint=f"Put a number with spaces in quotes: {shlex.quote(together)}")


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
    unchecked = "--no-number-check"


def chosen_voice(context: Context, text: str | None, field: Field) -> str:
    """Return the voice of the option or of the profile."""
    name = text or setting(context, "voice", lambda name: checks.choice(name, field.choices, "voice"))
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
            f"{context.profile.label}: {name} cannot be used: {error.message}",
            f"Fix it, or give --{name.replace('_', '-')}.",
        ) from error


MAX_ONCE_KEY = 200
"""Maximum characters of a --once key."""


def once_key(text: str) -> str:
    if not text.strip() or len(text) > MAX_ONCE_KEY:
        raise UsageError(
            f"--once needs a key of 1 to {MAX_ONCE_KEY} characters, not {quote(text)}",
            'Choose one for each message, for example --once "disk-$(date +%F)"',
        )
    return storable(text)


class SendOptions(OptionGroup):
    """Options of the commands that send one message."""

    once: Annotated[
        str | None,
        value_option(
            "--once",
            "KEY",
            "Send at most once per key. Later runs with the same store print the first result.",
            once_key,
            panel=SAFETY,
        ),
    ] = None
    resend_unknown: Annotated[
        bool,
        typer.Option(
            "--resend-unknown", help="With --once: resend if the earlier outcome is unknown.", rich_help_panel=SAFETY
        ),
    ] = False
    ignore_optout: Annotated[
        bool, typer.Option("--ignore-optout", help="Send even to numbers that opted out.", rich_help_panel=RECIPIENTS)
    ] = False

    def check(self) -> None:
        if self.resend_unknown and self.once is None:
            raise UsageError("--resend-unknown needs --once KEY")


class WaitOptions(OptionGroup):
    """Options that track a message until it is delivered."""

    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Wait until every message is delivered; exit with 6 if one is not. --json prints several responses.",
            rich_help_panel=DELIVERY,
        ),
    ] = False
    max_wait: Annotated[
        float | None, max_wait_option("With --wait: maximum seconds to wait. [default: 300]", DELIVERY)
    ] = None
    until: Annotated[str | None, until_option("With --wait: wait for this state, sent or delivered.", DELIVERY)] = None

    def check(self) -> None:
        for name, value in (("--max-wait", self.max_wait), ("--until", self.until)):
            if value and not self.wait:
                raise UsageError(f"{name} needs --wait")
