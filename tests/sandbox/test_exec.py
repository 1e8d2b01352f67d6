"""`msgctl sandbox exec`: a command beside a served sandbox."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from support import PATIENCE, forks
from support.files import write_config
from support.terminal import in_a_terminal
from support.tool import process, started

OPTIONS = ("--client", "77", "--key", "made-up", "--credits", "5", "--responses", "observed")


def test_the_command_reaches_a_sandbox_and_no_records_of_the_user(home: Path) -> None:
    write_config(
        """default_profile = "main"
        [profiles.main]
        base_url = "https://service.example/api/v1"
        client = 1
        key = "secret-key"
        """
    )
    (home / "msgctl").write_text(forks.program())
    (home / "msgctl").chmod(0o755)
    script = f"""
        PATH={home}:$PATH
        msgctl sms send 573001234567 -m Hola --once a-key --json > /dev/null
        msgctl sandbox reset --yes --json > /dev/null
        msgctl sms send 573001234567 -m Hola --once a-key --json > /dev/null
        msgctl balance --json
        msgctl -p main sms send 573001234567 -m Hola -n 2> /dev/null
        echo "$?"
        echo "$MSGCTL_CLIENT $MSGCTL_KEY $MSGCTL_STORE ${{MSGCTL_PROFILE-none}}"
        exit 7
    """
    done = process("sandbox", "exec", *OPTIONS, "--", "sh", "-c", script, env={"MSGCTL_PROFILE": "main"})
    balance, code, variables = done.out.splitlines()
    assert (done.code, done.err, '"balance":"4"' in balance, code) == (7, "", True, "3")
    client, key, store, profile = variables.split()
    assert (client, key, profile) == ("77", "made-up", "none")
    assert not Path(store).parent.exists()
    assert not (home / "state").exists()


# Not `echo ready; sleep 600`: a shell that gets SIGINT just before it starts sleep waits for all of sleep.
IN_A_SHELL = f"""'{sys.executable}' -c "import time; print('ready', flush=True); time.sleep(600)" 2> /dev/null"""


@pytest.mark.parametrize(
    ("number", "then", "code"),
    [
        (signal.SIGTERM, "trap 'exit 3' TERM", 3),
        (signal.SIGHUP, "trap '' TERM", 128 + signal.SIGHUP),
        (signal.SIGINT, "trap 'exit 4' INT", 4),
        (signal.SIGINT, "", 128 + signal.SIGINT),
        (signal.SIGINT, IN_A_SHELL, 128 + signal.SIGINT),
    ],
)
def test_a_signal_reaches_the_command_and_its_exit_code_is_returned(number: int, then: str, code: int) -> None:
    script = f"{then}\necho ready; while :; do sleep 0.05; done"
    command = [sys.executable, "-m", "msgctl", "sandbox", "exec", "--", "sh", "-c", script]
    with started(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(number)
        child.communicate(timeout=PATIENCE)
    assert child.returncode == code


@in_a_terminal
def test_ctrl_c_in_a_terminal_reaches_the_command_once() -> None:
    count = (
        "import signal, time; n = []; signal.signal(signal.SIGINT, lambda *_: n.append(1)); print('ready', flush=True)"
    )
    script = f"{count}\nwhile not n: time.sleep(0.01)\ntime.sleep(0.5); raise SystemExit(len(n))"
    command = ["-m", "msgctl", "sandbox", "exec", "--", sys.executable, "-c", script]
    terminal = pexpect.spawn(sys.executable, command, timeout=PATIENCE)
    terminal.expect("ready")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 1
