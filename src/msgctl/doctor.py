"""The checks of `msgctl doctor`, each with what was found and how to fix it.

They examine this machine first, then the connection to the service, then its response to a request for the balance.
"""

from __future__ import annotations

import re
import ssl
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
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
from msgctl.config import file as config_file
from msgctl.config import profiles
from msgctl.config.base_url import ascii_host, is_loopback
from msgctl.config.credential import Credential
from msgctl.config.profiles import Profile
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, NotReachedError, RefusedError
from msgctl.http import request
from msgctl.http.client import Client
from msgctl.http.redaction import redact
from msgctl.http.response import credits_left
from msgctl.http.steps import Steps
from msgctl.http.transport import CHECK_ADDRESS, look_up, proxy_for
from msgctl.storage import paths
from msgctl.text import in_seconds, plural, shorten

FIELDS = ("check", "status", "found", "fix")

DAYS_TO_RENEW = 14
"""A certificate that expires in fewer days has usually not been renewed in time."""
MOST_APART = 60
"""The most seconds between two clocks that do no harm yet."""

CERTIFICATE_FIXES = {
    9: "If this machine's clock is slow, set it: the certificate is not valid yet.",
    10: "If this machine's clock is fast, set it. Otherwise the service must renew its certificate.",
    62: "Check the base URL: the certificate belongs to another name.",
    64: "Check the base URL: the certificate belongs to a name, or to another address.",
}
"""By the result of OpenSSL's verification: not yet valid, expired, another host name, another address."""
REFUSING_CALLERS = frozenset({401, 403, 520})
"""Statuses for a caller whose address is not allowed: 520 by the interface, the others by a proxy before it."""
KEY_ORIGINS = {"key": "the configuration file", "key_command": "the key command", "keyring": "the keychain"}
BALANCE = request.build(ops.BALANCE, {})

Result = tuple[str, str] | tuple[str, str, str]
"""What a check returns: status, what was found, and how to fix it. One that fails raises MsgctlError."""


class Finding(NamedTuple):
    """The result of a check; ``status`` is ok, warning, failed or skipped, ``error`` what a request would fail with."""

    check: str
    status: str
    found: str
    fix: str | None = None
    error: MsgctlError | None = None


@dataclass(repr=False)
class Doctor:
    """The checks, and what the earlier ones find out for the later ones.

    ``named`` is the value of ``-p``, ``find_config`` gives the path of the configuration file or raises
    ConfigurationError, ``connect`` makes a client of the profile in use. ``timeout`` limits each step; ``offline`` is
    for a dry run, which leaves out the checks that need the network.
    """

    environ: Mapping[str, str]
    named: str | None
    find_config: Callable[[], Path]
    connect: Callable[[Credential, Callable[[str, Mapping[str, Any]], None]], Client]
    timeout: float
    clock: Callable[[], float]
    monotonic: Callable[[], float]
    offline: bool = False

    chosen: Profile = field(default_factory=lambda: Profile(""))
    broken: ConfigurationError | None = None
    """Why the configuration file cannot be used."""
    credential: Credential = field(init=False)
    redact: Callable[[str], str] = str
    client: Client = field(init=False)

    @cached_property
    def steps(self) -> Steps:
        return Steps(self.monotonic)

    @cached_property
    def proxy(self) -> httpx.Proxy | None:
        return proxy_for(self.chosen.base_url)

    @property
    def host(self) -> str:
        return ascii_host(urlsplit(self.chosen.base_url).hostname or "")

    @cached_property
    def outcome(self) -> httpx.Response | MsgctlError:
        """The response to a request for the balance, which is made once, or its error. Raises Interrupted."""
        self.steps.through_proxy = self.proxy is not None
        self.client = self.connect(self.credential, self.steps.note)
        try:
            return self.client.fetch(BALANCE, timeout=self.timeout)
        except Interrupted:
            raise
        except MsgctlError as error:
            return error

    def examine(self) -> Iterator[Finding]:
        """Make the checks in order and give each finding as soon as it is known. Raises Interrupted on Ctrl-C."""
        causes: dict[str, str] = {}
        for check in CHECKS:
            cause = next((causes[need] for need in check.needs if need in causes), None)
            found = Finding(check.name, "skipped", f"not checked: {cause} failed") if cause else self._made(check)
            if cause or found.status == "failed":
                causes[check.name] = cause or check.name
            yield found._replace(found=self.redact(found.found), fix=self.redact(found.fix) if found.fix else None)

    def _made(self, check: Check) -> Finding:
        if self.chosen.is_sandbox and not check.in_sandbox:
            return Finding(check.name, "skipped", "not used by the sandbox")
        if self.offline and check.asks_network:
            return Finding(check.name, "skipped", "left out by --dry-run")
        try:
            return Finding(check.name, *check.make(self))
        except Interrupted:
            raise
        except MsgctlError as error:
            return Finding(check.name, "failed", error.what, error.hint, error)

    # --- this machine

    def check_version(self) -> Result:
        python = ".".join(map(str, sys.version_info[:3]))
        return "ok", f"msgctl {__version__}, Python {python}, {ssl.OPENSSL_VERSION}"

    def check_profile(self) -> Result:
        """Find the profile in use and what selects it."""
        named = self.named or self.environ.get("MSGCTL_PROFILE")
        if named == profiles.SANDBOX:
            self.chosen = profiles.sandbox("-p" if self.named else "MSGCTL_PROFILE")
        else:
            try:
                config = config_file.load(self.find_config())
            except ConfigurationError as error:
                self.broken = error
                return "skipped", f"{shorten(named or 'unknown', 64)}: the configuration file cannot be used"
            self.chosen = profiles.choose(config, self.environ, self.named).checked(*profiles.OPTIONS)
        variables = ", ".join(profiles.VARIABLES[setting] for setting in self.chosen.given)
        if not self.chosen.by:
            return "ok", f"made of {variables}"
        by = "the default" if self.chosen.by == "default_profile" else f"from {self.chosen.by}"
        overridden = f"; overridden by {variables}" if variables else ""
        return "ok", f"{shorten(self.chosen.name, 64)} ({by}){overridden}"

    def check_file(self) -> Result:
        """Check that the configuration file can be read, by its owner only."""
        if self.broken is not None:
            raise self.broken
        path = self.find_config()
        return "ok", f"{paths.shown(path)}{', readable only by you' if path.exists() else ' does not exist'}"

    def check_base_url(self) -> Result:
        """Check where the service is."""
        url = self.chosen.base_url
        if self.chosen.is_sandbox:
            return "ok", f"{url} (simulated in this process)"
        source = " (from MSGCTL_BASE_URL)" if "base_url" in self.chosen.given else ""
        parts = urlsplit(url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            found = f"{url}{source} is plain http, which exposes the key"
            return "warning", found, "Use https:// if the service offers it, and remove allow_http."
        if not url.endswith("/v1"):
            other = "has another version than" if re.search("/v[0-9]+$", url) else "does not end in a version such as"
            return "warning", f"{url}{source} {other} /api/v1", "Compare it with the URL that the service gave you."
        return "ok", f"{url}{source}"

    def check_key(self) -> Result:
        """Check that there is a client identifier and a key, and where the key comes from; the key is not shown."""
        self.credential = self.chosen.credential()
        text = self.credential.key.reveal()
        self.redact = partial(redact, key=text)
        if self.chosen.is_sandbox:
            return "ok", "built in"
        origin = "MSGCTL_KEY" if "key" in self.chosen.given else KEY_ORIGINS[self.chosen.key_source]
        found = f"client {self.credential.client}; {len(text)}-character key from {origin}"
        if text != text.strip():
            fix = "If it is refused, save it without the space."
            return "warning", f"{found}, with a space at its start or end", fix
        return "ok", found

    # --- the connection to the service

    def check_proxy(self) -> Result:
        """Find out whether the environment asks for a proxy."""
        if self.proxy is None:
            return "ok", "none"
        return "ok", f"{self.proxy.url.scheme}://{_joined(self.proxy.url.host, self.proxy.url.port)}"

    def check_name(self) -> Result:
        """Look up the name of the service, or of the proxy."""
        host = self.proxy.url.host if self.proxy else self.host
        try:
            addresses = look_up(host, 0, self.timeout)
        except httpcore.TimeoutException:
            raise NotReachedError(f"{host} was not found within {in_seconds(self.timeout)}", CHECK_ADDRESS) from None
        if addresses == [host]:
            return "ok", f"{host} (IP address, no lookup needed)"
        behind = f"; the proxy looks up {shorten(self.host)}" if self.proxy else ""
        return "ok", f"{shorten(host)} is {shorten(', '.join(addresses))}{behind}"

    def check_connection(self) -> Result:
        """Ask for the balance, and check that a connection was made for it, through the proxy if there is one."""
        outcome, steps = self.outcome, self.steps
        if isinstance(outcome, ConfigurationError):
            return "skipped", "not checked"  # the settings for TLS are wrong, which the next check reports
        if isinstance(outcome, MsgctlError) and not (steps.local and (steps.tls_began or outcome.exit_code != 4)):
            raise outcome
        through = f", through the proxy to {shorten(self.host)}" if self.proxy else ""
        return "ok", f"{_joined(*steps.remote)}{through} in {steps.seconds * 1000:.0f} ms, from {steps.local}"

    def check_tls(self) -> Result:
        """Check that the service's certificate is trusted, and until when."""
        if not self.chosen.base_url.lower().startswith("https:"):
            return "skipped", "not used (plain http)"
        certificate = self.steps.certificate
        if isinstance(self.outcome, MsgctlError) and not certificate:
            cause = next((it for it in _causes(self.outcome) if isinstance(it, ssl.SSLCertVerificationError)), None)
            self.outcome.hint = CERTIFICATE_FIXES.get(cause.verify_code if cause else 0, self.outcome.hint)
            raise self.outcome
        names = shorten(", ".join(str(name) for _, name in certificate.get("subjectAltName", ())), 120)
        ends = ssl.cert_time_to_seconds(certificate["notAfter"])
        days = int((ends - self.clock()) // 86_400)
        until = f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d} ({plural(days, 'day')})"
        found = f"{self.steps.tls_version}; certificate for {names or 'no name'}, valid until {until}"
        if days < DAYS_TO_RENEW:
            return "warning", found, "The service must renew it: after that day nothing can be sent."
        return "ok", found

    # --- the service

    def check_clock(self) -> Result:
        """Compare this machine's clock with the service's."""
        if isinstance(self.outcome, MsgctlError):
            return "skipped", "no response"
        try:
            there = parsedate_to_datetime(self.outcome.headers.get("date", ""))
            theirs = there.replace(tzinfo=there.tzinfo or UTC).timestamp()
        except (ValueError, TypeError, IndexError, OverflowError):
            return "skipped", "the response has no date"
        ours = self.clock()
        apart = round(ours - theirs)
        if abs(apart) <= MOST_APART:
            return "ok", f"within {MOST_APART} seconds of the service's"
        times = " and ".join(f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M:%S}" for each in (ours, theirs))
        return (
            "warning",
            f"{abs(apart)} seconds {'fast' if apart > 0 else 'slow'}: {times} at the service (UTC)",
            "Set this machine's clock, preferably by NTP: dates and certificates depend on it.",
        )

    def check_credentials(self) -> Result:
        """Check that the service accepts client and key from this address."""
        if isinstance(self.outcome, MsgctlError):
            raise self.outcome
        try:
            left = credits_left(self.client.parse(BALANCE, self.outcome))
        except RefusedError as error:
            if self.outcome.status_code in REFUSING_CALLERS and not self.chosen.is_sandbox:
                whose = f"the proxy {shorten(self.proxy.url.host)}" if self.proxy else "this machine"
                error.hint = (
                    "Check client and key, and that the account's Security menu allows the public IP address of "
                    f"{whose} (its own address is {self.steps.local})."
                )
            raise
        return "ok", "accepted" if left is None else f"accepted; {left} {'credit' if left == 1 else 'credits'} left"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _joined(host: str, port: int | None) -> str:
    return f"{f'[{host}]' if ':' in host else shorten(host)}:{port}".removesuffix(":None")


class Check(NamedTuple):
    """A check: its name, what it does, the checks that it needs, and whether it asks the network."""

    name: str
    make: Callable[[Doctor], Result]
    needs: tuple[str, ...] = ()
    asks_network: bool = False
    in_sandbox: bool = False


CHECKS = (
    Check("version", Doctor.check_version),
    Check("profile", Doctor.check_profile),
    Check("file", Doctor.check_file),
    Check("base URL", Doctor.check_base_url, ("profile", "file"), in_sandbox=True),
    Check("key", Doctor.check_key, ("profile", "file"), in_sandbox=True),
    Check("proxy", Doctor.check_proxy, ("base URL",)),
    Check("name", Doctor.check_name, ("proxy",), asks_network=True),
    Check("connection", Doctor.check_connection, ("name", "key"), asks_network=True),
    Check("TLS", Doctor.check_tls, ("connection",), asks_network=True),
    Check("clock", Doctor.check_clock, ("TLS", "key"), asks_network=True),
    Check("credentials", Doctor.check_credentials, ("TLS", "key"), asks_network=True, in_sandbox=True),
)
