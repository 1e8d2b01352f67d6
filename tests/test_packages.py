"""What people install: the sdist and the wheel, built once, and the wheel in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from msgctl import __version__

ROOT = Path(__file__).parent.parent
SHARED = {
    "completions/msgctl.bash": "share/bash-completion/completions/msgctl",
    "completions/_msgctl": "share/zsh/site-functions/_msgctl",
    "completions/msgctl.fish": "share/fish/vendor_completions.d/msgctl.fish",
    **{f"man/{page.name}": f"share/man/man1/{page.name}" for page in (ROOT / "man").iterdir()},
}
"""The files of the repository that are installed below the prefix, and where: every manual page is one of them."""


def run(*command: str | Path) -> str:
    """What a command prints that is not told where the sources are."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which both packages are built, without a network."""
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder)
    return folder


@pytest.fixture(scope="module")
def prefix(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; what it depends on is taken from the environment of the tests."""
    folder = tmp_path_factory.mktemp("new") / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def test_an_installed_wheel_has_its_completions_and_pages_below_share(prefix: Path) -> None:
    for kept, installed in SHARED.items():
        assert (prefix / installed).read_bytes() == (ROOT / kept).read_bytes(), installed
    found = {path.relative_to(prefix).as_posix() for path in (prefix / "share").rglob("*") if path.is_file()}
    assert found == set(SHARED.values()), "see shared-data in pyproject.toml"


def test_an_installed_msgctl_runs_and_prints_the_script_that_was_installed_with_it(prefix: Path) -> None:
    command = prefix / "bin" / "msgctl"
    assert run(command, "--version") == f"msgctl {__version__}\n"
    where = run(prefix / "bin" / "python", "-c", "import msgctl; print(msgctl.__file__)")
    assert where.startswith(str(prefix))
    for shell, place in (("bash", "bash-completion/completions/msgctl"), ("zsh", "zsh/site-functions/_msgctl")):
        assert run(command, "completion", shell) == (prefix / "share" / place).read_text(encoding="utf-8")


def test_the_wheel_has_the_whole_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = [
        path for path in (ROOT / "src" / "msgctl").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert {path.relative_to(ROOT / "src").as_posix() for path in sources} <= names


def test_the_sdist_has_what_is_needed_to_build_and_to_test(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tests = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("*.py")}
    assert {*SHARED, *tests, "pyproject.toml", "README.md", "LICENSE", "src/msgctl/__main__.py"} <= names
