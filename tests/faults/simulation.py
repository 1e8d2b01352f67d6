"""Seeded histories of jobs with faults, on the real store: `python tests/faults/simulation.py --histories 100000`.

Processes on three machines send, resume, resend and cancel jobs, run the due ones, send under a key and add opt-outs,
while they are killed, suspended and disconnected (see `machine`). Then the jobs are finished without faults, and
`check` compares the store, in SQL, with what the service did. Progress is kept in a file: the same command continues.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.machine import HOUR, Process, World, WrongError
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError, RefusedError, TurnedAwayError
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.jobs.sending import Sender
from msgctl.jobs.settings import Settings
from msgctl.outcomes.judge import ACCEPTED, RecipientOutcome
from msgctl.store import jobs, once, owners, people, recipients
from msgctl.store.jobs import NewJob
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.results import RowOutcome, millionths
from msgctl.store.store import Store, open_store

ACCOUNT = "https://service.example/api/v1 1"
PHONES = [f"57300{number:07}" for number in range(12)]
KEY = once.Key("order-1", b"digest", 0.0)
AT_MOST = 1
INTENT_LIFE = 0.5
"""Seconds in which an intent may be sent; a promise that is not read from msgctl."""
FAULTS = ("kill", "kill", "suspend", "disconnect", "disconnect", "lose lock", "slow", "slow")


class Arrival(NamedTuple):
    """A message that the service accepted: its ID, its job, or 0 for the key, and when its request was sent.

    ``by_clock`` is the same time by the clock of its machine, in milliseconds.
    """

    id: str
    job: int
    phone: str
    sent: float
    by_clock: float


class Response(NamedTuple):
    outcomes: list[RecipientOutcome]
    body: bytes = b"{}"


class Service:
    """Accepts messages for one credit each, and fails in every way. Without ``fails``, it never does."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.fails = True
        self.arrivals: list[Arrival] = []

    def send(self, job: int, phones: Sequence[str]) -> list[RecipientOutcome]:
        world, dice = self.world, self.world.random
        sent, by_clock = world.now, world.process.clock() * 1000
        fate = dice.choices(
            ("accepted", "not reached", "turned away", "refused", "lost", "no response"),
            (20, 1, 1, 1, 1, 2) if self.fails else (1, 0, 0, 0, 0, 0),
        )[0]
        if fate == "not reached":
            raise NotReachedError("not reached")
        if fate == "turned away":
            raise TurnedAwayError("slow down", reason="rate_limited")
        if fate == "refused":
            raise RefusedError("not now")
        accepted = []
        if fate != "lost":
            for phone in phones:
                id_ = f"m{len(self.arrivals)}"
                accepted.append(RecipientOutcome(phone, ACCEPTED, id_, "sent", "1"))
                self.arrivals.append(Arrival(id_, job, phone, sent, by_clock))
        world.note(f"{fate}: job {job} {' '.join(phones)}")
        world.sleep(dice.choice((0.01, 0.01, 0.2, 3.0, 60.0)))
        if fate != "accepted":
            raise OutcomeUnknownError("no response")
        return accepted


class JobClient:
    """The client of one sender. The text of its messages is the number of the job."""

    def __init__(self, service: Service, job: int) -> None:
        self.service, self.job = service, job

    def send(self, request: Request, *, timeout: float) -> Response:
        return Response(self.service.send(self.job, [str(phone) for phone in request.phones]))

    def sibling(self) -> Client:
        return cast(Client, self)

    def close(self) -> None:
        pass


class History:
    """A history of a seed: some jobs, some rounds of processes at once, and a last one without faults."""

    def __init__(self, seed: str, path: Path) -> None:
        self.world = World(seed, path)
        self.dice = self.world.random
        self.service = Service(self.world)
        self.jobs: list[int] = []
        self.optouts: dict[str, float] = {}
        """When each phone had certainly opted out."""
        self.cancelled: dict[int, float] = {}
        self.names = 0

    def play(self) -> None:
        """Play the history. Raises WrongError, and what msgctl lets through."""
        with self.world.patched():
            self._together([self._create] * self.dice.randint(1, 2), faults=False)
            for _ in range(self.dice.randint(2, 4)):
                commands = (self._resume, self._resume, self._run_due, self._cancel, self._resend, self._opt_out)
                number = self.dice.randint(1, 3)
                chosen = self.dice.choices((*commands, self._send_once), (6, 6, 2, 1, 3, 2, 2), k=number)
                self._together(chosen, faults=True)
                self.world.now += self.dice.choice((0.0, 1.0, HOUR / 2))
            self.service.fails = False
            self._together([self._finish], faults=False)

    def _together(self, commands: Sequence[Callable[[Store], None]], *, faults: bool) -> None:
        for number, command in enumerate(commands):
            planned = {}
            if faults:
                for _ in range(self.dice.choice((0, 1, 1, 2, 3))):
                    planned[self.dice.randint(5, self.dice.choice((60, 400)))] = self.dice.choice(FAULTS)
            offset = self.dice.choice((0.0, 0.0, HOUR, -HOUR)) if faults else 0.0
            process = Process(self.world, f"{number} {command.__name__.strip('_')}", planned, offset)
            self.world.start(_main(process, command), process)
        self.world.run()

    # --- the commands

    def _create(self, store: Store) -> None:
        dice = self.dice
        settings = Settings("sms send", "people.csv", "main", "https://service.example/api/v1", 1, {})
        settings = replace(
            settings,
            batch_size=dice.choice((1, 1, 3)),
            concurrency=dice.choice((1, 2, 4)),
            max_credits=dice.choice((None, None, 3, 6)),
            at_most=dice.choice((None, f"{AT_MOST}/week")),
            again=dice.random() < 0.3,
        )
        number = jobs.create(store, NewJob(ACCOUNT, "main", "sms bulk", settings.dump()))
        phones = dice.sample(PHONES, dice.randint(3, 9))
        contents = [NewContent(each, json.dumps({"sms": str(number)}), b"%d" % each, 1) for each in (1, 2)]
        rows = [NewRecipient(line, phone, 1 + line % 2) for line, phone in enumerate(phones, 2)]
        recipients.add(store, number, contents, rows)
        state = dice.choice(("active", "scheduled"))
        jobs.publish(store, number, state=state, digest=b"", due=store.now())
        self.jobs.append(number)

    def _send(self, store: Store, number: int, state: str) -> None:
        """Send a job as a command does."""
        job = jobs.get(store, number)
        sending = owners.take(store, number, state=state)
        client = JobClient(self.service, number)
        sender = Sender(store, sending, Settings.load(job.settings), client.sibling, lambda: self.world.now)
        sender.start()
        while not sender.wait(5.0):
            store.clock()
        job, ending = sender.finish()
        if ending.reason == "damaged_store":
            raise WrongError(ending.what)
        if job.state == "cancelled":
            self.cancelled[number] = self.world.now

    def _resume(self, store: Store) -> None:
        self._send(store, self.dice.choice(self.jobs), "active")

    def _run_due(self, store: Store) -> None:
        for job in jobs.listed(store, states=("scheduled",), due_before=store.now()):
            with suppress(MsgctlError):
                self._send(store, job.number, "scheduled")

    def _resend(self, store: Store) -> None:
        number = self.dice.choice(self.jobs)
        owners.check_resend(store, number)
        outcomes = [self.dice.choice(("refused", "unknown"))]
        count = owners.resendable(store, number, outcomes)
        if count and owners.resend(store, number, outcomes, expected=count):
            self._send(store, number, "active")

    def _cancel(self, store: Store) -> None:
        number = self.dice.choice(self.jobs)
        while (job := owners.ask_to_stop(store, number, "cancelled")).is_running:
            self.world.sleep(0.5)
        if job.state == "cancelled":
            self.cancelled[number] = self.world.now

    def _opt_out(self, store: Store) -> None:
        phones = self.dice.sample(PHONES, 4)
        people.add_optouts(store, [(phone, "sms") for phone in phones])
        for phone in phones:
            self.optouts.setdefault(phone, self.world.now)

    def _send_once(self, store: Store) -> None:
        single = once.Single(ACCOUNT, "main", "sms send", "{}", [PHONES[0]], is_contact=True)
        begun = once.begin(store, single, KEY)
        if isinstance(begun, once.Result):
            return
        try:
            outcome = self.service.send(0, [PHONES[0]])[0]
        except OutcomeUnknownError as error:
            once.end(store, begun, [RowOutcome("unknown", error=error.message)], once.Result(5))
        except RefusedError:
            once.end(store, begun, [RowOutcome("refused")], None)
        except MsgctlError:
            once.end(store, begun, [], None)
        else:
            row = RowOutcome("accepted", outcome.id, outcome.status, millionths(outcome.credits))
            once.end(store, begun, [row], once.Result(0))

    def _finish(self, store: Store) -> None:
        """Send all jobs to the end: first within their credits, then without a limit."""
        for number in self.jobs:
            job = jobs.get(store, number)
            if "cancelled" in (job.state, job.stopping):
                owners.ask_to_stop(store, number, "cancelled")
                continue
            self._send(store, number, "active")
            settings = Settings.load(job.settings)
            sent = sum(arrival.job == number for arrival in self.service.arrivals)
            if settings.max_credits is not None and sent > settings.max_credits:
                raise WrongError(f"job {number} has sent {sent} messages; its limit is {settings.max_credits}")
            owners.change_settings(store, number, replace(settings, max_credits=None).dump())
            for _ in range(2):  # an interrupted resend is ended first
                self._send(store, number, "active")
            if (state := jobs.get(store, number).state) != "done":
                raise WrongError(f"job {number} is {state} after all recipients were sent to")
        once.settle_dead(store, ACCOUNT)


def _main(process: Process, command: Callable[[Store], None]) -> Callable[[], None]:
    def main() -> None:
        with suppress(MsgctlError):
            try:
                command(process.open())
            except MsgctlError as error:
                process.world.note(f"{type(error).__name__}: {error}")
                if error.reason == "damaged_store":
                    raise WrongError(str(error)) from error
        process.is_dead = True  # its other threads end with it
        process.release_locks()

    return main


INVARIANTS = {
    "the totals of a job differ from its rows": """SELECT job.number FROM job WHERE id IS NOT NULL AND
        (accepted, refused, unknown, sending) <> (SELECT coalesce(sum(outcome = 'accepted'), 0),
            coalesce(sum(outcome = 'refused'), 0), coalesce(sum(outcome = 'unknown'), 0),
            coalesce(sum(outcome = 'sending'), 0)
        FROM result WHERE job = job.number AND result.attempt = (SELECT max(newest.attempt) FROM result AS newest
            WHERE newest.job = result.job AND newest.line = result.line))""",
    "an intent was forgotten": "SELECT job, line FROM result WHERE outcome = 'sending'",
    "somebody in a job that is done has no result": """SELECT job, line FROM recipient
        JOIN job ON job.number = recipient.job WHERE state = 'done' AND content IS NOT NULL AND NOT EXISTS
        (SELECT 1 FROM result WHERE result.job = recipient.job AND result.line = recipient.line
            AND outcome NOT IN ('pending', 'sending'))""",
    "the usage differs from the results": """SELECT number FROM job WHERE removed IS NULL AND
        ((SELECT coalesce(sum(messages), 0) FROM usage WHERE job = number),
            (SELECT coalesce(sum(usage.credits), 0) FROM usage WHERE job = number)) <>
        (SELECT coalesce(sum(CASE outcome WHEN 'accepted' THEN 1 ELSE 0 END), 0), coalesce(sum(result.credits), 0)
            FROM result WHERE job = number)""",
    "credits differ from the accepted messages": """SELECT number, credits FROM job WHERE credits <>
        (SELECT coalesce(sum(credits), 0) FROM result WHERE job = number)""",
    "somebody got the same message from two jobs": """SELECT phone, content.digest FROM result
        JOIN content ON content.job = result.job AND content.number = result.content
        JOIN job ON job.number = result.job WHERE outcome IN ('accepted', 'unknown') AND result.attempt = 1
        AND content.digest IS NOT NULL AND settings LIKE '%"again": false%'
        GROUP BY phone, content.digest HAVING count(DISTINCT result.job) > 1""",
    "somebody got more messages than --at-most": """SELECT phone, count(*) FROM result
        JOIN job ON job.number = result.job WHERE outcome IN ('accepted', 'unknown')
        AND settings LIKE '%/week%' GROUP BY phone HAVING count(*) > {at_most}""",
    "an accepted message has no ID": "SELECT job, line FROM result WHERE outcome = 'accepted' AND id IS NULL",
}
"""Queries that must return no row after a history."""


def check(history: History, store: Store) -> None:
    """Compare the store with what the service did. Raises WrongError."""
    for wrong, query in INVARIANTS.items():
        if rows := store.db.rows(query.format(at_most=AT_MOST)):
            raise WrongError(f"{wrong}: {rows}")
    arrivals = history.service.arrivals
    times = Counter((arrival.job, arrival.phone) for arrival in arrivals)
    results = store.db.rows(
        """SELECT job, phone, outcome, result.attempt, result.id, time FROM result JOIN job ON job.number = result.job
        WHERE job.id IS NOT NULL AND result.request > 0 AND outcome NOT IN ('excluded', 'pending')"""
    )
    attempts = Counter((job, phone) for job, phone, *_ in results)
    for (job, phone), number in times.items():
        allowed = attempts[job, phone] if job else 1
        if number > allowed:
            raise WrongError(f"{phone} got {number} messages of job {job} in {allowed} attempts")
    ids = {(arrival.job, arrival.phone, arrival.id) for arrival in arrivals}
    for job, phone, outcome, attempt, id_, _ in results:
        if outcome == "accepted" and (job, phone, id_) not in ids:
            raise WrongError(f"{phone} of job {job} is accepted, but did not arrive")
        if outcome == "refused" and times[job, phone] >= attempts[job, phone]:
            raise WrongError(f"{phone} of job {job} is refused in attempt {attempt}, but arrived")
    intended = {(job, phone): row[-1] for job, phone, *row in results if attempts[job, phone] == 1}
    for arrival in arrivals:
        time_of_intent = intended.get((arrival.job, arrival.phone))
        if time_of_intent is not None and arrival.by_clock > time_of_intent + INTENT_LIFE * 1000 + 1:
            raise WrongError(f"{arrival} is later than its intent, which expired")
        since = history.optouts.get(arrival.phone)
        if arrival.job and since is not None and arrival.sent > since + INTENT_LIFE:
            raise WrongError(f"{arrival} although the person had opted out at {since}")
        ended = history.cancelled.get(arrival.job)
        if ended is not None and arrival.sent > ended + INTENT_LIFE:
            raise WrongError(f"{arrival} although the job was cancelled at {ended}")


_POINT = re.compile(": ([A-Z]+|put|committed)$")
"""The notes that no reader needs."""


class Simulation:
    """Plays histories in a directory in memory, each with a copy of an empty store."""

    def __init__(self, directory: Path) -> None:
        self._template = directory / "template"
        self._path = directory / "store.sqlite3"
        open_store(self._template).close()

    def play(self, seed: str) -> str:
        """Play a history; return what is wrong with it, with its trace, or an empty string."""
        for suffix in ("-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        shutil.copy(self._template, self._path)
        history = History(seed, self._path)
        try:
            history.play()
            store = open_store(self._path)
            try:
                check(history, store)
            finally:
                store.close()
        except Exception as error:  # noqa: BLE001 (reported with the seed)
            trace = "\n".join(note for note in history.world.trace if not _POINT.search(note))
            return f"seed {seed}: {type(error).__name__}: {error}\n{trace}"
        return ""


def memory() -> str | None:
    """Return a directory in memory, if there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="play one history, and print its trace")
    parser.add_argument("--progress", type=Path, help="the file of the progress")
    given = parser.parse_args()
    path = given.progress or Path(tempfile.gettempdir()) / f"msgctl-histories-{given.seed}.json"
    progress: dict[str, Any] = {"played": 0, "wrong": []}
    if path.exists():
        progress = json.loads(path.read_text())
    started, first = time.monotonic(), progress["played"]
    with tempfile.TemporaryDirectory(dir=memory()) as directory:
        simulation = Simulation(Path(directory))
        if given.only is not None:
            print(simulation.play(f"{given.seed}-{given.only}") or "nothing is wrong")
            return 0
        while progress["played"] < given.histories:
            number = progress["played"]
            if fault := simulation.play(f"{given.seed}-{number}"):
                print(fault, flush=True)
                progress["wrong"].append(number)
            progress["played"] += 1
            if progress["played"] % 100 == 0 or progress["played"] == given.histories:
                path.write_text(json.dumps(progress))
                print(f"\r{progress['played']:,} histories", end="", file=sys.stderr, flush=True)
    took = time.monotonic() - started
    played, wrong = progress["played"], len(progress["wrong"])
    print(f"{played:,} histories, {wrong} wrong ({played - first:,} of them in {took:.0f} s)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
