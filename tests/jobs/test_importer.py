"""A new job: its recipients are counted, and its file appears when the import is finished."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.ledgers import SPEC
from msgctl.errors import ConfigurationError
from msgctl.jobs.importer import Importer, Tally
from msgctl.jobs.reader import InvalidRow, Row
from msgctl.jobs.states import State
from msgctl.jobs.store import Store
from msgctl.jobs.template import Message
from support.jobs import NOW

JOB = "20261121-3f9a2c"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def test_the_most_expensive_message_is_the_first_of_those_that_cost_most() -> None:
    tally = Tally()
    for line, cost in enumerate((2, 1, 4, 3, 4), start=2):
        tally.add(Row(line, f"57300000000{line}", ()), Message({}, cost, cost))
    assert tally.most_expensive is not None
    assert (tally.most_expensive[0].line, tally.credits, tally.countries) == (4, 14, {"CO": 14})
    assert (tally.messages, tally.segments, tally.first) == (5, 14, Message({}, 2, 2))


def test_rows_that_are_left_out_are_counted_by_state_and_reason() -> None:
    tally = Tally()
    excluded = [InvalidRow(line, "573001234567", "opted out", ("Ana",)) for line in range(2, 23)]
    for row in excluded:
        tally.leave_out(row, State.EXCLUDED)
    tally.leave_out(InvalidRow(23, "", "no phone number"), State.INVALID)
    assert (tally.recipients, tally.counts, tally.reasons) == (
        22, {State.EXCLUDED: 21, State.INVALID: 1}, {"opted out": 21},
    )  # fmt: skip
    assert tally.examples[State.EXCLUDED] == [row._replace(values=()) for row in excluded[:20]]


def test_numbers_without_a_country_are_counted_together() -> None:
    tally = Tally()
    for phone in ("881234567890", "12345", "573001234567"):
        tally.add(Row(2, phone, ()), Message({}, 1, 1))
    assert tally.countries == {"other": 2, "CO": 1}


def test_a_discarded_import_leaves_nothing(store: Store) -> None:
    importer = Importer(store.path(JOB), SPEC, created=NOW)
    assert store.ids() == []
    importer.discard()
    assert list(store.folder.iterdir()) == []


def test_a_job_appears_when_its_import_is_finished(store: Store) -> None:
    importer = Importer(store.path(JOB), SPEC, created=NOW)
    assert (importer.is_finished, store.ids()) == (False, [])
    importer.finish()
    assert (importer.is_finished, [each.name for each in store.folder.iterdir()]) == (True, [f"{JOB}.sqlite3"])


def test_an_import_does_not_overwrite_a_file(store: Store) -> None:
    in_the_way = store.folder / f".{JOB}.sqlite3.new"
    in_the_way.write_text("precious")
    with pytest.raises(ConfigurationError, match="Cannot use"):
        Importer(store.path(JOB), SPEC, created=NOW)
    assert in_the_way.read_text() == "precious"
