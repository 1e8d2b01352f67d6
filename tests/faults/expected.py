"""What msgctl should do, as a page of Python: people, messages and jobs of two accounts that share a store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

ZONES = {"main": ZoneInfo("America/Bogota"), "other": ZoneInfo("Asia/Tokyo")}
CHANNELS = ("sms", "call", "chatapp")
COUNTED = ("accepted", "unknown")
STOPS = {"busy": 4, "wrong key": 1}
"""The responses that pause a job at once, with its exit code. Nothing was sent by their request."""


@dataclass
class Message:
    """A message whose request was not turned away."""

    time: datetime
    account: str
    phone: str
    text: str
    outcome: str
    job: str | None = None


@dataclass
class Row:
    phone: str
    outcome: str
    is_again: bool = False
    """Whether it is pending in a resend."""
    before: str = ""
    """The outcome before a resend."""


@dataclass
class Job:
    account: str
    text: str
    rows: list[Row]
    batch_size: int
    at_most: int | None
    again: bool
    due: datetime | None
    state: str
    requests: int = 0

    @property
    def counts(self) -> Counter[str]:
        return Counter(row.outcome for row in self.rows)

    @property
    def exit_code(self) -> int:
        return 6 if self.counts["refused"] or self.counts["unknown"] else 0


@dataclass
class Model:
    now: datetime
    messages: list[Message] = field(default_factory=list)
    arrived: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    optouts: set[tuple[str, str]] = field(default_factory=set)
    keys: dict[tuple[str, str], tuple[tuple[frozenset[str], str], int, bool]] = field(default_factory=dict)
    """The content, the exit code and whether anything was sent, under each key of an account."""
    jobs: dict[str, Job] = field(default_factory=dict)

    def request(self, account: str, phones: Collection[str], text: str, fate: str, job: str | None) -> list[str]:
        """Make a request that ends in a certain way, and return the outcome of each person."""
        outcomes = [{"lost": "unknown", "refused": "refused"}.get(fate, "accepted")] * len(phones)
        if fate == "partly refused":
            outcomes[0] = "refused"
        for phone, outcome in zip(phones, outcomes, strict=True):
            self.arrived[account, phone, text] += outcome != "refused"
            self.messages.append(Message(self.now, account, phone, text, outcome, job))
        return outcomes

    # --- single sends

    def send(
        self, account: str, phones: list[str], text: str, key: str | None, again: bool, fate: str
    ) -> tuple[int, bool]:
        """Send, and return the exit code, and whether anything was sent by this run or the one that it repeats."""
        content = frozenset(phones), text
        earlier = self.keys.get((account, key or ""))
        if earlier and earlier[0] != content:
            return 2, False
        if earlier and not (again and earlier[1] == 5):
            return earlier[1:]
        if any(self.has_opted_out(phone) for phone in phones):
            return 2, False
        if fate in STOPS:
            if fate == "wrong key":
                self.messages += [Message(self.now, account, phone, text, "refused") for phone in phones]
            return STOPS[fate], False
        outcomes = self.request(account, phones, text, fate, None)
        if fate == "refused":
            return 1, False
        code = 5 if "unknown" in outcomes else 6 if "refused" in outcomes else 0
        is_sent = {*outcomes} != {"refused"}
        if key:
            self.keys[account, key] = content, code, is_sent
        return code, is_sent

    # --- who gets a message

    def has_opted_out(self, phone: str) -> bool:
        return not self.optouts.isdisjoint({(phone, "sms"), (phone, "all")})

    def opt_in(self, phone: str, channel: str) -> None:
        if (phone, "all") in self.optouts:
            self.optouts |= {(phone, other) for other in CHANNELS}
        self.optouts -= {(phone, other) for other in (CHANNELS if channel == "all" else (channel,))} | {(phone, "all")}

    def is_left_out(self, row: Row, job: Job, id_: str | None, at: datetime) -> bool:
        counted = [
            m for m in self.messages if (m.account, m.phone) == (job.account, row.phone) and m.outcome in COUNTED
        ]
        since = self.now - timedelta(hours=12)
        is_repeat = any(m.text == job.text and m.time > since and (id_ is None or m.job != id_) for m in counted)
        midnight = at.astimezone(ZONES[job.account]).replace(hour=0, minute=0, second=0, microsecond=0)
        number = sum(m.time >= midnight for m in counted)
        has_enough = job.at_most is not None and number >= job.at_most
        return self.has_opted_out(row.phone) or has_enough or (is_repeat and not job.again and not row.is_again)

    # --- jobs

    def planned(self, job: Job) -> Counter[str]:
        """Return the counts of a dry run."""
        at = job.due or self.now
        left_out = sum(self.is_left_out(row, job, None, at) for row in job.rows if row.outcome == "pending")
        return job.counts - Counter(pending=left_out) + Counter(excluded=left_out)

    def run(self, id_: str, fates: Iterator[str]) -> tuple[int, bool]:
        """Send the pending messages of a job. Return the exit code, and whether anything was sent."""
        job, is_sent = self.jobs[id_], False
        was_scheduled = job.state == "scheduled"
        for is_again in (True, False):
            waiting = [row for row in job.rows if row.outcome == "pending" and row.is_again == is_again]
            size = 1 if any(row.before == "refused" for row in waiting) else job.batch_size
            while waiting:
                chosen = [row for row in waiting if not self.is_left_out(row, job, id_, self.now)][:size]
                is_last = len(chosen) < size
                passed = waiting if is_last else waiting[: waiting.index(chosen[-1]) + 1]
                before_stop = passed[: passed.index(chosen[-1]) + 1] if chosen else passed
                fate = next(fates) if chosen else ""
                for row in before_stop if fate in STOPS else passed:
                    if row not in chosen:
                        row.outcome = row.before or "excluded"
                if fate in STOPS:
                    job.state = "scheduled" if was_scheduled and fate == "busy" else "paused"
                    return STOPS[fate], is_sent
                if chosen:
                    job.requests += 1
                    phones = [row.phone for row in chosen]
                    outcomes = self.request(job.account, phones, job.text, fate, id_)
                    for row, outcome in zip(chosen, outcomes, strict=True):
                        row.outcome = outcome
                    is_sent |= {*outcomes} != {"refused"}
                waiting = waiting[len(passed) :]
            for row in job.rows:
                if is_again:
                    row.is_again, row.before = False, ""
        job.state = "done"
        return job.exit_code, is_sent

    def resend(self, id_: str, outcome: str) -> int:
        """Make people pending again, and return their number."""
        chosen = [row for row in self.jobs[id_].rows if row.outcome == outcome]
        for row in chosen:
            row.outcome, row.is_again, row.before = "pending", True, outcome
        return len(chosen)

    def cancel(self, id_: str) -> int:
        job = self.jobs[id_]
        if job.state == "done":
            return 2
        job.state = "cancelled"
        for row in job.rows:
            if row.is_again:
                row.outcome, row.is_again, row.before = row.before or row.outcome, False, ""
        return 0

    # --- views

    def days(self, account: str) -> dict[str, int]:
        """Return the accepted messages of each day in the account's zone."""
        days: Counter[str] = Counter()
        for message in self.messages:
            if message.account == account:
                days[f"{message.time.astimezone(ZONES[account]):%F}"] += message.outcome == "accepted"
        return dict(sorted(days.items()))

    def history(self, account: str) -> list[tuple[str | None, str, str, str]]:
        return sorted((m.job or "", m.phone, m.text, m.outcome) for m in self.messages if m.account == account)


START = datetime(2026, 9, 21, 14, 13, tzinfo=UTC)
