"""Commands that install an extra with the tool that installed msgctl: pipx, uv or pip."""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

MODULES = {
    "campaigns": "holidays",
    "keyring": "keyring",
    "shared": "psycopg",
    "socks": "socksio",
}
"""One module of each extra, which shows whether the extra is installed."""


def install(extra: str) -> str:
    """Return the command that installs an extra.

    pipx and uv replace the whole installation, so their commands include the extras that are already installed.
    """
    extras = ",".join(name for name, module in MODULES.items() if name == extra or find_spec(module))
    if Path(sys.prefix, "pipx_metadata.json").exists():
        return f"pipx install --force {_source(extras)}"
    if Path(sys.prefix, "uv-receipt.toml").exists():
        return f"uv tool install --force {_source(extras)}"
    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{pip} {_source(extra)}"


def _source(extras: str) -> str:
    """Return the source of the installation (PEP 610) with extras, quoted for a shell."""
    clone = Path(__file__).parents[2]
    try:
        origin = json.loads(distribution("msgctl").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:  # msgctl runs in a clone and is not installed
        origin = {"url": clone.as_uri()} if (clone / "pyproject.toml").exists() else {}
    url = origin.get("url", "")
    if url.startswith("file:"):
        return shlex.quote(f"{unquote(urlsplit(url).path)}[{extras}]")
    version_control = origin.get("vcs_info", {}).get("vcs")
    place = f" @ {version_control}+{url}" if version_control else f" @ {url}" if url else ""
    return shlex.quote(f"msgctl[{extras}]{place}")
