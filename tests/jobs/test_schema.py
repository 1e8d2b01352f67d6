"""Queries about a whole job, and the errors for ledgers that cannot be used."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from jobs.ledgers import SPEC, Service, accept, entry, opened, phone, refuse, report, rows, run, write
from msgctl.errors import ConfigurationError, RefusedError
from msgctl.jobs import schema
from msgctl.jobs.reader import Row
from msgctl.jobs.schema import LEDGER, lock_of, writing
from msgctl.storage.database import BrokenError
from support.jobs import write_ledger

FIX = "Restore it from a backup, or rename it; nothing else records which messages the job sent."
ONE_BY_ONE = replace(SPEC, batch_size=1, concurrency=1)


def error_of(path: Path) -> tuple[str, str | None]:
    """Return the message and the hint of the error for a ledger that is opened and checked."""
    with pytest.raises(ConfigurationError) as caught, closing(opened(path)) as ledger:
        ledger.check()
    return caught.value.message, caught.value.hint


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement, values)


# --- damage


VALID = "a row of the table {} is not valid"
DAMAGE = {
    "DELETE FROM message": VALID.format("recipient"),
    "UPDATE recipient SET cells = '[]' WHERE line = 3": VALID.format("recipient"),
    "UPDATE message SET parameters = '{}'": VALID.format("message"),
    """UPDATE message SET parameters = '{"sms": "a", "other": "b"}'""": VALID.format("message"),
    "UPDATE job SET value = '1e11' WHERE name = 'created'": "not a time: 1e11",
    "UPDATE job SET value = '-1e11' WHERE name = 'created'": "not a time: -1e11",
    "INSERT INTO job VALUES ('commits', 'many')": "commits = many",
}
SETTINGS = {
    "'$.rate', 0": "0 is not a limit",
    "'$.rate', json('1e999')": "inf is not a limit",
    "'$.name', 1": "name is int",
    "'$.columns[0]', 1": "a column or time zone is not text",
    "'$.fixed', json('{\"other\": \"x\"}')": "",
    "'$.at_most', '1'": "--at-most must be 1 to 1,000 messages",
    "'$.window', '08:00-19:00', '$.days', 'x'": "--days must list days",
}
DAMAGE |= {f"UPDATE job SET value = json_set(value, {each}) WHERE name = 'spec'": why for each, why in SETTINGS.items()}


def test_the_error_for_a_damaged_ledger_gives_the_reason(tmp_path: Path) -> None:
    for number, (statement, why) in enumerate(DAMAGE.items()):
        path = write_ledger(tmp_path / f"{number}.sqlite3", rows(2), SPEC)
        with closing(opened(path)) as ledger:
            ledger.check()
        change(path, statement)
        message, hint = error_of(path)
        assert message.startswith(f"The ledger ~/{number}.sqlite3 is damaged: {why}"), statement
        assert hint == FIX


def test_a_long_reason_is_shortened(tmp_path: Path) -> None:
    for length, shown in ((200, "x" * 200), (201, "x" * 199 + "…")):
        with pytest.raises(BrokenError) as caught, LEDGER.reading(tmp_path / "job"):
            raise ValueError("x" * length)
        assert caught.value.message == f"The ledger ~/job is damaged: {shown}"


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """A ledger in its own directory. Its process was killed while a request was in flight."""
    path = write(tmp_path / "job.sqlite3", rows(2))
    (tmp_path / "killed").mkdir(mode=0o700)
    with closing(opened(path)) as ledger:
        with ledger.transaction():
            ledger.intend(1)
        for name in ("job.sqlite3", "job.sqlite3-wal", ".job.lock"):
            copy = tmp_path / "killed" / name
            copy.write_bytes((tmp_path / name).read_bytes())
            copy.chmod(0o600)
    return tmp_path / "killed" / "job.sqlite3"


def test_the_error_for_missing_changes_gives_the_reason(killed: Path) -> None:
    lost = "The ledger ~/killed/job.sqlite3 lacks its last changes: "
    log = killed.with_name("job.sqlite3-wal")
    content = log.read_bytes()
    lock_of(killed).write_text("2\n")
    for _ in range(2):
        before = killed.read_bytes(), log.read_bytes()
        assert error_of(killed) == (f"{lost}it is an older copy, or job.sqlite3-wal is damaged or missing", FIX)
        assert (killed.read_bytes(), log.read_bytes()) == before
    lock_of(killed).write_text("not a number")
    for is_empty in (False, True):
        log.unlink()
        if is_empty:
            log.touch(0o600)
        assert error_of(killed) == (
            f"{lost}msgctl was killed, and the write-ahead log job.sqlite3-wal is missing or empty",
            "Restore job.sqlite3-wal beside it. Without that file, msgctl does not know to whom the job has sent.",
        )
        log.touch(0o600)
    log.write_bytes(content)
    opened(killed).close()


def test_a_change_by_another_command_keeps_the_log_of_an_interrupted_job(killed: Path) -> None:
    log = killed.with_name("job.sqlite3-wal")
    with writing(killed) as db:
        db.execute("INSERT INTO job VALUES ('due', '1')")
    assert log.stat().st_size
    opened(killed).close()


def test_a_ledger_that_is_damaged_while_it_is_open_keeps_its_log(killed: Path) -> None:
    with LEDGER.opened(killed) as db:
        db.execute("DROP TABLE job")
    assert killed.with_name("job.sqlite3-wal").stat().st_size


def test_the_number_of_commits_is_not_written_through_a_symbolic_link(killed: Path) -> None:
    target = killed.with_name("precious")
    target.write_text("0")
    lock_of(killed).unlink()
    lock_of(killed).symlink_to(target)
    with closing(opened(killed)) as ledger, ledger.transaction():
        ledger.intend(1)
    assert target.read_text() == "0"


def test_the_log_is_not_copied_while_another_program_reads_the_ledger(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(1))
    with closing(sqlite3.connect(path)) as reader, LEDGER.opened(path) as db:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM job").fetchall()
        db.execute("PRAGMA busy_timeout = 1")
        db.execute("DELETE FROM job WHERE name = 'due'")
        db.execute("UPDATE recipient SET error = 'x'")
        with pytest.raises(ConfigurationError) as caught:
            schema.copy_log(db, path)
        reader.execute("COMMIT")
        schema.copy_log(db, path)
    assert (caught.value.message, caught.value.hint) == (
        "Cannot use the ledger ~/job.sqlite3: another program is reading it",
        "Try again when it is done.",
    )


def test_a_value_that_is_not_text_is_reported_with_its_line(tmp_path: Path) -> None:
    path = write(tmp_path / "job.sqlite3", rows(3))
    with closing(opened(path)) as ledger:
        run(ledger, Service())
        ledger.db.execute("UPDATE result SET status = x'00' WHERE line = 3")
        with pytest.raises(BrokenError, match=r"is damaged: a value in line 3 is not text$"):
            report(ledger)


# --- reports


def test_the_most_frequent_delivery_state_is_first(tmp_path: Path) -> None:
    with closing(opened(write(tmp_path / "job.sqlite3", rows(6)))) as ledger:
        run(ledger, Service())
        with ledger.transaction():
            for line, state in zip(range(2, 7), ("sent", "read", "queued", "sent", "read"), strict=True):
                ledger.note_delivery(line, state)
            ledger.note_delivery(2, None)
        assert [*schema.deliveries(ledger.db).items()] == [("read", 2), ("sent", 2), ("queued", 1)]
        assert (schema.undecided(ledger.db), schema.undecided(ledger.db, ["sent"])) == (4, 2)
        checked = [(each.id, each.phones) for each in schema.to_check(ledger.db, ["sent"])]
        assert checked == [(f"m{phone(7)}", (phone(7),)), (f"m{phone(4)}", (phone(4),))]


def test_the_price_in_a_country_is_the_highest_ratio_of_a_charge_to_its_estimate(tmp_path: Path) -> None:
    people = ("57300", "57300", "57301", "57302", "57303", "57304", "57305")
    texts = ("x" * 400, "Hi", "x" * 200, "x" * 200, "x" * 200, "Hi", "x" * 200)
    charges: Sequence[object] = (9, 2, 9, None, 8, None, 1)
    recipients = [
        Row(line, f"{each}{line:07}", (text,)) for line, (each, text) in enumerate(zip(people, texts, strict=True), 2)
    ]
    costs = {row.phone: charge for row, charge in zip(recipients, charges, strict=True)}

    def charge(phones: Sequence[str]) -> list[dict[str, Any]]:
        return [entry(each, costs[each]) for each in phones]

    with closing(opened(write(tmp_path / "job.sqlite3", recipients, ONE_BY_ONE))) as ledger:
        run(ledger, Service(otherwise=charge))
        areas = {"57300": "A", "57301": "B", "57302": "B", "57303": "B", "57304": "C", "57305": "D"}
        assert schema.prices(ledger.db, lambda number: areas[number[:5]]) == {
            "A": (Fraction(3), 0),
            "B": (Fraction(9, 2), 2),
            "C": (None, 1),
            "D": (Fraction(1, 2), 0),
        }


def test_a_job_ends_with_refusals_if_its_newest_requests_were_refused(tmp_path: Path) -> None:
    def refuse_last(_: Sequence[str]) -> list[dict[str, Any]]:
        raise RefusedError("the last one")

    spec = replace(SPEC, batch_size=2, concurrency=1)
    for number, (responders, wanted) in enumerate(
        (
            ((accept, refuse, refuse_last), "the last one"),
            ((refuse, refuse, accept), None),
            ((accept, accept, refuse), None),
        )
    ):
        with closing(opened(write(tmp_path / f"{number}.sqlite3", rows(6), spec))) as ledger:
            run(ledger, Service(*responders))
            assert schema.refusals_at_the_end(ledger.db, 2) == wanted
            assert schema.refusals_at_the_end(ledger.db, 4) is None
