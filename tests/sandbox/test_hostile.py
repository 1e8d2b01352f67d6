"""Any request gets a response of the interface: a record, or an error record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgctl.operations import OPERATIONS
from msgctl.sandbox.protocol import BASE_PATH, SandboxRequest

from .world import World

PATHS = [BASE_PATH + operation.path for operation in OPERATIONS]
CONTENT_TYPES = ["application/x-www-form-urlencoded", "application/json", "", "text/html; charset=\udcff"]

anything = st.text(st.characters(), max_size=30)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    path: Path = tmp_path_factory.mktemp("hostile") / "state.db"
    world = World(path)
    yield world
    world.emulator.close()


def hold(world: World, call: SandboxRequest) -> None:
    reply = world.emulator.respond(call)

    assert reply.status in {200, 404, 405, 520}
    assert reply.body.endswith(b"}\n")
    document = json.loads(reply.body)
    if reply.status != 200:
        assert list(document) == ["error", "msg"]
        assert all(isinstance(value, str) and value for value in document.values())


@settings(deadline=None)
@given(
    method=st.sampled_from(["GET", "POST"]) | anything,
    path=st.sampled_from(PATHS) | anything,
    query=anything,
    content_type=st.sampled_from(CONTENT_TYPES) | anything,
    body=st.binary(max_size=200),
)
def test_any_bytes_get_a_response(
    shared: World, method: str, path: str, query: str, content_type: str, body: bytes
) -> None:
    hold(shared, SandboxRequest(method, path, query, {"content-type": content_type}, body))
