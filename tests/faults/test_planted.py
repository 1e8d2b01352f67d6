"""Faults planted where the simulation does not go: a story or a test detects each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import pytest

from msgctl.cli.runs import bulk, due
from msgctl.store import jobs
from msgctl.store.batches import INTENT_LIFE, OwnedJob
from msgctl.store.results import Intent
from msgctl.store.store import boot_time
from store import test_clock, test_sending
from stories import test_stories
from support.postgres import Cluster

pytestmark = pytest.mark.slow  # they test other tests, which are in every run

FAULTS = {
    "a job that is found more than 12 hours": (due, "MAX_LATE", float("inf")),
    "a job that is found 12 hours after": (due, "MAX_LATE", 12 * 3600 - 1),
    "the same command after its time": (jobs, "named", lambda *_: None),
    "a time in the past": (bulk.Bulk, "_check_time", lambda _: None),
    "a canary that was killed in its first run": (bulk, "canary_left", lambda *_: None),
}
"""The beginning of a story's title, the replaced part of msgctl, and its replacement."""


@pytest.mark.parametrize("title", FAULTS)
def test_a_story_detects_a_fault(title: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path: test_stories.stories(path.read_text()) for path in test_stories.HERE.rglob("*.txt")}
    matches = [(path, story) for path in files for story in files[path] if story.title.lower().startswith(title)]
    ((path, story),) = matches
    with mock.patch.object(*FAULTS[title]), pytest.raises(AssertionError):
        test_stories.test_story(path, story, "documented", home, monkeypatch)


def _renewed_without_reading(_: OwnedJob, intents: Sequence[Intent], __: str) -> list[Intent]:
    return [intent._replace(expires=boot_time() + INTENT_LIFE) for intent in intents]


def test_a_test_detects_that_nothing_is_read_again_after_a_slow_commit(
    tmp_path: Path, passes: Callable[[float], None]
) -> None:
    with mock.patch.object(OwnedJob, "renewed", _renewed_without_reading), pytest.raises(AssertionError):
        test_sending.test_opt_outs_are_read_again_after_a_slow_commit(str(tmp_path / "store.sqlite3"), tmp_path, passes)


def test_a_test_detects_the_clock_of_a_machine(postgres: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with mock.patch("msgctl.store.postgresql.PostgreSQL.time", return_value=None), pytest.raises(AssertionError):
        test_clock.test_a_step_of_this_machines_clock_does_not_move_the_clock_of_a_store_on_a_server(
            postgres, monkeypatch
        )
