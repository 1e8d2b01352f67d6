"""A file with more rows than a statement of SQL has parameters."""

from __future__ import annotations

from pathlib import Path

from support.jobs import Jobs, accepting, counts, numbers, of_phones, sends, table
from support.service import Service


def test_more_than_a_thousand_rows_are_imported_and_excluded(home: Path, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    excluded = of_phones(home, numbers(1_001))
    file = table(home, "phone", *numbers(2_002), name="everyone.csv")
    job = jobs.send(file, "--exclude", excluded, "--batch-size", "1000")
    assert counts(jobs.shown(job)) == {"accepted": 1_001, "excluded": 1_001}
    assert [phone for each in sends(service) for phone in each.phones] == numbers(2_002)[1_001:]
    assert jobs.report(job, "--only", "delivered") == []
