"""The bulk commands before anything is sent: the question, and a file of many rows.

The story `jobs/before-sending` has errors and the summary.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.jobs import ANA, EVA, LUIS, Jobs, accepting, counts, files, numbers, of_phones, phones, sends, table
from support.service import Service, respond


@pytest.mark.parametrize("answer", ["n\n", "\n", "", "yess\n", "sin\n"])
def test_any_answer_except_yes_cancels(answer: str, everyone: str, jobs: Jobs, service: Service, home: Path) -> None:
    service.will(respond({"status": 100}))
    done = jobs.sms(everyone, terminal=True, stdin=answer)
    assert (done.code, len(service.received), files(home)) == (130, 1, [])


@pytest.mark.parametrize("answer", ["Yes", "s", "SI", "Sí", "si\u0301 "])
def test_yes_sends(answer: str, everyone: str, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    assert jobs.sms(everyone, terminal=True, stdin=f"{answer}\n").code == 0
    assert sorted(phone for each in sends(service) for phone in phones(each)) == sorted([ANA, LUIS, EVA])


def test_more_than_a_thousand_rows_are_imported_and_excluded(home: Path, jobs: Jobs, service: Service) -> None:
    service.always(accepting(service))
    excluded = of_phones(home, numbers(1_001))
    file = table(home, "phone", *numbers(2_002), name="everyone.csv")
    job = jobs.send(file, "--exclude", excluded, "--batch-size", "1000")
    assert counts(jobs.shown(job)) == {"accepted": 1_001, "excluded": 1_001}
    assert [phone for each in sends(service) for phone in phones(each)] == numbers(2_002)[1_001:]
    assert jobs.report(job, "--only", "delivered") == []
