"""The inbox page: one HTML file with its own script and style, which loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files

from msgctl.sandbox.protocol import SandboxResponse


@cache
def html() -> SandboxResponse:
    """Return the page. Its policy allows only its own script and style, by their hashes, and its own server."""
    text = files("msgctl.sandbox").joinpath("page.html").read_text(encoding="utf-8")
    policy = (
        f"default-src 'none'; script-src {_hash(text, 'script')}; style-src {_hash(text, 'style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    return SandboxResponse(200, text.encode(), headers)


def _hash(page: str, element: str) -> str:
    """Return the source expression for the one inline script or style of the page."""
    (content,) = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
