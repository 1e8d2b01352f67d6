"""`msgctl sandbox exec`: a command beside a served sandbox."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.files import write_config
from support.tool import Tool

MSGCTL = f"{sys.executable} -m msgctl"
PATIENCE = 60.0


def execute(script: str, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script beside a sandbox."""
    command = [sys.executable, "-m", "msgctl", "sandbox", "exec", *options, "--", "sh", "-c", script]
    environ = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environ, check=False)


def test_the_command_reaches_a_sandbox_and_no_records_of_the_user(home: Path) -> None:
    write_config('default_profile = "main"\n[profiles.main]\nbase_url = "https://service.example/api/v1"\n')
    script = f"""
        {MSGCTL} sms send 573001234567 -m Hola --once a-key --json > /dev/null
        {MSGCTL} sandbox inbox -o tsv --no-header --fields text
        {MSGCTL} balance -o tsv --no-header
        echo "$MSGCTL_CLIENT $MSGCTL_KEY $MSGCTL_STORE ${{MSGCTL_PROFILE-none}}"
    """
    for _ in range(2):  # with the same key
        done = execute(script, "--client", "77", "--key", "made-up", "--credits", "5", MSGCTL_PROFILE="main")
        text, balance, variables = done.stdout.splitlines()
        assert (text, balance.split()[-1], done.stderr) == ("Hola", "4", "")
        client, key, store, profile = variables.split()
        assert (client, key, profile) == ("77", "made-up", "none")
        assert not Path(store).parent.exists()
    assert not (home / "state").exists()


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_it_exits_with_the_code_of_its_command(script: str, code: int) -> None:
    assert execute(script).returncode == code


def test_an_unknown_command_exits_with_127(tool: Tool) -> None:
    done = tool("sandbox", "exec", "--", "no-such-command", "--json")
    assert (done.code, done.out, '"no-such-command": No such file' in done.err) == (127, "", True)
    assert tool("sandbox", "exec").code == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on(number: int) -> None:
    name = signal.Signals(number).name.removeprefix("SIG")
    script = f"trap 'echo got {name}; exit 3' {name}; echo ready; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "msgctl", "sandbox", "exec", "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (3, f"got {name}\n")


def test_ctrl_c_ends_the_command_and_its_exit_code_counts() -> None:
    script = "trap 'exit 4' INT; echo ready; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "msgctl", "sandbox", "exec", "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 4


def test_the_options_of_serve_apply() -> None:
    done = execute(f"{MSGCTL} balance --json", "--responses", "observed", "--fault", "503:next=1:/send-sms")
    assert '"balance":"1000"' in done.stdout
