"""What the service says: its clock, and whether it takes the credentials. One request for the balance shows both."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from msgctl import operations
from msgctl.config.base_url import is_loopback
from msgctl.diagnosis.case import Case
from msgctl.diagnosis.findings import Result, ok, skipped, warning
from msgctl.errors import Interrupted, MsgctlError, RefusedError
from msgctl.http import request
from msgctl.http.exchange import Reply
from msgctl.text import shorten

MOST_APART = 60
"""Seconds between two clocks that do no harm yet."""
REFUSING_CALLERS = frozenset({401, 403, 520})
"""Statuses that a caller gets whose address is not allowed: 520 by the interface, the others by a proxy before it."""

UNKNOWN_PATHS = frozenset({404, 405})
"""Statuses of a path that the server does not know."""

BALANCE = request.build(operations.BALANCE, {})
CHECK_CREDENTIALS = "Check client and key; the key stands in the security menu of the account."
WHO_KNOWS = (
    "Whoever runs the network knows its public address; so does the log of a server of yours elsewhere that this "
    "machine calls. Allow that address in the same menu."
)


def clock(case: Case) -> Result:
    """Whether this machine's clock agrees with the service's."""
    outcome = _asked(case)
    if isinstance(outcome, MsgctlError):
        return skipped("no answer came")
    there = _date(outcome)
    if there is None:
        return skipped("the answer does not say what time it is there")
    here = case.clock()
    apart = round(here - there.timestamp())
    if abs(apart) <= MOST_APART:
        return ok(f"within {MOST_APART} seconds of the service's")
    times = f"{_time(here)} here, {there.astimezone(UTC):%Y-%m-%d %H:%M:%S} there (UTC)"
    return warning(
        f"{abs(apart)} seconds {'fast' if apart > 0 else 'slow'}: {times}",
        "Set this machine's clock, best by NTP: dates and certificates are judged by it.",
    )


def credentials(case: Case) -> Result:
    """Whether the service takes client and key from this address, by asking for the balance."""
    outcome = _asked(case)
    if isinstance(outcome, MsgctlError):
        raise outcome
    try:
        answer = case.client.parse(BALANCE, outcome)
    except RefusedError as error:
        if outcome.status in REFUSING_CALLERS and not case.in_sandbox:
            error.hint = f"{CHECK_CREDENTIALS} {_which_address(case)} {WHO_KNOWS}"
        if outcome.status in UNKNOWN_PATHS:
            error.hint = f"There is no service at {case.base_url}: check its path, which usually ends in /api/v1."
        raise
    status = str(answer.document.get("status"))
    left = f"; {status} credits are left" if status.isascii() and status.isdecimal() and len(status) < 20 else ""
    return ok(f"taken{left}")


def _asked(case: Case) -> Reply | MsgctlError:
    """What becomes of a request for the balance, which is made once. Raises Interrupted on Ctrl-C."""
    if case.outcome is None:
        case.client = case.connect(case.credential)
        try:
            case.outcome = case.client.fetch(BALANCE, timeout=case.seconds)
        except Interrupted:
            raise
        except MsgctlError as error:
            case.outcome = error
    return case.outcome


def _date(reply: Reply) -> datetime | None:
    """What an answer's Date says (RFC 9110, 6.6.1); None where it says nothing that can be understood."""
    try:
        date = parsedate_to_datetime(reply.header("date") or "")
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def _which_address(case: Case) -> str:
    """Which address the service sees, as far as this machine can know."""
    before = "If both are right, the service does not allow the address it sees:"
    if case.dialer.proxy is not None:
        return f"{before} that of the proxy {shorten(case.dialer.proxy.host)}, as it looks from outside."
    local = case.local_address
    if is_loopback(local):
        return f"{before} {local}, as the service is on this machine."
    if _is_public(local):
        return f"{before} {local}, unless a router puts another in its place."
    return f"{before} connections leave from {local}, which is private, so the router's public address counts."


def _is_public(address: str) -> bool:
    """Whether an address is one of the internet's, and not of a private network (RFC 1918, 4193, 6598)."""
    try:
        return ipaddress.ip_address(address).is_global
    except ValueError:
        return False
