"""The meaning of a response: outcomes of a send, a verified code, delivery states and credits.

A response is certain, or its outcome is unknown. A document is JSON of `msgctl.jsontext.load_json`, whose numbers are
strings of type `Number`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from msgctl.jsontext import Number, objects, values
from msgctl.outcomes import words
from msgctl.outcomes.record import RESULTS, Object, entries_of, is_plain, levels, service_message, stored
from msgctl.outcomes.words import (
    ALONE,
    CARRIER,
    DELIVERED,
    ERROR,
    FAILED,
    GOOD,
    NEGATION,
    NO_ANSWER,
    SENT,
    VERIFIED,
    is_added,
    read,
)

if TYPE_CHECKING:
    from decimal import Decimal

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"

REFUSALS = frozenset({301, 307, 308, 401, 402, 403, 404, 405, 413, 415, 422})
"""HTTP statuses of a request that was not carried out."""
RATE_LIMITED = 429
"""The HTTP status of a request that was turned away for now."""
EXPLAINED = frozenset({400, 520})
"""HTTP statuses of a refusal, if the response gives a reason."""
ECHOES = frozenset("sms text texto body voice phone to name nombre urlLong".split())
"""Fields that repeat the request."""

MAX_READ = 250_000
"""Maximum characters of the texts in a response to a send, and two for each value. A longer one is unknown."""
MAX_READ_EACH = 200
"""Characters of a response that each recipient adds to `MAX_READ`."""
MIN_DIGITS = 7
"""Minimum digits of a number that may lack its country code."""


class RequestParts(NamedTuple):
    """The parts of a request that a response may repeat.

    ``phones`` are the recipients; None is a recipient whom only the user's own body specifies. ``echoes`` are all
    values and the phones. ``numbers`` are the values that a good text may contain: phones, the code, and the number of
    recipients.
    """

    phones: Sequence[str | None]
    echoes: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    is_block: bool = False
    is_link: bool = False

    @property
    def known_phones(self) -> list[str]:
        """The recipients whose numbers are known."""
        return [phone for phone in self.phones if phone]


NO_RECIPIENTS = RequestParts([None])
"""A request without known recipients."""


CREDIT = 1_000_000
"""The unit of credits in outcomes and in the store: a service may charge fractions, and sums of integers are exact."""
MAX_CREDITS = 10**12
"""Maximum credits of one recipient; more is an error of the service. The sum for a million recipients fits into 64
bits.
"""


class Outcome(NamedTuple):
    """The outcome of one recipient: accepted, refused or unknown.

    ``phone`` is the number in the request, or in the entry if the request has none. ``id``, ``status`` and ``error``
    are text as the service sent it. ``credits`` are millionths; those of an entry with several recipients are divided
    among them. ``word`` is the text that made the outcome unknown.
    """

    phone: str | None
    outcome: str
    id: str | None = None
    status: str | None = None
    credits: int | None = None
    error: str | None = None
    word: str | None = None


def millionths(credits: str | None) -> int | None:
    """Return the credits in a response; None for none, a negative number or more than twelve digits."""
    # Fast path for the usual case: it takes a tenth of the time.
    if credits is not None and len(credits) == 1 and "0" <= credits <= "9":
        return int(credits) * CREDIT
    from decimal import Decimal, InvalidOperation  # most charges are one digit

    try:
        amount = Decimal(credits or "")
    except InvalidOperation:
        return None
    return round(amount * CREDIT) if amount.is_finite() and 0 <= amount < MAX_CREDITS else None


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


def _is_nothing(request: RequestParts, value: Any) -> bool:
    if value in (None, "", [], {}) or _is_zero(value):
        return True
    if not isinstance(value, str):
        return False
    is_none = not value.strip("0 ") or value.lower() in ("none", "null", "ninguno")
    return is_none or read(value).is_all(GOOD, numbers=request.numbers)


_PHONE = re.compile(r"[0-9\s()+.-]+", re.ASCII)
_NO_DIGITS = re.compile("[^0-9]+")


def _is_echo(request: RequestParts, value: Any) -> bool:
    """Return whether a value repeats a value of the request, or a recipient's number in any spelling."""
    return isinstance(value, str) and (
        value in request.echoes or (_PHONE.fullmatch(value) is not None and _digits(value) in request.echoes)
    )


def _digits(text: str) -> str:
    return text if text.isdecimal() and text.isascii() else _NO_DIGITS.sub("", text)


def _text(value: Any) -> str:
    """Return a value as text; null, an object or an array is an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ""


# --- fields


class _Name:
    """The meaning of a field's name."""

    def __init__(self, name: str, of_block: bool) -> None:
        self.words = frozenset(read(name, of_block=of_block).words)
        self.is_echo = name in ECHOES
        self.is_result = name in RESULTS
        self.is_failure = FAILED.among(self.words)
        self.is_error = self.is_failure or ERROR.among(self.words)
        self.is_good = name in ("status", "state") or GOOD.among(self.words)
        self.is_code = not self.words.isdisjoint({"code", "codigo", "statu"})
        self.may_be_id = self.words.isdisjoint({"code", "codigo", "error", "errno", "statu", "state"})


@lru_cache(maxsize=512)
def _name(name: str, of_block: bool) -> _Name:
    return _Name(name, of_block)


class _Field(NamedTuple):
    """A field that is not an object or array. ``is_error`` means that its name, or the name of an enclosing object,
    describes a failure. ``is_echo`` means that one of these names is in `ECHOES`.
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
        elif isinstance(value, list):
            waiting += [_Field(name, inner, is_error, is_echo) for inner in value]
        else:
            fields.append(_Field(name, value, is_error, is_echo))
    return fields


def _stated(content: Object) -> list[Any]:
    """Return the `status` and `state` of an object."""
    return [content[name] for name in ("status", "state") if content.get(name) not in (None, "", [], {})]


# --- sends and changes


def sent(request: RequestParts, http_status: int, document: Any, size: int = MAX_READ) -> Judgement:
    """Return the outcome of each recipient of a send or change. ``document`` is None if there is no whole JSON.

    ``size`` is the number of bytes of the response: a small response cannot be too long.
    """
    if http_status in REFUSALS or http_status == RATE_LIMITED:
        return _unknown(request) if _has_acceptance(request, document) else _refused(request, document)
    is_success = 200 <= http_status < 300
    if not (is_success or http_status in EXPLAINED) or not isinstance(document, (dict, list)):
        return _unknown(request)
    if size >= MAX_READ and _is_too_long(request, document):
        return _unknown(request)
    if request.is_link and is_success and (links := _links(request, document)):
        return _of_links(request, document, links)
    outer = document if isinstance(document, dict) else {"data": document}
    data = outer.get("data")
    entries = entries_of(data, request.known_phones)
    record = _Record(request, {name: value for name, value in outer.items() if name != "data" or not entries})
    verdicts = [record.verdict(entry) for entry in entries]
    are_refused = all(verdict.outcome == REFUSED for verdict in verdicts)
    if are_refused and record.is_refused(record.own) and not _has_id(request, document):
        return _refused(request, document)
    if not is_success or (not entries and data is not None):
        return _unknown(request)
    judgement = _of_entries(record, entries, verdicts) if entries else _of_record(record)
    if request.is_link and judgement.outcomes[0].outcome == ACCEPTED:  # without the short URL
        return _unknown(request)
    return judgement


def _unknown(request: RequestParts, word: str | None = None) -> Judgement:
    return Judgement([Outcome(phone, UNKNOWN, word=word) for phone in request.phones])


def _refused(request: RequestParts, document: Any) -> Judgement:
    error = service_message(document)
    return Judgement([Outcome(phone, REFUSED, error=error) for phone in request.phones], is_refused=True)


def _has_acceptance(request: RequestParts, document: Any) -> bool:
    """Return whether a `status` or `state`, at any depth, is an acceptance."""
    return any(_accepts(request, value) for content in objects(document) for value in _stated(content))


def _is_too_long(request: RequestParts, document: Any) -> bool:
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
    """Return whether a value means acceptance: 1, or only words of `ACCEPTED`."""
    if _is_one(value) or is_added("accepted", _text(value)):
        return True
    return isinstance(value, str) and read(value, of_block=request.is_block).is_all(GOOD, numbers=request.numbers)


def _fails(request: RequestParts, value: Any) -> bool:
    """Return whether a `status` or `state` means that nothing was done."""
    if is_added("refused", _text(value)):
        return True
    return isinstance(value, str) and not _accepts(request, value) and read(value).fails()


_ID = re.compile(r"\S*[1-9]\S*")


def _has_id(request: RequestParts, content: Any) -> bool:
    """Return whether a field may be an id: a number or one word with a digit, in a field that may contain one."""
    return any(
        field.name.may_be_id
        and not field.name.is_echo
        and _ID.fullmatch(_text(field.value)) is not None
        and not _is_echo(request, field.value)
        for field in _fields(content)
    )


_ERROR_CODE = re.compile(r"-[0-9]+(\.[0-9]+)?|[45][0-9][0-9]", re.ASCII)


def _contradicts(request: RequestParts, field: _Field) -> bool:
    """Return whether a field contradicts an acceptance."""
    name, value = field.name, field.value
    if (name.is_echo and not field.is_error) or is_added("accepted", _text(value)):
        return False
    if field.is_error and not _is_nothing(request, value):
        return True
    if _is_zero(value):
        return name.is_good and not name.is_error
    if field.is_error or _is_echo(request, value) or not isinstance(value, str):
        return False
    if name.is_code and _ERROR_CODE.fullmatch(value):
        return True
    return not _accepts(request, value) and read(value).is_doubtful


def _contradiction(request: RequestParts, content: Any) -> _Field | None:
    fields = _fields(content, of_block=request.is_block)
    return next((field for field in fields if _contradicts(request, field)), None)


_ID_WITHOUT_STATUS = re.compile(r"(?=.*[1-9])[A-Za-z0-9][A-Za-z0-9_.:@/+=-]{5,}")
_AN_ID = "m100001"
_USUAL_ID = re.compile(r"(?=.*[1-9])(?:[a-z]?[0-9]+|(?!-)[0-9-]*[a-f][0-9a-f-]*)")


def _is_usual(own_id: Any) -> bool:
    """Return whether an id is a number, a number after a letter, or a UUID: their differences have no influence on the
    outcome.
    """
    if not isinstance(own_id, str) or not 6 <= len(own_id) <= 64 or not _USUAL_ID.fullmatch(own_id):
        return False
    return "bad" not in own_id  # the only word of a list with such letters


class _Verdict(NamedTuple):
    """The outcome of an entry, its status, and the text that made the outcome unknown."""

    outcome: str
    status: str | None
    word: str | None


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
        if not _is_usual(own_id) or own_id in self.request.echoes:
            return self._verdict(entry)
        names = tuple(entry)
        types = tuple(map(type, entry.values()))  # the number 1.0 means acceptance, the equal text does not
        kind = (names, types, _others(names)(entry))
        try:
            verdict = self._verdicts.get(kind)
        except TypeError:  # an array or object cannot be a part of a key
            return self._verdict(entry)
        if verdict is None:
            verdict = self._verdicts[kind] = self._verdict(entry)
        return verdict

    def _verdict(self, entry: Object) -> _Verdict:
        status = next((stored(value) for value in _stated(entry) if is_plain(value)), None)
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
            is_good = is_id and not _is_echo(self.request, own_id)
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
        is_failed = any(_fails(request, value) for value in stated)
        may_have_id = is_failed and content is not self.own
        if not may_have_id and _has_id(request, content):
            return False
        if any(is_added("refused", _text(value)) for value in stated):
            return True
        texts = [
            read(field.value)
            for field in _fields(content)
            if isinstance(field.value, str) and not field.is_echo and not _is_echo(request, field.value)
        ]
        return words.together(texts).fails(with_reason=not is_failed)

    def _doubt(self, entry: Object) -> str | None:
        """Return the text that makes the outcome of an entry unknown, if a profile can add it."""
        for value in (*_stated(entry), *self._stated):
            if is_plain(value) and not _accepts(self.request, value):
                return _text(value)
        return _word(_contradiction(self.request, entry)) or _word(self._contradiction)

    def described(self, entry: Object, verdict: _Verdict, phone: str | None) -> Outcome:
        """Return an outcome with the fields of its entry. An entry without an id has the id of its dispatch."""
        outcome, status, word = verdict
        own_id = stored(entry.get("id")) or stored(self.own.get("id"))
        phone = phone or stored(entry.get("phone"))
        error = service_message(entry) if outcome != ACCEPTED else None
        return Outcome(phone, outcome, own_id, status, millionths(stored(entry.get("credits"))), error, word)


@lru_cache(maxsize=64)
def _others(names: tuple[str, ...]) -> Callable[[Object], object]:
    """Return a function that returns the fields of an entry that differ between outcomes."""
    others = [name for name in names if name not in ("id", "phone")]
    return itemgetter(*others) if others else len


def _word(contradiction: _Field | None) -> str | None:
    """Return the text of a contradiction, if a profile can add it."""
    if contradiction is None or contradiction.is_error or isinstance(contradiction.value, Number):
        return None
    return None if _is_zero(contradiction.value) else _text(contradiction.value)


def _links(request: RequestParts, document: Any) -> list[Object]:
    """Return the objects in a response that contain a short URL of any form."""
    return [content for content in objects(document) if not _is_nothing(request, content.get("urlShort"))]


def _of_links(request: RequestParts, document: Any, links: Sequence[Object]) -> Judgement:
    """Return the outcome of a response with short URLs."""
    contradiction = _contradiction(request, document)
    short = links[0]["urlShort"]
    is_text = isinstance(short, str) and not isinstance(short, Number) and len(short.split()) == 1
    if contradiction or len(links) > 1 or not is_text or short == links[0].get("urlLong"):
        return _unknown(request, _word(contradiction))
    return Judgement([Outcome(phone, ACCEPTED) for phone in request.phones])


def likely_kind(word: str) -> str:
    """Return the kind of words that a text without a certain meaning may belong to: refused or accepted."""
    text = read(word)
    is_failure = FAILED.among(text.words) or ERROR.among(text.words)
    return REFUSED if is_failure and not words.OPEN.among(text.words) else ACCEPTED


def fail(document: Any) -> bool:
    """Return whether the texts in the response to a read, read together, fail; too many texts do not."""
    if _is_too_long(NO_RECIPIENTS, document):
        return False
    texts = [read(field.value) for field in _fields(document) if isinstance(field.value, str) and not field.is_echo]
    return words.together(texts).fails()


# --- who


def _of_record(record: _Record) -> Judgement:
    """Return the outcomes of a record without entries. It applies to all recipients, unless it contains a phone."""
    request, own = record.request, record.own
    verdict = record.verdict(own)
    named: Sequence[str | None] = request.phones
    if "phone" in own and [*request.phones] != [None]:
        named = RecipientFinder(request.phones).among(own["phone"])
    stranger = verdict._replace(outcome=UNKNOWN)
    return Judgement(
        [record.described(own, verdict if phone in named else stranger, phone) for phone in request.phones]
    )


def _of_entries(record: _Record, entries: Sequence[Object], verdicts: Sequence[_Verdict]) -> Judgement:
    """Return the outcome of each recipient from the entries with its number.

    Without an entry, or if entries disagree, it is unknown.
    """
    phones = record.request.phones
    numbers = RecipientFinder(phones)
    is_only = len(entries) == len(phones) == 1
    claimed: dict[str | None, Outcome] = {}
    lists: set[tuple[str, str]] = set()  # a hostile response repeats a list of all recipients in every entry
    for entry, verdict in zip(entries, verdicts, strict=True):
        phone_text = _text(entry.get("phone"))
        if (phone_text, verdict.outcome) in lists:
            continue
        named: Sequence[str | None] = numbers.among(phone_text)
        if is_only and ("phone" not in entry or phones[0] is None):
            named = phones
        for place, phone in enumerate(named):
            described = record.described(entry, verdict, phone)
            if len(named) > 1:
                described = described._replace(credits=_share(described.credits, len(named), place))
            if claimed.setdefault(phone, described).outcome != described.outcome:
                claimed[phone] = Outcome(phone, UNKNOWN)
        if named:
            lists.add((phone_text, verdict.outcome))
    outcomes = [claimed.get(phone) or Outcome(phone, UNKNOWN) for phone in phones]
    return Judgement(outcomes)


def _share(credits: int | None, number: int, place: int) -> int | None:
    """Return one recipient's share of the credits of an entry, so that they count once.

    Whole credits are divided into whole credits, because a message costs whole credits.
    """
    if credits is None:
        return None
    unit = 1 if credits % CREDIT else CREDIT
    share, rest = divmod(credits // unit, number)
    return (share + (place < rest)) * unit


class RecipientFinder:
    """Recipients, found by their numbers in a response, which may lack the country code."""

    def __init__(self, phones: Sequence[str | None]) -> None:
        self._by_end: dict[str, list[str]] = {}
        for phone in phones:
            if phone and (end := _digits(phone)[-MIN_DIGITS:]):
                self._by_end.setdefault(end, []).append(phone)

    def among(self, phone: Any) -> Sequence[str]:
        """Return the recipients whose numbers are in a `phone`, separated by commas."""
        if not isinstance(phone, str):
            return []
        if self._by_end.get(phone[-MIN_DIGITS:]) == [phone]:  # the usual case, for speed
            return [phone]
        recipients = dict.fromkeys(self._recipient(_digits(part)) for part in phone.split(","))
        return [recipient for recipient in recipients if recipient]

    def _recipient(self, digits: str) -> str | None:
        """Return the only recipient with a number."""
        fits = [phone for phone in self._by_end.get(digits[-MIN_DIGITS:], ()) if _is_same(_digits(phone), digits)]
        return fits[0] if len(fits) == 1 else None


def _is_same(one: str, other: str) -> bool:
    """Return whether two numbers are the same, except that one of them may lack the country code."""
    if min(len(one), len(other)) < MIN_DIGITS:
        return one == other
    return one.endswith(other) or other.endswith(one)


# --- 2fa verify


class Verification(NamedTuple):
    """Whether a code is verified. ``word`` is the text that made it unknown."""

    is_verified: bool
    word: str | None = None


def verified(request: RequestParts, document: Any) -> Verification:
    """Return whether a 2xx response confirms the code, and none of its fields contradicts this."""
    results = [content[name] for content in objects(document) for name in RESULTS if name in content]
    for result in results:
        if not _verifies(request, result):
            return Verification(False, _text(result) or None)
    elements = [element for array in values(document) if isinstance(array, list) for element in array]
    if not results or not all(isinstance(element, dict) for element in elements):
        return Verification(False)
    return Verification(all(field.name.is_result or _is_harmless(request, field) for field in _fields(document)))


def _verifies(request: RequestParts, value: Any) -> bool:
    """Return whether a value confirms a code: 1, a text of the profile, or words of `VERIFIED`."""
    if _is_one(value) or is_added("verified", _text(value)):
        return True
    return isinstance(value, str) and read(value).is_all(VERIFIED, numbers=request.numbers)


# Names and values without a meaning for a code.
_NEUTRAL = frozenset({"id", "expire", "attempt", "created", "channel", "credit"})
_NEUTRAL_VALUE = re.compile(
    r"-?\d+(\.\d+)?|\d{4}-\d\d-\d\d\S*( \S+)?|(?=\S*\d)[\w.:@/+=-]+|sms|call|voice|whatsapp", re.IGNORECASE
)


def _is_harmless(request: RequestParts, field: _Field) -> bool:
    """Return whether a field does not contradict a code that is verified."""
    name, value = field.name, field.value
    if value in (None, ""):
        return True
    if name.is_failure or "error" in name.words:
        return _is_zero(value)
    if _is_one(value) and VERIFIED.among(name.words):
        return True
    if (_verifies(request, value) and not _is_one(value)) or _is_echo(request, value):
        return True
    return not name.words.isdisjoint(_NEUTRAL) and _NEUTRAL_VALUE.fullmatch(_text(value)) is not None


# --- delivery states


class Delivery(StrEnum):
    """The class of a delivery state. All but the first are final."""

    ON_ITS_WAY = "on its way"
    NOT_ANSWERED = "not answered"
    FAILED = "failed"
    DELIVERED = "delivered"


def classify(state: str) -> Delivery:
    """Return the class of a delivery state; an unknown state is on its way."""
    if is_added("delivered", state):
        return Delivery.DELIVERED
    if is_added("failed", state):
        return Delivery.FAILED
    return _classify(words.cut(state))


@lru_cache(maxsize=256)
def _classify(state: str) -> Delivery:
    text = read(state)
    if text.is_all(DELIVERED, VERIFIED) and not CARRIER.among(text.words):
        return Delivery.DELIVERED
    if text.is_all(NO_ANSWER, NEGATION) and (ALONE.among(text.plain) or NO_ANSWER.among(text.negated)):
        return Delivery.NOT_ANSWERED
    return Delivery.FAILED if text.fails() else Delivery.ON_ITS_WAY


def is_final(state: str) -> bool:
    """Return whether a state is final."""
    return classify(state) is not Delivery.ON_ITS_WAY


def is_delivered(state: str) -> bool:
    """Return whether a state means that the message arrived, or that the call was answered."""
    return classify(state) is Delivery.DELIVERED


def reaches(state: str, goal: str) -> bool:
    """Return whether a message in a state has reached a goal, "sent" or "delivered"."""
    text = read(state)
    return is_delivered(state) or (goal == "sent" and text.is_all(GOOD) and SENT.among(text.words))


def states(messages: Sequence[Object], phones: Sequence[str]) -> list[str | None]:
    """Return the delivery state of each phone, or None, from the messages with the requested id.

    A message belongs to the recipient whose number it contains, or else to all recipients with the id. Several states
    of one recipient count only if they agree.
    """
    numbers = RecipientFinder(phones)
    of_phone: dict[str, list[str]] = {}
    of_id: list[str] = []
    for message in messages:
        state = stored(message.get("state"))
        if state is None:
            continue
        named = numbers.among(message.get("phone"))
        if not named:
            of_id.append(state)
        for phone in named:
            of_phone.setdefault(phone, []).append(state)
    result: list[str | None] = []
    for phone in phones:
        texts = of_phone.get(phone, of_id)
        is_certain = len({classify(text) for text in texts}) == 1
        result.append(texts[-1] if is_certain else None)
    return result


# --- credits


_CREDITS = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?", re.ASCII)
_NUMBER_OF_CREDITS = re.compile(rf"{_CREDITS.pattern}([eE][+-]?[0-9])?", re.ASCII)


def credits_left(document: Any) -> Decimal | None:
    """Return the credits left in a response to `balance`; None if it does not contain them."""
    from decimal import Decimal  # most commands do not need it

    records = list(levels(document))
    named = [record[name] for record in records for name in ("balance", "credits", "saldo") if name in record]
    if not named and records and [*records[0]] == ["status"] and not str(records[0]["status"]).startswith("-"):
        named = [records[0]["status"]]
    has_error = any(not _is_nothing(NO_RECIPIENTS, content.get("error")) for content in objects(document))
    if not named or has_error or not isinstance(named[0], str):
        return None
    pattern = _NUMBER_OF_CREDITS if isinstance(named[0], Number) else _CREDITS
    text = named[0].strip()
    return Decimal(text) if pattern.fullmatch(text) else None
