"""`msgctl doctor`: checks that report a finding and how to fix it.

They examine this machine first, then the connection to the service, then its response to a request for the balance.
"""

from __future__ import annotations

import os
import re
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpcore
import httpx

from msgctl import __version__
from msgctl import operations as ops
from msgctl.cli.context import Context
from msgctl.config import file as config_file
from msgctl.config import profiles
from msgctl.config.profiles import Profile, ascii_host, is_loopback
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, NotReachedError, RefusedError
from msgctl.history import once, optouts
from msgctl.history import store as history
from msgctl.http import request
from msgctl.http.redaction import redact
from msgctl.http.response import credits_left
from msgctl.http.transport import CHECK_ADDRESS, look_up, proxy_for, root_cause
from msgctl.jobs.store import Store
from msgctl.output.result import Format
from msgctl.storage import files
from msgctl.text import in_seconds, plural, shorten

DOCTOR_FIELDS = ("check", "status", "found", "fix")

DAYS_TO_RENEW = 14
"""A certificate that expires in fewer days has usually not been renewed in time."""
MAX_APART = 60
"""The largest harmless difference between two clocks, in seconds."""

CERTIFICATE_FIXES = {
    9: "If this machine's clock is slow, set it: the certificate is not valid yet.",
    10: "If this machine's clock is fast, set it. Otherwise the service must renew its certificate.",
    **dict.fromkeys((62, 64), "Check the base URL: the certificate belongs to another name, or to another address."),
}
"""Fixes by OpenSSL's verification result: not yet valid, expired, another host name, another address."""
REFUSING_CALLERS = frozenset({401, 403, 520})
"""Statuses for a caller from an address that is not allowed: 520 from the API, 401 and 403 from a proxy."""
KEY_ORIGINS = {"key": "the configuration file", "key_command": "the key command", "keyring": "the keychain"}
BALANCE = request.build(ops.BALANCE, {})

Found = tuple[str, str] | tuple[str, str, str]
"""The result of a check: status, finding, and optionally a fix. A check that fails raises MsgctlError."""


class Steps:
    """Addresses, duration and certificate of a request's connection, from httpcore's trace events.

    ``local`` is this machine's address, empty if no connection was made. ``through_proxy`` excludes the TLS connection
    to the proxy itself.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = self.seconds = 0.0
        self.through_proxy = self.tls_began = False
        self.local = self.tls_version = ""
        self.remote = ("", 0)
        self.certificate: Mapping[str, Any] = {}

    def record(self, event: str, info: Mapping[str, Any]) -> None:
        """Record an event, such as ``connection.connect_tcp.complete``."""
        source, _, step = event.partition(".")
        if step == "connect_tcp.started":
            self._began = self._monotonic()
        elif step == "connect_tcp.complete":
            self.seconds = self._monotonic() - self._began
            self.local = str(info["return_value"].get_extra_info("client_addr")[0])
            self.remote = info["return_value"].get_extra_info("server_addr")[:2]
        elif self.through_proxy and source == "connection":
            return
        elif step == "start_tls.started":
            self.tls_began = True
        elif step == "start_tls.complete":
            secured = info["return_value"].get_extra_info("ssl_object")
            self.tls_version = secured.version()
            self.certificate = secured.getpeercert()


class Doctor:
    """The checks, and the findings that later checks use.

    The first error is added to ``failures``, because a request would fail with it.
    """

    profile: Profile

    def __init__(self, context: Context, failures: list[MsgctlError]) -> None:
        self._context = context
        context.warns_without_store = False
        self._failures = failures
        self._redact: Callable[[str], str] = str
        self._timeout = context.options.timeout
        self._steps = Steps(context.monotonic)
        self._config = config_file.ConfigFile(Path(), {})
        named = context.options.profile or context.environ.get("MSGCTL_PROFILE")
        self._is_sandbox = named == profiles.SANDBOX

    @cached_property
    def proxy(self) -> httpx.Proxy | None:
        return proxy_for(self.profile.base_url)

    @property
    def host(self) -> str:
        return ascii_host(urlsplit(self.profile.base_url).hostname or "")

    @cached_property
    def outcome(self) -> httpx.Response | MsgctlError:
        """The response to the one request for the balance, or its error. Raises Interrupted."""
        self._steps.through_proxy = self.proxy is not None
        self._context.on_network_event = self._steps.record
        try:
            return self._context.client.fetch(BALANCE, timeout=self._timeout)
        except Interrupted:
            raise
        except MsgctlError as error:
            return error

    def examine(self) -> Iterator[dict[str, Any]]:
        """Run the checks in order and yield each finding as soon as it is known. Raises Interrupted on Ctrl-C."""
        causes: dict[str, str] = {}
        for check in CHECKS:
            cause = next((causes[need] for need in check.needs if need in causes), None)
            found = ("skipped", f"not checked: {cause} failed") if cause else self._made(check)
            if cause or found[0] == "failed":
                causes[check.name] = cause or check.name
            status, *texts = found
            finding, fix = (self._redact(text) if text else None for text in (*texts, None)[:2])
            yield dict(zip(DOCTOR_FIELDS, (check.name, status, finding, fix), strict=True))

    def _made(self, check: Check) -> tuple[str | None, ...]:
        if self._is_sandbox and not check.in_sandbox:
            return "skipped", "not used by the sandbox"
        if self._context.options.dry_run and check.asks_network:
            return "skipped", "left out by --dry-run"
        try:
            return check.make(self)
        except Interrupted:
            raise
        except MsgctlError as error:
            found = "failed", error.what, error.hint
            if not self._failures:
                is_shown = self._context.options.format is Format.TABLE  # the other formats have no hint
                self._failures.append(error.within(check.name).replaced(hint=None if is_shown else error.hint))
            return found

    # --- this machine

    def check_version(self) -> Found:
        python = ".".join(map(str, sys.version_info[:3]))
        return "ok", f"msgctl {__version__}, Python {python}, {ssl.OPENSSL_VERSION}"

    def check_file(self) -> Found:
        """Check that msgctl can read the configuration file, and that other users cannot."""
        path = self._context.config_path
        self._config = config_file.load(path)
        return "ok", f"{files.shown(path)}{', closed to other users' if path.exists() else ' does not exist'}"

    def check_profile(self) -> Found:
        """Report the profile in use, and the option, variable or setting that selects it."""
        context = self._context
        chosen = profiles.choose(self._config, context.environ, context.options.profile)
        self.profile = context.profile = chosen.checked(*profiles.OPTIONS)
        self._is_sandbox = self.profile.is_sandbox
        variables = ", ".join(profiles.VARIABLES[setting] for setting in self.profile.given)
        if not self.profile.by:
            return "ok", f"from {variables}"
        by = "the default" if self.profile.by == "default_profile" else f"from {self.profile.by}"
        overridden = f"; overridden by {variables}" if variables else ""
        return "ok", f"{shorten(self.profile.name, 64)} ({by}){overridden}"

    def check_base_url(self) -> Found:
        """Check the base URL."""
        url = self.profile.base_url
        if self.profile.is_sandbox:
            return "ok", f"{url} (simulated in this process)"
        source = " (from MSGCTL_BASE_URL)" if "base_url" in self.profile.given else ""
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            found = f"{url}{source} is plain http, which exposes the key"
            return "warning", found, "Use https:// if the service offers it, and remove allow_http."
        if not url.endswith("/v1"):
            other = "has a version other than" if re.search("/v[0-9]+$", url) else "does not end in a version such as"
            return "warning", f"{url}{source} {other} /api/v1", "Compare it with the URL that the service gave you."
        return "ok", f"{url}{source}"

    def check_key(self) -> Found:
        """Check that the profile has a client ID and a key, and report the key's source, but not the key."""
        client, text = self._context.credential = self.profile.credential()
        self._redact = partial(redact, key=text)
        if self.profile.is_sandbox:
            return "ok", "built in"
        origin = "MSGCTL_KEY" if "key" in self.profile.given else KEY_ORIGINS[self.profile.key_source]
        found = f"client {client}; {len(text)}-character key from {origin}"
        if len(text) < profiles.MIN_KEY:
            return "warning", f"{found}. {profiles.SHORT_KEY}", "Ask the service for a longer key."
        if text != text.strip():
            fix = "If it is refused, save it without the space."
            return "warning", f"{found}, with a space at its start or end", fix
        return "ok", found

    def check_records(self) -> Found:
        """Check that msgctl can read its records: the history, the keys of --once, the opt-outs and the ledgers.

        If some are in a shared store, check that msgctl can use it.
        """
        for kind in (history.FORMAT, once.KEYS, optouts.OPTOUTS):
            if os.path.lexists(path := kind.path()):
                with kind.opened(path, read_only=True):
                    pass
        with Store(files.state("jobs")).index() as index:
            for job in index.jobs:
                index.facts(job)
        found = f"msgctl can read the history, the --once keys, the opt-outs and {plural(len(index.jobs), 'ledger')}"
        is_known = "profile" in vars(self)  # otherwise the check of the profile reports why
        if not (is_known and (records := self._context.records).is_shared):
            return "ok", found
        for kind in (once.KEYS, optouts.OPTOUTS, history.SHARED_CONTACTS):
            with records.opened(kind):
                pass
        return "ok", f"{found}; shared store {records.place}, where this machine is {records.owner}"

    # --- the connection to the service

    def check_proxy(self) -> Found:
        """Report the proxy that the environment specifies, if any."""
        if self.proxy is None:
            return "ok", "none"
        return "ok", f"{self.proxy.url.scheme}://{_joined(self.proxy.url.host, self.proxy.url.port)}"

    def check_name(self) -> Found:
        """Look up the host of the service, or of the proxy."""
        host = self.proxy.url.host if self.proxy else self.host
        try:
            addresses = look_up(host, 0, self._timeout)
        except httpcore.TimeoutException:
            raise NotReachedError(f"{host} was not found within {in_seconds(self._timeout)}", CHECK_ADDRESS) from None
        if addresses == [host]:
            return "ok", f"{host} (IP address, no lookup needed)"
        behind = f"; the proxy looks up {shorten(self.host)}" if self.proxy else ""
        return "ok", f"{shorten(host)} is {shorten(', '.join(addresses))}{behind}"

    def check_connection(self) -> Found:
        """Request the balance, and check that a connection was made, through the proxy if there is one."""
        outcome, steps = self.outcome, self._steps
        if isinstance(outcome, ConfigurationError):
            return "skipped", "not checked"  # the TLS settings are wrong; the next check reports this
        if isinstance(outcome, MsgctlError) and not (steps.local and (steps.tls_began or outcome.exit_code != 4)):
            raise outcome
        through = f", through the proxy to {shorten(self.host)}" if self.proxy else ""
        return "ok", f"{_joined(*steps.remote)}{through} in {steps.seconds * 1000:.0f} ms, from {steps.local}"

    def check_tls(self) -> Found:
        """Check that the service's certificate is trusted, and report when it expires."""
        if not self.profile.base_url.lower().startswith("https:"):
            return "skipped", "not used (plain http)"
        certificate = self._steps.certificate
        if isinstance(self.outcome, MsgctlError) and not certificate:
            code = getattr(root_cause(self.outcome), "verify_code", 0)
            raise self.outcome.replaced(hint=CERTIFICATE_FIXES.get(code, self.outcome.hint))
        names = shorten(", ".join(str(name) for _, name in certificate.get("subjectAltName", ())), 120)
        ends = ssl.cert_time_to_seconds(certificate["notAfter"])
        days = int((ends - self._context.clock()) // 86_400)
        until = f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d} ({plural(days, 'day')})"
        found = f"{self._steps.tls_version}; certificate for {names or 'no name'}, valid until {until}"
        if days < DAYS_TO_RENEW:
            return "warning", found, "The service must renew it: after that day nothing can be sent."
        return "ok", found

    # --- the service

    def check_clock(self) -> Found:
        """Compare this machine's clock with the service's."""
        if isinstance(self.outcome, MsgctlError):
            return "skipped", "no response"
        try:
            there = parsedate_to_datetime(self.outcome.headers.get("date", ""))
            theirs = there.replace(tzinfo=there.tzinfo or UTC).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            return "skipped", "the response has no date"
        ours = self._context.clock()
        apart = round(ours - theirs)
        if abs(apart) <= MAX_APART:
            return "ok", f"within {MAX_APART} seconds of the service's"
        times = " and ".join(f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M:%S}" for each in (ours, theirs))
        return (
            "warning",
            f"{abs(apart)} seconds {'fast' if apart > 0 else 'slow'}: {times} at the service (UTC)",
            "Set this machine's clock, preferably by NTP: dates and certificates depend on it.",
        )

    def check_credentials(self) -> Found:
        """Check that the service accepts the client ID and key from this address."""
        if isinstance(self.outcome, MsgctlError):
            raise self.outcome
        try:
            left = credits_left(self._context.client.parse(BALANCE, self.outcome))
        except RefusedError as error:
            if self.outcome.status_code in REFUSING_CALLERS and not self.profile.is_sandbox:
                whose = f"the proxy {shorten(self.proxy.url.host)}" if self.proxy else "this machine"
                hint = (
                    "Check client and key, and that the account's Security menu allows the public IP address of "
                    f"{whose} (its own address is {self._steps.local})."
                )
                raise error.replaced(hint=hint) from None
            raise
        return "ok", "accepted" if left is None else f"accepted; {left:,} {'credit' if left == 1 else 'credits'} left"


def _joined(host: str, port: int | None) -> str:
    return f"{f'[{host}]' if ':' in host else shorten(host)}:{port}".removesuffix(":None")


class Check(NamedTuple):
    """A check: its name, its function, the checks that it needs, and whether it uses the network."""

    name: str
    make: Callable[[Doctor], Found]
    needs: tuple[str, ...] = ()
    asks_network: bool = False
    in_sandbox: bool = False


CHECKS = (
    Check("version", Doctor.check_version, in_sandbox=True),
    Check("file", Doctor.check_file),
    Check("profile", Doctor.check_profile, ("file",), in_sandbox=True),
    Check("base URL", Doctor.check_base_url, ("profile",), in_sandbox=True),
    Check("key", Doctor.check_key, ("profile",), in_sandbox=True),
    Check("records", Doctor.check_records, in_sandbox=True),
    Check("proxy", Doctor.check_proxy, ("base URL",)),
    Check("name", Doctor.check_name, ("proxy",), asks_network=True),
    Check("connection", Doctor.check_connection, ("name", "key"), asks_network=True),
    Check("TLS", Doctor.check_tls, ("connection",), asks_network=True),
    Check("clock", Doctor.check_clock, ("TLS", "key"), asks_network=True),
    Check("credentials", Doctor.check_credentials, ("TLS", "key"), asks_network=True, in_sandbox=True),
)
