"""Jobs on a terminal: the list, one job, its result, and the summary before it is sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from msgctl.output.fields import cell
from msgctl.output.result import Document
from msgctl.output.tables import (
    SIGNS,
    Column,
    FieldList,
    Flow,
    Viewer,
    day_and_time,
    delivery,
    kind_of,
    listing,
    local_time,
    state,
    time_ago,
)
from msgctl.segments import count
from msgctl.text import plural, shorten

if TYPE_CHECKING:
    from msgctl.jobs.plan import Plan
    from msgctl.jobs.report import Summary

OUTCOMES = ("accepted", "refused", "unknown", "pending")
"""The outcomes of recipients that a job sends to."""
WIDEST_BAR = 80
MAX_EXAMPLE = 2_000
"""Maximum characters of a message in the summary; an SMS of ten segments has 1,530."""


def _state(job: Summary, now: datetime) -> Text:
    """Return the state of a job with its sign: a warning if it is overdue, or done with unknown recipients."""
    if job.state == "done" and job.unknown:
        return Text(f"{SIGNS['warn']} done", "warn")
    if job.state == "scheduled" and job.due and datetime.fromisoformat(job.due).timestamp() <= now.timestamp():
        return Text(f"{SIGNS['warn']} overdue", "warn")
    return state(job.state)


def jobs_table(jobs: Sequence[Summary], viewer: Viewer) -> Iterator[RenderableType]:
    """Return jobs as a table; columns without any value are omitted first."""
    columns = [
        Column("job", kind="strong"),
        Column("name"),
        Column("command", drop_order=3),
        Column("state"),
        Column("due", kind="time"),
        Column("created", "Created", "ago", drop_order=2),
        Column("recipients", drop_order=4),
        Column("done"),
    ]
    for name in ("refused", "unknown"):
        is_empty = not any(getattr(job, name) for job in jobs)
        columns.append(Column(name, drop_order=int(is_empty)))
    rows = []
    for job in jobs:
        done = bar(job, 8).append(f"  {(job.sendable - job.pending) * 100 // (job.sendable or 1):>3}%")
        rows.append({**vars(job), "state": _state(job, viewer.now), "recipients": job.sendable, "done": done})
    return listing(columns, rows, viewer)


def parts(job: Summary, viewer: Viewer) -> Iterator[RenderableType]:
    """Return one job: its state, its progress, and the outcomes of its recipients."""
    titles = [Text(cell(title), "bold") for title in (job.job, job.name) if title]
    yield Flow([*titles, _state(job, viewer.now)])
    created = f"created {local_time(job.created, viewer.now)}, {time_ago(job.created, viewer.now)}"
    about = (_source(job.command, job.file), f"account {cell(job.profile)}", created)
    yield Flow([Text(part, "dim") for part in about], " · ")
    yield Text("")
    yield from result_parts(job, viewer.width, least=1)
    yield Text("")
    pairs = [*_facts(job, job.sendable, viewer.now), ("Machine", Text(cell(job.machine)))]
    if job.paused:
        pairs.insert(0, ("Paused", Text(cell(job.paused))))
    if job.states:
        counts = {**job.states, "not checked": job.accepted - sum(job.states.values())}
        states = [delivery(word, job.words, number) for word, number in counts.items() if number > 0]
        pairs.append(("Delivery", Text("   ").join(states)))
    requests = f"  in {plural(job.requests, 'request')}"
    pairs.append(("Credits", Text.assemble(f"{job.credits:,}", (requests, "dim"))))
    yield FieldList(pairs)


def result_parts(job: Summary, width: int, least: int = 2) -> Iterator[RenderableType]:
    """Return the bar of a job with its counts. A single count is omitted, because the verdict shows it."""
    yield bar(job, min(width, WIDEST_BAR))
    shares = []
    for name in OUTCOMES:
        if number := getattr(job, name):
            shares.append(Text.assemble(state(name, number), (f" {number * 100 / job.sendable:.0f}%", "dim")))
    if len(shares) >= least:
        yield Flow(shares, "   ")


def verdict(job: Summary, now: datetime) -> tuple[str, ...]:
    """Return the verdict on a run of a job that did not fail."""
    if job.state == "scheduled" and job.due:
        return ("busy", f"scheduled for {day_and_time(job.due, now)}")
    noun = "call" if job.command == "call bulk" else "message"
    done = f"{job.accepted:,} of {plural(job.sendable, noun)} accepted"
    if job.attempt > 1:  # a note reports the messages of this run
        done = f"now {done} in {job.attempt} attempts"
    return ("ok", done, plural(job.credits, "credit")) if job.credits else ("ok", done)


def plan_parts(plan: Plan, now: datetime, host: str = "") -> Iterator[RenderableType]:
    """Return the summary before sending to the service on a ``host``."""
    about = [Text(_source(plan.command, plan.file), "bold"), Text(f"account {cell(plan.profile)}", "dim")]
    if host:
        about.append(Text(cell(host), "dim"))
    yield Flow(about, " · ")
    yield Text("")
    pairs = [*_facts(plan, plan.messages, now), ("Credits", _cost(plan))]
    if plan.segments:
        pairs.append(("Segments", Text(f"{plan.segments:,}")))
    if plan.first:
        texts = [", ".join(value) if isinstance(value, list) else str(value) for value in plan.first.values()]
        pairs.append(("First", Text(shorten("; ".join(texts), MAX_EXAMPLE))))
    if plan.most_expensive:
        pairs.append(("Most expensive", _most_expensive(plan.most_expensive)))
    yield FieldList(pairs)
    yield Text("")


def _source(command: str, file: str) -> str:
    """Return the command of a job and its file: ``sms bulk of customers.csv``."""
    name = "standard input" if file == "-" else cell(file)
    return f"{cell(command)} of {name}"


def bar(job: Summary, width: int) -> Text:
    """Return the outcomes of a job as a bar; every outcome that occurs is visible."""
    sizes: dict[str, int] = {}
    for name in OUTCOMES:
        if name != "pending" and (number := getattr(job, name)):
            sizes[name] = max(number * width // job.sendable, 1)
    if not job.pending and sizes:
        longest = max(sizes, key=lambda name: sizes[name])
        sizes[longest] += width - sum(sizes.values())
    line = Text.assemble(*(("━" * size, kind_of(name) or "") for name, size in sizes.items()))
    return line.append("─" * max(width - sum(sizes.values()), 0), "dim")


def _facts(job: Summary | Plan, sent_to: int, now: datetime) -> list[tuple[str, Text]]:
    """Return the lines that a job and its summary share: recipients, phones, limits and time."""
    facts = [("Recipients", _recipients(job, sent_to))]
    if job.phones:
        facts.append(("Phones", Text(cell(job.phones))))
    if job.at_most:
        most, _, period = job.at_most.partition("/")
        facts.append(("At most", Text(f"{plural(int(most), 'message')} per person per {period}")))
    if job.max_credits is not None:
        facts.append(("Limit", Text(f"{plural(job.max_credits, 'credit')}, then the job pauses")))
    if job.window:
        facts.append(("Window", Text(job.window.replace("-", "–"))))
    if job.due:
        facts.append(("Due", Text(day_and_time(job.due, now))))
    return facts


def _recipients(job: Summary | Plan, sent_to: int) -> Text:
    """Return the number of recipients, and why other rows are left out: ``5 of 7 2 left out: 1 invalid, 1 blank``."""
    left_out = {
        "invalid": job.invalid,
        "duplicate": job.duplicate,
        "opted out": job.opted_out,
        "got it in the last 12 hours": job.repeats,
        "reached the limit": job.over_limit,
        "excluded": job.excluded - job.opted_out - job.repeats - job.over_limit,
        "blank": job.blank,
    }
    total = sum(left_out.values())
    if not total:
        return Text(f"{sent_to:,}")
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
    return Text.assemble(f"{sent_to:,} of {sent_to + total:,}", (f"   {total:,} left out: {reasons}", "dim"))


def _cost(plan: Plan) -> Text:
    needed, balance = plan.credits, plan.balance
    if balance is None:
        details = [("  balance not checked", "dim")]
    elif balance < needed:
        details = [(f" of {balance:,}", ""), ("  not enough", "red")]
    else:
        details = [(f" of {balance:,}", ""), (f"  {balance - needed:,} left afterwards", "dim")]
    if plan.countries:
        countries = ", ".join(f"{name} {count:,}" for name, count in plan.countries.items())
        details.append((f"   {countries}", "dim"))
    return Text.assemble((f"about {needed:,}", "bold"), *details)


def _most_expensive(message: Document) -> Text:
    """Return the most expensive message, and the characters that make it longer, if any."""
    text = str(message.get("sms") or message.get("message") or "")
    size = plural(message["segments"], "segment")
    reason = ""
    if strange := count(text).not_gsm7[:3]:
        verb = "is" if len(strange) == 1 else "are"
        reason = f": {', '.join(strange)} {verb} not in GSM-7"
    where = f"line {message['line']} · {message['phone']} · {size}{reason}"
    return Text.assemble(shorten(text, MAX_EXAMPLE), ("\n" + cell(where), "dim"))
