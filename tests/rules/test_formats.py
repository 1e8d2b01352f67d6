"""Files of recipients in their encodings, and from every kind of source."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from msgctl.errors import UsageError
from msgctl.jobs.reader import opened
from msgctl.jobs.rows import Row
from rules.reading import ANA, LUIS, Broken, read, read_from, refused, source

# --- encodings


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_whole_file_has_one_encoding(codec: str) -> None:
    rows = [f"{ANA},Ana {number}" for number in range(40_000)]
    outcome = read("\n".join(["phone,señal", *rows, f"{LUIS},Íñigo €5"]).encode(codec))
    assert outcome.notes == ["standard input is not UTF-8; reading it as Windows-1252"] * (codec == "cp1252")
    assert outcome.columns == ("phone", "señal")
    assert outcome.rows[-1] == Row(40_002, LUIS, (LUIS, "Íñigo €5"))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (f"phone\n{ANA}\n".encode("utf-16-le"), "UTF-16"),
        (f"phone\n{ANA}\n".encode("utf-32"), "UTF-16"),
        (f"phone\n{ANA}\n".encode("utf-16")[:-1], "not valid UTF-16"),
        (b"phone,name\n" + b"57300,%s\n" % (b"x" * 500) * 200 + b"\0", "NUL"),
        (
            b"phone,name\n" + b"57300,%s\n" % (b"\xc3\xa9" * 250) * 200 + b"57300,\xe9\n",
            "damaged, not UTF-8: byte 0xe9 at position 101,418, in line 202",
        ),
        (b"phone,name\n57300,\xe9\n" + b"57300,\xc3\xa9\n" * 2, "byte 0xe9 at position 18, in line 2"),
        (b"phone,name\r\n57300,\x81\r\n", "byte 0x81 at position 19, in line 2"),
        (b"phone,name\n57300,\xc3\xa9 \xc3\xb1 \xe9\n", "byte 0xe9 at position 24, in line 2"),
        (b"\xef\xbb\xbfphone,name\n57300,\xe9\n", "byte 0xe9 at position 21, in line 2"),
        (b"phone,name\n57300,Se\xc3\xb1al\n57301,Se\xc3", "byte 0xc3 at position 33, in line 3"),
    ],
    ids=range(10),
)
def test_a_file_that_is_not_text_of_one_encoding_is_refused(content: bytes, expected: str) -> None:
    message = refused(content)
    assert expected in message
    assert "Save it" in message


def test_a_cut_character_in_a_file_without_others_is_read_as_windows_1252_with_a_note() -> None:
    outcome = read(b"phone,name\n%s,Se\xf1al \x80\n%s,\xc3" % (ANA.encode(), LUIS.encode()))
    assert [row.values[1] for row in outcome.rows] == ["Señal €", "Ã"]
    assert outcome.notes == ["standard input is not UTF-8; reading it as Windows-1252"]


def test_a_record_of_1_048_576_characters_is_too_long() -> None:
    row = f'{{"phone": "{ANA}", "name": "Ana"}}\n'
    longest = row.replace("Ana", "a" * (2**20 - 1 - len(row) + len("Ana")))
    assert [found.line for found in read(row + longest).rows] == [1, 2]
    assert refused(row + longest.replace("aa", "aaa", 1)) == (
        "Line 2 of standard input begins a record longer than 1,048,576 characters "
        "Is a quotation mark not closed, or is it another kind of file?"
    )


# --- sources


@pytest.mark.parametrize("good", [0, 1, 10_000, 100_000])
def test_a_failed_read_refuses_the_file(good: int) -> None:
    content = b"phone,name\n" + b"57300,%s\n" % (b"x" * 500) * 250
    with pytest.raises(UsageError, match=r"Cannot read standard input: Input/output error"):
        read_from(io.BufferedReader(Broken(content, good)))


def test_a_file_name_with_a_null_character_is_refused() -> None:
    with pytest.raises(UsageError) as caught, opened("a\0b", source(b"")):
        pass
    assert caught.value.message == 'Cannot read "a\\x00b": it is not a file of recipients'


def test_an_endless_device_is_refused() -> None:
    with Path("/dev/zero").open("rb") as source, pytest.raises(UsageError, match="not text"):
        read_from(source)


def test_a_pipe_without_a_phone_column_is_refused_while_it_is_still_written() -> None:
    reading, writing = os.pipe()
    try:
        os.write(writing, b"name,city\n" + b"Ana,Cali\n" * 51)
        with open(reading, "rb") as source, pytest.raises(UsageError, match="no column"):  # noqa: PTH123
            read_from(source)
    finally:
        os.close(writing)


def test_a_file_name_cannot_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2Jb"
    path.touch()
    with pytest.raises(UsageError, match=r"a\\x1b\[2Jb is empty"), opened(str(path), source(b"")):
        pass
