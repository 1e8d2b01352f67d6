"""Complete error messages, in the text files of `messages/`.

``WRITE_VIEWS=1 pytest tests/golden/test_messages.py`` writes them anew; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
import sqlite3
import ssl
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from msgctl import __version__
from msgctl.http.network import tls_context
from msgctl.store import owners
from msgctl.store.jobs import find
from msgctl.store.store import open_store
from support import service as behaviours
from support import workbooks
from support.files import URL, write_config
from support.names import know_no_names
from support.service import Service, drop, raw, respond, running
from support.tool import Tool

FOLDER = Path(__file__).parent / "messages"
PHONE = "573001234567"


class Recorder:
    """Runs command lines and stores their standard error."""

    def __init__(self, tool: Tool) -> None:
        self._tool = tool
        self.clock = tool.clock
        self.printed: list[str] = []

    def run(self, *arguments: str, about: str = "", is_whole: bool = False, typed: str = "") -> None:
        """Run a command line; ``is_whole`` keeps its standard output too."""
        done = self._tool(*arguments)
        typed = typed or ascii(" ".join(each if len(each) < 60 else f"{each[:60]}…" for each in arguments))[1:-1]
        self.printed.append(f"$ msgctl {typed}{about and f'  # {about}'}\n{done.code}: {done.err}{done.out * is_whole}")


Script = Callable[[Recorder, Service], None]


def files(recorder: Recorder, service: Service) -> None:
    Path("people.csv").write_text("phone\n")
    recorder.run("sms", "bulk", ".", "-m", "x", "--yes")
    recorder.run("sms", "bulk", "people.csv", "-m", "x", "--yes", "--phone-column", "mobile")
    recorder.run("sms", "bulk", "missing.csv", "-m", "x", "--yes")
    Path("body.json").write_text("{body")
    recorder.run("chatapp", "send", "--template", "t", "--body", "body.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "holidays", None)
        recorder.run(
            "sms", "bulk", "people.csv", "-m", "x", "--yes", "--window", "co", about="the package holidays is missing"
        )
        patch.setitem(sys.modules, "xlsxwriter", None)
        recorder.run("job", "report", "--last", "--save", "report.xlsx", about="the package xlsxwriter is missing")


def profile(setting: str) -> None:
    """Write a profile that would be valid without a setting."""
    settings = {"client": "1", "key": "'a-key'", "app_name": "'Shop'", "voice": "'Mia'", "base_url": f"'{URL}'"}
    for line in setting.splitlines():
        settings.pop("key" if line.startswith("key_command") else line.partition(" = ")[0], None)
    lines = [f"{name} = {value}" for name, value in settings.items()]
    write_config("\n".join(["[profiles.main]", *lines, setting, ""]))


def transcript(name: str) -> Script:
    """Return a script that runs the command lines in its file.

    A comment is the content of the list that the command reads, the behaviour of the service, or a profile.
    """

    def show(recorder: Recorder, service: Service) -> None:
        if name == "workbooks":
            pytest.importorskip("python_calamine")
        service.always(respond({"id": "d1", "status": 1, "data": [{"id": "m1", "status": "queued", "credits": 1}]}))
        Path("good.csv").write_text(f"phone,name\n{PHONE},Ana\n881234567890,Satellite\n12025550123,Service\n")
        for typed in re.findall(r"^\$ msgctl (.*)$", (FOLDER / f"{name}.txt").read_text(), re.MULTILINE):
            line, _, content = typed.partition("  # ")
            words = shlex.split(line)
            value = eval(content or "None", {**vars(behaviours), **vars(workbooks), "profile": profile})
            if isinstance(value, str):
                value = value.encode()
            if isinstance(value, bytes):
                Path(words[2]).write_bytes(value)
            elif value:
                service.always(value)
            recorder.run(*words, typed=typed)

    show.__name__ = name
    return show


ACCEPTED = {"id": "m1", "status": "queued", "credits": 3, "phone": PHONE}
RESULTS = {
    "one rejected, one missing": respond({"id": "d1", "data": [{**ACCEPTED, "status": "rejected"}]}),
    "a refusal": respond({"error": "E1", "msg": "no"}, 520),
    "no response": drop,
    "credits": respond({"id": "d1", "data": [ACCEPTED]}),
}


def results(recorder: Recorder, service: Service) -> None:
    report = ("job", "report", "--last", "-o", "tsv", "--no-header", "--fields", "phone,outcome,status,error")
    Path("people.csv").write_text(f"phone,name\n{PHONE},Ana\n,\n573007654321,Luis\n12,Eva\n")
    job = ("sms", "bulk", "people.csv", "-m", "x", "--skip-invalid", "--again", "--yes")
    for name, behaviour in RESULTS.items():
        service.always(behaviour)
        recorder.clock.now += 60
        recorder.run(*job, *(("-q", "--max-credits", "4") if name == "credits" else ()), about=name)
        recorder.run(*report, is_whole=True)
    service.always(drop)
    recorder.clock.now += 60
    recorder.run(*job, "-q")
    service.always(RESULTS["a refusal"])
    recorder.run("job", "resume", "--last", "--resend-unknown", "--yes")
    recorder.run(*report, is_whole=True)
    Path("people.csv").write_text("phone\n" + "".join(f"57300123456{number}\n" for number in range(10)))
    recorder.run(*job, "--batch-size", "1", "--concurrency", "1", about="five failures in a row")


def store(recorder: Recorder, service: Service) -> None:
    job: tuple[str, ...] = ("sms", "bulk", "people.csv", "-m", "x", "--yes", "--batch-size", "1", "--concurrency", "1")
    Path("people.csv").write_text(f"phone\n{PHONE}\n573007654321\n573009999999\n")
    Path("local.csv").write_text("phone\n3001234567\n3007654321\n")
    recorder.run("sms", "bulk", "local.csv", "-m", "x", "--yes")
    everyone = (PHONE, "573007654321", "573009999999")
    recorder.run("optout", "add", *everyone)
    recorder.run("sms", "send", PHONE, "-m", "x")
    recorder.run("sms", "send", PHONE, "573007654321", "-m", "x")
    recorder.run(*job)
    recorder.run("optout", "remove", *everyone)
    recorder.run(*job, "--max-credits", "2", about="no response")
    service.always(respond({"id": "d1", "status": 1, "data": [{"id": "m1", "status": "queued", "credits": 1}]}))
    Path("people.csv").write_text(f"phone\n{PHONE}\n573009999999\n573008888888\n")
    job = (*job, "--again", "--name", "today")
    recorder.run(*job, "--at-most", "1/day", "--max-credits", "1")
    recorder.run("job", "report", "today", "--only", "excluded", "-o", "csv", is_whole=True)
    recorder.run("sms", "bulk", "local.csv", "-m", "x", "--country-code", "CO", "--yes", "--again", "--name", "today")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "gethostname", lambda: "a-machine")
        path = next(Path("state").rglob("store.sqlite3"))
        with closing(open_store(path)) as other:
            owners.take(other, find(other, "today").number)
            for command in ("resume", "resend --only unknown", "remove"):
                recorder.run("job", *command.split(), "today", "--yes", about="it is running")
            recorder.run("job", "show", "today", about="it is running")
        recorder.run("job", "cancel", "today", "--yes")
        recorder.run("job", "resume", "today", "--yes")
        recorder.run("job", "remove", "today", "--yes")
        recorder.run(*job, "--at-most", "1/day")
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            recorder.run("--timeout", "0.1", "sms", "send", PHONE, "-m", "x", about="another program locks the store")
        for location in ("postgresql://bob:a/b@host/db", "mysql://host/db", "people.csv"):
            patch.setenv("MSGCTL_STORE", location)
            recorder.run("sms", "send", PHONE, "-m", "x", about=location)


def _refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def network(recorder: Recorder, service: Service) -> None:
    with pytest.MonkeyPatch.context() as patch:
        know_no_names(patch)
        patch.setenv("MSGCTL_BASE_URL", "https://nowhere.example")
        recorder.run("balance")
        patch.setenv("HTTPS_PROXY", "ftp://proxy.example")
        recorder.run("balance")
        with running() as proxy:
            proxy.always(respond(status=407))
            patch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            recorder.run("balance", about="a proxy that refuses")
        patch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        recorder.run("balance", about="no proxy there")
        with running() as proxy:
            proxy.always(drop)
            patch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            recorder.run("balance", about="a proxy that hangs up")
        patch.delenv("HTTPS_PROXY")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority = trustme.CA()
        authority.issue_cert("other.example").configure_cert(context)
        with running(context) as secured:
            patch.setenv("MSGCTL_BASE_URL", secured.base_url)
            recorder.run("balance", about="an unknown authority")
            authority.cert_pem.write_to_path("ca.pem")
            tls_context.cache_clear()  # an earlier run had another file with this name
            patch.setenv("SSL_CERT_FILE", "ca.pem")
            recorder.run("balance", about="the certificate of another")
            authority.issue_cert("127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC)).configure_cert(context)
            recorder.run("balance", about="a certificate that has expired")
            begin, end = datetime(2100, 1, 1, tzinfo=UTC), datetime(2101, 1, 1, tzinfo=UTC)
            authority.issue_cert("127.0.0.1", not_before=begin, not_after=end).configure_cert(context)
            recorder.run("balance", about="a certificate of the future")
            assert secured.connections == 4, "a certificate is not tried again"
            secured.hang_up(3)
            recorder.run("balance", about="closed during the TLS handshake")
        with running(blind=True) as plain:
            plain.always(raw(b"220 hello\r\n"))
            patch.setenv("MSGCTL_BASE_URL", plain.base_url.replace("http:", "https:"))
            recorder.run("balance", about="a server without TLS")
        patch.setenv("SSL_CERT_FILE", "/nowhere")
        recorder.run("balance")
        patch.setenv("MSGCTL_BASE_URL", "http://127.0.0.1:9")
        recorder.run("-v", "balance")
        patch.setenv("MSGCTL_BASE_URL", service.base_url.replace("http:", "https:"))
        patch.delenv("SSL_CERT_FILE")
        recorder.run("--timeout", "0.2", "balance")
        recorder.run("state", "get", "m" * 70_000)
        patch.setenv("MSGCTL_BASE_URL", "https://nowhere.example")
        patch.setattr(threading.Thread, "start", _refuse)
        recorder.run("balance", about="no more threads")


ROOMS = (
    files,
    results,
    store,
    network,
    *map(transcript, ("lists", "times", "jobs", "phones", "responses", "settings", "usage", "workbooks")),
)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.__name__))
def test_the_messages_match_the_file(
    room: Script,
    service: Service,
    tool: Tool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    teller = Recorder(tool)
    room(teller, service)
    port = service.base_url.split(":")[2].partition("/")[0]
    shown = (
        "\n".join(teller.printed)
        .replace(f":{port}", ":PORT")
        .replace(f"msgctl/{__version__}", "msgctl/VERSION")
        .replace(str(tmp_path), "FOLDER")
        .replace(sys.executable, "PYTHON")
    )
    shown = re.sub("[0-9]+ ms", "N ms", re.sub(r"127\.0\.0\.1:[0-9]+", "127.0.0.1:PORT", shown))
    shown = re.sub("[0-9]{8}-[0-9a-f]{6}", "JOB", shown)
    # Several jobs have the same recipient. Jobs of the same second have no order, so the error may mention any of them.
    unfinished = "already sends (this message to [^,]*), and is not finished"
    shown = re.sub(unfinished, r"sent \1 in the last 24 hours", shown)
    file = FOLDER / f"{room.__name__}.txt"
    if os.environ.get("WRITE_VIEWS"):
        file.write_text(shown)
    assert shown == file.read_text()
