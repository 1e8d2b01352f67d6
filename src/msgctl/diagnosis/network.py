"""The way to the service: proxy, name, connection and TLS."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from msgctl.config.base_url import is_loopback
from msgctl.diagnosis.case import Case
from msgctl.diagnosis.findings import Result, ok, skipped, warning
from msgctl.errors import NotReachedError
from msgctl.http.dialing import Dialer
from msgctl.http.timed import Deadline
from msgctl.text import shorten

DAYS_TO_RENEW = 14
"""A certificate that ends in fewer days has usually not been renewed in time."""
MOST_ADDRESSES = 6

SECONDS_OF_A_DAY = 86_400
MEND_OF_CERTIFICATE = {
    9: "Set this machine's clock, if it is slow: the certificate is valid later.",
    10: "Set this machine's clock, if it is fast; otherwise the service has to renew its certificate.",
    62: "Check the base URL: the certificate belongs to another name.",
    64: "Check the base URL: the certificate belongs to a name, or to another address.",
}
"""By the result of OpenSSL's verification: not yet valid, expired, another host name, another address."""


def proxy(case: Case) -> Result:
    """Whether the environment asks for a proxy."""
    dialer = case.dialer = Dialer(case.base_url)
    scheme = "https" if dialer.is_secure else "http"
    variable = _variable(scheme)
    if dialer.proxy is not None:
        return ok(f"http://{_joined(dialer.proxy.host, dialer.proxy.port)}, from {variable or 'the system'}")
    if variable is None:
        return ok("none")
    if is_loopback(dialer.host):
        return ok(f"none, since {dialer.host} is this machine; {variable} is for others")
    return ok(f"none, since NO_PROXY names {shorten(dialer.host)}; {variable} is for others")


def _variable(scheme: str) -> str | None:
    """The variable that names the proxy for a scheme; in lower case it wins, as in most programs."""
    names = (f"{scheme}_proxy", "all_proxy")
    return next((each for lower in names for each in (lower, lower.upper()) if os.environ.get(each)), None)


def name(case: Case) -> Result:
    """Whether the name of the service, or of the proxy, can be looked up."""
    dialer = case.dialer
    host, _ = dialer.endpoint
    addresses = dialer.addresses(Deadline(case.seconds))
    if addresses == [host]:
        return ok(f"{host} is an address")
    more = f" and {len(addresses) - MOST_ADDRESSES} more" if len(addresses) > MOST_ADDRESSES else ""
    behind = f"; the proxy looks up {shorten(dialer.host)}" if dialer.proxy else ""
    return ok(f"{shorten(host)} is {', '.join(addresses[:MOST_ADDRESSES])}{more}{behind}")


def connection(case: Case) -> Result:
    """Whether a connection comes about, through the proxy if there is one, and from which address it leaves."""
    dialer = case.dialer
    started = case.monotonic()
    case.connection = case.opened.enter_context(dialer.connect(Deadline(case.seconds)))
    duration = (case.monotonic() - started) * 1000
    case.local_address = str(case.connection.getsockname()[0])
    address, port = case.connection.getpeername()[:2]
    through = f", and through the proxy to {_joined(dialer.host, dialer.port)}," if dialer.proxy else ""
    return ok(f"to {_joined(address, port)}{through} in {duration:.0f} ms, from {case.local_address}")


def tls(case: Case) -> Result:
    """Whether the service shows a certificate that is trusted, and until when."""
    dialer = case.dialer
    if not dialer.is_secure:
        return skipped("plain http has none")
    try:
        with dialer.secure(case.connection, Deadline(case.seconds)) as secured:
            certificate, spoken = secured.getpeercert() or {}, secured.version()
    except NotReachedError as error:
        error.hint = _mend(error)
        raise
    return _judged(certificate, spoken or "TLS", case.clock())


def _mend(error: NotReachedError) -> str | None:
    cause = error.__cause__
    code = cause.verify_code if isinstance(cause, ssl.SSLCertVerificationError) else None
    return MEND_OF_CERTIFICATE.get(code or 0, error.hint)


def _judged(certificate: Mapping[str, Any], spoken: str, now: float) -> Result:
    ends = ssl.cert_time_to_seconds(certificate["notAfter"])
    days = int((ends - now) // SECONDS_OF_A_DAY)
    names = _names(certificate)
    found = (
        f"{spoken}; the certificate of {names} by {_issuer(certificate)} is valid until "
        f"{datetime.fromtimestamp(ends, UTC):%Y-%m-%d}, {days} day{'' if days == 1 else 's'} from now"
    )
    if days < DAYS_TO_RENEW:
        return warning(found, "Whoever runs the service has to renew it: after that day nothing can be sent.")
    return ok(found)


def _names(certificate: Mapping[str, Any]) -> str:
    """For whom a certificate is: its alternative names, or else the common name of its subject."""
    names = [str(value) for _, value in certificate.get("subjectAltName", ())]
    return shorten(", ".join(names) or _of(certificate.get("subject", ()), "commonName") or "nobody", 120)


def _issuer(certificate: Mapping[str, Any]) -> str:
    issuer = certificate.get("issuer", ())
    return shorten(_of(issuer, "organizationName") or _of(issuer, "commonName") or "an authority without a name", 80)


def _of(distinguished: Any, wanted: str) -> str:
    """A part of a distinguished name, as `ssl.SSLSocket.getpeercert` gives it."""
    return next((str(value) for part in distinguished for attribute, value in part if attribute == wanted), "")


def _joined(host: str, port: int) -> str:
    try:
        bracketed = ipaddress.ip_address(host).version == 6
    except ValueError:
        bracketed = False
    return f"[{host}]:{port}" if bracketed else f"{shorten(host)}:{port}"
