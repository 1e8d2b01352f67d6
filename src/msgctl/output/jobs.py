"""Jobs on a terminal: the list, one job, its result, and the summary before it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from msgctl.output.fields import cell
from msgctl.output.result import Document
from msgctl.output.tables import SIGNS, Column, FieldList, Flow, delivery, local_time, state, time_ago
from msgctl.segments import count
from msgctl.text import day_and_time, plural, shorten

OUTCOMES = {"accepted": "ok", "refused": "bad", "unknown": "warn", "pending": "off"}
"""The outcomes of recipients that a job sends to, each with its style."""
LEFT_OUT = {
    "invalid": "invalid",
    "duplicate": "duplicate",
    "opted_out": "opted out",
    "repeats": "got it in the last 12 hours",
    "over_limit": "reached the limit",
    "excluded": "excluded",
    "blank": "blank",
}
"""The counts of rows that are left out, each with its description."""

WIDEST_BAR = 80
MAX_EXAMPLE = 200


def _total(job: Document) -> int:
    """Return how many recipients a job sends to, without the recipients left out."""
    return sum(job[name] for name in OUTCOMES)


def _done(job: Document) -> Text:
    total = _total(job)
    return bar(job, 8).append(f"  {(total - job['pending']) * 100 // (total or 1):>3}%")


def _state(job: Document, now: float) -> Text:
    """Return the state of a job with its sign: a warning if it is overdue, or done with unknown recipients."""
    if job["state"] == "done" and job["unknown"]:
        return Text(f"{SIGNS['warn']} done", "warn")
    if is_overdue(job, now):
        return Text(f"{SIGNS['warn']} overdue", "warn")
    return state(job["state"])


def is_overdue(job: Document, now: float) -> bool:
    """Return whether a scheduled job is past its due time."""
    return job["state"] == "scheduled" and bool(job["due"]) and datetime.fromisoformat(job["due"]).timestamp() <= now


def columns(jobs: Iterable[Document], now: float) -> list[Column]:
    """Return the columns of a list of jobs, with the order in which a narrow table hides them."""
    jobs = [*jobs]
    return [
        Column("job", kind="strong"),
        Column("name"),
        Column("command", drop_order=3),
        Column("state", value=lambda job: _state(job, now)),
        *([Column("due", kind="time")] if any(job["due"] for job in jobs) else []),
        Column("created", "Created", "ago", drop_order=2),
        Column("recipients", value=_total, drop_order=4),
        Column("done", value=_done),
        *(Column(name, drop_order=0 if any(job[name] for job in jobs) else 1) for name in ("refused", "unknown")),
    ]


def parts(job: Document, now: float, width: int) -> Iterator[RenderableType]:
    """Return one job: its state, its progress, and the outcomes of its recipients."""
    created, ago = local_time(job["created"], now), time_ago(job["created"], now)
    about = (_source(job), f"account {cell(job['profile'])}")
    yield Flow([Text(cell(each), "bold") for each in (job["job"], job.get("name")) if each] + [_state(job, now)])
    yield Flow([Text(each, "dim") for each in (*about, f"created {created}, {ago}")], " · ")
    yield Text("")
    yield from result_parts(job, width, least=1)
    yield Text("")
    pairs = [("Recipients", _recipients(job, _total(job))), *_limit(job), *_window(job)]
    if job["due"]:
        pairs.append(("Due", Text(_moment(job["due"]))))
    pairs.append(("Machine", Text(cell(job["machine"]))))
    if states := job.get("states"):
        known = {**states, "not checked": job["accepted"] - sum(states.values())}
        found = [delivery(word, number) for word, number in known.items() if number > 0]
        pairs.append(("Delivery", Text("   ").join(found)))
    requests = f"  in {plural(job['requests'], 'request')}"
    yield FieldList([*pairs, ("Credits", Text.assemble(f"{job['credits']:,}", (requests, "dim")))])


def result_parts(job: Document, width: int, least: int = 2) -> Iterator[RenderableType]:
    """Return the bar of a job with its counts. A single count is omitted, because the verdict shows it."""
    yield bar(job, min(width, WIDEST_BAR))
    found = [name for name in OUTCOMES if job[name]]
    if len(found) >= least:
        yield Flow([_share(job, name) for name in found], "   ")


def _share(job: Document, name: str) -> Text:
    return Text.assemble(state(name, job[name]), (f" {job[name] * 100 / _total(job):.0f}%", "dim"))


def verdict(job: Document) -> tuple[str, ...]:
    """Return the verdict on a run of a job that did not fail."""
    if job["state"] == "scheduled" and job["due"]:
        return ("busy", f"scheduled for {_moment(job['due'])}")
    noun = "call" if job["command"] == "call bulk" else "message"
    done = f"{job['accepted']:,} of {plural(_total(job), noun)} accepted"
    return ("ok", done, plural(job["credits"], "credit")) if job["credits"] else ("ok", done)


def plan_parts(plan: Document, host: str = "", scheduled: str = "") -> Iterator[RenderableType]:
    """Return the summary before sending to the service on a ``host``. ``scheduled`` is the time of a scheduled job."""
    account = (f"account {cell(plan['profile'])}", *([cell(host)] if host else []))
    about = (_source(plan), *account)
    yield Flow([Text(each, "bold" if each == about[0] else "dim") for each in about], " · ")
    yield Text("")
    pairs = [("Recipients", _recipients(plan, plan["messages"])), *_limit(plan)]
    if scheduled:
        pairs.append(("Scheduled", Text(scheduled)))
    pairs += _window(plan)
    pairs.append(("Credits", _cost(plan)))
    if plan.get("segments"):
        pairs.append(("Segments", Text(f"{plan['segments']:,}")))
    if plan["first"]:
        texts = (", ".join(each) if isinstance(each, list) else str(each) for each in plan["first"].values())
        pairs.append(("First", Text(shorten("; ".join(texts), MAX_EXAMPLE))))
    if costly := plan.get("most_expensive"):
        pairs.append(("Most expensive", _most_expensive(costly)))
    yield FieldList(pairs)
    yield Text("")


def _source(job: Document) -> str:
    """Return the command of a job and its file: ``sms bulk of customers.csv``."""
    file = "standard input" if job["file"] == "-" else cell(job["file"])
    return f"{cell(job['command'])} of {file}"


def bar(job: Document, width: int) -> Text:
    """Return the outcomes of a job as a bar; every outcome that occurs is visible."""
    total = _total(job) or 1
    sizes = {name: max(job[name] * width // total, 1) for name in OUTCOMES if name != "pending" and job[name]}
    if not job["pending"] and sizes:
        longest = max(sizes, key=lambda name: sizes[name])
        sizes[longest] += width - sum(sizes.values())
    line = Text.assemble(*(("━" * size, OUTCOMES[name]) for name, size in sizes.items()))
    return line.append("─" * max(width - sum(sizes.values()), 0), "dim")


def _recipients(document: Document, sent_to: int) -> Text:
    """Return the number of recipients, and why other rows are left out: ``5 of 7 2 left out: 1 invalid, 1 blank``."""
    counts = {name: document.get(name) or 0 for name in LEFT_OUT}
    counts["excluded"] -= counts["opted_out"] + counts["repeats"] + counts["over_limit"]
    left_out = sum(counts.values())
    if not left_out:
        return Text(f"{sent_to:,}")
    reasons = ", ".join(f"{number:,} {LEFT_OUT[name]}" for name, number in counts.items() if number)
    return Text.assemble(f"{sent_to:,} of {sent_to + left_out:,}", (f"   {left_out:,} left out: {reasons}", "dim"))


def _limit(document: Document) -> list[tuple[str, Text]]:
    """Return the line about the limit of messages per person, if the job has one."""
    if not document.get("at_most"):
        return []
    most, _, period = document["at_most"].partition("/")
    return [("At most", Text(f"{plural(int(most), 'message')} per person per {period}"))]


def _window(document: Document) -> list[tuple[str, Text]]:
    """Return the line about the window of a job, if it has one."""
    if not document.get("window"):
        return []
    return [("Window", Text(document["window"].replace("-", "–")))]


def _moment(stamp: str) -> str:
    return day_and_time(datetime.fromisoformat(stamp).timestamp())


def _cost(plan: Document) -> Text:
    needed, balance = plan["credits"], plan["balance"]
    countries = plan.get("countries") or {}
    listed = "   " + ", ".join(f"{name} {count:,}" for name, count in countries.items()) if countries else ""
    if balance is None:
        details = [("  balance not checked", "dim")]
    elif balance < needed:
        details = [(f" of {balance:,}", ""), ("  not enough", "red")]
    else:
        details = [(f" of {balance:,}", ""), (f"  {balance - needed:,} left afterwards", "dim")]
    return Text.assemble((f"about {needed:,}", "bold"), *details, (listed, "dim"))


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
