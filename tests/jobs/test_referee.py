"""One campaign, started three times from three spellings of one file and killed on the way: one message each."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from jobs.bulk import TEXTS, Bulk, NewBulk, assert_true
from support.counting_server import CountingServer

NUMBER, BATCH = 300, 10
DIES = "import signal; signal.setitimer(signal.ITIMER_REAL, {seconds})"
"""Kills the process after some seconds, wherever it is then."""


@pytest.mark.slow
def test_three_starts_of_one_campaign_send_one_message_to_each_person(
    counter: CountingServer, new_bulk: NewBulk, tmp_path: Path
) -> None:
    bulk = new_bulk(NUMBER, "--batch-size", str(BATCH), "--country-code", "CO")
    others = _other_spellings(bulk.phones, tmp_path)
    running = bulk.begin()
    for other in others:
        counter.wait_for(len(counter.dispatches) + 5)
        running.kill()
        for seconds in (0.3, 0.6):
            bulk.before_start(DIES.format(seconds=seconds))
            assert bulk.begin(other).end().code in (-14, 2)
        bulk.before_start("")
        _refuses(bulk, other, f"Job {bulk.id} already sends this message")
        running = bulk.resume()
    assert running.end().code in (0, 6)
    for other in others:
        _refuses(bulk, other, f"Job {bulk.id} sent this message")

    assert assert_true(bulk, counter).keys() <= {"accepted", "unknown"}
    got = counter.carried_out()
    assert set(got.values()) == {1}
    assert set(counter.arrived().values()) == {1}
    assert got.keys() <= set(bulk.phones)
    assert got.keys() | {row["phone"] for row in bulk.rows() if row["outcome"] == "unknown"} == set(bulk.phones)


def _other_spellings(phones: list[str], folder: Path) -> list[Path]:
    """Write the same people in another order and other spellings, some of them twice, as CSV and as JSON Lines."""
    mixed = random.Random(1).sample(phones, len(phones))
    international, national = folder / "international.csv", folder / "national.jsonl"
    rows = [f"+{each[:2]} {each[2:5]} {each[5:8]} {each[8:]};{TEXTS[0]}\n" for each in [*mixed, *mixed[:50]]]
    international.write_text("".join(["phone;text\n", *rows]), encoding="utf-16")
    spellings = [f"({each[2:5]}) {each[5:]}" for each in mixed] + [f"00{each}" for each in mixed[:50]]
    lines = [json.dumps({"phone": each, "text": TEXTS[0]}) + "\n" for each in spellings]
    national.write_text("".join(lines), encoding="utf-8")
    return [international, national]


def _refuses(bulk: Bulk, file: Path, why: str) -> None:
    """Start the campaign from a file, which leaves no job."""
    done = bulk.begin(file).end()
    assert (done.code, why in done.err) == (2, True), done.err
