"""What a user does before and after a power cut, and a check that msgctl lost nothing and sent nothing twice."""

from __future__ import annotations

import json
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from power.machine import Machine, Run
from support.runs import ended_well

PLENTY = "1000"
"""Credits."""
HOUR = 3600
ENDED = (0, 1, 4, 6)
"""Exit codes of a command that did its work, even if the service refused some of it or a limit ended it."""
READS = {("job", "list"), ("job", "show"), ("job", "report"), ("profile", "list"), ("optout", "list")}
READS |= {("history", "--limit"), ("usage", "--json")}
"""The first words of command lines that only read."""
MAX_RESUMES = 4
MAX_SHORT, LONG = 30, 400
"""Recipients. The write-ahead log of a long job is copied to its ledger while it runs."""
_OF_JOB = ("bulk", "resume")
PROFILE = ("--base-url", "https://service.example/api/v1", "--key-stdin")


class WrongError(AssertionError):
    """msgctl lost something, sent something twice, or refused to work, after a power cut."""


def check(is_true: object, what: str) -> None:
    if not is_true:
        raise WrongError(what)


@dataclass
class Step:
    """A command line of the user; ``name`` is that of its job, its --once key or its profile."""

    kind: str
    arguments: Sequence[str]
    name: str = ""
    phones: Sequence[str] = ()
    stdin: str = ""
    later: float = 0.0
    limit: int | None = None
    """Credits that its job may spend."""
    in_flight: int = 0
    """Recipients that may be in flight at once."""


@dataclass
class Known:
    """What the user knows at a cut: the results of the commands that ended, and the output of the next one so far."""

    steps: list[Step]
    results: list[dict[str, Any]] = field(default_factory=list)
    printed: str = ""
    cuts: int = 1

    @property
    def next(self) -> Step | None:
        """The command that was running at the cut, if any."""
        return self.steps[len(self.results)] if len(self.results) < len(self.steps) else None


def plan(random: Random, folder: str) -> list[Step]:
    """Return the commands of a user."""
    used = 0
    steps: list[Step] = []

    def phones(number: int) -> list[str]:
        nonlocal used
        used += number
        return [f"57300{each:07}" for each in range(used - number, used)]

    def bulk(number: int, *options: str, limit: int | None = None) -> Step:
        name, people = f"job{len(steps)}", phones(number)
        batch, concurrency = random.randint(1, 4), random.randint(1, 4)
        if number > MAX_SHORT:
            batch = concurrency = 1
        path = f"{folder}/{name}.csv"
        Path(path).write_text("\n".join(["phone", *people]))
        options = (*options, "--batch-size", str(batch), "--concurrency", str(concurrency))
        line = ("sms", "bulk", path, "-m", f"Text of {name}", "--name", name, "--yes", "--json", *options)
        return Step("bulk", line, name, people, limit=limit, in_flight=batch * concurrency)

    def job() -> None:
        number = random.randint(4, MAX_SHORT) if random.random() < 0.97 else LONG
        match random.randrange(7):
            case 0:
                limit = random.randint(1, number)
                steps.append(bulk(number, "--max-credits", str(limit), limit=limit))
            case 1:
                steps.append(bulk(number, "--canary", str(random.randint(1, number))))
                steps.append(Step("resume", ("job", "resume", steps[-1].name, "--yes", "--json"), steps[-1].name))
            case 2:
                steps.append(bulk(number))
                line = ("job", "resend", steps[-1].name, "--only", "refused", "--yes", "--json")
                steps.append(Step("resend", line, steps[-1].name))
            case 3:
                at = datetime.fromtimestamp(time.time() + HOUR, UTC).isoformat(timespec="seconds")
                steps.append(bulk(number, "--at", at))
                steps.append(Step("due", ("job", "run-due", "--json"), steps[-1].name, later=2 * HOUR))
            case 4:
                steps.append(bulk(number, "--once", f"key{len(steps)}"))
                if random.random() < 0.5:
                    steps.append(Step("again", steps[-1].arguments, steps[-1].name))
            case 5:
                steps.append(bulk(number, "--at-most", "1/day"))
                steps.append(Step("remove", ("job", "remove", steps[-1].name, "--yes", "--json"), steps[-1].name))
            case _:
                steps.append(bulk(number))

    def once() -> None:
        (phone,) = phones(1)
        name = f"key{len(steps)}"
        step = Step("once", ("sms", "send", phone, "-m", name, "--once", name, "--json"), name, [phone])
        steps.extend([step] * random.randint(1, 2))

    def send() -> None:
        (phone,) = phones(1)
        steps.append(Step("send", ("sms", "send", phone, "-m", f"Text {phone}", "--json"), phones=[phone]))

    def optout() -> None:
        people = phones(random.randint(1, 3))
        steps.append(Step("optout add", ("optout", "add", *people), phones=people))
        if random.random() < 0.5:
            steps.append(Step("optout remove", ("optout", "remove", people[0], "--yes"), phones=people[:1]))

    def profile() -> None:
        name = f"profile{len(steps)}"
        line = ("profile", "add", name, "--client", "3", *PROFILE)
        steps.append(Step("profile", line, name, ["3"], stdin="the-key"))
        if random.random() < 0.5:
            steps.append(Step("profile", ("profile", "set", name, "--client", "4"), name, ["4"]))

    for kind in random.choices((job, once, send, optout, profile), (4, 3, 1, 2, 1), k=3):
        kind()
    return steps


def play(machine: Machine, steps: Sequence[Step]) -> None:
    """Run all commands; the exit code of each is in ``NUMBER.end`` when it has ended."""
    for number, step in enumerate(steps):
        run = machine.run(*step.arguments, stdin=step.stdin.encode(), number=number, later=step.later)
        (machine.folder / f"{number}.end").write_text(str(run.code))


def _optouts(steps: Sequence[Step]) -> set[str]:
    found: set[str] = set()
    for step in steps:
        if step.kind == "optout add":
            found |= {*step.phones}
        elif step.kind == "optout remove":
            found -= {*step.phones}
    return found


def _profiles(steps: Sequence[Step]) -> dict[str, int]:
    return {step.name: int(step.phones[0]) for step in steps if step.kind == "profile"}


class Checker:
    """The user's commands after a power cut, compared with what the user knows and with what the service did."""

    def __init__(self, machine: Machine, known: Known) -> None:
        self.machine = machine
        self.known = known
        ended = len(known.results)
        self.ended, self.begun = known.steps[:ended], known.steps[: ended + 1]

    def run(self, *arguments: str, codes: Sequence[int] = (0,), later: float = 0.0) -> Run:
        if arguments[:2] in READS:
            run = self.machine.look(*arguments)
        else:
            run = self.machine.run(*arguments, later=later, number="check")
        line = f"msgctl {' '.join(arguments)}"
        check(run.code in codes, f"{line} ended with {run.code}: {run.err}")
        check(ended_well(run.code, run.out, run.err), f"{line} did not end well")
        check("Warning" not in run.err, f"{line}: {run.err}")
        return run

    def check(self) -> None:
        """Raises WrongError."""
        self._lists()
        self._sends()
        for step in self.begun:
            if step.kind == "bulk":
                self._bulk(step)
        self._once()
        shown: list[dict[str, Any]] = self.run("history", "--limit", "10000", "--json").document
        accepted = sum(each["outcome"] == "accepted" for each in shown)
        spent = sum(each["credits"] for each in self.run("usage", "--json").document)
        check(spent == accepted, f"usage counts {spent} credits, the history {accepted}")

    def _lists(self) -> None:
        """The opt-outs and profiles that were confirmed; the change of the next command is there or not."""
        found = {each["phone"] for each in self.run("optout", "list", "--json").document}
        allowed = _optouts(self.ended), _optouts(self.begun)
        check(found in allowed, f"opted out are {found}, not one of {allowed}")
        listed = self.run("profile", "list", "--json").document
        profiles = {each["name"]: each["client"] for each in listed if each["name"] != "sandbox"}
        expected = _profiles(self.ended), _profiles(self.begun)
        check(profiles in expected, f"profiles are {profiles}, not one of {expected}")

    def _sends(self) -> None:
        arrived = self.machine.service.noted("accepted")
        history: list[dict[str, Any]] = self.run("history", "--limit", "10000", "--json").document
        found = {each["phone"]: each["outcome"] for each in history}
        for step in self.begun:
            if step.kind == "send":
                (phone,) = step.phones
                is_known = step in self.ended or self.known.printed
                if is_known or arrived[phone]:
                    outcome = found.get(phone)
                    allowed = ("accepted",) if is_known and arrived[phone] else ("accepted", "unknown", "refused")
                    check(outcome in allowed, f"{phone} got {arrived[phone]} and is {outcome} in the history")

    def _once(self) -> None:
        before = self.machine.service.noted("accepted")
        for step in self.begun:
            if step.kind != "once":
                continue
            (phone,) = step.phones
            number = self.begun.index(step)
            known = self.known.results[number] if step in self.ended else None
            is_refused = phone.endswith("7")
            run = self.run(*step.arguments, codes=(0, 1, 5) if is_refused else (0, 5))
            arrived = self.machine.service.noted("accepted")[phone]
            check(arrived <= 1, f"{phone} got {arrived} messages under one key")
            check(run.code != 0 or arrived, f"{phone} got no message, but its key is used")
            if known and known["code"] == 0:
                check((run.code, run.out) == (0, known["out"]), f"{step.name} has another result: {run}")
                check(before[phone] == 1, f"{step.name} was confirmed, but {before[phone]} messages were sent")
            else:
                is_doubtful = self.known.next is not None and self.known.next.name == step.name
                check(run.code != 5 or is_doubtful, f"{step.name} is unknown: {run}")

    # --- jobs

    def _jobs(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run("job", "list", "--json").document
        return found

    def _bulk(self, step: Step) -> None:
        service, people = self.machine.service, {*step.phones}
        is_next = self.known.next is step
        jobs = [each for each in self._jobs() if each["name"] == step.name]
        removals = [each for each in self.begun if each.kind == "remove" and each.name == step.name]
        if removals:
            check(not jobs or removals[0] is self.known.next, f"{step.name} is there again")
            if not jobs:
                check(all(service.noted("accepted")[phone] <= 1 for phone in people), f"{step.name} has sent twice")
                return
        if not jobs:
            check(is_next and not self.known.printed, f"{step.name} is missing")
            check(not people & {*service.noted("accepted"), *service.noted("refused")}, f"{step.name} has sent")
            self.run(*step.arguments, codes=ENDED)
        elif "--once" in step.arguments:
            self.run(*step.arguments, codes=ENDED)
            same = [each for each in self._jobs() if each["name"] == step.name]
            check(len(same) == 1, f"{step.name} was created twice under one key")
        is_disturbed = self.known.next is not None and self.known.next.name == step.name
        of_job = [place for place, each in enumerate(self.ended) if each.name == step.name and each.kind in _OF_JOB]
        if of_job and not is_disturbed and self.known.cuts == 1 and len(self._family(jobs, step)) == 1:
            document = json.loads(self.known.results[of_job[-1]]["out"])
            shown = self.run("job", "show", document["job"], "--json").document
            is_same = shown == document or shown["state"] != "scheduled" == document["state"]
            check(is_same, f"{step.name} ended as {document}, and is {shown}")
        family = self._finish(step)
        outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        unknown = 0
        for job in family:
            rows = self.run("job", "report", job["job"], "--json").document
            for row in rows:
                outcomes[row["phone"]][row["outcome"]] += 1
            unknown += sum(row["outcome"] == "unknown" for row in rows)
            accepted = sum(row["outcome"] == "accepted" for row in rows)
            check(job["credits"] == accepted == job["accepted"], f"{accepted} were accepted, but {job}")
        arrived = service.noted("accepted")
        for phone in step.phones:
            found, number = outcomes[phone], arrived[phone]
            text = f"{phone} of {step.name} got {number} messages and is {dict(found)}"
            check(number <= 1 and found["accepted"] <= 1 and not found["pending"], text)
            check(number == 1 if found["accepted"] else found["unknown"], text)
        most = step.in_flight * self.known.cuts if is_disturbed or self.known.cuts > 1 else 0
        check(unknown <= most, f"{unknown} of {step.name} are unknown; at most {most} can be")

    def _family(self, jobs: Sequence[dict[str, Any]], step: Step) -> list[dict[str, Any]]:
        """Return the job of a step and the jobs that resend to its recipients."""
        return [each for each in jobs if each["file"] == step.arguments[2]]

    def _finish(self, step: Step) -> list[dict[str, Any]]:
        """Send to everyone, within the limit of credits first. Return the jobs that have done it."""
        if "--at" in step.arguments:
            self.run("job", "run-due", "--json", codes=ENDED, later=2 * HOUR)
        self._resume(step)
        spent = sum(self.machine.service.noted("accepted")[each] for each in step.phones)
        is_within = step.limit is None or self.known.cuts > 1 or spent <= step.limit
        check(is_within, f"{spent} credits were spent; at most {step.limit} are allowed")
        family = self._resume(step, "--max-credits", PLENTY)
        if any(job["refused"] for job in family):
            self.run("job", "resend", step.name, "--only", "refused", "--yes", "--json", codes=ENDED, later=2 * HOUR)
            family = self._resume(step, "--max-credits", PLENTY)
        return family

    def _resume(self, step: Step, *options: str) -> list[dict[str, Any]]:
        """Resume the jobs of a step until they are done, or a limit ends them. Return them."""
        for _ in range(MAX_RESUMES):
            family = self._family(self._jobs(), step)
            left = [job["job"] for job in family if job["state"] != "done"]
            for job in left:
                self.run("job", "resume", job, "--yes", "--json", *options, codes=ENDED, later=2 * HOUR)
            if not left or not options:
                break
        return self._family(self._jobs(), step)
