"""The message and the body of a request: their options, and reading them from a file or standard input."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from msgctl import values as checks
from msgctl.cli.shell.completion import file_names
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.options import MESSAGE, OptionGroup, number_option, value_option
from msgctl.errors import UsageError
from msgctl.jsontext import ShapeError, load_json
from msgctl.text import capitalized, clean, some_of
from msgctl.values import MAX_MESSAGE_BYTES, quote

MAX_BODY_BYTES = 1024 * 1024
"""The largest JSON body, in bytes."""


def _message(metavar: str, help: str) -> Any:
    return typer.Option("--message", "-m", metavar=metavar, help=help, rich_help_panel=MESSAGE)


def _message_file(help: str) -> Any:
    complete = file_names
    return value_option("--message-file", "PATH", help, panel=MESSAGE, complete=complete)


MessageFile = Annotated[str | None, _message_file("Read the message from a file; - is standard input.")]


MaxSegments = Annotated[int, number_option("--max-segments", "Maximum segments of a message.", least=1, panel=MESSAGE)]
"""The option --max-segments; its default is `msgctl.segments.MAX_SEGMENTS`."""


def read_message(context: Context, text: str | None, path: str | None, typed: str) -> str:
    """Return the message from its option, a file, or standard input; ``typed`` is the option as people type it.

    Trailing newlines of a file are removed, as in the shell's ``$(…)``.
    """
    if text is not None and path is not None:
        option = "--message" if typed.startswith("-m ") else typed
        raise UsageError(f"Use either {option} or --message-file, not both")
    hint = f"Give it with {typed}, with --message-file PATH, or on standard input."
    if text is not None and text != "-":
        return checks.prose(text, "The message", hint)
    if text is None and path is None and context.stdin.isatty():
        raise UsageError("The message is missing", hint)
    text = utf8(file_content(context, path or "-", MAX_MESSAGE_BYTES, "the message"), path or "-")
    return checks.prose(text.rstrip("\r\n"), "The message", hint)


class MessageOptions(OptionGroup):
    """The message of a send."""

    typed = "-m TEXT"
    text: Annotated[str | None, _message("TEXT", "Text of the message; - reads standard input.")] = None
    message_file: MessageFile = None

    def read(self, context: Context) -> str:
        return read_message(context, self.text, self.message_file, self.typed)


class TemplateOptions(MessageOptions):
    """The template of a bulk send."""

    typed = "-m TEMPLATE"
    text: Annotated[str | None, _message("TEMPLATE", "Text of the message, with {column} placeholders.")] = None
    message_file: Annotated[str | None, _message_file("Read the template from a file; - is standard input.")] = None


def note_of_left_out(symbols: Sequence[str]) -> str:
    """Return the note about symbols that --gsm7 left out."""
    return f"--gsm7 left out {some_of([clean(symbol) for symbol in symbols], 20)}"


def file_content(context: Context, path: str, most: int, what: str) -> bytes:
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
        raise UsageError(f"{capitalized(what)} is too long: the maximum is {most:,} bytes")
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
    body = utf8(file_content(context, path, MAX_BODY_BYTES, "a JSON document"), path).encode()
    try:
        return body, load_json(body)
    except ShapeError as error:
        name = "Standard input" if path == "-" else quote(path)
        raise UsageError(f"{name} cannot be the body: {error}", "Give one JSON document in UTF-8.") from None
