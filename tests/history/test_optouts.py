"""The opt-out list as a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.history import optouts

ANA, LUIS = "573001234567", "573007654321"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "msgctl" / "optouts.sqlite3"


def test_a_list_that_is_not_there_is_empty_and_is_not_made_by_reading(path: Path) -> None:
    assert list(optouts.every()) == []
    assert optouts.among([ANA]) == []
    assert optouts.remove([ANA]) == []
    assert not path.parent.exists()


def test_numbers_are_added_all_or_none() -> None:
    def failing() -> object:
        yield from (f"57300{number:07}" for number in range(25_000))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        optouts.add(failing(), 1.0)  # type: ignore[arg-type]
    assert list(optouts.every()) == []
    assert optouts.add((f"57300{number:07}" for number in range(25_000)), 1.0) == (25_000, 25_000)


def test_the_list_can_be_read_while_a_file_is_imported() -> None:
    """Jobs in progress read it for each request."""
    optouts.add([LUIS], 1.0)

    def numbers() -> Iterator[str]:
        for number in range(200_000):
            yield f"57300{number:07}"
        assert optouts.among([LUIS, "573000000001"]) == [LUIS]
        optouts.add([ANA], 2.0)

    assert optouts.add(numbers(), 1.0) == (200_000, 200_000)
    assert optouts.among([ANA, LUIS]) == [ANA, LUIS]


def test_the_list_is_in_the_order_of_the_numbers() -> None:
    optouts.add([LUIS], 1.0)
    optouts.add([ANA], 2.0)
    assert list(optouts.every()) == [(ANA, 2.0), (LUIS, 1.0)]


def test_a_damaged_list_stops_the_command(path: Path) -> None:
    """It must not count as an empty one: people who opted out would get messages."""
    optouts.add([ANA], 1.0)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"no database" * 500)
    with pytest.raises(ConfigurationError, match="opt-out list"):
        optouts.among([ANA])
