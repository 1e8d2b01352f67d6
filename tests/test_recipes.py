"""The recipes of the manual work, even if something is wrong."""

from __future__ import annotations

import json
import shlex
import textwrap
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from msgctl.reference import manual
from support.service import Service, respond
from support.shell import Shell

PAGE = manual.part("recipes")
PHONES = "msgctl sandbox inbox -o csv --fields phone"


def recipe(title: str) -> str:
    """Return the script of a section."""
    section = PAGE.partition(f"# {title}\n")[2].partition("\n# ")[0]
    lines = [line for line in section.splitlines() if line.startswith("    ")]
    return textwrap.dedent("\n".join(lines)) + "\n"


BALANCE = recipe("AN ALARM FOR LOW CREDITS")
DISK = recipe("AN ALARM FOR A FULL DISK")
PROMETHEUS = recipe("CREDITS IN PROMETHEUS")
NAGIOS = recipe("CREDITS IN NAGIOS")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def full_disk(shell: Shell) -> Shell:
    shell.program("df", "printf 'Filesystem\\n/dev/sda1 1 1 1 95%% /\\n'")
    shell.program("sleep", "echo slept")
    return shell


@pytest.mark.parametrize(("credits_left", "nagios"), [(100, 0), (99, 2)])
def test_alarms_report_a_low_balance(credits_left: int, nagios: int, shell: Shell) -> None:
    shell.run(f"msgctl sandbox credit {credits_left}")
    assert shell.run(BALANCE, "sh") == (0, "Credits are running low\n" if nagios else "")
    assert shell.run(NAGIOS, "sh")[0] == nagios
    assert shell.run(PROMETHEUS, "sh") == (0, "")
    assert shell.run("cat msgctl.prom")[1] == f"msgctl_up 1\nmsgctl_credits {credits_left}\n"


def test_alarms_distinguish_a_service_that_is_not_reached(shell: Shell) -> None:
    shell.unreachable()
    assert shell.run(BALANCE, "sh") == (0, "")
    assert shell.run(NAGIOS, "sh")[0] == 3
    shell.run(PROMETHEUS, "sh")
    assert shell.run("cat msgctl.prom")[1] == "msgctl_up 0\n"


def test_alarms_report_a_refused_key(shell: Shell, service: Service) -> None:
    service.always(respond({"error": 1, "msg": "Unauthorized"}, 401))
    shell.unreachable()
    shell.variables["MSGCTL_BASE_URL"] = service.base_url
    assert "The balance is not known: Error" in shell.run(BALANCE, "sh")[1]
    assert shell.run(NAGIOS, "sh")[0] == 3


def test_alarms_report_a_missing_command(shell: Shell) -> None:
    shell.program("msgctl", "exit 127")
    assert "The balance is not known" in shell.run(BALANCE, "sh")[1]
    assert shell.run(NAGIOS, "sh")[0] == 3


@pytest.mark.parametrize("home", ["export HOME=/nowhere", "unset HOME"])
def test_the_balance_alarm_works_without_a_home(home: str, shell: Shell) -> None:
    shell.unreachable()
    assert shell.run(f"unset XDG_STATE_HOME XDG_CONFIG_HOME; {home}\n{BALANCE}", "sh") == (0, "")


def test_the_disk_alarm_is_sent_once_a_day_by_each_host(full_disk: Shell) -> None:
    for host in ("alpha", "alpha", "beta"):
        full_disk.program("uname", f"echo {host}")
        assert full_disk.run(DISK, "sh")[0] == 0
    assert full_disk.run(PHONES)[1] == "phone\n" + "573001234567\n" * 2


def test_the_disk_alarm_is_tried_three_times(full_disk: Shell) -> None:
    full_disk.unreachable()
    code, printed = full_disk.run(DISK, "sh")
    assert (code, printed.count("slept")) == (4, 3)


def test_the_disk_alarm_is_sent_once_if_a_response_is_lost(full_disk: Shell) -> None:
    full_disk.run("msgctl sandbox fault drop:next=1:/send-sms")
    for _ in range(2):
        code, printed = full_disk.run(DISK, "sh")
        assert (code, "slept" in printed) == (5, False)
    assert full_disk.run(PHONES)[1] == "phone\n573001234567\n"


def test_the_daily_job_can_be_repeated(shell: Shell, tmp_path: Path) -> None:
    _, _, command = recipe("A JOB EVERY DAY ON KUBERNETES").partition("[sh, -c, '")
    command = command.partition("']")[0].replace("/data", shlex.quote(str(tmp_path)))
    (tmp_path / "today.csv").write_text("phone,name\n573001234567,Ana\n", encoding="utf-8")
    assert [shell.run(" ".join(command.split()))[0] for _ in range(2)] == [0, 0]
    received = json.loads(shell.run("msgctl -q sandbox inbox --json")[1])
    assert [each["text"] for each in received] == ["Hello Ana"]


def test_the_login_accepts_the_right_code(shell: Shell) -> None:
    right = "$(msgctl sandbox inbox -o tsv --fields code | tail -n 1)"
    for code, verdict in ((right, "Welcome"), ("1", "Access denied")):
        script = recipe("A LOGIN WITH A CODE")
        child = pexpect.spawn("sh", ["-c", script], env=shell.environment, timeout=30, encoding="utf-8")
        child.expect_exact("Phone number: ")
        child.sendline("573001234567")
        child.expect_exact("Code: ")
        child.sendline(shell.run(f"printf %s {code}")[1])
        child.expect_exact(verdict)
        child.expect(pexpect.EOF)
        child.close()
