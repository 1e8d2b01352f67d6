"""The recipes of the manual work, and none of them loses an alarm if something is wrong."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from msgctl.reference import manual
from msgctl.testing import sandbox
from support import PATIENCE
from support.disks import mounted
from support.service import respond, running
from support.shell import Shell

PAGES = manual.part("recipes") + manual.part("servers")
PHONES = "msgctl sandbox inbox -o csv --fields phone"
READ_CODE = "msgctl sandbox inbox -o tsv --fields code"
NO_WRITES = "trap '' XFSZ; ulimit -f 0"
"""Prevents writes, where no disk can be mounted and filled."""


def recipe(title: str) -> str:
    """Return the script of a section."""
    section = re.split(r"\n#+ ", PAGES.partition(f"# {title}\n")[2])[0]
    lines = [line for line in section.splitlines() if line.startswith("    ")]
    return textwrap.dedent("\n".join(lines)) + "\n"


def crontab(title: str) -> list[str]:
    """Return the commands of the lines of a crontab in a section, as cron runs them; msgctl is on the PATH of tests."""
    lines = re.findall(r"^(?:@\w+|[0-9*]+(?: [0-9*]+){4}) (?:~/.local/bin/)?(.*)", recipe(title), re.MULTILINE)
    return [line.replace(r"\%", "%") for line in lines]


def daily_job() -> str:
    """Return the command of the job on Kubernetes, with a file in this directory."""
    command = recipe("A JOB EVERY DAY ON KUBERNETES").partition("[sh, -c, '")[2].partition("']")[0]
    return " ".join(command.split()).replace("/data", ".") + "\n"


(BALANCE,) = crontab("AN ALARM FOR LOW CREDITS")
DISK = recipe("AN ALARM FOR A FULL DISK")
LOGIN = recipe("A LOGIN WITH A CODE")
RUN_DUE, CLEAR = crontab("SCHEDULED JOBS AND OLD RECORDS")
REQUEST = recipe("SCHEDULED JOBS AND OLD RECORDS").splitlines()[-1]
METRICS = "test ! -f msgctl.prom || grep -E '_(up|credits) ' msgctl.prom"
SCRIPTS = {
    "balance": BALANCE,
    "disk": DISK,
    "prometheus": recipe("Prometheus").replace("/var/lib/prometheus/node-exporter/", "") + METRICS,
    "nagios": recipe("Nagios"),
    "daily job": daily_job(),
    "login": f"printf '573001234567\\n' | {{ {LOGIN} }}",
}


SHOWN = r"^(?:Phone number: )?((?:Error|[A-Z]+): .*|slept|If no.*|Access.*|msgctl_.*)$"
RETRY = "If no SMS arrived, run this script with --resend-unknown"
UNAUTHORIZED = "The service refused the request (401): 1: Unauthorized"
NO_CONNECTION = "Cannot connect to HOST: Connection refused; nothing was sent"
STATUS_503 = "response has status 503 without a message"
PENDING = "0 of 1 recipient accepted, 1 pending"

FAULTS = {
    "refused": (
        respond({"error": 1, "msg": "Unauthorized"}, 401),
        (1, UNAUTHORIZED),
        (1, f"{UNAUTHORIZED}; nothing was sent"),
        (1, f"{UNAUTHORIZED}. {PENDING}"),
    ),
    "no certain response": (
        respond(status=503),
        (4, f"The {STATUS_503}"),
        (5, f"The request was sent, but the {STATUS_503}; it may have been carried out"),
        (6, "0 of 1 recipient accepted, 1 unknown"),
    ),
    "no connection": (None, (4, NO_CONNECTION), (4, NO_CONNECTION), (4, f"{NO_CONNECTION}, and no job was created")),
}
"""For each fault: the behaviour of the service, and the exit code and error of a read, a send and a job.

Recipes see only exit codes. Other faults have those of one of these.
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return prepared(tmp_path)


def prepared(directory: Path) -> Shell:
    """Return a shell in which the disk seems almost full, and ``sleep`` returns immediately."""
    shell = Shell(directory)
    shell.variables |= {"HOME": str(directory), "XDG_STATE_HOME": str(directory / "state")}
    shell.program("df", "printf 'Filesystem\\n/dev/sda1 1 1 1 95%% /\\n'")
    shell.program("sleep", "echo slept")
    (directory / "today.csv").write_text("phone,name\n573001234567,Ana\n", encoding="utf-8")
    return shell


def results(shell: Shell, before: str = ":") -> dict[str, tuple[int, list[str]]]:
    """Run every recipe after a line of shell code. Return its exit code, and the lines of cron's mail except hints."""
    done = {}
    for name, script in SCRIPTS.items():
        code, printed = shell.run(f"{before}\n{script}", "sh")
        lines = re.findall(SHOWN, printed, re.MULTILINE)
        done[name] = (code, [re.sub(r"127\.0\.0\.1:\d+", "HOST", line) for line in lines])
    return done


@contextmanager
def faulty_service(shell: Shell, fault: str) -> Iterator[None]:
    with running() as service:
        shell.unreachable()
        behaviour = FAULTS[fault][0]
        if behaviour is not None:
            service.always(behaviour)
            shell.variables["MSGCTL_BASE_URL"] = service.base_url
        yield


@pytest.mark.parametrize("fault", FAULTS)
def test_recipes_report_every_fault_with_the_right_exit_code(shell: Shell, fault: str) -> None:
    _, (read, unread), (sent, send), (job, ended) = FAULTS[fault]
    disk = [f"Error: {send}"]
    if sent == 4:
        disk = [f"Error: {send}", "slept"] * 3
    elif sent == 5:
        disk.append(RETRY)
    with faulty_service(shell, fault):
        assert results(shell) == {
            "balance": (read, [f"Error: {unread}"]),
            "disk": (sent, disk),
            "prometheus": (0, [f"Error: {unread}", "msgctl_up 0"]),
            "nagios": (3, [f"UNKNOWN: Error: {unread}"]),
            "daily job": (job, [f"Error: {ended}"]),
            "login": (1, [f"Error: {send}", "Access denied"]),
        }


def test_recipes_report_a_full_disk_and_delete_old_metrics(tmp_path: Path) -> None:
    with sandbox(credits=99) as service, ExitStack() as stack:
        before = ":"
        try:
            disk = stack.enter_context(mounted(tmp_path / "disk", "1m"))
        except pytest.skip.Exception:
            before = NO_WRITES
        shell = prepared(tmp_path / "disk")
        del shell.variables["MSGCTL_PROFILE"]
        shell.variables |= {**service.variables, "MSGCTL_STORE": str(tmp_path / "disk" / "store.sqlite3")}
        (tmp_path / "disk" / "msgctl.prom").write_text("msgctl_up 1\n")
        if before == ":":
            disk.fill()
        else:
            shell.start_python()
        done = results(shell, before)
        no_space = "Error: Cannot use the store {}: database or disk is full; nothing was sent"
        if before != ":":
            no_space = no_space.replace("database or disk is full", "disk I/O error")
        no_store = no_space.format("~/store.sqlite3")
        assert done == {
            "balance": (6, ["Error: 99 credits left, fewer than 100"]),
            "disk": (3, [no_space.format("~/.local/state/msgctl/alarms.sqlite3")]),
            "prometheus": (0, [no_store.removesuffix("; nothing was sent"), "Error: 1 check failed: store"]),
            "nagios": (2, ["CRITICAL: 99 credits | credits=99;;100:"]),
            "daily job": (3, [no_store]),
            "login": (1, ["Error: --code is missing; nothing was changed", "Access denied"]),
        }
        assert list((tmp_path / "disk").glob("*.prom*")) == []


def test_alarms_report_a_low_balance_even_without_a_home(shell: Shell) -> None:
    def alarms() -> list[tuple[int, str]]:
        return [shell.run(f"unset HOME\n{SCRIPTS[name]}", "sh") for name in ("balance", "prometheus", "nagios")]

    good = (0, "OK: 1000 credits | credits=1000;;100:\n")
    assert alarms() == [(0, ""), (0, "msgctl_up 1\nmsgctl_credits 1000\n"), good]
    shell.run("msgctl sandbox credit 99")
    error = "Error: 99 credits left, fewer than 100\nTop up before you send more.\n"
    low = (2, "CRITICAL: 99 credits | credits=99;;100:\n")
    assert alarms() == [(6, error), (0, "msgctl_up 1\nmsgctl_credits 99\n"), low]


def test_alarms_report_a_missing_command(shell: Shell) -> None:
    shell.program("msgctl", "echo 'msgctl: not found' >&2; exit 127")
    assert shell.run(BALANCE, "sh") == (127, "msgctl: not found\n")
    assert shell.run(DISK, "sh") == (127, "msgctl: not found\n")
    assert shell.run(SCRIPTS["prometheus"], "sh") == (0, "msgctl: not found\n" * 3 + "msgctl_up 0\n")
    assert shell.run(SCRIPTS["nagios"], "sh")[0] == 3


def test_the_disk_alarm_is_sent_if_the_database_of_other_machines_is_down(shell: Shell) -> None:
    del shell.variables["MSGCTL_PROFILE"]
    with sandbox() as service:
        shell.variables |= {**service.variables, "MSGCTL_STORE": "postgresql://msgctl@127.0.0.1:9/msgctl"}
        assert [shell.run(DISK, "sh") for _ in range(2)] == [(0, "")] * 2
        assert len(service.inbox()) == 1


def test_the_disk_alarm_is_sent_once_a_day_by_each_host(shell: Shell) -> None:
    for host in ("alpha", "alpha", "beta"):
        shell.program("uname", f"echo {host}")
        assert shell.run(DISK, "sh")[0] == 0
    assert shell.run(PHONES)[1] == "phone\n" + "573001234567\n" * 2


def test_the_disk_alarm_whose_response_is_lost_is_repeated_only_on_request(shell: Shell) -> None:
    shell.run("msgctl sandbox fault drop:next=1:/send-sms")
    for _ in range(2):
        code, printed = shell.run(DISK, "sh")
        assert (code, RETRY in printed, "slept" in printed) == (5, True, False)
    assert shell.run(PHONES)[1] == "phone\n573001234567\n"
    assert shell.run(f"set -- --resend-unknown\n{DISK}", "sh") == (0, "")
    assert shell.run(PHONES)[1] == "phone\n" + "573001234567\n" * 2


def test_cron_jobs_print_nothing_if_nothing_is_due_and_report_errors(shell: Shell) -> None:
    shell.program("curl", "echo request >> requests")
    assert shell.run(RUN_DUE, "sh") == (0, "")
    assert shell.run(CLEAR, "sh")[0] == 0
    assert shell.run(f"{RUN_DUE} {REQUEST}\ncat requests", "sh") == (0, "request\n")
    shell.variables["XDG_STATE_HOME"] = "/dev/null/state"
    for line in (RUN_DUE, CLEAR, f"{RUN_DUE} {REQUEST}"):
        code, printed = shell.run(line, "sh")
        assert (code, "Error" in printed) == (3, True)
    assert shell.run("cat requests") == (0, "request\n")


def test_the_quiet_script_of_cron_prints_all_errors_except_an_outage(shell: Shell) -> None:
    quiet = recipe("FEWER MAILS DURING AN OUTAGE").partition("* * *")[0].replace("~/.local/bin/", "")
    assert shell.run(quiet, "sh") == (0, "")
    shell.variables["MSGCTL_STORE"] = "postgresql://msgctl@127.0.0.1:9/msgctl"
    shell.unreachable()
    assert shell.run(RUN_DUE, "sh")[0] == 4
    assert shell.run(quiet, "sh") == (0, "")
    shell.variables["MSGCTL_STORE"] = "/dev/null/store.sqlite3"
    assert "Error" in shell.run(quiet, "sh")[1]


def test_the_job_of_every_night_is_created_once_and_sent_by_cron_without_mail(shell: Shell) -> None:
    (night,) = crontab("A JOB EVERY NIGHT")
    script = recipe("A JOB EVERY NIGHT").rpartition("30 2")[0]
    shell.run("mv today.csv night.csv; echo '12,Wrong' >> night.csv")
    shell.run(f"cat > night.sh << 'END'\n{script}END")
    shell.program("date", "echo 2026-12-01")
    assert [shell.run(line, "sh") for line in (night, night, RUN_DUE)] == [(0, "")] * 3
    assert shell.run("msgctl job list -o tsv --no-header --fields name,state")[1] == "night-2026-12-01\tscheduled\n"
    shell.run("sed -i 's/--at 09:00//' night.sh")
    shell.program("date", "echo 2026-12-02")
    assert [shell.run(night, "sh") for _ in range(2)] == [(0, "")] * 2
    assert shell.run(PHONES)[1] == "phone\n573001234567\n"
    shell.program("date", "echo 2026-12-03")
    shell.unreachable()
    code, printed = shell.run(night, "sh")
    assert (code, printed.count("slept")) == (4, 3)


def test_the_alarm_for_jobs_reports_a_paused_job_and_a_store_that_cannot_be_used(shell: Shell) -> None:
    (script,) = crontab("AN ALARM FOR JOBS")
    assert shell.run(script, "sh")[1] == ""
    shell.run("printf 'phone\\n573001234567\\n573007654321\\n' | msgctl sms bulk - -m Two --canary 1 --yes --name two")
    printed = shell.run(script, "sh")[1]
    assert re.fullmatch("jobs\twarning\t1 paused job .*: two\tResume: .*job resume two\n", printed)
    shell.variables["XDG_STATE_HOME"] = "/dev/null/state"
    assert "checks failed: store" in shell.run(script, "sh")[1]


def test_the_daily_job_can_be_repeated(shell: Shell) -> None:
    assert [shell.run(SCRIPTS["daily job"])[0] for _ in range(2)] == [0, 0]
    received = json.loads(shell.run("msgctl -q sandbox inbox --json")[1])
    assert [message["text"] for message in received] == ["Hello Ana"]


def test_the_login_accepts_the_right_code(shell: Shell) -> None:
    for code, verdict in (("", "Welcome"), ("1", "Access denied")):
        child = pexpect.spawn("sh", ["-c", LOGIN], env=shell.environment, timeout=PATIENCE, encoding="utf-8")
        child.expect_exact("Phone number: ")
        child.sendline("573001234567")
        child.expect_exact("Code: ")
        child.sendline(code or shell.run(READ_CODE)[1].split()[-1])
        child.expect_exact(verdict)
        child.expect(pexpect.EOF)
        child.close()
