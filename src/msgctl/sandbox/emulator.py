"""The emulator of the service: a request in, a response out, and its state in one SQLite file.

Several threads and processes may use the file at the same time. It is in WAL mode, so that readers and a writer do not
wait for each other, and a committed change survives the death of the process. Each operation is one transaction.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from email.utils import formatdate
from ipaddress import IPv4Network, IPv6Network, ip_address
from itertools import count
from pathlib import Path
from random import Random, SystemRandom
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

from msgctl.operations import OPERATIONS, Effect, Operation
from msgctl.sandbox.handlers import HANDLERS, Scope
from msgctl.sandbox.protocol import (
    BASE_PATH,
    CREDENTIALS,
    Redact,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
    quoted,
    read,
    wrong_method,
)
from msgctl.storage import files
from msgctl.storage.files import BrokenError, transaction

if TYPE_CHECKING:
    from msgctl.sandbox.responses import Dialect

Network = IPv4Network | IPv6Network

BASE_URL = f"https://sandbox.invalid{BASE_PATH}"
CLIENT = 1
KEY = "sandbox"
OWN_PATH = "/sandbox"
"""The path of the sandbox's own endpoints."""
VISITS = "/u/"
"""What the paths of short URLs begin with."""
FILES = ("/", "/openapi.json")
"""The inbox page, and the description of all endpoints."""
CLOSING = frozenset({"drop", "reject", "garbage", "truncate"})
"""Faults without a whole response, after which the connection is closed."""
MAX_REQUESTS = 200
MAX_KEPT = 8000
"""Characters of a request's path, query and body that are kept for the inbox page."""
SECONDS_BETWEEN_CHECKS = 0.05
"""Seconds between two checks for what a request waits for."""

_BY_PATH: Mapping[str, Operation] = {BASE_PATH + operation.path: operation for operation in OPERATIONS}

FIRST_CREDITS = 1000

_TABLES = ("account", "blocked", "messages", "codes", "urls", "clicks", "faults")
_ACCOUNT = f"INSERT INTO account (credits) VALUES ({FIRST_CREDITS})"  # noqa: S608 - the number is ours
_SCHEMA = (
    # The sandbox's clock is this machine's plus clock_offset seconds, or stops at clock_stopped (seconds since 1970).
    # responses is the name of a set of responses, or its settings as JSON.
    """
    CREATE TABLE account (
        credits INTEGER NOT NULL CHECK (credits >= 0),
        clock_offset REAL NOT NULL DEFAULT 0,
        clock_stopped REAL,
        responses TEXT NOT NULL DEFAULT 'documented'
    )
    """,
    "CREATE TABLE blocked (phone TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL) WITHOUT ROWID",
    # A number is never reused, even after a reset: programs that follow the inbox ask for what comes after one.
    # text is what the phone receives; shown is what responses repeat of it, with a code masked; template_values is a
    # JSON array; received is 1 for messages that will reach their phone; created is in seconds since 1970.
    """
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        dispatch_id TEXT NOT NULL,
        phone TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        shown TEXT NOT NULL,
        code TEXT,
        voice TEXT,
        audio_code TEXT,
        template TEXT,
        template_values TEXT,
        voicemail INTEGER NOT NULL,
        blocked INTEGER NOT NULL,
        received INTEGER NOT NULL,
        credits INTEGER NOT NULL,
        created REAL NOT NULL
    )
    """,
    "CREATE INDEX messages_by_dispatch ON messages (dispatch_id)",
    """
    CREATE TABLE codes (
        phone TEXT NOT NULL,
        app_name TEXT NOT NULL,
        code TEXT NOT NULL,
        expires REAL NOT NULL,
        PRIMARY KEY (phone, app_name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE urls (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        alias TEXT NOT NULL UNIQUE,
        url_short TEXT NOT NULL,
        url_long TEXT NOT NULL,
        premium INTEGER NOT NULL
    )
    """,
    # date is YYYY-MM-DD and hour 00 to 23, both local time; a plain URL has null after operating_system.
    """
    CREATE TABLE clicks (
        url INTEGER NOT NULL,
        date TEXT NOT NULL,
        hour TEXT NOT NULL,
        country TEXT NOT NULL,
        device TEXT NOT NULL,
        operating_system TEXT NOT NULL,
        region TEXT,
        city TEXT,
        brand TEXT,
        model TEXT,
        browser TEXT,
        lang TEXT,
        is_bot INTEGER NOT NULL
    )
    """,
    "CREATE INDEX clicks_by_date ON clicks (url, date)",
    # remaining is null for a fault without a limit.
    "CREATE TABLE faults (number INTEGER PRIMARY KEY, spec TEXT NOT NULL, remaining INTEGER)",
)

STATE = files.FileFormat(
    name="the sandbox's state",
    application=0x6D736763,  # "msgc"
    version=3,
    fix="Move it away; `msgctl sandbox reset` replaces the state of this machine's sandbox.",
    schema=(*_SCHEMA, _ACCOUNT),
    most_wait=30.0,
)


class Emulator:
    """Simulates the service for any number of threads. A missing state file is created, with its folder (0600 in 0700).

    ``clock`` is the machine's, in seconds since 1970; ``client`` and ``key`` are the one account; short URLs begin with
    the origin of ``base_url``. With a ``seed`` the same requests get the same identifiers, codes and faults.
    ``operate`` replaces the operations, for example by recorded responses. ``allowed`` are the networks that may call
    the interface (empty: all), as in the account's security menu. ``redact`` removes keys from the requests on the
    inbox page.

    Raises ConfigurationError, here and from whatever uses the state, if the file is not a sandbox state, comes from
    another version of msgctl, or cannot be read or written.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        client: int = CLIENT,
        key: str = KEY,
        base_url: str = BASE_URL,
        operate: Callable[[SandboxRequest], SandboxResponse] | None = None,
        allowed: Sequence[Network] = (),
        redact: Redact = masked,
    ) -> None:
        self.path = path
        self.random = SystemRandom() if seed is None else Random(seed)  # noqa: S311 - repeatable on request
        self.chance = Random(seed)  # noqa: S311 - of faults only, so that they do not change the identifiers
        self._mix = Random(seed)  # noqa: S311 - of mixed responses only
        parts = urlsplit(base_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.clock = clock
        self.stopped: float | None = None
        """The time of the sandbox's clock, if it was stopped when it was last read."""
        self.responses = "documented"
        """The chosen responses, as last read from the database."""
        self._offset = 0.0
        """Seconds that a running clock was ahead of this machine's when it was last read."""
        self.requests: deque[tuple[int, float, SandboxRequest, SandboxResponse]] = deque(maxlen=MAX_REQUESTS)
        """The newest requests to the interface and visits, with their numbers and times."""
        self.operate = operate or self.carry_out
        self.redact = redact
        self._account = (client, key)
        self._allowed = allowed
        self._numbers = count(1)
        self._changes = 0
        """Changes that this process made, and requests that it responded to."""
        self._one_at_a_time = Lock()
        with STATE.explained(path):
            self._db = STATE.open(path, create=True)
            with suppress(sqlite3.OperationalError):  # another process sets it at this moment
                self._db.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last commits; the death of the process loses none.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.row_factory = sqlite3.Row

    def close(self) -> None:
        self._db.close()

    def respond(self, request: SandboxRequest, address: str = "") -> SandboxResponse:
        """Respond to a request from an address, with the faults that are set for operations.

        Raises nothing but ConfigurationError.
        """
        is_own = request.path in FILES or request.path.startswith(OWN_PATH)
        if is_own or request.path.startswith(VISITS):
            from msgctl.sandbox import endpoints

            response = endpoints.respond(self, request)
        else:
            with STATE.explained(self.path), self._one_at_a_time:
                query = "SELECT responses, EXISTS (SELECT 1 FROM faults) FROM account"
                self.responses, is_faulty = self._db.execute(query).fetchone()
            if self._allowed and not self._allows(address):
                # Like wrong credentials: the interface does not distinguish the two.
                dialect, refusal = self.dialect(), Refusal("UNAUTHORIZED", "client or key is wrong")
                response = dialect.refusal(None, refusal) if dialect else refusal.response()
            elif is_faulty:
                from msgctl.sandbox import faults

                response = faults.respond(self, request)
            else:
                response = self.operate(request)
        if not is_own:
            at = self.clock() + self._offset if self.stopped is None else self.stopped
            self.requests.append((next(self._numbers), at, *_kept(request, response)))
            self._changes += 1
        if self.stopped is None:
            return response
        return response._replace(headers={**response.headers, "date": formatdate(self.stopped, usegmt=True)})

    def carry_out(self, request: SandboxRequest) -> SandboxResponse:
        """Carry out an operation: 200 with the record, or 520, 404 or 405 with the error record.

        The record is converted to the chosen responses just before it is encoded.
        """
        operation = _BY_PATH.get(request.path)
        if operation is None:
            why = f"no operation at the path {quoted(self.redact(request.path))}"
            return Refusal("NOT_FOUND", why, status=404).response()
        if request.method != operation.method:
            return wrong_method(operation.path, operation.method).response()
        dialect = self.dialect()
        try:
            fields = (*CREDENTIALS[operation.credentials], *operation.fields)
            given = read(fields, request, self._account)
            begin = self.reading if operation.effect is Effect.READS else self.writing
            with begin() as db:
                # The time is read inside the transaction, so that messages are stored in the order of their times.
                scope = Scope(db, *self.now(db), self.random, self.origin, dialect is not None)
                record = HANDLERS[operation.record.name](scope, given)
                return dialect.response(operation, record) if dialect else json_response(record)
        except Refusal as refusal:
            return dialect.refusal(operation, refusal) if dialect else refusal.response()

    def dialect(self) -> Dialect | None:
        """Return the form of the next response; None if it is the documented one."""
        if self.responses == "documented":
            return None
        from msgctl.sandbox import responses

        return responses.dialect(self.responses, self._mix)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that sees one moment of the state and must not change it."""
        with STATE.explained(self.path), self._one_at_a_time, transaction(self._db, "BEGIN"):
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that may write; it is rolled back if the block raises."""
        with STATE.explained(self.path), self._one_at_a_time, transaction(self._db):
            yield self._db
            self._changes += 1

    def now(self, db: sqlite3.Connection) -> tuple[float, int]:
        """Return the time of the sandbox's clock, in seconds since 1970, and the credits left."""
        offset, stopped, left = db.execute("SELECT clock_offset, clock_stopped, credits FROM account").fetchone()
        self._offset, self.stopped = offset, stopped
        return float(self.clock() + offset if stopped is None else stopped), left

    def version(self) -> str:
        """Return a text that differs after each change, by whatever process."""
        with self._one_at_a_time:
            return f"{self._changes}.{self._db.execute('PRAGMA data_version').fetchone()[0]}"

    def reset(self) -> None:
        """Delete everything and restore the first credits."""
        with self.writing() as db:
            for table in _TABLES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - the names are ours
            db.execute(_ACCOUNT)
        self._offset, self.stopped = 0.0, None

    def _allows(self, address: str) -> bool:
        found = ip_address(address.partition("%")[0])
        mapped = getattr(found, "ipv4_mapped", None) or found
        return any(mapped in network for network in self._allowed)


def _kept(request: SandboxRequest, response: SandboxResponse) -> tuple[SandboxRequest, SandboxResponse]:
    """Return the parts of a request and its response to keep, with bounded sizes."""
    request = request._replace(
        method=request.method[:20],
        path=request.path[:MAX_KEPT],
        query=request.query[:MAX_KEPT],
        headers={},
        body=request.body[:MAX_KEPT],
    )
    return request, response._replace(body=b"", headers={})


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
        with STATE.explained(path):
            files.delete(path)


class SandboxTransport(httpx.BaseTransport):
    """Carries requests to an emulator in place of the network; several threads may use one.

    Faults raise what httpx raises on a network, or leave a response whose extensions say what it lacks.
    """

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None] = time.sleep) -> None:
        self._emulator = emulator
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode().partition("?")
        asked = SandboxRequest(request.method, path, query, dict(request.headers), request.read())
        started = time.monotonic()
        response = self._emulator.respond(asked)
        while response.wait > time.monotonic() - started:
            self._sleep(SECONDS_BETWEEN_CHECKS)
            response = self._emulator.respond(asked)
        if response.delay:
            limit = request.extensions.get("timeout", {}).get("read") or response.delay
            self._sleep(min(response.delay, limit))
            if response.delay > limit:
                raise httpx.ReadTimeout("timed out", request=request)
        body, extensions = response.body, {}
        if {*response.faults} & CLOSING == {"truncate"}:
            body = body[: len(body) // 2]
            extensions = {"lost": True, "fault": "the connection was closed before the end of the response"}
        elif not CLOSING.isdisjoint(response.faults):
            raise httpx.RemoteProtocolError("a fault simulated by the sandbox", request=request)
        headers = dict(response.headers)
        return httpx.Response(response.status, headers=headers, content=body, request=request, extensions=extensions)
