"""The opt-out list as a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.history import optouts
from msgctl.storage.records import LOCAL, Records

ANA, LUIS = "573001234567", "573007654321"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "msgctl" / "optouts.sqlite3"


def test_a_list_that_is_not_there_is_empty_and_is_not_made_by_reading(path: Path) -> None:
    assert list(optouts.every(LOCAL)) == []
    assert optouts.among(LOCAL, [ANA], "sms") == []
    assert optouts.remove(LOCAL, [ANA]) == []
    assert not path.parent.exists()


def test_numbers_are_added_all_or_none(records: Records) -> None:
    def failing() -> object:
        yield from ((f"57300{number:07}", "all") for number in range(25_000))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        optouts.add(records, failing(), 1.0)  # type: ignore[arg-type]
    assert list(optouts.every(records)) == []
    assert optouts.add(records, ((f"57300{number:07}", "all") for number in range(25_000)), 1.0) == (25_000, 25_000)


def test_the_list_can_be_read_while_a_file_is_imported(open_records: Callable[[], Records]) -> None:
    """Jobs in progress read it for each request."""
    records, others = open_records(), open_records()
    optouts.add(records, [(LUIS, "all")], 1.0)
    count = 20_000 if records.is_shared else 200_000  # more than SQLite keeps in memory

    def numbers() -> Iterator[tuple[str, str]]:
        for number in range(count):
            yield f"57300{number:07}", "all"
        assert optouts.among(others, [LUIS, "573000000001"], "sms") == [LUIS]
        optouts.add(others, [(ANA, "all")], 2.0)

    assert optouts.add(records, numbers(), 1.0) == (count, count)
    assert sorted(optouts.among(records, [ANA, LUIS], "sms")) == [ANA, LUIS]


def test_the_list_is_in_the_order_of_the_numbers(records: Records) -> None:
    optouts.add(records, [(LUIS, "all")], 1.0)
    optouts.add(records, [(ANA, "all")], 2.0)
    assert list(optouts.every(records)) == [(ANA, "all", 2.0), (LUIS, "all", 1.0)]


def test_an_opt_out_is_for_one_channel_or_for_all(records: Records) -> None:
    assert optouts.add(records, [], 1.0) == (0, 0)
    assert optouts.add(records, [(ANA, "sms"), (ANA, "call"), (LUIS, "all"), (ANA, "sms")], 1.0) == (4, 3)
    found = {channel: optouts.among(records, [ANA, LUIS], channel) for channel in ("sms", "call", "chatapp")}
    assert found == {"sms": [ANA, LUIS], "call": [ANA, LUIS], "chatapp": [LUIS]}
    assert [sorted(optouts.of(records, channel)) for channel in found] == [*found.values()]
    assert optouts.add(records, [(LUIS, "sms"), (ANA, "all")], 2.0) == (2, 1), "Luis has opted out of SMS already"
    assert optouts.among(records, [ANA, LUIS], "chatapp") == [ANA, LUIS]


def test_after_a_removal_for_one_channel_the_others_still_count(records: Records) -> None:
    optouts.add(records, [(ANA, "call"), (LUIS, "call")], 1.0)
    optouts.add(records, [(LUIS, "all")], 2.0)
    assert optouts.remove(records, [ANA, LUIS], "sms") == [LUIS]
    assert list(optouts.every(records)) == [(ANA, "call", 1.0), (LUIS, "call", 1.0), (LUIS, "chatapp", 2.0)]
    assert optouts.remove(records, [ANA, LUIS], "call") == [ANA, LUIS]
    assert optouts.remove(records, [ANA, LUIS]) == [LUIS]
    assert list(optouts.every(records)) == []


def test_a_job_reads_the_current_list(open_records: Callable[[], Records], path: Path) -> None:
    """The list may not exist when the job starts, and another file may replace it."""
    records, others = open_records(), open_records()
    with closing(optouts.Watch(records, "sms")) as watch:
        assert (watch.among([]), watch.among([ANA])) == ([], [])
        optouts.add(others, [(ANA, "sms"), (LUIS, "call")], 1.0)
        assert watch.among([ANA, LUIS]) == watch.among([ANA]) == [ANA]
        if not records.is_shared:
            path.rename(path.with_name("backup"))
        optouts.add(others, [(LUIS, "all")], 2.0)
        assert sorted(watch.among([ANA, LUIS])) == ([ANA, LUIS] if records.is_shared else [LUIS])
        optouts.remove(others, [ANA, LUIS])
        assert watch.among([ANA, LUIS]) == []


def test_a_list_of_the_first_version_is_for_all_channels(path: Path) -> None:
    optouts.add(LOCAL, [], 0.0)
    with closing(sqlite3.connect(path)) as db:
        db.executescript(
            f"""DROP TABLE optouts; PRAGMA user_version = 1;
            CREATE TABLE optouts (phone TEXT PRIMARY KEY, added REAL NOT NULL) WITHOUT ROWID;
            INSERT INTO optouts VALUES ('{LUIS}', 2.0), ('{ANA}', 1.0);"""
        )
        before = db.execute("SELECT phone FROM optouts")  # a job that an earlier version runs
        assert before.fetchall() == [(ANA,), (LUIS,)]
        assert optouts.among(LOCAL, [ANA], "call") == [ANA]
        assert list(optouts.every(LOCAL)) == [(ANA, "all", 1.0), (LUIS, "all", 2.0)]
        assert db.execute("SELECT phone FROM optouts").fetchall() == [(ANA,), (LUIS,)]
        assert db.execute("PRAGMA user_version").fetchone() == (2,)


def test_a_damaged_list_stops_the_command(path: Path) -> None:
    """It must not count as an empty one: people who opted out would get messages."""
    optouts.add(LOCAL, [(ANA, "all")], 1.0)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"no database" * 500)
    with pytest.raises(ConfigurationError, match="opt-out list"):
        optouts.among(LOCAL, [ANA], "sms")
