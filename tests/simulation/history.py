"""One history: what a user does with the tool, chosen by a seed, and a check that all the tool reported is true.

The user starts a job, sometimes from two windows at once, with a network that fails, a disk that fills up and processes
that are killed or get signals; resumes it, resends to those who were refused, starts it again, waits, and
sends single messages under keys in between. Some jobs are scheduled or have a limit per person, and some people opt
out at any moment. In the end the faults stop, the jobs are resumed until nothing is pending, and
everyone who was refused is resent to. After each step the tool's report is compared with what the service did.
"""

from __future__ import annotations

import io
import json
import os
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from pathlib import Path
from random import Random
from signal import SIGHUP, SIGINT, SIGTERM
from typing import Any
from zoneinfo import ZoneInfo

from msgctl.cli import main as cli
from msgctl.cli.context import Context
from msgctl.cli.process import interruptible
from msgctl.jobs.ledger import ENDED_EARLY
from msgctl.jobs.schema import OPTED_OUT, SUFFIX
from msgctl.sandbox import endpoints
from msgctl.sandbox.responses import DOCUMENTED
from simulation.machine import Process, World, WrongError
from simulation.service import BASE_URL, CLIENT, KEY, Arrival, Departure, Service
from support.runs import ended_well

ENVIRONMENT = {"MSGCTL_BASE_URL": BASE_URL, "MSGCTL_CLIENT": str(CLIENT), "MSGCTL_KEY": KEY}
NUMBERS = {
    "57300555": (12, ("America/Bogota",)),
    "5191234": (11, ("America/Lima",)),
    "3461234": (11, ("Europe/Madrid", "Atlantic/Canary")),
}
"""How mobile numbers of some countries begin, with their length and their time zones."""
WINDOWS: Sequence[Sequence[str]] = (
    *((), ()),
    ("--window", "08:00-19:00", "--days", "mon-sat"),
    ("--window", "21:00-23:00"),
)
LIMITS = (None, None, None, "1/day", "2/day", "1/week")
"""Values of --at-most."""
SIGNALS = (SIGINT, SIGINT, SIGTERM, SIGHUP)
CAUSES = {
    "lost": "connection lost",
    "gateway": "status 502",
    "reset": "connection lost",
    "late": "timeout",
    "half": "incomplete response",
    "no entry": "recipient missing in the response",
}
"""Why recipients are unknown, by the fault of their request, if msgctl survived it."""
PLENTY = 10**6
"""Credits."""


def check(is_true: object, what: str) -> None:
    if not is_true:
        raise WrongError(what)


@dataclass
class Run:
    """A command line that was run; ``code`` is None if it was killed."""

    process: Process
    code: int | None = None
    out: str = ""
    err: str = ""
    ended: float = 0.0
    """The monotonic time when it ended."""

    @property
    def document(self) -> Any:
        """The job that it printed, if any; `job run-due` prints a list of jobs."""
        found = json.loads(self.out) if self.out else None
        return found[0] if isinstance(found, list) and found else found or None

    def main(self, world: World, arguments: Sequence[str]) -> None:
        """What the process does: the whole command line."""
        out, err = io.BytesIO(), io.BytesIO()
        context = Context(
            stdin=io.TextIOWrapper(io.BytesIO()),
            stdout=io.TextIOWrapper(out, "utf-8", "backslashreplace", write_through=True),
            stderr=io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True),
            environ=ENVIRONMENT,
            clock=lambda: world.wall,
            monotonic=lambda: world.now,
            sleep=world.sleep,
        )
        with interruptible() if world.running else nullcontext():
            try:
                self.code = cli.run(arguments, context)
            except KeyboardInterrupt:
                self.code = 130
        self.ended = world.now
        self.out, self.err = out.getvalue().decode(), err.getvalue().decode()


class Plan:
    """A file of recipients, with the options of its job; ``rows`` have line, phone, and why it is left out."""

    def __init__(self, random: Random, path: Path) -> None:
        self.rows: list[tuple[int, str, str]] = []
        texts = [f"Hello {number}{random.choice((0, 0, 0, 40)) * ' long'}" for number in range(random.randint(1, 3))]
        starts = [*NUMBERS][: random.choice((1, 3))]
        lines = ["phone,text,code"]
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
            self.rows.append((line, phone, "invalid" if phone == "12" else "duplicate" if phone in earlier else ""))
            lines.append(f"{typed},{random.choice(texts)},c{line}")
        path.write_text("\n".join(lines) + "\n")
        self.batch, self.concurrency = random.randint(1, 5), random.randint(1, 4)
        self.rate = random.choice((None, None, 0.5, 3.0, 20.0))
        self.limit = random.choice((None, None, random.randint(0, 20)))
        self.canary = random.choice((None, None, random.randint(1, 5)))
        self.window = random.choice(WINDOWS)
        self.at_most = random.choice(LIMITS)
        self.delay = random.choice((None, None, None, 120, 4000, 30000))
        """Seconds until the time for which the job is scheduled; None sends it at once."""
        numbers = {
            "at-most": self.at_most,
            "batch-size": self.batch,
            "concurrency": self.concurrency,
            "rate": self.rate,
        }
        numbers |= {"max-credits": self.limit, "canary": self.canary}
        given = [word for name, value in numbers.items() if value is not None for word in (f"--{name}", str(value))]
        fixed = ["sms", "bulk", str(path), "-m", "{text}"]
        self.arguments = [*fixed, "--skip-invalid", "--yes", "--json", *self.window, *given]

    def is_open(self, phone: str, wall: float) -> bool:
        """Return whether the window is open in all time zones where a phone may be."""
        if not self.window:
            return True
        times = local_times(phone, wall)
        first, last = self.window[1].split("-")
        return all(first <= f"{at:%H:%M}" < last and ("--days" not in self.window or at.weekday() < 6) for at in times)

    def period(self, phone: str, wall: float) -> float:
        """Return the start of the period of --at-most, in seconds since 1970."""
        midnights = [at.replace(hour=0, minute=0, second=0) for at in local_times(phone, wall)]
        if self.at_most and self.at_most.endswith("week"):
            midnights = [at - timedelta(days=at.weekday()) for at in midnights]
        return min(at.timestamp() for at in midnights)


def local_times(phone: str, wall: float) -> list[datetime]:
    """Return the local time in each time zone where a phone may be."""
    zones = next(zones for start, (_, zones) in NUMBERS.items() if phone.startswith(start))
    return [datetime.fromtimestamp(int(wall), ZoneInfo(zone)) for zone in zones]


@dataclass
class Job:
    """What its user knows of a job; ``rows`` is its newest report."""

    id: str
    plan: Plan
    runs: list[Run]
    limit: int | None
    is_canary: bool
    """Whether no more than the canary may have been sent."""
    resent: Counter[str] = field(default_factory=Counter)
    """How often each phone was unknown when another message was asked for."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    source: Job | None = None
    """The job from whose file it comes, if it was resent."""
    due: float | None = None
    """The time when the job is due, in seconds since 1970; None if it is not scheduled."""
    shown: Any = None
    """The output of the last command for the job; None if the command was killed."""

    def of(self, *outcomes: str) -> list[str]:
        return [row["phone"] for row in self.rows if row["outcome"] in outcomes]

    def is_sent(self) -> bool:
        """Tell whether so many got the message, may have got it or will get it, that it must not be sent again."""
        return len(self.of("accepted", "unknown", "pending")) > len(self.of("refused"))


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
        self.opted_out: list[tuple[str, float]] = []
        """Phones that opted out of SMS, each with the monotonic time; inf if the run was disturbed."""
        self.kills = 0
        """The number of runs that were disturbed."""
        self._opting_out: list[str] = []
        self._unrecorded: list[Arrival] = []
        """Messages that later limits cannot count."""
        self.doubts_by_cause: Counter[tuple[str, bool]] = Counter()
        """How many recipients stayed unknown at the end, by cause, and whether they had got the message."""
        self._is_peaceful = False
        self._number = 0
        service.begin(self.world, seed)

    def play(self) -> None:
        """Raises WrongError."""
        random = self.random
        self.plan = plan = Plan(random, self.folder / "customers.csv")
        phones = [phone for _, phone, why in plan.rows if not why] or ["573005550000"]
        for phone in phones:
            if random.random() < 0.04:
                self.service.block(phone)
        balance = random.choice((PLENTY, PLENTY, PLENTY, random.randint(0, 10)))
        endpoints.credit(self.service.emulator, credits=balance)
        self.keys = [Key(f"key {number}", random.choice(phones)) for number in range(2)]
        self.bulk(plan, at_once=random.choice((1, 1, 1, 1, 1, 1, 1, 2)))
        self._opting_out = phones * random.choice((0, 0, 1))
        of_jobs = [self.resume] * 3 + [self.resume_again, self.resend, self.resend, self.rerun, self.rerun]
        of_jobs += [self.run_due] * 3 * (plan.delay is not None)
        for step in random.choices([*of_jobs, self.once, self.once, self.rest], k=random.randint(0, 5)):
            if step in of_jobs and not self.jobs:
                self.bulk(plan)  # it died before there was a job
            else:
                step()
        spent = sum(each.credits for each in self.service.arrivals)
        check(self.service.credits() == balance - spent, "the service charged something else")
        self.settle()
        self._count_doubts()
        arrivals = {(each.phone, each.id, each.credits) for each in self.service.arrivals}
        check(arrivals == self.service.messages(), "the service remembers other messages")

    # --- steps

    def bulk(self, plan: Plan, *options: str, at_once: int = 1) -> None:
        """Start a job."""
        due = None
        if plan.delay is not None and not self.jobs:
            due = self.world.wall // 60 * 60 + plan.delay
            options = (*options, "--at", f"{datetime.fromtimestamp(due, UTC):%Y-%m-%d %H:%M}")
        runs = self.run(*plan.arguments, *options, at_once=at_once)
        made = {name.removesuffix(SUFFIX): [run] for run in runs for name in run.process.renamed}
        told = {json.loads(run.out)["job"] for run in runs if run.out}
        names = told if all(run.out for run in runs) else self.names()
        new = [
            Job(name, plan, made[name], plan.limit, plan.canary is not None, due=due)
            for name in sorted(names - {job.id for job in self.jobs})
        ]
        for job in new:
            self.compare(job)
        # With --at-most, the second job has only the people whom the service refused in the first one.
        check(plan.at_most or sum(job.is_sent() for job in new) < 2, "the same job was started twice")
        is_refused = self.jobs or all(why for _, _, why in plan.rows)
        # Without credits or recipients, or after the time of --at, no job is created.
        is_late = due is not None and self.world.wall >= due
        codes = (1, 2, 4) if plan.at_most or self.opted_out or is_late else (1, 4)
        is_hindered = all(run.process.was_disturbed or run.code in codes for run in runs)
        check(new or is_refused or is_hindered, "no job was started")
        self.jobs += new
        for run in runs:
            is_known = due is None and run.code != 2 and any(run in job.runs for job in new)
            check(is_known or not self.departures([run]), f"{run.process.name} sent without a job")

    def rerun(self) -> None:
        """Start the newest job again: that must be refused if most people got the message or will get it."""
        job = [each for each in self.jobs if each.source is None][-1]
        recent = [each for each in self.departures(job.runs) if each.wall > self.world.wall - 80000]
        reached = {*job.of("accepted", "unknown")} & {phone for each in recent for phone in each.phones}
        everyone = job.of("accepted", "unknown", "pending", "refused")
        if self.plan.at_most or self.opted_out:  # excluded people do not count as repeats
            if sum(each.source is None for each in self.jobs) < 3:
                self.bulk(job.plan)
        elif len({*job.of("pending"), *reached}) * 2 > len(everyone):
            (run,) = self.run(*job.plan.arguments)
            check(
                run.code in (2, 3, 130, None) and not self.departures([run]), f"{run.process.name} sent the job again"
            )
            check(self.names() == {each.id for each in self.jobs}, f"{run.process.name} created another job")
        elif sum(each.source is None for each in self.jobs) < 3:
            self.bulk(job.plan, "--again")

    def resume(self, *options: str, job: Job | None = None) -> None:
        job = job or self.random.choice(self.jobs)
        if "--resend-unknown" in options:
            job.resent.update(job.of("unknown"))
        if job.limit is not None and (self._is_peaceful or self.random.random() < 0.2):
            job.limit = PLENTY if self._is_peaceful else job.limit + self.random.randint(0, 10)
            options = (*options, "--max-credits", str(job.limit))
        job.is_canary &= len(job.of("accepted", "refused", "unknown")) < (job.plan.canary or 0)
        job.runs += self.run("job", "resume", job.id, "--yes", "--json", *options)
        self.compare(job)
        self.compare_resends(job.source or job)

    def run_due(self) -> None:
        """Run `job run-due`, in one terminal or in two at once; sometimes wait until the job is due."""
        job = next((each for each in self.jobs if each.due is not None), self.jobs[0])
        if job.due is not None and (self._is_peaceful or self.random.random() < 0.6):
            self.world.wait(max(0.0, job.due - self.world.wall))
        before = job.shown["state"] if job.shown else "scheduled"
        runs = self.run("job", "run-due", "--json", at_once=1 if self._is_peaceful else self.random.choice((1, 1, 2)))
        job.is_canary &= len(job.of("accepted", "refused", "unknown")) < (job.plan.canary or 0)
        job.runs += runs
        if len(runs) > 1:  # their outputs depend on which one sent it
            job.runs.append(Run(Process("either")))
        self.compare(job)
        departures = self.departures(runs)
        check(before == "scheduled" or not departures, "a job was sent that is not scheduled")
        check(all(each.wall >= (job.due or 0) for each in departures), "a job was sent before its time")
        # After the job's part, Ctrl-C only keeps the result from being printed.
        stopped = [run for run in runs if run.code == 130 and "was carried out" not in run.err]
        if self.departures([run for run in stopped if SIGINT in run.process.handled]):
            check(self.look("job", "show", job.id)["state"] != "scheduled", "after Ctrl-C, a job is still scheduled")

    def resume_again(self) -> None:
        options = ("--resend-unknown", "--resend-refused")
        self.resume(*self.random.choice((options, options[:1], options[1:])))

    def resend(self, job: Job | None = None) -> None:
        """Resend to those whom a job has refused, from up to two windows at once."""
        job = job or self.random.choice(self.jobs)
        line = ("job", "resend", job.id, "--only", "refused", "--yes", "--json")
        runs = self.run(*line, at_once=1 if self._is_peaceful else self.random.choice((1, 1, 2)))
        made = {name.removesuffix(SUFFIX): run for run in runs for name in run.process.renamed}
        known = {each.id for each in self.jobs}
        for name in sorted(self.names() - known):
            plan = copy(job.plan)
            plan.canary = plan.limit = None
            plan.rows = []
            new = Job(name, plan, [made[name]], None, is_canary=False, source=job.source or job)
            self.jobs.append(new)
            self.compare(new)
            check({*plan.rows} <= {*job.plan.rows}, f"{name} resends to others than those of {job.id}")
        self.compare_resends(job.source or job)

    def compare_resends(self, source: Job) -> None:
        """Check that everyone got one message, from one of the jobs that have the same people."""
        family = [each for each in self.jobs if source in (each, each.source)]
        arrived = Counter(each.phone for each in self.arrivals([run for job in family for run in job.runs]))
        for phone, number in arrived.items():
            allowed = 1 + sum(job.resent[phone] for job in family)
            check(number <= allowed, f"{phone} got {number} messages from {[job.id for job in family]}")

    def rest(self) -> None:
        self.world.wait(self.random.choice((60, 3600, 30000, 100000)))

    def once(self) -> None:
        """Send under a key, from up to three windows at once."""
        key = self.random.choice(self.keys)
        resend = ["--resend-unknown"] if self.random.random() < 0.2 else []
        runs = self.run(*key.arguments, *resend, at_once=self.random.choice((1, 1, 2, 3)))
        key.runs += runs
        doubtful = [run for run in runs if run.process.was_disturbed or self.doubts([run])]
        if resend and not key.settled:
            key.resent += key.is_doubtful + len(doubtful)
        key.is_doubtful |= bool(doubtful)
        arrived = len(self.arrivals(key.runs))
        check(arrived <= 1 + key.resent, f"{key.phone} got {arrived} messages under one key")
        for run in runs:
            name = run.process.name
            is_out = any(key.phone == phone for phone, _ in self.opted_out)
            if key.settled and not run.process.was_disturbed and not is_out:
                is_same = (run.code, run.out) == (key.settled.code, key.settled.out)
                check(is_same and not self.departures([run]), f"{name} did not repeat the result of its key")
            check(run.code != 0 or arrived, f"{name} says it was sent")
            check(run.code != 2 or is_out, f"{name} was refused without a reason")
            check(run.code != 5 or key.is_doubtful, f"{name} reports an unknown outcome that is known")
            check(run.code not in (1, 2, 3, 4) or not self.arrivals([run]), f"{name} says that nothing was sent")
        if not any(run.process.was_disturbed for run in runs):
            key.settled = next((run for run in (key.settled, *runs) if run and run.code in (0, 6)), None)
        key.is_doubtful &= not key.settled

    def settle(self) -> None:
        """End all faults, and resume every job until nothing is pending."""
        self._is_peaceful, self.service.faults = True, 0.0
        endpoints.credit(self.service.emulator, credits=PLENTY)
        for job in [*self.jobs]:
            if job.due is not None:
                self.run_due()
            self._finish(job)
        for source in [job for job in self.jobs if job.source is None]:
            number = len(self.jobs)
            if source.of("refused"):
                self.resend(source)
            for new in self.jobs[number:]:
                self._finish(new)
            family = [each for each in self.jobs if source in (each, each.source)]
            for each in family:
                if each.of("refused"):
                    self.resume("--resend-refused", job=each)
            tried = {phone for new in self.jobs[number:] for phone in new.of("accepted", "unknown", "refused")}
            tried |= {phone for each in family for phone in each.of("accepted", "unknown", "excluded")}
            check({*source.of("refused")} <= tried, f"{source.of('refused')} were refused and not resent to: {tried}")
        listed = {each["job"]: each for each in self.look("job", "list")}
        check({*listed} == {job.id for job in self.jobs}, f"job list shows {[*listed]}")
        for job in self.jobs:
            shown = listed[job.id]
            check(shown == job.shown and shown["state"] == "done", f"at the end a job is {shown}, not {job.shown}")

    def _count_doubts(self) -> None:
        for job in self.jobs:
            arrived = {each.phone for each in self.arrivals(job.runs)}
            for row in job.rows:
                phone = row["phone"]
                if row["outcome"] != "unknown" or phone in job.resent:
                    continue
                faults = [each.fault for each in self.departures(job.runs) if phone in each.phones]
                cause = ENDED_EARLY if row["error"] == ENDED_EARLY else CAUSES.get(faults[-1], faults[-1])
                self.doubts_by_cause[cause, phone in arrived] += 1

    def _finish(self, job: Job) -> None:
        for _ in range(2):  # a canary needs two
            if job.of("pending") or job.runs[-1].document is None:
                self.resume(job=job)

    # --- the truth

    def compare(self, job: Job) -> None:
        """Compare what the tool says of a job with what the service did."""
        job.rows = self.look("job", "report", job.id)
        left_out = {"invalid", "duplicate"}
        said = [(row["line"], row["phone"], "".join({row["outcome"]} & left_out)) for row in job.rows]
        plan = job.plan.rows = job.plan.rows or said  # those of a resend are not known before
        excluded = {row["line"] for row in job.rows if row["outcome"] == "excluded"}
        same = [each if each[0] not in excluded else (*each[:2], "") for each in plan]
        check(said == same, f"the report lists {said}")
        self._compare_excluded(job)
        arrivals = self.arrivals(job.runs)
        arrived = Counter(each.phone for each in arrivals)
        for row in job.rows:
            phone, outcome = row["phone"], row["outcome"]
            if outcome != "duplicate":
                allowed = {"accepted": range(1, 2 + job.resent[phone]), "unknown": range(2 + job.resent[phone])}
                is_true = arrived[phone] in allowed.get(outcome, [0])
                check(is_true, f"{phone} is {outcome} and got {arrived[phone]} messages")
        lost = {*job.of("unknown")} - self.doubts(job.runs)
        most = sum(run.process.was_disturbed for run in job.runs) * job.plan.batch * job.plan.concurrency
        check(len(lost) <= most, f"{lost} are unknown without a reason; at most {most} can be")
        sent = [(row["phone"], row["id"], row["credits"]) for row in job.rows if row["outcome"] == "accepted"]
        known = {(each.phone, each.id, each.credits) for each in arrivals}
        if self.service.responses == DOCUMENTED:
            told = [each for each in sent if each[1] not in self.service.bare]
            check({*told} <= known, f"the report lists {told}, but {known} were sent")
        charged = {(phone, price) for phone, _, price in sent if price is not None}
        check(charged <= {(phone, price) for phone, _, price in known}, f"the report lists {sent}, {known} were sent")
        spent = sum(each.credits for each in arrivals)
        check(job.limit is None or spent <= job.limit, f"{spent} credits were spent; at most {job.limit} are allowed")
        for run in job.runs:
            self._compare_departures(job.plan, run)
        gone = {phone for each in self.departures(job.runs) for phone in each.phones}
        gone -= {*job.of("pending")}  # such as those who were refused and are to be sent to again
        check(not job.is_canary or len(gone) <= (job.plan.canary or 0), f"{len(gone)} were sent to as canaries")
        latest = job.runs[-1]
        shown = job.shown = latest.document
        if shown is not None:
            names = ("accepted", "refused", "unknown", "pending", "excluded", *left_out)
            counts = {name: len(job.of(name)) for name in names}
            counts["credits"] = sum(price or 0 for _, _, price in sent)
            check(counts.items() <= shown.items(), f"a job ended with {shown}, the report says {counts}")
            is_sent = not job.of("refused", "unknown", "pending")
            is_paused = shown["state"] == "scheduled" or (
                job.of("pending") and 0 < (job.plan.canary or 0) <= len(job.of("accepted", "refused", "unknown"))
            )
            check(latest.code or is_sent or is_paused, "a run ended with 0 before everyone was accepted")
            check(latest.code in (0, 3) or not is_sent, f"a run ended with {latest.code}, but everyone was accepted")

    def _compare_at_most(self, first: int) -> None:
        """Check that no one got more messages than allowed. Messages from ``first`` on are from jobs with the limit."""
        most = int((self.plan.at_most or "").split("/")[0])
        for number, each in enumerate(self.service.arrivals[first:], first):
            since = self.plan.period(each.phone, each.wall)
            counted = [one for one in self.service.arrivals[:number] if one not in self._unrecorded]
            before = [one for one in counted if one.phone == each.phone and one.wall >= since]
            check(len(before) < most, f"{each.phone} got more than {self.plan.at_most}")

    def _compare_excluded(self, job: Job) -> None:
        """Check that excluded people have opted out or have reached the limit."""
        for row in job.rows:
            if row["outcome"] != "excluded":
                continue
            phone = row["phone"]
            if row["error"] == OPTED_OUT:
                is_true = any(phone == each[0] for each in self.opted_out)
            else:
                most = int((job.plan.at_most or "1000/day").split("/")[0])
                requests = sum(phone in each.phones for each in self.service.departures)
                is_true = requests + self.kills >= most
            check(is_true, f"{phone} is excluded without a reason: {row['error']}")

    def _compare_departures(self, plan: Plan, run: Run) -> None:
        """Check that nothing was sent outside the window, or faster than the rate."""
        first, number = None, 0
        for each in self.departures([run]):
            for phone in each.phones:
                check(plan.is_open(phone, each.wall), f"{phone} was sent to outside the window")
            number += len(each.phones)
            first = each.now if first is None else first
            if plan.rate is not None:
                most = plan.rate * (each.now - first + 0.1) + max(1, min(plan.batch, plan.rate // 5))
                check(number <= most + 0.01, f"{number} were sent too early; at most {most} may be")

    def departures(self, runs: Sequence[Run]) -> list[Departure]:
        return [each for each in self.service.departures if each.process in {run.process.name for run in runs}]

    def arrivals(self, runs: Sequence[Run]) -> list[Arrival]:
        return [each for each in self.service.arrivals if each.process in {run.process.name for run in runs}]

    def doubts(self, runs: Sequence[Run]) -> set[str]:
        """Return the phones of requests whose response did not arrive whole."""
        return {phone for each in self.departures(runs) if each.is_doubtful for phone in each.phones}

    # --- running the tool

    def run(self, *arguments: str, at_once: int = 1) -> list[Run]:
        """Run a command line, in several processes at once, and return how each ended."""
        lines = [arguments] * at_once
        if self._opting_out and not self._is_peaceful and self.random.random() < 0.2:
            channel = self.random.choice(("sms", "call", "all"))
            lines.append(("optout", "add", self.random.choice(self._opting_out), "--channel", channel))
        runs = [Run(self._process()) for _ in lines]
        for run, line in zip(runs, lines, strict=True):
            command = shlex.join(line).replace(str(self.folder), "DISK")
            self.world.note(f"{run.process.name} = msgctl {command}")
        sent, arrived = len(self.service.departures), len(self.service.arrivals)
        self.world.run(
            {run.process: partial(run.main, self.world, line) for run, line in zip(runs, lines, strict=True)}
        )
        self.kills += sum(run.process.was_disturbed for run in runs)
        if arguments[1] == "send":  # it is sent even if the disk is too full to record it
            full = {run.process.name for run in runs if run.process.was_disturbed and any(run.process.full)}
            self._unrecorded += [each for each in self.service.arrivals[arrived:] if each.process in full]
        opted_out = [*self.opted_out]
        for run in runs[at_once:]:
            _, _, phone, _, channel = lines[-1]
            if channel != "call":
                self.opted_out += [(phone, run.ended if run.code == 0 else inf)]
        for each in self.service.departures[sent:]:
            # A single send checks the list only before it starts.
            for phone, since in opted_out if arguments[1] == "send" else self.opted_out:
                check(phone not in each.phones or each.now <= since + 1, f"{phone} got a message after opting out")
        if arguments[1] != "send" and self.plan.at_most:
            self._compare_at_most(arrived)
        for run in runs:
            self.world.note(f"{run.process.name} ended with {run.code}: {run.err.strip()}")
            check(run.code is None or ended_well(run.code, run.out, run.err), "it did not end well")
            check(run.code != 130 or run.process.handled, f"{run.process.name} was not interrupted")
            is_hindered = run.process.was_disturbed or len(runs) > 1  # by a fault or by another process
            check(run.code != 3 or is_hindered, f"{run.process.name} did not do its work: {run.err}")
        return runs[:at_once]

    def look(self, *arguments: str) -> Any:
        """Return what a command shows that only reads the disk; nothing disturbs it."""
        run = Run(Process("look"))
        run.main(self.world, (*arguments, "--json"))
        check(run.code == 0, f"msgctl {' '.join(arguments)} ended with {run.code}: {run.err}")
        return json.loads(run.out)

    def names(self) -> set[str]:
        """Return the IDs of the jobs on the disk."""
        names = os.listdir(folder) if (folder := self.folder / "msgctl" / "jobs").exists() else ()  # noqa: PTH208 (fast)
        return {name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX)}

    def _process(self) -> Process:
        """Return a process, and decide what is going to happen to it."""
        self._number += 1
        at = self.random.randrange(1, self.random.choice((40, 120, 250)))
        kinds = ("", "kill", "full disk", "signal")
        kind = "" if self._is_peaceful else self.random.choices(kinds, (5, 6, 1, 3))[0]
        full = (at, at + self.random.randrange(1, 60)) if kind == "full disk" else (0, 0)
        signals = {}
        if kind == "signal":
            signals[at] = self.random.choice(SIGNALS)
            if self.random.random() < 0.4:
                signals[at + self.random.randrange(1, 60)] = self.random.choice(SIGNALS)
        return Process(f"run {self._number}", at if kind == "kill" else 0, full, signals)
