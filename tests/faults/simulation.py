"""Seeded histories of jobs with faults, on the real store: `python tests/faults/simulation.py --histories 100000`.

Processes on several machines create, send, resume, resend, cancel and remove jobs, run the due ones, send under a key
and add opt-outs, while they are killed, suspended and disconnected (see `machine`). Then the jobs are finished without
faults, and `invariants` compares the store, in SQL, with what happened. ``--first`` repeats a history, or continues a
run that was stopped. With ``--store postgresql``, each process has a session with a real server.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults import invariants
from faults.invariants import Arrival, Event, Facts, Plan, Question
from faults.machine import HOUR, Process, World, WrongError
from faults.sender import ACCOUNT, SETTINGS, Response
from faults.sessions import PostgreSQLStores, SQLiteStores, Stores
from msgctl.credits import CREDIT
from msgctl.errors import (
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    ResponseDetails,
    TurnedAwayError,
    UsageError,
)
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.transport import TooLateError
from msgctl.jobs.limits import canary_left
from msgctl.jobs.schedule import Window
from msgctl.jobs.sending import JobRunner
from msgctl.jobs.settings import Settings
from msgctl.outcomes.outcome import ACCEPTED, REFUSED, Outcome
from msgctl.store import history as entries
from msgctl.store import jobs, owners, people, recipients, removal, sends
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import Command, Why
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.schema import ENDED
from msgctl.store.store import Store
from support.postgres import running

PHONES = [f"57300{number:07}" for number in range(12)]
TEXTS = {"short": 1, "long": 2}
"""The messages of all jobs, with their segments. A segment costs one credit."""
KEY = sends.Key("order-1", b"digest", 2.0)
WINDOWS = (None, None, None, None, "08:00-12:01", "11:00-12:31", "12:01-20:00")
"""A history begins at 12:00."""
BAD = PHONES[11]
"""The number for which the service refuses a whole request."""
FAULTS = ("kill", "kill", "suspend", "disconnect", "disconnect", "lose lock", "slow", "slow")
NOTES_OF_TRACE = 400
TOGETHER = 500
"""The histories between two notes of the progress."""


class Service:
    """Accepts messages for a credit per segment, and fails in every way. Without ``fails``, it never does."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fails = True
        self.is_free = world.random.random() < 0.2
        self.arrivals: list[Arrival] = []

    def connect(self) -> None:
        """Open a connection, which sometimes takes longer than an intent may be sent."""
        if self.fails:
            self.world.sleep(self.world.random.choices((0.0, 0.3, 5.0), (20, 2, 3))[0])

    def send(self, job: int, attempt: int, phones: Sequence[str], text: str, epoch: int = 0) -> list[Outcome]:
        world, dice = self.world, self.world.random
        sent, clock, cost = world.now, world.process.clock(), TEXTS[text]
        fate = dice.choices(
            ("accepted", "not reached", "turned away", "refused", "wrong key", "lost", "no response", "partly refused"),
            (40, 2, 2, 2, 1, 2, 4, 2) if self.fails else (1, 0, 0, 0, 0, 0, 0, 0),
        )[0]
        if BAD in phones and fate != "not reached":
            fate = "refused"
        world.note(f"{fate}: job {job} {text} {' '.join(phones)}")
        if fate == "not reached":
            raise NotReachedError("not reached")
        if fate == "turned away":
            raise TurnedAwayError("slow down", reason="rate_limited")
        if fate == "refused":
            raise RefusedError("not now")
        if fate == "wrong key":
            raise RefusedError("wrong key", details=ResponseDetails(401, {}, "", None))
        accepted = []
        if fate != "lost":
            for number, phone in enumerate(phones):
                if fate == "partly refused" and number == 0:
                    accepted.append(Outcome(phone, REFUSED))
                    continue
                id_ = f"m{len(self.arrivals)}"
                accepted.append(Outcome(phone, ACCEPTED, id_, "sent", 0 if self.is_free else cost * CREDIT))
                by_clock = int(clock * 1000), int(clock) % 86400
                self.arrivals.append(Arrival(id_, job, attempt, epoch, phone, text, cost, sent, *by_clock))
        world.sleep(dice.choices((0.01, 0.2, 3.0, 60.0), (12, 6, 5, 1))[0])
        if fate not in ("accepted", "partly refused"):
            raise OutcomeUnknownError("no response")
        return accepted


class JobClient:
    """The client of one sender of a job."""

    def __init__(self, service: Service, job: Job) -> None:
        self.service, self.job = service, job
        self.attempt = job.attempt if job.is_resending else 1

    def send(self, request: Request, *, timeout: float, may_send: Callable[[], bool]) -> Response:
        phones = [str(phone) for phone in request.phones]
        text, job = str(request.values["sms"]), self.job
        self.service.connect()
        if not may_send():
            raise TooLateError
        return Response(self.service.send(job.number, self.attempt, phones, text, job.epoch))

    def sibling(self) -> Client:
        return cast(Client, self)

    def close(self) -> None:
        pass


class History:
    """A history of a seed: some jobs, some rounds of processes at once, and a last one without faults."""

    def __init__(self, seed: str, stores: Stores) -> None:
        self.stores = stores
        self.world = World(seed, stores.connect)
        self.dice = self.world.random
        self.service = Service(self.world)
        self.facts = Facts(self.service.arrivals, [], [], [])
        self.cancelled: dict[int, int] = {}
        """The epochs of jobs when a person asked their owner to cancel them."""

    def play(self) -> None:
        """Play the history. Raises WrongError, and what msgctl lets through."""
        commands = {
            self._resume: 6,
            self._repeat: 2,
            self._run_due: 3,
            self._resend: 3,
            self._opt_out: 2,
            self._send_once: 2,
            self._create: 1,
            self._cancel: 1,
            self._pause: 2,
            self._remove: 1,
            self._clear: 1,
        }
        with self.world.patched():
            self._together([self._create] * self.dice.randint(1, 2), faults=False)
            for _ in range(self.dice.randint(2, 4)):
                chosen = self.dice.choices([*commands], [*commands.values()], k=self.dice.randint(1, 3))
                self._together(chosen, faults=True)
                self.world.now += self.dice.choice((0.0, 1.0, HOUR / 2))
            self.service.fails = False
            self._together([self._finish], faults=False)

    def _together(self, commands: Sequence[Callable[[Store], None]], *, faults: bool) -> None:
        processes = []
        for number, command in enumerate(commands):
            planned = {}
            if faults:
                for _ in range(self.dice.choice((0, 1, 1, 2, 3))):
                    planned[self.dice.randint(1, self.dice.choice((60, 400)))] = self.dice.choice(FAULTS)
            offset = self.dice.choice((0.0, 0.0, HOUR, -HOUR)) if faults else 0.0
            if isinstance(self.stores, PostgreSQLStores):
                offset = 0.0  # the clock of the server decides
            process = Process(self.world, f"{number} {command.__name__.strip('_')}", planned, offset)
            # A distant server, or a disk that is slow to sync.
            process.delay, process.sync = self.dice.choice(((0.0, 0.0), (0.0, 0.0), (0.1, 0.0), (0.0, 1.0)))
            self.world.start(_main(process, command), process)
            processes.append(process)
        try:
            self.world.run()
        finally:
            for process in processes:
                self.stores.disconnect(process)

    def _happened(self, what: str, job: int = 0, phone: str = "") -> None:
        self.world.note(f"{what} {job or phone}")
        self.facts.events.append(Event(what, self.world.now, job, phone))

    # --- the commands

    def _create(self, store: Store) -> None:
        """Import and publish a job; under the name of another one, with the same rows."""
        dice = self.dice
        settings = replace(
            SETTINGS,
            timezone="UTC",
            batch_size=dice.choice((1, 1, 3)),
            concurrency=dice.choice((1, 2, 4)),
            max_credits=dice.choice((None, None, 3, 6)),
            at_most=dice.choice((None, None, "1/week", "2/week")),
            again=dice.random() < 0.3,
            canary=dice.choice((None, None, None, 2, 4)),
            window=dice.choice(WINDOWS),
        )
        number = jobs.create(store, ACCOUNT, "main", "sms bulk", settings.dump())
        name = dice.choice((None, None, "monday", "tuesday"))
        self.facts.plans.append(_plan(number, name, settings))
        rows_dice = random.Random(name) if name else dice
        phones = rows_dice.sample(PHONES, rows_dice.randint(3, 9))
        contents = [
            NewContent(each, json.dumps({"sms": text}), text.encode(), cost)
            for each, (text, cost) in enumerate(TEXTS.items(), 1)
        ]
        rows = [NewRecipient(line, phone, 1 + line % 2) for line, phone in enumerate(phones, 2)]
        recipients.add(store, number, contents, rows)
        state = dice.choice(("active", "scheduled"))
        due = store.now() + dice.choice((0, 0, 60_000))
        job = jobs.publish(store, number, state=state, digest=b"", name=name, due=due)
        if job.number == number:
            return
        removal.discard(store, number)
        if job.shown_state == "paused":
            self._send(store, job.number, "bulk")

    def _send(self, store: Store, number: int, command: Command) -> None:
        """Send a job as a command does."""
        job = jobs.get(store, number)
        if job.removed is not None:
            raise UsageError("The job was removed")
        settings = Settings.load(job.settings)
        if command == "resume" and canary_left(store, settings, job) == 0:
            settings = replace(settings, is_past_canary=True)
            self._happened("continued", number)  # before it is stored, because the process may be stopped in between
        sending = owners.take(store, number, command, settings.dump())
        self._happened("taken", number, str(sending.job.epoch))
        if job.state == "cancelled" or self.cancelled.get(number, sending.job.epoch) < sending.job.epoch:
            raise WrongError(f"the cancelled job {number} was taken")
        if command != "run-due":
            self._happened("resumed", number)
        client = JobClient(self.service, sending.job)
        runner = JobRunner(store, sending, settings, client.sibling, lambda: self.world.now)
        runner.start()
        signal_at = self.world.now + self.dice.choice((0.1, 1.0, 20.0, 1e9, 1e9, 1e9))
        while not runner.wait(1.0):
            if self.world.now > signal_at and self.service.fails:
                runner.stop(self.dice.choice((Why.INTERRUPTED, Why.TERMINATED)))
        job, ending = runner.finish()
        self.world.note(f"job {number} is {job.state}: {ending.why}")
        if job.state == "done":  # before its owner could be asked again: a later resend may take it
            self.cancelled.pop(number, None)
        if ending.reason == "damaged_store" or "because of a bug" in ending.what:
            raise WrongError(ending.what)
        if job.state == "cancelled":
            self._happened("cancelled", number)

    def _choose(self, store: Store) -> int:
        numbers = [job.number for job in jobs.listed(store)]
        if not numbers:
            raise UsageError("There is no job")
        return self.dice.choice(numbers)

    def _resume(self, store: Store) -> None:
        self._send(store, self._choose(store), "resume")

    def _repeat(self, store: Store) -> None:
        """Run the command of a job again, as a script does."""
        number = self._choose(store)
        if jobs.get(store, number).shown_state == "paused":
            self._send(store, number, "bulk")

    def _run_due(self, store: Store) -> None:
        for job in jobs.listed(store, states=("scheduled",), due_before=store.now()):
            with suppress(MsgctlError):
                self._send(store, job.number, "run-due")

    def _resend(self, store: Store) -> None:
        number = self._choose(store)
        outcome = self.dice.choice(("refused", "unknown"))
        count = owners.resendable(store, number, [outcome]).recipients
        if count:
            self.facts.questions.append(Question(number, jobs.get(store, number).attempt + 1, outcome, count))
            if owners.resend(store, number, [outcome], expected=count):
                self._send(store, number, "resend")

    def _cancel(self, store: Store) -> None:
        self._stop(store, "cancelled")

    def _pause(self, store: Store) -> None:
        self._stop(store, "paused")

    def _stop(self, store: Store, state: str) -> None:
        """Stop a job after a while, as a person may do."""
        number = self._choose(store)
        self.world.sleep(self.dice.choice((0.0, 0.1, 1.0)))
        while (job := owners.ask_to_stop(store, number, state)).is_running:
            if state == "cancelled" and not job.is_resending:
                self.cancelled[number] = job.epoch
            self.world.sleep(0.5)
        if job.state == "done":
            self.cancelled.pop(number, None)
        if jobs.get(store, number).epoch != job.epoch:
            return  # it was resumed before this person could note the time
        if job.state == state or (state == "paused" and job.state not in ENDED):
            self._happened(state, number)

    def _remove(self, store: Store) -> None:
        number = self._choose(store)
        if removal.remove(store, [number]):
            self._happened("removed", number)
        removal.tidy(store)

    def _clear(self, store: Store) -> None:
        """Remove all single sends, and all jobs that have ended."""
        numbers = entries.clearable(store, ACCOUNT).numbers
        removal.remove(store, numbers)
        for number in numbers:
            if jobs.get(store, number).removed is not None:
                self._happened("removed", number)
        removal.tidy(store)

    def _opt_out(self, store: Store) -> None:
        phones = self.dice.sample(PHONES, 4)
        people.add_optouts(store, [(phone, self.dice.choice(("sms", people.ALL))) for phone in phones])
        for phone in phones:
            self._happened("opted out", phone=phone)

    def _send_once(self, store: Store) -> None:
        single = sends.Single(ACCOUNT, "main", "sms send", "{}", [PHONES[0]], is_contact=True, digest=b"short")
        record = sends.SendRecord(store, single, KEY)
        if record.begin():
            return
        try:
            record.may_send()
            outcome = self.service.send(0, 1, [PHONES[0]], "short")[0]
        except OutcomeUnknownError as error:
            record.end([Outcome(None, "unknown", error=error.message)], sends.StoredResult(5))
        except RefusedError:
            record.end([Outcome(None, "refused")])
        except MsgctlError:
            record.end([])
        else:
            record.end([outcome], sends.StoredResult(0))

    def _finish(self, store: Store) -> None:
        """Send all jobs to the end: first within their credits, then without a limit."""
        for job in jobs.listed(store):
            if "cancelled" in (job.state, job.stopping):
                owners.ask_to_stop(store, job.number, "cancelled")
                continue
            self._send(store, job.number, "resume")
            self._happened("unlimited", job.number)
            self._end(store, job.number)
            if count := owners.resendable(store, job.number, ["refused"]).recipients:
                attempt = jobs.get(store, job.number).attempt + 1
                self.facts.questions.append(Question(job.number, attempt, "refused", count))
                owners.resend(store, job.number, ["refused"])
                self._end(store, job.number)
        sends.settle_dead(store, ACCOUNT)
        removal.tidy(store)

    def _end(self, store: Store, number: int) -> None:
        """Send a job to its end, in a few runs."""
        settings = replace(Settings.load(jobs.get(store, number).settings), max_credits=None)
        store.db.change("UPDATE job SET settings = ? WHERE number = ?", (settings.dump(), number))
        for _ in range(4):  # after a resend that was interrupted, the canary, and a closed window
            current = jobs.get(store, number)
            if current.state == "done":
                break
            if current.state == "scheduled":
                self.world.sleep(max(0.0, (current.due or 0) / 1000 - store.clock()))
            self._send(store, number, "resume")
        if (state := jobs.get(store, number).state) != "done":
            raise WrongError(f"job {number} is {state} after all recipients were sent to")


def _plan(number: int, name: str | None, settings: Settings) -> Plan:
    at_most = int(settings.at_most.split("/")[0]) if settings.at_most else -1
    most = -1 if settings.max_credits is None else settings.max_credits
    opens, closes = -1, -1
    if settings.window is not None and (hours := Window.parse(settings.window).week[0]):
        opens, closes = (minutes * 60 for minutes in hours)
    return Plan(number, name or "", int(settings.again), at_most, settings.canary or -1, most, opens, closes)


def _main(process: Process, command: Callable[[Store], None]) -> Callable[[], None]:
    def main() -> None:
        try:
            command(process.open())
        except MsgctlError as error:
            process.world.note(f"{type(error).__name__}: {error}")
            if error.reason == "damaged_store":
                raise WrongError(str(error)) from error
        process.is_dead = True  # its other threads end with it
        process.release_locks()

    return main


class Simulation:
    """Plays histories, each with an empty store."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        invariants.prepare(stores.store)

    def play(self, seed: str) -> str:
        """Play a history; return what is wrong with it, with its trace, or an empty string."""
        self._stores.empty()
        history = History(seed, self._stores)
        try:
            history.play()
            invariants.check(self._stores.store, history.facts)
        except Exception as error:  # noqa: BLE001 (reported with the seed)
            trace = "\n".join(history.world.trace[-NOTES_OF_TRACE:])
            return f"seed {seed}: {type(error).__name__}: {error}\n{trace}"
        return ""


@contextmanager
def simulating(store: str = "sqlite") -> Iterator[Simulation]:
    """A simulation with a new store, in a directory in memory if there is one."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with ExitStack() as stack:
        stores: Stores
        if store == "postgresql":
            stores = PostgreSQLStores(stack.enter_context(running()))
        else:
            directory = stack.enter_context(tempfile.TemporaryDirectory(dir=memory))
            stores = SQLiteStores(Path(directory) / "store.sqlite3")
        stack.callback(stores.close)
        yield Simulation(stores)


def play_some(store: str, seed: int, numbers: range) -> int:
    """Play some histories, print each broken promise, and return the number of histories with one."""
    wrong = 0
    with simulating(store) as simulation:
        for number in numbers:
            if fault := simulation.play(f"{seed}-{number}"):
                print(fault, flush=True)
                wrong += 1
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first history")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--processes", type=int, default=1, help="how many play histories at once")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the other processes and the server end, too
    started, wrong, end = time.monotonic(), 0, given.first + given.histories
    parts = [range(start, min(start + TOGETHER, end)) for start in range(given.first, end, TOGETHER)]
    with multiprocessing.get_context("fork").Pool(given.processes) as pool:
        for part, number in zip(parts, pool.imap(partial(play_some, given.store, given.seed), parts), strict=True):
            wrong += number
            done = part.stop - given.first
            print(f"\r{done:,} of {given.histories:,} histories, {wrong} wrong", end="", file=sys.stderr, flush=True)
        pool.close()
        pool.join()
    took = time.monotonic() - started
    print(file=sys.stderr)
    print(f"{given.store}: {given.histories:,} histories, {wrong} wrong, {took:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
