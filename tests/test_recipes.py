"""The recipes of the manual work, and none of them loses an alarm if something is wrong."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from msgctl.reference import manual
from support import PATIENCE
from support.disks import mounted
from support.service import Service, respond
from support.shell import Shell

PAGE = manual.part("recipes")
PHONES = "msgctl sandbox inbox -o csv --fields phone"
READ_CODE = "msgctl sandbox inbox -o tsv --fields code"
NO_WRITES = "trap '' XFSZ; ulimit -f 0"


def recipe(title: str) -> str:
    """Return the script of a section."""
    section = PAGE.partition(f"# {title}\n")[2].partition("\n# ")[0]
    lines = [line for line in section.splitlines() if line.startswith("    ")]
    return textwrap.dedent("\n".join(lines)) + "\n"


BALANCE = recipe("AN ALARM FOR LOW CREDITS")
DISK = recipe("AN ALARM FOR A FULL DISK")
PROMETHEUS = recipe("CREDITS IN PROMETHEUS")
NAGIOS = recipe("CREDITS IN NAGIOS")
CRON = re.findall(r"\$HOME/.local/bin/(.*)", recipe("SCHEDULED JOBS AND OLD RECORDS"))[:2]


def alarms(shell: Shell, before: str = ":") -> tuple[str, int, str, tuple[int, str]]:
    """Run the recipes that raise an alarm, each after a line of shell code.

    Return the output about the balance, the exit code for Nagios, the metrics, and the result of the disk alarm.
    """
    balance, nagios, _, disk = (shell.run(f"{before}\n{each}", "sh") for each in (BALANCE, NAGIOS, PROMETHEUS, DISK))
    metrics = shell.run("cat msgctl.prom 2> /dev/null || true")[1]
    return balance[1], nagios[0], metrics, disk


def prepared(directory: Path) -> Shell:
    """Return a shell in which the disk seems almost full, and ``sleep`` returns immediately."""
    shell = Shell(directory)
    shell.variables["XDG_STATE_HOME"] = str(directory / "state")
    shell.program("df", "printf 'Filesystem\\n/dev/sda1 1 1 1 95%% /\\n'")
    shell.program("sleep", "echo slept")
    return shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return prepared(tmp_path)


@pytest.fixture
def on_full_disk(tmp_path: Path) -> Iterator[tuple[Shell, str]]:
    """A shell on a full disk; if none can be mounted, a shell with a line of code that prevents writes."""
    with ExitStack() as stack:
        before = ":"
        try:
            disk = stack.enter_context(mounted(tmp_path / "disk", "1m"))
        except pytest.skip.Exception:
            before = NO_WRITES
        shell = prepared(tmp_path / "disk")
        (tmp_path / "disk" / "msgctl.prom").write_text("msgctl_up 1\n")
        if before != NO_WRITES:
            disk.fill()
        yield shell, before


def test_alarms_report_a_low_balance_even_without_a_home(shell: Shell) -> None:
    assert alarms(shell) == ("", 0, "msgctl_up 1\nmsgctl_credits 1000\n", (0, ""))
    shell.run("msgctl sandbox credit 99")
    shown = "msgctl_up 1\nmsgctl_credits 99\n"
    assert alarms(shell, "unset HOME") == ("Credits are running low\n", 2, shown, (0, ""))


def test_alarms_report_a_service_that_is_not_reached_differently_from_a_low_balance(shell: Shell) -> None:
    shell.unreachable()
    balance, nagios, metrics, (code, printed) = alarms(shell)
    assert (balance, nagios, metrics) == ("", 3, "msgctl_up 0\n")
    assert (code, printed.count("slept")) == (4, 3)


def test_alarms_report_a_refused_key(shell: Shell, service: Service) -> None:
    service.always(respond({"error": 1, "msg": "Unauthorized"}, 401))
    shell.unreachable()
    shell.variables["MSGCTL_BASE_URL"] = service.base_url
    balance, nagios, metrics, (code, printed) = alarms(shell)
    assert "The balance is not known: Error" in balance
    assert (nagios, metrics) == (3, "msgctl_up 0\n")
    assert (code, "Error" in printed, "slept" in printed) == (1, True, False)


def test_alarms_report_a_missing_command(shell: Shell) -> None:
    shell.program("msgctl", "echo 'msgctl: not found' >&2; exit 127")
    balance, nagios, metrics, disk = alarms(shell)
    assert balance == "The balance is not known: msgctl: not found\n"
    assert (nagios, metrics) == (3, "msgctl_up 0\n")
    assert disk == (127, "msgctl: not found\n")


def test_alarms_work_on_a_full_disk_and_delete_old_metrics(on_full_disk: tuple[Shell, str], service: Service) -> None:
    shell, before = on_full_disk
    service.always(respond({"status": "99"}))
    shell.unreachable()
    shell.variables["MSGCTL_BASE_URL"] = service.base_url
    balance, nagios, metrics, (code, printed) = alarms(shell, before)
    assert (balance, nagios, metrics) == ("Credits are running low\n", 2, "")
    assert shell.run("ls *.prom* 2> /dev/null || true")[1] == ""
    assert (code, "nothing was sent" in printed) == (3, True)


def test_the_disk_alarm_is_sent_once_a_day_by_each_host(shell: Shell) -> None:
    for host in ("alpha", "alpha", "beta"):
        shell.program("uname", f"echo {host}")
        assert shell.run(DISK, "sh")[0] == 0
    assert shell.run(PHONES)[1] == "phone\n" + "573001234567\n" * 2


def test_the_disk_alarm_is_sent_once_if_a_response_is_lost(shell: Shell) -> None:
    shell.run("msgctl sandbox fault drop:next=1:/send-sms")
    for _ in range(2):
        code, printed = shell.run(DISK, "sh")
        assert (code, "slept" in printed) == (5, False)
    assert shell.run(PHONES)[1] == "phone\n573001234567\n"


def test_cron_jobs_print_nothing_if_nothing_is_due_and_report_errors(shell: Shell) -> None:
    run_due, clear = CRON
    assert shell.run(run_due, "sh") == (0, "")
    assert shell.run(clear, "sh")[0] == 0
    shell.variables["XDG_STATE_HOME"] = "/dev/null/state"
    for line in CRON:
        code, printed = shell.run(line, "sh")
        assert (code, "Error" in printed) == (3, True)


def test_tests_run_beside_a_sandbox(shell: Shell) -> None:
    command = recipe("TESTS IN CONTINUOUS INTEGRATION")
    shell.program("pytest", 'msgctl -q balance --json > /dev/null && echo "$MSGCTL_BASE_URL"')
    code, printed = shell.run(command, "sh")
    assert (code, printed.startswith("http://127.0.0.1:")) == (0, True)


def test_the_daily_job_can_be_repeated(shell: Shell, tmp_path: Path) -> None:
    _, _, command = recipe("A JOB EVERY DAY ON KUBERNETES").partition("[sh, -c, '")
    command = command.partition("']")[0].replace("/data", shlex.quote(str(tmp_path)))
    (tmp_path / "today.csv").write_text("phone,name\n573001234567,Ana\n", encoding="utf-8")
    assert [shell.run(" ".join(command.split()))[0] for _ in range(2)] == [0, 0]
    received = json.loads(shell.run("msgctl -q sandbox inbox --json")[1])
    assert [each["text"] for each in received] == ["Hello Ana"]


def test_the_login_accepts_the_right_code(shell: Shell) -> None:
    for code, verdict in (("", "Welcome"), ("1", "Access denied")):
        script = recipe("A LOGIN WITH A CODE")
        child = pexpect.spawn("sh", ["-c", script], env=shell.environment, timeout=PATIENCE, encoding="utf-8")
        child.expect_exact("Phone number: ")
        child.sendline("573001234567")
        child.expect_exact("Code: ")
        child.sendline(code or shell.run(READ_CODE)[1].split()[-1])
        child.expect_exact(verdict)
        child.expect(pexpect.EOF)
        child.close()


def test_the_login_denies_access_if_the_service_is_not_reached(shell: Shell) -> None:
    shell.unreachable()
    script = f"printf '573001234567\\n' | {{ {recipe('A LOGIN WITH A CODE')} }}"
    assert shell.run(script, "sh")[1].endswith("Access denied\n")
