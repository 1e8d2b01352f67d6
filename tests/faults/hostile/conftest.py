"""A hostile server, and the command lines that make requests to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import KEY
from support.examples import write_files
from support.request_lines import Line, request_lines
from support.service import Service, running


@pytest.fixture(scope="session")
def server() -> Iterator[Service]:
    with running() as service:
        yield service


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("requests")


@pytest.fixture(scope="session")
def lines(server: Service, directory: Path) -> list[Line]:
    """A line for every command that makes a request."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            patch.setenv(variable, str(directory))
        lead_to(server.base_url, patch)
        patch.chdir(directory)
        write_files(directory)
        return request_lines(server.base_url)


@pytest.fixture(autouse=True)
def work(server: Service, lines: list[Line], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory of the files that the lines read, and the environment that points to the server."""
    lead_to(server.base_url, monkeypatch)
    monkeypatch.chdir(directory)


def lead_to(base_url: str, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("MSGCTL_BASE_URL", base_url)
    patch.setenv("MSGCTL_CLIENT", "12345")
    patch.setenv("MSGCTL_KEY", KEY)
