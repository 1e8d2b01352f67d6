"""Files of recipients in their encodings, and from every kind of source."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from jobs.reading import ANA, LUIS, read, read_from, refused
from msgctl.errors import UsageError
from msgctl.jobs.reader import RecipientReader, Row, opened

# --- encodings


@pytest.mark.parametrize(
    ("codec", "encoding"),
    [("utf-8", "UTF-8"), ("utf-8-sig", "UTF-8"), ("utf-16", "UTF-16"), ("cp1252", "Windows-1252")],
)
def test_the_whole_file_has_one_encoding(codec: str, encoding: str) -> None:
    rows = [f"{ANA},Ana {number}" for number in range(40_000)]
    outcome = read("\n".join(["phone,señal", *rows, f"{LUIS},Íñigo €5"]).encode(codec))
    assert outcome.encoding == encoding
    assert outcome.columns == ("phone", "señal")
    assert outcome.rows[-1] == Row(40_002, LUIS, (LUIS, "Íñigo €5"))


@pytest.mark.parametrize("shift", range(10))
def test_a_character_may_span_two_chunks(shift: int) -> None:
    content = f"phone,{'x' * shift}\n" + "57300,€\n" * 60_000
    with opened(io.BytesIO(content.encode()), "customers.csv", "phone") as recipients:
        assert recipients.encoding == "UTF-8"
    lines = content.encode().split(b"\n")
    lines[30_000 - 1] = b"57300,\xe9"
    assert "is UTF-8, but line 30000 is not" in refused(b"\n".join(lines))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("line", [2, 7, 60_000])
def test_an_undecodable_byte_is_reported_with_its_line(end: bytes, line: int) -> None:
    rows = [b"phone,name"] + [b"57300,\xe9"] * 60_000
    rows[line - 1] = b"57300,\x81"
    message = refused(end.join(rows))
    assert f"neither UTF-8 (line 2) nor Windows-1252 (line {line})" in message


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"phone\n{ANA}\n".encode("utf-16-le"), "UTF-16"),
        (f"phone\n{ANA}\n".encode("utf-32"), "UTF-16"),
        (b"phone\n" + b"57300\n" * 100_000 + b"\0", "NUL"),
        (b"\xef\xbb\xbfphone,name\n57300,\xe9\n", "line 2 is not"),
        (b"\xef\xbb\xbfphone,name\n57300,\xc3", "line 2 is not"),
    ],
)
def test_a_file_that_is_not_text_is_refused(content: bytes, said: str) -> None:
    message = refused(content)
    assert said in message
    assert "Save it" in message or "save the file" in message


# --- sources


def test_truncated_utf16_is_refused() -> None:
    assert "not valid UTF-16" in refused(f"phone\n{ANA}\n".encode("utf-16")[:-1])


class Broken(io.BytesIO):
    """A file on a medium that fails after some reads."""

    def __init__(self, content: bytes, good_reads: int) -> None:
        super().__init__(content)
        self.good_reads = good_reads

    def _spend(self) -> None:
        self.good_reads -= 1
        if self.good_reads < 0:
            raise OSError(5, "Input/output error")

    def read(self, size: int | None = -1, /) -> bytes:
        self._spend()
        return super().read(size)

    def read1(self, size: int | None = -1, /) -> bytes:
        self._spend()
        return super().read1(size)

    def readline(self, size: int | None = -1, /) -> bytes:
        self._spend()
        return super().readline(size)


@pytest.mark.parametrize("good_reads", [0, 1, 2, 4, 7, 10])
def test_a_failed_read_refuses_the_file(good_reads: int) -> None:
    content = b"phone\n" + b"57300\n" * 20_000
    with pytest.raises(UsageError, match=r"Cannot read customers\.csv: Input/output error"):
        read_from(Broken(content, good_reads))


def test_an_endless_device_is_refused() -> None:
    with Path("/dev/zero").open("rb") as source, pytest.raises(UsageError, match="not text"):
        read_from(source)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "customers.csv"
    path.write_bytes(b"phone,name\n" + b"57300,x\n" * 10_000)

    def rest(recipients: RecipientReader) -> None:
        for found in recipients:
            if found.line == 2:
                path.write_bytes(b"phone,name\n" + b"57300,\xe9\n" * 10_000)

    with (
        path.open("rb") as source,
        opened(source, "customers.csv", "phone") as recipients,
        pytest.raises(UsageError, match="changed while it was read"),
    ):
        rest(recipients)


def test_a_file_name_cannot_control_the_terminal() -> None:
    with pytest.raises(UsageError, match=r"a\\x1b\[2Jb is empty"), opened(io.BytesIO(), "a\x1b[2Jb", "phone"):
        pass
