"""Faults: the bytes of each response, and whether the operation is carried out."""

from __future__ import annotations

import json
import re
import time

import pytest

from msgctl.sandbox.server import GARBAGE

from .world import PHONE, Served, World, as_http, posted

SMS = posted("/send-sms", phone=PHONE, sms="Hola")


@pytest.mark.parametrize(
    "spec",
    ["", "404", "delay", "delay=x", "delay=99999", "drop=1", "520:2", "520:nan", "520:0.5:balance", "520:next=0"],
)
def test_an_invalid_fault_is_refused_and_the_earlier_faults_are_kept(world: World, spec: str) -> None:
    world.fault("503:next=2")
    assert world.change("fault", faults=["520", spec]).status == 400
    assert json.loads(world.ask("fault").body) == {"faults": ["503:next=2"]}


def test_a_fault_can_close_the_connection_and_is_in_the_log_of_the_server(world: World, served: Served) -> None:
    world.fault("drop:/api/v1/send-sms")
    assert served.raw(as_http(SMS)) == b""
    assert (world.credits, served.log[0].endswith("fault drop")) == (999, True)


def test_a_fault_can_damage_the_bytes_of_a_response(world: World, served: Served) -> None:
    world.fault("garbage:next=1")
    assert served.raw(as_http(SMS)) == GARBAGE
    whole = served.send(SMS)
    world.fault("truncate:next=1")
    head, _, body = served.raw(as_http(SMS)).partition(b"\r\n\r\n")
    length = int(re.findall(rb"content-length: (\d+)", head, re.IGNORECASE)[0])
    assert (len(body), length, b"Connection: close" in head) == (length // 2, len(whole.body), True)
    assert world.credits == 997, "the operation was carried out"


def test_delays_add_up_before_the_response(world: World, served: Served) -> None:
    world.fault("delay=.02", "delay=0.03")
    started = time.monotonic()
    assert served.send(SMS).status == 200
    assert time.monotonic() - started >= 0.05


@pytest.mark.parametrize(
    ("faults", "status", "error", "credits"),
    [
        (("delay=0", "503"), 503, "UNAVAILABLE", 1000),
        (("delay=0", "breakdown"), 520, 1000, 999),
        (("drop", "breakdown"), 520, 1000, 999),
        (("breakdown", "503"), 503, "UNAVAILABLE", 1000),
        (("truncate", "429"), 429, "TOO_MANY_REQUESTS", 1000),
    ],
)
def test_faults_act_together_in_any_order(
    faults: tuple[str, ...], status: int, error: str | int, credits: int, world: World
) -> None:
    """A fault instead of the operation comes before a fault after it."""
    for order in (faults, faults[::-1]):
        world.fault(*order)
        response = world.respond(SMS)
        assert (response.status, json.loads(response.body)["error"]) == (status, error)
    world.fault()
    assert world.credits == 1000 - 2 * (1000 - credits)


def test_a_fault_for_the_next_requests_counts_only_requests_to_its_operation(world: World) -> None:
    world.fault("503:next=2:/send-sms")
    elsewhere = (SMS._replace(path="/api/v1/nothing"), SMS._replace(path="/send-sms"), SMS._replace(method="PUT"))
    assert [world.respond(each).status for each in (SMS, *elsewhere)] == [503, 404, 404, 405]
    assert world.credits == 1000
    assert json.loads(world.ask("fault").body) == {"faults": ["503:next=1:/send-sms"]}
    assert [world.respond(SMS).status for _ in range(3)] == [503, 200, 200]
    assert json.loads(world.ask("fault").body) == {"faults": []}
