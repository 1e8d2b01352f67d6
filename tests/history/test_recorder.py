"""What the history stores of a request."""

from __future__ import annotations

from contextlib import suppress

import pytest

from msgctl import operations as ops
from msgctl.errors import OutcomeUnknownError, RefusedError
from msgctl.history import contacts
from msgctl.history.store import MAX_RESPONSE, Contact, Send, message_of, reading, recorded
from msgctl.jobs.frequency import Frequency
from msgctl.recipients import RecipientOutcome
from msgctl.storage.records import LOCAL, Records
from msgctl.text import timestamp
from support.jobs import NOW


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


@pytest.mark.usefixtures("home")
def test_people_count_as_reached_unless_they_were_refused(records: Records) -> None:
    """Each request is for two people: one was refused, the response was lost, and both were refused."""
    now = timestamp(NOW, "milliseconds")
    responses: list[tuple[list[RecipientOutcome], Exception | None]] = [
        ([RecipientOutcome("1", "accepted"), RecipientOutcome("2", "refused")], None),
        ([], OutcomeUnknownError("the connection broke", body="half")),
        ([], RefusedError("no")),
    ]
    for place, (entries, error) in enumerate(responses, 1):
        send = Send(now, "main", "https://a.example", "sms send", f"message {place}")
        people = [f"{place}{number}" for number in (1, 2)]
        contact = Contact("an account", b"%d" % place, people, timestamp(0))
        with (
            suppress(RefusedError, OutcomeUnknownError),
            recorded(
                records, send, ["1", "2"], lambda error: pytest.fail(str(error)), is_kept=True, contact=contact
            ) as result,
        ):
            result.entries = entries
            if error:
                raise error
    counted = [(b"1", "11", None), (b"2", "21", None), (b"2", "22", None)]
    assert sorted(contacts.recent(records, "an account", NOW + 1)) == counted
    for limit, reached in (("1/day", ["11", "21", "22"]), ("2/day", [])):
        found = contacts.reached(records, "an account", Frequency.parse(limit), NOW + 1, None)
        assert sorted(found) == reached
    with reading() as history:
        assert history is not None
        outcomes = [(each["outcome"], each["response"]) for each in history.entries(6)[::2]]
    assert outcomes == [("accepted", None), ("unknown", "half"), ("refused", None)]


def test_the_body_of_a_file_is_its_message() -> None:
    values = {"template": "hello"}
    assert message_of(ops.CHATAPP_SEND, values, b'{"phone": "1"}') == 'hello: {"phone": "1"}'
    assert message_of(ops.CHATAPP_SEND, values, None) == "hello"


def test_the_message_is_the_content_of_a_request() -> None:
    for operation, values, message in (
        (ops.SEND_SMS, {"phone": ["1"], "sms": "Hi"}, "Hi"),
        (ops.SEND_CALL, {"message": "Hello", "audio-code": None, "voice": "Mia"}, "Hello"),
        (ops.SEND_CALL, {"message": None, "audio-code": "77"}, "audio 77"),
        (ops.SMS_2FA, {"phone": "1", "app-name": "Shop"}, "verification code for Shop"),
        (ops.CHATAPP_SEND, {"template": "hello", "body": ["Ana", "8:00"]}, "hello: Ana, 8:00"),
        (ops.CHATAPP_ORDER, {"template": "order", "body": ["A-7"], "name": "Ana"}, "order: A-7"),
    ):
        assert message_of(operation, values, None) == message


def test_the_name_of_a_blocked_contact_is_its_message() -> None:
    assert message_of(ops.BLOCK_PHONE, {"phone": "1", "name": "Ana"}, None) == "Ana"
    assert message_of(ops.BLOCK_PHONE, {"phone": "1", "name": None}, None) == ""
