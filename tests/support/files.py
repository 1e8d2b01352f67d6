"""Write and read the configuration file without the code under test."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from support.service import Service

URL = "https://service.example/api/v1"


def config_file() -> Path:
    return Path(os.environ["XDG_CONFIG_HOME"]) / "msgctl" / "config.toml"


def write_config(content: str | bytes, *, mode: int = 0o600) -> Path:
    """Write the configuration file of the user."""
    path = config_file()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)
    return path


def written() -> dict[str, Any]:
    """The configuration file as TOML; empty if there is none."""
    path = config_file()
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def table(name: str, *lines: str, base_url: str = URL, client: int = 1, key: str | None = "stored-key") -> str:
    """The text of a profile's table; ``lines`` are further settings."""
    head = [f"[profiles.{name}]", f'base_url = "{base_url}"', f"client = {client}"]
    return "\n".join([*head, *([f"key = '''{key}'''"] if key is not None else []), *lines, ""])


def credentials(service: Service) -> tuple[str, str]:
    sent = dict(service.received[-1].query)
    return sent["client"], sent["key"]
