"""Faults: the bytes of each response, and whether the operation is carried out."""

from __future__ import annotations

import json
import time

import pytest

from msgctl.sandbox.faults import Fault, parse

from .world import PHONE, Served, World, as_http, posted

SMS = posted("/send-sms", phone=PHONE, sms="Hola")


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("520", Fault("520")),
        ("drop:0.1:/send-sms", Fault("drop", 0.1, "/send-sms")),
        ("html:/api/v1/balance", Fault("html", 1.0, "/balance")),
        ("delay=.5:1:/balance", Fault("delay", 1.0, "/balance", 0.5)),
        ("503:next=3:/send-sms", Fault("503", 1.0, "/send-sms", 0.0, 3)),
    ],
)
def test_a_fault_has_a_kind_a_probability_or_a_count_and_a_path(spec: str, fault: Fault) -> None:
    assert parse(spec) == fault


@pytest.mark.parametrize(
    "spec",
    ["", "404", "delay", "delay=x", "delay=99999", "drop=1", "520:2", "520:nan", "520:0.5:balance", "520:next=0"],
)
def test_another_spec_is_refused_and_leaves_the_others_set(world: World, spec: str) -> None:
    world.fault("503:next=2")
    assert world.change("fault", faults=["520", spec]).status == 400
    assert json.loads(world.ask("fault").body) == {"faults": ["503:next=2"]}


@pytest.mark.parametrize(
    ("spec", "status", "credits_left"),
    [("520", 520, 1000), ("503", 503, 1000), ("429", 429, 1000), ("breakdown", 520, 999)],
)
def test_a_breakdown_carries_the_request_out_and_other_errors_do_not(
    world: World, served: Served, spec: str, status: int, credits_left: int
) -> None:
    world.fault(f"{spec}:/send-sms")
    response = served.send(SMS)
    assert (response.status, set(json.loads(response.body))) == (status, {"error", "msg"})
    assert (json.loads(response.body)["error"] == 1000) == (spec == "breakdown")
    assert world.credits == credits_left
    assert served.log[0].endswith(f"fault {spec}")


@pytest.mark.parametrize(("spec", "credits_left"), [("drop", 999), ("reject", 1000)])
def test_a_dropped_request_is_carried_out_and_a_rejected_one_is_not(
    world: World, served: Served, spec: str, credits_left: int
) -> None:
    world.fault(f"{spec}:/send-sms")
    assert served.raw(as_http(SMS)) == b""
    assert world.credits == credits_left


def test_delays_add_up_before_the_response(world: World, served: Served) -> None:
    world.fault("delay=0.02", "delay=0.03")
    started = time.monotonic()
    assert served.send(SMS).status == 200
    assert time.monotonic() - started >= 0.05


def test_next_counts_requests_to_its_operation_only(world: World) -> None:
    world.fault("503:next=2:/send-sms")
    elsewhere = (SMS._replace(path="/api/v1/nothing"), SMS._replace(path="/send-sms"), SMS._replace(method="PUT"))
    assert [world.respond(each).status for each in (SMS, *elsewhere)] == [503, 404, 404, 405]
    assert world.credits == 1000
    assert json.loads(world.ask("fault").body) == {"faults": ["503:next=1:/send-sms"]}
    assert [world.respond(SMS).status for _ in range(3)] == [503, 200, 200]
    assert json.loads(world.ask("fault").body) == {"faults": []}
