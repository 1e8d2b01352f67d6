"""One history: what a seed makes a user do with the tool, and whether everything that the tool said of it was true.

The user starts a job, sometimes from two windows at once, with a network that fails, a disk that fills up and processes
that are killed; resumes it, starts it again, waits, and sends single messages under keys in between. In the end the
faults stop, and the job is resumed until nothing is pending. After each step the tool's report is compared with what
the service did.
"""

from __future__ import annotations

import io
import json
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from msgctl import cli
from msgctl.cli.context import Context
from simulation.service import BASE_URL, CLIENT, KEY, Arrival, Departure, Service
from simulation.world import Process, World
from support.runs import ended_well

ENVIRONMENT = {"MSGCTL_BASE_URL": BASE_URL, "MSGCTL_CLIENT": str(CLIENT), "MSGCTL_KEY": KEY}
NUMBERS = {
    "57300555": (12, ("America/Bogota",)),
    "5191234": (11, ("America/Lima",)),
    "3461234": (11, ("Europe/Madrid", "Atlantic/Canary")),
}
"""How mobile numbers of some countries begin, with their length and their time zones."""
WINDOWS: tuple[tuple[str, ...], ...] = (
    (),
    (),
    ("--window", "08:00-19:00", "--days", "mon-sat"),
    ("--window", "21:00-23:00"),
)
PLENTY = 10**6
"""Credits."""
LEFT_OUT = {"invalid", "duplicate"}


class WrongError(AssertionError):
    """The tool sent what it should not, left someone out, or said what is not so."""


def check(is_true: object, what: str) -> None:
    if not is_true:
        raise WrongError(what)


@dataclass
class Run:
    """A command line that was run; ``code`` is -1 if it was killed."""

    process: Process
    arguments: Sequence[str]
    code: int = -1
    out: str = ""
    err: str = ""

    @property
    def name(self) -> str:
        return self.process.name

    @property
    def was_disturbed(self) -> bool:
        """Whether it may have ended with requests in flight, or without having written what it knew."""
        return self.process.was_killed or self.process.met_full_disk


class Plan:
    """A file of recipients, with the options of its job; ``rows`` have line, phone, and why it is left out."""

    def __init__(self, random: Random, path: Path) -> None:
        self.path = path
        self.rows: list[tuple[int, str, str]] = []
        texts = [f"Hello {number}{random.choice((0, 0, 0, 40)) * ' long'}" for number in range(random.randint(1, 3))]
        starts = [*NUMBERS][: random.choice((1, 3))]
        lines = ["phone,text"]
        for line in range(2, random.randint(3, 14)):
            start = random.choice(starts)
            digits = NUMBERS[start][0] - len(start)
            phone = f"{start}{random.randrange(10**digits):0{digits}}"
            earlier = [phone for _, phone, why in self.rows if not why]
            if earlier and random.random() < 0.1:
                phone = random.choice(earlier)
            typed = random.choice((phone, f"+{phone}", f"00{phone}", f"+{phone[:2]} {phone[2:5]}-{phone[5:]}"))
            if random.random() < 0.03:
                typed = phone = "12"
            why = "invalid" if phone == "12" else "duplicate" if phone in earlier else ""
            self.rows.append((line, phone, why))
            lines.append(f"{typed},{random.choice(texts)}")
        path.write_text("\n".join(lines) + "\n")
        self.batch, self.concurrency = random.randint(1, 5), random.randint(1, 4)
        self.rate = random.choice((None, None, 0.5, 3.0, 20.0))
        self.limit = random.choice((None, None, random.randint(0, 20)))
        self.canary = random.choice((None, None, random.randint(1, 5)))
        self.window = random.choice(WINDOWS)

    @property
    def arguments(self) -> list[str]:
        numbers = {"batch-size": self.batch, "concurrency": self.concurrency, "rate": self.rate}
        numbers |= {"max-credits": self.limit, "canary": self.canary}
        given = [word for name, value in numbers.items() if value is not None for word in (f"--{name}", str(value))]
        return [
            "sms",
            "bulk",
            str(self.path),
            "-m",
            "{text}",
            "--skip-invalid",
            "--yes",
            "--json",
            *self.window,
            *given,
        ]

    def is_open(self, phone: str, wall: float) -> bool:
        """Tell whether the window is open everywhere where a phone may be."""
        zones = next(zones for start, (_, zones) in NUMBERS.items() if phone.startswith(start))
        times = [datetime.fromtimestamp(int(wall), ZoneInfo(zone)) for zone in zones]
        first, last = self.window[1].split("-")
        return all(first <= f"{at:%H:%M}" < last and ("--days" not in self.window or at.weekday() < 6) for at in times)


@dataclass
class Job:
    """What its user knows of a job; ``rows`` and ``shown`` are its report and summary after ``seen`` runs."""

    id: str
    plan: Plan
    runs: dict[str, Run]
    limit: int | None
    is_canary: bool
    """Whether no more than the canary may have been sent."""
    resent: Counter[str] = field(default_factory=Counter)
    """How often each phone was unknown when another message was asked for."""
    seen: int = 0
    rows: list[dict[str, Any]] = field(default_factory=list)
    shown: dict[str, Any] = field(default_factory=dict)

    def is_sent(self) -> bool:
        """Tell whether so many got the message, may have got it or will get it, that it must not be sent again."""
        outcomes: list[str] = [row["outcome"] for row in self.rows if row["outcome"] not in LEFT_OUT]
        return 2 * sum(outcome != "refused" for outcome in outcomes) > len(outcomes)


class Key:
    """A key of --once, its message, and what its user knows of it."""

    def __init__(self, name: str, phone: str) -> None:
        self.arguments = ("sms", "send", phone, "-m", f"Message of {name}", "--once", name, "--json")
        self.phone = phone
        self.runs: list[Run] = []
        self.settled: Run | None = None
        """The first run whose result is to be repeated from then on."""
        self.is_doubtful = False
        self.resent = 0


class History:
    def __init__(self, seed: int, folder: Path, service: Service) -> None:
        folder.mkdir()
        self.folder = folder
        self.world = World(seed, folder)
        self.random = self.world.random
        self.service = service
        self.jobs: list[Job] = []
        self.keys: list[Key] = []
        self._is_peaceful = False
        self._number = 0
        service.begin(self.world, seed)

    def play(self) -> None:
        """Raises WrongError, and StuckError."""
        random = self.random
        plan = Plan(random, self.folder / "customers.csv")
        phones = [phone for _, phone, why in plan.rows if not why] or ["573005550000"]
        for phone in phones:
            if random.random() < 0.04:
                self.service.block(phone)
        if random.random() < 0.15:
            self.service.set_credits(random.randint(0, 10))
        self.keys = [Key(f"key {number}", random.choice(phones)) for number in range(2)]
        self.bulk(plan, at_once=random.choice((1, 1, 1, 1, 1, 1, 1, 2)))
        of_jobs = [self.resume] * 3 + [self.resume_twice, self.resend, self.rerun, self.rerun, self.states]
        for step in random.choices([*of_jobs, self.once, self.once, self.rest], k=random.randint(0, 5)):
            if step in of_jobs and not self.jobs:
                self.bulk(plan)  # it died before there was a job
            else:
                step()
        self.settle()
        self.compare_service()

    # --- steps

    def bulk(self, plan: Plan, *options: str, at_once: int = 1) -> None:
        """Start a job."""
        runs = self.run(*plan.arguments, *options, at_once=at_once)
        known = {job.id for job in self.jobs}
        told = {json.loads(run.out)["job"]: run for run in runs if run.out}
        silent = [run for run in runs if not run.out]
        names = {each["job"] for each in self.look("job", "list")} - known if silent else {*told}
        new = []
        for name in sorted(names):
            own = [told[name]] if name in told else silent
            new.append(Job(name, plan, {run.name: run for run in own}, plan.limit, plan.canary is not None))
        for job in new:
            self.compare(job)
        check(sum(job.is_sent() for job in new) <= 1, "the same job was started twice")
        is_refused = self.jobs or all(why for _, _, why in plan.rows)
        is_hindered = all(run.was_disturbed or run.code in (1, 4) for run in runs)  # without a balance there is no job
        check(new or is_refused or is_hindered, "no job was started")
        self.jobs += new
        for run in runs:
            is_known = any(run.name in job.runs for job in new)
            check(is_known or not self.departures([run]), f"{run.name} sent without a job")
            check(run.code != 2 or not self.departures([run]), f"{run.name} refused the job and sent it")

    def rerun(self) -> None:
        """Start the newest job again: that must be refused if most people got the message or will get it."""
        job = self.jobs[-1]
        day_before = datetime.fromtimestamp(self.world.wall - 86000, UTC)
        if job.is_sent() and (job.shown["pending"] or job.shown["updated"] > f"{day_before:%FT%T}"):
            (run,) = self.run(*job.plan.arguments)
            check(run.code in (2, 3, -1), f"{run.name} sent the job again: {run.code}")
            check(not self.departures([run]), f"{run.name} sent the job again")
            jobs = [each["job"] for each in self.look("job", "list")]
            check({*jobs} == {each.id for each in self.jobs}, f"{run.name} made another job")
        elif len(self.jobs) < 3:
            self.bulk(job.plan, "--again")

    def resume(self, *options: str, at_once: int = 1) -> None:
        job = self.random.choice(self.jobs)
        if "--resend-unknown" in options:
            job.resent.update(row["phone"] for row in job.rows if row["outcome"] == "unknown")
        if job.limit is not None and (self._is_peaceful or self.random.random() < 0.2):
            job.limit = PLENTY if self._is_peaceful else job.limit + self.random.randint(0, 10)
            options = (*options, "--max-credits", str(job.limit))
        gone = sum(row["outcome"] in ("accepted", "refused", "unknown") for row in job.rows)
        job.is_canary &= gone < (job.plan.canary or 0) and at_once == 1
        runs = self.run("job", "resume", job.id, "--yes", "--json", *options, at_once=at_once)
        job.runs |= {run.name: run for run in runs}
        self.compare(job)

    def resume_twice(self) -> None:
        self.resume(at_once=2)

    def resend(self) -> None:
        options = ("--resend-unknown", "--resend-refused")
        self.resume(*self.random.choice((options, options[:1], options[1:])))

    def states(self) -> None:
        job = self.random.choice(self.jobs)
        job.runs |= {run.name: run for run in self.run("job", "states", job.id, "--json")}
        self.compare(job)

    def rest(self) -> None:
        self.world.wait(self.random.choice((60, 3600, 30000, 100000)))

    def once(self) -> None:
        """Send under a key, from up to three windows at once."""
        key = self.random.choice(self.keys)
        resend = ["--resend-unknown"] if self.random.random() < 0.2 else []
        runs = self.run(*key.arguments, *resend, at_once=self.random.choice((1, 1, 2, 3)))
        key.runs += runs
        doubtful = [run for run in runs if run.was_disturbed or self.doubts([run])]
        if resend and not key.settled:
            key.resent += key.is_doubtful + len(doubtful)
        key.is_doubtful |= bool(doubtful)
        arrived = len(self.arrivals(key.runs))
        check(arrived <= 1 + key.resent, f"{key.phone} got {arrived} messages under one key")
        for run in runs:
            if key.settled and not run.was_disturbed:
                is_same = (run.code, run.out) == (key.settled.code, key.settled.out)
                check(is_same, f"{run.name} did not repeat the result of {key.settled.name}")
                check(not self.departures([run]), f"{run.name} sent under a key that was used")
            check(run.code != 0 or arrived, f"{run.name} says it was sent")
            check(run.code != 5 or key.is_doubtful, f"{run.name} does not know what is known")
            if run.code in (1, 2, 3, 4):
                check(not self.arrivals([run]), f"{run.name} says that nothing was sent")
        if not any(run.was_disturbed for run in runs):
            key.settled = next((run for run in (key.settled, *runs) if run and run.code in (0, 6)), None)
        key.is_doubtful &= not key.settled

    def settle(self) -> None:
        """End all faults, and resume every job until nothing is pending."""
        self._is_peaceful, self.world.sets_clock, self.service.faults = True, False, 0.0
        self.service.set_credits(PLENTY)
        jobs = self.jobs
        for job in jobs:
            self.jobs = [job]
            self.resume()
            if job.shown["pending"]:  # after the canary
                self.resume()
            check(job.shown["pending"] == 0 and job.shown["state"] == "done", "in the end some are pending")
        self.jobs = jobs

    # --- the truth

    def compare(self, job: Job) -> None:
        """Compare what the tool says of a job with what the service did."""
        runs = [*job.runs.values()]
        latest, is_alone = runs[-1], len(runs) == job.seen + 1
        job.seen = len(runs)
        job.rows = self.look("job", "report", job.id)
        if is_alone and latest.out:  # it ends with what `job show` prints
            job.shown = json.loads(latest.out)
        if not (is_alone and latest.out) or self.random.random() < 0.2:
            shown = self.look("job", "show", job.id)
            check(shown == job.shown or not (is_alone and latest.out), f"{latest.name} did not end with {shown}")
            job.shown = shown
        said = [(row["line"], row["phone"], {row["outcome"]} & LEFT_OUT) for row in job.rows]
        check(
            said == [(line, phone, {why} & LEFT_OUT) for line, phone, why in job.plan.rows], f"the report lists {said}"
        )
        for name, number in Counter(row["outcome"] for row in job.rows).items():
            check(job.shown[name] == number, f"{job.shown[name]} are {name}, the report says {number}")
        arrivals = self.arrivals(runs)
        arrived = Counter(each.phone for each in arrivals)
        for row in job.rows:
            phone, outcome = row["phone"], row["outcome"]
            what = f"{phone} is {outcome} and got {arrived[phone]} messages"
            if outcome != "duplicate":
                check(arrived[phone] <= 1 + job.resent[phone], what)
                check(arrived[phone] or outcome != "accepted", what)
                check(not arrived[phone] or outcome in ("accepted", "unknown"), what)
        doubts = self.doubts(runs)
        lost = sum(row["outcome"] == "unknown" and row["phone"] not in doubts for row in job.rows)
        most = sum(run.was_disturbed for run in runs) * job.plan.batch * job.plan.concurrency
        check(lost <= most, f"{lost} are unknown without a reason, at most {most} can be")
        self._compare_credits(job, arrivals)
        self._compare_departures(job)
        if is_alone and latest.out and latest.arguments[1] != "states":
            is_sent = {row["outcome"] for row in job.rows} <= {"accepted", *LEFT_OUT}
            is_paused = job.plan.canary is not None and job.shown["pending"]
            check(latest.code or is_sent or is_paused, f"{latest.name} ended with 0 before everyone was accepted")
            check(
                not (latest.code in (1, 5, 6) and is_sent),
                f"{latest.name} ended with {latest.code}, and everyone was accepted",
            )

    def _compare_credits(self, job: Job, arrivals: list[Arrival]) -> None:
        known = {each.id: each for each in arrivals}
        charged = 0
        for row in job.rows:
            if row["outcome"] == "accepted" and row["id"] is not None:
                check(row["id"] in known, f"{row['phone']} did not get {row['id']}")
                truth = known[row["id"]]
                check((truth.phone, truth.credits) == (row["phone"], row["credits"]), f"{row} is not {truth}")
                charged += truth.credits
        check(job.shown["credits"] == charged, f"{job.shown['credits']} credits, not {charged}")
        spent = sum(each.credits for each in arrivals)
        check(job.limit is None or spent <= job.limit, f"{spent} credits were spent, at most {job.limit} were allowed")

    def _compare_departures(self, job: Job) -> None:
        """Check that nothing left outside of the window, faster than the rate, or before the canary was looked at."""
        plan = job.plan
        gone: set[str] = set()
        for run in job.runs.values():
            first, number = None, 0
            for each in self.departures([run]):
                for phone in each.phones:
                    check(
                        not plan.window or plan.is_open(phone, each.wall), f"{phone} was sent to outside of the window"
                    )
                gone.update(each.phones)
                number += len(each.phones)
                first = each.now if first is None else first
                if plan.rate is not None and not self.world.has_slow_disk:
                    most = plan.rate * (each.now - first + 0.1) + max(1, min(plan.batch, plan.rate // 5))
                    check(number <= most + 0.01, f"{number} left so early, at most {most} may")
        check(not job.is_canary or len(gone) <= (plan.canary or 0), f"{len(gone)} were sent to before the canary's end")

    def compare_service(self) -> None:
        """Check that the service itself remembers the same messages, and that its credits are right."""
        messages = {(each.id, each.phone, each.credits) for each in self.service.arrivals}
        check(messages == {*self.service.messages()}, "the service remembers other messages")
        spent = sum(each.credits for each in self.service.arrivals)
        check(self.service.credits() == self.service.first_credits - spent, "the service charged something else")

    def departures(self, runs: Sequence[Run]) -> list[Departure]:
        return [each for each in self.service.departures if each.process in {run.name for run in runs}]

    def arrivals(self, runs: Sequence[Run]) -> list[Arrival]:
        return [each for each in self.service.arrivals if each.process in {run.name for run in runs}]

    def doubts(self, runs: Sequence[Run]) -> set[str]:
        return {phone for process, phone in self.service.doubts if process in {run.name for run in runs}}

    # --- running the tool

    def run(self, *arguments: str, at_once: int = 1) -> list[Run]:
        """Run a command line, in several processes at once, and return how each ended."""
        runs = [Run(self._process(), arguments) for _ in range(at_once)]
        for run in runs:
            self.world.note(f"{run.name} = msgctl {shlex.join(arguments)}".replace(str(self.folder), "DISK"))
            run.process.main = partial(self._tool, run)
        self.world.run(*(run.process for run in runs))
        for run in runs:
            self.world.note(f"{run.name} ended with {run.code}: {run.err.strip()}")
            check(run.process.was_killed or ended_well(run.code, run.out, run.err), f"{run.name} ended with {run.code}")
            is_hindered = run.was_disturbed or at_once > 1  # by the disk, or by another process
            check(run.code != 3 or is_hindered, f"{run.name} did not do its work: {run.err}")
        return runs

    def look(self, *arguments: str) -> Any:
        """Return what a command shows that only reads the disk, undisturbed."""
        run = Run(Process(lambda: None, "look"), (*arguments, "--json"))
        self._tool(run)
        check(run.code == 0, f"msgctl {' '.join(arguments)} ended with {run.code}: {run.err}")
        return json.loads(run.out)

    def _process(self) -> Process:
        """Return a process, and decide what is going to happen to it."""
        self._number += 1
        at = self.random.randrange(1, self.random.choice((40, 120, 250)))
        kind = "" if self._is_peaceful else self.random.choices(("", "kill", "full disk"), (5, 6, 1))[0]
        full = (at, at + self.random.randrange(1, 60)) if kind == "full disk" else (0, 0)
        return Process(lambda: None, f"run {self._number}", at if kind == "kill" else 0, full)

    def _tool(self, run: Run) -> None:
        """What a process does: the whole command line."""
        out, err = io.BytesIO(), io.BytesIO()
        context = Context(
            stdin=io.TextIOWrapper(io.BytesIO()),
            stdout=io.TextIOWrapper(out, encoding="utf-8", write_through=True),
            stderr=io.TextIOWrapper(err, encoding="utf-8", write_through=True),
            environ=ENVIRONMENT,
            clock=lambda: self.world.wall,
            monotonic=lambda: self.world.now,
            sleep=self.world.sleep,
        )
        run.code = cli.run(run.arguments, context)
        run.out, run.err = out.getvalue().decode(), err.getvalue().decode()
