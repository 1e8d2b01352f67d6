"""The sandbox in place of the network: requests and responses pass through unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from msgctl.sandbox.emulator import BASE_URL, Emulator, SandboxTransport
from msgctl.storage import files
from support.sandbox import Sandbox

from .world import Controls


def test_a_finished_run_leaves_no_file_open(sandbox: Sandbox) -> None:
    sandbox.done("balance")
    path = files.state("sandbox.sqlite3")
    # SQLite removes its log with the last connection.
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


# --- as an httpx transport

ACCOUNT = {"client": "1", "key": "sandbox"}


@pytest.fixture
def client(emulator: Emulator) -> Iterator[httpx.Client]:
    with httpx.Client(transport=SandboxTransport(emulator), base_url=BASE_URL) as client:
        yield client


@pytest.mark.parametrize("fault", ["drop", "reject", "truncate", "garbage"])
def test_a_broken_response_is_a_protocol_error(fault: str, client: httpx.Client, emulator: Emulator) -> None:
    Controls(emulator).fault(fault)
    with pytest.raises(httpx.RemoteProtocolError):
        client.get("/balance", params=ACCOUNT)


def test_a_delay_longer_than_the_timeout_is_a_timeout(client: httpx.Client, emulator: Emulator) -> None:
    Controls(emulator).fault("delay=3600")
    with pytest.raises(httpx.ReadTimeout):
        client.get("/balance", params=ACCOUNT, timeout=0.05)
