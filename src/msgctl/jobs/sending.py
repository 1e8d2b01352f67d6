"""Send a job, so that each recipient gets one message, whatever happens to this process, the store or the service.

One thread, the writer, owns the store. The others, the senders, make the requests. This is the protocol:

1. **Own** (`owners.take`): one transaction makes this process the owner and increases the epoch of the job. Requests in
   flight of a dead owner become unknown, and only a person resends them (`owners.resend`).
2. **Intend** (`_commit`): the writer waits for senders, and commits one batch for many of them, which share one sync of
   the disk. The transaction fails if the epoch has changed. It stores the outcomes of earlier requests, makes requests
   that were certainly not sent pending again, reads the next recipients, leaves out people who must not get the
   message, and stores an intent for each sender that waits. A batch leaves out at most a few thousand people. The next
   batch then continues, so that other processes get their turn. If commits are slow, a batch stores extra intents.
   Senders take them as they become free. If anything fails, no intent of the batch is sent.
3. **Send** (`_send`): only after the commit, a sender gets its intent. It sends the request once, less than a second
   after the opt-outs and the epoch were read. So nothing wrong is sent after an opt-out, a take-over, or a delay of the
   machine or the disk. After a slow commit, the writer reads both again (`OwnedJob.renewed`). A sender hands an intent
   back if it has expired, even while the connection was opened. It does the same if the window is closed, or if the job
   waits or stops.
4. **Record**: an outcome is stored with the next batch. It is unknown unless the response makes it certain. If the
   store is lost, outcomes are kept, and stored after a reconnect (`finish`). If another process has taken the job over,
   each is stored only where its row still has the same request.
5. **End** (`finish`): the job is done if every recipient has a result; otherwise it is paused, or stays scheduled.

A process that dies leaves only intents whose requests may have been sent. Step 1 makes them unknown.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import NamedTuple

from msgctl.errors import (
    STORE_ERRORS,
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    StoreNotReachedError,
    TurnedAwayError,
    no_more,
    of_thread,
    unexpected,
    without_frames,
)
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.http.response import NOT_FOR_RECIPIENTS, outcomes_after
from msgctl.http.transport import TooLateError
from msgctl.jobs.limits import Backoff, FailureCounter, RateLimiter, budget_of, canary_left, exclusion_rules
from msgctl.jobs.settings import Settings
from msgctl.operations import Operation
from msgctl.outcomes.outcome import ACCEPTED, REFUSED, UNKNOWN
from msgctl.store import results
from msgctl.store.batches import LostJobError, OwnedJob
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import Ending, Why, state_after
from msgctl.store.results import INTENT_LIFE, Intent, RequestOutcome
from msgctl.store.store import PAUSE, Store, boot_time

MAX_TOGETHER = 20
"""Maximum threads that share one commit. With more, all would wait for the last one and then send at once."""
CHECK = 0.5
"""Maximum seconds between two checks of the store while threads wait for work: another process may stop the job."""
KEEP_ALIVE = 10.0
"""Maximum seconds between two checks of the store while requests are in flight."""
SLOW = 0.1
"""A commit that takes this many seconds is slow. The writer then waits for more senders, and stores more intents."""
QUICK = 0.1
"""A request is assumed to take at least this many seconds. So a slow commit stores at most four extra intents per
sender: after a kill, each of them counts as unknown.
"""
MAX_LATE_BATCHES = 4
"""Maximum consecutive batches in which every intent expired before it was sent. After that, the store is too slow."""
MAX_ATTEMPT = 3600.0
"""Maximum seconds of a request. The client's own limit, --timeout, is never longer."""


class _Message(NamedTuple):
    """A sender's message to the writer: an outcome, its queue for the next intent, or its end."""

    outcome: RequestOutcome | None = None
    turn: SimpleQueue[Intent | None] | None = None
    ended: int = 0


class JobRunner:
    """Sends the pending recipients of a job that this process owns. Call `start`, `wait` and `finish`, in this order.

    ``job`` is the row of the job after the last commit.
    """

    def __init__(
        self,
        store: Store,
        owned: OwnedJob,
        settings: Settings,
        connect: Callable[[], Client],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``connect`` creates the client of a thread."""
        self._store = store
        self._owned = owned
        self._settings = settings
        self._connect = connect
        self._monotonic = monotonic
        self._operation = settings.performs
        self._hours = settings.hours(store.clock)
        self._limiter = RateLimiter(settings.rate)
        self._size = 1
        if self._operation.field("phone").several:
            self._size = self._limiter.batch_size(settings.batch_size)
        job = owned.job
        if job.is_resending and results.was_refused(store, job):
            self._size = 1  # the service may have refused a whole request for one of its numbers
        self._backoff = Backoff()
        self._failures = FailureCounter()
        self._budget = budget_of(store, settings, job)
        self._canary: int | None = None
        if not job.is_resending:
            self._canary = canary_left(store, settings, job)
        self._sent_to = 0
        """The recipients of this run whose outcomes are known."""
        self._running = min(settings.concurrency, max(1, job.pending))
        self._in_flight: dict[int, Intent] = {}
        self._waiting: list[SimpleQueue[Intent | None]] = []
        self._ready: deque[Intent] = deque()
        self._messages: SimpleQueue[_Message] = SimpleQueue()
        self._timeout: float | None = 0.0
        self._stopping, self._ended = Event(), Event()
        self._ending: Ending | None = None
        self._unwritten: list[RequestOutcome] = []
        self._took, self._request_took = 0.0, INTENT_LIFE
        self._late, self._last_late = 0, 0.0
        self._is_lost = self._is_done = False

    @property
    def job(self) -> Job:
        """The row of the job after the last commit."""
        return self._owned.job

    @property
    def is_in_flight(self) -> bool:
        """Whether a request is in flight, or about to be made."""
        return bool(self._in_flight)

    def start(self) -> None:
        """Start the threads, or as many as the system allows."""
        bodies = [("store", self._write), *[("sender", self._work)] * self._running]
        for number, (name, body) in enumerate(bodies):
            try:
                Thread(target=body, name=name, daemon=True).start()
            except RuntimeError:  # "can't start new thread"
                if number < 2:
                    self.stop(Why.CONFIGURATION, no_more("threads"))
                if number == 0:
                    self._ended.set()
                self._messages.put(_Message(ended=len(bodies) - number))
                break

    def wait(self, seconds: float) -> bool:
        """Wait up to this long for all work to be written; return whether it was."""
        return self._ended.wait(seconds)

    def stop(self, why: Why, error: MsgctlError | None = None) -> None:
        """Send nothing more, but let requests in flight finish. The first reason counts."""
        if self._ending is not None:
            return
        self._ending = Ending.of(why, error)
        self._stopping.set()
        self._messages.put(_Message())  # wakes the writing thread up

    def finish(self) -> tuple[Job, Ending]:
        """Release the job, after `wait`; return it and how the run ended.

        Raises LostJobError if another process has taken the job over. Raises the store's error if the store is lost;
        the job is then paused, because its owner ends.
        """
        ending = self._ending or Ending(Why.COMPLETE)
        if self._is_lost:
            self._owned.reconnect(self._unwritten)
        state = state_after(self.job, ending.why)
        due = self.job.due if state == "scheduled" else None
        if state == "scheduled" and ending.why is Why.CLOSED:
            now = self._store.clock()
            due = int((self._hours.closed_until(now) or now) * 1000)
        return self._owned.finish(state, due=due, ending=ending.dump()), ending

    # --- threads that make requests

    def _work(self) -> None:
        turn: SimpleQueue[Intent | None] = SimpleQueue()
        try:
            client = self._connect()
            try:
                self._messages.put(_Message(turn=turn))
                while (intent := turn.get()) is not None:
                    self._messages.put(_Message(self._send(client, intent), turn))
            finally:
                client.close()
        except Exception as error:  # noqa: BLE001 (`finish` reports it)
            self.stop(Why.CONFIGURATION, of_thread(error))
        finally:
            self._messages.put(_Message(ended=1))

    def _send(self, client: Client, intent: Intent) -> RequestOutcome:
        started = self._monotonic()
        if boot_time() > intent.expires:
            place = self._store.db.place
            too_slow = f"The store {place} is too slow: no message can be sent within a second after it was stored"
            error = StoreNotReachedError(too_slow, "Use a faster disk, or a database that is nearer.")
            return RequestOutcome(intent, (), started, error)
        if self._stopping.is_set() or self._backoff.delay(started) or not self._hours.is_open():
            return RequestOutcome(intent, (), started)
        try:
            outcome = make(client, self._operation, self._settings, intent, started)
        except Exception as raised:  # noqa: BLE001 (after a response: its recipients must not stay in flight)
            bug = without_frames(unexpected(raised, is_sent=True))
            outcome = RequestOutcome(intent, outcomes_after(bug, intent.phones), started, bug)
        self._request_took = self._monotonic() - started
        return outcome

    # --- the thread that owns the store

    def _write(self) -> None:
        """Write outcomes until the last sender has ended. After an error, no sender is left waiting."""
        try:
            while self._running:
                outcomes = self._received()
                try:
                    self._commit(outcomes)
                except (*STORE_ERRORS, LostJobError) as error:
                    why = Why.STORE_LOST if isinstance(error, StoreNotReachedError) else Why.CONFIGURATION
                    self._abandon(why, error)
        except Exception as error:  # noqa: BLE001 (`finish` reports it)
            self._abandon(Why.CONFIGURATION, of_thread(error))
        finally:
            self._ended.set()

    def _abandon(self, why: Why, error: MsgctlError) -> None:
        """End all senders, after requests in flight have finished."""
        self.stop(why, error)
        self._timeout = None
        self._dismiss()

    def _received(self) -> list[RequestOutcome]:
        """Wait for outcomes, or until waiting senders may get work, and hand out intents that are ready.

        Return the outcomes. They include intents that were ready, but are too late to be sent.
        """
        outcomes: list[RequestOutcome] = []
        timeout, end, number = self._timeout, None, 0
        with suppress(Empty):
            while self._ready or number < MAX_TOGETHER:
                if self._ready:
                    timeout = self._ready[0].expires - boot_time()
                    if timeout <= 0 or self._stopping.is_set():
                        break
                outcome, turn, ended = self._messages.get(timeout=timeout)
                number += 1
                self._running -= ended
                if outcome is not None:
                    self._count(outcome)  # now, because it may stop the job before the other intents are handed out
                    outcomes.append(outcome)
                if turn is not None:
                    self._waiting.append(turn)
                self._serve()
                timeout = 0.0
                if self._took > SLOW and len(self._waiting) < self._running:
                    now = self._monotonic()
                    end = end or now + self._took / 8
                    timeout = max(0.0, end - now)
        for intent in self._ready:
            outcomes.append(RequestOutcome(intent, (), self._monotonic()))
            self._count(outcomes[-1])
        self._ready.clear()
        return outcomes

    def _commit(self, outcomes: Sequence[RequestOutcome]) -> None:
        """Store outcomes and the intents of waiting senders in one transaction, then hand the intents out."""
        if self._is_lost:
            self._unwritten += outcomes
            self._dismiss()
            return
        wanted = len(self._waiting)
        if self._waiting and self._took > SLOW:
            wanted += self._running * int(INTENT_LIFE / 2 / max(self._request_took, QUICK))
        intents: list[Intent] = []
        began = self._monotonic()
        try:
            with self._owned.batch(exclusion_rules(self._settings, self._store.clock()), wanted):
                self._owned.record(outcomes)
                self._intend(intents, wanted)
            ready = self._owned.renewed(intents, self._operation.channel)
        except (*STORE_ERRORS, LostJobError):
            self._is_lost = True
            # Perhaps the intents were stored, although the connection was lost. They are not sent.
            self._unwritten += [*outcomes, *map(RequestOutcome, intents)]
            raise
        self._took = self._monotonic() - began
        if self.job.stopping:
            self.stop(Why.ASKED)
        self._in_flight |= {intent.request: intent for intent in intents}
        self._ready.extend(ready)
        self._serve()
        if len(ready) < len(intents):  # a recipient has opted out since
            requests = {intent.request for intent in ready}
            for intent in intents:
                if intent.request not in requests:
                    self._messages.put(_Message(RequestOutcome(intent, (), began)))
        if not self._in_flight and (self._stopping.is_set() or self._is_done):
            self._dismiss()

    def _serve(self) -> None:
        while self._waiting and self._ready:
            self._waiting.pop(0).put(self._ready.popleft())

    def _dismiss(self) -> None:
        for turn in self._waiting:
            turn.put(None)
        self._waiting.clear()

    def _count(self, outcome: RequestOutcome) -> None:
        """Count the outcome of a request: failures in a row, waits after 429, and credits."""
        intent, error = self._in_flight.pop(outcome.intent.request), outcome.error
        if self._budget:
            self._budget.release(intent, outcome.rows)
        if isinstance(error, StoreNotReachedError):
            self._late += intent.expires != self._last_late  # all intents of a batch count once
            self._last_late = intent.expires
            if self._late == MAX_LATE_BATCHES:
                self.stop(Why.STORE_LOST, error)
        elif isinstance(error, (TurnedAwayError, NotReachedError)):
            self._count_wait(outcome.started, error)
        elif isinstance(error, RefusedError) and not outcome.rows:
            self.stop(Why.NOT_FOR_RECIPIENTS, error)
        elif error is not None and not outcome.rows:
            self.stop(Why.CONFIGURATION, error)
        if not outcome.rows:
            return
        self._late = 0
        self._sent_to += len(outcome.rows)
        if any(row.outcome == ACCEPTED for row in outcome.rows):
            self._backoff.accepted()
        if self._failures.count(outcome.failure):
            why = Why.REFUSED if outcome.failure == REFUSED else Why.UNKNOWN
            self.stop(why, error or RefusedError("the service refused each of its recipients"))

    def _count_wait(self, started: float, error: TurnedAwayError | NotReachedError) -> None:
        """Let all requests wait: the service turned one away or could not be reached. Stop after several waits."""
        retry_after, why = None, Why.NOT_REACHED
        if isinstance(error, TurnedAwayError):
            retry_after, why = error.retry_after, Why.RATE_LIMITED
        if not error.retryable or self._backoff.turned_away(started, self._monotonic(), retry_after):
            self.stop(why, error)

    def _intend(self, intents: list[Intent], wanted: int) -> None:
        """Add the intents of the next requests, as many as are wanted and allowed by the limits. Called in a batch."""
        self._timeout, self._is_done = KEEP_ALIVE, False
        while len(intents) < wanted and not (self._stopping.is_set() or self.job.stopping):
            self._timeout = CHECK
            now = self._monotonic()
            if delay := max(self._limiter.delay(now), self._backoff.delay(now)):
                self._timeout = min(delay, CHECK)
                return
            if not self._hours.is_open():
                self._stop_if_idle(intents, Why.CLOSED)
                return
            size = self._allowed(intents)
            intent = self._owned.intend(size) if size else None
            if intent is None:
                return
            if self._budget:
                self._budget.reserve(intent)
            self._limiter.sent(len(intent.lines), now)
            intents.append(intent)

    def _allowed(self, intents: Sequence[Intent]) -> int:
        """Return how many recipients the next request may have; 0 if no request is allowed now."""
        size = self._size
        if self._canary is not None:
            in_flight = sum(len(intent.lines) for intent in (*self._in_flight.values(), *intents))
            size = min(size, self._canary - self._sent_to - in_flight)
        upcoming = self._owned.upcoming(max(size, 1))
        if upcoming is None and self._owned.must_continue:
            self._timeout = PAUSE
            return 0
        if upcoming is None:
            self._is_done = not intents
            self._timeout = KEEP_ALIVE
            return 0
        if size <= 0:
            self._stop_if_idle(intents, Why.CANARY)
            return 0
        if self._budget is None:
            return upcoming[0]
        allowed = self._budget.allows(*upcoming)
        if allowed == 0:
            self.stop(Why.CREDIT_LIMIT, self._budget.reached())
        return allowed or 0

    def _stop_if_idle(self, intents: Sequence[Intent], why: Why) -> None:
        """Stop unless a request is in flight: if it is not sent, its recipients are pending again."""
        if not (intents or self._in_flight):
            self.stop(why)


def make(client: Client, operation: Operation, settings: Settings, intent: Intent, started: float) -> RequestOutcome:
    """Make one request of a job, and return its outcome, which includes the error of the request."""
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        values = {**settings.fixed, **json.loads(intent.parameters), "phone": phones}
        # One attempt: a request that was not sent is tried again at the job's rate.
        response = client.send(
            build(operation, values), timeout=MAX_ATTEMPT, may_send=lambda: boot_time() <= intent.expires
        )
    except TooLateError:  # its recipients may have opted out while the connection was opened
        return RequestOutcome(intent, (), started)
    except Exception as raised:  # noqa: BLE001 (its recipients must not stay in flight)
        error = of_thread(raised)
        if isinstance(error, (NotReachedError, TurnedAwayError, ConfigurationError)):
            return RequestOutcome(intent, (), started, error)
        if isinstance(error, RefusedError) and error.http_status in NOT_FOR_RECIPIENTS:
            return RequestOutcome(intent, (), started, error)
        return RequestOutcome(intent, outcomes_after(error, intent.phones), started, error)
    if all(recipient.outcome != UNKNOWN for recipient in response.outcomes):
        return RequestOutcome(intent, response.outcomes, started)
    why = response.doubt("it was accepted")
    in_doubt = OutcomeUnknownError(why, missing_words=("accepted", response.missing_words), details=response.details)
    return RequestOutcome(intent, response.outcomes, started, in_doubt)
