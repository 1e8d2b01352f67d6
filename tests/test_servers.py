"""The page for servers: its units, scripts and commands work as written."""

from __future__ import annotations

import re
import shlex
import sqlite3
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import KEY
from msgctl.reference import manual
from msgctl.testing import sandbox
from support import PATIENCE
from support.postgres import FLEET_USER, SUPERUSER, Cluster, running
from support.postgres import program as server_program
from support.programs import program
from support.shell import Shell

PAGE = manual.part("servers")
BLOCK = r"((?:    .*\n|\n)+)"


def blocks(title: str) -> list[str]:
    """Return the code of a section of the page, one text per block."""
    section = re.split(r"\n#+ ", PAGE.partition(f"# {title}\n")[2])[0]
    return [textwrap.dedent(text).strip() + "\n" for text in re.findall(rf"\n\n{BLOCK}", section)]


def write_units(directory: Path) -> list[Path]:
    """Write the units of the page below a directory, with a command that exists. Return the units, without drop-ins."""
    command = directory / "msgctl"
    command.write_text("#!/bin/sh\n", encoding="utf-8")
    command.chmod(0o755)
    units = []
    for name, text in re.findall(rf"`/etc/systemd/system/(\S+)`(?:(?!\n\n)[\s\S])*:\n\n{BLOCK}", PAGE):
        path = directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text).replace("/usr/local/bin/msgctl", str(command)), encoding="utf-8")
        if path.parent == directory:
            units.append(path)
    return units


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [program("systemd-analyze"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_systemd_accepts_the_units_and_finds_them_hardened(tmp_path: Path) -> None:
    units = write_units(tmp_path)
    assert [unit.name for unit in units] == ["msgctl-run-due.service", "msgctl-run-due.timer", "msgctl-alarm@.service"]
    checked = analyze("verify", *units)
    assert (checked.returncode, checked.stderr) == (0, "")
    for unit in units:
        if unit.suffix == ".service":
            assert analyze("security", "--offline=yes", "--threshold=20", unit).returncode == 0


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    del shell.variables["MSGCTL_PROFILE"]
    shell.variables |= {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / ".local" / "state")}
    return shell


def test_monitoring_reports_credits_jobs_unknown_recipients_and_faults(shell: Shell, tmp_path: Path) -> None:
    (problems,), (prometheus,), (nagios,) = blocks("MONITORING"), blocks("Prometheus"), blocks("Nagios")
    prometheus = prometheus.replace("/var/lib/prometheus/node-exporter/", "") + "cat msgctl.prom"
    program("jq")
    (tmp_path / "list.csv").write_text("phone\n573001234567\n573007654321\n", encoding="utf-8")
    with sandbox() as service:
        shell.variables |= {**service.variables, "MSGCTL_STORE": str(tmp_path / "store.sqlite3")}
        assert shell.run(nagios, "sh") == (0, "OK: 1000 credits | credits=1000;;100:\n")
        shell.run("msgctl sms bulk list.csv -m One --at 23:59 --yes")
        with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as db, db:
            db.execute("UPDATE job SET due = due - 2 * 86400000")
        shell.run("msgctl sms bulk list.csv -m Two --canary 1 --yes")
        service.fault("drop:next=1:/send-sms")
        shell.run("msgctl sms bulk list.csv -m Three --batch-size 1 --concurrency 1 --yes")
        paused, overdue = "1 paused job with 1 pending recipient", "1 job is overdue"
        printed = shell.run(problems, "sh")[1]
        assert [line.partition(":")[0] for line in printed.splitlines()] == [paused, overdue]
        code, printed = shell.run(nagios, "sh")
        assert (code, printed.startswith(f"WARNING: {paused}"), "| credits=997;;100:" in printed) == (1, True, True)
        metrics = shell.run(prometheus, "sh")[1].splitlines()
        for name in ("jobs_paused 1", "jobs_overdue 1", "recipients_unknown 1", "up 1", "credits 997"):
            assert f"msgctl_{name}" in metrics
        faults = [line for line in metrics if line.endswith(" 0")]
        assert faults == ['msgctl_check{check="jobs"} 0', 'msgctl_check{check="run-due"} 0']

        shell.run("msgctl sandbox credit 5")
        shell.variables["MSGCTL_STORE"] = "/dev/null/store.sqlite3"
        assert shell.run(nagios, "sh") == (2, "CRITICAL: 5 credits | credits=5;;100:\n")
        metrics = shell.run(prometheus, "sh")[1].splitlines()
        assert 'msgctl_check{check="store"} 0' in metrics
        assert [line for line in metrics if "_jobs_" in line] == []


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A server of its own, because the names of roles and databases are those of the page."""
    with running() as cluster:
        yield cluster


def test_a_store_moves_to_a_database_with_a_role_per_machine_and_is_backed_up(
    shell: Shell, cluster: Cluster, tmp_path: Path
) -> None:
    for name in ("createuser", "createdb", "psql", "pg_dump", "pg_restore"):
        shell.program(name, f'PGPASSWORD={shlex.quote(KEY)} {server_program(name)} --username {SUPERUSER} "$@"')
    program("sqlite3")
    shell.variables |= {"PGHOST": "127.0.0.1", "PGPORT": str(cluster.port), "PGPASSWORD": "a-secret"}

    def run(*lines: str) -> str:
        text = "\n".join(lines).replace("--pwprompt ", "")  # it prompts on the terminal
        text = text.replace("msgctl@db.example", f"{FLEET_USER}@127.0.0.1:{cluster.port}")
        code, printed = shell.run(text, "sh")
        assert code == 0, printed
        return printed

    optouts = "msgctl optout list -o tsv --no-header --fields phone"
    run("echo a-secret | msgctl profile add main --base-url http://127.0.0.1:9/api/v1 --client 1 --key-stdin")
    run("msgctl optout add 573001234567")
    create, roles = blocks("A database for several machines")
    (move,) = blocks("From one machine to many")
    backup, restore = (block.splitlines() for block in blocks("Back up and restore"))
    run(create, roles)
    cluster.admin(f"ALTER ROLE {FLEET_USER} PASSWORD 'a-secret'", database="postgres")
    run(*backup[:2], "msgctl optout add 573007654321", *restore[:2])
    assert run(optouts) == "573001234567\n"
    run(move)
    assert run(optouts) == "573001234567\n"
    run(backup[0], backup[2], "msgctl optout add 573007654321", restore[2])
    assert run(optouts) == "573001234567\n"
    files = ("store.backup", "store.dump", ".local/state/msgctl/store.sqlite3")
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in files} == {0o600}
