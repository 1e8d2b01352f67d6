"""The sdist and the wheel have the right content, and the wheel works in a new environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from msgctl import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
SHARED = {
    "completions/msgctl.bash": "share/bash-completion/completions/msgctl",
    "completions/_msgctl": "share/zsh/site-functions/_msgctl",
    "completions/msgctl.fish": "share/fish/vendor_completions.d/msgctl.fish",
    **{f"man/{page.name}": f"share/man/man{page.suffix[1:]}/{page.name}" for page in (ROOT / "man").iterdir()},
}
"""The files of the repository that are installed below the prefix, and where."""


def run(*command: str | Path) -> str:
    """Return what a command prints; PYTHONPATH is not set."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel, built without a network."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    return folder


@pytest.fixture(scope="module")
def prefix(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel, and the dependencies of the environment of the tests."""
    folder = tmp_path_factory.mktemp("new") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_the_wheel_installs_completions_and_manual_pages(prefix: Path) -> None:
    for kept, installed in SHARED.items():
        assert (prefix / installed).read_bytes() == (ROOT / kept).read_bytes(), installed
    found = {path.relative_to(prefix).as_posix() for path in (prefix / "share").rglob("*") if path.is_file()}
    assert found == set(SHARED.values()), "see shared-data in pyproject.toml"


def test_the_installed_msgctl_runs(prefix: Path) -> None:
    command = prefix / "bin" / "msgctl"
    assert run(command, "--version") == f"msgctl {__version__}\n"
    assert run(prefix / "bin" / "python", "-c", "import msgctl; print(msgctl.__file__)").startswith(str(prefix))


def test_the_wheel_contains_every_file_of_the_package(prefix: Path) -> None:
    (installed,) = prefix.glob("lib/python*/site-packages/msgctl")
    source = ROOT / "src" / "msgctl"
    kept = {path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc"}
    assert [name for name in kept if not (installed / name).exists()] == []


def test_the_sdist_contains_everything_for_a_build_and_the_tests(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    assert {*SHARED, *tests, "pyproject.toml", "README.md", "LICENSE", "src/msgctl/__main__.py"} <= names
