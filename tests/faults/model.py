"""The protocol that sends each message at most once, as one page of Python. All its states can be explored.

Two processes on two machines share a store. A job has messages to Ana and Luis, and ``--at-most 1/day``; another
message to Luis is a single send under a key. Ana may opt out, and a person may resend once. At any step a commit may
be lost, a response may be late or missing, and half a second may pass. Up to `max_faults` times, a process
is killed, or its session with the store ends although it lives.

The transitions have the names of the store's functions (`msgctl.store`): `take`, `batch`, `reconnect`, `record_late`,
`finish`, `resend`, `begin`, `end`. Each is one transaction, so nothing comes between its steps. `explore` visits every
state, in the order of their distance from the first one: a trace to a wrong state is a shortest one.

Run ``python tests/faults/model.py`` to explore it; an argument of 2 allows two faults instead of one.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

ANA, LUIS, KEY = range(3)
NAMES = ("Ana", "Luis", "the key")
JOB = (ANA, LUIS)
NOBODY, DEAD = -2, -1
"""Owners of the key: no process yet, and a process that was killed."""
NEW, OLD = 1, 2
"""The ages of an opt-out. Intents from before a new one are valid, and have expired when it is old."""
OUTCOMES = ("pending", "sending", "accepted", "unknown", "excluded")
COUNTED = ("sending", "accepted", "unknown")
"""The outcomes of messages that arrived, or may have arrived: they count for --at-most."""


class Request(NamedTuple):
    """A request in the memory of a process.

    Its phase is ``unsure`` (the commit of its intent was lost), ``intended``, ``expired``, ``sent``, or its outcome.
    """

    message: int
    attempt: int
    phase: str


class Process(NamedTuple):
    """A process. Its ``work`` is to send the ``job``, the single message of the ``key``, or nothing.

    ``holds`` is the lock that shows others that it is alive. ``is_current`` means that its epoch is the job's.
    """

    work: str = ""
    holds: bool = False
    is_current: bool = False
    requests: tuple[Request, ...] = ()

    def phase(self, *phases: str) -> list[Request]:
        """Return its requests in some phases."""
        return [request for request in self.requests if request.phase in phases]


class State(NamedTuple):
    """``rows`` are the outcomes of each message, one per attempt. ``totals`` are the columns of the job.

    ``arrived`` is known to the service only: the message and the attempt of each request that it accepted.
    ``faults`` counts kills and ended sessions.
    """

    rows: tuple[tuple[str, ...], ...] = (("pending",), ("pending",), ("pending",))
    totals: tuple[int, ...] = (2, 0, 0, 0, 0)
    processes: tuple[Process, ...] = (Process(), Process())
    has_dead_owner: bool = False
    key_owner: int = NOBODY
    optout: int = 0
    is_resent: bool = False
    arrived: tuple[tuple[int, int], ...] = ()
    faults: int = 0

    @property
    def is_running(self) -> bool:
        """Whether the owner of the job seems alive to other processes."""
        return any(process.is_current and process.holds for process in self.processes)

    @property
    def is_sending_key(self) -> bool:
        """Whether the process of the single send seems alive to other processes."""
        return self.key_owner >= 0 and self.processes[self.key_owner].holds

    def set_last(self, message: int, outcome: str) -> State:
        """Change the outcome of a message's last attempt."""
        return self.set_row(message, *self.rows[message][:-1], outcome)

    def set_row(self, message: int, *row: str) -> State:
        """Change the outcomes of a message and the totals, in one transaction."""
        rows = (*self.rows[:message], row, *self.rows[message + 1 :])
        totals = [*self.totals]
        if message in JOB:
            totals[OUTCOMES.index(self.rows[message][-1])] -= 1
            totals[OUTCOMES.index(row[-1])] += 1
        return self._replace(rows=rows, totals=tuple(totals))

    def set_process(self, number: int, process: Process) -> State:
        return self._replace(processes=(*self.processes[:number], process, *self.processes[number + 1 :]))

    def set_requests(self, number: int, removed: Sequence[Request] = (), *added: Request) -> State:
        """Change the requests in the memory of a process."""
        process = self.processes[number]
        requests = tuple(sorted({*process.requests} - {*removed} | {*added}))
        return self.set_process(number, process._replace(requests=requests))

    def next_epoch(self) -> State:
        """Begin a new epoch of the job, so that no process is current and no owner is dead."""
        processes = tuple(process._replace(is_current=False) for process in self.processes)
        return self._replace(processes=processes, has_dead_owner=False)


class Protocol:
    """The transitions. Each yields the states that may follow; none if it is not possible now."""

    def __init__(self, max_faults: int = 1) -> None:
        self.max_faults = max_faults

    # --- the job

    def take(self, s: State, me: int) -> Iterator[State]:
        """Become the owner, if no owner is alive. The epoch grows: every other process has an old one now."""
        if not s.processes[me].work and not s.is_running:
            yield self.lose(s).next_epoch().set_process(me, Process("job", holds=True, is_current=True))

    def lose(self, s: State) -> State:
        """Make requests in flight unknown, because no process waits for their responses. Only a person resends them."""
        for message in JOB:
            if s.rows[message][-1] == "sending":
                s = s.set_last(message, "unknown")
        return s

    def batch(self, s: State, me: int) -> Iterator[State]:
        """Store outcomes, give expired intents back, and store the next intent. It may be sent after the commit.

        If the connection is lost during the commit, the batch may or may not be stored.
        """
        process = s.processes[me]
        if not self.fence(process) or process.phase("unsure"):
            return
        done = process.phase("accepted", "unknown", "expired")
        stored = s
        for request in done:
            stored = self.record(stored, request)
        stored, intents = self.intend(stored) if len(done) == len(process.requests) else (stored, [])
        unsure = [intent._replace(phase="unsure") for intent in intents]
        yield stored.set_requests(me, done, *intents)
        yield stored.set_requests(me, (), *unsure)
        yield s.set_requests(me, (), *unsure)

    def fence(self, process: Process) -> bool:
        """Return whether a process may write: its epoch is still the job's. Each transaction begins with this."""
        return process.is_current

    def record(self, s: State, request: Request) -> State:
        """Store an outcome. A recipient whose request was certainly not sent is pending again (`give_back`)."""
        row = s.rows[request.message]
        if len(row) != request.attempt or row[-1] != "sending":
            return s  # stored before the connection was lost
        return s.set_last(request.message, request.phase if request.phase in COUNTED else "pending")

    def intend(self, s: State) -> tuple[State, list[Request]]:
        """Store that the next recipient is about to get the message. Leave out people who must not get it."""
        for message in JOB:
            *earlier, outcome = s.rows[message]
            if outcome != "pending":
                continue
            if not (self.has_opted_out(s, message) or self.has_enough(s, message)):
                return s.set_last(message, "sending"), [Request(message, len(earlier) + 1, "intended")]
            s = s.set_row(message, *(earlier or ["excluded"]))  # in a resend, they keep the earlier outcome
        return s, []

    def has_opted_out(self, s: State, message: int) -> bool:
        return message == ANA and s.optout > 0

    def has_enough(self, s: State, message: int) -> bool:
        """Return whether a person has reached --at-most. Every attempt counts."""
        return message == LUIS and any(outcome in COUNTED for outcome in s.rows[LUIS] + s.rows[KEY])

    def send(self, s: State, me: int) -> Iterator[State]:
        """Send a request whose intent is stored and has not expired. It arrives, even if its response never does."""
        for request in s.processes[me].phase("intended"):
            arrived = tuple(sorted((*s.arrived, request[:2])))
            yield s._replace(arrived=arrived).set_requests(me, [request], request._replace(phase="sent"))

    def reconnect(self, s: State, me: int) -> Iterator[State]:
        """Take the lock again, and give back intents whose commit was lost: they were not sent."""
        process = s.processes[me]
        unsure = process.phase("unsure")
        if self.fence(process) and (unsure or not process.holds):
            for request in unsure:
                s = self.record(s, request)
            yield s.set_process(me, process._replace(holds=True)).set_requests(me, unsure)

    def record_late(self, s: State, me: int) -> Iterator[State]:
        """Store outcomes of a lost job, each only if its row still has that request. Send nothing more."""
        process = s.processes[me]
        if process.work == "job" and not self.fence(process):
            for request in process.phase("accepted"):
                s = self.late(s, request)
            waiting = tuple(process.phase("sent"))
            yield s.set_process(me, process._replace(requests=waiting) if waiting else Process())

    def late(self, s: State, request: Request) -> State:
        row, attempt = s.rows[request.message], request.attempt
        if row[attempt - 1 : attempt] == ("unknown",):
            s = s.set_row(request.message, *row[: attempt - 1], "accepted", *row[attempt:])
        return s

    def finish(self, s: State, me: int) -> Iterator[State]:
        """Release the job after the last response."""
        process = s.processes[me]
        if self.fence(process) and not process.requests:
            yield self.lose(s).set_process(me, Process())

    def resend(self, s: State) -> Iterator[State]:
        """Add an attempt for each unknown outcome, on a person's request. The epoch grows."""
        lost = self.lose(s)
        unknown = [message for message in JOB if lost.rows[message][-1] == "unknown"]
        if unknown and not s.is_resent and not s.is_running:
            for message in unknown:
                lost = lost.set_row(message, *lost.rows[message], "pending")
            yield lost.next_epoch()._replace(is_resent=True)

    # --- the single send

    def begin(self, s: State, me: int) -> Iterator[State]:
        """Take the key and store the intent. If its owner died, the outcome is unknown; only a person resends."""
        if s.processes[me].work:
            return
        if s.rows[KEY][-1] == "sending" and not s.is_sending_key:
            s = s.set_last(KEY, "unknown")
        if s.rows[KEY] == ("unknown",) and not s.is_resent:
            s = s.set_row(KEY, "unknown", "pending")._replace(is_resent=True)
        if s.rows[KEY][-1] == "pending":
            intent = Request(KEY, len(s.rows[KEY]), "intended")
            s = s.set_last(KEY, "sending")._replace(key_owner=me)
            yield s.set_process(me, Process("key", holds=True, requests=(intent,)))

    def end(self, s: State, me: int) -> Iterator[State]:
        """Store the outcome of the single send under its key."""
        process = s.processes[me]
        for request in process.phase("accepted", "unknown"):
            if process.work == "key":
                yield self.record(s, request).set_process(me, Process())

    # --- the service, people, time and faults

    def respond(self, s: State, me: int) -> Iterator[State]:
        """The response arrives, perhaps late; or the connection is lost."""
        for request in s.processes[me].phase("sent"):
            yield s.set_requests(me, [request], request._replace(phase="accepted"))
            yield s.set_requests(me, [request], request._replace(phase="unknown"))

    def opt_out(self, s: State) -> Iterator[State]:
        if not s.optout:
            yield s._replace(optout=NEW)

    def half_a_second(self, s: State) -> Iterator[State]:
        """Time passes: intents of the job expire, even those of a suspended process."""
        later = s._replace(optout=min(s.optout * 2, OLD))
        for number, process in enumerate(s.processes):
            if process.work == "job":
                intents = process.phase("intended")
                later = later.set_requests(number, intents, *(each._replace(phase="expired") for each in intents))
        if later != s:
            yield later

    def lose_lock(self, s: State, me: int) -> Iterator[State]:
        """The session of a process with the store ends, although the process lives."""
        if s.processes[me].holds and s.faults < self.max_faults:
            yield s.set_process(me, s.processes[me]._replace(holds=False))._replace(faults=s.faults + 1)

    def kill(self, s: State, me: int) -> Iterator[State]:
        """A process dies. Responses to its requests are lost."""
        process = s.processes[me]
        if process.work and s.faults < self.max_faults:
            s = s._replace(has_dead_owner=s.has_dead_owner or process.is_current, faults=s.faults + 1)
            yield s.set_process(me, Process())._replace(key_owner=DEAD if s.key_owner == me else s.key_owner)

    def steps(self, s: State) -> Iterator[tuple[str, State]]:
        """Yield each possible transition with the next state. The number identifies the process."""
        for shared in (self.resend, self.opt_out, self.half_a_second):
            for after in shared(s):
                yield shared.__name__, after
        job = (self.take, self.batch, self.send, self.reconnect, self.record_late, self.finish)
        for transition in (*job, self.begin, self.end, self.respond, self.lose_lock, self.kill):
            for me in (0, 1):
                for after in transition(s, me):
                    yield f"{transition.__name__} {me + 1}", after


# --- the promises


def broken(before: State, after: State) -> str:
    """Return the promise that a transition breaks, or an empty string."""
    for message, row in enumerate(after.rows):
        for attempt, outcome in enumerate(row, 1):
            arrived = after.arrived.count((message, attempt))
            if arrived > 1:
                return f"{NAMES[message]} was sent to twice"
            if arrived and outcome in ("pending", "excluded"):
                return f"{NAMES[message]} was sent to and is {outcome}"
            if not arrived and outcome == "accepted":
                return f"{NAMES[message]} is accepted and got nothing"
    for process in after.processes:
        known = [request.message for request in process.requests]
        for message in JOB:
            if process.is_current and after.rows[message][-1] == "sending" and message not in known:
                return f"{NAMES[message]} is in flight, and no process waits for the response"
    if before.optout == OLD and any(message == ANA for message, _ in {*after.arrived} - {*before.arrived}):
        return "Ana was sent to after her opt-out"
    is_intended = before.rows[LUIS][-1] != "sending" == after.rows[LUIS][-1]
    if is_intended and any(outcome in COUNTED for outcome in before.rows[LUIS] + before.rows[KEY]):
        return "Luis was sent to beyond the limit"
    last = [after.rows[message][-1] for message in JOB]
    if after.totals != tuple(map(last.count, OUTCOMES)):
        return "the totals differ from the rows"
    return ""


def is_done(s: State) -> bool:
    """Return whether every recipient has a result. A key whose process has died is unknown."""
    is_sending = s.rows[KEY][-1] == "sending" and s.is_sending_key
    return not is_sending and all(s.rows[message][-1] not in ("pending", "sending") for message in JOB)


def explore(protocol: Protocol) -> tuple[int, str, list[str]]:
    """Visit every state. Return their number, the first broken promise, and the shortest trace to it.

    No recipient is lost if every recipient can still get a result from each state.
    """
    waiting = deque([State()])
    traces: dict[State, tuple[State, str] | None] = {State(): None}
    into: dict[State, list[State]] = {}
    while waiting:
        before = waiting.popleft()
        for name, after in protocol.steps(before):
            key = _key(after)
            if key not in traces:
                traces[key] = before, name
                waiting.append(after)
            if promise := broken(before, after):
                return len(traces), promise, [*_trace(traces, before), name]
            into.setdefault(key, []).append(_key(before))
    ending = [state for state in traces if is_done(state)]
    can_end = {*ending}
    while ending:
        earlier = {*into.get(ending.pop(), ())} - can_end
        can_end |= earlier
        ending += earlier
    for state in traces:
        if state not in can_end:
            return len(traces), "a recipient never gets a result", _trace(traces, state)
    return len(traces), "", []


def _key(s: State) -> State:
    """Return one state for both orders of the two processes."""
    if s.processes[0] <= s.processes[1]:
        return s
    key_owner = 1 - s.key_owner if s.key_owner >= 0 else s.key_owner
    return s._replace(processes=s.processes[::-1], key_owner=key_owner)


def _trace(traces: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    names: list[str] = []
    while step := traces[_key(state)]:
        state, name = step
        names.insert(0, name)
    return names


if __name__ == "__main__":
    started = time.monotonic()
    number, promise, trace = explore(Protocol(int(sys.argv[1]) if sys.argv[1:] else 1))
    print(f"{number:,} states in {time.monotonic() - started:.0f} s")
    print(f"{promise}: {', '.join(trace)}" if promise else "no promise is broken")
