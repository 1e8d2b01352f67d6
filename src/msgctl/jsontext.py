"""Read and write JSON without losing a digit of its numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NoReturn

from msgctl.text import is_unsafe

# The only characters under U+0020 in valid JSON are white space between tokens.
_NOT_PLAIN = re.compile(r"[^\x00-\x7e]+")


MAX_PARTS = 1_000_000
"""Maximum commas and brackets in JSON; each takes up to 64 bytes of memory."""


class Number(str):
    """A JSON number as the text that was sent, since a float would lose or add digits."""

    __slots__ = ()


class ShapeError(ValueError):
    """The body is not JSON, or is JSON without the record; the message contains the reason."""


class RepeatedFieldError(ShapeError):
    """The body is JSON, but one of its objects has a field twice, so it is not certain which value counts."""


class Raw(str):
    """JSON text that `dump` writes unchanged."""

    __slots__ = ()


_COMMA = Raw(",")


def _refuse_constant(name: str) -> NoReturn:
    raise ShapeError(f"it contains {name}, which is not JSON")


_SHORT = {text: Number(text) for text in map(str, range(100))}


def _number(text: str) -> Number:
    """Return a whole number. Short numbers share objects, since a response can contain eight million of them."""
    return _SHORT.get(text) or Number(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise RepeatedFieldError("it contains the same field twice")
    return fields


def _all_values(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; the different values of a repeated field are an array."""
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    by_name: dict[str, list[Any]] = {name: [] for name in fields}
    for name, value in pairs:
        if isinstance(value, (dict, list)) or value not in by_name[name][-1:]:
            by_name[name].append(value)
    return {name: different if len(different) > 1 else fields[name] for name, different in by_name.items()}


class Fields(dict[str, Any]):
    """The fields of an object, and the name of a repeated one, if any."""

    repeated = ""


def _marked(pairs: list[tuple[str, Any]]) -> Fields:
    fields = Fields(pairs)
    if len(fields) < len(pairs):
        fields.repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return fields


Repeated = Literal["last", "refuse", "all", "mark"]
"""How a repeated field of an object is read: its last value, an error, an array of all values, or its last value in
`Fields`.
"""
_DECODERS = {
    kind: json.JSONDecoder(
        object_pairs_hook=hook, parse_int=_number, parse_float=Number, parse_constant=_refuse_constant
    )
    for kind, hook in (("last", None), ("refuse", _unique), ("all", _all_values), ("mark", _marked))
}


def load_json(body: bytes, *, repeated: Repeated = "last") -> Any:
    """Read JSON (RFC 8259) of unknown origin; numbers become `Number`. Raises ShapeError.

    Raises RepeatedFieldError for a field that is twice in one object, if ``repeated`` is "refuse".
    """
    if len(body) > MAX_PARTS and sum(map(body.count, (b",", b"[", b"{"))) > MAX_PARTS:
        raise ShapeError("it contains too many values")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:  # "from None": the exceptions contain the body
        raise ShapeError("it is not UTF-8 text") from None
    return load_text(text, repeated)


def load_text(text: str, repeated: Repeated) -> Any:
    """Read the text of JSON as `load_json` does."""
    try:
        return _DECODERS[repeated].decode(text)
    except RecursionError:
        raise ShapeError("its JSON is nested too deeply") from None
    except ShapeError:
        raise
    except ValueError:
        raise ShapeError("it is not JSON") from None


def values(value: Any) -> Iterator[Any]:
    """Yield a JSON value and every value inside it. Arrays are read from their end."""
    waiting = [value]
    while waiting:
        element = waiting.pop()
        yield element
        if isinstance(element, (dict, list)):
            waiting += element.values() if isinstance(element, dict) else element


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value, including the value itself."""
    return (element for element in values(value) if isinstance(element, dict))


def escape_json(text: str, *, ascii_only: bool = False) -> str:
    """Escape unsafe characters (or all beyond ASCII) in JSON text as ``\\uXXXX``; its value stays the same."""
    if text.isascii() and "\x7f" not in text:
        return text

    def safe(run: re.Match[str]) -> str:
        if not ascii_only and run[0].isprintable():  # one fast check of the whole run
            return run[0]
        return run[0].translate({ord(char): _escaped(char) for char in set(run[0]) if ascii_only or is_unsafe(char)})

    return _NOT_PLAIN.sub(safe, text)


def dump(value: Any) -> str:
    """Return compact JSON of plain Python data or of a document from `load_json`, whose numbers stay unchanged."""
    return "".join(pieces(value))


def pieces(value: Any) -> Iterator[str]:
    """Yield the result of `dump` in pieces. It does not recurse, since a response can be nested deeply."""
    stack: list[Iterator[Any]] = [iter((value,))]
    while stack:
        for item in stack[-1]:
            if isinstance(item, (Raw, Number)):
                yield item
            elif isinstance(item, (Mapping, list, tuple)):
                stack.append(_parts(item))
                break
            else:
                yield json.dumps(item, ensure_ascii=False)
        else:
            stack.pop()


def _parts(value: Mapping[str, Any] | list[Any] | tuple[Any, ...]) -> Iterator[Any]:
    """Yield the values of an object or array, with the text before, between and after them."""
    start, end = "{}" if isinstance(value, Mapping) else "[]"
    before = Raw(start)
    for item in value:
        yield before
        if isinstance(value, Mapping):
            yield Raw(f"{json.dumps(item, ensure_ascii=False)}:")
            yield value[item]
        else:
            yield item
        before = _COMMA
    yield Raw(end) if value else Raw(start + end)


def _escaped(char: str) -> str:
    """Return a character as JSON escapes: two, a surrogate pair, beyond U+FFFF (RFC 8259, section 7)."""
    return json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"
