"""The service of a served sandbox: the interface, visits to short URLs, its own endpoints, and its page."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from email.utils import formatdate
from functools import cache
from importlib.resources import files
from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import count
from urllib.parse import quote

from msgctl.errors import ConfigurationError
from msgctl.sandbox import clicks, openapi
from msgctl.sandbox.emulator import OWN_PATH, Emulator
from msgctl.sandbox.protocol import Refusal, SandboxRequest, SandboxResponse, quoted, wrong_method
from msgctl.sandbox.request_log import MAX_SHOWN

Network = IPv4Network | IPv6Network

VISITS = "/u/"
_KEPT_IN_LOCATION = "%/:=&?~#+!$,;'@()*[]"


@cache
def page() -> SandboxResponse:
    """Return the inbox page. Its policy allows only its own script and style, by their hashes, and its own server."""
    text = files("msgctl.sandbox").joinpath("page.html").read_text(encoding="utf-8")

    def source(element: str) -> str:
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    policy = (
        f"default-src 'none'; script-src {source('script')}; style-src {source('style')}; "
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


_FILES = {"/": page, "/openapi.json": openapi.response}


class Service:
    """Responds to requests. ``allowed`` are the networks that may call the interface (empty: all), as in the account's
    security menu.
    """

    def __init__(self, emulator: Emulator, allowed: Sequence[Network] = ()) -> None:
        self._emulator = emulator
        self._allowed = tuple(allowed)
        self._numbers = count(1)

    def respond(self, request: SandboxRequest, address: str) -> SandboxResponse:
        """Respond to a request from an address. Never raises."""
        response = self._respond(request, address)
        stopped = self._emulator.stopped
        if stopped is None:
            return response
        return response._replace(headers={**response.headers, "date": formatdate(stopped, usegmt=True)})

    def _respond(self, request: SandboxRequest, address: str) -> SandboxResponse:
        try:
            if request.path.startswith(OWN_PATH):
                return self._emulator.respond(request)
            if request.path in _FILES and request.method in ("GET", "HEAD"):
                return _FILES[request.path]()
            if request.path.startswith(VISITS):
                response = self._visit(request)
            else:
                self._check_address(address)
                response = self._emulator.respond(request)
        except Refusal as refusal:
            response = refusal.response()
        except ConfigurationError as error:
            return Refusal("SANDBOX_FAILURE", error.message, status=500).response()
        shown = request._replace(body=request.body[:MAX_SHOWN])
        self._emulator.requests.append((next(self._numbers), self._emulator.clock(), shown, response))
        self._emulator.state.changes += 1
        return response

    def _check_address(self, address: str) -> None:
        if not self._allowed:
            return
        found = ip_address(address.partition("%")[0])
        mapped = getattr(found, "ipv4_mapped", None) or found
        if not any(mapped in network for network in self._allowed if network.version == mapped.version):
            # Like wrong credentials: the interface does not distinguish the two.
            raise Refusal("UNAUTHORIZED", "client or key is wrong")

    def _visit(self, request: SandboxRequest) -> SandboxResponse:
        """Redirect to the long URL and count the visit; a HEAD request does not count."""
        if request.method not in ("GET", "HEAD"):
            raise wrong_method("a short URL", "GET", "HEAD")
        alias = request.path.removeprefix(VISITS)
        with self._emulator.state.writing() as db:
            # An alias is ASCII; other text may be impossible to store.
            row = alias.isascii() and db.execute("SELECT * FROM urls WHERE alias = ?", (alias,)).fetchone()
            if not row:
                raise Refusal("NOT_FOUND", f"no short URL ends in {quoted(alias)}", status=404)
            if request.method == "GET":
                clicks.add(db, row, [(self._emulator.now(db)[0], clicks.visitor_of(request.headers))])
        location = quote(row["url_long"], safe=_KEPT_IN_LOCATION)
        return SandboxResponse(302, b"", {"location": location, "cache-control": "no-store"})
