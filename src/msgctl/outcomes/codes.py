"""The meaning of the response to `2fa verify`: a code is verified only if every field confirms it or has no meaning."""

from __future__ import annotations

import re
from typing import Any

from msgctl.jsontext import objects, values
from msgctl.outcomes import words
from msgctl.outcomes.content import ContentField, as_text, doubt_of, fields_of, is_in_request, is_one, is_zero, words_of
from msgctl.outcomes.outcome import Doubt, RequestFacts
from msgctl.outcomes.record import RESULTS
from msgctl.outcomes.words import tokenize


def doubt_of_code(request: RequestFacts, document: Any) -> Doubt | None:
    """Return the field of a 2xx response that does not confirm the code; None if each confirms it or has no meaning."""
    for content in objects(document):
        for name in RESULTS:
            if name in content and not _verifies(request, content[name]):
                return Doubt(name, as_text(content[name]))
    fields = fields_of(document)
    for field in fields:
        if not field.name.is_result and not _is_harmless(request, field):
            return doubt_of(field)
    elements = [element for array in values(document) if isinstance(array, list) for element in array]
    if any(field.name.is_result for field in fields) and all(isinstance(element, dict) for element in elements):
        return None
    return Doubt("status", "")


def _verifies(request: RequestFacts, value: Any) -> bool:
    """Return whether a value confirms a code: 1, a text of the profile, or words of `VERIFIED` about a code."""
    if is_one(value) or request.added.has("verified", as_text(value)):
        return True
    if not isinstance(value, str):
        return False
    text = tokenize(value)
    return text.is_all(words.VERIFIED, numbers=request.numbers) and not words.NOT_A_CODE.among(text.words)


# Names and values without a meaning for a code.
_NEUTRAL = frozenset("id sid uuid reference date datetime at expire attempt created channel credit".split())
_NEUTRAL_VALUE = r"-?\d+(\.\d+)?|\d{4}-\d\d-\d\d[^\s/]*( [^\s/]+)?|(?=\S*\d)[\w.:@+=-]+|sms|call|voice|whatsapp"


def _is_harmless(request: RequestFacts, field: ContentField) -> bool:
    """Return whether a field does not contradict a code that is verified."""
    name, value = field.name, field.value
    if value in (None, "", []):
        return True
    if name.is_failure or "error" in name.words:
        return is_zero(value)
    is_about_it = not is_one(value) or words.VERIFIED.among(name.words)
    if (_verifies(request, value) and is_about_it) or is_in_request(request.echoes, value):
        return True
    if name.words.isdisjoint(_NEUTRAL) or not re.fullmatch(_NEUTRAL_VALUE, as_text(value), re.IGNORECASE):
        return False
    text = tokenize(as_text(value)).words
    return not any(bad.among(text) for bad in (words.FAILED, words.OPEN, words.ERROR, words.NEGATION))


def may_use_up(document: Any) -> bool:
    """Return whether the response to a code, with status 400 or 520, is about a breakdown that may use up the code."""
    text = words_of(document).words
    return words.OPEN.among(text) and not any(bad.among(text) for bad in (words.FAILED, words.REASON, words.NEGATION))
