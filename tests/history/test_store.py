"""The file of the history: its entries, how long they are kept, and the errors for a damaged file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from threading import Timer

import pytest

from msgctl import operations as ops
from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError
from msgctl.history import contacts
from msgctl.history.store import MAX_RESPONSE, Contact, History, Send, message_of, reading, recorded
from msgctl.jobs.frequency import Frequency
from msgctl.outcomes.judge import RecipientOutcome
from msgctl.storage import files
from msgctl.storage.records import LOCAL, Records
from msgctl.text import timestamp
from support.jobs import NOW

PHONE = "573001234567"
DAY = "2026-09-21T14:13:20Z"


def send(time: str = DAY, profile: str = "main", base_url: str = "https://service.example/api/v1") -> Send:
    return Send(time, profile, base_url, "sms send", "Hola")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "msgctl" / "history.sqlite3"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    with closing(History(path)) as history:
        yield history


def found(path: Path) -> list[dict[str, object]]:
    """Return the whole history, as another run reads it."""
    with reading() as history:
        assert history is not None
        return history.entries(limit=1_000_000)


def test_the_last_send_is_that_of_the_same_profile_and_service(history: History) -> None:
    history.begin(send(), ["1", "2"])
    history.begin(send(profile="other"), ["3"])
    history.begin(send(base_url="https://other.example/api/v1"), ["4"])
    last = history.last("main", "https://service.example/api/v1")
    assert [each["phone"] for each in last] == ["1", "2"]
    assert history.last("unknown", "https://service.example/api/v1") == []


def test_contacts_expire_with_newer_ones_and_not_with_a_clock_far_ahead(history: History) -> None:
    def begin(day: str, since: str) -> list[str]:
        """Send on a day, and return the days of all contacts."""
        history.begin(send(day), [PHONE], Contact("account", day.encode(), [PHONE], since))
        return sorted(digest.decode() for (digest,) in history.db.execute("SELECT digest FROM contacts"))

    week = [f"2026-09-{day}" for day in range(11, 19)]
    for day in week[:-1]:
        begin(day, "2026-09-03")
    assert begin("2099-01-01", "2098-12-31") == [*week[:-1], "2099-01-01"]
    assert begin(week[-1], "2026-09-10") == [*week, "2099-01-01"]
    assert begin("2026-09-20", "2026-09-12") == [*week[1:], "2026-09-20", "2099-01-01"]


@pytest.fixture
def three(history: History) -> History:
    """Two messages of one profile, the second with a new delivery state, and a blocked number of another."""
    accepted = RecipientOutcome(PHONE, "accepted", "m1", "queued", "2")
    sends = (
        (send("2026-09-20T10:00:00.000Z"), [accepted, RecipientOutcome("34612345678", "refused", None, "no", "1.5")]),
        (send("2026-09-21T10:00:00.000Z")._replace(command="2fa send-sms"), [accepted._replace(id="m2")]),
        (send("2026-09-22T10:00:00.000Z", "other")._replace(command="block add"), [accepted._replace(id="m3")]),
    )
    for each, entries in sends:
        number = history.begin(each, [entry.phone for entry in entries])
        assert [entry["outcome"] for entry in history.entries(len(entries))] == ["unknown"] * len(entries)
        history.finish(number, entries, f"response of {each.command}" if each.profile == "other" else "")
    history.learn([("m2", None, "Entregado"), ("m1", "another", "rejected"), ("m3", PHONE, "sent")])
    return history


def test_entries_are_found_by_time_phone_and_profile(three: History) -> None:
    (newest,) = three.entries(1)
    assert newest == {
        **{"time": "2026-09-22T10:00:00.000Z", "profile": "other", "command": "block add", "job": None},
        **{"phone": PHONE, "outcome": "accepted", "id": "m3", "status": "queued", "state": "sent", "credits": "2"},
        **{"message": "Hola", "response": "response of block add"},
    }
    filters: list[tuple[dict[str, str | None], list[str | None]]] = [
        ({"since": None}, ["m1", None, "m2", "m3"]),
        ({"since": "2026-09-21T10:00:00.000Z"}, ["m2", "m3"]),
        ({"until": "2026-09-21T10:00:00.000Z"}, ["m1", None]),
        ({"since": "2026-09-21", "until": "2026-09-22"}, ["m2"]),
        ({"phone": "34612345678"}, [None]),
        ({"profile": "other"}, ["m3"]),
    ]
    for given, ids in filters:
        assert [each["id"] for each in three.entries(9, **given)] == ids, given
    assert [each["id"] for each in three.last("main", "https://service.example/api/v1")] == ["m2"]
    assert three.last("other", "https://service.example/api/v1") == [], "a blocked number got no message"


def test_messages_and_credits_are_summed_by_profile_country_and_command(three: History) -> None:
    every = dict.fromkeys(("since", "until", "profile"))
    assert three.sums("profile", every) == [("main", 2, 5.5)]
    assert three.sums("country", every) == [("CO", 2, 4), ("ES", 0, 1.5)]
    assert three.sums("command", {**every, "since": "2026-09-21T10:00:00.000Z"}) == [("2fa send-sms", 1, 2)]
    assert three.sums("command", {**every, "until": "2026-09-21T10:00:00.000Z"}) == [("sms send", 1, 3.5)]
    assert three.sums("month", {**every, "profile": "other"}) == []


def test_the_history_is_cleared_by_profile_and_time(three: History) -> None:
    three.begin(send("2026-09-23"), [PHONE], Contact("account", None, [PHONE], ""))
    assert three.clear("unknown", contacts_before="2026-09-23") == 0
    assert three.clear("other", "2026-09-22T10:00:00.000Z") == 0
    assert three.clear("main", "2026-09-21T10:00:00.000Z") == 2
    assert [each["id"] for each in three.entries(9)] == ["m2", "m3", None]
    assert three.clear("other") == 1
    assert three.db.execute("SELECT count(*) FROM contacts").fetchone()[0] == 1
    assert three.clear(contacts_before="2026-09-24") == 2
    assert three.db.execute("SELECT count(*) FROM contacts").fetchone()[0] == 0


def test_a_result_after_a_clear_is_not_stored(path: Path, history: History) -> None:
    late = history.begin(send(), [PHONE])
    history.clear()
    history.begin(send(), ["1"])
    history.finish(late, [RecipientOutcome(PHONE, "accepted")], "")
    assert [each["phone"] for each in found(path)] == ["1"]


def test_cleared_entries_leave_nothing_on_disk(path: Path) -> None:
    with closing(History(path)) as history:
        history.begin(Send(DAY, "main", "https://a.example", "sms send", "a secret of theirs " * 1000), [PHONE])
        assert b"a secret of theirs" in path.read_bytes() + path.with_name("history.sqlite3-wal").read_bytes()
        history.clear()
    left = b"".join(each.read_bytes() for each in path.parent.iterdir())
    assert b"a secret of theirs" not in left
    assert PHONE.encode() not in left


# --- damaged files


def no_sqlite(path: Path) -> None:
    path.write_bytes(b"these are my notes\n" * 100)


def without_tables(path: Path) -> None:
    with closing(History(path)):
        pass
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE entries")


BROKEN = (no_sqlite, without_tables)

Maker = Callable[[Path], None]


def name(value: object) -> str:
    return getattr(value, "__name__", "")


def make(maker: Maker, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    maker(path)
    if path.is_file():
        path.chmod(0o600)


@pytest.mark.parametrize("maker", BROKEN, ids=name)
def test_a_damaged_file_is_refused_and_left_unchanged(maker: Maker, path: Path) -> None:
    make(maker, path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ConfigurationError) as caught:
        found(path)
    with pytest.raises(ConfigurationError), closing(History(path)) as history:
        history.begin(send(), [PHONE])
    assert files.shown(path) in caught.value.message
    assert caught.value.hint
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_history_that_another_process_writes_is_waited_for(path: Path, history: History) -> None:
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = Timer(0.1, other.execute, ["COMMIT"])
        timer.start()
        history.begin(send(), [PHONE])
        timer.join()
    assert [each["phone"] for each in found(path)] == [PHONE]


def test_reading_creates_no_file(path: Path) -> None:
    with reading() as history:
        assert history is None
    assert not path.parent.exists()


# --- the record of one request


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
    """Each of three requests is for two people. One is refused, then the response is lost, then both are refused."""
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


def test_the_message_of_a_request_is_its_content() -> None:
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
