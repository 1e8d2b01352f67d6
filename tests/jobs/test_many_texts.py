"""Recipients of very many texts, more than are held in memory at once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from jobs.making import ORDER, Service, accept, opened, phone, refuse, run, write
from msgctl.jobs import intake, reading
from msgctl.jobs.report import Report
from msgctl.jobs.rows import Row

TEXTS = 1100


def test_each_is_told_apart_however_they_are_mixed(tmp_path: Path) -> None:
    assert max(intake._REMEMBERED, reading._MOST_OPEN) < TEXTS
    recipients = [Row(line, phone(line), (f"text {line % TEXTS}",)) for line in range(2, 2 * TEXTS + 2)]
    path = write(tmp_path / "job.sqlite3", recipients, replace(ORDER, concurrency=1))
    service = Service(accept, refuse, otherwise=accept)
    with closing(opened(path)) as ledger:
        assert run(ledger, service) is None
        told = {row["phone"]: (row["outcome"], row["id"]) for row in Report(ledger, running=False)}
        lines = [row["line"] for row in Report(ledger, running=False)]
    assert lines == [row.line for row in recipients]
    assert len(service.asked) == TEXTS, "those of one text share a request"
    refused = set(service.asked[1])
    assert told == {
        row.phone: ("refused", None) if row.phone in refused else ("accepted", f"m{row.phone}") for row in recipients
    }
