"""Any request gets a response of the interface: a record, or an error record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msgctl.operations import OPERATIONS, Operation, Place
from msgctl.sandbox.protocol import BASE_PATH, SandboxRequest

from .world import FORM, JSON, World, encoded

PATHS = [BASE_PATH + operation.path for operation in OPERATIONS]
NAMES = sorted({field.name for operation in OPERATIONS for field in operation.fields})
CONTENT_TYPES = ["application/x-www-form-urlencoded", "application/json", "", "text/html; charset=\udcff"]

anything = st.text(st.characters(), max_size=30)
unicode_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.one_of(
    unicode_text, st.sampled_from(["573001234567", "Mia", "Mariana", "true", "1", "https://a.example", "2026-11-21"])
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=6,
)


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


@settings(deadline=None)
@given(
    operation=st.sampled_from(OPERATIONS),
    parameters=st.dictionaries(st.sampled_from(NAMES), values, max_size=len(NAMES)),
    document=st.dictionaries(st.sampled_from(["phone", "body"]) | anything, json_values, max_size=4),
)
def test_any_values_with_the_right_credentials_get_a_response(
    shared: World, operation: Operation, parameters: dict[str, str], document: dict[str, object]
) -> None:
    pairs = encoded({**parameters})
    if operation.credentials is Place.FORM:
        call = SandboxRequest(operation.method, BASE_PATH + operation.path, "", FORM, pairs.encode())
    else:
        call = SandboxRequest(operation.method, BASE_PATH + operation.path, pairs, JSON, json.dumps(document).encode())
    hold(shared, call)
