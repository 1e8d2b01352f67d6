"""Published responses of many services, and what msgctl concludes from them: phrases.jsonl, one line per item.

A person would conclude more from some of them: ``says``.
"""

from __future__ import annotations

import json
from pathlib import Path

from .judging import outcome

ITEMS = [json.loads(line) for line in Path(__file__).with_name("phrases.jsonl").read_text().splitlines()]


def test_published_responses_are_judged() -> None:
    wrong = {}
    for item in ITEMS:
        judged = outcome(item["operation"], item["http_status"], item["body"])
        if judged != item["expect"]:
            wrong[json.dumps(item["body"])] = judged
    assert wrong == {}


def test_the_rule_never_contradicts_a_person() -> None:
    assert {item["expect"] for item in ITEMS if "says" in item} <= {"unknown", "on_its_way"}
