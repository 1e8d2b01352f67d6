"""Faults: the bytes of each response, and whether the operation is carried out."""

from __future__ import annotations

import json
import time
from functools import partial

import pytest

from msgctl.config.profiles import Credential
from msgctl.errors import OutcomeUnknownError, UsageError
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.http.transport import Transport
from msgctl.operations import BALANCE as READ_BALANCE
from msgctl.operations import SEND_SMS
from msgctl.sandbox.emulator import BASE_URL, Emulator
from msgctl.sandbox.faults import Fault, parse
from msgctl.sandbox.protocol import SandboxRequest
from msgctl.sandbox.service import SandboxBackend, respond
from support.sandbox import Sandbox

from .clocked_emulator import FORM, PHONE, Controls, encoded
from .served import Served, as_http

SMS = SandboxRequest("POST", "/api/v1/send-sms", "", FORM, encoded({"phone": PHONE, "sms": "Hola"}).encode())
BALANCE = SandboxRequest("GET", "/api/v1/balance", encoded({}))


def left(served: Served) -> int:
    return int(json.loads(served.send(BALANCE).body)["status"])


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("520", Fault("520")),
        ("503:0.25", Fault("503", 0.25)),
        ("drop:0.1:/send-sms", Fault("drop", 0.1, "/send-sms")),
        ("html:/api/v1/balance", Fault("html", 1.0, "/balance")),
        ("delay=1.5", Fault("delay", 1.0, None, 1.5)),
        ("delay=.5:1:/balance", Fault("delay", 1.0, "/balance", 0.5)),
        ("garbage:0", Fault("garbage", 0.0)),
        ("503:next=3:/send-sms", Fault("503", 1.0, "/send-sms", 0.0, 3)),
    ],
)
def test_a_fault_has_a_kind_a_probability_or_a_count_and_a_path(spec: str, fault: Fault) -> None:
    assert parse(spec) == fault


@pytest.mark.parametrize(
    "spec",
    ["", "404", "DROP", "delay", "delay=", "delay=x", "delay=99999", "drop=1", "520:2", "520:-1", "520:x", "520:nan",
     "520:", "520:0.5:balance", "520:0.5:", "delay=1e3", "delay=inf", "520:next=0", "520:next=", "520:next=x"],
)  # fmt: skip
def test_another_spec_is_a_usage_error_that_shows_the_syntax(spec: str) -> None:
    with pytest.raises(UsageError, match="Cannot read the fault") as caught:
        parse(spec)
    assert "delay=SECONDS" in str(caught.value.hint)


@pytest.mark.parametrize(("spec", "status"), [("520", 520), ("503", 503), ("429", 429)])
def test_a_refusal_has_the_record_and_nothing_is_done(
    emulator: Emulator, served: Served, spec: str, status: int
) -> None:
    Controls(emulator).fault(f"{spec}:/send-sms")
    response = served.send(SMS)
    assert response.status == status
    assert set(json.loads(response.body)) == {"error", "msg"}
    assert left(served) == 1000
    assert served.log[0].endswith(f"fault {spec}")


def test_a_breakdown_is_carried_out_and_reported_as_an_error_without_a_reason(
    emulator: Emulator, served: Served
) -> None:
    Controls(emulator).fault("breakdown:/send-sms")
    response = served.send(SMS)
    assert (response.status, json.loads(response.body)["error"]) == (520, 1000)
    assert left(served) == 999


@pytest.mark.parametrize(("spec", "code"), [("520", 1), ("breakdown", 5)])
def test_a_520_is_certain_only_if_it_gives_a_reason(spec: str, code: int, sandbox: Sandbox) -> None:
    sandbox.done("sandbox", "fault", f"{spec}:next=1")
    assert sandbox("sms", "send", PHONE, "-m", "Hola").code == code


@pytest.mark.parametrize(("spec", "credits_left"), [("drop", 999), ("reject", 1000)])
def test_a_dropped_request_is_carried_out_and_a_rejected_one_is_not(
    emulator: Emulator, served: Served, spec: str, credits_left: int
) -> None:
    Controls(emulator).fault(f"{spec}:/send-sms")
    assert served.raw(as_http(SMS)) == b""
    assert left(served) == credits_left


def test_delays_add_up_before_the_response(emulator: Emulator, served: Served) -> None:
    Controls(emulator).fault("delay=0.02", "delay=0.03")
    started = time.monotonic()
    assert served.send(SMS).status == 200
    assert time.monotonic() - started >= 0.05


def test_next_counts_requests_to_its_operation_only(emulator: Emulator) -> None:
    admin = Controls(emulator)
    admin.fault("503:next=2:/send-sms")
    nothing, elsewhere = SandboxRequest("GET", "/api/v1/nothing"), SandboxRequest("POST", "/send-sms")
    statuses = [
        respond(emulator, each).status for each in (BALANCE, SMS, nothing, elsewhere, SMS._replace(method="PUT"))
    ]
    assert statuses == [200, 503, 404, 404, 405]
    assert admin.faults() == ["503:next=1:/send-sms"]
    assert [respond(emulator, SMS).status for _ in range(3)] == [503, 200, 200]
    assert admin.faults() == []


def test_an_unreadable_fault_leaves_the_others_set(emulator: Emulator) -> None:
    admin = Controls(emulator)
    admin.fault("503:next=2")
    with pytest.raises(UsageError):
        admin.fault("520", "nonsense")
    assert admin.faults() == ["503:next=2"]
    assert admin.fault() == []


# --- in place of the network


@pytest.fixture
def client(emulator: Emulator) -> Client:
    backend = SandboxBackend(emulator, sleep=lambda _: None)
    return Client(BASE_URL, Credential(1, "sandbox"), timeout=5, transport=partial(Transport, BASE_URL, backend))


@pytest.mark.parametrize("fault", ["drop", "reject", "garbage", "truncate", "delay=3600"])
def test_a_response_that_is_lost_in_this_process_leaves_the_outcome_unknown(
    fault: str, client: Client, emulator: Emulator
) -> None:
    Controls(emulator).fault(fault)
    with pytest.raises(OutcomeUnknownError):
        client.send(build(SEND_SMS, {"phone": ["573001234567"], "sms": "Hola"}))
    Controls(emulator).fault()
    left = client.send(build(READ_BALANCE, {})).document["status"]
    assert left == ("1000" if fault == "reject" else "999")
