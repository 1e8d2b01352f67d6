"""Fixtures of all tests: separate directories, an environment without msgctl's variables, the tool, a server."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme
from hypothesis import settings

from support.sandbox import Sandbox
from support.service import Service, respond, running
from support.tool import Tool

if TYPE_CHECKING:
    from support.postgres import Cluster

MEMORY = Path("/dev/shm")
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 2**30:
    # SQLite waits for the disk at every commit: on a disk, the tests take half as long again.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# Processes start in half the time, and later runs at once, if what Python compiles is kept.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A slow machine may need more time. More examples found nothing: each run has new ones.
settings.register_profile("any machine", deadline=None, max_examples=50)
settings.load_profile("any machine")

KEY = "k3y/with +awkward&chars=%é\"'\\"
"""A key that looks different in a URL, in a form, in JSON, in HTML and in a shell."""


SHARED = "TEST_SHARED"
"""The variable with the directory of the PostgreSQL server that all test processes share; its path is short."""


@pytest.hookimpl(wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Run two processes per processor, because tests spend a third of the time waiting."""
    return 2 * (yield)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        os.environ[SHARED] = tempfile.mkdtemp(prefix="msgctl-tests-", dir="/tmp")


def pytest_collection_finish() -> None:
    """Keep what was imported out of every garbage collection, which would visit it, and copy it in forked processes.

    Tests leave little garbage, so that collections may be rare.
    """
    gc.freeze()
    gc.set_threshold(100_000, 50)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        from support.postgres import Cluster

        directory = Path(os.environ[SHARED])
        Cluster(directory).stop()
        shutil.rmtree(directory)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line about the tests that were skipped: their reasons, each with its number of tests."""
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in terminalreporter.getreports("skipped"))
    if reasons:
        numbers = ", ".join(f"{reason} ({number})" for reason, number in sorted(reasons.items()))
        terminalreporter.write_line(f"Skipped: {numbers}")


@pytest.fixture(autouse=True, scope="session")
def heeded_signals() -> Iterator[None]:
    """Let processes that tests start react to Ctrl-C, even if a shell runs the tests in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before[0])
    signal.signal(signal.SIGHUP, before[1])


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep configuration and state in a directory of the test, without settings of this machine."""
    for variable in os.environ:
        if variable.startswith("MSGCTL_") or variable.lower().endswith("_proxy"):
            monkeypatch.delenv(variable)
    for variable in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def tool() -> Tool:
    return Tool()


@pytest.fixture
def sandbox(tool: Tool) -> Sandbox:
    return Sandbox(tool)


@pytest.fixture
def server() -> Iterator[Service]:
    """A server that responds with a balance by default; no setting points to it."""
    with running() as service:
        service.always(respond({"status": 7}))
        yield service


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A server, and the environment that points to it."""
    with running() as server:
        monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
        monkeypatch.setenv("MSGCTL_CLIENT", "12345")
        monkeypatch.setenv("MSGCTL_KEY", KEY)
        yield server


@pytest.fixture(scope="session")
def cluster(worker_id: str) -> Cluster:
    """The PostgreSQL server that all test processes share, with a separate database for this process."""
    from support.postgres import shared

    return shared(Path(os.environ[SHARED]), worker_id)


@pytest.fixture
def postgres(cluster: Cluster) -> Cluster:
    """A PostgreSQL server whose database has an empty store; no setting points to it."""
    cluster.clear()
    return cluster


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """An authority that signs certificates; this machine trusts it with `trusted`."""
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
