"""Texts that a command reads from an option, a file, standard input, or the terminal."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from msgctl import operations as ops
from msgctl import segments, values
from msgctl.cli.context import Context
from msgctl.cli.terminal import is_terminal
from msgctl.errors import UsageError
from msgctl.operations import Field
from msgctl.values import MOST_MESSAGE_BYTES, quote

MOST_BODY_BYTES = 1024 * 1024
"""The largest template body that is sent, in bytes."""


def option(field: Field, metavar: str | None = None) -> Any:
    """The option that a person types for a field of an operation, explained in the field's words."""
    allowed = f": {', '.join(field.choices)}." if field.choices else "."
    return typer.Option(field.typed, metavar=metavar, help=field.help.removesuffix(".") + allowed)


def optional(text: str | None, what: str) -> str | None:
    """A short text that may have been left out. Raises UsageError."""
    return None if text is None else values.words(text, what)


Phones = Annotated[
    list[str], typer.Argument(metavar="PHONE...", help="Phone numbers, also separated by commas.", show_default=False)
]
Phone = Annotated[str, typer.Argument(metavar="PHONE", help="Phone number, with its country code.")]
Message = Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="Text of the message.")]
MessageFile = Annotated[
    str | None,
    typer.Option("--message-file", metavar="PATH", help="Read the message from a file; - is standard input."),
]
Template = Annotated[
    str | None, typer.Option("--message", "-m", metavar="TEMPLATE", help="Text of the message, with {column} in it.")
]
TemplateFile = Annotated[
    str | None,
    typer.Option("--message-file", metavar="PATH", help="Read the template from a file; - is standard input."),
]
CountryCode = Annotated[str | None, option(ops.SEND_SMS.field("country-code"), "CC")]
AppName = Annotated[str | None, option(ops.SMS_2FA.field("app-name"), "NAME")]
GSM7_HELP = "Write the message with the letters of GSM-7, á as a, so that it needs fewer segments."


def recipients(context: Context, texts: Iterable[str]) -> tuple[str, ...]:
    """Phone numbers, each once; says which were given again. Raises UsageError."""
    given = values.phones(texts)
    if given.repeated:
        numbers = ", ".join(given.repeated)
        context.note(f"given more than once, used once: {numbers}")
    return given.phones


def message(context: Context, text: str | None, path: str | None, typed: str = "-m TEXT") -> str:
    """The message, from ``-m``, a file, or standard input when it is not a terminal. Raises UsageError.

    ``typed`` is how ``text`` is given on the command line.
    """
    if text is not None and path is not None:
        name = "--message" if typed.startswith("-m ") else typed
        raise UsageError(f"{name} and --message-file are both given", "Give one of them.")
    return values.message(_file_text(context, path, typed) if text is None else text, typed)


def template_text(context: Context, text: str | None, path: str | None) -> str:
    """The template of a bulk send, from ``-m`` or a file. Raises UsageError."""
    if text is None and path is None:
        raise UsageError("the message is missing", "Give it with -m TEMPLATE or --message-file PATH.")
    return message(context, text, path)


def in_gsm7(text: str) -> str:
    """A message in the GSM-7 alphabet. Raises UsageError for a character that has no near one there."""
    written = segments.to_gsm7(text)
    if not written.strip():
        raise UsageError(f"nothing but blanks is left of {quote(text)} in GSM-7", "Leave --gsm7 out, or write letters.")
    return written


def _file_text(context: Context, path: str | None, typed: str) -> str:
    """Text of a file or of standard input, without the line ends at its end, as the shell's ``$(…)`` gives it."""
    if path is None and is_terminal(context.stdin):
        raise UsageError(
            "the message is missing", f"Give it as {typed}, with --message-file PATH, or pipe it in on standard input."
        )
    name = "standard input" if path in (None, "-") else quote(str(path))
    content = read(context, "-" if path is None else path, MOST_MESSAGE_BYTES, "the message")
    try:
        return content.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{name} is not UTF-8 text: the byte at position {error.start + 1} is {content[error.start]:#04x}",
            "Convert it first, for example with iconv.",
        ) from None


def read(context: Context, path: str, most: int, what: str) -> bytes:
    """The bytes of a file, or of standard input for ``-``. Raises UsageError, also when they are over ``most``."""
    try:
        if path == "-":
            content = context.stdin.buffer.read(most + 1) if context.stdin is not None else b""
        else:
            with Path(path).open("rb") as file:
                content = file.read(most + 1)
    except (OSError, ValueError) as error:
        name = "standard input" if path == "-" else quote(path)
        reason = getattr(error, "strerror", None) or "it is closed, or no file can have that name"
        raise UsageError(f"{name} cannot be read: {reason}", f"It should hold {what}.") from None
    if len(content) > most:
        raise UsageError(f"{what} is over {most} bytes long", f"The most is {most} bytes.")
    return content


def code(context: Context, text: str | None) -> str:
    """A verification code: from ``--code``, one line of standard input (``-``), or asked for on a terminal."""
    if text is None:
        if not is_terminal(context.stdin):
            raise UsageError("--code is missing", "Give --code CODE, or --code - to read it from standard input.")
        text = context.ask("Code: ").strip()
    elif text == "-":
        line = read_line(context, 1024, "the code")
        text = line.strip()
    return values.words(text, "--code")


def read_line(context: Context, most: int, what: str) -> str:
    """The first line of standard input, which is otherwise left as it is. Raises UsageError."""
    line = b"" if context.stdin is None else context.stdin.buffer.readline(most + 1)
    if len(line) > most:
        raise UsageError(f"{what} on standard input is over {most} bytes long", f"The most is {most} bytes.")
    return line.decode("utf-8", "surrogateescape").rstrip("\r\n")
