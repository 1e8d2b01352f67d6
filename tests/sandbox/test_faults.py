"""Faults: each shows itself as it says, and does the work or leaves it as it says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from msgctl.errors import UsageError
from msgctl.sandbox.desk import Desk
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.faults import Fault, Faults, Kind, parse
from msgctl.sandbox.state import State
from msgctl.sandbox.wire import Call

from .served import Served, as_http, serving
from .world import FORM, NOON, PHONE, encoded

SMS = Call("POST", "/api/v1/send-sms", "", FORM, encoded({"phone": PHONE, "sms": "Hola"}).encode())
BALANCE = Call("GET", "/api/v1/balance", encoded({}))


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    emulator = Emulator(State(tmp_path / "state.db"), clock=lambda: NOON)
    yield emulator
    emulator.close()


def left(served: Served) -> int:
    return int(json.loads(served.answer(BALANCE).body)["status"])


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("520", Fault(Kind.REFUSE)),
        ("503:0.25", Fault(Kind.UNAVAILABLE, 0.25)),
        ("drop:0.1:/send-sms", Fault(Kind.DROP, 0.1, "/send-sms")),
        ("html:/balance", Fault(Kind.HTML, 1.0, "/balance")),
        ("delay=1.5", Fault(Kind.DELAY, 1.0, None, 1.5)),
        ("delay=.5:1:/balance", Fault(Kind.DELAY, 1.0, "/balance", 0.5)),
        ("garbage:0", Fault(Kind.GARBAGE, 0.0)),
    ],
)
def test_a_fault_is_read_from_its_kind_probability_and_path(spec: str, fault: Fault) -> None:
    assert parse(spec) == fault


@pytest.mark.parametrize(
    "spec",
    ["", "404", "DROP", "delay", "delay=", "delay=x", "delay=99999", "drop=1", "520:2", "520:-1", "520:x", "520:nan",
     "520:", "520:0.5:balance", "520:0.5:", "delay=1e3", "delay=inf"],
)  # fmt: skip
def test_another_spec_is_a_usage_error_that_shows_the_forms(spec: str) -> None:
    with pytest.raises(UsageError, match="--fault") as caught:
        parse(spec)
    assert "delay=SECONDS" in str(caught.value.hint)


@pytest.mark.parametrize(("spec", "status"), [("520", 520), ("503", 503), ("429", 429)])
def test_a_refusal_has_the_record_and_nothing_is_done(emulator: Emulator, spec: str, status: int) -> None:
    with serving(Desk(emulator, faults=Faults([parse(f"{spec}:/send-sms")]))) as served:
        reply = served.answer(SMS)
        assert reply.status == status
        assert set(json.loads(reply.body)) == {"error", "msg"}
        assert left(served) == 1000
        assert served.log[0].endswith(f"fault {spec}")


def test_a_proxys_page_comes_with_520(emulator: Emulator) -> None:
    with serving(Desk(emulator, faults=Faults([parse("html:/send-sms")]))) as served:
        reply = served.answer(SMS)
        assert (reply.status, reply.headers["content-type"]) == (520, "text/html; charset=utf-8")
        assert b"<html>" in reply.body
        assert left(served) == 1000


@pytest.mark.parametrize(("spec", "credits_left"), [("drop", 999), ("reject", 1000)])
def test_a_dropped_connection_has_done_the_work_and_a_rejected_one_not(
    emulator: Emulator, spec: str, credits_left: int
) -> None:
    with serving(Desk(emulator, faults=Faults([parse(f"{spec}:/send-sms")]))) as served:
        assert served.raw(as_http(SMS)) == b""
        assert left(served) == credits_left


def test_a_truncated_answer_is_half_of_it(emulator: Emulator) -> None:
    with serving(Desk(emulator, faults=Faults([parse("truncate:/send-sms")]))) as served:
        head, _, body = served.raw(as_http(SMS)).partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        assert len(body) == length // 2
        assert left(served) == 999


def test_garbage_is_not_http(emulator: Emulator) -> None:
    with serving(Desk(emulator, faults=Faults([parse("garbage:/send-sms")]))) as served:
        assert not served.raw(as_http(SMS)).startswith(b"HTTP")
        assert left(served) == 999


def test_a_delay_comes_before_the_answer(emulator: Emulator) -> None:
    waited: list[float] = []
    with serving(Desk(emulator, faults=Faults([parse("delay=2.5")]), sleep=waited.append)) as served:
        assert served.answer(SMS).status == 200
    assert waited == [2.5]


def test_the_same_seed_meets_the_same_faults() -> None:
    told = [parse("520:0.5"), parse("drop:0.3:/send-sms")]

    def run(seed: int) -> list[list[Fault]]:
        faults = Faults(told, seed)
        return [faults.met("/send-sms") for _ in range(200)]

    assert run(1) == run(1)
    assert run(1) != run(2)
    share = sum(told[0] in met for met in run(1)) / 200
    assert 0.35 < share < 0.65
    assert all(told[1] not in Faults(told, 1).met("/balance") for _ in range(50))
