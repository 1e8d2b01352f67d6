"""Behaviour that needs a process: pipes, closed and full streams, Ctrl-C, encodings, and a real terminal."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import termios
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote_plus

import pytest

from support import PATIENCE, forks
from support.commands import PHONE, SENDS
from support.files import table, write_config
from support.service import Behaviour, Service, respond, running, silent, then
from support.terminal import Terminal, in_a_terminal
from support.tool import Outcome, Tool, process, started

MSGCTL = f"{shlex.quote(sys.executable)} -m msgctl"
RECORD = SENDS["sms send"].record
SEND = f"sms send {PHONE} --message Hola"
LONG = {
    **RECORD,
    "data": [{"id": "m1", "status": "sent", "credits": 1, "sms": "x" * 90_000, "phone": PHONE}],
}
"""A response that is larger than the buffer of a pipe, 64 KiB, and within the limit."""
REFUSED = respond({"error": "no", "msg": "no"}, 422)
CREATED = respond({"urlShort": "https://s.example/1"})
ONE_CREDIT = respond({"status": 1})


def shell(script: str) -> subprocess.CompletedProcess[bytes]:
    """Run a bash script in which ``msgctl`` is the tool. It is a fork unless the script closes a stream."""
    program = Path(os.environ["HOME"]) / "msgctl"
    program.write_text(forks.program())
    program.chmod(0o755)
    msgctl = MSGCTL if "&-" in script else program
    return subprocess.run(
        ["bash", "-c", f'set -o pipefail; msgctl() {{ {msgctl} "$@"; }}; {script}'],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env=os.environ,
    )


# --- closed and full streams


@pytest.mark.parametrize(
    ("line", "response", "code", "shown"),
    [
        (f"{SEND} --json | head -c 100", respond(LONG), 0, ""),
        ("--version | grep -qx 'msgctl [0-9.]*'", None, 0, ""),
        ("--version | true", None, 0, ""),
        ("--version >&-", None, 0, ""),
        (f"{SEND} >&-", respond(RECORD), 0, ""),
        (f"{SEND} --json >&-", REFUSED, 1, '"exit_code":1'),
        (f"-v {SEND} <&- >&- 2>&-", respond(RECORD), 0, ""),
        (f"{SEND} 2>&-", REFUSED, 1, ""),
        (f"-v {SEND} 2> >(true)", respond(RECORD), 0, ""),
        (f"-v {SEND} 2>/dev/full", respond(RECORD), 0, ""),
        ("balance check --min 5 | true", ONE_CREDIT, 6, ""),
    ],
)
def test_a_closed_stream_does_not_change_the_request_or_the_exit_code(
    line: str, response: Behaviour | None, code: int, shown: str, service: Service
) -> None:
    service.will(*filter(None, [response]))
    done = shell(f"msgctl {line}")
    printed = done.stderr.decode()
    assert (done.returncode, "Traceback" in printed) == (code, False)
    assert shown in printed
    assert code or printed == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("line", "response", "code", "shown"),
    [
        (SEND, respond(RECORD), 5, "The request was sent"),
        (f"{SEND} --once key", respond(RECORD), 5, "run the same command again: it sends nothing"),
        (f"{SEND} --once key --resend-unknown --json", respond(RECORD), 5, '"recipients":[{"phone":"573'),
        ("url shorten https://example.com --name launch", CREATED, 5, "Do not repeat the command"),
        ("profile list", None, 3, ""),
        ("sms send --help", None, 3, ""),
        (f"{SEND} -n", None, 3, ""),
        ("balance check --min 5", ONE_CREDIT, 6, ""),
    ],
)
def test_a_result_that_cannot_be_written_to_a_full_disk_is_reported(
    line: str, response: Behaviour | None, code: int, shown: str, service: Service
) -> None:
    service.will(*filter(None, [response]))
    done = shell(f"msgctl {line} >/dev/full")
    printed = done.stderr.decode()
    is_resent = line == SEND or "--resend-unknown" in line
    assert (done.returncode, "Traceback" in printed, "second message" in printed) == (code, False, is_resent)
    assert "No space left on device" in printed
    assert shown in printed
    assert len(service.received) == (response is not None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_job_whose_result_cannot_be_written_can_be_shown(service: Service) -> None:
    service.will(respond({"status": 1000}), respond(RECORD))
    done = shell("msgctl sms bulk - -m Hola --yes <<< $'phone\\n573001234567' >/dev/full")
    printed = done.stderr.decode()
    assert (done.returncode, "See: msgctl job show 2" in printed, "second message" in printed) == (5, True, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_run_of_several_requests_whose_result_cannot_be_written_says_what_to_do(
    service: Service, tool: Tool, tmp_path: Path
) -> None:
    (tmp_path / "p.csv").write_text(f"phone\n{PHONE}\n", encoding="utf-8")
    service.always(respond(RECORD))
    tool.clock.now = time.time() - 60
    soon = datetime.fromtimestamp(tool.clock.now + 30, UTC).isoformat()
    assert tool("sms", "bulk", str(tmp_path / "p.csv"), "-m", "Hola", "--yes", "--at", soon).code == 0
    shorten = f"url bulk {tmp_path}/p.csv --name a --to https://example.com"
    for line, responses, hint in (
        ("job run-due", [], "See: msgctl job list"),
        (shorten, [respond({}), CREATED], "it creates no short URL twice"),
    ):
        service.will(*responses)
        printed = shell(f"msgctl {line} >/dev/full").stderr.decode()
        assert (hint in printed, "second message" in printed) == (True, False), printed


def test_a_non_blocking_pipe_gets_the_whole_output(service: Service) -> None:
    """Another program can make the pipe non-blocking for every process that writes to it."""
    service.will(respond(LONG))
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with started([sys.executable, "-m", "msgctl", *SEND.split(), "--json"], stdout=write_end) as child:
        os.close(write_end)
        with open(read_end, "rb") as pipe:  # noqa: PTH123 (a descriptor has no path)
            assert json.loads(pipe.read()) == LONG
        assert child.wait(PATIENCE) == 0


def test_a_key_command_reads_nothing_from_the_standard_input_of_msgctl(service: Service) -> None:
    """In a loop that reads a list, the key command would take the rest of the list."""
    service.will(ONE_CREDIT)
    write_config(table("main", 'key_command = "cat >&2; echo another-key"', base_url=service.base_url, key=None))
    done = shell("printf 'one\\ntwo\\n' | (msgctl balance -p main >/dev/null; cat)")
    assert (done.stdout, done.stderr) == (b"one\ntwo\n", b"")


@pytest.mark.parametrize(
    ("line", "pieces", "sent"),
    [
        (f"sms send {PHONE}", (b"Your code is 1", b"23456"), "sms=Your code is 123456"),
        ("sms bulk - -m Hola --yes", (b"phone\n573001234567\n57300", b"1234568\n"), "573001234567,573001234568"),
    ],
    ids=["message", "recipients"],
)
def test_a_non_blocking_pipe_is_read_to_its_end(
    line: str, pieces: tuple[bytes, bytes], sent: str, service: Service
) -> None:
    """Another program can make the pipe non-blocking. The whole message is sent, not only its beginning."""
    service.always(respond({"id": "m1", "status": "1", "data": []}))
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    os.write(write_end, pieces[0])
    with started([sys.executable, "-m", "msgctl", *line.split()], stdin=read_end):
        while fcntl.ioctl(read_end, termios.FIONREAD, bytes(4)) != bytes(4):  # until the first piece was read
            time.sleep(0.005)
        os.close(read_end)
        os.write(write_end, pieces[1])
        os.close(write_end)
    assert sent in unquote_plus(service.received[-1].body.decode())


# --- Ctrl-C


def interrupted(child: subprocess.Popen[bytes]) -> None:
    """Send Ctrl-C, and check that msgctl reports that nothing was sent."""
    child.send_signal(signal.SIGINT)
    printed = child.communicate(timeout=PATIENCE)[1].decode()
    assert (child.returncode, "nothing was sent" in printed, "Traceback" in printed) == (130, True, False)


def test_ctrl_c_while_a_key_command_runs_reports_that_nothing_was_sent(server: Service, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    command = f"key_command = 'echo > {tmp_path}/started; exec sleep 30 2>&-'"
    write_config(f'default_profile = "main"\n{table("main", command, base_url=server.base_url, key=None)}')
    with started([sys.executable, "-m", "msgctl", *SEND.split()], stderr=subprocess.PIPE) as child:
        (tmp_path / "started").read_bytes()
        interrupted(child)
    assert server.connections == 0


def test_ctrl_c_while_the_message_is_read_reports_that_nothing_was_sent(service: Service, tmp_path: Path) -> None:
    message = tmp_path / "message"
    os.mkfifo(message)
    command = [sys.executable, "-m", "msgctl", "sms", "send", PHONE, "--message-file", str(message)]
    with started(command, stderr=subprocess.PIPE) as child, message.open("w"):  # as soon as it is read
        interrupted(child)


def test_ctrl_c_before_the_request_is_sent_reports_that_nothing_was_sent(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = threading.Event()
    with running(blind=True) as mute:
        monkeypatch.setenv("MSGCTL_BASE_URL", mute.base_url.replace("http:", "https:"))
        mute.always(then(lambda _: reached.set(), silent))  # the TLS handshake has begun, and never ends
        with started([sys.executable, "-m", "msgctl", *SEND.split()], stderr=subprocess.PIPE) as child:
            assert reached.wait(PATIENCE)
            interrupted(child)


def test_ctrl_c_while_an_error_waits_for_its_reader_ends_with_130() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while os.write(writer, b"x"):
            pass
    with started([sys.executable, "-m", "msgctl", "-p", "none", "balance"], stderr=writer) as child:
        is_writing = re.compile(r"\d+ 0x2 ").match  # to standard error
        until = time.monotonic() + PATIENCE
        while not is_writing(Path(f"/proc/{child.pid}/syscall").read_text()):
            assert time.monotonic() < until
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE) == 130
    os.close(reader)
    os.close(writer)


# --- encodings


LOCALES = {
    "ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "MSGCTL_KEY": "plain"},
    "Latin-1": {"PYTHONIOENCODING": "latin-1"},
}


@pytest.mark.parametrize("locale", list(LOCALES.values()), ids=list(LOCALES))
def test_every_character_can_be_printed_in_every_locale(locale: dict[str, str], service: Service) -> None:
    record = {**RECORD, "data": [{**RECORD["data"][0], "sms": "Señor 😀 ✓ €"}]}
    body = json.dumps(record, ensure_ascii=False).encode()
    service.always(respond(body))
    table = process(*SEND.split(), "-o", "csv", env=locale)
    assert (table.code, table.stderr) == (0, b"")
    assert "Se" in table.stdout.decode(locale.get("PYTHONIOENCODING", "utf-8"))
    assert process(*SEND.split(), "--json", env=locale) == Outcome(0, body + b"\n", b"")


@in_a_terminal
def test_a_terminal_gets_a_question_mark_for_a_sign_that_its_encoding_lacks(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    service.will(respond(RECORD))
    with Terminal(*SEND.split(), "--no-color") as tty:
        assert tty.end() == 0
    assert b"? 1 message accepted" in tty.shown
    assert b"\\" not in tty.shown


@in_a_terminal
def test_a_resend_whose_recipients_change_during_its_question_is_refused(
    service: Service, tool: Tool, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(f"phone\n{PHONE}\n")
    service.will(ONE_CREDIT, REFUSED, respond(RECORD))
    assert tool("sms", "bulk", str(tmp_path / "people.csv"), "-m", "Hola", "--yes", "--name", "today").code == 6
    resend = ("job", "resend", "today", "--only", "refused")
    with Terminal(*resend) as tty:
        tty.read_until(rb"\[y/N\]")
        assert tool(*resend, "--yes").code == 0
        tty.write(b"y\n")
        assert tty.end() == 2, tty.shown


@in_a_terminal
@pytest.mark.parametrize(
    ("delete", "kept"),
    [(("job", "remove", "today"), b"1 of 1 jobs could"), (("history", "clear"), b"1 of 1 single sends and jobs could")],
)
def test_a_job_that_another_process_deletes_during_the_question_is_not_counted(
    service: Service, tool: Tool, tmp_path: Path, delete: tuple[str, ...], kept: bytes
) -> None:
    (tmp_path / "people.csv").write_text(f"phone\n{PHONE}\n")
    service.will(ONE_CREDIT, respond(RECORD))
    assert tool("sms", "bulk", str(tmp_path / "people.csv"), "-m", "Hola", "--yes", "--name", "today").code == 0
    with Terminal(*delete) as tty:
        assert tty.read_until(rb"\[y/N\]")
        assert tool("job", "remove", "today", "--yes").code == 0
        tty.write(b"y\n")
        assert tty.end() == 6, tty.shown
    assert kept in tty.shown
    assert b"Deleted" not in tty.shown
