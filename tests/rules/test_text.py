"""Text of any origin is safe to show, and sentences with numbers and lists are correct."""

from __future__ import annotations

from unicodedata import normalize

from msgctl.text import (
    MAX_MARKS,
    capitalized,
    clean,
    in_seconds,
    is_unsafe,
    joined,
    normalized,
    plural,
    shorten,
    some_of,
    storable,
    timestamp,
)

SAFE = " ~aé中😀\u00a0\u0301\u200c\u200d"
UNSAFE = "\x00\x1f\x7f\x9f\u202e\u2066\u2028\u2029\ud800\udfff\ufeff\U000e0001"


def test_exactly_the_characters_that_could_act_on_a_terminal_are_escaped() -> None:
    assert [char for char in SAFE if is_unsafe(char)] == []
    assert [char for char in UNSAFE if not is_unsafe(char)] == []
    assert clean(f"a{SAFE}") == f"a{SAFE}"
    assert clean("plain") == "plain"
    assert clean("a\n\x1bé\u202e\U000e0001") == "a\\n\\x1bé\\u202e\\U000e0001"


def test_a_text_is_quoted_up_to_its_limit() -> None:
    assert shorten("x" * 200) == "x" * 200
    assert shorten("x" * 201) == "x" * 199 + "…"
    assert shorten("abc", 3) == "abc"
    assert shorten("ab\n", 3) == "ab…", "the escape counts"


def test_marks_in_a_row_are_limited() -> None:
    most = "e" + "\u0323" * MAX_MARKS
    assert normalized("cafe\u0301") == "café"
    assert normalized("ﬁé", "NFKD") == "fie\u0301"
    assert normalized(most) == normalized(most + "\u0323" * 5) == normalize("NFC", most)
    assert normalized(most * 2) == normalize("NFC", most) * 2, "each letter has its own"


def test_half_of_a_surrogate_pair_is_stored_visibly() -> None:
    assert storable("a\ud800é") == "a\\ud800é"


def test_numbers_lists_and_times_have_their_words() -> None:
    for shown, expected in (
        (in_seconds(1), "1 second"),
        (in_seconds(0.25), "0.25 seconds"),
        (in_seconds(1.99989), "2 seconds"),
        (in_seconds(0.333), "0.33 seconds"),
        (plural(1, "credit"), "1 credit"),
        (plural(0, "credit"), "0 credits"),
        (plural(2000, "credit"), "2,000 credits"),
        (plural(1, "entry", "entries"), "1 entry"),
        (plural(2, "entry", "entries"), "2 entries"),
        (capitalized("the PIN"), "The PIN"),
        (capitalized(""), ""),
        (joined(["A"]), "A"),
        (joined(["A", "B"]), "A and B"),
        (joined(["A", "B", "C"], "or"), "A, B or C"),
        (some_of(["a", "b"], 2), "a, b"),
        (some_of(["a", "b", "c"], 2), "a, b and 1 more"),
        (some_of("abcde"), "a, b, c, d, e"),
        (some_of("abcdefg"), "a, b, c, d, e and 2 more"),
        (timestamp(1_790_000_000.9), "2026-09-21T14:13:20Z"),
    ):
        assert shown == expected
