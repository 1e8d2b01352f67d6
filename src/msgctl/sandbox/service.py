"""The service that a served sandbox offers: the interface, visits to short URLs, and its own endpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from email.utils import formatdate
from ipaddress import IPv4Network, IPv6Network, ip_address
from urllib.parse import quote

from msgctl.errors import ConfigurationError
from msgctl.sandbox import clicks, endpoints, faults, openapi, page
from msgctl.sandbox.admin import LocalAdmin
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.faults import Outcome
from msgctl.sandbox.protocol import Refusal, SandboxRequest, SandboxResponse, quoted, wrong_method

Network = IPv4Network | IPv6Network

VISITS = "/u/"
_KEPT_IN_LOCATION = "%/:=&?~#+!$,;'@()*[]"


class Service:
    """Responds to requests in any number of threads.

    ``allowed`` are the networks that may call the interface (empty: all), as in the account's security menu.
    ``operate`` replaces the emulator, for example by recorded responses.
    """

    def __init__(
        self,
        emulator: Emulator,
        *,
        allowed: Sequence[Network] = (),
        sleep: Callable[[float], None] = time.sleep,
        operate: Callable[[SandboxRequest], SandboxResponse] | None = None,
    ) -> None:
        self._emulator = emulator
        self._admin = LocalAdmin(emulator)
        self._allowed = tuple(allowed)
        self._sleep = sleep
        self._operate = operate
        self._files = {"/": page.html, "/openapi.json": openapi.response}

    def respond(self, request: SandboxRequest, address: str) -> Outcome:
        """Return the outcome of a request from an address. Never raises."""
        outcome = self._respond(request, address)
        if self._emulator.stopped is None:
            return outcome
        headers = {**outcome.response.headers, "date": formatdate(self._emulator.stopped, usegmt=True)}
        return outcome._replace(response=replace(outcome.response, headers=headers))

    def _respond(self, request: SandboxRequest, address: str) -> Outcome:
        own = request.path == endpoints.PATH or request.path.startswith(endpoints.PATH + "/")
        try:
            if own:
                return Outcome(endpoints.respond(self._admin, request))
            if request.path in self._files and request.method in ("GET", "HEAD"):
                return Outcome(self._files[request.path]())
            outcome = self._carry_out(request, address)
        except Refusal as refusal:
            outcome = Outcome(refusal.response())
        except ConfigurationError as error:
            return Outcome(Refusal("SANDBOX_FAILURE", error.message, status=500).response())
        if not own:
            self._admin.requests.add(request, outcome, self._emulator.clock())
            self._emulator.state.notify()
        return outcome

    def _carry_out(self, request: SandboxRequest, address: str) -> Outcome:
        if request.path.startswith(VISITS):
            return Outcome(self._visit(request))
        self._check_address(address)
        return faults.respond(self._emulator, request, self._sleep, self._operate)

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
                clicks.add(db, row, [clicks.visit(request.headers, self._emulator.now(db))])
        location = quote(row["url_long"], safe=_KEPT_IN_LOCATION)
        return SandboxResponse(302, b"", {"location": location, "cache-control": "no-store"})
