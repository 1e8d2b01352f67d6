"""The guides of the manual page, run as written; with MSGCTL_TEST_BROWSER=1 in a browser too."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from importlib.resources import files
from pathlib import Path

import pytest

from support.shell import Shell
from support.tool import started

from .test_page import in_browser

PAGE = files("msgctl.reference").joinpath("pages/sandbox.txt").read_text(encoding="utf-8")
ROOT = Path(__file__).parents[2]

SHOP = """
import shutil, threading
import pytest
from urllib.parse import parse_qsl, urlencode
from urllib.request import urlopen
from wsgiref.simple_server import make_server
from playwright.sync_api import sync_playwright

STEPS = {
    "/": '<form action=/send method=post><label>Phone <input name=phone></label><button>Send code</button></form>',
    "/send": '<form action=/check method=post><label>Code <input name=code></label><button>Sign in</button></form>',
    "/check": "Welcome",
}
OPERATIONS = {"/send": "send-sms", "/check": "verification-code"}


@pytest.fixture
def shop(msgctl_sandbox):
    base_url = msgctl_sandbox.base_url
    form = {"client": msgctl_sandbox.client, "key": msgctl_sandbox.key, "app-name": "Shop"}

    def respond(environ, start_response):
        path = environ["PATH_INFO"]
        if path in OPERATIONS:
            form.update(parse_qsl(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])).decode()))
            urlopen(f"{base_url}/2fa/{OPERATIONS[path]}", urlencode(form).encode())
        start_response("200 OK", [("Content-Type", "text/html")])
        return [STEPS.get(path, "").encode()]

    with make_server("127.0.0.1", 0, respond) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield chromium.new_page()
        chromium.close()
"""


def block(heading: str) -> str:
    """Return the code below a paragraph of the page."""
    (code,) = re.findall(rf"^{re.escape(heading)}(?:.|\n)*?:\n\n((?:    .*\n|\n)+)", PAGE, re.MULTILINE)
    return textwrap.dedent(code).strip("\n") + "\n"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    del shell.variables["MSGCTL_PROFILE"]
    return shell


def assert_passes(shell: Shell, directory: Path, test: str) -> None:
    (directory / "conftest.py").write_text("from msgctl.testing import sandbox\n\n" + block("A test in Python"))
    (directory / "test_shop.py").write_text(test)
    code, printed = shell.run(f"{sys.executable} -m pytest -q -p no:cacheprovider test_shop.py")
    assert (code, " passed" in printed) == (0, True), printed


def test_each_test_has_an_empty_sandbox_and_msgctl_finds_it(shell: Shell, tmp_path: Path) -> None:
    """Two tests that use the same key both send, although the first one has opted the number out."""
    one = """
@pytest.mark.parametrize("number", [1, 2])
def test_send(msgctl_sandbox, number):
    send = ["msgctl", "sms", "send", "573001234567", "-m", "Hello", "--once", "welcome"]
    subprocess.run(send, check=True)
    subprocess.run(["msgctl", "optout", "add", "573001234567"], check=True)
    assert [message["text"] for message in msgctl_sandbox.inbox()] == ["Hello"]
"""
    assert_passes(shell, tmp_path, "import pytest, subprocess\n" + block("A test that requests a code") + one)


@in_browser
def test_the_browser_test_reads_a_code(shell: Shell, tmp_path: Path) -> None:
    assert_passes(shell, tmp_path, SHOP + "\n\n" + block("A browser test"))


@pytest.mark.slow
def test_the_github_actions_step_works_and_its_workflow_has_only_read_permission(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(
        "import subprocess\n\ndef test_send():\n"
        "    subprocess.run('msgctl sms send 573001234567 -m x'.split(), check=True)\n"
    )
    guide = block("GitHub Actions")
    (step,) = re.findall(r"- run: (msgctl .*)", guide)
    shell.program("pytest", f'exec {shlex.quote(sys.executable)} -m pytest "$@"')
    code, printed = shell.run(step)
    assert (code, "1 passed" in printed) == (0, True), printed
    assert "\npermissions: {contents: read}\n" in guide


@pytest.mark.slow
def test_the_image_is_pinned_runs_as_its_own_user_and_has_no_more_files_than_it_needs(tmp_path: Path) -> None:
    steps = [line.split(" ", 1) for line in block("A Dockerfile").splitlines()]
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+", dict(steps)["FROM"])
    user = dict(steps)["USER"]
    assert [name for name, _ in steps[-3:]] == ["USER", "EXPOSE", "ENTRYPOINT"]
    assert f"useradd --create-home {user}" in dict(steps)["RUN"]
    copied = [source for name, arguments in steps if name == "COPY" for source in arguments.split()[:-1]]
    for name in copied:
        source = ROOT / name
        assert name in ("src", "man", "completions") or source.is_file()
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "built")]
    subprocess.run(build, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert len([*(tmp_path / "built").glob("*.whl")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("heading", "host"), [("A Dockerfile", "localhost"), ("Docker Compose", "sandbox")])
def test_the_command_of_a_container_starts_a_sandbox(heading: str, host: str, shell: Shell) -> None:
    shell.start_python()
    guide = block(heading)
    command = json.loads(block("A Dockerfile").partition("ENTRYPOINT")[2])
    if heading != "A Dockerfile":
        command += json.loads(re.findall(r"command: (.*)", guide)[0])
    command += ["--port", "0", "--json", "-q"]
    with started(command, stdout=subprocess.PIPE, env=shell.environment) as server:
        assert server.stdout is not None
        about = json.loads(server.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", int(about["base_url"].split(":")[2].split("/")[0]))
        connection.request(
            "GET", f"/api/v1/balance?client={about['client']}&key={about['key']}", headers={"Host": f"{host}:8520"}
        )
        status = connection.getresponse().status
        connection.close()
        server.terminate()
    assert status == 200
    assert host == "localhost" or f"MSGCTL_CLIENT: {about['client']}\n      MSGCTL_KEY: {about['key']}\n" in guide
    assert "8520" in shell.run("msgctl sandbox serve --help")[1]  # the default port, which the guide publishes
