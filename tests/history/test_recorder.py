"""What the history stores of a request."""

from __future__ import annotations

import pytest

from msgctl import operations as ops
from msgctl.history.store import MAX_RESPONSE, Send, message_of, reading, recorded
from msgctl.recipients import RecipientOutcome
from msgctl.storage.records import LOCAL


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("command", "stored"), [("sms send", "480615"), ("2fa send-sms", "******")])
def test_codes_are_masked_in_a_stored_response(command: str, stored: str) -> None:
    send = Send("2026-11-21T09:00:00Z", "main", "https://a.example", command, "")
    with recorded(LOCAL, send, ["1"], warn=lambda error: pytest.fail(str(error)), is_kept=True) as result:
        result.entries = [RecipientOutcome("1", "unknown")]
        result.response = f'{{"sms": "480615 is your Shop code.", "more": "{"x" * 10_000}"}}'
    with reading() as history:
        assert history is not None
        (entry,) = history.entries(1)
    assert entry["response"].startswith(f'{{"sms": "{stored} is your Shop code.", "more": "xxx')
    assert len(entry["response"]) == MAX_RESPONSE


def test_the_body_of_a_file_is_its_message() -> None:
    values = {"template": "hello"}
    assert message_of(ops.CHATAPP_SEND, values, b'{"phone": "1"}') == 'hello: {"phone": "1"}'
    assert message_of(ops.CHATAPP_SEND, values, None) == "hello"


def test_the_name_of_a_blocked_contact_is_its_message() -> None:
    assert message_of(ops.BLOCK_PHONE, {"phone": "1", "name": "Ana"}, None) == "Ana"
    assert message_of(ops.BLOCK_PHONE, {"phone": "1", "name": None}, None) == ""
