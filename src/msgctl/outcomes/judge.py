"""What a response means: sent? verified? which state? how many credits? One function per question.

A response is certain, or its outcome is unknown. A document is JSON of `msgctl.jsontext.load_json`, whose numbers are
strings of type `Number`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from msgctl.jsontext import Number, objects
from msgctl.outcomes import words
from msgctl.outcomes.record import RESULTS, Object, entries_of, is_plain, levels, service_message
from msgctl.outcomes.words import ACCEPTED as ACCEPTED_WORDS
from msgctl.outcomes.words import CARRIER, DELIVERED, FAILED, OPEN, SENT, VERIFIED, read
from msgctl.text import storable

if TYPE_CHECKING:
    from decimal import Decimal

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"

MAX_READ = 250_000
"""Maximum characters of all texts in a response to a send; the outcome of a longer one is unknown."""
MAX_NAME = 200
"""Maximum characters of a name that is read; a field with a longer one counts as an error."""
MAX_STATE = 1_000
"""Maximum characters of a delivery state that is read."""
MAX_UNCLAIMED = 100
"""Maximum entries without a recipient that are kept."""
MAX_CREDIT_DIGITS = 12
"""Maximum digits of one recipient's credits, so that the sum for a million recipients fits into 64 bits."""
MIN_DIGITS = 7
"""Minimum digits of a number that may lack its country code."""
MAX_VALUES = 100_000
"""Maximum values of a response to a send; the outcome of a longer one is unknown."""

REFUSALS = frozenset({301, 307, 308, 401, 402, 403, 404, 405, 413, 415, 422})
"""HTTP statuses of a request that was not carried out."""
RATE_LIMITED = 429
"""The HTTP status of a request that was turned away for now."""
EXPLAINED = frozenset({400, 520})
"""HTTP statuses of a refusal, if the response gives a reason."""
ECHOES = frozenset("sms text texto body voice phone to name nombre urlLong".split())
"""Fields that repeat the request."""
CREDITS = ("balance", "credits", "saldo")
"""Names of the field with the credits left."""

_STATES = ("status", "state")
_CODES = frozenset({"code", "codigo", "statu"})
_NOT_OF_IDS = frozenset({"code", "codigo", "error", "errno", "statu", "state"})
_ERROR_CODE = re.compile(r"-[0-9]+(\.[0-9]+)?|[45][0-9][0-9]", re.ASCII)
_PHONE = re.compile(r"[0-9\s()+.-]+", re.ASCII)
_NO_DIGITS = re.compile("[^0-9]+")
_ID = re.compile(r"\S*[1-9]\S*")
_ID_WITHOUT_STATUS = re.compile(r"(?=.*[1-9])[A-Za-z0-9][A-Za-z0-9_.:@/+=-]{5,}")
_CHARGED = re.compile(rf"([0-9]{{1,{MAX_CREDIT_DIGITS}}})(?:\.([0-9]+))?", re.ASCII)
_USUAL_ID = re.compile(r"(?=[0a-f-]*[1-9])[0-9a-f-]{6,64}\Z")
_CREDITS = re.compile(r"-?[0-9]{1,19}(\.[0-9]{1,19})?", re.ASCII)
_NUMBER_OF_CREDITS = re.compile(rf"{_CREDITS.pattern}([eE][+-]?[0-9])?", re.ASCII)
# Names and values that say nothing about a code.
_NEUTRAL = frozenset({"id", "expire", "attempt", "created", "channel", "credit"})
_NEUTRAL_VALUE = re.compile(
    r"-?\d+(\.\d+)?|\d{4}-\d\d-\d\d\S*( \S+)?|(?=\S*\d)[\w.:@/+=-]+|sms|call|voice|whatsapp", re.IGNORECASE
)


class Sent(NamedTuple):
    """The parts of a request that a response may repeat.

    ``phones`` are the recipients; None is a recipient whom only the user's own body specifies. ``echoes`` are all
    values and the phones, and ``numbers`` those that may be part of a good text: phones, the code, how many recipients.
    """

    phones: Sequence[str | None]
    echoes: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    is_block: bool = False

    @property
    def known_phones(self) -> list[str]:
        """The recipients whose numbers are known."""
        return [phone for phone in self.phones if phone]


NOBODY = Sent([None])
"""A request without known recipients."""


class RecipientOutcome(NamedTuple):
    """The outcome of one recipient: accepted, refused or unknown. The other fields are text as the service sent it.

    ``phone`` is the number in the request, or in the entry if the request has none. ``credits`` of an entry with
    several recipients are divided among them. ``word`` is the text that made the outcome unknown.
    """

    phone: str | None
    outcome: str
    id: str | None = None
    status: str | None = None
    credits: str | None = None
    error: str | None = None
    word: str | None = None


class Delivery(StrEnum):
    """The class of a delivery state. All but the first are final."""

    ON_ITS_WAY = "on its way"
    NOT_ANSWERED = "not answered"
    FAILED = "failed"
    DELIVERED = "delivered"


class Judgement(NamedTuple):
    """The outcome of each recipient. ``is_refused`` means that the request was refused as a whole.

    ``unclaimed`` are outcomes of entries that belong to no recipient, kept for their ids.
    """

    outcomes: Sequence[RecipientOutcome]
    is_refused: bool = False
    unclaimed: Sequence[RecipientOutcome] = ()


def likely_kind(word: str) -> str:
    """Return the kind of words that a text without a certain meaning may belong to: refused or accepted."""
    found = read(word).words
    is_failure = any(each in FAILED or each.startswith("err") for each in found)
    return REFUSED if is_failure and not OPEN.among(found) else ACCEPTED


# --- was it sent?


def sent(request: Sent, http_status: int, document: Any) -> Judgement:
    """Return the outcome of each recipient of a send or change. ``document`` is None if there is no whole JSON."""
    unknown = Judgement([RecipientOutcome(phone, UNKNOWN) for phone in request.phones])
    if http_status in REFUSALS or http_status == RATE_LIMITED:
        return unknown if _has_acceptance(request, document) else _refused(request, document)
    is_success = 200 <= http_status < 300
    if (
        not (is_success or http_status in EXPLAINED)
        or not isinstance(document, (dict, list))
        or _is_too_long(request, document)
    ):
        return unknown
    record = document if isinstance(document, dict) else {"data": document}
    data = record.get("data")
    entries = entries_of(data, request.known_phones)
    own = _Part(request, {name: value for name, value in record.items() if name != "data" or not entries})
    parts = _parts(request, entries)
    found = {part: part.outcome(own) for part in dict.fromkeys(parts)}
    has_id = own.has_id or any(part.has_id for part in found)
    if own.is_refused and not has_id and set(found.values()) <= {REFUSED}:
        return _refused(request, document)
    if not is_success or (not entries and data is not None):
        return unknown
    if not entries:
        return _of_record(request, own)
    return _of_entries(request, own, [_Entry(*each, found[each[1]]) for each in zip(entries, parts, strict=True)])


def _refused(request: Sent, document: Any) -> Judgement:
    error = service_message(document)
    return Judgement([RecipientOutcome(phone, REFUSED, error=error) for phone in request.phones], is_refused=True)


def _has_acceptance(request: Sent, document: Any) -> bool:
    """Return whether a `status` or `state`, at any depth, is an acceptance."""
    return any(_accepts(request, value) for found in objects(document) for value in _stated(found))


def has_short_url(document: Any) -> bool:
    """Return whether a response contains a short URL of any form."""
    return any(not _is_nothing(NOBODY, each.get("urlShort")) for each in objects(document))


def short_url(request: Sent, document: Any) -> str | None:
    """Return the short URL in a 2xx response to `url shorten`, if it is certain that it was created."""
    found = [(each["urlShort"], each.get("urlLong")) for each in objects(document) if "urlShort" in each]
    found = [(short, long) for short, long in found if not _is_nothing(request, short)]
    if len(found) != 1 or _is_too_long(request, document):
        return None
    short, long = found[0]
    is_url = _is_text(short) and len(short.split()) == 1 and short != long
    return short if is_url and not _Part(request, {"": document}).contradiction else None


def _parts(request: Sent, entries: Sequence[Object]) -> list[_Part]:
    """Return the entries as parts. Entries that differ only in their id and echoes share the fields of one part."""
    alike: dict[object, _Part] = {}
    parts = []
    for entry in entries:
        # A number equals a text with the same digits, but may have another meaning, so each value has its type.
        key = tuple(
            [
                (name, "", None) if name == "id" and _is_usual_id(request, value) else (name, value.__class__, value)
                for name, value in entry.items()
                if name not in ECHOES or isinstance(value, (dict, list))
            ]
        )
        try:
            part = alike.get(key)
        except TypeError:  # an entry that contains an object or array
            parts.append(_Part(request, entry))
            continue
        if part is None:
            part = alike[key] = _Part(request, entry)
        parts.append(part)
    return parts


def _is_usual_id(request: Sent, value: Any) -> bool:
    """Return whether a value is an id that differs from others of this form in nothing that matters."""
    is_usual = isinstance(value, str) and _USUAL_ID.match(value) is not None
    return is_usual and "bad" not in value and value not in request.echoes


class _Part:
    """An entry, or the record without its entries, with its fields at any depth."""

    def __init__(self, request: Sent, content: Object) -> None:
        self.content = content
        self.stated = _stated(content)
        self.status = next((_stored(value) for value in self.stated if is_plain(value)), None)
        self._request = request
        self._fields = [field for field in _fields(content, of_block=request.is_block) if is_plain(field.value)]

    @cached_property
    def has_id(self) -> bool:
        """Whether something may be an id: a number or one word with a digit, in a field that may contain one."""
        return any(
            field.meaning.may_be_id and _ID.fullmatch(_text(field.value)) and not _is_echo(self._request, field.value)
            for field in self._fields
        )

    @cached_property
    def contradiction(self) -> _Field | None:
        """The first field that contradicts an acceptance."""
        return next((field for field in self._fields if self._contradicts(field)), None)

    def _contradicts(self, field: _Field) -> bool:
        request, value, meaning = self._request, field.value, field.meaning
        if (meaning.is_echo and not field.is_error) or words.is_added("accepted", _text(value)):
            return False
        if field.is_error:
            return not _is_nothing(request, value)
        if _is_zero(value):
            return meaning.is_good
        if _is_echo(request, value):
            return False
        if meaning.is_code and _ERROR_CODE.fullmatch(_text(value)):
            return True
        if not _is_text(value) or _accepts(request, value):
            return False
        return read(value).is_doubtful

    @property
    def is_refused(self) -> bool:
        """Whether this record says that nothing was done."""
        return self._is_refused(may_have_id=False)

    def _is_refused(self, *, may_have_id: bool) -> bool:
        request = self._request
        is_failed = any(_fails(request, value) for value in self.stated)
        if any(_accepts(request, value) for value in self.stated) or (self.has_id and not (may_have_id and is_failed)):
            return False
        if any(words.is_added("refused", _text(value)) for value in self.stated):
            return True
        texts = [
            read(field.value)
            for field in self._fields
            if _is_text(field.value) and not field.is_echo and not _is_echo(request, field.value)
        ]
        return words.fail(texts, with_reason=not is_failed)

    def outcome(self, own: _Part) -> str:
        """Return the outcome of this entry in a record, or of the record itself."""
        request = self._request
        if self._is_refused(may_have_id=self is not own):
            return REFUSED
        stated = [*self.stated, *own.stated]
        if stated:
            is_accepted = all(_accepts(request, value) for value in stated)
        else:
            own_id = self.content.get("id")
            is_id = isinstance(own_id, str) and _ID_WITHOUT_STATUS.fullmatch(own_id) is not None
            is_accepted = is_id and not _is_echo(request, own_id)
        return UNKNOWN if not is_accepted or self.contradiction or own.contradiction else ACCEPTED

    def doubt(self, own: _Part) -> str | None:
        """Return the text that makes the outcome of this entry unknown, if there is one that a profile can add."""
        for value in (*self.stated, *own.stated):
            if is_plain(value) and not _accepts(self._request, value):
                return _text(value)
        for field in (self.contradiction, own.contradiction):
            if field and _is_text(field.value) and not field.is_error and not _is_zero(field.value):
                return _text(field.value)
        return None


# --- who?


class _Entry(NamedTuple):
    """An entry with its outcome. Its ``part`` may be that of an entry like it."""

    content: Object
    part: _Part
    outcome: str

    def described(self, phone: str | None, own: _Part) -> RecipientOutcome:
        """Return the outcome with the fields of the entry. An entry without an id has the id of its dispatch."""
        content, outcome = self.content, self.outcome
        found = RecipientOutcome(
            phone or _stored(content.get("phone")),
            outcome,
            _stored(content.get("id")) or _stored(own.content.get("id")),
            self.part.status,
            _stored(content.get("credits")),
        )
        if outcome == ACCEPTED:
            return found
        word = self.part.doubt(own) if outcome == UNKNOWN else None
        return found._replace(error=service_message(content), word=word)


def _of_record(request: Sent, own: _Part) -> Judgement:
    """Return the outcomes of a record without entries. It is about everybody, unless it has a phone."""
    entry = _Entry(own.content, own, own.outcome(own))
    named: Sequence[str | None] = request.phones
    if "phone" in own.content and [*request.phones] != [None]:
        named = Numbers(request.phones).among(own.content["phone"])
    stranger = entry._replace(outcome=UNKNOWN)
    return Judgement([(entry if phone in named else stranger).described(phone, own) for phone in request.phones])


def _of_entries(request: Sent, own: _Part, entries: Sequence[_Entry]) -> Judgement:
    """Return the outcome of each recipient from the entries with its number.

    It is unknown if there is none, or if they disagree.
    """
    numbers = Numbers(request.phones)
    is_only = len(entries) == len(request.phones) == 1
    of_phone: dict[str | None, list[_Entry]] = {phone: [] for phone in request.phones}
    unclaimed: list[RecipientOutcome] = []
    for entry in entries:
        named: Sequence[str | None] = numbers.among(entry.content.get("phone"))
        if is_only and ("phone" not in entry.content or None in of_phone):
            named = request.phones
        for place, phone in enumerate(named):
            of_phone[phone].append(entry if len(named) == 1 else _with_share(entry, len(named), place))
        if not named and len(unclaimed) < MAX_UNCLAIMED:
            outcome = REFUSED if entry.outcome == REFUSED else UNKNOWN
            unclaimed.append(entry._replace(outcome=outcome).described(None, own))
    outcomes = []
    for phone, own_entries in of_phone.items():
        if len({entry.outcome for entry in own_entries}) == 1:
            outcomes.append(own_entries[0].described(phone, own))
        else:
            outcomes.append(RecipientOutcome(phone, UNKNOWN))
    return Judgement(outcomes, unclaimed=unclaimed)


def _with_share(entry: _Entry, number: int, place: int) -> _Entry:
    """Return an entry of several recipients with one recipient's share of its credits, so that they count once."""
    text = _stored(entry.content.get("credits"))
    share = None if place else text
    if text and text.isdecimal() and len(text) <= MAX_CREDIT_DIGITS:
        each, rest = divmod(int(text), number)
        share = str(each + (place < rest))
    return entry._replace(content={**entry.content, "credits": share})


class Numbers:
    """Recipients, found by their numbers in a response, which may lack the country code."""

    def __init__(self, phones: Sequence[str | None]) -> None:
        self._by_end: dict[str, list[tuple[str, str]]] = {}
        for phone in phones:
            if phone:
                digits = _digits(phone)
                self._by_end.setdefault(digits[-MIN_DIGITS:], []).append((digits, phone))

    def among(self, phone: Any) -> list[str]:
        """Return the recipients whose numbers are in a `phone`, separated by commas."""
        if not isinstance(phone, str):
            return []
        if "," not in phone:
            recipient = self._recipient(_digits(phone))
            return [recipient] if recipient else []
        found = [self._recipient(_digits(part)) for part in phone.split(",")]
        return list(dict.fromkeys(filter(None, found)))

    def _recipient(self, digits: str) -> str | None:
        """Return the only recipient with a number."""
        fitting = self._by_end.get(digits[-MIN_DIGITS:], ())
        if len(digits) < MIN_DIGITS:
            phones = [phone for own, phone in fitting if own == digits]
        elif len(fitting) == 1 and fitting[0][0] == digits:  # the usual case
            return fitting[0][1]
        else:
            phones = [phone for own, phone in fitting if own.endswith(digits) or digits.endswith(own)]
        return phones[0] if len(phones) == 1 else None


# --- is the code verified?


class Verification(NamedTuple):
    """Whether a code is verified. ``word`` is the text that left it in doubt."""

    is_verified: bool
    word: str | None = None


def verified(request: Sent, document: Any) -> Verification:
    """Return whether every field of a 2xx response says that the code is right, or says nothing about it."""
    has_result = False
    for field in _fields(document):
        value = field.value
        if field.name in RESULTS:
            if not _verifies(request, value):
                return Verification(False, _text(value) if is_plain(value) else None)
            has_result = True
        elif not isinstance(value, (dict, list)) and not _is_harmless(request, field):
            return Verification(False)
    return Verification(has_result)


def _verifies(request: Sent, value: Any) -> bool:
    if not is_plain(value):
        return False
    if words.is_added("verified", _text(value)) or _is_one(value):
        return True
    return _is_text(value) and read(value).is_all(VERIFIED, numbers=request.numbers)


def _is_harmless(request: Sent, field: _Field) -> bool:
    """Return whether a field beside the result of a code does not contradict it."""
    value = field.value
    if value in (None, ""):
        return True
    if FAILED.among(field.meaning.words) or "error" in field.meaning.words:
        return _is_zero(value)
    if _is_one(value) and VERIFIED.among(field.meaning.words):
        return True
    if _verifies(request, value) and not _is_one(value):
        return True
    is_neutral = not _NEUTRAL.isdisjoint(field.meaning.words) and _NEUTRAL_VALUE.fullmatch(_text(value)) is not None
    return is_neutral or _is_echo(request, value)


# --- which delivery state?


def classify(state: str) -> Delivery:
    """Return the class of a delivery state; an unknown state is on its way."""
    if words.is_added("delivered", state):
        return Delivery.DELIVERED
    if words.is_added("failed", state):
        return Delivery.FAILED
    return _classify(state if len(state) <= MAX_STATE else "?")


@lru_cache(maxsize=256)
def _classify(state: str) -> Delivery:
    text = read(state)
    if text.is_all(DELIVERED, VERIFIED) and not CARRIER.among(text.plain):
        return Delivery.DELIVERED
    if words.is_unanswered(text):
        return Delivery.NOT_ANSWERED
    return Delivery.FAILED if words.fail([text]) else Delivery.ON_ITS_WAY


def is_final(state: str) -> bool:
    """Return whether a state is final."""
    return classify(state) is not Delivery.ON_ITS_WAY


def is_delivered(state: str) -> bool:
    """Return whether a state means that the message arrived, or that the call was answered."""
    return classify(state) is Delivery.DELIVERED


def reaches(state: str, goal: str) -> bool:
    """Return whether a message in a state has reached a goal, "sent" or "delivered"."""
    if is_delivered(state):
        return True
    text = read(state)
    return goal == "sent" and SENT.among(text.words) and text.is_all(ACCEPTED_WORDS)


def states(messages: Sequence[Object], phones: Sequence[str]) -> list[str | None]:
    """Return the delivery state of each phone, or None, from the messages with the requested id.

    A message belongs to the recipient whose number it contains, or else to all recipients with the id. Several states
    of one recipient count only if they agree.
    """
    numbers = Numbers(phones)
    of_phone: dict[str, list[str]] = {}
    of_id: list[str] = []
    for message in messages:
        state = _stored(message.get("state"))
        if state is None:
            continue
        named = numbers.among(message.get("phone"))
        if not named:
            of_id.append(state)
        for phone in named:
            of_phone.setdefault(phone, []).append(state)
    found = [of_phone.get(phone, of_id) for phone in phones]
    return [each[-1] if len(set(map(classify, each))) == 1 else None for each in found]


# --- how many credits?


def credits_left(document: Any) -> Decimal | None:
    """Return the credits left in a response to `balance`; None if it does not say."""
    from decimal import Decimal  # most commands do not need it

    found = list(levels(document))
    named = [level[name] for level in found for name in CREDITS if name in level]
    if not named and found and [*found[0]] == ["status"] and not str(found[0]["status"]).startswith("-"):
        named = [found[0]["status"]]
    has_error = any(
        name == "error" and not _is_nothing(NOBODY, value) for each in objects(document) for name, value in each.items()
    )
    if not named or has_error or not isinstance(named[0], str):
        return None
    text = named[0].strip()
    pattern = _NUMBER_OF_CREDITS if isinstance(named[0], Number) else _CREDITS
    return Decimal(text) if pattern.fullmatch(text) else None


def charged(text: str | None) -> int | None:
    """Return the credits that a response reports for a recipient; None if they are not a plausible whole number."""
    found = _CHARGED.fullmatch(text) if text else None
    return None if found is None or (found[2] or "").strip("0") else int(found[1])


def charge(found: RecipientOutcome, estimate: int) -> tuple[int, int]:
    """Return the credits charged for a recipient, and the credits that count if the response reports no charge.

    0 is not a price, so the estimate counts. A refused recipient costs nothing.
    """
    paid = charged(found.credits) or 0
    if paid or found.outcome == REFUSED:
        return paid, 0
    fraction = _CHARGED.fullmatch(found.credits) if found.credits else None
    return 0, max(estimate, int(fraction[1]) + 1 if fraction and fraction[2] else 0)


# --- values


class _Meaning(NamedTuple):
    """What the name of a field says about its value."""

    words: frozenset[str]
    is_error: bool
    is_good: bool
    is_code: bool
    is_echo: bool
    may_be_id: bool


class _Field(NamedTuple):
    """A field of a response.

    ``is_error`` means that its name, or the name of a field around it, reports a failure; ``is_echo``, that one of
    these repeats the request.
    """

    name: str
    value: Any
    meaning: _Meaning
    is_error: bool
    is_echo: bool


@lru_cache(maxsize=512)
def _meaning(name: str, of_block: bool) -> _Meaning:
    found = frozenset(read(name, of_block=of_block).words)
    return _Meaning(
        words=found,
        is_error=any(word in FAILED or word.startswith("err") for word in found),
        is_good=name in _STATES or ACCEPTED_WORDS.among(found),
        is_code=not _CODES.isdisjoint(found),
        is_echo=name in ECHOES,
        may_be_id=name not in ECHOES and _NOT_OF_IDS.isdisjoint(found),
    )


def _fields(content: Any, *, of_block: bool = False) -> list[_Field]:
    """Return every field at any depth. An element of an array has the name of the array."""
    found = [_Field("", content, _meaning("", of_block), is_error=False, is_echo=False)]
    for name, value, meaning, is_error, is_echo in found:  # grows meanwhile
        if isinstance(value, dict):
            for inner, each in value.items():
                its = _meaning(inner if len(inner) <= MAX_NAME else "error", of_block)
                found.append(_Field(inner, each, its, is_error or its.is_error, is_echo or its.is_echo))
        elif isinstance(value, list):
            found += [_Field(name, each, meaning, is_error, is_echo) for each in value]
    return found[1:]


def _stated(content: Object) -> list[Any]:
    """Return the `status` and `state` of an object."""
    return [content[name] for name in _STATES if content.get(name) not in (None, "", [], {})]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, Number)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _stored(value: Any) -> str | None:
    """Return a value as text for a database; None for an empty text, null, an object or an array."""
    if isinstance(value, str):
        return (value if value.isascii() else storable(value)) or None
    return _text(value) if isinstance(value, bool) else None


def _is_one(value: Any) -> bool:
    if isinstance(value, Number):
        return float(value) == 1
    return value is True or (isinstance(value, str) and value.strip().lower() in ("1", "true"))


def _is_zero(value: Any) -> bool:
    if isinstance(value, Number):
        return float(value) == 0
    return value is False or (isinstance(value, str) and value.strip().lower() in ("0", "false"))


def _is_nothing(request: Sent, value: Any) -> bool:
    """Return whether a value says that there is no error."""
    if value in (None, "", [], {}) or _is_zero(value):
        return True
    if not _is_text(value):
        return False
    is_none = not value.strip("0 ") or value.lower() in ("none", "null", "ninguno")
    return is_none or read(value).is_all(ACCEPTED_WORDS, numbers=request.numbers)


def _accepts(request: Sent, value: Any) -> bool:
    """Return whether a `status` or `state` means that the request was accepted."""
    if not is_plain(value):
        return False
    if _is_one(value) or words.is_added("accepted", _text(value)):
        return True
    return _is_text(value) and read(value, of_block=request.is_block).is_all(ACCEPTED_WORDS, numbers=request.numbers)


def _fails(request: Sent, value: Any) -> bool:
    """Return whether a `status` or `state` means that nothing was done."""
    if is_plain(value) and words.is_added("refused", _text(value)):
        return True
    return _is_text(value) and not _accepts(request, value) and words.fail([read(value)])


def _is_echo(request: Sent, value: Any) -> bool:
    """Return whether a value repeats a value of the request, or a recipient's number in any spelling."""
    if not isinstance(value, str):
        return False
    return value in request.echoes or (_PHONE.fullmatch(value) is not None and _digits(value) in request.echoes)


def _digits(text: str) -> str:
    return text if text.isdecimal() and text.isascii() else _NO_DIGITS.sub("", text)


def _is_too_long(request: Sent, document: Any) -> bool:
    """Return whether a response has more values or text than a send can need."""
    length = 0
    waiting = [document]
    for value in waiting:
        if isinstance(value, str):
            if value not in request.echoes:
                length += len(value)
        elif isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
            if len(waiting) > MAX_VALUES:
                return True
    return length > MAX_READ
