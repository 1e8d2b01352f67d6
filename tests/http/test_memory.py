"""The memory that the responses of all threads share."""

from __future__ import annotations

import pytest

from msgctl import operations
from msgctl.config.profiles import Credential
from msgctl.http import memory
from msgctl.http.client import Client
from msgctl.http.request import build
from support.service import Service, respond

SEND = build(operations.SEND_SMS, {"phone": ("573001234567",), "sms": "Hola"})


def test_no_more_is_reserved_than_is_available() -> None:
    shared = memory.Memory(10)
    assert [shared.reserve(size, 0) for size in (6, 5, 4, 1)] == [True, False, True, False]
    shared.release(3)
    shared.release(1)
    assert [shared.reserve(size, 0) for size in (5, 4, 1)] == [False, True, False]


def test_a_body_over_64_kib_reserves_memory_until_its_request_ends(
    server: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = memory.Memory(SEND.max_response)
    monkeypatch.setattr(memory, "bodies", shared)
    large, small = b"{}".ljust(64 * 1024 + 1), b"{}".ljust(64 * 1024)
    server.will(*[respond(large)] * 4, respond(small), respond(large))
    client = Client(server.base_url, Credential(1, "a-long-key"))
    for _ in range(3):
        assert client.fetch(SEND).content == large
    sibling = client.sibling()
    assert sibling.fetch(SEND).content == large
    sibling.close()
    assert shared.reserve(SEND.max_response, 0)
    assert not shared.reserve(1, 0)
    assert client.fetch(SEND).content == small
    response = client.fetch(SEND, timeout=0.5)
    assert response.extensions["fault"] == "no whole response came within 0.5 seconds"
    assert response.extensions["lost"]
    client.close()
