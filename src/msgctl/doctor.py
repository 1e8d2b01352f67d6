"""The checks of `msgctl doctor`, each with what was found and how to fix it.

They examine this machine first, then the connection to the service, then its response to a request for the balance.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
import stat
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
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
from msgctl.config.file import ConfigFile
from msgctl.config.profiles import Choice
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, NotReachedError, RefusedError
from msgctl.http import request
from msgctl.http.client import Client
from msgctl.http.redaction import redact
from msgctl.http.response import credits_left
from msgctl.http.steps import Steps
from msgctl.http.transport import CHECK_ADDRESS, look_up, proxy_for
from msgctl.storage import paths
from msgctl.text import in_seconds, shorten

FIELDS = ("check", "status", "found", "fix")

DAYS_TO_RENEW = 14
"""A certificate that expires in fewer days has usually not been renewed in time."""
MOST_APART = 60
"""The most seconds between two clocks that do no harm yet."""
MOST_ADDRESSES = 6

CERTIFICATE_FIXES = {
    9: "If this machine's clock is slow, set it: the certificate is not valid yet.",
    10: "If this machine's clock is fast, set it. Otherwise the service must renew its certificate.",
    62: "Check the base URL: the certificate belongs to another name.",
    64: "Check the base URL: the certificate belongs to a name, or to another address.",
}
"""By the result of OpenSSL's verification: not yet valid, expired, another host name, another address."""
REFUSING_CALLERS = frozenset({401, 403, 520})
"""Statuses for a caller whose address is not allowed: 520 by the interface, the others by a proxy before it."""
BALANCE = request.build(ops.BALANCE, {})

UNKNOWN_PATHS = frozenset({404, 405})
CHECK_CREDENTIALS = (
    "Check client and key in the account's Security menu. If both are right, the service may not allow {}. Ask your "
    "network administrator for this machine's public IP address, and allow it in the same menu."
)


class Finding(NamedTuple):
    """The result of a check; ``status`` is ok, warning, failed or skipped, ``error`` what a request would fail with."""

    check: str
    status: str
    found: str
    fix: str | None = None
    error: MsgctlError | None = None

    def document(self) -> dict[str, Any]:
        """Return the finding as data, with the fields of `FIELDS`."""
        return {"check": self.check, "status": self.status, "found": self.found, "fix": self.fix}


Result = tuple[str, str] | tuple[str, str, str]
"""What a check returns: status, what was found, and how to fix it. One that fails raises MsgctlError."""


@dataclass(slots=True, repr=False)
class DoctorContext:
    """What the checks examine, and what the earlier ones find out for the later ones.

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

    config: ConfigFile | ConfigurationError | None = None
    """The configuration file, or why it cannot be used; None for the sandbox, which needs none."""
    choice: Choice = field(default_factory=lambda: Choice(""))
    base_url: str = ""
    credential: Credential = field(init=False)
    redact: Callable[[str], str] = str
    proxy: httpx.Proxy | None = None
    client: Client = field(init=False)
    outcome: httpx.Response | MsgctlError | None = None
    """The response to the request for the balance, or its error."""
    steps: Steps = field(init=False)

    def __post_init__(self) -> None:
        self.steps = Steps(self.monotonic)

    @property
    def in_sandbox(self) -> bool:
        named = self.environ.get("MSGCTL_PROFILE") if self.named is None else self.named
        return named == profiles.SANDBOX or self.choice.is_sandbox

    @property
    def host(self) -> str:
        return ascii_host(urlsplit(self.base_url).hostname or "")


# --- this machine


def version(doctor: DoctorContext) -> Result:  # noqa: ARG001
    """Name the program and what runs it."""
    python = ".".join(map(str, sys.version_info[:3]))
    return "ok", f"msgctl {__version__}, Python {python}, {ssl.OPENSSL_VERSION}"


def profile(doctor: DoctorContext) -> Result:
    """Find the profile in use and what selects it."""
    if doctor.in_sandbox:
        return "ok", f"{profiles.SANDBOX} (from {'-p' if doctor.named else 'MSGCTL_PROFILE'})"
    try:
        doctor.config = config_file.load(doctor.find_config())
    except ConfigurationError as error:
        doctor.config = error
        named = doctor.named or doctor.environ.get("MSGCTL_PROFILE")
        return "skipped", f"{shorten(named, 64) if named else 'unknown'}: the configuration file cannot be used"
    choice = doctor.choice = profiles.choose(doctor.config, doctor.environ, doctor.named)
    choice.options()
    if not choice.by:
        return "ok", f"made of {', '.join(choice.variables)}"
    by = "the default" if choice.by == "default_profile" else f"from {choice.by}"
    return "ok", f"{shorten(choice.name, 64)} ({by}){_overridden(doctor, choice)}"


def _overridden(doctor: DoctorContext, choice: Choice) -> str:
    if choice.by == "-p":
        ignored = [variable for variable in profiles.VARIABLES.values() if doctor.environ.get(variable)]
        return f"; {', '.join(ignored)} {'is' if len(ignored) == 1 else 'are'} ignored with -p" if ignored else ""
    if not choice.variables:
        return ""
    return f"; {', '.join(choice.variables)} override{'s' if len(choice.variables) == 1 else ''} it"


def file(doctor: DoctorContext) -> Result:
    """Check that the configuration file can be read, by its owner only."""
    if not isinstance(doctor.config, ConfigFile):
        raise doctor.config or ConfigurationError("no configuration file")
    path = doctor.config.path
    if not path.exists():
        return "ok", f"{paths.shown(path)} does not exist{', and is not needed' if doctor.choice.name else ''}"
    mode = stat.S_IMODE(path.parent.stat().st_mode)
    # A folder that the user chose may be visible to others.
    if mode & (0o022 if doctor.environ.get("MSGCTL_CONFIG") else 0o077):
        doing = "writable" if mode & 0o022 else "readable"
        found = f"the folder {paths.shown(path.parent)} is {doing} by other users (mode {mode:04o})"
        return "warning", found, f"chmod 700 {paths.typed(path.parent)}"
    return "ok", f"{paths.shown(path)}, readable only by you"


def base_url(doctor: DoctorContext) -> Result:
    """Check where the service is."""
    if doctor.in_sandbox:
        return "ok", f"{profiles.SANDBOX_URL} (simulated in this process)"
    url = doctor.base_url = doctor.choice.base_url()
    source = " (from MSGCTL_BASE_URL)" if "base_url" in doctor.choice.given else ""
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        found = f"{url}{source} is plain http, which exposes the key"
        return "warning", found, "Use https:// if the service offers it, and remove allow_http."
    if not url.endswith("/v1"):
        other = "has another version than" if re.search("/v[0-9]+$", url) else "does not end in a version such as"
        return "warning", f"{url}{source} {other} /api/v1", "Compare it with the URL that the service gave you."
    return "ok", f"{url}{source}"


def key(doctor: DoctorContext) -> Result:
    """Check that there is a client identifier and a key, and where the key comes from; the key is not shown."""
    if doctor.in_sandbox:
        doctor.credential = profiles.sandbox().credential()
        return "ok", "built in"
    choice = doctor.choice
    credential = doctor.credential = Credential(choice.client(), choice.key_source()())
    doctor.redact = partial(redact, key=credential.key.reveal())
    text = credential.key.reveal()
    found = f"client {credential.client}; {len(text)}-character key from {choice.key_origin}"
    if text != text.strip():
        return "warning", f"{found}, with a space at its start or end", "If it is refused, save it without the space."
    return "ok", found


# --- the connection to the service


def proxy(doctor: DoctorContext) -> Result:
    """Find out whether the environment asks for a proxy."""
    chosen = doctor.proxy = proxy_for(doctor.base_url)
    doctor.steps.through_proxy = chosen is not None
    host = doctor.host
    names = (f"{urlsplit(doctor.base_url).scheme}_proxy", "all_proxy")
    variable = next((each for lower in names for each in (lower, lower.upper()) if os.environ.get(each)), None)
    if chosen is not None:
        shown = f"{chosen.url.scheme}://{_joined(chosen.url.host, chosen.url.port)}"
        return "ok", f"{shown} (from {variable or 'the system'})"
    if variable is None:
        return "ok", "none"
    if is_loopback(host):
        return "ok", f"none: {host} is this machine ({variable} is ignored)"
    return "ok", f"none: NO_PROXY names {shorten(host)} ({variable} is ignored)"


def name(doctor: DoctorContext) -> Result:
    """Look up the name of the service, or of the proxy."""
    host = doctor.proxy.url.host if doctor.proxy else doctor.host
    try:
        addresses = look_up(host, 0, doctor.timeout)
    except httpcore.TimeoutException:
        raise NotReachedError(f"{host} was not found within {in_seconds(doctor.timeout)}", CHECK_ADDRESS) from None
    if addresses == [host]:
        return "ok", f"{host} (IP address, no lookup needed)"
    more = f" and {len(addresses) - MOST_ADDRESSES} more" if len(addresses) > MOST_ADDRESSES else ""
    behind = f"; the proxy looks up {shorten(doctor.host)}" if doctor.proxy else ""
    return "ok", f"{shorten(host)} is {', '.join(addresses[:MOST_ADDRESSES])}{more}{behind}"


def connection(doctor: DoctorContext) -> Result:
    """Ask for the balance, and check that a connection was made for it, through the proxy if there is one."""
    outcome = _ask(doctor)
    steps = doctor.steps
    if isinstance(outcome, ConfigurationError):
        return "skipped", "not checked"  # the settings for TLS are wrong, which the next check reports
    if isinstance(outcome, MsgctlError) and not (steps.local and (steps.tls_began or outcome.exit_code != 4)):
        raise outcome
    through = f", through the proxy to {shorten(doctor.host)}" if doctor.proxy else ""
    return "ok", f"{_joined(*steps.remote)}{through} in {steps.seconds * 1000:.0f} ms, from {steps.local}"


def tls(doctor: DoctorContext) -> Result:
    """Check that the service's certificate is trusted, and until when."""
    if not doctor.base_url.lower().startswith("https:"):
        return "skipped", "not used (plain http)"
    outcome = _ask(doctor)
    if isinstance(outcome, MsgctlError) and not doctor.steps.certificate:
        cause = next((each for each in _causes(outcome) if isinstance(each, ssl.SSLCertVerificationError)), None)
        outcome.hint = CERTIFICATE_FIXES.get(cause.verify_code if cause else 0, outcome.hint)
        raise outcome
    return _judged(doctor.steps.certificate, doctor.steps.tls_version, doctor.clock())


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and those that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _judged(certificate: Mapping[str, Any], version: str, now: float) -> Result:
    names = [str(value) for _, value in certificate.get("subjectAltName", ())]
    subject = shorten(", ".join(names) or _part(certificate, "subject", "commonName") or "no name", 120)
    issuer = _part(certificate, "issuer", "organizationName") or _part(certificate, "issuer", "commonName")
    ends = ssl.cert_time_to_seconds(certificate["notAfter"])
    days = int((ends - now) // 86_400)
    found = (
        f"{version}; certificate for {subject} from {shorten(issuer or 'an unnamed authority', 80)}, valid until "
        f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d} ({days} {'day' if days == 1 else 'days'})"
    )
    if days < DAYS_TO_RENEW:
        return "warning", found, "The service must renew it: after that day nothing can be sent."
    return "ok", found


def _part(certificate: Mapping[str, Any], side: str, wanted: str) -> str:
    """Return a part of the subject or issuer, as `ssl.SSLSocket.getpeercert` gives it."""
    parts = (pair for each in certificate.get(side, ()) for pair in each)
    return next((str(value) for attribute, value in parts if attribute == wanted), "")


def _joined(host: str, port: int | None) -> str:
    return f"{f'[{host}]' if ':' in host else shorten(host)}:{port}".removesuffix(":None")


# --- the service


def clock(doctor: DoctorContext) -> Result:
    """Compare this machine's clock with the service's."""
    outcome = _ask(doctor)
    if isinstance(outcome, MsgctlError):
        return "skipped", "no response"
    try:
        there = parsedate_to_datetime(outcome.headers.get("date", ""))
        theirs = there.replace(tzinfo=there.tzinfo or UTC).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return "skipped", "the response has no date"
    ours = doctor.clock()
    apart = round(ours - theirs)
    if abs(apart) <= MOST_APART:
        return "ok", f"within {MOST_APART} seconds of the service's"
    times = " and ".join(f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M:%S}" for each in (ours, theirs))
    return (
        "warning",
        f"{abs(apart)} seconds {'fast' if apart > 0 else 'slow'}: {times} at the service (UTC)",
        "Set this machine's clock, preferably by NTP: dates and certificates depend on it.",
    )


def credentials(doctor: DoctorContext) -> Result:
    """Check that the service accepts client and key from this address."""
    outcome = _ask(doctor)
    if isinstance(outcome, MsgctlError):
        raise outcome
    try:
        response = doctor.client.parse(BALANCE, outcome)
    except RefusedError as error:
        if outcome.status_code in REFUSING_CALLERS and not doctor.in_sandbox:
            error.hint = CHECK_CREDENTIALS.format(_which_address(doctor))
        if outcome.status_code in UNKNOWN_PATHS:
            error.hint = f"Check the path of the base URL {doctor.base_url}: it usually ends in /api/v1."
        raise
    left = credits_left(response)
    return "ok", "accepted" if left is None else f"accepted; {left} {'credit' if left == 1 else 'credits'} left"


def _ask(doctor: DoctorContext) -> httpx.Response | MsgctlError:
    """Return the response to a request for the balance, which is made once, or its error. Raises Interrupted."""
    if doctor.outcome is None:
        try:
            doctor.client = doctor.connect(doctor.credential, doctor.steps.note)
            doctor.outcome = doctor.client.fetch(BALANCE, timeout=doctor.timeout)
        except Interrupted:
            raise
        except MsgctlError as error:
            doctor.outcome = error
    return doctor.outcome


def _which_address(doctor: DoctorContext) -> str:
    """Return which address the service sees, as far as this machine can know."""
    if doctor.proxy is not None:
        return f"the public address of the proxy {shorten(doctor.proxy.url.host)}"
    with suppress(ValueError):
        address = ipaddress.ip_address(doctor.steps.local)
        if address.is_global or address.is_loopback:
            return str(address)
    return f"the public address of your router ({doctor.steps.local} is a private one)"


# --- all of them


class Check(NamedTuple):
    """A check: its name, what it does, the checks that it needs, and whether it asks the network."""

    name: str
    make: Callable[[DoctorContext], Result]
    needs: tuple[str, ...] = ()
    asks_network: bool = False
    in_sandbox: bool = True


CHECKS = (
    Check("version", version),
    Check("profile", profile),
    Check("file", file, in_sandbox=False),
    Check("base URL", base_url, ("profile", "file")),
    Check("key", key, ("profile", "file")),
    Check("proxy", proxy, ("base URL",), in_sandbox=False),
    Check("name", name, ("proxy",), asks_network=True, in_sandbox=False),
    Check("connection", connection, ("name", "key"), asks_network=True, in_sandbox=False),
    Check("TLS", tls, ("connection",), asks_network=True, in_sandbox=False),
    Check("clock", clock, ("TLS", "key"), asks_network=True, in_sandbox=False),
    Check("credentials", credentials, ("TLS", "key"), asks_network=True),
)


def examine(doctor: DoctorContext) -> Iterator[Finding]:
    """Make the checks in order and give each finding as soon as it is known. Raises Interrupted on Ctrl-C."""
    causes: dict[str, str] = {}
    for check in CHECKS:
        cause = next((causes[need] for need in check.needs if need in causes), None)
        found = (
            _made(check, doctor) if cause is None else Finding(check.name, "skipped", f"not checked: {cause} failed")
        )
        if found.status == "failed":
            causes[check.name] = check.name
        elif cause is not None:
            causes[check.name] = cause
        yield found._replace(found=doctor.redact(found.found), fix=doctor.redact(found.fix) if found.fix else None)


def _made(check: Check, doctor: DoctorContext) -> Finding:
    if doctor.in_sandbox and not check.in_sandbox:
        return Finding(check.name, "skipped", "not used by the sandbox")
    if doctor.offline and check.asks_network:
        return Finding(check.name, "skipped", "left out by --dry-run")
    try:
        return Finding(check.name, *check.make(doctor))
    except Interrupted:
        raise
    except MsgctlError as error:
        return Finding(check.name, "failed", error.what, error.hint, error)
