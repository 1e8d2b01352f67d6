"""The page for servers: its units, scripts and commands work as written."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from conftest import KEY
from msgctl.reference import manual
from msgctl.testing import sandbox
from support import PATIENCE
from support.postgres import FLEET_USER, SUPERUSER, Cluster
from support.postgres import program as server_program
from support.programs import program
from support.shell import Shell

ROOT = Path(__file__).parent.parent
PAGE = manual.part("servers")
BLOCK = r"((?:    .*\n|\n)+)"


def blocks(title: str) -> list[str]:
    """Return the code of a section of the page, one text per block."""
    section = re.split(r"\n#+ ", PAGE.partition(f"# {title}")[2])[0]
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


def command_of(unit: str) -> str:
    """Return the command of a unit of the page, as systemd runs it, in a shell."""
    text = PAGE.partition(f"`/etc/systemd/system/{unit}`")[2].replace("\\\n", "").replace("/usr/local/bin/", "")
    command: str = re.findall("^ +ExecStart=(.*)", text, re.MULTILINE)[0]
    for written, value in {"%S": "$HOME", "%i": "x.service", "%H": "host", "$$": "$", "%%": "%"}.items():
        command = command.replace(written, value)
    return command


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [program("systemd-analyze"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


def test_systemd_accepts_the_units_and_finds_them_hardened(tmp_path: Path) -> None:
    units = write_units(tmp_path)
    assert [unit.name for unit in units] == [
        "msgctl-run-due.service",
        "msgctl-run-due.timer",
        "msgctl-alarm@.service",
        "msgctl-check.service",
        "msgctl-check.timer",
        "msgctl-night.service",
        "msgctl-night.timer",
    ]
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
    check = command_of("msgctl-check.service")
    prometheus = prometheus.replace("/var/lib/prometheus/node-exporter/", "") + "cat msgctl.prom"
    program("jq")
    (tmp_path / "list.csv").write_text("phone\n573001234567\n573007654321\n", encoding="utf-8")
    with sandbox() as service:
        shell.variables |= {**service.variables, "MSGCTL_STORE": str(tmp_path / "store.sqlite3")}
        assert shell.run(nagios, "sh") == (0, "OK: 1000 credits | credits=1000;;100:\n")
        assert shell.run(check, "sh")[0] == 0
        shell.run("msgctl sms bulk list.csv -m One --at 23:59 --yes")
        with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as db, db:
            db.execute("UPDATE job SET due = due - 2 * 86400000")
        shell.run("msgctl sms bulk list.csv -m Two --canary 1 --yes")
        service.fault("drop:next=1:/send-sms")
        shell.run("msgctl sms bulk list.csv -m Three --batch-size 1 --concurrency 1 --yes")
        paused, overdue = "1 paused job with 1 pending recipient", "1 job is overdue"
        printed = shell.run(problems, "sh")[1]
        assert [line.partition(":")[0] for line in printed.splitlines()] == [paused, overdue]
        code, printed = shell.run(check, "sh")
        assert (code, paused in printed) == (1, True)
        code, printed = shell.run(nagios, "sh")
        assert (code, printed.startswith(f"WARNING: {paused}"), "| credits=997;;100:" in printed) == (1, True, True)
        metrics = shell.run(prometheus, "sh")[1].splitlines()
        for name in ("jobs_paused 1", "jobs_overdue 1", "recipients_unknown 1", "up 1", "credits 997"):
            assert f"msgctl_{name}" in metrics
        faults = [line for line in metrics if line.endswith(" 0")]
        assert faults == ['msgctl_check{check="jobs"} 0', 'msgctl_check{check="run-due"} 0']

        shell.variables["MSGCTL_STORE"] = "/dev/null/store.sqlite3"
        code, printed = shell.run(nagios, "sh")
        assert (code, printed.startswith("CRITICAL: Cannot use the store")) == (2, True)
        shell.variables["MSGCTL_STORE"] = str(tmp_path / "store.sqlite3")
        shell.run("msgctl sandbox credit 5")
        code, printed = shell.run(check, "sh")
        assert (code, paused in printed, "balance check failed" in printed) == (1, True, True)
        shell.variables["MSGCTL_STORE"] = "/dev/null/store.sqlite3"
        assert shell.run(nagios, "sh") == (2, "CRITICAL: 5 credits | credits=5;;100:\n")
        code, printed = shell.run(f"MSGCTL_KEY=a-wrong-key\n{nagios}", "sh")
        assert (code, printed.startswith("UNKNOWN: Error: ")) == (3, True)
        metrics = shell.run(prometheus, "sh")[1].splitlines()
        assert 'msgctl_check{check="store"} 0' in metrics
        assert [line for line in metrics if "_jobs_" in line] == []


def test_the_alarm_has_its_own_store_and_says_what_failed_once(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "msgctl").mkdir()
    with sandbox() as service:
        shell.variables |= {**service.variables, "MSGCTL_STORE": "/dev/null/store.sqlite3"}
        command = command_of("msgctl-alarm@.service")
        assert [shell.run(command, "sh")[0] for _ in range(2)] == [0, 0]
        assert [message["text"] for message in service.inbox("573001234567")] == ["x.service failed on host"]
    assert (tmp_path / "msgctl" / "alarms.sqlite3").exists()


def test_a_list_of_the_night_is_only_scheduled_for_the_same_day(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("phone,name\n573001234567,Ana\n", encoding="utf-8")
    shell.program("date", "echo 2026-11-26")
    with sandbox() as service:
        shell.variables |= service.variables
        code, printed = shell.run(f"{command_of('msgctl-night.service')} < list.csv", "sh")
    assert (code, "--at 2026-11-26 09:00" in printed) == (2, True)


@pytest.fixture
def names(cluster: Cluster) -> Iterator[Cluster]:
    """A server on which the names of the page may be used."""
    with cluster.lending_names():
        yield cluster


def test_a_store_moves_to_a_database_with_a_role_per_machine_and_is_backed_up(
    shell: Shell, names: Cluster, tmp_path: Path
) -> None:
    for name in ("createuser", "createdb", "psql", "pg_dump", "pg_restore"):
        shell.program(name, f'PGPASSWORD={shlex.quote(KEY)} {server_program(name)} --username {SUPERUSER} "$@"')
    program("sqlite3")
    shell.variables |= {"PGHOST": "127.0.0.1", "PGPORT": str(names.port), "PGPASSWORD": "a-secret"}

    def run(*lines: str) -> str:
        text = "\n".join(lines).replace("--pwprompt ", "")  # it prompts on the terminal
        text = text.replace("msgctl@db.example", f"{FLEET_USER}@127.0.0.1:{names.port}")
        code, printed = shell.run(text, "sh")
        assert code == 0, printed
        return printed

    optouts = "msgctl optout list -o tsv --no-header --fields phone"
    run("echo a-secret | msgctl profile add main --base-url http://127.0.0.1:9/api/v1 --client 1 --key-stdin")
    run("msgctl optout add 573001234567")
    create, roles = blocks("A database for several machines")
    (move,) = blocks("From one machine to many")
    (delete,) = blocks("Growth")
    backup, restore = (block.splitlines() for block in blocks("Back up and restore"))
    run(create, roles)
    names.admin(f"ALTER ROLE {FLEET_USER} PASSWORD 'a-secret'", database="postgres")
    run(*backup[:2], "msgctl optout add 573007654321", *restore[:2])
    assert run(optouts) == "573001234567\n"
    run(move)
    assert run(optouts) == "573001234567\n"
    run(backup[0], backup[2], "msgctl optout add 573007654321", restore[2])
    assert run(optouts) == "573001234567\n"
    files = ("store.backup", "store.dump", ".local/state/msgctl/store.sqlite3")
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in files} == {0o600}
    run(delete)
    assert list((tmp_path / ".local" / "state" / "msgctl").iterdir()) == []
    assert run(optouts) == ""


@pytest.mark.slow
def test_every_way_to_install_msgctl_works_and_keeps_the_extras(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(".*"))
    for name in ("local/bin", "opt", "home"):
        (tmp_path / name).mkdir(parents=True)
    paths = [tmp_path / name for name in ("home/.local/bin", "tools/bin", "local/bin")]
    search = ":".join([*map(str, paths), os.environ["PATH"]])
    # Without the variable, uv would trust only its own certificates.
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "PATH": search, "UV_SYSTEM_CERTS": "true"}
    directories = {"/opt": "opt", "/usr/local": "local", "/src": "checkout"}

    def run(*lines: str) -> None:
        script = "\n".join(lines)
        for directory, name in directories.items():
            script = re.sub(rf"(?<![\w/.]){directory}(?=[/ \[])", str(tmp_path / name), script)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=checkout, env=environment, capture_output=True, check=False
        )
        assert done.returncode == 0, (script, done.stdout, done.stderr)

    run(f"{sys.executable} -m venv {tmp_path / 'tools'}", f"{tmp_path / 'tools'}/bin/pip install -q pipx uv")
    (paths[1] / "man").write_text('#!/bin/sh\ntest -e "$2/man$3/$4.$3"\n')
    (paths[1] / "man").chmod(0o755)
    pipx, uv, venv, pip = blocks("For one user")[0].splitlines()
    upgrade_pipx, upgrade_uv, upgrade_pip = blocks("Upgrade")[0].splitlines()
    man_uv, man_pip = blocks("Manual pages")[0].splitlines()
    remove_pipx, remove_uv, *remove = blocks("Uninstall")[0].splitlines()
    extras = "-c 'import holidays, psycopg, xlsxwriter'"

    run(pipx, upgrade_pipx, f'"$(pipx environment --value PIPX_LOCAL_VENVS)"/msgctl/bin/python {extras}', remove_pipx)
    run(uv, upgrade_uv, f'"$(uv tool dir)"/msgctl/bin/python {extras}', man_uv, remove_uv)
    run(venv, pip, f"~/.local/msgctl/bin/python {extras}")
    collect, install = blocks("Without a network")
    run(collect, install.replace("pip install", "pip install --quiet"), f"/opt/msgctl/bin/python {extras}")
    run("rm -r /opt/msgctl", *blocks("For all users"), upgrade_pip, man_pip, "msgctl --version")
    assert (tmp_path / "local/share/man/man7/msgctl-servers.7").is_file()
    run(*remove)
    assert [path for path in (tmp_path / "local").rglob("*") if not path.is_dir()] == []
    dockerfile = blocks("In a container")[0].splitlines()
    assert len(dockerfile) == 10
    run(*(line.removeprefix("RUN ") for line in dockerfile if "RUN python" in line or "RUN /opt" in line))
    run("/opt/msgctl/bin/msgctl --version")


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="creates files of other users")
def test_a_service_user_needs_no_home(shell: Shell, tmp_path: Path) -> None:
    account = 61234
    # The user may read the interpreter, wherever it is, but no more than others may it write.
    rights = "--inh-caps +dac_read_search --ambient-caps +dac_read_search"
    become = f"{program('setpriv')} --reuid {account} --regid {account} --clear-groups {rights}"
    shell.start_python()
    shell.program("useradd", ":")
    shell.program("runuser", f'shift 3; exec {become} env -u HOME -u XDG_STATE_HOME "$@"')
    prepare, check = blocks("For a service user")
    prepare = re.sub("(-[go] |root:)msgctl", rf"\g<1>{account}", prepare)
    prepare = prepare.replace("--client 12345", "--client 12345 --key-stdin < key")
    (tmp_path / "key").write_text("a-secret\n")
    for name in ("etc", "var/lib"):
        (tmp_path / name).mkdir(parents=True)
        prepare, check = (text.replace(f"/{name}/", f"{tmp_path}/{name}/") for text in (prepare, check))
    with sandbox(client=12345, key="a-secret") as service:
        prepare = prepare.replace("https://service.example/api/v1", service.base_url)
        code, printed = shell.run(f"umask 077\n{prepare}\n{check}")
        assert (code, "accepted; 1,000 credits left" in printed) == (0, True), printed
        code, printed = shell.run(check.replace("doctor", "job run-due"))
        assert code == 0, printed
