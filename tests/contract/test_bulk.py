"""A job may have more rows than an SQL statement can have parameters."""

from __future__ import annotations

from pathlib import Path

from support.jobs import accepting, numbers, of_phones, sends, sent, shown
from support.service import Service
from support.tool import Tool


def test_more_than_a_thousand_rows_are_imported_and_excluded(home: Path, tool: Tool, service: Service) -> None:
    service.always(accepting(service))
    excluded = of_phones(home, numbers(1_001), "excluded.csv")
    job = sent(tool, of_phones(home, numbers(2_002)), "--exclude", excluded, "--batch-size", "1000")
    counts = shown(tool, job)
    assert (counts["accepted"], counts["excluded"], counts["recipients"]) == (1_001, 1_001, 2_002)
    assert [phone for each in sends(service) for phone in each.phones] == numbers(2_002)[1_001:]
    assert tool("job", "report", job, "--only", "delivered", "--json").document == []
