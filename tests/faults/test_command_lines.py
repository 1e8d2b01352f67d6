"""Any command line: a documented exit code, no traceback, nothing raw on the terminal, no forbidden request."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from contract.requests import faults
from faults.command_lines import command_lines
from support.examples import write_files
from support.files import table, write_config
from support.names import know_no_names
from support.runs import ended_well
from support.service import Service, respond
from support.tool import Tool

MAX_SLEEPS = 20
"""Pauses after which a user presses Ctrl-C."""
OUTSIDE = {"sandbox", "api"}
"""Groups and commands that are not limited to the API: a served sandbox, and any request."""
READS = ("/balance", "/messages-state", "/url/short-statistic")
READABLE = {"id": "m1", "status": "7", "state": "delivered", "urlShort": "https://s.example/1"}
"""A response that is readable as any record."""


@pytest.fixture
def kept(service: Service, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files and the job that examples are about, a profile that leads to the server, and a used sandbox."""
    home = tmp_path / "home"
    home.mkdir()
    for name, value in {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_STATE_HOME": home / "state"}.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(home)
    monkeypatch.setenv("PATH", "")  # what is stored as a key command is run by a shell
    monkeypatch.setattr(getpass, "getpass", lambda _: "typed")
    monkeypatch.setattr(asyncio, "run", lambda serving: serving.close())  # a server is stopped at once
    know_no_names(monkeypatch)
    service.always(respond(READABLE))
    write_files(home)
    write_config(f'default_profile = "main"\n{table("main", base_url=service.base_url)}')
    assert tool("-p", "sandbox", "sms", "send", "573001234567", "-m", "Hola").code == 0
    assert tool("-p", "sandbox", "url", "shorten", "https://a.example", "--name", "x").code == 0
    return Path(shutil.copytree(home, tmp_path / "kept"))


@settings(max_examples=80, suppress_health_check=[*HealthCheck], print_blob=True)
@given(line=command_lines())
def test_any_command_line_ends_with_an_exit_code(
    line: tuple[list[str], bytes | None], kept: Path, service: Service, tool: Tool
) -> None:
    arguments, stdin = line
    home = kept.with_name("home")
    shutil.rmtree(home)
    shutil.copytree(kept, home)
    os.chdir(home)
    service.received.clear()
    patience = iter(range(MAX_SLEEPS))

    def sleep(seconds: float) -> None:
        tool.clock.sleep(seconds)
        if next(patience, None) is None:
            raise KeyboardInterrupt

    outcome = tool(*arguments, stdin=stdin, sleep=sleep)
    has_no_command = "exec" in arguments and outcome.code == 127  # of `sandbox exec`, as in a shell
    assert ended_well(2 if has_no_command else outcome.code, outcome.out, outcome.err)
    if OUTSIDE.isdisjoint(arguments):
        assert [fault for each in service.received for fault in faults(each)] == []
        if outcome.code in (2, 3):
            assert [each.path for each in service.received if not each.path.endswith(READS)] == []
