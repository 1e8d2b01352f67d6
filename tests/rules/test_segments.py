"""The segments of a text, and its spelling in the GSM-7 alphabet, follow 3GPP TS 23.038 and TS 23.040."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl import segments
from msgctl.errors import UsageError
from msgctl.segments import check_segments, count, to_gsm7
from msgctl.text import normalized

# TS 23.038 section 6.2.1, typed as Unicode code points, sixteen codes a line; the escape, 0x1B, is not a character.
BASIC = """
0040 00A3 0024 00A5 00E8 00E9 00F9 00EC 00F2 00C7 000A 00D8 00F8 000D 00C5 00E5
0394 005F 03A6 0393 039B 03A9 03A0 03A8 03A3 0398 039E      00C6 00E6 00DF 00C9
0020 0021 0022 0023 00A4 0025 0026 0027 0028 0029 002A 002B 002C 002D 002E 002F
0030 0031 0032 0033 0034 0035 0036 0037 0038 0039 003A 003B 003C 003D 003E 003F
00A1 0041 0042 0043 0044 0045 0046 0047 0048 0049 004A 004B 004C 004D 004E 004F
0050 0051 0052 0053 0054 0055 0056 0057 0058 0059 005A 00C4 00D6 00D1 00DC 00A7
00BF 0061 0062 0063 0064 0065 0066 0067 0068 0069 006A 006B 006C 006D 006E 006F
0070 0071 0072 0073 0074 0075 0076 0077 0078 0079 007A 00E4 00F6 00F1 00FC 00E0
"""
# Section 6.2.1.1: form feed ^ { } \ [ ~ ] | and the euro sign.
EXTENDED = "000C 005E 007B 007D 005C 005B 007E 005D 007C 20AC"

ONE_SEPTET = "".join(chr(int(code, 16)) for code in BASIC.split())
TWO_SEPTETS = "".join(chr(int(code, 16)) for code in EXTENDED.split())

CLEF = "\U0001d11e"
"""A character outside the Basic Multilingual Plane: two UTF-16 units."""

mixed_texts = st.text(st.sampled_from("a1€áœç ½²\u0301\u0338\u00a0\u200d\ufeffЖ\ud83d\U0001f600\x00\x1b\n")) | st.text()


def wire_units(text: str, encoding: str) -> int:
    if encoding == "GSM-7":
        return sum(2 if char in TWO_SEPTETS else 1 for char in text)
    return len(text.encode("utf-16-be", "surrogatepass")) // 2


def split(text: str, encoding: str) -> list[str]:
    """Return the segments, each as full as whole characters allow."""
    alone, joined = (160, 153) if encoding == "GSM-7" else (70, 67)
    if wire_units(text, encoding) <= alone:
        return [text] if text else []
    parts = [""]
    for char in text:
        if wire_units(parts[-1] + char, encoding) > joined:
            parts.append("")
        parts[-1] += char
    return parts


def test_the_gsm_7_alphabet_matches_the_standard() -> None:
    assert (segments.DEFAULT_ALPHABET, segments.EXTENSION) == (ONE_SEPTET, TWO_SEPTETS)
    assert count(ONE_SEPTET) == segments.Count("GSM-7", 127, 127, 1, ())
    assert count(TWO_SEPTETS) == segments.Count("GSM-7", 10, 20, 1, ())
    codes = (*range(0x10000), *range(0x10000, 0x110000, 97))  # all would take seconds
    others = tuple(char for char in map(chr, codes) if char not in ONE_SEPTET + TWO_SEPTETS)
    assert count("".join(others)).not_gsm7 == others


@pytest.mark.parametrize(
    ("text", "encoding", "units", "expected"),
    [
        pytest.param("", "GSM-7", 0, 0, id="empty"),
        pytest.param("a" * 160, "GSM-7", 160, 1, id="full alone"),
        pytest.param("a" * 161, "GSM-7", 161, 2, id="one septet more"),
        # 153 is odd: 76 euro signs fill 152 septets, and the septet left takes no half of the next.
        pytest.param("€" * 152, "GSM-7", 304, 2, id="two segments of 76"),
        pytest.param("€" * 153, "GSM-7", 306, 3, id="306 septets, but a third segment"),
        pytest.param("a" * 151 + "€" + "a" * 153, "GSM-7", 306, 2, id="extension character ends on the edge"),
        pytest.param("a" * 152 + "€" + "a" * 152, "GSM-7", 306, 3, id="extension character over the edge"),
        pytest.param("a" * 152 + "€" + "a" * 6, "GSM-7", 160, 1, id="no edge inside a message alone"),
        pytest.param("á" * 70, "UCS-2", 70, 1, id="full alone in UCS-2"),
        pytest.param("á" * 71, "UCS-2", 71, 2, id="one unit more"),
        # 67 is odd, too: 33 pairs fill 66 units.
        pytest.param(CLEF * 66, "UCS-2", 132, 2, id="two segments of 33"),
        pytest.param(CLEF * 67, "UCS-2", 134, 3, id="134 units, but a third segment"),
        pytest.param("á" * 65 + CLEF + "á" * 67, "UCS-2", 134, 2, id="pair ends on the edge"),
        pytest.param("á" * 66 + CLEF + "á" * 66, "UCS-2", 134, 3, id="pair over the edge"),
        pytest.param("á\ud83d", "UCS-2", 2, 1, id="lone surrogate"),
    ],
)
def test_a_text_has_the_number_of_segments_of_the_standard(text: str, encoding: str, units: int, expected: int) -> None:
    counted = count(text)
    assert (counted.encoding, counted.characters) == (encoding, len(text))
    assert (counted.units, counted.segments) == (units, expected)


def test_characters_that_force_ucs2_are_listed_once_in_order() -> None:
    assert count("zá€éíáñ😀íÇç").not_gsm7 == ("á", "í", "😀", "ç")


@given(mixed_texts)
def test_any_text_can_be_counted(text: str) -> None:
    counted = count(text)
    outside = {char for char in text if char not in ONE_SEPTET + TWO_SEPTETS}
    assert counted.encoding == ("UCS-2" if outside else "GSM-7")
    assert set(counted.not_gsm7) == outside
    assert counted.segments == len(split(text, counted.encoding))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¿Cuál es su código, señor Nuñez?", "¿Cual es su codigo, señor Nuñez?"),
        (" ÁÉÍÓÚÜ áéíóúü ", " AÉIOUÜ aéiouü "),
        ("a\u0301 e\u0301 n\u0303", "a é ñ"),
        ("“a” ‘b’ «c» „d‚ ‹e›", "\"a\" 'b' \"c\" \"d' 'e'"),
        ("it`s ´x´ 5′ 3″", "it's 'x' 5' 3\""),
        ("a–b—c‑d−e", "a-b-c-d-e"),
        ("wait…", "wait..."),
        ("a\u00a0b\u2009c\u3000d\u1680e\tf", "a b c d e f"),
        ("a\u2028b\u2029c\x85d", "a\nb\nc\nd"),
        ("a\u200bb\u00adc\ufeffd\u2060e", "abcde"),
        ("• uno ▪ dos", "- uno - dos"),
        ("łódź Đà ðÞþ ı", "lodz Dà dThth i"),
        ("œuvre Œ ẞ ß", "oeuvre OE SS ß"),
        ("ça Ça", "ca Ça"),
        ("ﬁn ﬀ ĳ ǆ", "fin ff ij dz"),
        ("№ 5 N° 1º 2ª", "No 5 No 1o 2a"),
        ("© ® ™", "(c) (r) TM"),
        ("ＡＢＣ１２３！", "ABC123!"),
        ("𝐇𝐨𝐥𝐚", "Hola"),
        ("ǘ ấ ǻ ǿ", "ü a å ø"),
        ("ΑΘΗΝΑ", "AΘHNA"),
        ("µm", "um"),
        ("1\ufe0f\u20e3 a\ufe00", "1 a"),
        ("3×4÷2 ≤ 6 ≠ 7", "3x4/2 <= 6 != 7"),
        ("=\u0338", "!="),
        ("10² 1½ ½", "10^2 1 1/2 1/2"),
        ("{€}", "{€}"),
    ],
)
def test_characters_are_replaced_by_near_ones(text: str, expected: str) -> None:
    assert to_gsm7(text) == (expected, ())


@pytest.mark.parametrize(
    ("text", "expected", "left_out"),
    [
        ("Hola 😀 Ana", "Hola Ana", "😀"),
        ("🎉🎉 🎂 Feliz día 🎉", "Feliz dia", "🎉🎂"),
        ("Uno 🎉\n🎉 Dos 🎉 🎂 tres", "Uno\nDos tres", "🎉🎂"),
        ("Gracias!👍🏽", "Gracias!", "👍🏽"),
        ("👨‍👩‍👧 en 🇨🇴", "en", "👨👩👧🇨🇴"),
        ("Soy 🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f ok", "Soy ok", "🏴"),
        ("5‰ ∞ ¶", "5", "‰∞¶"),
    ],
)
def test_emoji_and_other_symbols_are_left_out(text: str, expected: str, left_out: str) -> None:
    assert to_gsm7(text) == (expected, tuple(left_out))


@pytest.mark.parametrize("text", ["😀" * 2**14, " 😀" * 2**14 + "a", "a" + "\u0301\u0316" * 2**14, "😀\u0301 " * 2**13])
def test_64_kib_of_any_text_take_less_than_a_second(text: str) -> None:
    began = time.process_time()
    segments.saved_by_gsm7(text)
    assert time.process_time() - began < 1


def test_at_most_30_combining_marks_in_a_row_are_kept() -> None:
    assert normalized("a" + "\u0316" * 31 + "b" + "\u0316" * 30) == "a" + "\u0316" * 30 + "b" + "\u0316" * 30
    assert normalized("\u0316" * 31) == "\u0316" * 30


@pytest.mark.parametrize(
    "text", ["h\u0336", "=\u20e5", "\u20e0", "½Ж", "ά", "\u202e", "\x1b", "\x00", "\ud83d", "😀", "中", "가", "٣"]
)
def test_a_character_without_a_similar_one_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        to_gsm7(text)
    assert segments.saved_by_gsm7(text * 71) == 0


@pytest.mark.parametrize(
    ("text", "named", "letters"),
    [
        ("a中", "中 (U+4E2D, position 2)", "character"),
        ("Жa中Ж", "Ж (U+0416, position 1), 中 (U+4E2D, position 3)", "characters"),
        ("h\u0336", "◌\u0336 (U+0336, position 2)", "character"),
        ("\u202ea", "\\u202e (U+202E, position 1)", "character"),
    ],
)
def test_the_error_lists_the_characters_without_a_similar_one(text: str, named: str, letters: str) -> None:
    with pytest.raises(UsageError) as caught:
        to_gsm7(text)
    assert caught.value.message == f"GSM-7 has no letter close to {named}"
    assert caught.value.hint == f"Send it without --gsm7, or remove the {letters}."


@pytest.mark.parametrize(
    ("text", "saved"),
    [
        ("á" * 70, 0),
        ("á" * 71, 1),
        ("á" * 135, 2),
        ("a" * 100 + "😀", 1),
        ("a" * 161, 0),
        ("a" * 160 + "Ж", 0),
        ("😀" * 71, 0),
        ("…" * 71, 0),
    ],
)
def test_the_segments_that_gsm_7_saves_are_counted(text: str, saved: int) -> None:
    assert segments.saved_by_gsm7(text) == saved


def test_a_message_has_at_most_the_segments_that_were_allowed() -> None:
    check_segments(count("a" * 1530))
    check_segments(count("a" * 1531), 11)
    with pytest.raises(UsageError, match="The message needs 11 segments; the maximum is 10") as caught:
        check_segments(count("a" * 1531))
    assert caught.value.hint == "Shorten it, or allow it with --max-segments 11."
