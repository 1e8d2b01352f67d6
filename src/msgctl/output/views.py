"""The view of each result on a terminal: the verdict above it, its columns, and the hints below."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from msgctl import operations as ops
from msgctl.errors import Hint
from msgctl.operations import Effect, Shape
from msgctl.outcomes.outcome import ACCEPTED
from msgctl.output import fields, job_views
from msgctl.output.fields import cell
from msgctl.output.result import Document, Layout, OwnResult, ServiceResult
from msgctl.output.tables import (
    STYLES,
    Column,
    FieldList,
    Flow,
    Viewer,
    bars,
    kind_of_field,
    listing,
    number,
    signed,
    state_text,
    styled,
    title,
    verdict,
    whole,
)
from msgctl.text import plural

if TYPE_CHECKING:
    from msgctl.jobs.plan import Plan
    from msgctl.jobs.report import Summary


class View(NamedTuple):
    """A view on a terminal: the parts of the result, the verdict above them, and the hints below.

    A verdict is the style of its sign and the parts of its text.
    """

    parts: Iterable[RenderableType]
    verdict: Sequence[str] = ()
    hints: Sequence[str] = ()


def _newest(row: Document) -> Any:
    """Return the newest state of a history entry."""
    outcome = row.get("outcome")
    if outcome == ACCEPTED and row.get("command") == ops.BLOCK_PHONE.name:
        return state_text("blocked")  # its word, such as "Bloqueado", would mean that a message failed
    of_service = row.get("state") or (row.get("status") if outcome == ACCEPTED else None)
    return of_service or state_text(outcome or "")


MAX_BARS = 120
"""Maximum columns of a table with bars, even on a wider terminal."""
MAX_SHOWN_TEXT = 200_000
"""Maximum characters of text that a terminal shows for all rows together; each row may have `MIN_ROW_TEXT`."""
MIN_ROW_TEXT = 200
MAX_MINUTES = 100_000
"""Minutes that a verdict does not show, because `datetime` may not have the time."""

_ORDER = ("phone", "status", "state", "name", "credits", "voice", "id")
"""The first fields of responses. The other fields follow, and messages are last."""
_STATE_ORDER = ("id", "state", "phone", "created", "credits", "dispatch_id")
_IN_VERDICT = {Shape.LINK: "msg", Shape.RECORD: "status"}
"""The field of a record that the verdict shows already."""
_DROP_ORDER = {"voice": 1, "dispatch_id": 1, "created": 2, "credits": 3, "id": 4}
_OWN = {
    Layout.HISTORY: (
        Column("time", "Sent"),
        Column("time", "", "ago", drop_order=1),
        Column("phone"),
        Column("newest", "Status", "delivery", value=_newest),
        Column("command", drop_order=4),
        Column("job"),
        Column("credits", drop_order=5),
        Column("profile", drop_order=2),
        Column("id", drop_order=3),
        Column("message"),
    ),
    Layout.INBOX: (
        Column("time", "Received"),
        Column("time", "", "ago", drop_order=2),
        Column("kind", drop_order=1),
        Column("phone"),
        Column("code"),
        Column("text"),
    ),
    Layout.REPORT: (
        Column("line", drop_order=3),
        Column("phone"),
        Column("outcome"),
        Column("time", drop_order=4),
        Column("newest", "Status", "delivery", value=lambda row: row["state"] or row["status"]),
        Column("credits", drop_order=1),
        Column("id", drop_order=2),
        Column("error", "Why"),
        Column("message", drop_order=5),
    ),
    Layout.OPTOUTS: (Column("phone"), Column("channel"), Column("added", kind="time")),
    Layout.PROFILES: (
        Column("name", "Profile", value=lambda row: f"{'●' if row['default'] else ' '} {row['name']}"),
        Column("base_url"),
        Column("client", drop_order=1),
        Column("key"),
    ),
}
"""The columns of msgctl's own lists."""
_NAMES = {"name", "nombre", "full name", "nombre completo", "customer", "cliente"}
"""Usual names of a file's column with people's names."""


def service_view(result: ServiceResult, viewer: Viewer, *, with_verdict: bool) -> View:
    """Return the view of responses."""
    verdict = _verdict(result, viewer.now) if with_verdict else ()
    parts = list(_responses(result, viewer, with_verdict=bool(verdict)))
    if not verdict:
        return View(parts)
    if parts:
        parts.insert(0, Text(""))
    return View(parts, verdict, _hints(result))


def own_view(result: OwnResult, viewer: Viewer, *, with_verdict: bool) -> View:
    """Return the view of msgctl's own results."""
    content, layout = result.content, result.layout
    if layout is Layout.PLAN:
        return View(job_views.plan_parts(cast("Plan", content), viewer.now))
    if layout in (Layout.JOB, Layout.JOB_POLLED, Layout.JOB_RUN):
        return _job(result, viewer, with_verdict=with_verdict)
    if layout is Layout.JOBS:
        return View(job_views.jobs_table(cast("Sequence[Summary]", content), viewer))
    if isinstance(content, Mapping):
        if layout is Layout.BALANCE:
            return View([_balance(content)])
        return View([_record(content, result.columns, viewer)])
    documents = cast("Iterable[Document]", content)
    if layout is Layout.CHECKS:
        return View(_checks(documents))
    if layout is Layout.REPORT:
        viewer = viewer._replace(words=result.words or viewer.words)
        return View(listing(_report_columns(result.columns), documents, viewer))
    if layout is Layout.REQUEST and documents:
        return View(_requests(list(documents), result.columns, viewer))
    columns = _OWN.get(layout) or tuple(Column(name) for name in result.columns)
    parts = listing(columns, documents, viewer)
    if result.about:
        facts = FieldList([(name, Text(cell(text))) for name, text in result.about])
        return View(chain(parts, (Text(""), facts)))
    return View(parts)


def _job(result: OwnResult, viewer: Viewer, *, with_verdict: bool) -> View:
    job = cast("Summary", result.content)
    if result.failures or not with_verdict:
        is_explained = bool(result.failures) and result.layout is Layout.JOB_RUN  # the error says why it paused
        return View(job_views.parts(job, viewer, is_explained=is_explained))
    if result.layout is Layout.JOB_RUN:
        return View(job_views.result_parts(job, viewer.width), job_views.job_verdict(job, viewer.now), result.hints)
    return View(job_views.parts(job, viewer), (), result.hints)


def _report_columns(names: Iterable[str]) -> list[Column]:
    """Return the columns of a report. The file's own columns are hidden first, except people's names."""
    phone, columns, people = 1, list(_OWN[Layout.REPORT]), list[Column]()
    known = {*(column.name for column in columns), "status", "state"}
    for name in names:
        if name in known:
            continue
        if name.strip().lower() in _NAMES:
            people.append(Column(name))
        else:
            columns.append(Column(name, drop_order=-1))
    return [*columns[: phone + 1], *people, *columns[phone + 1 :]]


def _verdict(result: ServiceResult, now: datetime) -> Sequence[str]:
    """Return the verdict on an operation that sends or changes something; empty for an operation that reads."""
    response = result.responses[0]
    operation, rows = response.operation, list(fields.rows_of(response))
    phone = ""
    if rows:
        phone = cell(rows[0].get("phone"))
    if operation.blocks:
        blocked = [cell(outcome.phone) for outcome in result.outcomes if outcome.outcome == ACCEPTED]
        if not blocked:
            return ()
        phones = blocked[0]
        if len(blocked) > 1:
            phones = plural(len(blocked), "number")
        return ("ok", operation.verdict.format(phone=phones))
    if operation.verdict:
        return ("ok", operation.verdict.format(phone=phone or cell(result.values.get("phone"))))
    if operation.effect is not Effect.SENDS:
        return ()
    if operation.sends_code:
        if result.failures:  # the error reports the outcome
            return ()
        to = cell(result.outcomes[0].phone) if result.outcomes else phone
        return ("ok", f"Code sent to {to}", *_validity(response.document, now), *_charged(rows))
    outcomes = [recipient.outcome for recipient in result.outcomes]
    noun = "call" if operation.channel == "call" else "message"
    style, sent, accepted = "ok", plural(len(outcomes), noun), outcomes.count(ACCEPTED)
    if accepted < len(outcomes):
        style, sent = "warn", f"{accepted:,} of {sent}"
    return (style, f"{sent} accepted", *_charged(rows))


def _hints(result: ServiceResult) -> list[str]:
    operation = result.responses[0].operation
    if result.failures or result.is_tracked or operation.effect is not Effect.SENDS:
        return []
    if operation.sends_code:
        phone, name = str(result.values["phone"]), shlex.quote(str(result.values["app-name"]))
        return [Hint("Check a code: ", f"2fa verify {phone} --app-name {name} --code -")]
    if operation.record.entries:
        return [Hint("Follow the delivery: ", "state watch --last")]
    return []


def _responses(result: ServiceResult, viewer: Viewer, *, with_verdict: bool) -> Iterator[RenderableType]:
    """Return the responses to one operation as a table, a record, or a chart; without the fields in the verdict."""
    responses = result.responses
    record = responses[0].operation.record
    if record.entries or record.shape is Shape.STATES:
        names = _in_order([field.name for field in record.entries or record.fields], record)
        columns = [Column(name, drop_order=_DROP_ORDER.get(name, 0)) for name in names]
        _, rows = fields.table(responses)
        yield from listing(columns, list(_shortened(rows)), viewer)
        return
    for response in responses:
        document = response.document
        if record.shape is Shape.BALANCE:
            yield _balance(document)
        elif record.shape is Shape.STATISTICS:
            period = f"{result.values.get('since')} to {result.values.get('until')}"
            yield from _statistics(document, period, viewer.width)
        else:
            names = _in_order(fields.of_document(record, document), record)
            in_verdict = _IN_VERDICT.get(record.shape) if with_verdict else None
            if filled := [name for name in names if name != in_verdict and document.get(name) not in (None, "")]:
                yield _record(document, filled, viewer)


def _statistics(document: Document, period: str, width: int) -> Iterator[RenderableType]:
    """Return click statistics: the URL, the total, and one table per category with a bar beside each count."""
    yield Text(cell(document.get("urlShort")), "bold")
    yield Text(f"→ {cell(document.get('urlLong'))}", "dim")
    yield Text("")
    total = cell(document.get("clicksNumber"))
    noun = "click" if total == "1" else "clicks"
    yield Text.assemble((f"{number(total)} {noun}", "bold"), (f"  {period}", "dim"))
    categories: dict[str, list[Document]] = {}
    for category, metric in fields.metrics_of(document):
        categories.setdefault(category, []).append(metric)
    for category, metrics in categories.items():
        yield Text("")
        counts = [(_label(metric), whole(cell(metric.get("clicks"))) or 0) for metric in metrics]
        yield bars(category, counts, min(width, MAX_BARS))


def _label(metric: Document) -> str:
    parts = [cell(metric.get(name)) for name in ("date", "property", "region", "countryIsoCode")]
    return ", ".join(dict.fromkeys(filter(None, parts)))


def _shortened(rows: Sequence[Document]) -> Iterator[Document]:
    """Truncate strings that are too long for a terminal, because Rich takes seconds to wrap a megabyte."""
    limit = max(MAX_SHOWN_TEXT // max(len(rows), 1), MIN_ROW_TEXT)
    for row in rows:
        too_long = {name for name, value in row.items() if isinstance(value, str) and len(value) > limit}
        yield {**row, **{name: f"{row[name][:limit]}…" for name in too_long}}


def _balance(document: Document) -> Text:
    balance = cell(document.get("status"))
    noun = "credit" if balance == "1" else "credits"
    return Text.assemble((number(balance), "bold"), f" {noun} left")


def _in_order(names: Iterable[str], record: ops.Record) -> list[str]:
    order = _STATE_ORDER if record.shape is Shape.STATES else _ORDER
    positions = {name: index for index, name in enumerate((*order, "", "sms", "message"))}
    return sorted(names, key=lambda name: positions.get(name, len(order)))


def _requests(rows: Sequence[Document], names: Iterable[str], viewer: Viewer) -> Iterator[RenderableType]:
    """Return the fields that all requests have in common, and a table of the others."""
    shared: list[str] = []
    others: list[str] = []
    for name in names:
        is_shared = all(row.get(name) == rows[0].get(name) for row in rows)
        (shared if is_shared else others).append(name)
    yield _record(rows[0], shared, viewer)
    yield Text("")
    yield from listing(map(Column, others), rows, viewer)


def _record(document: Document, names: Iterable[str], viewer: Viewer) -> RenderableType:
    """Return the non-empty fields of a document, one per line."""
    values = {name: document.get(name) for name in names}
    pairs = []
    for name, value in next(_shortened([values])).items():
        if value not in ("", []):
            pairs.append((title(name), styled(value, kind_of_field(name, value), viewer)))
    return FieldList(pairs)


def _checks(documents: Iterable[Document]) -> Iterator[RenderableType]:
    """Return doctor's findings as they arrive; skipped checks are listed last, grouped by reason."""
    skipped: dict[str, list[str]] = {}
    counts = {"bad": 0, "warn": 0, "ok": 0}
    for document in documents:
        style = STYLES.get(document["status"], "ok")
        name, finding = cell(document["check"]), cell(document["found"])
        if style == "off":
            skipped.setdefault(finding, []).append(name)
            continue
        counts[style] += 1
        yield signed(style, FieldList([(f"{name:11}", Text(finding))]))
        for fix in (document["fix"] or "").splitlines():
            # Lines are broken after a sentence or a colon, so that a command stays on one line.
            sentences = [*map(Text, re.split(r"(?<=[.:]) ", cell(fix)))]
            sentences[0] = Text.assemble(("→ ", style), sentences[0])
            yield Padding(Flow(sentences, " "), (0, 0, 0, 16))
    for reason, names in skipped.items():
        yield signed("off", Text(f"{', '.join(names)}: {reason}", "dim"))
    totals, worst = [], "warn"
    if counts["bad"]:
        worst = "bad"
        totals.append(f"{plural(counts['bad'], 'check')} failed")
    if counts["warn"]:
        totals.append(plural(counts["warn"], "warning"))
    if totals:
        yield Text("")
        yield verdict(worst, *totals)


def _charged(rows: Sequence[Document]) -> tuple[str, ...]:
    """Return the credits of all rows together; empty if any row has no whole number."""
    charged = [whole(str(row["credits"])) for row in rows if row.get("credits") is not None]
    if not charged or None in charged:
        return ()
    return (plural(sum(filter(None, charged)), "credit"),)


def _validity(document: Document, now: datetime) -> tuple[str, ...]:
    minutes = whole(str(document.get("minutes_to_expire")))
    if minutes is None or minutes >= MAX_MINUTES:
        return ()
    end = now + timedelta(minutes=minutes)
    return (f"valid until {end:%H:%M} ({minutes} min)",)
