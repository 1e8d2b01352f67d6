"""What hostile hands make of the content of a file."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

PIECES = [
    b"",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r\n",
    b'"',
    b"'''",
    b"[",
    b"{",
    b"=",
    b",",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"9" * 400,
]

Draw = Any


@st.composite
def damaged(draw: Draw, content: bytes) -> bytes:
    """Bytes with a few of them changed, taken out, put in or repeated, or all of them anything."""
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(content)))
        end = start + draw(st.integers(0, 8) | st.integers(0, max(len(content) - start, 0)))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=4))
        content = content[:start] + piece * draw(st.sampled_from([1, 1, 1, 1000])) + content[end:]
    return content


def contents(*samples: bytes) -> st.SearchStrategy[bytes]:
    """Files that are nearly as they should be, and some that are nothing like it."""
    return st.one_of(*[damaged(each) for each in samples], st.binary(max_size=60))


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.sampled_from([0, 1, -1, 2**63 - 1, 2**63, 1e300, float("inf"), float("nan"), 0.5, -0.0])
    | st.sampled_from(
        ["", " ", "a", "CO", "Mia", "Shop", "\x1b[2J", "\u202e", "a\nb", "x" * 5000, "é", "0", "573001234567"]
    )
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
"""What a member of a document can hold, whatever it should."""
