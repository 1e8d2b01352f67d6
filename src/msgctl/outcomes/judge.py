"""The meaning of a response: outcomes of a send, a verified code, delivery states and credits.

A response is certain, or its outcome is unknown. A document is JSON of `msgctl.jsontext.load_json`, whose numbers are
strings of type `Number`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgctl.credits import millionths, share
from msgctl.jsontext import Number, objects, values
from msgctl.outcomes import words
from msgctl.outcomes.record import (
    MAX_ENTRIES,
    RESULTS,
    Object,
    entries_of,
    is_plain,
    levels,
    service_message,
    text_to_store,
)
from msgctl.outcomes.words import NO_WORDS, AddedWords, Text, tokenize
from msgctl.phones import MIN_SHARED_DIGITS, RecipientFinder, digits_of
from msgctl.text import shorten

if TYPE_CHECKING:
    from decimal import Decimal

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"

REFUSALS = frozenset({301, 307, 308, 401, 402, 403, 404, 405, 413, 415, 422})
"""HTTP statuses of a request that was not carried out."""
RATE_LIMITED = 429
"""The HTTP status of a request that was turned away for now."""
EXPLAINED = frozenset({400, 520})
"""HTTP statuses of a refusal, if the response gives a reason."""
PARTIAL_CONTENT = 206
"""The HTTP status of a part of a response."""
ECHOES = frozenset("sms text texto body voice phone to name nombre urlLong".split())
"""Fields that repeat the request; in the response to a call, ``message`` may, too."""

MAX_READ = 250_000
"""Maximum characters of the texts in a response to a send, and two for each value. A longer one is unknown."""
MAX_READ_EACH = 200
"""Characters of a response that each recipient adds to `MAX_READ`."""


@dataclass(frozen=True)
class RequestParts:
    """The parts of a request that a response may repeat.

    ``phones`` are the recipients; None is a recipient whom only the user's own body specifies. ``echoes`` are all
    values and the phones. ``numbers`` are the values that a good text may contain: phones, the code, and the number of
    recipients. ``added`` are the texts of the profile.
    """

    phones: Sequence[str | None] = (None,)
    echoes: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    is_block: bool = False
    is_link: bool = False
    is_call: bool = False
    added: AddedWords = NO_WORDS

    @property
    def known_phones(self) -> list[str]:
        """The recipients whose numbers are known."""
        return [phone for phone in self.phones if phone]

    @cached_property
    def recipients(self) -> RecipientFinder:
        """The recipients, to be found by a number in a response."""
        return RecipientFinder(self.phones)


NO_RECIPIENTS = RequestParts()
"""A request without known recipients."""


class Doubt(NamedTuple):
    """The field that made an outcome unknown, or a code not verified, and its value as text."""

    field: str
    value: str

    @property
    def word(self) -> str | None:
        """The text, if a profile may add it as good: not if it speaks of a failure, or is a number of any field."""
        text = tokenize(self.value).words
        both = (*text, *tokenize(self.field).words)
        is_bad = any(bad.among(both) for bad in (words.FAILED, words.ERROR, words.NEGATION))
        is_number = not any(map(str.isalpha, self.value)) and self.field not in ("status", "state")
        return None if is_bad or is_number or not text or _ERROR_CODE.fullmatch(self.value) else self.value


class Outcome(NamedTuple):
    """The outcome of one recipient: accepted, refused or unknown.

    ``phone`` is the number in the request, or in the entry if the request has none. ``id``, ``status`` and ``error``
    are text as the service sent it. ``credits`` are millionths; several recipients of one entry share its
    credits. ``doubt`` is the field that made the outcome unknown.
    """

    phone: str | None
    outcome: str
    id: str | None = None
    status: str | None = None
    credits: int | None = None
    error: str | None = None
    doubt: Doubt | None = None


class Judgement(NamedTuple):
    """The outcome of each recipient. ``is_refused`` means that the request was refused as a whole."""

    outcomes: Sequence[Outcome]
    is_refused: bool = False


# --- values


def _is_one(value: Any) -> bool:
    if isinstance(value, Number):
        return float(value) == 1
    return value is True or (isinstance(value, str) and value.strip().lower() in ("1", "true"))


def _is_zero(value: Any) -> bool:
    if isinstance(value, Number):
        return float(value) == 0
    return value is False or (isinstance(value, str) and value.strip().lower() in ("0", "false"))


def _is_nothing(value: Any, numbers: frozenset[str] = frozenset()) -> bool:
    if value in (None, "", [], {}) or _is_zero(value):
        return True
    if not isinstance(value, str):
        return False
    is_none = not value.strip("0 ") or value.lower() in ("none", "null", "ninguno")
    return is_none or tokenize(value).is_all(words.GOOD, numbers=numbers)


_WHOLE = re.compile(r"[0-9]{1,9}(\.0+)?", re.ASCII)


def _whole(value: Any) -> int | None:
    """Return a whole number that is not negative, or None."""
    return int(float(value)) if isinstance(value, str) and _WHOLE.fullmatch(value) else None


_PHONE = re.compile(r"[0-9\s()+.-]+", re.ASCII)


def _is_echo(echoes: frozenset[str], value: Any) -> bool:
    """Return whether a value repeats a value of the request, or a recipient's number in any spelling."""
    return isinstance(value, str) and (
        value in echoes or (_PHONE.fullmatch(value) is not None and digits_of(value) in echoes)
    )


def _text(value: Any) -> str:
    """Return a value as text; null, an object or an array is an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ""


# --- fields


_MESSAGES = frozenset(
    "msg message mensaje mensagem detail detalle description descripcion descricao reason motivo result resultado info "
    "note warning mode modo".split()
)
"""Fields that contain a message in words."""
_COUNTS = frozenset("recipient count number".split())
"""Fields of how many, or which, people get the message."""
_WHO = frozenset("to number mobile msisdn recipient destination".split())
"""Fields of who gets the message."""
_NO_IDS = frozenset(
    "code codigo error errno statu state request trace fbtrace api count price time timestamp total info instance "
    "retcode result".split()
)
"""Words in the name of a field that contains no id of a message."""


class _Name:
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
        self.is_number_of_people = self.is_good or words.VERIFIED.among(self.words)
        self.is_about_people = self.is_count or self.is_who or self.is_number_of_people
        self.is_code = not self.words.isdisjoint({"code", "codigo", "statu"})
        self.may_be_id = self.words.isdisjoint(_NO_IDS)


@lru_cache(maxsize=512)
def _name(name: str, of_block: bool) -> _Name:
    return _Name(name, of_block)


class _Field(NamedTuple):
    """A field that is not an object or a filled array.

    ``is_error`` means that its name, or the name of an enclosing object, describes a failure. ``is_echo`` means that
    one of these names is in `ECHOES`.
    """

    name: _Name
    value: Any
    is_error: bool
    is_echo: bool


def _fields(content: Any, *, of_block: bool = False) -> list[_Field]:
    """Return every field at any depth. An element of an array has the name of the array."""
    fields: list[_Field] = []
    waiting = [_Field(_name("", of_block), content, is_error=False, is_echo=False)]
    for name, value, is_error, is_echo in waiting:  # grows meanwhile
        if isinstance(value, dict):
            for inner_name, inner in value.items():
                meaning = _name(words.cut(inner_name), of_block)
                waiting.append(_Field(meaning, inner, is_error or meaning.is_error, is_echo or meaning.is_echo))
        elif isinstance(value, list) and value:
            waiting += [_Field(name, inner, is_error, is_echo) for inner in value]
        else:
            fields.append(_Field(name, value, is_error, is_echo))
    return fields


def _text_of(content: Any, echoes: frozenset[str] = frozenset()) -> Text:
    """Return the words of all texts at any depth, read together."""
    return words.together(
        tokenize(field.value)
        for field in _fields(content)
        if isinstance(field.value, str) and not field.is_echo and not _is_echo(echoes, field.value)
    )


def _stated(content: Object) -> list[Any]:
    """Return the `status` and `state` of an object."""
    return [content[name] for name in ("status", "state") if content.get(name) not in (None, "", [], {})]


# --- sends and changes


def sent(request: RequestParts, http_status: int, document: Any, size: int = MAX_READ) -> Judgement:
    """Return the outcome of each recipient of a send or change. ``document`` is None if there is no whole JSON.

    ``size`` is the number of bytes of the response: a small response cannot be too long.
    """
    if size >= MAX_READ and _is_too_long(document, request):
        return _unknown(request)
    if http_status in REFUSALS or http_status == RATE_LIMITED:
        is_good = isinstance(document, (dict, list)) and any(
            _is_good(request, field) for field in _fields(document, of_block=request.is_block)
        )
        return _unknown(request) if is_good else _refused(request, document)
    is_success = is_whole_success(http_status)
    if not (is_success or http_status in EXPLAINED) or not isinstance(document, (dict, list)):
        return _unknown(request)
    if request.is_link and is_success:
        links = [inner for inner in objects(document) if not _is_nothing(inner.get("urlShort"), request.numbers)]
        if links:
            return _of_links(request, document, links)
    outer = document if isinstance(document, dict) else {"data": document}
    data = outer.get("data")
    entries = entries_of(data, request.known_phones)
    # The rest of too many entries may contradict the others.
    is_cut = isinstance(data, (dict, list)) and len(entries) == MAX_ENTRIES * len(request.phones) < len(data)
    if is_cut or (not entries and data is document):  # an array without a record
        return _unknown(request)
    record = _Record(request, {name: value for name, value in outer.items() if name != "data" or not entries})
    verdicts = [record.verdict(entry) for entry in entries or [record.own]]
    are_refused = all(verdict.outcome == REFUSED for verdict in verdicts)
    if are_refused and record.is_refused(record.own) and not _has_id(request, document):
        return _refused(request, document)
    if not is_success or (not entries and data is not None):
        return _unknown(request)
    judgement = _of_entries(record, entries, verdicts)
    if request.is_link and judgement.outcomes[0].outcome == ACCEPTED:  # without the short URL
        return _unknown(request)
    return judgement


def is_whole_success(http_status: int) -> bool:
    """Return whether a status is that of a successful request with a whole response."""
    return 200 <= http_status < 300 and http_status != PARTIAL_CONTENT


def _unknown(request: RequestParts, doubt: Doubt | None = None) -> Judgement:
    return Judgement([Outcome(phone, UNKNOWN, doubt=doubt) for phone in request.phones])


def _refused(request: RequestParts, document: Any) -> Judgement:
    error = service_message(document)
    return Judgement([Outcome(phone, REFUSED, error=error) for phone in request.phones], is_refused=True)


def _is_good(request: RequestParts, field: _Field) -> bool:
    """Return whether a field means that something was done, under a status of a refusal."""
    name, value = field.name, field.value
    if name.is_status and _accepts(request, value):
        return True
    if _is_one(value) or 0 < (_whole(value) or 0) <= len(request.phones):
        return name.is_good
    is_text = isinstance(value, str) and not isinstance(value, Number)
    is_echo = name.is_echo or _is_echo(request.echoes, value)
    return is_text and not is_echo and _accepts(request, value)


def _is_too_long(document: Any, request: RequestParts) -> bool:
    """Return whether a response has more text and values than a send can need."""
    left = MAX_READ + MAX_READ_EACH * len(request.phones)
    for value in values(document):
        left -= 2
        if isinstance(value, str) and value not in request.echoes:
            left -= len(value)
        if left < 0:
            return True
    return False


def _accepts(request: RequestParts, value: Any) -> bool:
    """Return whether a value means acceptance: 1, or only words of `GOOD`."""
    if _is_one(value) or request.added.has("accepted", _text(value)):
        return True
    return isinstance(value, str) and tokenize(value, of_block=request.is_block).is_all(
        words.GOOD, numbers=request.numbers
    )


_ID = re.compile(r"\S*[1-9]\S*")


def _has_id(request: RequestParts, content: Any) -> bool:
    """Return whether a field may be an id: a number or one word with a digit, in a field that may contain one."""
    return any(
        field.name.may_be_id
        and not field.name.is_echo
        and _ID.fullmatch(_text(field.value)) is not None
        and not _is_echo(request.echoes, field.value)
        for field in _fields(content)
    )


_ERROR_CODE = re.compile(r"-[0-9]+(\.[0-9]+)?|[45][0-9][0-9](\.0+)?", re.ASCII)
"""A code of 400 to 599, or below 0."""


def _contradicts(request: RequestParts, field: _Field) -> bool:
    """Return whether a field contradicts an acceptance."""
    name, value = field.name, field.value
    if name.is_about_people and _is_about_others(request, name, value):
        return True
    if request.added.has("accepted", _text(value)):
        return False
    if field.is_error and not _is_nothing(value, request.numbers):
        return True
    is_echo = name.is_echo or (request.is_call and name.text == "message")
    if is_echo or name.is_error or _is_echo(request.echoes, value):
        return False
    if _is_zero(value):
        return name.is_good or name.is_status
    if not isinstance(value, str):
        return False
    if name.is_code and _ERROR_CODE.fullmatch(value):
        return True
    if isinstance(value, Number) or _accepts(request, value):
        return False
    is_message = name.is_message and not request.is_link
    return tokenize(value).is_doubtful or (is_message and not tokenize(value, of_block=request.is_block).is_known)


def _is_about_others(request: RequestParts, name: _Name, value: Any) -> bool:
    """Return whether a field reports no recipients, another recipient, or only a part of them."""
    if name.is_count and (value == [] or _is_zero(value)):
        return True
    if name.is_who and isinstance(value, str) and _is_of_stranger(request, value):
        return True
    return name.is_number_of_people and 1 < (_whole(value) or 0) < len(request.phones)


def _is_of_stranger(request: RequestParts, numbers: str) -> bool:
    """Return whether one of the numbers, separated by commas, is of no recipient."""
    for number in numbers.split(","):
        if not request.recipients.among(number) and len(digits_of(number)) >= MIN_SHARED_DIGITS:
            # The user's own body may contain a number that msgctl does not know as the recipient's.
            return None not in request.phones or not _is_echo(request.echoes, numbers)
    return False


def _contradiction(request: RequestParts, content: Any) -> _Field | None:
    fields = _fields(content, of_block=request.is_block)
    return next((field for field in fields if _contradicts(request, field)), None)


_ID_WITHOUT_STATUS = re.compile(r"(?=.*[1-9])[A-Za-z0-9][A-Za-z0-9_.:@/+=-]{5,}")
_AN_ID = "m100001"
_USUAL_ID = re.compile(r"(?=.*[1-9])(?:[a-z]?[0-9]+|(?!-)[0-9-]*[a-f][0-9a-f-]*)")


def _is_usual(own_id: Any) -> bool:
    """Return whether an id is a number, a number after a letter, or a UUID, which do not influence the outcome."""
    if not isinstance(own_id, str) or not 6 <= len(own_id) <= 64 or not _USUAL_ID.fullmatch(own_id):
        return False
    return "bad" not in own_id and "added" not in own_id  # the only words of a list with such letters


class _Verdict(NamedTuple):
    """The outcome of an entry, its status, and the field that made the outcome unknown."""

    outcome: str
    status: str | None
    doubt: Doubt | None


class _Record:
    """The record of a send, without its entries (``own``), and the table of outcomes of the record or its entries."""

    def __init__(self, request: RequestParts, own: Object) -> None:
        self.request = request
        self.own = own
        self._stated = _stated(own)
        self._verdicts: dict[object, _Verdict] = {}

    def verdict(self, entry: Object) -> _Verdict:
        """Return the verdict on an entry. Entries that differ only in their id and echoes are judged once."""
        own_id = entry.get("id", _AN_ID)
        types = tuple(map(type, entry.values()))  # the number 1.0 means acceptance, the equal text does not
        if not _is_usual(own_id) or own_id in self.request.echoes or dict in types or list in types:
            return self._verdict(entry)
        names = tuple(entry)
        kind = (names, types, _others(names)(entry))
        verdict = self._verdicts.get(kind)
        if verdict is None:
            verdict = self._verdicts[kind] = self._verdict(entry)
        return verdict

    def _verdict(self, entry: Object) -> _Verdict:
        status = next((text_to_store(value) for value in _stated(entry) if is_plain(value)), None)
        if self.is_refused(entry):
            return _Verdict(REFUSED, status, None)
        if self._is_accepted(entry):
            return _Verdict(ACCEPTED, status, None)
        return _Verdict(UNKNOWN, status, self._doubt(entry))

    def _is_accepted(self, entry: Object) -> bool:
        """Return whether an entry, or the record itself, was accepted."""
        if stated := _stated(entry) + self._stated:
            is_good = all(_accepts(self.request, value) for value in stated)
        else:
            own_id = entry.get("id")
            is_id = isinstance(own_id, str) and _ID_WITHOUT_STATUS.fullmatch(own_id) is not None
            is_good = is_id and not _is_echo(self.request.echoes, own_id)
        if not is_good or self._contradiction:
            return False
        return _contradiction(self.request, entry) is None

    @cached_property
    def _contradiction(self) -> _Field | None:
        return _contradiction(self.request, self.own)

    def is_refused(self, content: Object) -> bool:
        """Return whether an entry, or the record itself, was refused: nothing was done."""
        request, stated = self.request, _stated(content)
        if any(_accepts(request, value) for value in stated):
            return False
        is_added = any(request.added.has("refused", _text(value)) for value in stated)
        is_failed = is_added or any(isinstance(value, str) and tokenize(value).fails() for value in stated)
        may_have_id = is_failed and content is not self.own
        if not may_have_id and _has_id(request, content):
            return False
        if is_added and not any(_accepts(request, field.value) for field in _fields(content) if not field.is_echo):
            return True
        return _text_of(content, request.echoes).fails(with_reason=not is_failed)

    def _doubt(self, entry: Object) -> Doubt | None:
        """Return the field that makes the outcome of an entry unknown."""
        for content in (entry, self.own):
            for name in ("status", "state"):
                value = content.get(name)
                if is_plain(value) and not _accepts(self.request, value):
                    return Doubt(name, _text(value))
        return _doubt(_contradiction(self.request, entry) or self._contradiction)

    def described(self, entry: Object, verdict: _Verdict, phone: str | None) -> Outcome:
        """Return an outcome with the fields of its entry. An entry without an id has the id of its dispatch."""
        outcome, status, doubt = verdict
        own_id = text_to_store(entry.get("id")) or text_to_store(self.own.get("id"))
        phone = phone or text_to_store(entry.get("phone"))
        error = service_message(entry) if outcome != ACCEPTED else None
        return Outcome(phone, outcome, own_id, status, millionths(text_to_store(entry.get("credits"))), error, doubt)


@lru_cache(maxsize=64)
def _others(names: tuple[str, ...]) -> Callable[[Object], object]:
    """Return a function that returns the fields of an entry that differ between outcomes."""
    others = [name for name in names if name != "id" and (name == "to" or name not in ECHOES)]
    return itemgetter(*others) if others else len


def _doubt(contradiction: _Field | None) -> Doubt | None:
    """Return a contradiction as a doubt."""
    if contradiction is None:
        return None
    value = contradiction.value
    return Doubt(contradiction.name.text, "[]" if value == [] else _text(value))


def _of_links(request: RequestParts, document: Any, links: Sequence[Object]) -> Judgement:
    """Return the outcome of a response with objects that contain a short URL of any form."""
    contradiction = _contradiction(request, document)
    short = links[0]["urlShort"]
    is_text = isinstance(short, str) and not isinstance(short, Number) and len(short.split()) == 1
    if contradiction or len(links) > 1 or not is_text or short == links[0].get("urlLong"):
        return _unknown(request, _doubt(contradiction))
    return Judgement([Outcome(phone, ACCEPTED) for phone in request.phones])


def is_passing_fault(document: Any) -> bool:
    """Return whether the response to a read with status 400 or 520 is about a breakdown that may pass."""
    if not isinstance(document, dict) or _is_too_long(document, NO_RECIPIENTS):
        return True
    text = _text_of(document)
    return words.OPEN.among(text.words) and not words.FAILED.among(text.words) and not words.REASON.among(text.negated)


def may_use_up(document: Any) -> bool:
    """Return whether the response to a code, with status 400 or 520, is about a breakdown that may use it up."""
    text = _text_of(document).words
    return words.OPEN.among(text) and not any(bad.among(text) for bad in (words.FAILED, words.REASON, words.NEGATION))


# --- who


def _of_entries(record: _Record, entries: Sequence[Object], verdicts: Sequence[_Verdict]) -> Judgement:
    """Return the outcome of each recipient from the entries with its number, or from a record without entries.

    The record applies to all recipients, unless it contains a phone. Without an entry, or if entries disagree, the
    outcome is unknown.
    """
    phones, numbers = record.request.phones, record.request.recipients
    is_for_all = not entries or len(entries) == len(phones) == 1
    claimed: dict[str | None, Outcome] = {}
    stranger: Doubt | None = None
    lists: set[tuple[str, str]] = set()  # a hostile response repeats a list of all recipients in every entry
    for entry, verdict in zip(entries or [record.own], verdicts, strict=True):
        phone_text = _text(entry.get("phone"))
        if (phone_text, verdict.outcome) in lists:
            continue
        named: Sequence[str | None] = numbers.among(phone_text)
        if is_for_all and ("phone" not in entry or phones[0] is None):
            named = phones
        for place, phone in enumerate(named):
            described = record.described(entry, verdict, phone)
            if len(named) > 1:
                described = described._replace(credits=share(described.credits, len(named), place))
            if claimed.setdefault(phone, described).outcome != described.outcome:
                claimed[phone] = Outcome(phone, UNKNOWN)
        if named:
            lists.add((phone_text, verdict.outcome))
        else:
            stranger = Doubt("phone", phone_text)
    return Judgement([claimed.get(phone) or Outcome(phone, UNKNOWN, doubt=stranger) for phone in phones])


# --- 2fa verify


def doubt_of_code(request: RequestParts, document: Any) -> Doubt | None:
    """Return the field of a 2xx response that does not confirm the code; None if each confirms it or has no meaning."""
    for content in objects(document):
        for name in RESULTS:
            if name in content and not _verifies(request, content[name]):
                return Doubt(name, _text(content[name]))
    fields = _fields(document)
    for field in fields:
        if not field.name.is_result and not _is_harmless(request, field):
            return _doubt(field)
    elements = [element for array in values(document) if isinstance(array, list) for element in array]
    if any(field.name.is_result for field in fields) and all(isinstance(element, dict) for element in elements):
        return None
    return Doubt("status", "")


def _verifies(request: RequestParts, value: Any) -> bool:
    """Return whether a value confirms a code: 1, a text of the profile, or words of `VERIFIED` about a code."""
    if _is_one(value) or request.added.has("verified", _text(value)):
        return True
    if not isinstance(value, str):
        return False
    text = tokenize(value)
    return text.is_all(words.VERIFIED, numbers=request.numbers) and not words.NOT_A_CODE.among(text.words)


# Names and values without a meaning for a code.
_NEUTRAL = frozenset("id sid uuid reference date datetime at expire attempt created channel credit".split())
_NEUTRAL_VALUE = re.compile(
    r"-?\d+(\.\d+)?|\d{4}-\d\d-\d\d[^\s/]*( [^\s/]+)?|(?=\S*\d)[\w.:@+=-]+|sms|call|voice|whatsapp", re.IGNORECASE
)


def _is_harmless(request: RequestParts, field: _Field) -> bool:
    """Return whether a field does not contradict a code that is verified."""
    name, value = field.name, field.value
    if value in (None, "", []):
        return True
    if name.is_failure or "error" in name.words:
        return _is_zero(value)
    is_about_it = not _is_one(value) or words.VERIFIED.among(name.words)
    if (_verifies(request, value) and is_about_it) or _is_echo(request.echoes, value):
        return True
    if name.words.isdisjoint(_NEUTRAL) or not _NEUTRAL_VALUE.fullmatch(_text(value)):
        return False
    text = tokenize(_text(value)).words
    return not any(bad.among(text) for bad in (words.FAILED, words.OPEN, words.ERROR, words.NEGATION))


# --- delivery states


class Delivery(StrEnum):
    """The class of a delivery state. All but the first are final."""

    ON_ITS_WAY = "on its way"
    NOT_ANSWERED = "not answered"
    FAILED = "failed"
    DELIVERED = "delivered"


@lru_cache(maxsize=256)
def classify(state: str, added: AddedWords) -> Delivery:
    """Return the class of a delivery state; an unknown state is on its way."""
    if added.has("delivered", state):
        return Delivery.DELIVERED
    if added.has("failed", state):
        return Delivery.FAILED
    text = tokenize(state)
    if text.is_all(words.DELIVERED, words.VERIFIED) and not words.NOT_A_DELIVERY.among(text.words):
        return Delivery.DELIVERED
    is_unanswered = words.ALONE.among(text.plain) or words.NO_ANSWER.among(text.negated)
    if is_unanswered and text.is_all(words.NO_ANSWER, words.NEGATION):
        return Delivery.NOT_ANSWERED
    return Delivery.FAILED if text.fails() else Delivery.ON_ITS_WAY


def is_final(state: str, added: AddedWords) -> bool:
    """Return whether a state is final."""
    return classify(state, added) is not Delivery.ON_ITS_WAY


def reaches(state: str, goal: str, added: AddedWords) -> bool:
    """Return whether a message in a state has reached a goal, "sent" or "delivered"."""
    if classify(state, added) is Delivery.DELIVERED:
        return True
    text = tokenize(state)
    return goal == "sent" and text.is_all(words.GOOD) and words.SENT.among(text.words)


def state_of(message: Object, added: AddedWords) -> str | None:
    """Return the delivery state of a message, or None.

    If another field contradicts a delivery, the state says so, and is on its way.
    """
    state = text_to_store(message.get("state"))
    if state is None or not (reaches(state, "delivered", added) and (denial := _denial(message))):
        return state
    return f"{state}, but {shorten(denial.field, 60)} is {shorten(denial.value, 60)}"


def _denial(message: Object) -> Doubt | None:
    """Return a field beside a state which says that the message was not delivered."""
    for name, value in message.items():
        meaning = _name(words.cut(name), False)
        is_error = words.ERROR.among(meaning.words) and not _is_nothing(value)
        is_machine = name == "answered_by" and value not in ("human", "", None)
        if is_error or is_machine or (meaning.is_good and _is_zero(value)):
            return Doubt(name, _text(value))
    return None


def states(messages: Sequence[Object], phones: Sequence[str], added: AddedWords) -> list[str | None]:
    """Return the delivery state of each phone, or None, from the messages with the requested id.

    A message belongs to the recipient whose number it contains, or else to all recipients with the id. Several states
    of one recipient count only if they agree.
    """
    numbers = RecipientFinder(phones)
    of_phone: dict[str | None, list[str]] = {}
    for message in messages:
        state = state_of(message, added)
        if state is not None:
            named: Sequence[str | None] = numbers.among(message.get("phone")) or [None]
            for phone in named:
                of_phone.setdefault(phone, []).append(state)
    result = [of_phone.get(phone) or of_phone.get(None, []) for phone in phones]
    return [texts[-1] if len({classify(text, added) for text in texts}) == 1 else None for texts in result]


# --- credits


_CREDITS = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,19})?", re.ASCII)
_NUMBER_OF_CREDITS = re.compile(rf"{_CREDITS.pattern}([eE][+-]?[0-9])?", re.ASCII)


def credits_left(document: Any) -> Decimal | None:
    """Return the credits left in a response to `balance`; None if it does not contain them."""
    from decimal import Decimal  # most commands do not need it

    records = list(levels(document))
    named = [record[name] for record in records for name in ("balance", "credits", "saldo") if name in record]
    if not named and records and [*records[0]] == ["status"] and not str(records[0]["status"]).startswith("-"):
        named = [records[0]["status"]]
    has_error = any(not _is_nothing(content.get("error")) for content in objects(document))
    if not named or has_error or not isinstance(named[0], str):
        return None
    pattern = _NUMBER_OF_CREDITS if isinstance(named[0], Number) else _CREDITS
    text = named[0].strip()
    return Decimal(text) if pattern.fullmatch(text) else None
