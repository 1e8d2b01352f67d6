"""The emulator behind an httpx client."""

from __future__ import annotations

import httpx
import pytest

from msgctl.sandbox.emulator import BASE_URL
from msgctl.sandbox.transport import SandboxTransport

from .world import ACCOUNT, PHONE, World


@pytest.fixture
def client(world: World) -> httpx.Client:
    return httpx.Client(base_url=BASE_URL, transport=SandboxTransport(world.emulator))


def test_a_form_a_query_and_a_json_body_arrive(world: World, client: httpx.Client) -> None:
    with client:
        sms = client.post("send-sms", data={**ACCOUNT, "phone": PHONE, "sms": "¿Qué?\x00 & = + %"})
        state = client.get("messages-state", params={**ACCOUNT, "id": sms.json()["data"][0]["id"]})
        chat = client.post("chatapp/send", params={**ACCOUNT, "template": "t"}, json={"phone": PHONE, "body": ["ñ"]})

    assert state.json()["sms"] == "¿Qué?\x00 & = + %"
    assert chat.json()["name"] == "t"
    assert chat.headers["content-type"] == "application/json"


def test_a_refusal_keeps_its_status(client: httpx.Client) -> None:
    with client:
        refused = client.get("balance", params={"client": "1", "key": "wrong"})
        unknown = client.get("nothing")
        wrong_method = client.put("balance")

    assert (refused.status_code, unknown.status_code, wrong_method.status_code) == (520, 404, 405)
    assert refused.json()["error"] == "UNAUTHORIZED"
    assert wrong_method.headers["allow"] == "GET"


def test_a_closed_client_leaves_no_file_open(world: World, client: httpx.Client) -> None:
    with client:
        client.get("balance", params=ACCOUNT)

    # SQLite removes its log with the last connection.
    assert [entry.name for entry in world.path.parent.iterdir()] == ["state.db"]
