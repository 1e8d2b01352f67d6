"""How to install an extra, for each way of installing msgctl."""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from msgctl import extras

CLONE = Path(__file__).parent.parent


class Installed(Distribution):
    """An installation from a place (PEP 610)."""

    def __init__(self, origin: dict[str, Any] | None) -> None:
        self._origin = origin

    def read_text(self, filename: str) -> str | None:
        return json.dumps(self._origin) if self._origin and filename == "direct_url.json" else None

    def locate_file(self, path: Any) -> Any:
        return path


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment that msgctl is installed in, with the extra shared."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(extras, "find_spec", lambda module: module in ("psycopg", "pip") or None)
    monkeypatch.setattr(extras, "distribution", lambda _: Installed({"url": "file:///home/ana/my%20clone"}))
    return tmp_path


@pytest.mark.parametrize(
    ("kept", "command"),
    [("pipx_metadata.json", "pipx install --force"), ("uv-receipt.toml", "uv tool install --force")],
)
def test_pipx_and_uv_install_again_with_the_extras_that_are_there(kept: str, command: str, prefix: Path) -> None:
    (prefix / kept).touch()
    assert extras.install("campaigns") == f"{command} '/home/ana/my clone[campaigns,shared]'"


def test_pip_adds_the_extra_to_the_environment_of_msgctl(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = shlex.quote(sys.executable)
    assert extras.install("campaigns") == f"{python} -m pip install '/home/ana/my clone[campaigns]'"
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    assert extras.install("campaigns").startswith(f"uv pip install --python {python} '/home")


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        (
            {"url": "https://git.example/msgctl", "vcs_info": {"vcs": "git"}},
            "msgctl[shared] @ git+https://git.example/msgctl",
        ),
        (
            {"url": "https://files.example/msgctl.whl", "archive_info": {}},
            "msgctl[shared] @ https://files.example/msgctl.whl",
        ),
        (None, "msgctl[shared]"),  # from an index
    ],
)
def test_the_source_is_that_of_the_installation(
    origin: dict[str, Any] | None, source: str, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "distribution", lambda _: Installed(origin))
    assert extras.install("shared").endswith(f" install '{source}'")


def test_in_a_clone_that_is_not_installed_the_source_is_the_clone(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(extras, "distribution", fail)
    monkeypatch.setattr(extras, "__file__", str(CLONE / "src" / "msgctl" / "extras.py"))
    assert f"{CLONE}[keyring]" in extras.install("keyring")


def test_every_extra_for_users_is_known() -> None:
    project = tomllib.loads((CLONE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*extras.MODULES} == {*project["optional-dependencies"]} - {"dev"}
