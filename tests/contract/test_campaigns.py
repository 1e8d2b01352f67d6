"""Random histories of real commands beside a model: who gets which message, and what every view says about it."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.files import table, write_config
from support.service import Behaviour, Received, Service, hang_up, respond
from support.tool import Outcome, Tool

ANA, LUIS = "573001234567", "573007654321"
REFUSED, UNKNOWN = "573009000000", "573009000009"
"""Numbers for which the service always responds so."""
PHONES = (ANA, LUIS, REFUSED, UNKNOWN)
ACCOUNTS = ("one", "two")
TEXTS = ("Hola", "Adiós")
CODES = {"accepted": 0, "refused": 6, "unknown": 5}
BOGOTA = timedelta(hours=-5)
HALF_A_DAY = 12 * 3600
LEFT_OUT = ("invalid", "duplicate", "excluded")


class Phones(Service):
    """A service that remembers the messages of each person, and responds about each number as its name says."""

    def __init__(self, tool: Tool) -> None:
        super().__init__(keeps=True)
        self.tool = tool
        self.inbox: list[tuple[str, str, str]] = []

    def behaviour(self, request: Received) -> Behaviour | None:
        if request.path.endswith("/balance"):
            return respond({"status": 1000}, headers={"Connection": "keep-alive"})
        behave = super().behaviour(request)
        if behave is not None and behave is not hang_up:  # it did not carry the request out
            return behave
        client = dict([*request.query, *request.form])["client"]
        text = request.parameters["sms"]
        self.inbox += [(ACCOUNTS[int(client) - 1], phone, text) for phone in request.phones if phone != REFUSED]
        return behave or respond(
            {"status": 1, "data": [*map(_entry, request.phones)]}, headers={"Connection": "keep-alive"}
        )


def _entry(phone: str) -> dict[str, Any]:
    if phone == REFUSED:
        return {"status": "rejected", "phone": phone}
    if phone == UNKNOWN:
        return {"id": f"m{phone}", "status": "?", "phone": phone}
    return {"id": f"m{phone}", "status": "queued", "credits": 1, "phone": phone}


@dataclass
class Message:
    """A message that was sent to a person, or a recipient of a job who was left out."""

    account: str
    phone: str
    text: str
    time: float
    outcome: str


@dataclass
class Job:
    """A job: its pending phones, the last message to each of the others, and how its command ended."""

    account: str
    text: str
    rows: tuple[str, ...]
    options: tuple[str, ...]
    pending: list[str]
    left_out: Counter[str]
    at_most: int | None
    again: bool
    due: float | None = None
    state: str = "done"
    sent: dict[str, Message] = field(default_factory=dict)
    code: int = 0

    @property
    def counts(self) -> Counter[str]:
        outcomes = Counter(message.outcome for message in self.sent.values())
        return self.left_out + outcomes + Counter(pending=len(self.pending))


class Campaigns(RuleBasedStateMachine):
    """Two accounts share a store; a model of the rules in surface.md says what each command does."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            self.patch.setenv(name, str(self.folder))
        self.patch.chdir(self.folder)
        self.tool = Tool()
        self.service = Phones(self.tool)
        self.service.start()
        common = ('timezone = "America/Bogota"', 'country_code = "CO"')
        accounts = enumerate(ACCOUNTS, 1)
        tables = [table(name, *common, base_url=self.service.base_url, client=number) for number, name in accounts]
        write_config('default_profile = "one"\n' + "".join(tables))
        self.inbox: list[tuple[str, str, str]] = []
        self.optouts: set[tuple[str, str]] = set()
        self.messages: list[Message] = []
        self.jobs: dict[str, Job] = {}
        self.keys: dict[tuple[str, str], tuple[Any, int]] = {}

    def teardown(self) -> None:
        self.look()
        self.service.stop()
        self.patch.undo()

    # --- the model

    def run(self, account: str, *arguments: str) -> Outcome:
        done = self.tool("-p", account, *arguments)
        assert "Traceback" not in done.err
        return done

    def day(self, seconds: float) -> str:
        return str((datetime.fromtimestamp(seconds, UTC) + BOGOTA).date())

    def has_opted_out(self, phone: str, channel: str = "sms") -> bool:
        return not self.optouts.isdisjoint({(phone, "all"), (phone, channel)})

    def reason(self, job: Job, phone: str) -> str:
        """Return why a person must not get the message of a job now."""
        now = self.tool.clock.now
        counted = [
            message
            for message in self.messages
            if (message.account, message.phone) == (job.account, phone) and message.outcome in ("accepted", "unknown")
        ]
        if self.has_opted_out(phone):
            return "opted out"
        if not job.again and any(each.text == job.text and each.time > now - HALF_A_DAY for each in counted):
            return "repeat"
        today = [each for each in counted if self.day(each.time) == self.day(now)]
        return "limit" if job.at_most is not None and len(today) >= job.at_most else ""

    def send_pending(self, job: Job, limit: int = 10) -> None:
        """Send to the pending recipients of a job."""
        for phone in [*job.pending]:
            if len(job.sent) >= limit and not all(self.reason(job, left) for left in job.pending):
                break
            job.pending.remove(phone)
            if self.reason(job, phone):
                job.left_out["excluded"] += 1
            else:
                job.sent[phone] = self.message(job.account, phone, job.text)
        job.state = "paused" if job.pending else "done"
        job.code = 0 if all(each.outcome == "accepted" for each in job.sent.values()) else 6

    def message(self, account: str, phone: str, text: str, outcome: str | None = None) -> Message:
        """Note a message whose request arrived."""
        outcome = outcome or {REFUSED: "refused", UNKNOWN: "unknown"}.get(phone, "accepted")
        message = Message(account, phone, text, self.tool.clock.now, outcome)
        self.messages.append(message)
        if phone != REFUSED and outcome != "refused":
            self.inbox.append((account, phone, text))
        return message

    # --- the rules

    @rule(hours=st.sampled_from([1, 8, 20]))
    def wait(self, hours: int) -> None:
        self.tool.clock.now += hours * 3600 + 61

    @rule(phone=st.sampled_from(PHONES), channel=st.sampled_from(["all", "sms", "call"]))
    def opt_out(self, phone: str, channel: str) -> None:
        options = () if channel == "all" else ("--channel", channel)
        assert self.run("one", "optout", "add", phone, *options).code == 0
        self.optouts.add((phone, channel))

    @rule(phone=st.sampled_from(PHONES))
    def opt_in(self, phone: str) -> None:
        self.run("two", "optout", "remove", phone)
        self.optouts -= {(phone, channel) for channel in ("all", "sms", "call")}

    @rule(
        account=st.sampled_from([*ACCOUNTS, ACCOUNTS[0]]),
        phones=st.lists(st.sampled_from(PHONES), min_size=1, max_size=3, unique=True),
        text=st.sampled_from([*TEXTS, TEXTS[0]]),
        key=st.sampled_from([None, None, "first", "second"]),
        fate=st.sampled_from(["normal", "normal", "normal", "429", "refused", "lost"]),
    )
    def send(self, account: str, phones: list[str], text: str, key: str | None, fate: str) -> None:
        options = ("--once", key) if key else ()
        earlier = self.keys.get((account, key or ""))
        content = (sorted(phones), text)
        is_new = earlier is None
        refused_before = any(map(self.has_opted_out, phones))
        if is_new and not refused_before and fate != "normal":
            responses = {
                "429": respond(status=429),
                "refused": respond({"error": 1, "msg": "Rechazado"}, 400),
                "lost": hang_up,
            }
            self.service.will(responses[fate])
        done = self.run(account, "sms", "send", *phones, "-m", text, *options, "--json")
        if earlier is not None:
            known, code = earlier
            assert done.code == (code if known == content else 2), done.err
            return
        if refused_before:
            assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (2, "opted_out", True)
            return
        if fate == "429":
            assert (done.code, done.error["reason"], done.error["nothing_sent"]) == (4, "rate_limited", True)
            return
        outcome = {"refused": "refused", "lost": "unknown"}.get(fate)
        outcomes = {self.message(account, phone, text, outcome).outcome for phone in phones}
        if fate == "refused":
            assert (done.code, done.error["nothing_sent"]) == (1, True)
            return
        code = max((CODES[outcome] for outcome in outcomes), key=[0, 6, 5].index)
        assert done.code == code, done.err
        if key:
            self.keys[account, key] = content, code

    @rule(
        account=st.sampled_from([*ACCOUNTS, ACCOUNTS[0]]),
        rows=st.lists(st.sampled_from([*PHONES, "abc"]), min_size=1, max_size=6),
        text=st.sampled_from([*TEXTS, TEXTS[0]]),
        at_most=st.sampled_from([None, None, None, 1, 2]),
        again=st.sampled_from([False, False, False, True]),
        when=st.sampled_from(["now", "now", "canary", "later", "dry"]),
    )
    def bulk(self, account: str, rows: list[str], text: str, at_most: int | None, again: bool, when: str) -> None:
        name = f"job-{len(self.jobs)}"
        options = ["-m", text, "--yes", "--skip-invalid", "--batch-size", "1", "--concurrency", "1", "--name", name]
        options += ["--at-most", f"{at_most}/day"] if at_most else []
        options += ["--again"] if again else []
        phones = [*dict.fromkeys(row for row in rows if row != "abc")]
        left_out = Counter(invalid=rows.count("abc"), duplicate=len(rows) - rows.count("abc") - len(phones))
        job = Job(account, text, tuple(rows), tuple(options), phones, left_out, at_most, again)
        if when == "later":
            due = self.tool.clock.now + 2 * 3600
            options += ["--at", datetime.fromtimestamp(due, UTC).isoformat()]
            job.due, job.state, job.options = due, "scheduled", tuple(options)
        options += {"canary": ["--canary", "1"], "dry": ["--dry-run"]}.get(when, [])
        job.options = tuple(options)
        is_empty = all(self.reason(job, phone) for phone in phones)
        done = self.run_bulk(job)
        if is_empty:
            assert (done.code, done.error["nothing_sent"]) == (2, True), done.err
            return
        if when == "dry":
            assert done.code == 0, done.err
            return
        if when != "later":
            self.send_pending(job, 1 if when == "canary" else 10)
        self.jobs[name] = job
        assert done.code == job.code, done.err

    def run_bulk(self, job: Job) -> Outcome:
        file = self.folder / "list.csv"
        file.write_text("\n".join(["phone", *job.rows]) + "\n")
        return self.run(job.account, "sms", "bulk", str(file), *job.options, "--json")

    def job(self, data: st.DataObject, *states: str) -> tuple[str, Job]:
        name = data.draw(st.sampled_from([name for name, job in self.jobs.items() if job.state in states]))
        return name, self.jobs[name]

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def repeat_command(self, data: st.DataObject) -> None:
        """The same command sends nothing again, and ends as the job did."""
        names = [name for name, job in self.jobs.items() if job.due is None or job.state == "scheduled"]
        for name in names and [data.draw(st.sampled_from(names))]:
            job = self.jobs[name]
            done = self.run_bulk(job)
            assert done.code == (6 if job.state == "cancelled" else job.code), done.err

    @precondition(lambda self: any(job.state == "paused" for job in self.jobs.values()))
    @rule(data=st.data())
    def resume(self, data: st.DataObject) -> None:
        name, job = self.job(data, "paused")
        done = self.run(job.account, "job", "resume", name, "--yes", "--json")
        self.send_pending(job)
        assert done.code == job.code, done.err

    @precondition(lambda self: any(job.state in ("paused", "scheduled") for job in self.jobs.values()))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        name, job = self.job(data, "paused", "scheduled")
        assert self.run(job.account, "job", "cancel", name, "--yes", "--json").code == 0
        job.state = "cancelled"

    @rule()
    def run_due(self) -> None:
        self.tool("job", "run-due")
        now = self.tool.clock.now
        due = [job for job in self.jobs.values() if job.state == "scheduled" and job.due is not None and job.due <= now]
        for job in sorted(due, key=lambda job: job.due or 0.0):
            if now - (job.due or 0.0) > HALF_A_DAY:
                job.state, job.code = "paused", 6
            else:
                self.send_pending(job)

    @precondition(lambda self: any(job.state == "done" for job in self.jobs.values()))
    @rule(data=st.data(), only=st.sampled_from(["refused", "unknown"]))
    def resend(self, data: st.DataObject, only: str) -> None:
        name, job = self.job(data, "done")
        self.run(job.account, "job", "resend", name, "--only", only, "--yes", "--json")
        everybody = job.again
        job.again = True  # repeats do not apply
        for phone, message in job.sent.items():
            if message.outcome == only and not self.reason(job, phone):
                job.sent[phone] = self.message(job.account, phone, job.text)
        job.again = everybody
        job.code = 0 if all(each.outcome == "accepted" for each in job.sent.values()) else 6

    # --- what every view says

    @invariant()
    def arrived(self) -> None:
        assert Counter(self.service.inbox) == Counter(self.inbox)

    @rule()
    def look(self) -> None:
        for account in ACCOUNTS:
            sent = [message for message in self.messages if message.account == account]
            history = self.run(account, "history", "--json", "--limit", "1000").document
            shown = Counter((entry["phone"], entry["message"], entry["outcome"]) for entry in history)
            assert shown == Counter((message.phone, message.text, message.outcome) for message in sent)
            days = Counter(self.day(message.time) for message in sent if message.outcome == "accepted")
            usage = self.run(account, "usage", "--json", "--since", "60d").document
            assert {day["day"]: day["messages"] for day in usage if day["messages"]} == days
        for name, job in self.jobs.items():
            shown_job = self.run(job.account, "job", "show", name, "--json").document
            outcomes = ("accepted", "refused", "unknown", "pending", *LEFT_OUT)
            assert (shown_job["state"], {each: shown_job[each] for each in outcomes}) == (
                job.state,
                {each: job.counts[each] for each in outcomes},
            ), name


@pytest.mark.parametrize("histories", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_every_history_of_commands_agrees_with_the_rules(histories: int) -> None:
    is_random = histories > 50
    run_state_machine_as_test(
        Campaigns,
        settings=settings(max_examples=histories, stateful_step_count=30, derandomize=not is_random, deadline=None),
    )
