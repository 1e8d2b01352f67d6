"""Command lines in any order do what a page of Python says (`expected`), whatever the service responds.

``MACHINE=3000 pytest tests/faults/test_command_machine.py -n 0`` runs 3,000 examples from new seeds.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Collection, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from faults.expected import START, ZONES, Job, Model, Row
from msgctl.store import people
from msgctl.store.store import Store
from support.files import table, write_config
from support.runs import ended_well
from support.service import Behaviour, Received, Service, accepted, hang_up, respond
from support.tool import Tool

EXAMPLES = int(os.environ.get("MACHINE", "0"))
PEOPLE = [f"57300000000{number}" for number in range(3)]
INVALID = "12"
SPELLINGS = ("{}", "+{}", "00{}")
TEXTS = ("Hola", "Hola", "Oferta")
REFUSAL = respond({"error": 1001, "msg": "Parametros invalidos"}, 400, {"Connection": "keep-alive"})
TURNED_AWAY = respond({}, 429, {"Retry-After": "3600", "Connection": "keep-alive"})
WRONG_KEY = respond({}, 401, {"Connection": "keep-alive"})

accounts = st.sampled_from(["main", "main", "main", "other"])
texts = st.sampled_from(TEXTS)
channels = st.sampled_from(["all", "sms", "sms", "call", "chatapp"])
some_people = st.sampled_from([PEOPLE[:1], PEOPLE[:1], PEOPLE[1:]])
rows = st.lists(
    st.tuples(st.sampled_from([*PEOPLE, *PEOPLE, *PEOPLE, INVALID]), st.sampled_from(SPELLINGS)), min_size=1, max_size=4
)
fate = st.sampled_from(["accepted", "accepted", "refused", "partly refused", "lost", "busy", "wrong key"])
fates = st.lists(fate, max_size=3)


class NewJob(NamedTuple):
    """The file and the options of a new job."""

    account: str
    text: str
    people: list[tuple[str, str]]
    batch_size: int
    at_most: int | None
    again: bool
    skips: bool


jobs = st.builds(
    NewJob,
    accounts,
    texts,
    rows,
    batch_size=st.sampled_from([1, 100]),
    at_most=st.sampled_from([None, None, 1, 2]),
    again=st.sampled_from([False, False, False, True]),
    skips=st.sampled_from([True, True, True, False]),
)


class Services(Service):
    """A service for two accounts whose next requests end as ``fates`` says; then it accepts."""

    def __init__(self) -> None:
        super().__init__(keeps=True)
        self.fates: deque[str] = deque()
        self.arrived: Counter[tuple[str, str, str]] = Counter()
        self.start()

    def behaviour(self, request: Received) -> Behaviour:
        if request.path.endswith("/balance"):
            return respond(accepted(request), headers={"Connection": "keep-alive"})
        end = self.fates.popleft() if self.fates else "accepted"
        if end in ("busy", "wrong key", "refused"):
            return {"busy": TURNED_AWAY, "wrong key": WRONG_KEY, "refused": REFUSAL}[end]
        response = accepted(request)
        reached = request.phones
        if end == "partly refused":
            response["data"][0]["status"] = "rejected"
            reached = reached[1:]
        account = "main" if dict([*request.query, *request.form])["client"] == "1" else "other"
        self.arrived.update((account, phone, request.parameters["sms"]) for phone in reached)
        return hang_up if end == "lost" else respond(response, headers={"Connection": "keep-alive"})


class Commands(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp(dir=os.environ["HOME"]))
        os.environ["MSGCTL_STORE"] = str(self.home / "store.sqlite3")
        self.service = Services()
        self.tool = Tool()
        self.tool.clock.now = START.timestamp()
        self.model = Model(START)
        self.failed = False
        profiles = (
            table(name, f'timezone = "{zone.key}"', base_url=self.service.base_url, client=client)
            for client, (name, zone) in enumerate(ZONES.items(), 1)
        )
        write_config('default_profile = "main"\n' + "\n".join(profiles))

    def run(self, *arguments: str, code: int, nothing_sent: bool = True) -> Any:
        """Run a command that must end in this way, and return its result; None if it has none."""
        self.failed = True
        done = self.tool(*arguments, "--json")
        assert ended_well(done.code, done.out, done.err)
        assert done.code == code, (arguments, done.code, done.out, done.err)
        if code:
            assert done.error["nothing_sent"] == nothing_sent, (arguments, done.err)
        self.service.fates.clear()
        self.failed = False
        return done.document if done.out else None

    def file(self, lines: list[str]) -> str:
        path = self.home / "people.csv"
        path.write_text("".join(f"{line}\n" for line in ("phone", *lines)), encoding="utf-8")
        return str(path)

    def scripted(self, ends: list[str]) -> Iterator[str]:
        """Let the next requests end in these ways; return them for the model."""
        self.service.fates = deque(ends)
        return iter([*ends, *["accepted"] * 20])

    # --- opt-outs and time

    @rule(phones=some_people, channel=channels, how=st.sampled_from(["add", "import"]))
    def opt_out(self, phones: list[str], channel: str, how: str) -> None:
        new = {(phone, channel) for phone in phones if (phone, "all") not in self.model.optouts} - self.model.optouts
        people = phones if how == "add" else [self.file(phones)]
        shown = self.run("optout", how, *people, "--channel", channel, code=0)
        assert shown["added"] == len(new)
        self.model.optouts |= new

    @rule(phone=st.sampled_from(PEOPLE), channel=channels)
    def opt_in(self, phone: str, channel: str) -> None:
        self.run("optout", "remove", phone, "--channel", channel, code=0)
        self.model.opt_in(phone, channel)

    @rule(hours=st.sampled_from([0.5, 5, 11.75, 12, 24]))
    def wait(self, hours: float) -> None:
        self.tool.clock.now += hours * 3600
        self.model.now += timedelta(hours=hours)

    # --- sends

    @rule(
        account=accounts,
        phones=some_people,
        text=texts,
        key=st.sampled_from([None, "a", "a"]),
        resends=st.booleans(),
        end=fate,
    )
    def send(self, account: str, phones: list[str], text: str, key: str | None, resends: bool, end: str) -> None:
        self.scripted([end])
        code, is_sent = self.model.send(account, phones, text, key, resends, end)
        options = []
        if key:
            options += ["--once", key]
            if resends:
                options += ["--resend-unknown"]
        self.run("-p", account, "sms", "send", *phones, "-m", text, *options, code=code, nothing_sent=not is_sent)

    @rule(job=jobs, ends=fates)
    def bulk(self, job: NewJob, ends: list[str]) -> None:
        self.create(job, ends)

    @rule(job=jobs, hours=st.sampled_from([1, 14]))
    def schedule(self, job: NewJob, hours: int) -> None:
        self.create(job, hours=hours)

    @rule(job=jobs)
    def dry_run(self, job: NewJob) -> None:
        self.create(job, is_dry=True)

    def create(self, new: NewJob, ends: list[str] | None = None, *, hours: int = 0, is_dry: bool = False) -> None:
        account, text = new.account, new.text
        model, due = self.model, None
        listed: list[Row] = []
        for phone, _ in new.people:
            outcome = "pending"
            if phone == INVALID:
                outcome = "invalid"
            elif any(row.phone == phone for row in listed):
                outcome = "duplicate"
            listed.append(Row(phone, outcome))
        path = self.file([spelling.format(phone) if phone != INVALID else phone for phone, spelling in new.people])
        command = ["-p", account, "sms", "bulk", path, "-m", text, "--batch-size", str(new.batch_size)]
        command += ["--concurrency", "1", "--yes"]
        if new.at_most:
            command += ["--at-most", f"{new.at_most}/day"]
        if new.again:
            command.append("--again")
        if new.skips:
            command.append("--skip-invalid")
        if hours:
            due = (model.now + timedelta(hours=hours)).replace(second=0)
            command += ["--at", f"{due.astimezone(ZONES[account]):%F %H:%M}"]
        job = Job(account, text, listed, new.batch_size, new.at_most, new.again, due, "scheduled" if due else "paused")
        planned = model.planned(job)
        is_refused = (planned["invalid"] and not new.skips) or not planned["pending"]
        if is_dry:
            shown = self.run(*command, "--dry-run", code=2 if is_refused else 0)
            assert Counter(pending=shown["messages"]) == Counter(pending=planned["pending"])
            assert [shown[name] for name in ("invalid", "duplicate", "excluded")] == [
                planned[name] for name in ("invalid", "duplicate", "excluded")
            ]
            return
        if is_refused:
            assert self.run(*command, code=2) is None
            return
        model.jobs["new"] = job
        code, is_sent = (0, False) if due else model.run("new", self.scripted(ends or []))
        shown = self.run(*command, code=code, nothing_sent=not is_sent)
        model.jobs[shown["job"]] = model.jobs.pop("new")
        for message in model.messages:
            if message.job == "new":
                message.job = shown["job"]
        self.check_job(shown)

    def check_job(self, shown: dict[str, Any]) -> None:
        job = self.model.jobs[shown["job"]]
        names = ("accepted", "refused", "unknown", "pending", "invalid", "duplicate", "excluded")
        assert {name: shown[name] for name in names if shown[name]} == job.counts
        assert (shown["state"], shown["recipients"], shown["requests"]) == (job.state, len(job.rows), job.requests)
        assert shown["profile"] == job.account

    def any_job(self, data: st.DataObject) -> tuple[str, Job]:
        """Return a job that has not ended, if there is one."""
        jobs = [*self.model.jobs.items()]
        waiting = [(id_, job) for id_, job in jobs if job.state in ("paused", "scheduled")]
        return data.draw(st.sampled_from(waiting or jobs))

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), ends=fates)
    def resume(self, data: st.DataObject, ends: list[str]) -> None:
        id_, job = self.any_job(data)
        if job.state == "cancelled":
            self.run("job", "resume", id_, "--yes", code=2)
            return
        code, is_sent = self.model.run(id_, self.scripted(ends))
        self.check_job(self.run("job", "resume", id_, "--yes", code=code, nothing_sent=not is_sent))

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data(), ends=fates, opts_out=st.booleans())
    def resend(self, data: st.DataObject, ends: list[str], opts_out: bool) -> None:
        """Resend, perhaps after somebody in the resend has opted out."""
        outcomes = ("refused", "unknown")
        useful = [(id_, name) for id_, job in self.model.jobs.items() for name in outcomes if job.counts[name]]
        id_, outcome = data.draw(st.sampled_from(useful or [(id_, "refused") for id_ in self.model.jobs]))
        job = self.model.jobs[id_]
        phones = [row.phone for row in job.rows if row.outcome == outcome]
        if phones and opts_out:
            self.opt_out(phones=phones[:1], channel="sms", how="add")
        command = ("job", "resend", id_, "--only", outcome, "--yes")
        if job.state == "cancelled":
            self.run(*command, code=2)
        elif job.state == "done":
            code, is_sent, requests = 0, False, job.requests
            if self.model.resend(id_, outcome):
                code, is_sent = self.model.run(id_, self.scripted(ends))
                if job.state == "done" and job.requests == requests:
                    code = 0  # there is nobody left to resend to
            self.check_job(self.run(*command, code=code, nothing_sent=not is_sent))

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        id_, _ = self.any_job(data)
        code = self.model.cancel(id_)
        shown = self.run("job", "cancel", id_, "--yes", code=code)
        if code == 0:
            self.check_job(shown)

    @rule(ends=fates, hours=st.sampled_from([0, 1, 13, 24]))
    def run_due(self, ends: list[str], hours: float) -> None:
        """Send what is due; a job that is 12 hours late and has sent nothing is paused."""
        self.wait(hours=hours)
        model, codes, is_sent = self.model, [], False
        script = self.scripted(ends)
        waiting = ((job.due, id_) for id_, job in model.jobs.items() if job.state == "scheduled" and job.due)
        due = [(when, id_) for when, id_ in waiting if when <= model.now]
        for when, id_ in sorted(due, key=lambda entry: entry[0]):
            has_begun = any(message.job == id_ for message in model.messages)
            if model.now - when > timedelta(hours=12) and not has_begun:
                model.jobs[id_].state = "paused"
                codes.append(6)
            else:
                code, sent_now = model.run(id_, script)
                codes.append(code)
                is_sent |= sent_now
        done = self.tool("job", "run-due", "--json")
        self.service.fates.clear()
        assert done.code == next((code for code in codes if code), 0), (done.out, done.err)
        assert len(done.out.splitlines()) == len(due)

    # --- what is seen

    @invariant()
    def inbox(self) -> None:
        assert self.service.arrived == +self.model.arrived

    def look(self, account: str) -> None:
        usage = self.run("-p", account, "usage", "--since", "2026-09-01", code=0)
        assert {day["day"]: day["messages"] for day in usage if day["messages"]} == {
            day: number for day, number in self.model.days(account).items() if number
        }
        history = self.run("-p", account, "history", "--limit", "1000", code=0)
        entries = [(row["job"] or "", row["phone"], row["message"], row["outcome"]) for row in history]
        assert sorted(entries) == self.model.history(account)

    def teardown(self) -> None:
        try:
            if sys.exception() or self.failed:
                return
            for account in ZONES:
                self.look(account)
            for id_ in self.model.jobs:
                self.check_job(self.run("job", "show", id_, code=0))
            listed = self.run("optout", "list", code=0)
            assert {(entry["phone"], entry["channel"]) for entry in listed} == self.model.optouts
        finally:
            self.service.stop()
            shutil.rmtree(self.home)


def test_command_lines_in_any_order_do_what_the_model_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_STORE", "")
    run_state_machine_as_test(
        Commands,
        settings=settings(
            max_examples=EXAMPLES or 5,
            stateful_step_count=60,
            derandomize=not EXAMPLES,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            phases=[Phase.generate] + ([Phase.shrink] if EXAMPLES else []),
            suppress_health_check=[*HealthCheck],
        ),
    )


_real_opted_out = people.opted_out


def _opted_out_of_anything(store: Store, phones: Collection[str], channel: str) -> set[str]:
    return _real_opted_out(store, phones, channel) | _real_opted_out(store, phones, "call")


FAULTS = {
    "an opt-out of calls counts for SMS": ("msgctl.store.people.opted_out", _opted_out_of_anything),
    "a wrong key refuses recipients": ("msgctl.jobs.sending.NOT_FOR_RECIPIENTS", frozenset()),
    "a cancel leaves a resend open": ("msgctl.store.results.end_resend", lambda *_: None),
}
"""Planted faults: the replaced part of msgctl, and its replacement."""


@pytest.mark.slow  # it tests the machine
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_msgctl_is_detected(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with mock.patch(*FAULTS[fault]), pytest.raises(AssertionError):
        test_command_lines_in_any_order_do_what_the_model_says(monkeypatch)
