"""`msgctl doctor`: each problem is found by its check, with a fix and the exit code that a request would have."""

from __future__ import annotations

import contextlib
import datetime
import re
import socket
import ssl
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest
import trustme

from conftest import KEY
from msgctl.storage import files
from support.files import config_file, table, write_config
from support.leaks import shows_key
from support.names import know_no_names
from support.proxy import proxying
from support.service import Behaviour, Service, respond, running, silent
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool

HOST = "service.invalid"
CHECKS = "version,file,profile,base URL,key,records,proxy,name,connection,TLS,clock,credentials".split(",")
ONLINE = CHECKS[CHECKS.index("name") :]
TODAY = datetime.datetime.now(datetime.UTC)


class Report:
    """The findings of `msgctl doctor --json` by check."""

    def __init__(self, tool: Tool, *options: str) -> None:
        self.done = tool("doctor", "--json", *options)
        self.findings = {finding["check"]: finding for finding in self.done.document}
        assert [finding["check"] for finding in self.done.document] == CHECKS
        assert all(list(finding) == ["check", "status", "found", "fix"] for finding in self.done.document)
        assert not shows_key(self.done.stdout + self.done.stderr)

    def __getitem__(self, check: str) -> dict[str, str]:
        return {name: value or "" for name, value in self.findings[check].items()}

    @property
    def statuses(self) -> dict[str, str]:
        return {name: finding["status"] for name, finding in self.findings.items()}

    def failed(self, check: str, code: int, *parts: str) -> None:
        """Expect a failed check with these parts in its finding or fix; those that need it were skipped."""
        assert self.done.code == code, self.done.out
        assert self.done.error["exit_code"] == code
        assert self.statuses[check] == "failed"
        expected = f"{self[check]['found']} {self[check]['fix']}"
        assert all(part in expected for part in parts), expected
        assert [name for name, status in self.statuses.items() if status == "failed"] == [check]
        for later in CHECKS[CHECKS.index(check) + 1 :]:
            if later in ONLINE and (check, later) != ("clock", "credentials"):
                assert (self.statuses[later], self[later]["found"]) == ("skipped", f"not checked: {check} failed")

    def warned(self, check: str, *parts: str) -> None:
        """Expect a warning with these parts, and nothing failed."""
        assert (self.done.code, self.statuses[check]) == (0, "warning"), self.done.out
        expected = f"{self[check]['found']} {self[check]['fix']}"
        assert all(part in expected for part in parts), expected
        assert self[check]["fix"]


@pytest.fixture(autouse=True)
def now(tool: Tool) -> None:
    """Set the tool's clock to the current time, for the validity of certificates."""
    tool.clock.now = time.time()


def balance(**headers: str) -> Behaviour:
    return respond({"status": 1500}, headers={"Date": formatdate(usegmt=True), **headers})


@contextlib.contextmanager
def secured(
    authority: trustme.CA, patch: pytest.MonkeyPatch, *names: str, ends_in_days: float = 90, **more: Any
) -> Iterator[Service]:
    """Run a service with a certificate for these names, and set the environment for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ends = TODAY + datetime.timedelta(days=ends_in_days, hours=1)
    authority.issue_cert(*names, not_after=ends, **more).configure_cert(context)
    with running(context) as server:
        server.always(balance())
        patch.setenv("MSGCTL_BASE_URL", server.base_url)
        patch.setenv("MSGCTL_CLIENT", "12345")
        patch.setenv("MSGCTL_KEY", KEY)
        yield server


# --- nothing wrong


@pytest.mark.usefixtures("trusted")
def test_every_check_passes_if_nothing_is_wrong(
    tool: Tool, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured(authority, monkeypatch, "127.0.0.1") as server:
        report, port = Report(tool), server.port
    assert report.done.code == 0
    assert set(report.statuses.values()) == {"ok"}
    assert report.done.err == ""
    assert "msgctl 0" in report["version"]["found"]
    assert "Python 3" in report["version"]["found"]
    assert "-character key from MSGCTL_KEY" in report["key"]["found"]
    assert str(len(KEY)) in report["key"]["found"]
    assert re.fullmatch(rf"127\.0\.0\.1:{port} in [0-9]{{1,3}} ms, from 127\.0\.0\.1", report["connection"]["found"])
    assert "TLSv1.3" in report["TLS"]["found"]
    assert f"{TODAY + datetime.timedelta(days=90, hours=1):%Y-%m-%d}" in report["TLS"]["found"]
    assert "90 days" in report["TLS"]["found"]
    assert "1,500 credits" in report["credentials"]["found"]
    assert [received.method + received.path for received in server.received] == ["GET/api/v1/balance"]


def test_the_sandbox_needs_neither_file_nor_network(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    write_config("broken [", mode=0o644)
    report = Report(tool, "-p", "sandbox")
    assert report.done.code == 0
    fine = ("version", "profile", "base URL", "key", "records", "credentials")
    assert report.statuses == {name: "ok" if name in fine else "skipped" for name in CHECKS}
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    assert "MSGCTL_PROFILE" in Report(tool)["profile"]["found"]


def test_a_dry_run_makes_no_connection(tool: Tool, service: Service) -> None:
    report = Report(tool, "-n")
    assert report.done.code == 0
    assert {name for name, status in report.statuses.items() if status == "skipped"} == set(ONLINE)
    assert service.connections == 0
    assert Report(tool, "-n", "-p", "sandbox").statuses["credentials"] == "skipped"


# --- the profile and its file


def test_without_a_profile_it_explains_how_to_add_one(tool: Tool) -> None:
    report = Report(tool)
    report.failed("profile", 3, "There is no profile yet", "msgctl profile add")
    assert report["file"]["found"] == f"{files.shown(config_file())} does not exist"


def test_it_shows_the_profile_in_use_and_its_source(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(f'default_profile = "main"\n{table("main")}{table("second")}')
    assert Report(tool, "-n")["profile"]["found"] == "main (the default)"
    assert Report(tool, "-n", "-p", "second")["profile"]["found"] == "second (from -p)"
    monkeypatch.setenv("MSGCTL_PROFILE", "second")
    assert Report(tool, "-n")["profile"]["found"] == "second (from MSGCTL_PROFILE)"


def test_it_lists_the_variables_that_override_the_profile(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(f'default_profile = "main"\n{table("main")}')
    monkeypatch.setenv("MSGCTL_KEY", KEY)
    report = Report(tool, "-n")
    assert "overridden by MSGCTL_KEY" in report["profile"]["found"]
    assert "from MSGCTL_KEY" in report["key"]["found"]
    report = Report(tool, "-n", "-p", "main")
    assert "MSGCTL_KEY" not in report["profile"]["found"]
    assert "from the configuration file" in report["key"]["found"]


def test_a_file_that_others_can_read_fails_with_the_command_that_fixes_it(tool: Tool) -> None:
    path = write_config(f'default_profile = "main"\n{table("main")}', mode=0o644)
    report = Report(tool)
    report.failed("file", 3, "0644", f"chmod 600 {files.typed(path)}")
    assert report.statuses["profile"] == "skipped"
    assert report["key"]["found"] == "not checked: file failed"


@pytest.mark.parametrize("name", ["jobs/20261122-abcdef.sqlite3", "once.sqlite3", "optouts.sqlite3", "history.sqlite3"])
def test_a_damaged_file_fails_with_its_name(tool: Tool, service: Service, name: str) -> None:
    write_config(f'default_profile = "main"\n{table("main", base_url=service.base_url)}')
    path = files.state(name)
    files.make_folder(path.parent)
    path.write_bytes(b"damaged" * 1000)
    path.chmod(0o600)
    report = Report(tool, "-n")
    assert (report.done.code, report.statuses["records"]) == (3, "failed")
    assert path.name in report["records"]["found"]


# --- base URL and key


@pytest.mark.parametrize("url", [f"http://{HOST}/api/v1", "https://me:s3cret@service.example/api/v1"])
def test_an_invalid_base_url_fails_with_the_allowed_values(url: str, tool: Tool) -> None:
    write_config(f'default_profile = "main"\n{table("main", base_url=url)}')
    report = Report(tool)
    report.failed("base URL", 3, "https://HOST/api/v1")
    assert "s3cret" not in report.done.out + report.done.err
    assert report.statuses["key"] == "ok"


def test_an_unusable_key_fails_only_the_check_of_the_key(tool: Tool) -> None:
    write_config(table("main", "key_command = 'exit 7'", key=None))
    report = Report(tool, "-n", "-p", "main")
    assert (report.done.code, report.statuses["key"], report.statuses["base URL"]) == (3, "failed", "ok")
    assert "exit status 7" in report["key"]["found"]


def test_a_short_key_gets_a_warning(tool: Tool) -> None:
    write_config(table("main", key="abcde"))
    report = Report(tool, "-n", "-p", "main")
    assert (report.done.code, report.statuses["key"]) == (0, "warning")
    assert "fewer than 6 characters" in report["key"]["found"]


# --- proxy, name and connection


@pytest.fixture
def elsewhere(service: Service, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service whose base URL has a name that cannot be looked up."""
    monkeypatch.setenv("MSGCTL_BASE_URL", f"https://{HOST}/api/v1")
    know_no_names(monkeypatch)
    return service


@pytest.mark.usefixtures("elsewhere")
def test_an_unknown_name_exits_with_4(tool: Tool) -> None:
    Report(tool).failed("name", 4, HOST, "base URL")


def test_a_refused_connection_exits_with_4(tool: Tool, service: Service) -> None:
    service.stop()
    Report(tool).failed("connection", 4, "refused", "port")


@pytest.mark.usefixtures("trusted")
def test_it_shows_the_proxy_in_use_without_its_password(
    tool: Tool, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured(authority, monkeypatch, HOST) as server, proxying(server.port) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ana:s3cret@"))
        monkeypatch.setenv("MSGCTL_BASE_URL", f"https://{HOST}/api/v1")
        report = Report(tool)
        assert report.done.code == 0
        assert report["proxy"]["found"] == proxy.url
        assert f"through the proxy to {HOST}" in report["connection"]["found"]
        assert "s3cret" not in report.done.out
        server.always(respond({"error": "no"}, 520))
        Report(tool).failed("credentials", 1, "proxy", "127.0.0.1")


# --- TLS


@pytest.mark.parametrize(
    ("name", "validity", "parts"),
    [
        ("other.example", {}, ["base URL", "another address"]),
        ("127.0.0.1", {"ends_in_days": -2}, ["expired", "clock", "renew"]),
    ],
)
@pytest.mark.usefixtures("trusted")
def test_an_invalid_certificate_exits_with_4(
    name: str, validity: dict[str, int], parts: list[str], tool: Tool, authority: trustme.CA,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with secured(authority, monkeypatch, name, **validity) as server:
        Report(tool).failed("TLS", 4, *parts)
    assert server.received == []


def test_an_unknown_authority_exits_with_4(tool: Tool, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    with secured(authority, monkeypatch, "127.0.0.1"):
        Report(tool).failed("TLS", 4, "certificate", "SSL_CERT_FILE")


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize(("days", "expected"), [(13, "(13 days)"), (14, None)])
def test_a_certificate_that_expires_soon_is_a_warning(
    days: int, expected: str | None, tool: Tool, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured(authority, monkeypatch, "127.0.0.1", ends_in_days=days):
        report = Report(tool)
    if expected is None:
        assert report.statuses["TLS"] == "ok"
    else:
        report.warned("TLS", expected, "renew")


def test_plain_http_skips_the_tls_check(tool: Tool, service: Service) -> None:
    service.will(balance())
    assert Report(tool).statuses == {name: "skipped" if name == "TLS" else "ok" for name in CHECKS}


# --- clock


@pytest.mark.parametrize(("apart", "expected"), [(59, None), (62, "62 seconds fast"), (-62, "62 seconds slow")])
def test_a_wrong_clock_is_a_warning(apart: int, expected: str | None, tool: Tool, service: Service) -> None:
    tool.clock.now = 1_790_000_000
    service.will(balance(Date=formatdate(tool.clock.now - apart, usegmt=True)))
    report = Report(tool)
    if expected is None:
        assert report.statuses["clock"] == "ok"
    else:
        report.warned("clock", expected, "NTP", "at the service (UTC)")


# --- credentials


@pytest.mark.parametrize("status", [401, 520])
def test_refused_credentials_exit_with_1_and_show_the_address_to_allow(
    status: int, tool: Tool, service: Service
) -> None:
    service.will(respond({"error": "NO", "msg": "not from there"}, status))
    report = Report(tool)
    report.failed("credentials", 1, "not from there", "client and key", "127.0.0.1", "Security menu allows")
    assert report.done.error["http_status"] == status
    assert report.statuses["clock"] == "skipped"


def test_another_service_at_the_base_url_is_found(tool: Tool, service: Service) -> None:
    service.will(respond(b"[1, 2]"))
    Report(tool).failed("credentials", 1, "it is JSON, but not an object", "base URL")


# --- how it is shown


@in_a_terminal
def test_ctrl_c_keeps_the_findings_so_far(service: Service) -> None:
    service.always(silent)
    terminal = Terminal("doctor")
    terminal.answer("no lookup needed", b"\x03")
    assert terminal.end() == 130
    assert b"Traceback" not in terminal.shown
