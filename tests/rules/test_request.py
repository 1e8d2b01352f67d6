"""The bytes of a request, its size limits, and its required values."""

from __future__ import annotations

import pytest

from msgctl import operations as ops
from msgctl.errors import UsageError
from msgctl.http.request import build
from support.commands import PHONE


def test_the_limit_of_a_response_depends_on_the_recipients_and_the_message() -> None:
    kib = 1024
    phones = [str(573_000_000_000 + number) for number in range(100)]
    template = {"template": "t", "phone": PHONE, "body": ["Hola"]}
    assert build(ops.BALANCE, {}).max_response == 256 * kib
    assert build(ops.SEND_SMS, {"phone": phones, "sms": "😀ñx"}).max_response == 256 * kib + 100 * (4 * kib + 12 * 3)
    assert build(ops.SEND_CALL, {"phone": PHONE, "message": "Hola"}).max_response == 256 * kib + 4 * kib + 12 * 4
    assert build(ops.CHATAPP_SEND, template).max_response > 256 * kib + 4 * kib + 12 * 4
    assert build(ops.URL_STATISTIC, {"name-url": "n", "since": "1", "until": "2"}).max_response == 4 * kib * kib


def test_messages_that_differ_in_anything_that_a_person_gets_have_different_digests() -> None:
    messages: list[tuple[ops.Operation, dict[str, str], str]] = [
        (ops.SEND_CALL, {"audio-code": "a1"}, "{}"),
        (ops.SEND_CALL, {"audio-code": "a2"}, "{}"),
        (ops.CHATAPP_SEND, {"template": "a1"}, "{}"),
        (ops.CHATAPP_SEND, {"template": "a2"}, "{}"),
        (ops.CHATAPP_SEND, {"template": "a2"}, '{"body":["Ana"]}'),
        (ops.CHATAPP_ORDER, {"template": "a2"}, "{}"),
    ]
    digests = {ops.message_digest(operation, values)(content) for operation, values, content in messages}
    assert len(digests) == len(messages)


def test_the_limit_of_a_response_to_many_recipients_is_5_mib() -> None:
    phones = [str(573_000_000_000 + number) for number in range(300)]
    assert build(ops.SEND_SMS, {"phone": phones, "sms": "x" * 30_000}).max_response == 5 * 1024 * 1024


def test_a_missing_or_empty_value_is_never_sent() -> None:
    for operation, values, problem in (
        (ops.SEND_SMS, {"phone": PHONE, "sms": ""}, "--message is empty"),
        (ops.BLOCK_PHONE, {"phone": PHONE, "name": ""}, "--name is empty"),
        (ops.CHATAPP_SEND, {"template": "t", "body": ["x"]}, "PHONE is missing"),
    ):
        with pytest.raises(UsageError, match=f"^{problem}"):
            build(operation, values)


@pytest.mark.parametrize(
    ("body", "phones"),
    [
        (None, ["1", "2"]),
        (b'{"phone": "1"}', ["1"]),
        (b'{"phone": ["1", 2, "1, 3", null]}', ["1", "2", "3"]),
        (b'{"phone": "1", "phone": ["2"]}', ["1", "2"]),
        (b'{"phone": ["", true]}', [None]),
        (b"[" * 100_000, [None]),
        (b'["1"]', [None]),
    ],
    ids=range(7),
)
def test_the_recipients_of_a_request(body: bytes | None, phones: list[str | None]) -> None:
    if body is None:
        assert build(ops.SEND_SMS, {"phone": ("1", "2", "1"), "sms": "Hola"}).phones == phones
    else:
        assert build(ops.CHATAPP_SEND, {"template": "t"}, body).phones == phones
