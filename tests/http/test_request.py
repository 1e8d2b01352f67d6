"""What a request holds: bytes on the wire, and values without which there is none."""

from __future__ import annotations

import pytest

from msgctl import operations as ops
from msgctl.errors import UsageError
from msgctl.http.request import build, encoded
from support.commands import PHONE


def test_the_numbers_of_a_list_are_encoded_as_a_form_has_them() -> None:
    made = build(ops.SEND_SMS, {"phone": (PHONE, "573001230002"), "sms": "a,b ñ"})
    assert encoded(made.form) == f"phone={PHONE}%2C573001230002&sms=a%2Cb+%C3%B1"


def test_json_is_sent_as_utf_8() -> None:
    made = build(ops.CHATAPP_SEND, {"template": "t", "phone": PHONE, "body": ["María 🎉"]})
    assert made.json == f'{{"phone":"{PHONE}","body":["María 🎉"]}}'.encode()


@pytest.mark.parametrize(("values", "missing"), [({"template": "t", "body": ["x"]}, "PHONE"), ({}, "--template")])
def test_a_required_value_that_is_missing_is_named(values: dict[str, str], missing: str) -> None:
    with pytest.raises(UsageError, match=f"^{missing} is missing"):
        build(ops.CHATAPP_SEND, values)


@pytest.mark.parametrize(
    ("body", "phones"),
    [
        (None, ["1", "2"]),
        (b'{"phone": "1"}', ["1"]),
        (b'{"phone": ["1"]}', [None]),
        (b"[" * 100_000, [None]),
        (b'["1"]', [None]),
    ],
    ids=range(5),
)
def test_the_recipients_of_a_request(body: bytes | None, phones: list[str | None]) -> None:
    if body is None:
        assert build(ops.SEND_SMS, {"phone": ("1", "2", "1"), "sms": "Hola"}).phones == phones
    else:
        assert build(ops.CHATAPP_SEND, {"template": "t"}, body).phones == phones
