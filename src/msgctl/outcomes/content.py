"""The values and fields of a response, and their separate meanings.

A document is JSON of `msgctl.jsontext.load_json`, whose numbers are strings of type `Number`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from msgctl.jsontext import Number
from msgctl.outcomes import words
from msgctl.outcomes.outcome import Doubt, digits_of
from msgctl.outcomes.record import RESULTS, Object
from msgctl.outcomes.words import Text, tokenize


def is_one(value: Any) -> bool:
    """Return whether a value is 1 or true, as a number, a boolean or a text."""
    if isinstance(value, Number):
        return float(value) == 1
    return value is True or (isinstance(value, str) and value.strip().lower() in ("1", "true"))


def is_zero(value: Any) -> bool:
    """Return whether a value is 0 or false, as a number, a boolean or a text."""
    if isinstance(value, Number):
        return float(value) == 0
    return value is False or (isinstance(value, str) and value.strip().lower() in ("0", "false"))


def is_nothing(value: Any, numbers: frozenset[str] = frozenset()) -> bool:
    """Return whether the value of an error field means that there is no error: null, empty, zero, or an acceptance."""
    if value in (None, "", [], {}) or is_zero(value):
        return True
    if not isinstance(value, str):
        return False
    is_none = not value.strip("0 ") or value.lower() in ("none", "null", "ninguno")
    return is_none or tokenize(value).is_all(words.GOOD, numbers=numbers)


_WHOLE = r"[0-9]{1,9}(\.0+)?"


def as_count(value: Any) -> int | None:
    """Return a whole number that is not negative, or None."""
    return int(float(value)) if isinstance(value, str) and re.fullmatch(_WHOLE, value) else None


_PHONE = r"[0-9\s()+.-]+"


def is_in_request(echoes: frozenset[str], value: Any) -> bool:
    """Return whether a value repeats a value of the request, or a recipient's number in any spelling."""
    return isinstance(value, str) and (
        value in echoes or (re.fullmatch(_PHONE, value, re.ASCII) is not None and digits_of(value) in echoes)
    )


def as_text(value: Any) -> str:
    """Return a value as text; null, an object or an array is an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ""


# --- fields


ECHOES = frozenset("sms text texto body voice phone to name nombre urlLong".split())
"""Fields that repeat the request. In the response to a call, ``message`` may repeat it, too."""
_MESSAGES = frozenset(
    "msg message mensaje mensagem detail detalle description descripcion descricao reason motivo result resultado info "
    "note warning mode modo".split()
)
"""Fields that contain a message in words."""
_COUNTS = frozenset("recipient count number".split())
"""Fields with the number or the list of the people who get the message."""
_WHO = frozenset("to number mobile msisdn recipient destination".split())
"""Fields with a person who gets the message."""
_NO_IDS = frozenset(
    "code codigo error errno statu state request trace fbtrace api count price time timestamp total info instance "
    "retcode result".split()
)
"""Words in the name of a field that contains no id of a message."""


class FieldName:
    """The meaning of a field's name."""

    def __init__(self, name: str, of_block: bool) -> None:
        words_of_name = tokenize(name, of_block=of_block).words
        only = words_of_name[0] if len(words_of_name) == 1 else ""
        self.text = name
        self.words = frozenset(words_of_name)
        self.is_echo = name in ECHOES
        self.is_result = name in RESULTS
        self.is_failure = words.FAILED.among(self.words)
        self.is_error = self.is_failure or words.ERROR.among(self.words)
        self.is_status = name in ("status", "state")
        self.is_good = words.GOOD.among(self.words)
        self.is_count = only in _COUNTS
        self.is_who = only in _WHO
        self.is_message = only in _MESSAGES
        self.may_count_recipients = self.is_good or words.VERIFIED.among(self.words)
        self.is_code = not self.words.isdisjoint({"code", "codigo", "statu"})
        self.may_be_id = self.words.isdisjoint(_NO_IDS)


@lru_cache(maxsize=512)
def meaning_of(name: str, of_block: bool) -> FieldName:
    return FieldName(name, of_block)


class ContentField(NamedTuple):
    """A field that is not an object or a filled array.

    ``is_error`` means that its name, or the name of an enclosing object, describes a failure. ``is_echo`` means that
    one of these names is in `ECHOES`.
    """

    name: FieldName
    value: Any
    is_error: bool
    is_echo: bool


def fields_of(content: Any, *, of_block: bool = False) -> list[ContentField]:
    """Return every field at any depth. An element of an array has the name of the array."""
    fields: list[ContentField] = []
    waiting = [ContentField(meaning_of("", of_block), content, is_error=False, is_echo=False)]
    for field in waiting:  # grows meanwhile
        name, value, is_error, is_echo = field
        if isinstance(value, dict):
            for inner_name, inner in value.items():
                meaning = meaning_of(words.cut(inner_name), of_block)
                waiting.append(ContentField(meaning, inner, is_error or meaning.is_error, is_echo or meaning.is_echo))
        elif isinstance(value, list) and value:
            waiting += [ContentField(name, inner, is_error, is_echo) for inner in value]
        else:
            fields.append(field)
    return fields


def words_of(content: Any, echoes: frozenset[str] = frozenset()) -> Text:
    """Return the words of all texts at any depth, read together."""
    return words.together(
        tokenize(field.value)
        for field in fields_of(content)
        if isinstance(field.value, str) and not field.is_echo and not is_in_request(echoes, field.value)
    )


def stated_in(content: Object) -> list[Any]:
    """Return the `status` and `state` of an object."""
    return [content[name] for name in ("status", "state") if content.get(name) not in (None, "", [], {})]


def doubt_of(contradiction: ContentField | None) -> Doubt | None:
    if contradiction is None:
        return None
    value = "[]" if contradiction.value == [] else as_text(contradiction.value)
    return Doubt(contradiction.name.text, value)
