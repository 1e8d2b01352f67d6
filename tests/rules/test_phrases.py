"""Published responses of many services, and what msgctl concludes from them: phrases.jsonl, one line per item.

A person would conclude more from some of them: ``says``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .judging import outcome

ITEMS = [json.loads(line) for line in Path(__file__).with_name("phrases.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: json.dumps(item["body"])[:60])
def test_a_published_response_is_judged(item: dict[str, Any]) -> None:
    assert outcome(item["operation"], item["http_status"], item["body"]) == item["expect"]
    if "says" in item:
        assert item["expect"] in ("unknown", "on_its_way"), "the rule may conclude less, never the opposite"
