"""The hint for a missing library fits the way in which msgctl was installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from msgctl.errors import install_hint


@pytest.mark.parametrize(
    ("file", "command"),
    [
        (None, "{python} -m pip install 'psycopg[binary]>=3.2.11'"),
        ("pipx_metadata.json", "pipx inject msgctl 'psycopg[binary]>=3.2.11'"),
        ("uv-receipt.toml", "uv tool install --with 'psycopg[binary]>=3.2.11' https://git.example/msgctl"),
    ],
)
def test_the_hint_for_a_missing_library_names_it_and_this_installation(
    file: str | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "msgctl"
    environment.mkdir()
    if file:
        (environment / file).touch()
    monkeypatch.setattr(sys, "prefix", str(environment))
    installed = tmp_path / "msgctl-1.dist-info"
    installed.mkdir()
    (installed / "direct_url.json").write_text('{"url": "https://git.example/msgctl"}')
    monkeypatch.syspath_prepend(tmp_path)
    hint = install_hint("psycopg[binary]>=3.2.11")
    assert command.format(python=sys.executable) in hint
    assert not hint.endswith(" msgctl")
