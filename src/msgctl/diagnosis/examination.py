"""The checks in their order. What needs something that failed is skipped, and so is what a dry run leaves out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgctl.diagnosis import account, network, settings
from msgctl.diagnosis.case import Case
from msgctl.diagnosis.findings import Finding, Result, Status, skipped
from msgctl.errors import Interrupted, MsgctlError


class Check(NamedTuple):
    """A check: its name, what it does, the checks without which it cannot be made, and what it asks."""

    name: str
    make: Callable[[Case], Result]
    needs: tuple[str, ...] = ()
    asks_network: bool = False
    in_sandbox: bool = True


CHECKS = (
    Check("version", settings.version),
    Check("profile", settings.profile),
    Check("file", settings.file, in_sandbox=False),
    Check("base URL", settings.base_url, ("profile", "file")),
    Check("key", settings.key, ("profile", "file")),
    Check("proxy", network.proxy, ("base URL",), in_sandbox=False),
    Check("name", network.name, ("proxy",), asks_network=True, in_sandbox=False),
    Check("connection", network.connection, ("name",), asks_network=True, in_sandbox=False),
    Check("TLS", network.tls, ("connection",), asks_network=True, in_sandbox=False),
    Check("clock", account.clock, ("TLS", "key"), asks_network=True, in_sandbox=False),
    Check("credentials", account.credentials, ("TLS", "key"), asks_network=True),
)


def examine(case: Case) -> Iterator[Finding]:
    """Make the checks and give what each found, as soon as it is known. Raises Interrupted on Ctrl-C."""
    missing: dict[str, str] = {}
    for check in CHECKS:
        cause = next((missing[need] for need in check.needs if need in missing), None)
        finding = (
            _made(check, case) if cause is None else _finding(check, case, skipped(f"not checked: {cause} failed"))
        )
        if finding.status is Status.FAILED:
            missing[check.name] = check.name
        elif cause is not None:
            missing[check.name] = cause
        yield finding


def _made(check: Check, case: Case) -> Finding:
    if case.in_sandbox and not check.in_sandbox:
        return _finding(check, case, skipped("the sandbox does without"))
    if case.offline and check.asks_network:
        return _finding(check, case, skipped("left out by --dry-run"))
    try:
        return _finding(check, case, check.make(case))
    except Interrupted:
        raise
    except MsgctlError as error:
        found = error.what
        return _finding(check, case, Result(Status.FAILED, found, error.hint), error)


def _finding(check: Check, case: Case, result: Result, error: MsgctlError | None = None) -> Finding:
    mend = None if result.mend is None else case.mask(result.mend)
    return Finding(check.name, result.status, case.mask(result.found), mend, error)
