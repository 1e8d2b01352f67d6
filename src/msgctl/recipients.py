"""The outcome of each recipient of a request, from the record of its response.

The service may respell or mask a number, leave a recipient out, list several in one entry, or refuse one and accept
another. History, jobs and exit codes all use this mapping. If it is not certain that the service accepted a recipient's
message, the outcome is unknown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.delivery import classify, is_failure, is_success, negates, words
from msgctl.jsontext import Number, objects, values
from msgctl.operations import Operation
from msgctl.text import storable

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"

MAX_CREDIT_DIGITS = 12
"""Maximum digits of one recipient's credits, so that the sum for a million recipients fits into 64 bits."""
MAX_UNCLAIMED = 100
"""Maximum entries without a recipient that are kept; a hostile response could contain a million."""
_NONE = frozenset("none null ok na ninguno ninguna".split())
_NEGATIONS = frozenset("no 0 sin without ningun".split())
_ERRORS = frozenset("error errors errores".split())
_FILLERS = frozenset("found occurred hay".split())
SUCCESS_FLAGS = ("success", "ok", "exito", "sent", "enviado", "accepted", "aceptado")
"""Fields that services add to a response; false or 0 contradicts an acceptance."""
# Names of undocumented fields: of a failure, a result in words, a block, an explanation, a flag, and a number.
_OF_FAILURE = re.compile("error|fail(?!_?over)|fallid|fallo|reject|rechaz|invalid|denied|denegad|undeliver", re.I)
_OF_RESULT = re.compile("status|state|estado|result(ado)?", re.I)
OF_ATTEMPTS = re.compile("attempt|intento|retries", re.I)
_OF_BLOCK = re.compile("blocked|bloquead", re.I)
OF_TEXT = re.compile("(msg|message|mensaje|detail|detalle|description|descripcion|reason|motivo)s?$", re.I)
_OF_FLAG = re.compile(
    "(is|was|es|fue)?_?(success(ful)?|succeeded|ok|exito(so)?|sent|enviado|accepted|aceptado|status|state)", re.I
)
_OF_CODE = re.compile("(http_?)?(status|state|estado|response)(_?(code|codigo))?|(http_?)?(code|codigo)", re.I)
_CODES = frozenset(("code", "codigo"))
_URL = re.compile(r"https?://\S+")
ERROR_STATUS = re.compile(r"-[0-9.]*[1-9][0-9.]*|[45][0-9][0-9]", re.ASCII)
"""A number in a status that never means success: a negative one, or an HTTP status of an error."""
MIN_DIGITS = 5
"""Minimum digits of a number without its country code; fewer digits could be the end of many numbers."""
MAX_MASKED_LENGTH = 40
"""Maximum characters of a masked number."""
MAX_INNER = 100
"""Maximum values inside a status that are examined."""
MAX_MASKED_RUNS = 3
"""Maximum runs of mask characters in a number; more would match slowly, and match too many numbers."""

# E.164: a calling code has one digit (1, 7), two (these), or three.
_TWO_DIGIT_CODES = frozenset(
    """20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86
    90 91 92 93 94 95 98""".split()
)
_PUNCTUATION = re.compile(r"[\s+().-]+")
_MASK = re.compile("[*xX#•…]+")
_MASKED = re.compile("[0-9*xX#•…]+")

Entry = Mapping[str, Any]


class RecipientOutcome(NamedTuple):
    """The outcome of one recipient: strings as the service sent them, None for missing fields.

    ``phone`` is the number in the request, or in the entry if the request has none. If several recipients
    share an entry, its ``credits`` are divided among them.
    """

    phone: str | None
    outcome: str
    id: str | None = None
    status: str | None = None
    credits: str | None = None


def outcomes(
    operation: Operation, record: Entry, phones: Sequence[str | None], *, is_own_body: bool = False
) -> list[RecipientOutcome]:
    """Return the outcome of each phone, in the order of ``phones``. A phone is None if the sender does not know it.

    ``record`` is the document of a `Response`: its ``data``, if any, is a list of objects. With ``is_own_body`` (a
    request with a body from the user), a record without entries belongs to the recipient, whatever its number.
    """
    entries = entries_of(operation, record)
    if entries is None:
        outcome = _outcome_of_record(operation, record)
        found_id, status = _id(record), _text(record.get("status"))
        known = [phone for phone in phones if phone]
        named = named_in(record, known)
        return [
            RecipientOutcome(phone, outcome if named is None or phone in named else UNKNOWN, found_id, status)
            for phone in phones
        ]
    if is_own_body and entries == [record]:
        entries = [{**record, "phone": phone} for phone in phones]
    around = {name: value for name, value in record.items() if name != "data"}
    is_failed = entries != [record] and (
        reports_failure(record) or any(_meaning(name).is_flag and is_zero(value) for name, value in record.items())
    )
    is_contradictory = is_contradicted(around)
    found: list[RecipientOutcome] = []
    places: dict[int, list[int]] = {}
    alike: list[tuple[str, type, Any]] = []
    outcome = ""
    for phone, entry in zip(phones, claimed(entries, phones), strict=True):
        deciding = _deciding(entry)
        if not deciding or deciding != alike:
            alike, outcome = deciding, _outcome(entry)
        each = _of(phone, entry, outcome)
        places.setdefault(id(entry), []).append(len(found))
        found.append(each)
    is_explained = any(each.outcome == REFUSED for each in found)
    if is_failed or (is_contradictory and not is_explained):
        found = [each._replace(outcome=UNKNOWN) if each.outcome == ACCEPTED else each for each in found]
    for shared in places.values():
        if len(shared) > 1:
            for place, share in zip(shared, _shares(found[shared[0]].credits, len(shared)), strict=True):
                found[place] = found[place]._replace(credits=share)
    return found


def _shares(text: str | None, number: int) -> list[str | None]:
    """Divide the credits of an entry among its recipients, so that they count once.

    If the credits are not a whole number, the first recipient gets the text unchanged.
    """
    total = charged(text)
    if total is None:
        return [text, *[None] * (number - 1)]
    each, rest = divmod(total, number)
    return [str(each + (place < rest)) for place in range(number)]


def entries_of(operation: Operation, record: Entry) -> list[Entry] | None:
    """Return the entries of a record; None if it has none and reports on the request as a whole."""
    data = record.get("data")
    if isinstance(data, list) and operation.record in _DISPATCHES:
        return data
    is_own_entry = operation.record is operations.RESPONSE_CHATAPP and _id(record)
    return [record] if is_own_entry else None


_DISPATCHES = (
    operations.RESPONSE_SMS,
    operations.RESPONSE_CALL,
    operations.RESPONSE_SMS_2FA,
    operations.RESPONSE_CALL_2FA,
    operations.RESPONSE_CHATAPP,
)


def unclaimed(operation: Operation, record: Entry, phones: Sequence[str | None]) -> list[RecipientOutcome]:
    """Return the entries that belong to none of the phones, so that their ids can be stored too."""
    entries = record.get("data") or [] if entries_of(operation, record) is not None else []
    used = set(map(id, claimed(entries, phones)))
    rest = [entry for entry in entries if id(entry) not in used]
    found = [_of(None, entry, _outcome(entry)) for entry in rest[:MAX_UNCLAIMED]]
    return [each._replace(outcome=UNKNOWN) if each.outcome == ACCEPTED else each for each in found]


def is_refusal(operation: Operation, record: Entry) -> bool:
    """Return whether the whole record reports failure, and no part of it has an id or a separate result."""
    is_block = operation is operations.BLOCK_PHONE
    is_failure_certain = describes_error(record) or reports_failure({**record, "error": None}, of_block=is_block)
    if not is_failure_certain or _id(record):
        return False
    entries = record.get("data")
    return not any(_reports_itself(entry) for entry in (entries if isinstance(entries, list) else []))


def _reports_itself(entry: Entry) -> bool:
    """Return whether an entry has an id, or a result that does not follow from the record around it."""
    results = [each for each in (entry.get("status"), entry.get("state")) if each is not None]
    is_accepted = any(is_one(each) or is_success(str(each)) for each in results)
    return bool(_id(entry)) or is_accepted or _outcome(entry) == REFUSED


def reports_failure(record: Entry, *, of_block: bool = False) -> bool:
    """Return whether an object has an ``error``, or a ``status`` of 0, false or a word for failure."""
    status = record.get("status")
    return has_error(record) or is_zero(status) or (isinstance(status, str) and is_failure(status, of_block=of_block))


def hints_at_failure(record: Entry, *, of_block: bool = False) -> bool:
    """Return whether an undocumented field reports a failure.

    Examples are a false ``success``, an ``errorCode``, ``rejected`` numbers, and an ``estado`` or ``Status`` with a
    word for failure.
    """
    return any(_is_hint(name, value, of_block) for name, value in record.items() if name not in _WITHOUT_HINTS)


_WITHOUT_HINTS = frozenset("id phone credits sms message voice name data error".split())
_OWN = _WITHOUT_HINTS - {"data", "error"}
"""Fields that usually differ between the entries of a request, and do not affect their outcome."""
_ECHOES = frozenset("msg mensaje Msg Mensaje".split())
"""Fields of an entry that repeat the text sent, which may contain any word, unless they are the only result."""


class _Meaning(NamedTuple):
    """The kinds of an undocumented field, from its name."""

    is_failure: bool
    is_flag: bool
    is_block: bool
    is_result: bool
    is_text: bool
    is_code: bool


@lru_cache(maxsize=256)
def _meaning(name: str) -> _Meaning:
    is_other = "no" in words(name) or OF_ATTEMPTS.search(name)
    return _Meaning(
        is_failure=_OF_FAILURE.search(name) is not None and not is_other,
        is_flag=_OF_FLAG.fullmatch(name) is not None,
        is_block=_OF_BLOCK.search(name) is not None,
        is_result=_OF_RESULT.search(name) is not None,
        is_text=OF_TEXT.search(name) is not None,
        is_code=_OF_CODE.fullmatch(name) is not None,
    )


def _is_hint(name: str, value: Any, of_block: bool) -> bool:
    """Return whether an undocumented field reports a failure."""
    meaning = _meaning(name)
    if meaning.is_failure and not (isinstance(value, str) and _URL.fullmatch(value)):
        return has_error({"error": value}) and not _is_no_error(value)
    if (meaning.is_flag or (of_block and meaning.is_block)) and is_zero(value):
        return True
    if value is False:
        return _OF_RESULT.fullmatch(name) is not None
    if isinstance(value, (dict, list)) and (meaning.is_result or meaning.is_text):
        inner = islice(values(value), MAX_INNER)
        return any(isinstance(each, str) and is_failure(each, of_block=of_block) for each in inner)
    if not isinstance(value, str) or _URL.fullmatch(value):
        return False
    if isinstance(value, Number) or value.isdecimal():
        return meaning.is_code and ERROR_STATUS.fullmatch(value) is not None
    is_result = meaning.is_result or meaning.is_flag
    if is_result and negates(value) and not _is_no_error(value):
        return True
    return (is_result or meaning.is_text) and is_failure(value, of_block=of_block)


def is_contradicted(record: Entry, *, of_block: bool = False) -> bool:
    """Return whether an undocumented field of an object, or any object inside it, reports a failure."""
    if hints_at_failure(record, of_block=of_block):
        return True
    nested = [value for value in record.values() if isinstance(value, (dict, list))]
    # Inside other objects, a code may be that of a country.
    inner = [{name: each[name] for name in each.keys() - _CODES} for each in objects(nested)]
    return any(reports_failure(each, of_block=of_block) or hints_at_failure(each, of_block=of_block) for each in inner)


def _is_no_error(value: Any) -> bool:
    """Return whether a text means that there is no error: "000", "none", "No error", "Success"."""
    if isinstance(value, (dict, list)):
        plain = (each for each in values(value) if not isinstance(each, (dict, list)))
        return all(not has_error({"error": each}) or _is_no_error(each) for each in plain)
    if not isinstance(value, str):
        return False
    found = set(words(value))
    if not found or words(value) == ["n", "a"]:
        return True
    is_none = bool(found & _NONE) and found <= _NONE | _ERRORS
    is_negated = bool(found & _NEGATIONS) and bool(found & _ERRORS) and found <= _NEGATIONS | _ERRORS | _FILLERS
    return not value.strip("0 ") or is_success(value) or is_none or is_negated


def exit_code(found: Sequence[RecipientOutcome]) -> int:
    """Return the exit code of a send: 5 if an outcome is unknown, else 6 if one is refused, else 0."""
    all_outcomes = {each.outcome for each in found}
    return 5 if UNKNOWN in all_outcomes else 6 if REFUSED in all_outcomes else 0


def has_error(document: Entry) -> bool:
    """Return whether an object has a non-empty ``error``; 0, "0" and false mean that there is no error."""
    error = document.get("error")
    return error not in (None, "", [], {}) and not is_zero(error)


def describes_error(document: Entry) -> bool:
    """Return whether an object has an ``error`` that is not a value such as "none" or "OK"."""
    return has_error(document) and not _is_no_error(document["error"])


_CREDITS = re.compile(rf"([0-9]{{1,{MAX_CREDIT_DIGITS}}})(?:\.([0-9]+))?", re.ASCII)


def charged(text: str | None) -> int | None:
    """Return the credits that a response reports; None if they are not a plausible whole number."""
    found = _CREDITS.fullmatch(text) if text else None
    return None if found is None or (found[2] or "").strip("0") else int(found[1])


def charge(found: RecipientOutcome, estimate: int) -> tuple[int, int]:
    """Return the credits charged for a recipient, and the credits that count if the response reports no charge.

    0 is not a price, so the estimate counts. A refused recipient costs nothing.
    """
    paid = charged(found.credits) or 0
    if paid or found.outcome == REFUSED:
        return paid, 0
    fraction = _CREDITS.fullmatch(found.credits) if found.credits else None
    return 0, max(estimate, int(fraction[1]) + 1 if fraction and fraction[2] else 0)


def is_zero(value: Any) -> bool:
    """Return whether a JSON value counts as 0 or false, which services also send as strings."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, Number):
        return not re.search("[1-9]", re.split("[eE]", value)[0])
    return isinstance(value, str) and value.strip().lower() in ("0", "false")


def is_one(value: Any) -> bool:
    """Return whether a JSON value counts as 1 or true, which services also send as strings."""
    if isinstance(value, bool):
        return value
    if isinstance(value, Number):
        return re.fullmatch(r"1(\.0*)?", value) is not None
    return isinstance(value, str) and value.strip().lower() in ("1", "true")


def _outcome_of_record(operation: Operation, record: Entry) -> str:
    """Return the outcome in a record without entries; it is unknown if any field beside its status means failure."""
    is_block = operation is operations.BLOCK_PHONE
    status = record.get("status")
    if reports_failure(record, of_block=is_block) or is_contradicted(record, of_block=is_block):
        return UNKNOWN
    text = record.get("message")
    if isinstance(text, str) and is_failure(text, of_block=is_block):
        return UNKNOWN
    is_accepted = is_one(status) or (isinstance(status, str) and is_success(status, of_block=is_block))
    return ACCEPTED if is_accepted or _id(record) else UNKNOWN


def named_in(record: Entry, phones: Sequence[str]) -> list[str] | None:
    """Return which of these recipients are in the ``phone`` of a record; None if it has no phone."""
    phone = record.get("phone")
    if not phones or not isinstance(phone, str) or not phone.strip():
        return None
    return NumberIndex(phones).among(phone)


def _of(phone: str | None, entry: Entry, outcome: str) -> RecipientOutcome:
    """Return an outcome with the phone, ID, status and credits of an entry."""
    status, state = entry.get("status"), entry.get("state")
    return RecipientOutcome(
        phone or _text(entry.get("phone")),
        outcome,
        _id(entry),
        _text(state if status is None else status),
        _text(entry.get("credits")),
    )


def _deciding(entry: Entry) -> list[tuple[str, type, Any]]:
    """Return the fields that determine the outcome in an entry; nothing if it contains objects or arrays.

    A number equals a text with the same digits, but may have another meaning, so each field has its type.
    """
    if not {dict, list}.isdisjoint(map(type, entry.values())):
        return []
    return [(name, type(value), value) for name, value in entry.items() if name not in _OWN]


def _outcome(entry: Entry) -> str:
    """Return the outcome in an entry; it is unknown if the entry is empty or its status is 0 or false."""
    status, state = entry.get("status"), entry.get("state")
    if describes_error(entry) or any(isinstance(each, str) and is_failure(each) for each in (status, state)):
        return REFUSED
    rest = entry
    if not _ECHOES.isdisjoint(entry) and any(
        _meaning(name).is_result and value is not None for name, value in entry.items()
    ):
        rest = {name: value for name, value in entry.items() if name not in _ECHOES}
    is_doubtful = not entry or has_error(entry) or is_zero(status) or is_zero(state) or is_contradicted(rest)
    return UNKNOWN if is_doubtful else ACCEPTED


def _id(entry: Entry) -> str | None:
    """Return the ID of a record or an entry; true and false are not IDs."""
    found = entry.get("id")
    return None if isinstance(found, bool) else _text(found)


def _text(value: Any) -> str | None:
    """Return a plain JSON value as text for a database; None for anything else, and for an empty string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str) or not value:
        return None
    return value if value.isascii() else storable(value)


def states(messages: Sequence[Entry], phones: Sequence[str]) -> list[str | None]:
    """Return the delivery state of each phone, or None, from the messages with the requested id.

    A message belongs to the recipient with its number, or else to all recipients who share the id. Several states for
    one recipient count only if they agree.
    """
    numbers = NumberIndex(phones)
    own: dict[str, list[str]] = {}
    shared: list[str] = []
    for message in messages:
        if (state := _text(message.get("state"))) is not None:
            found = numbers.among(message.get("phone"))
            for each in [own.setdefault(phone, []) for phone in found] or [shared]:
                each.append(state)
    return [_one_state(own.get(phone, shared)) for phone in phones]


def _one_state(found: Sequence[str]) -> str | None:
    return found[-1] if len(set(map(classify, found))) == 1 else None


# --- the entry of each recipient


def claimed(entries: Sequence[Entry], phones: Sequence[str | None]) -> list[Entry]:
    """Return the entry of each phone; it is empty if there is no entry for the phone, or if its entries disagree.

    An entry belongs to the numbers that it contains, separated by commas. Order counts only if there are as many
    entries as phones, no entry has a ``phone``, and none contains another recipient's number.
    """
    if [entry.get("phone") for entry in entries] == [*phones]:  # the usual case
        return [*entries]
    if not any("phone" in entry for entry in entries):
        return [*entries] if _is_in_order(entries, phones) else [{} for _ in phones]
    if [*phones] == [None]:
        return [entries[0] if len(entries) == 1 else {}]
    numbers = NumberIndex([phone for phone in phones if phone])
    own: dict[str, list[Entry]] = {}
    for entry in entries:
        for phone in numbers.among(entry.get("phone")):
            own.setdefault(phone, []).append(entry)
    return [_agreed(own.get(phone or "", ())) for phone in phones]


def _is_in_order(entries: Sequence[Entry], phones: Sequence[str | None]) -> bool:
    """Return whether there is one entry for each phone, and none contains the number of another recipient."""
    if len(entries) != len(phones):
        return False
    numbers = NumberIndex([phone for phone in phones if phone])
    return not any(
        isinstance(value, str) and numbers.among(value) not in ([], [phone])
        for entry, phone in zip(entries, phones, strict=True)
        for value in entry.values()
    )


def _agreed(entries: Sequence[Entry]) -> Entry:
    """Return the first entry of a number, or an empty entry if its entries disagree."""
    return entries[0] if entries and len(set(map(_outcome, entries))) == 1 else {}


class NumberIndex:
    """Recipients of a request, found by the spellings of their numbers in a response."""

    def __init__(self, phones: Sequence[str]) -> None:
        self._phones = frozenset(phones)
        national = Counter(map(_without_code, self._phones))
        self._national = {each: phone for phone in self._phones if national[each := _without_code(phone)] == 1}
        """The recipient with each national number; a number that two recipients share is omitted."""
        self._lists = "\n".join(self._phones), "\n".join(self._national)
        self._searches = 2 * len(self._phones)
        """Masked numbers that are still looked up; a hostile response could contain a hundred thousand."""

    def among(self, value: Any) -> list[str]:
        """Return the recipients whose numbers are in a field, which may contain several, separated by commas."""
        parts = value.split(",") if isinstance(value, str) else []
        return [phone for part in parts if (phone := self._find(part)) is not None]

    def _find(self, text: str) -> str | None:
        """Return the recipient with a number, with or without its country code or with masked digits."""
        digits = _PUNCTUATION.sub("", text)
        if not digits.isascii() or not digits.isdecimal():
            return self._masked(digits)
        if digits in self._phones:
            return digits
        if digits.startswith("00") and digits[2:] in self._phones:
            return digits[2:]
        if len(digits) < MIN_DIGITS:
            return None
        national = _without_code(digits)
        is_sent_without_code = national in self._phones and len(national) >= MIN_DIGITS
        return self._national.get(digits, national if is_sent_without_code else None)

    def _masked(self, text: str) -> str | None:
        """Return the recipient that a masked number matches, if it is the only one."""
        visible = _MASK.split(text[: MAX_MASKED_LENGTH + 1])
        if (
            len(text) > MAX_MASKED_LENGTH
            or not self._searches
            or not _MASKED.fullmatch(text)
            or not any(visible)
            or len(visible) > MAX_MASKED_RUNS + 1
        ):
            return None
        self._searches -= 1
        fitting = re.compile(f"^(?:{'[0-9]*'.join(visible)})$", re.MULTILINE)
        whole, national = map(fitting.findall, self._lists)
        found = whole or [self._national[each] for each in national]
        return found[0] if len(found) == 1 else None


def _without_code(phone: str) -> str:
    """Return an international number without its calling code (ITU-T E.164)."""
    size = 1 if phone[:1] in ("1", "7") else 2 if phone[:2] in _TWO_DIGIT_CODES else 3
    return phone[size:]
