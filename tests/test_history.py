"""The history's file: what it keeps, for how long, with whom it is shared, and what it refuses to be."""

from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.history import Dispatch, Entry, History, Outcome, clear, notes, reading
from msgctl.history import file as history_file

PHONE = "573001234567"
DAY = "2026-09-21T14:13:20Z"


def dispatch(time: str = DAY, profile: str = "main", base_url: str = "https://service.example/api/v1") -> Dispatch:
    return Dispatch(time, profile, base_url, "sms send", "Hola")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "msgctl" / "history.sqlite3"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    with closing(History(path)) as history:
        yield history


def found(path: Path) -> list[dict[str, object]]:
    """Everything that is noted, as another run reads it."""
    with reading(path) as history:
        assert history is not None
        return history.entries(limit=1_000_000)


def test_what_was_intended_and_never_answered_is_unknown(path: Path, history: History) -> None:
    history.intend(dispatch(), [PHONE, None])
    assert [(each["phone"], each["outcome"], each["id"]) for each in found(path)] == [
        (PHONE, "unknown", None),
        (None, "unknown", None),
    ]


def test_what_came_of_it_takes_the_place_of_the_intent(path: Path, history: History) -> None:
    number = history.intend(dispatch(), [PHONE])
    history.settle(number, [Entry(PHONE, Outcome.ACCEPTED, "m1", "queued", "12.50")])
    (entry,) = found(path)
    assert entry == {
        "time": DAY,
        "profile": "main",
        "command": "sms send",
        "phone": PHONE,
        "outcome": "accepted",
        "id": "m1",
        "status": "queued",
        "credits": "12.50",
        "message": "Hola",
    }


def test_the_file_and_its_folder_are_the_users_alone(path: Path, history: History) -> None:
    history.intend(dispatch(), [PHONE])
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes.keys() >= {"history.sqlite3", "history.sqlite3-wal"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_newest_dispatches_are_kept(path: Path, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MOST_DISPATCHES", 10)
    monkeypatch.setattr(notes, "ROUND", 5)
    for number in range(1, 51):
        settled = history.intend(dispatch(), [str(number), "other"])
        history.settle(settled, [Entry(str(number)), Entry("other")])
    assert [each["phone"] for each in found(path) if each["phone"] != "other"] == [str(n) for n in range(41, 51)]
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM entries").fetchone() == (20,)


def test_ten_thousand_dispatches_are_kept() -> None:
    assert notes.MOST_DISPATCHES == 10_000
    assert notes.ROUND <= 1000


def test_the_last_dispatch_is_that_of_the_same_profile_and_service(history: History) -> None:
    history.intend(dispatch(), ["1", "2"])
    history.intend(dispatch(profile="other"), ["3"])
    history.intend(dispatch(base_url="https://other.example/api/v1"), ["4"])
    last = history.last("main", "https://service.example/api/v1")
    assert [each["phone"] for each in last] == ["1", "2"]
    assert history.last("nobody", "https://service.example/api/v1") == []


def test_an_answer_that_comes_after_a_clearance_is_noted_nowhere(path: Path, history: History) -> None:
    late = history.intend(dispatch(), [PHONE])
    clear(path)
    history.intend(dispatch(), ["1"])
    history.settle(late, [Entry(PHONE, Outcome.ACCEPTED)])
    assert [each["phone"] for each in found(path)] == ["1"]


def test_nothing_of_what_was_cleared_stays_on_the_disk(path: Path) -> None:
    with closing(History(path)) as history:
        history.intend(Dispatch(DAY, "main", "https://a.example", "sms send", "a secret of theirs " * 1000), [PHONE])
    assert b"a secret of theirs" in path.read_bytes()
    clear(path)
    left = b"".join(each.read_bytes() for each in path.parent.iterdir())
    assert b"a secret of theirs" not in left
    assert PHONE.encode() not in left


def test_half_of_a_surrogate_pair_is_no_reason_to_fail(path: Path, history: History) -> None:
    number = history.intend(dispatch(), ["\udc80"])
    history.settle(number, [Entry("\ud800", Outcome.ACCEPTED, "\ud800", "\udfff")])
    assert found(path)[0]["id"] == "\\ud800"


def wait(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_file, "HISTORY", replace(history_file.HISTORY, most_wait=seconds))


def test_many_that_begin_at_once_make_one_history(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait(60, monkeypatch)  # however slow the machine is
    together = threading.Barrier(8)
    faults: list[Exception] = []

    def send(phone: str) -> None:
        together.wait()
        try:
            with closing(History(path)) as history:
                history.settle(history.intend(dispatch(), [phone]), [Entry(phone, Outcome.ACCEPTED)])
        except Exception as error:  # noqa: BLE001
            faults.append(error)

    threads = [threading.Thread(target=send, args=[str(number)]) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert faults == []
    assert {(each["phone"], each["outcome"]) for each in found(path)} == {(str(n), "accepted") for n in range(8)}


def test_whoever_reads_keeps_nobody_from_sending(path: Path, history: History) -> None:
    history.intend(dispatch(), [PHONE])
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("SELECT * FROM entries").fetchall()
        history.intend(dispatch(), [PHONE])
    assert len(found(path)) == 2


def test_a_writer_that_does_not_end_is_waited_for_and_then_named(
    path: Path, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait(0.01, monkeypatch)
    with closing(sqlite3.connect(path, isolation_level=None)) as db, closing(History(path)) as other:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigurationError, match="locked") as caught:
            other.intend(dispatch(), [PHONE])
    assert "Another program" in (caught.value.hint or "")


# --- files that are no history


def no_sqlite(path: Path) -> None:
    path.write_bytes(b"these are my notes\n" * 100)


def another_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE mine (id)")
        db.commit()


def a_newer_history(path: Path) -> None:
    with closing(History(path)):
        pass
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")


def without_tables(path: Path) -> None:
    with closing(History(path)):
        pass
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE entries")


def cut_off(path: Path) -> None:
    with closing(History(path)) as history:
        for _ in range(200):
            history.intend(dispatch(), [PHONE])
    path.write_bytes(path.read_bytes()[:5000])


def open_to_others(path: Path) -> None:
    with closing(History(path)):
        pass
    path.chmod(0o640)


def a_link(path: Path) -> None:
    path.symlink_to(path.with_name("elsewhere"))


def a_folder(path: Path) -> None:
    path.mkdir()


BROKEN = (no_sqlite, a_newer_history, without_tables, cut_off)
UNSAFE = (another_database, open_to_others, a_link, a_folder)

Maker = Callable[[Path], None]


def name(value: object) -> str:
    return getattr(value, "__name__", "")


def make(maker: Maker, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    maker(path)
    if maker is not open_to_others and path.is_file():
        path.chmod(0o600)


@pytest.mark.parametrize("maker", [*BROKEN, *UNSAFE], ids=name)
def test_what_is_no_history_is_refused_and_left_alone(maker: Maker, path: Path) -> None:
    make(maker, path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(ConfigurationError) as caught:
        found(path)
    with pytest.raises(ConfigurationError), closing(History(path)) as history:
        history.intend(dispatch(), [PHONE])
    assert str(path) in caught.value.message
    assert caught.value.hint
    assert (path.read_bytes() if path.is_file() else b"") == before


@pytest.mark.parametrize("maker", BROKEN, ids=name)
def test_clearing_makes_a_broken_history_new(maker: Maker, path: Path) -> None:
    make(maker, path)
    clear(path)
    with closing(History(path)) as history:
        history.intend(dispatch(), [PHONE])
    assert len(found(path)) == 1


@pytest.mark.parametrize("maker", UNSAFE, ids=name)
def test_clearing_does_not_take_away_what_may_be_somebody_elses(maker: Maker, path: Path) -> None:
    make(maker, path)
    with pytest.raises(ConfigurationError):
        clear(path)
    assert path.exists() or path.is_symlink()


def test_clearing_for_one_profile_does_not_take_away_what_is_broken(path: Path) -> None:
    make(no_sqlite, path)
    with pytest.raises(ConfigurationError):
        clear(path, "main")
    assert path.read_bytes().startswith(b"these are my notes")


def test_looking_makes_no_file(path: Path) -> None:
    with reading(path) as history:
        assert history is None
    clear(path)
    assert not path.parent.exists()


def test_values_of_any_kind_in_the_file_are_harmless(path: Path, history: History) -> None:
    history.intend(dispatch(), [PHONE])
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE entries SET phone = x'ff00', id = 1e999, status = 7, credits = 'NaN'")
        db.commit()
    (entry,) = found(path)
    assert [entry[each] for each in ("phone", "id", "credits")] == [None, "Inf", None]
