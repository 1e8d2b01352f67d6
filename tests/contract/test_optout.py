"""`msgctl optout`: numbers in any spelling, one list for all profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.files import table, write_config
from support.tool import Tool

pytestmark = pytest.mark.usefixtures("on_both_stores")
"""Every test runs with a store on SQLite, and again on PostgreSQL."""

ANA, LUIS, EVA = "573001234567", "573007654321", "573009999999"


def listed(tool: Tool) -> list[str]:
    return [each["phone"] for each in tool("optout", "list", "--json").document]


def test_the_list_of_a_channel_has_the_opt_outs_that_count_for_it(tool: Tool) -> None:
    for phone, channel in ((ANA, "sms"), (LUIS, "call"), (EVA, "all")):
        assert tool("optout", "add", phone, "--channel", channel).code == 0
    listed = tool("optout", "list", "--channel", "sms", "--json").document
    assert [(each["phone"], each["channel"]) for each in listed] == [(ANA, "sms"), (EVA, "all")]
    assert len(tool("optout", "list", "--channel", "all", "--json").document) == 3


def test_an_empty_list_is_an_empty_result(tool: Tool) -> None:
    assert tool("optout", "list", "--json").document == []
    assert "The opt-out list is empty." in tool("optout", "list", terminal=True).err


def test_national_numbers_are_read_by_the_country_of_the_option_or_the_profile(tool: Tool) -> None:
    assert tool("optout", "add", "300 123 4567", "--country-code", "co").code == 0
    refused = tool("optout", "add", "300 765 4321")
    assert refused.code == 2
    assert "--country-code CO" in refused.err
    write_config(table("main", 'country_code = "CO"') + 'default_profile = "main"\n', mode=0o600)
    assert listed(tool) == [ANA]


@pytest.mark.parametrize("text", ["abc", "12", "57 300"])
def test_the_hint_for_an_invalid_number_mentions_only_options_that_exist(text: str, tool: Tool) -> None:
    for words in (("optout", "add"), ("optout", "remove")):
        done = tool(*words, text)
        assert (done.code, f'"{text}" is not a valid phone number' in done.err) == (2, True)
        assert not [name for name in ("-m TEXT", "--no-number-check") if name in done.err]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_file_has_one_number_per_line(ending: str, tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "numbers.txt"
    file.write_bytes(ending.join(["300 123 4567", "", f"  +{LUIS} ", f"+{LUIS}"]).encode())
    done = tool("optout", "import", str(file), "--country-code", "CO")
    assert (done.code, done.err) == (0, "Added 2 numbers.\n1 was already on the list.\n")
    assert listed(tool) == [ANA, LUIS]
    assert tool("optout", "import", "-", stdin=f"{ANA}\n").code == 0


def channels(tool: Tool) -> list[tuple[str, str]]:
    return [(each["phone"], each["channel"]) for each in tool("optout", "list", "--json").document]


def test_a_file_may_have_a_column_of_channels(tool: Tool, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text(f"phone,Channel\n{ANA}, Call \n{LUIS},\n{LUIS},all\n")
    assert tool("optout", "import", str(file), "--channel", "sms").err == "Added 3 numbers.\n"
    assert channels(tool) == [(ANA, "call"), (LUIS, "all"), (LUIS, "sms")]
    exported = tool("optout", "list", "-o", "csv").out
    assert tool("optout", "remove", ANA, LUIS).code == 0
    assert tool("optout", "import", "-", stdin=exported).code == 0
    assert channels(tool) == [(ANA, "call"), (LUIS, "all"), (LUIS, "sms")]
    file.write_text(f"phone,channel\n{EVA},sms\n{EVA},email\n")
    tool("optout", "import", str(file)).refused(2, "Line 3 of people.csv", 'Unknown channel "email"')
    assert EVA not in listed(tool)


def test_a_short_code_is_used_as_typed_and_json_prints_the_change(tool: Tool) -> None:
    added = tool("optout", "add", "12345", "--no-number-check", "--json").document
    assert added == {"phones": ["12345"], "channel": "all", "added": 1}
    assert listed(tool) == ["12345"]
    removed = tool("optout", "remove", "12345", "--no-number-check", "--json").document
    assert removed == {"phones": ["12345"], "channel": "all", "removed": 1}
