"""Jobs on a terminal: the list, one job, its result, and the summary before it is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from msgctl.config.profiles import ENVIRONMENT
from msgctl.output.fields import cell, local_time, time_ago
from msgctl.output.screen import SIGNS
from msgctl.output.tables import Column, Listing, record
from msgctl.output.theme import Flow, state
from msgctl.recipients import is_delivered, is_final
from msgctl.segments import count
from msgctl.text import plural, shorten

if TYPE_CHECKING:
    from rich.console import RenderableType

Document = Mapping[str, Any]

OUTCOMES = {"accepted": "ok", "refused": "bad", "unknown": "warn", "pending": "off"}
"""The outcomes of recipients that a job sends to, each with its kind of sign."""
LEFT_OUT = ("invalid", "duplicate", "excluded", "blank")

WIDEST_BAR = 80
SHORT_BAR = 12
LONGEST_EXAMPLE = 200
_NOUNS = {"call bulk": "call", "block bulk": "number"}
_COLUMNS = (
    Column("job", "Job", "strong"),
    Column("name", "Name", spare=1),
    Column("command", "Command", spare=2),
    Column("state", "State", "state"),
    Column("created", "Started", "ago", spare=3),
    Column("recipients", "Recipients", "number"),
    Column("bar", "Done"),
    Column("percent", "", "number"),
    Column("refused", "Refused", "number"),
    Column("unknown", "Unknown", "number"),
)


def list_parts(jobs: Collection[Document], now: float, width: int) -> Iterator[RenderableType]:
    """Return jobs as a table, or each with its bar and counts below it on a narrow terminal."""
    listing = Listing(_COLUMNS, [_row(job) for job in jobs], now, width=width)
    if listing.fits:
        yield from listing.parts()
        return
    for number, job in enumerate(jobs):
        if number:
            yield Text("")
        yield Flow([Text(cell(job["job"]), "bold"), state(job["state"]), Text(time_ago(job["created"], now), "dim")])
        yield bar(job, width)
        yield Flow(counts(job), "   ")


def parts(job: Document, now: float, width: int) -> Iterator[RenderableType]:
    """Return one job: its state, how far it is, and the outcome of its recipients."""
    started, ago = local_time(job["created"], now), time_ago(job["created"], now)
    source = [f"{cell(job['command'])} of {cell(job['file'])}", f"account {cell(job['profile'])}"]
    yield Flow([Text(cell(each), "bold") for each in (job["job"], job.get("name")) if each] + [state(job["state"])])
    yield Flow([Text(each, "dim") for each in (*source, f"started {started}, {ago}")], " · ")
    yield Text("")
    yield from result_parts(job, width)
    yield Text("")
    sent = sum(job[name] for name in OUTCOMES)
    pairs = [("Recipients", Text.assemble(f"{sent:,}", (_left_out(job), "dim")))]
    if states := job.get("states"):
        pairs += _funnel(job["accepted"], states)
    spent = f"{job['credits']:,}"
    pairs.append(("Credits", Text.assemble(spent, (f"  in {plural(job['requests'], 'request')}", "dim"))))
    yield record(pairs)


def result_parts(job: Document, width: int) -> Iterator[RenderableType]:
    """Return the bar of a job with its counts, if there is more than one."""
    yield bar(job, width)
    if len(found := counts(job, with_percent=True)) > 1:
        yield Flow(found, "   ")


def told(job: Document) -> tuple[str, ...]:
    """Return the verdict on a job whose recipients were all accepted."""
    total = sum(job[name] for name in OUTCOMES)
    noun = _NOUNS.get(job["command"], "message")
    done = f"{job['accepted']:,} of {plural(total, noun)} {'blocked' if noun == 'number' else 'accepted'}"
    return (done, plural(job["credits"], "credit")) if job["credits"] else (done,)


def hints(job: Document) -> list[str]:
    """Return how to resume a job, and how to list recipients in doubt."""
    found = []
    if job["state"] == "paused":
        variables = ", with MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY set" * (job["profile"] == ENVIRONMENT)
        found.append(f"Resume{variables}: msgctl job resume {job['job']}")
    if job["unknown"]:
        found.append(f"List unknown recipients: msgctl job report {job['job']} --only unknown")
    return found


def plan_parts(plan: Document, account: Sequence[str] = ()) -> Iterator[RenderableType]:
    """Return what is about to be sent. ``account`` is the name of the profile and the host of its service."""
    is_block = plan["command"] == "block bulk"
    title = f"{'Block' if is_block else 'Send'} {plural(plan['messages'], _NOUNS.get(plan['command'], 'message'))}"
    line = Text(title, "bold")
    if account:
        line = Text.assemble((title, "bold"), " from account ", (account[0], "bold"), (f"  {account[1]}", "dim"))
    yield line
    yield Text("")
    asides = [f"{plan[name]:,} {name}" for name in LEFT_OUT if plan.get(name)]
    told = f"{plan['messages']:,} of {plan['recipients']:,} in {cell(plan['file'])}"
    pairs = [("Recipients", Text.assemble(told, (f"  {', '.join(asides)}, left out" if asides else "", "dim")))]
    if not is_block:
        pairs.append(("Credits", _cost(plan)))
    if plan.get("segments"):
        pairs.append(("Segments", Text(f"{plan['segments']:,}")))
    if plan["first"]:
        texts = (", ".join(each) if isinstance(each, list) else str(each) for each in plan["first"].values())
        pairs.append(("First", Text(shorten("; ".join(texts), LONGEST_EXAMPLE))))
    if costly := plan.get("most_expensive"):
        pairs.append(("Most expensive", _most_expensive(costly)))
    yield record(pairs)
    yield Text("")


def bar(job: Document, width: int) -> Text:
    """Return the outcomes of a job as one line; every outcome that occurs leaves a mark."""
    width = min(width, WIDEST_BAR)
    total = sum(job[name] for name in OUTCOMES) or 1
    done = [name for name in OUTCOMES if name != "pending" and job[name]]
    sizes = {name: max(job[name] * width // total, 1) for name in done}
    if not job["pending"] and sizes:
        longest = max(sizes, key=lambda name: sizes[name])
        sizes[longest] += width - sum(sizes.values())
    line = Text(no_wrap=True)
    for name, size in sizes.items():
        line.append("━" * size, OUTCOMES[name])
    return line.append("─" * max(width - sum(sizes.values()), 0), "bar.back")


def counts(job: Document, *, with_percent: bool = False) -> list[Text]:
    """Return ``✓ 173 accepted`` and so on, for the outcomes that occur."""
    total = sum(job[name] for name in OUTCOMES) or 1
    return [
        Text.assemble(
            (f"{SIGNS[kind]} {job[name]:,} {name}", kind),
            (f" {job[name] * 100 / total:.0f}%" if with_percent else "", "dim"),
        )
        for name, kind in OUTCOMES.items()
        if job[name]
    ] or [Text("no recipients", "dim")]


def _row(job: Document) -> Document:
    total = sum(job[name] for name in OUTCOMES)
    percent = (total - job["pending"]) * 100 // (total or 1)
    marked = {name: Text(f"{job[name]:,}", OUTCOMES[name] if job[name] else "zero") for name in ("refused", "unknown")}
    return {**job, **marked, "bar": bar(job, SHORT_BAR), "percent": Text(f"{percent}%")}


def _left_out(job: Document) -> str:
    found = [f"{job[name]:,} {name}" for name in LEFT_OUT if job.get(name)]
    number = sum(job.get(name) or 0 for name in LEFT_OUT)
    return f"  plus {number:,} left out: {', '.join(found)}" if found else ""


def _funnel(accepted: int, states: Mapping[str, int]) -> Iterator[tuple[str, Text]]:
    """Yield how many messages were accepted and delivered, and how many failed or are open, by state."""
    width = len(f"{accepted:,}")
    yield "Accepted", Text.assemble(f"{accepted:,} 100%  ", ("━" * SHORT_BAR, "ok"))
    delivered = {word: number for word, number in states.items() if is_delivered(word)}
    failed = {word: number for word, number in states.items() if is_final(word) and word not in delivered}
    open_ = {word: number for word, number in states.items() if not is_final(word)}
    open_["not checked"] = max(accepted - sum(states.values()), 0)
    for name, found, style in (("Delivered", delivered, "ok"), ("Failed", failed, "bad"), ("Open", open_, "off")):
        if number := sum(found.values()):
            size = min(max(number * SHORT_BAR // (accepted or 1), 1), SHORT_BAR)
            reasons = ", ".join(f"{count:,} {cell(word)}" for word, count in found.items() if count)
            share = f"{number:>{width},} {number * 100 // (accepted or 1):>3}%  "
            shown = Text.assemble(share, ("━" * size, style))
            yield name, shown if name == "Delivered" else shown.append(f"  {reasons}", "dim")


def _cost(plan: Document) -> Text:
    needed, balance = plan["credits"], plan["balance"]
    countries = plan.get("countries") or {}
    listed = ", ".join(f"{name} {count:,}" for name, count in countries.items())
    by_country = (f"   {listed}" if len(countries) > 1 else "", "dim")
    if balance is None:
        return Text.assemble((f"about {needed:,}", "bold"), ("  balance not checked", "dim"), by_country)
    if balance < needed:
        return Text.assemble((f"about {needed:,}", "bold red"), f" of {balance:,}", ("  not enough", "red"), by_country)
    left = (f"  {balance - needed:,} left afterwards", "dim")
    return Text.assemble((f"about {needed:,}", "bold"), f" of {balance:,}", left, by_country)


def _most_expensive(message: Document) -> Text:
    """Return the message that costs most, and why if a character makes it longer."""
    text = str(message.get("sms") or message.get("message") or "")
    size = plural(message["segments"], "segment")
    strange = count(text).not_gsm7[:3]
    reason = f": {', '.join(strange)} {'is' if len(strange) == 1 else 'are'} not in GSM-7" if strange else ""
    where = f"line {message['line']} · {message['phone']} · {size}{reason}"
    return Text.assemble(shorten(text, LONGEST_EXAMPLE), ("\n" + cell(where), "dim"))
