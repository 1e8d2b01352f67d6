"""Messages from an option, a file, or a pipe; and messages written in GSM-7."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.typed import ANSWER, PHONE, refused, used
from support.service import Service, answer
from support.tool import Tool, process

SMS = ("sms", "send", PHONE)
CALL = ("call", "send", PHONE, "--voice", "Mia")
MEMBER = {SMS: "sms", CALL: "message"}
MOST = 65536

each_command = pytest.mark.parametrize("command", [SMS, CALL], ids=["sms", "call"])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "notice.txt"


def sent(tool: Tool, service: Service, *more: str, stdin: bytes | None = None) -> str:
    return used(tool, service, *SMS, *more, stdin=stdin)["sms"]


# --- Where it comes from ---


@each_command
@pytest.mark.parametrize("option", ["-m", "--message"])
def test_an_option_gives_the_message_as_it_is(
    command: tuple[str, ...], option: str, tool: Tool, service: Service
) -> None:
    text = " Hola,\n\tseñal ü 漢字 😀 -m \r\n"
    assert used(tool, service, *command, option, text)[MEMBER[command]] == text


@each_command
def test_a_file_gives_the_message(command: tuple[str, ...], file: Path, tool: Tool, service: Service) -> None:
    file.write_text("Señal\n\n de 漢字 😀", encoding="utf-8")
    assert used(tool, service, *command, "--message-file", str(file))[MEMBER[command]] == "Señal\n\n de 漢字 😀"


@each_command
@pytest.mark.parametrize("more", [(), ("--message-file", "-")], ids=["pipe", "dash"])
def test_standard_input_gives_the_message(
    command: tuple[str, ...], more: tuple[str, ...], tool: Tool, service: Service
) -> None:
    form = used(tool, service, *command, *more, stdin="Señal\nde 漢字 😀")
    assert form[MEMBER[command]] == "Señal\nde 漢字 😀"


def test_a_pipe_works_between_processes(service: Service) -> None:
    service.will(answer(ANSWER))
    outcome = process(*SMS, stdin="Señal: 42%\n".encode())
    assert (outcome.code, outcome.err) == (0, "")
    assert dict(service.received[0].form)["sms"] == "Señal: 42%"


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n\n"], ids=ascii)
def test_line_ends_at_the_end_of_a_file_are_not_part_of_the_message(
    end: str, file: Path, tool: Tool, service: Service
) -> None:
    text = "  two\r\nlines  "
    file.write_bytes((text + end).encode())
    assert sent(tool, service, "--message-file", str(file)) == text
    assert sent(tool, service, stdin=(text + end).encode()) == text


def test_a_byte_order_mark_is_not_part_of_the_message(file: Path, tool: Tool, service: Service) -> None:
    file.write_bytes("\ufeffSeñal".encode())
    assert sent(tool, service, "--message-file", str(file)) == "Señal"


@each_command
def test_an_option_leaves_standard_input_untouched(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    outcome = tool(*command, "-m", "Hola", stdin=b"for the next command\n")
    assert (outcome.code, outcome.unread) == (0, b"for the next command\n")


def test_a_file_leaves_standard_input_untouched(file: Path, tool: Tool, service: Service) -> None:
    file.write_text("Hola")
    service.will(answer(ANSWER))
    outcome = tool(*SMS, "--message-file", str(file), stdin=b"for the next command\n")
    assert (outcome.code, outcome.unread) == (0, b"for the next command\n")


def test_a_message_on_a_terminal_is_read_where_it_is_asked_for(tool: Tool, service: Service) -> None:
    assert used(tool, service, *SMS, "--message-file", "-", stdin="typed\n", terminal=True)["sms"] == "typed"


# --- What is refused ---


@each_command
def test_a_message_that_is_missing_on_a_terminal_is_not_waited_for(
    command: tuple[str, ...], tool: Tool, service: Service
) -> None:
    said = refused(tool, service, *command, names=("message", "-m", "--message-file"), stdin="x", terminal=True)
    assert "missing" in said
    assert tool(*command, stdin=b"x", terminal=True).unread == b"x"


@each_command
def test_two_messages_are_refused(command: tuple[str, ...], file: Path, tool: Tool, service: Service) -> None:
    file.write_text("Hola")
    names = ("--message", "--message-file")
    refused(tool, service, *command, "-m", "Hola", "--message-file", str(file), names=names)
    refused(tool, service, *command, "-m", "", "--message-file", "-", names=names, stdin="Hola")


@each_command
@pytest.mark.parametrize("text", ["", " ", "\n", " \t\r\n \u00a0\u2003"], ids=ascii)
def test_an_empty_or_blank_message_is_refused(
    command: tuple[str, ...], text: str, file: Path, tool: Tool, service: Service
) -> None:
    file.write_text(text, encoding="utf-8")
    names = ("message is empty", "-m")
    refused(tool, service, *command, "-m", text, names=names)
    refused(tool, service, *command, "--message-file", str(file), names=names)
    refused(tool, service, *command, names=names, stdin=text)


def test_a_pipe_from_nothing_is_refused(service: Service) -> None:
    outcome = process(*SMS)
    assert (outcome.code, outcome.out) == (2, "")
    assert "message is empty" in outcome.err
    assert service.received == []


@each_command
@pytest.mark.parametrize(
    ("content", "position"), [(b"Se\xf1al", 3), (b"\xff", 1), (b"abc\xc3", 4), (b"\xed\xa0\x80", 1)], ids=ascii
)
def test_bytes_that_are_not_utf8_are_refused_with_their_place(
    command: tuple[str, ...], content: bytes, position: int, file: Path, tool: Tool, service: Service
) -> None:
    file.write_bytes(content)
    place = f"position {position}"
    said = refused(tool, service, *command, "--message-file", str(file), names=("UTF-8", place))
    assert str(file)[:40] in said
    refused(tool, service, *command, names=("standard input", "UTF-8", place), stdin=content)
    typed = content.decode("utf-8", "surrogateescape")  # as Python gives the arguments of a process
    refused(tool, service, *command, "-m", typed, names=("UTF-8", place))


@pytest.mark.parametrize("char", ["\x00", "\x07", "\x08", "\x0b", "\x0c", "\x1b", "\x7f", "\x80", "\x9b"], ids=ascii)
def test_control_characters_are_refused_by_their_name(char: str, file: Path, tool: Tool, service: Service) -> None:
    text = f"Hola{char}[31m"
    names = (f"U+{ord(char):04X}", "position 5", "Hola\\x")
    refused(tool, service, *SMS, "-m", text, names=names)
    refused(tool, service, *SMS, names=names, stdin=text)


@each_command
def test_a_message_of_64_kib_is_the_longest(command: tuple[str, ...], file: Path, tool: Tool, service: Service) -> None:
    longest = "ñ" * (MOST // 2)
    file.write_text(longest, encoding="utf-8")
    assert used(tool, service, *command, "-m", longest)[MEMBER[command]] == longest
    assert used(tool, service, *command, "--message-file", str(file))[MEMBER[command]] == longest


@each_command
def test_a_longer_message_is_refused_with_the_limit(
    command: tuple[str, ...], file: Path, tool: Tool, service: Service
) -> None:
    longer = "ñ" * (MOST // 2) + "x"
    file.write_text(longer, encoding="utf-8")
    names = ("message", str(MOST))
    refused(tool, service, *command, "-m", longer, names=names)
    refused(tool, service, *command, "--message-file", str(file), names=names)
    refused(tool, service, *command, names=names, stdin=longer)


def test_a_message_without_an_end_is_refused(tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, "--message-file", "/dev/zero", names=("message", str(MOST)))


def test_a_file_that_is_not_there_is_refused_by_its_name(tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, "--message-file", "no/such/file", names=("'no/such/file'", "No such file"))


def test_a_folder_is_no_message(tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, "--message-file", "/", names=("'/'", "directory"))


def test_no_file_can_have_a_name_with_a_nul(tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, "--message-file", "a\x00b", names=(r"'a\x00b'", "cannot be read"))


# --- GSM-7 ---


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("¡Mañana a las 8!", "¡Mañana a las 8!"),
        ("áéíóú Á", "aéiou A"),
        ("“Hola” – ‘sí’…", "\"Hola\" - 'si'..."),
        ("10 € [x] {y}", "10 € [x] {y}"),
        ("a\u0301\u00a0b", "a b"),
    ],
)
def test_gsm7_writes_the_near_letters(text: str, written: str, file: Path, tool: Tool, service: Service) -> None:
    file.write_text(text, encoding="utf-8")
    assert sent(tool, service, "-m", text) == text
    assert sent(tool, service, "-m", text, "--gsm7") == written
    assert sent(tool, service, "--message-file", str(file), "--gsm7") == written
    assert sent(tool, service, "--gsm7", stdin=text.encode()) == written


@pytest.mark.parametrize(("text", "char"), [("Hola 😀", "😀"), ("漢", "漢"), ("Привет", "П"), ("x ∴ y", "∴")])
def test_gsm7_names_a_character_without_a_near_one(text: str, char: str, tool: Tool, service: Service) -> None:
    place = text.index(char) + 1
    names = (char, f"U+{ord(char):04X}", f"position {place}", "GSM-7", "--gsm7")
    refused(tool, service, *SMS, "-m", text, "--gsm7", names=names)


@pytest.mark.parametrize("text", ["\u0301", "\u0301 \ufe0f", "\n\u0308\n"], ids=ascii)
def test_gsm7_refuses_a_message_of_which_nothing_is_left(text: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, "-m", text, "--gsm7", names=("GSM-7", "--gsm7"))
