"""`msgctl doctor`: each problem is found by its check, with a fix, and exit code 1."""

from __future__ import annotations

import socket

import pytest

from conftest import KEY
from msgctl import files
from support.files import config_file, table, write_config
from support.leaks import shows_key
from support.service import Behaviour, Service, respond, silent
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool

CHECKS = ["version", "file", "profile", "base URL", "key", "store", "service", "credentials"]
ONLINE = ["service", "credentials"]


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

    def failed(self, check: str, *parts: str) -> None:
        """Expect that only this check failed, with these parts in its finding or fix."""
        assert (self.done.code, self.done.error["exit_code"]) == (1, 1), self.done.out
        assert [name for name, status in self.statuses.items() if status == "failed"] == [check]
        expected = f"{self[check]['found']} {self[check]['fix']}"
        assert all(part in expected for part in parts), expected
        assert self.done.error["message"] == f"1 check failed: {check}"


def test_every_check_passes_if_nothing_is_wrong(tool: Tool, service: Service) -> None:
    service.will(respond({"status": 1500}))
    report = Report(tool)
    assert (report.done.code, report.done.err, set(report.statuses.values())) == (0, "", {"ok"})
    assert "msgctl 0" in report["version"]["found"]
    assert "key from MSGCTL_KEY" in report["key"]["found"]
    assert "1,500 credits" in report["credentials"]["found"]
    assert [received.method + received.path for received in service.received] == ["GET/api/v1/balance"]


def test_the_sandbox_needs_neither_file_nor_network(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "socket", None)
    write_config("broken [", mode=0o644)
    report = Report(tool, "-p", "sandbox")
    assert report.done.code == 0
    assert report.statuses == {name: "skipped" if name == "file" else "ok" for name in CHECKS}
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    assert "MSGCTL_PROFILE" in Report(tool)["profile"]["found"]


def test_a_dry_run_makes_no_connection(tool: Tool, service: Service) -> None:
    report = Report(tool, "-n")
    assert report.done.code == 0
    assert [name for name, status in report.statuses.items() if status == "skipped"] == ONLINE
    assert service.connections == 0


# --- the profile and its file


def test_without_a_profile_it_explains_how_to_add_one(tool: Tool) -> None:
    report = Report(tool)
    report.failed("profile", "There is no profile yet", "msgctl profile add")
    assert report["file"]["found"] == f"{files.shown(config_file())} does not exist"
    assert report["key"]["found"] == "not checked: profile failed"


def test_it_shows_the_profile_in_use_and_its_source(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    write_config(f'default_profile = "main"\n{table("main")}{table("second")}')
    assert Report(tool, "-n")["profile"]["found"] == "main (the default)"
    assert Report(tool, "-n", "-p", "second")["profile"]["found"] == "second (from the command line)"
    monkeypatch.setenv("MSGCTL_PROFILE", "second")
    assert Report(tool, "-n")["profile"]["found"] == "second (from MSGCTL_PROFILE)"


def test_a_file_that_others_can_read_fails_with_the_command_that_fixes_it(tool: Tool) -> None:
    path = write_config(f'default_profile = "main"\n{table("main")}', mode=0o644)
    report = Report(tool)
    report.failed("file", "0644", f"chmod 600 {files.typed(path)}")
    assert report["key"]["found"] == "not checked: file failed"


def test_plain_http_gets_a_warning(tool: Tool) -> None:
    write_config(table("main", "allow_http = true", base_url="http://service.example/api/v1"))
    report = Report(tool, "-n", "-p", "main")
    assert (report.done.code, report.statuses["base URL"]) == (0, "warning")


def test_an_unusable_key_fails_only_the_check_of_the_key(tool: Tool) -> None:
    write_config(table("main", "key_command = 'exit 7'", key=None))
    Report(tool, "-n", "-p", "main").failed("key", "exit status 7")


def test_a_short_key_gets_a_warning(tool: Tool) -> None:
    write_config(table("main", key="abcde"))
    report = Report(tool, "-n", "-p", "main")
    assert (report.done.code, report.statuses["key"]) == (0, "warning")
    assert "fewer than 6 characters" in report["key"]["found"]


# --- the service


def test_a_refused_connection_fails_with_the_error_of_the_request(tool: Tool, service: Service) -> None:
    service.stop()
    report = Report(tool)
    report.failed("service", "refused", "port")
    assert report["credentials"]["found"] == "not checked: service failed"


@pytest.mark.parametrize("behaviour", [respond(b"[1, 2]"), respond(b"", 404), respond({"error": "x"})])
def test_another_service_at_the_base_url_fails(behaviour: Behaviour, tool: Tool, service: Service) -> None:
    service.will(behaviour)
    Report(tool).failed("credentials")


@in_a_terminal
def test_ctrl_c_keeps_the_findings_so_far(service: Service) -> None:
    service.always(silent)
    terminal = Terminal("doctor")
    terminal.answer("store.sqlite3", b"\x03")
    assert terminal.end() == 130
    assert KEY.encode() not in terminal.shown
    assert b"Traceback" not in terminal.shown
