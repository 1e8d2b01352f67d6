"""Every view on terminals of several widths, with and without colour, in UTF-8 and in the C locale."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from emoji import EMOJI_DATA
from rich.cells import cell_len

from golden.views import FOLDER, TERMINALS, Terminal, Viewer
from msgctl.commands.doctor import FIELDS
from msgctl.commands.history import HISTORY_FIELDS
from msgctl.commands.sandbox import INBOX_COLUMNS
from msgctl.jobs.report import JOB_FIELDS, REPORT_COLUMNS, Summary
from msgctl.jobs.settings import Settings
from msgctl.output.result import Layout, OwnResult
from msgctl.store.jobs import Job
from support.service import Service, drop, respond

LONG = "El pedido 4417 está listo. Pasa por él hoy hasta las 18:00, trae tu documento. 🎉 谢谢您的订单"
ID = "5be1f296c43c5ce2"
DISPATCH = "b387be2e83b51614"
CODE = "184830 is your Shop code. It expires in 10 minutes."
SHORT = "Your order is ready"
Show = Callable[[Viewer, Service], None]


def sms_send(viewer: Viewer, _: Service) -> None:
    viewer.run("-p", "sandbox", "sms", "send", "573001234567", "573001230002", "-m", SHORT)
    viewer.run("-p", "sandbox", "sms", "send", "573001234567", "-m", SHORT, "--quiet")


def entry(id: str, state: str, credits: int, text: str, phone: str) -> dict[str, Any]:
    return {"id": id, "status": state, "credits": credits, "sms": text, "phone": phone}


def sms_mixed(viewer: Viewer, service: Service) -> None:
    entries = [
        entry(ID, "queued", 2, LONG, "573001234567"),
        entry("be0c381e900be668", "rejected", 0, "Your order 4418 is ready", "573001230002"),
        entry("00ac381e900be660", "queued", 12, "ご注文の品が届きました。お受け取りください。", "819012345678"),
    ]
    service.always(respond({"id": DISPATCH, "status": 1, "data": entries}))
    viewer.run("sms", "send", "573001234567", "573001230002", "819012345678", "-m", SHORT)


def balance(viewer: Viewer, service: Service) -> None:
    service.always(respond({"status": 1988}))
    viewer.run("balance")
    viewer.run("balance", "check", "--min", "100000")
    viewer.run("-p", "sandbox", "sandbox", "credit", "500")
    viewer.run("-p", "sandbox", "sandbox", "inbox", "573001234567")


def block(viewer: Viewer, service: Service) -> None:
    service.always(respond({"id": "b04120cd7a23458f", "status": "blocked", "phone": "573001239999", "name": "Ana"}))
    viewer.run("block", "add", "573001239999", "--name", "Ana", "--yes")


def states(viewer: Viewer, service: Service) -> None:
    state_of = {"f851daa8f64749b2": "delivered", "9d7adb11ab4432ff": "rejected"}
    about = {"credits": 1, "phone": 573001234567, "created": "2026-11-21 22:46:23", "sms": SHORT}
    for identifier, state in state_of.items():
        service.will(respond({"state": state, **about, "dispatch_id": DISPATCH, "id": identifier}))
    viewer.run("state", "get", *state_of)


def twofa(viewer: Viewer, service: Service) -> None:
    sent = entry("cbd66c243b70a325", "queued", 1, CODE.replace("184830", "******"), "573001234567")
    service.will(respond({"id": DISPATCH, "status": "1", "minutes_to_expire": 10, "data": [sent]}))
    viewer.run("2fa", "send-sms", "573001234567", "--app-name", "Shop")
    service.will(respond({"status": "verified"}))
    viewer.run("2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "184830")
    service.will(respond({"error": "INVALID_CODE", "msg": "The code is not the one that was sent last."}, status=520))
    viewer.run("2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "184831")


URLS = {"urlShort": "https://s.example/u/8z8hAGz", "urlLong": "https://example.com/offers/november"}


def shorten(viewer: Viewer, service: Service) -> None:
    service.always(respond({**URLS, "msg": "created"}))
    viewer.run("url", "shorten", "https://example.com/offers/november", "--name", "offers")


def errors(viewer: Viewer, service: Service) -> None:
    viewer.run("sms", "sned")
    viewer.run("sms", "send", "12", "-m", SHORT)
    service.will(drop)
    viewer.run("sms", "send", "573001234567", "-m", SHORT)
    service.always(respond({"error": "INVALID_KEY", "msg": "The key is not valid"}, status=520))
    viewer.run("balance")
    viewer.run("balance", "--json")


def json(viewer: Viewer, service: Service) -> None:
    data = b'{"id":"5be1f296c43c5ce2","status":"queued","credits":1.10,"test":true,"name":null,"phone":"573001234567"}'
    service.always(respond(b'{"status":1,"id":"b387be2e83b51614","data":[%s]}' % data))
    viewer.run("sms", "send", "573001234567", "-m", SHORT, "--json")


def stats(viewer: Viewer, service: Service) -> None:
    days = {13: 132, 14: 97, 16: 151, 17: 136, 18: 289, 19: 174, 20: 211, 21: 151}
    hours = [8, 3, 1, 0, 2, 11, 28, 61, 80, 92, 85, 77, 90, 71, 66, 70, 81, 96, 120, 103, 84, 60, 35, 17]
    cities = [("Bogotá", "Bogotá D.C.", "CO", 702), ("San José del Guaviare", "Guaviare", "CO", 301)]
    cities.append(("北京", "", "CN", 30))
    plain = {
        "country": {"CO": 1003, "MX": 224, "US": 42, "BR": 31, "ES": 19, "AR": 12, "DE": 6, "PE": 3, "CL": 1},
        "device": {"mobile": 719, "desktop": 496, "tablet": 126},
        "operatingSystem": {"Android": 601, "Windows": 260, "iPadOS": 126, "macOS": 126, "iOS": 118, "Linux": 110},
    }
    metrics: list[dict[str, Any]] = [{"date": {"property": f"2026-11-{day}", "clicks": n}} for day, n in days.items()]
    metrics += [{"hour": {"property": f"{hour:02}", "clicks": n, "date": "2026-11-18"}} for hour, n in enumerate(hours)]
    metrics += [{name: {"property": label, "clicks": n}} for name, each in plain.items() for label, n in each.items()]
    metrics += [{"city": {"property": c, "region": r, "countryIsoCode": cc, "clicks": n}} for c, r, cc, n in cities]
    service.always(respond({**URLS, "clicksNumber": 1341, "metrics": metrics}))
    viewer.run("url", "stats", "offers", "--since", "2026-11-13")
    hourly = [{"hour": {"property": f"{hour:02}", "clicks": 0}} for hour in range(24)]
    quiet: list[dict[str, Any]] = [{"date": {"property": "2026-11-21", "clicks": 0}}, *hourly]
    service.always(respond({**URLS, "clicksNumber": 0, "metrics": quiet}))
    viewer.run("url", "stats", "offers", "--since", "today")


def profiles(viewer: Viewer, _: Service) -> None:
    viewer.forget_the_service()
    account = ("--base-url", "https://service.example/api/v1", "--client", "12345")
    command = ("--key-command", "pass show msgctl/main")
    viewer.run("profile", "add", "main", *account, *command)
    viewer.run("profile", "set", "main", "--country-code", "CO")
    viewer.run("profile", "list")
    viewer.run("profile", "show")


def dry_run(viewer: Viewer, _: Service) -> None:
    viewer.run("-p", "sandbox", "sms", "send", "573001234567", "-m", SHORT, "--dry-run")
    viewer.run("-p", "sandbox", "block", "add", "573001234567", "573007654321", "--dry-run")


def segments(viewer: Viewer, _: Service) -> None:
    viewer.run("sms", "segments", SHORT)
    viewer.run("sms", "segments", "Tu pedido está listo 🎉")


def changed(summary: Summary, **changes: Any) -> Summary:
    """Return a summary with other values of the job, its settings, or its own."""
    for name in ("job", "settings"):
        part = getattr(summary, name)
        own = {field.name: changes.pop(field.name) for field in fields(part) if field.name in changes}
        summary = replace(summary, **{name: replace(part, **own)})
    return replace(summary, **changes)


def at(time: str) -> int:
    """Return a time (ISO 8601) in milliseconds since 1970."""
    return int(datetime.fromisoformat(time).timestamp() * 1000)


JOB = changed(
    Summary(Job(*[0] * len(fields(Job))), Settings("call", "customers.csv", "main", "", 0, {})),  # type: ignore[arg-type]
    id="20261121-362e8c",
    name=None,
    command="call bulk",
    profile="main",
    state="paused",
    stopping=None,
    ending="",
    removed=None,
    accepted=173,
    refused=96,
    unknown=20,
    pending=111,
    invalid=2,
    duplicate=1,
    attempt=1,
    requests=14,
    credits=173_000_000,
    machine="laptop",
    phones='sheet "Clientes", header in row 3, column "Celular" · first 573001112233 (line 4)',
    states={"delivered": 151, "rejected": 4, "sent": 18},
    created=at("2026-11-21T22:47:02Z"),
)
NOTHING = changed(JOB, accepted=0, refused=0, unknown=0, pending=0)
DONE = changed(NOTHING, operation="sms send", command="sms bulk", state="done", accepted=12400)


def job_list(viewer: Viewer, _: Service) -> None:
    old = changed(DONE, id="20261119-0af171", created=at("2026-11-19T22:46:23Z"), accepted=2)
    running = changed(JOB, id="20261121-77aa01", is_running=True, refused=12, unknown=0, pending=48_738)
    doubtful = changed(DONE, id="20261121-d31002", accepted=12_399, unknown=1)
    jobs = [old, changed(DONE, id="20261121-d31001"), doubtful, JOB, running]
    viewer.print(OwnResult(jobs, JOB_FIELDS, Layout.JOBS))
    viewer.say("\nno refused and unknown ones\n")
    viewer.print(OwnResult([changed(old, name="offers"), DONE], JOB_FIELDS, Layout.JOBS))


STEPS = ("Check the delivery: msgctl job states november",)


def job_show(viewer: Viewer, _: Service) -> None:
    later = changed(NOTHING, state="scheduled", pending=400, due=at("2026-12-01T14:00:00Z"), states={})
    closed = changed(later, window="08:00-19:00", days="mon-sat", excluded=4, at_most="1/day")
    done = changed(DONE, states={"delivered": 12399, "rejected": 1})
    doubtful = changed(DONE, accepted=12_399, unknown=1, states={})
    overdue = changed(later, due=at("2026-11-21T22:49:00Z"))
    for job in (JOB, done, later, closed, doubtful, overdue):
        viewer.print(OwnResult(job, JOB_FIELDS, Layout.JOB, hints=STEPS))


def job_end(viewer: Viewer, _: Service) -> None:
    job = changed(DONE, credits=12_912_000_000, states={})
    viewer.print(OwnResult(job, JOB_FIELDS, Layout.JOB_RUN, hints=STEPS))
    later = changed(job, accepted=0, state="scheduled", pending=12400, due=at("2026-12-01T14:00:00Z"))
    viewer.print(OwnResult(later, JOB_FIELDS, Layout.JOB_RUN, hints=STEPS))


def sms_bulk(viewer: Viewer, _: Service) -> None:
    file = Path("customers.csv")
    rows = [f"573001234{number:03},Ana\n" for number in range(100, 105)]
    file.write_text("phone,name\n" + "".join(rows) + "12,Luis\n" + rows[0], encoding="utf-8")
    message = ("-m", "Hello {name}, your order is ready")
    viewer.run("-p", "sandbox", "sms", "bulk", str(file), *message, typed="y\n")
    viewer.run("-p", "sandbox", "sms", "bulk", str(file), *message, "--skip-invalid", typed="y\n")


RESULTS: dict[str, tuple[Sequence[str], Layout]] = {
    "history": (HISTORY_FIELDS, Layout.HISTORY),
    "inbox": (INBOX_COLUMNS, Layout.INBOX),
    "doctor": (FIELDS, Layout.CHECKS),
    "job_report": ((*REPORT_COLUMNS, "name"), Layout.REPORT),
}
"""The fields and layout of the results in `results/`."""


def result(name: str) -> Show:
    """Return a view of the result in a csv file."""

    def show(viewer: Viewer, _: Service) -> None:
        with (FOLDER.parent / "results" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            rows: list[dict[str, Any]] = [
                {name: cell or None for name, cell in row.items()} for row in csv.DictReader(file)
            ]
        for row in rows:
            row.update({"line": int(row["line"])} if "line" in row else {})
        viewer.print(OwnResult(rows, *RESULTS[name]))

    show.__name__ = name
    return show


VIEWS: tuple[Show, ...] = (
    *(sms_send, sms_mixed, balance, block, states, twofa, shorten, stats, *map(result, RESULTS)),
    *(profiles, errors, json, dry_run, job_list, job_show, job_end),
    *(sms_bulk, segments),
)


@pytest.fixture(autouse=True)
def in_bogota(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use the local time of Bogotá."""
    monkeypatch.setenv("TZ", "America/Bogota")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("show", VIEWS, ids=lambda show: str(show.__name__))
def test_a_view_matches_its_file(show: Show, service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    sections = []
    for number, terminal in enumerate(TERMINALS):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / str(number)))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / str(number)))
        monkeypatch.setenv("COLUMNS", str(terminal.width))
        viewer = Viewer(terminal)
        show(viewer, service)
        sections.append(f"{f' {terminal.name} ':=^{terminal.width}}\n{viewer.shown()}")
    shown = "\n".join(sections)
    file = FOLDER / f"{show.__name__}.txt"
    if os.environ.get("WRITE_VIEWS"):
        file.write_text(shown)
    assert shown == file.read_text()


def test_a_very_narrow_table_folds_its_cells() -> None:
    viewer = Viewer(Terminal("", 16))
    viewer.print(OwnResult([{"state": "sent", "phone": "573001234567"}], ("state", "phone")))
    lines = viewer.shown().splitlines()
    assert max(map(len, lines)) <= 16
    assert "573001234567" in "".join(lines[2:]).replace("sent", "").replace(" ", "")


# --- columns are aligned with any cells

CJK = ("谢谢您的订单", "ご注文の品", "주문이준비되었습니다", "ｆｕｌｌ", "ﾊﾝｶｸ", "é", "e\u0301", "नमस्ते", "ไทย")
JOINED = (
    "👨\u200d👩\u200d👧\u200d👦",
    "👩\u200d💻",
    "🏳\ufe0f\u200d🌈",
    "🏴\u200d☠\ufe0f",
    "🧑\u200d🤝\u200d🧑",
    "🐈\u200d⬛",
)
TAGGED = [each for each in EMOJI_DATA if "\U000e007f" in each]
"""Three flags. msgctl shows their tags as escapes, because tags can hide text."""
WIDEST = "a cell as wide as any of them is"


def test_emoji_sequences_and_cjk_text_are_aligned() -> None:
    cells = [WIDEST, *(each for each in [*EMOJI_DATA][::4] if each not in TAGGED), *JOINED, *CJK]
    assert len(TAGGED) == 3
    viewer = Viewer(Terminal("", 80))
    viewer.print(OwnResult([{"name": cell, "end": "|"} for cell in cells], ("name", "end")))
    rows = viewer.shown().splitlines()[2:]
    assert [row.removesuffix("|").rstrip() for row in rows] == cells
    assert {cell_len(row) for row in rows} == {len(WIDEST) + 3}


@pytest.mark.parametrize("width", [40, 80])
def test_wrapping_breaks_no_emoji_sequence(width: int) -> None:
    words = ["".join([*JOINED, "👍🏽", "🇨🇴", "1\ufe0f\u20e3", cjk]) for cjk in CJK] * 3
    viewer = Viewer(Terminal("", width))
    viewer.print(OwnResult([{"phone": "573001234567", "text": " ".join(words)}, {"text": "b"}], ("phone", "text")))
    lines = viewer.shown().splitlines()
    assert max(map(cell_len, lines)) <= width
    shown = "".join(line.replace("573001234567", "").strip() for line in lines)
    assert all(word in shown.replace(" ", "") for word in words)


def test_a_long_table_has_one_header_and_columns_as_wide_as_the_widest_cell() -> None:
    rows = [{"name": "a", "end": "|"}] * 700 + [{"name": "a much longer name than the others", "end": "|"}]
    viewer = Viewer(TERMINALS[0])
    viewer.print(OwnResult(iter(rows), ("name", "end")))
    lines = viewer.shown().splitlines()[2:]
    assert len(lines) == len(rows)
    assert {line.index("|") for line in lines} == {len(rows[-1]["name"]) + 2}
