"""The meaning of a response: the outcome of each recipient of a send or a change, or the credits left.

The outcome is certain, or it is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from msgctl.credits import CREDIT, MAX_CHARGE, millionths, share
from msgctl.jsontext import Number, ShapeError, objects, values
from msgctl.outcomes import words
from msgctl.outcomes.content import (
    ECHOES,
    ContentField,
    FieldName,
    as_count,
    as_text,
    doubt_of,
    fields_of,
    is_in_request,
    is_nothing,
    is_one,
    is_zero,
    stated_in,
    words_of,
)
from msgctl.outcomes.outcome import (
    ACCEPTED,
    ERROR_CODE,
    MIN_SHARED_DIGITS,
    REFUSED,
    UNKNOWN,
    Doubt,
    Outcome,
    RequestFacts,
    digits_of,
)
from msgctl.outcomes.record import (
    MAX_ENTRIES,
    Object,
    entries_of,
    is_plain,
    levels,
    service_message,
    text_to_store,
)
from msgctl.outcomes.words import tokenize

if TYPE_CHECKING:
    from decimal import Decimal

REFUSALS = frozenset({301, 307, 308, 401, 402, 403, 404, 405, 413, 415, 422})
"""HTTP statuses of a request that was not carried out."""
RATE_LIMITED = 429
"""The HTTP status of a request that was turned away for now."""
EXPLAINED = frozenset({400, 520})
"""HTTP statuses of a refusal, if the response gives a reason."""
PARTIAL_CONTENT = 206
"""The HTTP status of a part of a response."""
MAX_READ = 20_000
"""Maximum cost of reading a response to a send, in characters. The outcome of a larger response is unknown."""
MAX_READ_EACH = 500
"""The size that each recipient adds to `MAX_READ`: more than an entry with ten fields and two ids."""
VALUE, NEW_TEXT = 10, 50
"""The size that each value, and each new name or text, has in addition to its characters."""
UNREAD = 12
"""At the end of a long text, this many characters count as one, because they are not read."""


class Judgement(NamedTuple):
    """The outcome of each recipient. ``is_refused`` means that the request was refused as a whole."""

    outcomes: Sequence[Outcome]
    is_refused: bool = False


def outcomes_of(request: RequestFacts, http_status: int, document: Any) -> Judgement:
    """Return the outcome of each recipient of a send or change. ``document`` is None if it is not complete JSON."""
    if _is_too_long(document, request):
        return _unknown(request)
    is_document = isinstance(document, (dict, list))
    if http_status in REFUSALS or http_status == RATE_LIMITED:
        fields = fields_of(document, of_block=request.is_block)
        is_good = is_document and any(_is_good(request, field) for field in fields)
        return _unknown(request) if is_good else _refused(request, document)
    is_success = is_whole_success(http_status)
    if is_document and (is_success or http_status in EXPLAINED):
        return _of_document(request, document, is_success=is_success)
    return _unknown(request)


def _of_document(request: RequestFacts, document: Any, *, is_success: bool) -> Judgement:
    """Return the outcomes by the record and the entries. Without a success, the request was refused, or is unknown."""
    if request.is_link and is_success:
        links = [inner for inner in objects(document) if not is_nothing(inner.get("urlShort"), request.numbers)]
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
    """Return whether a status means a successful request with a whole response."""
    return 200 <= http_status < 300 and http_status != PARTIAL_CONTENT


def _unknown(request: RequestFacts, doubt: Doubt | None = None) -> Judgement:
    return Judgement([Outcome(phone, UNKNOWN, doubt=doubt) for phone in request.phones])


def _refused(request: RequestFacts, document: Any) -> Judgement:
    error = service_message(document)
    return Judgement([Outcome(phone, REFUSED, error=error) for phone in request.phones], is_refused=True)


def _is_good(request: RequestFacts, field: ContentField) -> bool:
    """Return whether a field means that something was done, although the status is the status of a refusal."""
    name, value = field.name, field.value
    if name.is_status and _accepts(request, value):
        return True
    if is_one(value) or 0 < (as_count(value) or 0) <= len(request.phones):
        return name.is_good
    is_text = isinstance(value, str) and not isinstance(value, Number)
    is_echo = name.is_echo or is_in_request(request.echoes, value)
    return is_text and not is_echo and _accepts(request, value)


def _is_too_long(document: Any, request: RequestFacts) -> bool:
    """Return whether a response is larger than any real response to a send, and takes too long to read.

    A repeated name or text, and a value of the request, count only as a value. A character beyond ASCII counts as its
    escape, because some decompose into several words.
    """
    size, limit = 0, MAX_READ + MAX_READ_EACH * len(request.phones)
    counted = set(request.echoes)
    for value in values(document):
        size += VALUE
        for text in value if isinstance(value, dict) else (value,):
            if isinstance(text, str) and text not in counted:
                counted.add(text)
                beginning = words.cut(text)
                size += NEW_TEXT + len(ascii(beginning)) + (len(text) - len(beginning)) // UNREAD
            if size > limit:
                return True
    return False


def _accepts(request: RequestFacts, value: Any) -> bool:
    """Return whether a value means acceptance: 1, or only words of `GOOD`."""
    if is_one(value) or request.added.has("accepted", as_text(value)):
        return True
    return isinstance(value, str) and tokenize(value, of_block=request.is_block).is_all(
        words.GOOD, numbers=request.numbers
    )


_ID = r"\S*[1-9]\S*"


def _has_id(request: RequestFacts, content: Any) -> bool:
    """Return whether a field may be an id: its name allows it, and its value is a number or one word with a digit."""
    return any(
        field.name.may_be_id
        and not field.name.is_echo
        and re.fullmatch(_ID, as_text(field.value)) is not None
        and not is_in_request(request.echoes, field.value)
        for field in fields_of(content)
    )


def _contradicts(request: RequestFacts, field: ContentField) -> bool:
    """Return whether a field contradicts an acceptance."""
    name, value = field.name, field.value
    if _is_about_others(request, name, value):
        return True
    if request.added.has("accepted", as_text(value)):
        return False
    if field.is_error and not is_nothing(value, request.numbers):
        return True
    is_echo = name.is_echo or (request.is_call and name.text == "message")
    if is_echo or name.is_error or is_in_request(request.echoes, value):
        return False
    if is_zero(value):
        return name.is_good or name.is_status
    if not isinstance(value, str):
        return False
    if name.is_code and re.fullmatch(ERROR_CODE, value):
        return True
    if isinstance(value, Number):
        return False
    is_message = name.is_message and not request.is_link
    is_unclear = is_message and not tokenize(value, of_block=request.is_block).is_known
    return (is_unclear or tokenize(value).is_doubtful) and not _accepts(request, value)


def _is_about_others(request: RequestFacts, name: FieldName, value: Any) -> bool:
    """Return whether a field shows that no recipient, another person, or only some recipients get the message."""
    if name.is_count and (value == [] or is_zero(value)):
        return True
    if name.may_count_recipients and 1 < (as_count(value) or 0) < len(request.phones):
        return True
    if not name.is_who or not isinstance(value, str):
        return False
    # msgctl does not know who gets the user's own body, so any number in it may be a recipient's.
    is_own = None in request.phones and is_in_request(request.echoes, value)
    return not is_own and any(
        len(digits_of(number)) >= MIN_SHARED_DIGITS and not request.finder.among(number) for number in value.split(",")
    )


def _contradiction(request: RequestFacts, content: Any) -> ContentField | None:
    fields = fields_of(content, of_block=request.is_block)
    return next((field for field in fields if _contradicts(request, field)), None)


_ID_WITHOUT_STATUS = r"(?=.*[1-9])[A-Za-z0-9][A-Za-z0-9_.:@/+=-]{5,}"
_NEUTRAL_ID = r"(?=.{6,64}\Z)(?=.*[1-9])(?:[a-z]?[0-9]+|(?!-)[0-9-]*[a-f][0-9a-f-]*)"
"""A number, a letter and a number, or a UUID."""


def _is_neutral(own_id: Any) -> bool:
    """Return whether an id contains no word, so that entries that differ only in such ids have the same outcome."""
    if not isinstance(own_id, str) or not re.fullmatch(_NEUTRAL_ID, own_id):
        return False
    return "bad" not in own_id and "added" not in own_id  # the only known words with the letters of a UUID


_NOT_COMPARED = (ECHOES | {"id"}) - {"to"}
"""Fields of an entry that do not influence its outcome."""


class _Record:
    """The record of a send without its entries (``own``), and the known outcomes of the record and its entries."""

    def __init__(self, request: RequestFacts, own: Object) -> None:
        self.request = request
        self.own = own
        self._stated = stated_in(own)
        self._verdicts: dict[object, Outcome] = {}

    def verdict(self, entry: Object) -> Outcome:
        """Return an outcome without ids. Entries that differ only in their id and echoes are judged once."""
        types = tuple(map(type, entry.values()))  # the number 1.0 means acceptance, the equal text does not
        if dict in types or list in types:
            return self._verdict(entry)
        if "id" in entry and (not _is_neutral(entry["id"]) or entry["id"] in self.request.echoes):
            return self._verdict(entry)
        kind = (*entry, *types, *[value for name, value in entry.items() if name not in _NOT_COMPARED])
        if kind not in self._verdicts:
            self._verdicts[kind] = self._verdict(entry)
        return self._verdicts[kind]

    def _verdict(self, entry: Object) -> Outcome:
        status = next((text_to_store(value) for value in stated_in(entry) if is_plain(value)), None)
        if self.is_refused(entry):
            return Outcome(None, REFUSED, status=status)
        if self._is_accepted(entry):
            return Outcome(None, ACCEPTED, status=status)
        return Outcome(None, UNKNOWN, status=status, doubt=self._doubt(entry))

    def _is_accepted(self, entry: Object) -> bool:
        """Return whether an entry, or the record itself, was accepted."""
        if stated := stated_in(entry) + self._stated:
            is_good = all(_accepts(self.request, value) for value in stated)
        else:
            own_id = entry.get("id")
            is_id = isinstance(own_id, str) and re.fullmatch(_ID_WITHOUT_STATUS, own_id) is not None
            is_good = is_id and not is_in_request(self.request.echoes, own_id)
        if not is_good or self._contradiction:
            return False
        return _contradiction(self.request, entry) is None

    @cached_property
    def _contradiction(self) -> ContentField | None:
        return _contradiction(self.request, self.own)

    def is_refused(self, content: Object) -> bool:
        """Return whether an entry, or the record itself, was refused: nothing was done."""
        request, stated = self.request, stated_in(content)
        if any(_accepts(request, value) for value in stated):
            return False
        is_added = any(request.added.has("refused", as_text(value)) for value in stated)
        is_failed = is_added or any(isinstance(value, str) and tokenize(value).fails() for value in stated)
        may_have_id = is_failed and content is not self.own
        if not may_have_id and _has_id(request, content):
            return False
        if is_added and not any(_accepts(request, field.value) for field in fields_of(content) if not field.is_echo):
            return True
        return words_of(content, request.echoes).fails(with_reason=not is_failed)

    def _doubt(self, entry: Object) -> Doubt | None:
        """Return the field that makes the outcome of an entry unknown."""
        for content in (entry, self.own):
            for name in ("status", "state"):
                value = content.get(name)
                if is_plain(value) and not _accepts(self.request, value):
                    return Doubt(name, as_text(value))
        return doubt_of(_contradiction(self.request, entry) or self._contradiction)

    def described(self, entry: Object, verdict: Outcome, phone: str | None) -> Outcome:
        """Return a verdict with the fields of its entry. An entry without an id has the id of its dispatch."""
        phone = phone or text_to_store(entry.get("phone"))
        own_id = text_to_store(entry.get("id")) or text_to_store(self.own.get("id"))
        charge = millionths(text_to_store(entry.get("credits")))
        error = None if verdict.outcome == ACCEPTED else service_message(entry)
        return Outcome(phone, verdict.outcome, own_id, verdict.status, charge, error, verdict.doubt)


def _of_links(request: RequestFacts, document: Any, links: Sequence[Object]) -> Judgement:
    """Return the outcome of a response with objects that contain a short URL of any form."""
    contradiction = _contradiction(request, document)
    short = links[0]["urlShort"]
    is_text = isinstance(short, str) and not isinstance(short, Number) and len(short.split()) == 1
    if contradiction or len(links) > 1 or not is_text or short == links[0].get("urlLong"):
        return _unknown(request, doubt_of(contradiction))
    return Judgement([Outcome(phone, ACCEPTED) for phone in request.phones])


# --- who


def _of_entries(record: _Record, entries: Sequence[Object], verdicts: Sequence[Outcome]) -> Judgement:
    """Return the outcome of each recipient from the entries with its number, or from a record without entries.

    The record applies to all recipients, unless it contains a phone. Without an entry, or if entries disagree, the
    outcome is unknown.
    """
    phones, finder = record.request.phones, record.request.finder
    is_for_all = not entries or len(entries) == len(phones) == 1
    # A hostile response repeats a list of all recipients in every entry: each list is divided once per outcome.
    groups: dict[tuple[str, str], list[tuple[Object, Outcome]]] = {}
    for entry, verdict in zip(entries or [record.own], verdicts, strict=True):
        groups.setdefault((as_text(entry.get("phone")), verdict.outcome), []).append((entry, verdict))
    claimed: dict[str | None, list[Outcome]] = {}
    stranger: Doubt | None = None
    for (phone_text, _), group in groups.items():
        recipients: Sequence[str | None] = finder.among(phone_text)
        if is_for_all and ("phone" not in group[0][0] or phones[0] is None):
            recipients = phones
        if not recipients:
            stranger = Doubt("phone", phone_text)
            continue
        outcome = _joined([record.described(entry, verdict, recipients[0]) for entry, verdict in group])
        if len(recipients) == 1:
            claimed.setdefault(recipients[0], []).append(outcome)
            continue
        for index, phone in enumerate(recipients):
            charge = share(outcome.credits, len(recipients), index)
            claimed.setdefault(phone, []).append(outcome._replace(phone=phone, credits=charge))
    return Judgement(
        [_joined(claimed[phone]) if phone in claimed else Outcome(phone, UNKNOWN, doubt=stranger) for phone in phones]
    )


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a recipient from its entries. Entries with different IDs are charged separately."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    if any(other.outcome != first.outcome for other in outcomes):
        return Outcome(first.phone, UNKNOWN)
    credits_of = {other.id: other.credits for other in reversed(outcomes)}
    charges = [charge for charge in credits_of.values() if charge is not None]
    total = sum(charges)
    if not charges or total >= MAX_CHARGE * CREDIT:  # not known, or not plausible
        return first._replace(credits=None)
    return first._replace(credits=total)


# --- reads


def is_passing_fault(document: Any) -> bool:
    """Return whether the response to a read with status 400 or 520 reports a temporary failure."""
    if not isinstance(document, dict) or _is_too_long(document, RequestFacts()):
        return True
    text = words_of(document)
    return words.OPEN.among(text.words) and not words.FAILED.among(text.words) and not words.REASON.among(text.negated)


_CREDITS = r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,19})?"
_NUMBER_OF_CREDITS = rf"{_CREDITS}([eE][+-]?[0-9])?"


def credits_left(document: Any) -> Decimal:
    """Return the credits left in a response to `balance`. Raises ShapeError if it does not contain them."""
    from decimal import Decimal  # most commands do not need it

    records = list(levels(document))
    amounts = [record[name] for record in records for name in ("balance", "credits", "saldo") if name in record]
    if not amounts and records and [*records[0]] == ["status"] and not str(records[0]["status"]).startswith("-"):
        amounts = [records[0]["status"]]
    has_error = any(not is_nothing(content.get("error")) for content in objects(document))
    if amounts and not has_error and isinstance(amounts[0], str):
        pattern = _NUMBER_OF_CREDITS if isinstance(amounts[0], Number) else _CREDITS
        if re.fullmatch(pattern, amounts[0].strip()):
            return Decimal(amounts[0].strip())
    raise ShapeError("it does not contain the credits left")
