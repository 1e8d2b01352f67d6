"""Jobs on a terminal: the list, one job, its result, and the summary before it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from msgctl.outcomes.outcome import ACCEPTED, LEFT_OUT, PENDING, REFUSED, UNKNOWN
from msgctl.output.fields import cell
from msgctl.output.tables import (
    SIGNS,
    STYLES,
    Column,
    FieldList,
    Flow,
    Viewer,
    day_and_time,
    delivery,
    listing,
    local_time,
    percentage,
    state_text,
    time_ago,
)
from msgctl.segments import count
from msgctl.text import plural, shorten, timestamp

if TYPE_CHECKING:
    from msgctl.jobs.plan import Plan
    from msgctl.jobs.report import Summary
    from msgctl.jobs.settings import Settings
    from msgctl.jobs.tally import Tally
    from msgctl.store.recipients import FileRow

SENT_OUTCOMES = (ACCEPTED, REFUSED, UNKNOWN, PENDING)
"""The outcomes of recipients that a job sends to."""
FIXED = {"voice": "Voice", "audio-code": "Audio code"}
"""The headings of parameters that all calls of a job share."""
WIDEST_BAR = 80
MAX_EXAMPLE = 2_000
"""Maximum characters of a message in the summary; an SMS of ten segments has 1,530."""


def _state(summary: Summary, now: datetime) -> Text:
    """Return the state of a job with its sign: a warning if it is overdue, or done with unknown recipients."""
    if summary.job.shown_state == "done" and summary.job.unknown:
        return Text(f"{SIGNS['warn']} done", "warn")
    if summary.due is not None and summary.due <= now.timestamp():
        return Text(f"{SIGNS['warn']} overdue", "warn")
    return state_text(summary.job.shown_state)


def jobs_table(summaries: Sequence[Summary], viewer: Viewer) -> Iterator[RenderableType]:
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
    for name in (REFUSED, UNKNOWN):
        is_empty = not any(summary.outcomes[name] for summary in summaries)
        columns.append(Column(name, drop_order=int(is_empty)))
    rows = []
    for summary in summaries:
        sendable = summary.job.sendable
        share = percentage(sendable - summary.outcomes[PENDING], sendable or 1)
        done = bar(summary, 8).append(f"  {share:>4}")
        rows.append({**summary.document(), "state": _state(summary, viewer.now), "recipients": sendable, "done": done})
    return listing(columns, rows, viewer)


def parts(summary: Summary, viewer: Viewer, *, is_explained: bool = False) -> Iterator[RenderableType]:
    """Return one job: its state, its progress, the outcomes of its recipients, and unless ``is_explained``, why it is
    paused.
    """
    job, created = summary.job, timestamp(summary.job.created / 1000)
    titles = [Text(cell(title), "bold") for title in (job.id, job.name) if title]
    yield Flow([*titles, _state(summary, viewer.now)])
    age = f"created {local_time(created, viewer.now)}, {time_ago(created, viewer.now)}"
    about = (_source(summary.settings), f"account {cell(job.profile)}", age)
    yield Flow([Text(part, "dim") for part in about], " · ")
    yield Text("")
    yield from result_parts(summary, viewer.width, least=1)
    yield Text("")
    numbers = {name: getattr(job, name) for name in LEFT_OUT}
    recipients = _recipients(job.sendable, numbers, summary.exclusions, summary.settings.blank)
    pairs = [*_facts(summary.settings, recipients, summary.due, viewer.now), ("Machine", Text(cell(job.machine)))]
    if summary.paused and not is_explained:
        pairs.insert(0, ("Paused", Text(cell(summary.paused))))
    if summary.states:
        counts = {**summary.states, "not checked": job.accepted - sum(summary.states.values())}
        states = [delivery(word, summary.words, number) for word, number in counts.items() if number > 0]
        pairs.append(("Delivery", Text("   ").join(states)))
    requests = f"  in {plural(job.requests, 'request')}"
    if summary.pending and summary.due is not None:
        requests += f", about {summary.pending.segments:,} for the pending messages"
    charged = f"{summary.credits:,}"
    if job.accepted and not summary.credits:
        charged, requests = "–", f"  no charge in the responses to {plural(job.requests, 'request')}"
    pairs.append(("Credits", Text.assemble(charged, (requests, "dim"))))
    yield FieldList(pairs)


def result_parts(summary: Summary, width: int, least: int = 2) -> Iterator[RenderableType]:
    """Return the bar of a job with its counts. A single count is omitted, because the verdict shows it."""
    yield bar(summary, min(width, WIDEST_BAR))
    shares = []
    for name in SENT_OUTCOMES:
        if number := summary.outcomes[name]:
            share = f" {percentage(number, summary.job.sendable)}"
            if name == PENDING and summary.job.state == "cancelled":
                share += ", never sent"
            if name == PENDING and summary.pending and summary.pending.opted_out:
                share += f" ({summary.pending.opted_out:,} of them opted out)"
            shares.append(Text.assemble(state_text(name, number), (share, "dim")))
    if len(shares) >= least:
        yield Flow(shares, "   ")


def job_verdict(summary: Summary, now: datetime) -> tuple[str, ...]:
    """Return the verdict on a run of a job that did not fail."""
    job = summary.job
    if summary.due is not None:
        return ("busy", f"scheduled for {day_and_time(summary.due, now)}")
    noun = "call" if job.command == "call bulk" else "message"
    done = f"{job.accepted:,} of {plural(job.sendable, noun)} accepted"
    if job.attempt > 1:  # a note reports the messages of this run
        done = f"now {done} in {job.attempt} attempts"
    return ("ok", done, plural(summary.credits, "credit")) if job.credits else ("ok", done)


def plan_parts(plan: Plan, now: datetime, host: str = "") -> Iterator[RenderableType]:
    """Return the summary before sending to the service on a ``host``."""
    settings, tally = plan.settings, plan.tally
    about = [Text(_source(settings), "bold"), Text(f"account {cell(settings.profile)}", "dim")]
    if host:
        about.append(Text(cell(host), "dim"))
    yield Flow(about, " · ")
    yield Text("")
    recipients = _recipients(tally.messages, tally.numbers_left_out, tally.excluded, settings.blank)
    pairs = [*_facts(settings, recipients, plan.due, now), ("Credits", _cost(plan))]
    if settings.performs.channel == "sms" and tally.credits:
        pairs.append(("Segments", Text(f"{tally.credits:,}")))
    for name, heading in FIXED.items():
        if name in settings.fixed:
            pairs.append((heading, Text(cell(settings.fixed[name]))))
    if tally.first and tally.first.message:
        pairs.append(("First", _first(tally.first, tally)))
    if tally.most_expensive:
        pairs.append(("Most expensive", _most_expensive(tally.most_expensive)))
    yield FieldList(pairs)
    yield Text("")


def _source(settings: Settings) -> str:
    """Return the command of a job and its file: ``sms bulk of customers.csv``."""
    name = "standard input" if settings.file == "-" else cell(settings.file)
    return f"{settings.command} of {name}"


def bar(summary: Summary, width: int) -> Text:
    """Return the outcomes of a job as a bar; every outcome that occurs is visible."""
    outcomes, sizes = summary.outcomes, dict[str, int]()
    for name in SENT_OUTCOMES:
        if name != PENDING and (number := outcomes[name]):
            sizes[name] = max(number * width // summary.job.sendable, 1)
    if not outcomes[PENDING] and sizes:
        longest = max(sizes, key=lambda name: sizes[name])
        sizes[longest] += width - sum(sizes.values())
    line = Text.assemble(*(("━" * size, STYLES.get(name, "")) for name, size in sizes.items()))
    return line.append("─" * max(width - sum(sizes.values()), 0), "dim")


def _facts(settings: Settings, recipients: Text, due: float | None, now: datetime) -> list[tuple[str, Text]]:
    """Return the lines that a job and its summary share: recipients, phones, limits and time."""
    facts = [("Recipients", recipients)]
    if settings.phones:
        facts.append(("Phones", Text(cell(settings.phones))))
    if settings.at_most:
        most, _, period = settings.at_most.partition("/")
        facts.append(("At most", Text(f"{plural(int(most), 'message')} per person per {period}")))
    if settings.max_credits is not None:
        facts.append(("Limit", Text(f"{plural(settings.max_credits, 'credit')}, then the job pauses")))
    if settings.window_in_words:
        facts.append(("Window", Text(settings.window_in_words.replace("-", "–"))))
    if due is not None:
        facts.append(("Due", Text(day_and_time(due, now))))
    return facts


def _recipients(sent_to: int, numbers: Mapping[str, int], exclusions: Counter[str], blank: int) -> Text:
    """Return the number of recipients, and why other rows are left out: ``5 of 7 2 left out: 1 invalid, 1 blank``."""
    left_out = {
        "invalid": numbers["invalid"],
        "duplicate": numbers["duplicate"],
        "opted out": exclusions["opted_out"],
        "got it in the last 12 hours": exclusions["repeats"],
        "reached the limit": exclusions["over_limit"],
        "excluded": numbers["excluded"] - exclusions.total(),
        "blank": blank,
    }
    total = sum(left_out.values())
    if not total:
        return Text(f"{sent_to:,}")
    reasons = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
    return Text.assemble(f"{sent_to:,} of {sent_to + total:,}", (f"   {total:,} left out: {reasons}", "dim"))


def _cost(plan: Plan) -> Text:
    needed, balance, countries = plan.needed, plan.balance, plan.tally.countries
    if balance is None:
        details = [("  balance not checked", "dim")]
    elif balance < needed:
        details = [(f" of {balance:,}", ""), ("  not enough", "red")]
    else:
        details = [(f" of {balance:,}", ""), (f"  {balance - needed:,} left afterwards", "dim")]
    estimate, scope = "about", ""
    if plan.is_limited:
        estimate, scope = "up to", "all messages: "
    if countries:
        shares = ", ".join(f"{name} {count:,}" for name, count in countries.most_common())
        details.append((f"   {scope}{shares}", "dim"))
    return Text.assemble((f"{estimate} {needed:,}", "bold"), *details)


def _first(row: FileRow, tally: Tally) -> Text:
    """Return the first message, and its recipient if somebody in an earlier line gets nothing."""
    texts = [", ".join(text) if isinstance(text, list) else str(text) for text in row.message.values()]
    message = Text(shorten("; ".join(texts), MAX_EXAMPLE))
    left_out = [rows[0].line for rows in tally.first_left_out.values() if rows]
    if min(left_out, default=row.line) < row.line:
        message.append(f"\nline {row.line} · {row.phone}", "dim")
    return message


def _most_expensive(row: FileRow) -> Text:
    """Return the most expensive message, and the characters that make it longer, if any."""
    text = str(row.message.get("sms") or row.message.get("message") or "")
    size = plural(row.cost, "segment")
    reason = ""
    if strange := count(text).not_gsm7[:3]:
        verb = "is" if len(strange) == 1 else "are"
        reason = f": {', '.join(strange)} {verb} not in GSM-7"
    where = f"line {row.line} · {row.phone} · {size}{reason}"
    return Text.assemble(shorten(text, MAX_EXAMPLE), ("\n" + cell(where), "dim"))
