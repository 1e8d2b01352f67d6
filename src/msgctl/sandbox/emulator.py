"""The emulator of the service, which responds to requests and keeps its state in one SQLite file.

Several threads and processes may use the file at the same time. In WAL mode, readers and a writer do not wait for each
other, and a committed change survives the death of the process. Each operation is one transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from random import Random, SystemRandom
from threading import Lock
from typing import NamedTuple

from msgctl import files
from msgctl.operations import OPERATIONS, Effect, Operation
from msgctl.sandbox import responses, state
from msgctl.sandbox.handlers import HANDLERS, Scope
from msgctl.sandbox.protocol import (
    BASE_PATH,
    CREDENTIALS,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    parameters_of,
    quoted,
    wrong_method,
)
from msgctl.sandbox.state import BrokenError, transaction

Network = IPv4Network | IPv6Network

ORIGIN = "https://sandbox.invalid"
MAX_REQUESTS = 200
MAX_KEPT = 8000
"""Maximum characters of a request's path, query and body stored for the inbox page."""

_BY_PATH: Mapping[str, Operation] = {BASE_PATH + operation.path: operation for operation in OPERATIONS}


class SandboxSettings(NamedTuple):
    """The settings with which a sandbox starts, and which a reset restores.

    ``client`` and ``key`` are the only account. ``faults`` are SPECs, and ``clock`` is a change of the clock. With a
    ``seed`` the same requests get the same identifiers, codes and faults. ``allowed`` are the networks that may use the
    API (empty: all), as in the account's security menu. ``store`` is the path of a store that belongs to this sandbox,
    so that a reset empties it, too.
    """

    client: int = 1
    key: str = "sandbox-key"
    credits: int | None = None
    faults: Sequence[str] = ()
    responses: str = responses.DOCUMENTED
    clock: str | None = None
    seed: int | None = None
    allowed: Sequence[Network] = ()
    store: Path | None = None


class Account(NamedTuple):
    """The account, its clock (``ahead`` of the machine's, or stopped), its responses, and whether faults are set."""

    credits: int = state.FIRST_CREDITS
    ahead: float = 0.0
    stopped: float | None = None
    responses: str = responses.DOCUMENTED
    is_faulty: bool = False

    def time(self, clock: float) -> float:
        """Return the time of the sandbox's clock; ``clock`` is the time of the machine's."""
        return clock + self.ahead if self.stopped is None else self.stopped


_ACCOUNT = "SELECT credits, clock_offset, clock_stopped, responses, EXISTS (SELECT 1 FROM faults) FROM account"


class Emulator:
    """Simulates the service for any number of threads. A missing state file (0600) and directory (0700) are created.

    ``clock`` returns the machine's time in seconds since 1970. Short URLs begin with ``origin``.

    Everything that uses the state raises ConfigurationError if the file is not a sandbox state, comes from another
    version of msgctl, or cannot be read or written.
    """

    def __init__(
        self,
        path: Path,
        settings: SandboxSettings = SandboxSettings(),  # noqa: B008 - immutable
        *,
        clock: Callable[[], float] = time.time,
        origin: str = ORIGIN,
    ) -> None:
        self.path = path
        self.settings = settings
        self._draw_again()
        self.origin = origin
        self.clock = clock
        self.account = Account()
        """The account as it was last read."""
        self.requests: deque[tuple[int, float, SandboxRequest, SandboxResponse]] = deque(maxlen=MAX_REQUESTS)
        """The newest requests for operations and short URLs, with their numbers and times."""
        self._changes = 0
        """Changes that this process made, and requests that it responded to."""
        self._one_at_a_time = Lock()
        with state.explained(path):
            self._db = state.connect(path)
            self._db.row_factory = sqlite3.Row

    def _draw_again(self) -> None:
        """Restart the random values, which a seed makes repeatable."""
        seed = self.settings.seed
        self.random = SystemRandom() if seed is None else Random(seed)  # noqa: S311 - not a secret
        self.chance = Random(seed)  # noqa: S311 - of faults only, so that they do not change the identifiers

    def close(self) -> None:
        with self._one_at_a_time:  # closing it under another thread's statement would crash the process
            self._db.close()

    def allows(self, address: str) -> bool:
        """Return whether clients at an address may make API requests."""
        if not self.settings.allowed:
            return True
        client = ip_address(address.partition("%")[0])
        mapped = getattr(client, "ipv4_mapped", None) or client
        return any(mapped in network for network in self.settings.allowed)

    def log(self, request: SandboxRequest, response: SandboxResponse) -> None:
        """Add a request to the newest requests, with a bounded size."""
        self._changes += 1
        request = request._replace(
            method=request.method[:20],
            path=request.path[:MAX_KEPT],
            query=request.query[:MAX_KEPT],
            headers={},
            body=request.body[:MAX_KEPT],
        )
        at = self.account.time(self.clock())
        self.requests.append((self._changes, at, request, response._replace(body=b"", headers={})))

    def carry_out(self, request: SandboxRequest) -> SandboxResponse:
        """Carry out an operation: 200 with the record, or 520, 404 or 405 with the error record.

        The record is converted to an observed one just before it is encoded.
        """
        operation = _BY_PATH.get(request.path)
        if operation is None:
            why = f"no operation at the path {quoted(request.path)}"
            return Refusal("NOT_FOUND", why, status=404).response()
        if request.method != operation.method:
            return wrong_method(operation.path, operation.method).response()
        if operation.name not in HANDLERS:
            return Refusal("INVALID_OPERATION", f"the sandbox does not emulate {operation.path}").response()
        try:
            credentials = parameters_of(CREDENTIALS[operation.credentials], request)
            if (credentials["client"], credentials["key"]) != (self.settings.client, self.settings.key):
                return self.refused(Refusal("UNAUTHORIZED", "client or key is wrong"), operation)
            values = parameters_of(operation.fields, request)
            begin = self.reading if operation.effect is Effect.READS else self.writing
            with begin() as db:
                # The time is read inside the transaction, so that messages are stored in the order of their times.
                now = self.now(db)
                is_observed = self.account.responses == responses.OBSERVED
                scope = Scope(db, now, self.account.credits, self.random, self.origin, is_observed)
                record = HANDLERS[operation.name](scope, values)
                if isinstance(record, Refusal):
                    return self.refused(record, operation)
                if is_observed:
                    return responses.observed(operation, record, scope.now, self.random)
                return json_response(record)
        except Refusal as refusal:
            return self.refused(refusal, operation)

    def refused(self, refusal: Refusal, operation: Operation | None = None) -> SandboxResponse:
        """Return the response to a refused request, as documented or as a service in use sends it."""
        if self.account.responses == responses.OBSERVED:
            return responses.observed_refusal(operation, refusal)
        return refusal.response()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Begin a read-only transaction, which sees a consistent state."""
        with state.explained(self.path), self._one_at_a_time, transaction(self._db, "BEGIN"):
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that may write; it is rolled back if the block raises."""
        with state.explained(self.path), self._one_at_a_time, transaction(self._db):
            yield self._db
            self._changes += 1

    def read_account(self, db: sqlite3.Connection) -> Account:
        self.account = Account(*db.execute(_ACCOUNT).fetchone())
        return self.account

    def now(self, db: sqlite3.Connection) -> float:
        """Return the time of the sandbox's clock, in seconds since 1970."""
        return self.read_account(db).time(self.clock())

    def version(self) -> str:
        """Return a string that differs after each change by any process."""
        with state.explained(self.path), self._one_at_a_time:
            return f"{self._changes}.{self._db.execute('PRAGMA data_version').fetchone()[0]}"

    def reset(self) -> None:
        """Delete everything, and restore the default settings."""
        with self.writing() as db:
            for table in state.TABLES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - the names are ours
            db.execute(state.ACCOUNT)
            self.read_account(db)
        self._draw_again()


def reset(path: Path) -> None:
    """Empty a state file that another process may be using, or delete its files if they are damaged.

    Raises ConfigurationError if the file belongs to another program or cannot be written.
    """
    if not path.exists():
        return
    try:
        with closing(Emulator(path)) as emulator:
            emulator.reset()
    except BrokenError:
        files.delete_database(path)
