"""Sends, waits, states, codes, jobs, history and reports in the sandbox, with each named set of responses."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from msgctl.outcomes.judge import Delivery, classify
from msgctl.sandbox.responses import NAMES
from support.sandbox import OTHER, Sandbox
from support.tool import Tool

from .clocked_emulator import PHONE

UNREACHED, REJECTED, STUCK = "573001230001", "573001230002", "573001230003"
"""Numbers whose messages are never delivered, rejected, or stay queued."""
BLOCKED = "573005550199"


@pytest.fixture(autouse=True, params=NAMES)
def responses(request: pytest.FixtureRequest, sandbox: Sandbox) -> None:
    """Choose each named set of responses."""
    sandbox.done("sandbox", "responses", request.param)


def send(sandbox: Sandbox, *arguments: str, code: int = 0) -> None:
    done = sandbox(*arguments)
    assert done.code == code, done.err


def call(*phones: str) -> tuple[str, ...]:
    return ("call", "send", *phones, "-m", "Hola", "--voice", "Mia")


def history(sandbox: Sandbox) -> list[tuple[str, str, Any]]:
    """Phone, outcome and class of the delivery state of each message."""
    entries = sandbox.document("history")
    return [(each["phone"], each["outcome"], each["state"] and classify(each["state"])) for each in entries]


def test_each_recipient_has_an_outcome_and_its_share_of_the_credits(sandbox: Sandbox) -> None:
    send(sandbox, "block", "add", BLOCKED)
    send(sandbox, "sms", "send", PHONE, BLOCKED, OTHER, "-m", "Hola", code=6)
    send(sandbox, "sms", "send", PHONE, OTHER, "-m", "x" * 161)
    send(sandbox, *call(PHONE, OTHER))
    send(sandbox, "chatapp", "send", PHONE, "Ana", "--template", "t")
    found = [(each["phone"], each["outcome"], each["credits"]) for each in sandbox.document("history")]
    accepted = [(OTHER, "accepted", 1), (PHONE, "accepted", 1)]
    assert sorted(found[1:4]) == sorted([*accepted, (BLOCKED, "refused", 0)])
    assert [found[4:6], found[6:8]] == [[(PHONE, "accepted", 2), (OTHER, "accepted", 2)], [*reversed(accepted)]]
    assert found[8][:2] == (PHONE, "accepted")
    send(sandbox, "balance", "check", "--min", "991")
    send(sandbox, "balance", "check", "--min", "992", code=6)


def test_a_refused_send_costs_nothing(sandbox: Sandbox) -> None:
    send(sandbox, "sandbox", "credit", "1")
    send(sandbox, "sms", "send", PHONE, OTHER, "-m", "Hola", code=1)
    assert [outcome for _, outcome, _ in history(sandbox)] == ["refused", "refused"]
    send(sandbox, "balance", "check", "--min", "1")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (("sms", "send", PHONE, OTHER, "-m", "Hola"), 0),
        (("sms", "send", PHONE, REJECTED, UNREACHED, "-m", "Hola"), 6),
        (("sms", "send", PHONE, STUCK, "-m", "Hola", "--max-wait", "30"), 6),
        (("sms", "send", PHONE, OTHER, "-m", "Hola", "--until", "sent"), 0),
        (("sms", "send", UNREACHED, "-m", "Hola", "--until", "delivered"), 6),
        (call(PHONE, OTHER), 0),
        (call(PHONE, REJECTED), 6),
        ((*call(UNREACHED), "--until", "delivered"), 6),
    ],
)
def test_a_wait_ends_when_every_state_is_final_or_reached(line: tuple[str, ...], code: int, sandbox: Sandbox) -> None:
    send(sandbox, *line, "--wait", code=code)


def test_the_last_send_is_watched_by_its_ids(sandbox: Sandbox) -> None:
    send(sandbox, "sms", "send", PHONE, UNREACHED, "-m", "Hola")
    send(sandbox, "state", "watch", "--last")
    assert history(sandbox) == [(PHONE, "accepted", Delivery.DELIVERED), (UNREACHED, "accepted", Delivery.FAILED)]
    ids = sandbox.done("history", "-o", "tsv", "--no-header", "--fields", "id").split()
    rows = {row["phone"]: row["state"] for each in ids for row in sandbox.rows("state", "get", each)}
    assert {phone: classify(state) for phone, state in rows.items()} == {
        PHONE: Delivery.DELIVERED,
        UNREACHED: Delivery.FAILED,
    }
    send(sandbox, *call(STUCK))
    send(sandbox, "state", "watch", "--last", "--max-wait", "10", code=6)
    send(sandbox, "state", "get", "nothing", code=1)


@pytest.mark.parametrize(
    "line",
    [
        ("2fa", "send-sms", PHONE),
        ("2fa", "send-call", PHONE, "--voice", "Mariana"),
        ("2fa", "send-chatapp", PHONE),
    ],
    ids=lambda line: line[1],
)
def test_only_the_right_code_is_verified_and_only_once(line: tuple[str, ...], sandbox: Sandbox, tool: Tool) -> None:
    send(sandbox, *line, "--app-name", "Shop")
    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code")
    code = sandbox.code()
    send(sandbox, *verify, "1" + code, code=1)
    send(sandbox, *verify, code)
    send(sandbox, *verify, code, code=1)
    send(sandbox, *line, "--app-name", "Shop")
    tool.clock.now += 3600
    send(sandbox, *verify, sandbox.code(), code=1)


@pytest.mark.parametrize("kind", [("sms", "bulk"), ("call", "bulk")], ids=" ".join)
@pytest.mark.parametrize("batch", ["2", "100"])
def test_a_job_is_tracked_reported_and_resent(
    kind: tuple[str, ...], batch: str, sandbox: Sandbox, tool: Tool, home: Path
) -> None:
    everyone = [PHONE, BLOCKED, UNREACHED, OTHER, REJECTED, "573001112234"]
    (home / "customers.csv").write_text("phone\n" + "".join(f"{phone}\n" for phone in everyone))
    send(sandbox, "block", "add", BLOCKED)
    voice = ("--voice", "Mia") if kind[0] == "call" else ()
    file = str(home / "customers.csv")
    line = (*kind, file, "-m", "Hola", *voice, "--yes", "--name", "news", "--batch-size", batch)
    send(sandbox, *line, code=6)
    send(sandbox, "job", "states", "news", "--follow")

    def report(*options: str, job: str = "news") -> list[dict[str, str]]:
        return list(csv.DictReader(tool("-p", "sandbox", "job", "report", job, "-o", "csv", *options).out.splitlines()))

    assert [(row["phone"], row["outcome"]) for row in report()] == [
        (phone, "refused" if phone == BLOCKED else "accepted") for phone in everyone
    ]
    assert {row["credits"] for row in report("--only", "accepted")} == {"1"}
    assert [row["phone"] for row in report("--only", "undelivered")] == [UNREACHED, REJECTED]
    shown = tool("-p", "sandbox", "job", "show", "news", "--json").document
    assert (shown["accepted"], shown["refused"], shown["credits"]) == (5, 1, 5)
    delivered = [state for _, outcome, state in history(sandbox) if outcome == "accepted"]
    assert delivered.count(Delivery.DELIVERED) == 3

    send(sandbox, "job", "resend", "news", "--only", "undelivered", "--yes", code=6)
    assert [row["phone"] for row in report("--only", "on-its-way")] == [UNREACHED, REJECTED]
    send(sandbox, "balance", "check", "--min", "993")
    send(sandbox, "balance", "check", "--min", "994", code=6)


def test_clicks_are_counted(sandbox: Sandbox) -> None:
    send(sandbox, "url", "shorten", "https://example.com/x", "--name", "offers", "--premium")
    send(sandbox, "sandbox", "click", "offers", "--count", "3", "--country", "CO")
    rows = sandbox.rows("url", "stats", "offers", "--since", "today", "--category", "country")
    assert [(row["property"], row["clicks"]) for row in rows] == [("CO", "3")]
