"""The outcome of each recipient of a request, from the entries of its response.

The service may spell a number differently, leave a recipient out, or refuse one and accept another.
History, jobs and exit codes all use this mapping.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from msgctl.operations import Effect, Operation
from msgctl.text import storable

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"

MOST_UNCLAIMED = 100
"""Entries that are kept although they belong to no recipient; a hostile response could hold a million."""

_LEAST_DIGITS = 5
"""Of a phone number; fewer could be the end of many numbers."""

FAILURE_WORDS = frozenset(
    """
    rejected reject refused denied error errors failed failure fail blocked invalid undelivered undeliverable expired
    cancelled canceled unsuccessful
    rechazado rechazada denegado denegada negado negada error errores fallido fallida fallo bloqueado bloqueada
    invalido invalida expirado expirada vencido vencida caducado caducada cancelado cancelada
    """.split()
)
_SUCCESSES = frozenset(
    "delivered deliverable sent accepted ok entregado entregada enviado enviada aceptado aceptada".split()
)
_NEGATIONS = frozenset("no not non sin without".split())

Entry = Mapping[str, Any]
Tails = dict[str, list[tuple[int, str]]]


class RecipientOutcome(NamedTuple):
    """What a response says of one recipient: texts as the service sent them, None for what it did not say.

    ``phone`` is the number as it was sent; if the sender did not know it, the one that the entry names.
    """

    phone: str | None
    outcome: str
    id: str | None = None
    status: str | None = None
    credits: str | None = None


def outcomes(operation: Operation, document: Mapping[str, Any], phones: Sequence[str | None]) -> list[RecipientOutcome]:
    """Return the outcome of each phone, in the order of ``phones``. A phone is None if the sender does not know it.

    An entry belongs to the number that it names, with or without country code, and else to the phone in its place.
    ``document`` is that of a `Response`: its ``data``, if any, is an array of objects.
    """
    is_judged = operation.effect is Effect.SENDS
    if not operation.record.entries:
        return [_of(phone, document, is_judged=is_judged) for phone in phones]
    entries = document.get("data")
    if entries is None:  # only the dispatch as a whole is acknowledged
        outcome = _of(None, document, is_judged=is_judged).outcome if _text(document.get("id")) else UNKNOWN
        return [RecipientOutcome(phone, outcome) for phone in phones]
    own = _own_entries(entries, phones)
    return [_of(phone, entry, is_judged=is_judged) for phone, entry in zip(phones, own, strict=True)]


def unclaimed(
    operation: Operation, document: Mapping[str, Any], phones: Sequence[str | None]
) -> list[RecipientOutcome]:
    """Return the entries that belong to none of the phones, so that their ids can be stored too."""
    entries = (document.get("data") or []) if operation.record.entries else []
    claimed = set(map(id, _own_entries(entries, phones)))
    rest = [entry for entry in entries if id(entry) not in claimed]
    return [_of(None, entry, is_judged=operation.effect is Effect.SENDS) for entry in rest[:MOST_UNCLAIMED]]


def exit_code(found: Sequence[RecipientOutcome]) -> int:
    """Return the exit code of a send: 5 if an outcome is unknown, else 6 if one is refused, else 0."""
    all_outcomes = {each.outcome for each in found}
    return 5 if UNKNOWN in all_outcomes else 6 if REFUSED in all_outcomes else 0


def has_error(document: Entry) -> bool:
    """Return whether an object has a non-empty ``error``; like false, the number 0 means no error."""
    return document.get("error") not in (None, False, "", "0", [], {})


@lru_cache(maxsize=256)
def is_failure(status: str) -> bool:
    """Return whether a status is a word for failure, in English or Spanish: "REJECTED", "no entregado"."""
    found = words(status)
    for before, word in zip(["", *found], found, strict=False):
        if word in (_SUCCESSES if before in _NEGATIONS else FAILURE_WORDS):
            return True
    return False


def words(text: str) -> list[str]:
    """Return the words of a short text, in lower case and without accents."""
    decomposed = unicodedata.normalize("NFD", text[:200].casefold())
    return re.findall(r"[^\W\d_]+", "".join(char for char in decomposed if not unicodedata.combining(char)))


def _of(phone: str | None, entry: Entry, *, is_judged: bool) -> RecipientOutcome:
    """Return what an entry says of its recipient; the status of a blocked number is not judged."""
    message_id, status, state, charged = entry.get("id"), entry.get("status"), entry.get("state"), entry.get("credits")
    outcome = ACCEPTED if entry else UNKNOWN
    if is_judged and (
        (isinstance(status, str) and is_failure(status))
        or (isinstance(state, str) and is_failure(state))
        or (not message_id and has_error(entry))
    ):
        outcome = REFUSED
    if status is None:
        status = state  # a call has a state, everything else a status
    # Jobs read millions of entries, so the usual case needs no calls.
    return RecipientOutcome(
        phone or _text(entry.get("phone")),
        outcome,
        message_id if isinstance(message_id, str) and message_id.isascii() else _text(message_id),
        status if isinstance(status, str) and status.isascii() else _text(status),
        charged if isinstance(charged, str) and charged.isascii() else _text(charged),
    )


def _text(value: Any) -> str | None:
    """Return a plain JSON value as text that a database takes; a number is text already, anything else is None."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return storable(value) if isinstance(value, str) else None


def _own_entries(entries: Sequence[Entry], phones: Sequence[str | None]) -> Sequence[Entry]:
    """Return the entry of each phone; it is empty if the response has none for it."""
    if [entry.get("phone") for entry in entries] == [*phones]:  # as nearly always
        return entries
    named = [_digits(entry.get("phone")) for entry in entries]
    exact = {name: place for place, name in reversed([*enumerate(named)]) if name}
    tails = _by_last_digits(named, {phone for phone in phones if phone})
    meant: list[int | None] = []
    for place, phone in enumerate(phones):
        unnamed = place if place < len(named) and (not named[place] or phone is None) else None
        by_name = exact.get(phone, _only_near(tails, phone)) if phone else None
        meant.append(unnamed if by_name is None else by_name)
    times = Counter(meant)
    return [{} if place is None or times[place] > 1 else entries[place] for place in meant]


def _digits(phone: Any) -> str:
    """Return the digits of a phone number; empty if the value is not one."""
    digits = re.sub(r"[\s+().-]", "", phone) if isinstance(phone, str) else ""
    return digits if digits.isascii() and digits.isdecimal() else ""


def _by_last_digits(named: Sequence[str], sent: set[str]) -> Tails:
    """Return the places of numbers that equal no phone, by their last digits."""
    tails: Tails = {}
    for place, name in enumerate(named):
        if name not in sent and len(name) >= _LEAST_DIGITS:
            tails.setdefault(name[-_LEAST_DIGITS:], []).append((place, name))
    return tails


def _only_near(tails: Tails, phone: str) -> int | None:
    """Return the place of the one number that ends as the phone does, or the other way round."""
    near = (at for at, name in tails.get(phone[-_LEAST_DIGITS:], ()) if name.endswith(phone) or phone.endswith(name))
    only = next(near, None)
    return only if next(near, None) is None else None


FINAL_STATES = frozenset(
    """
    delivered undelivered undeliverable not-delivered rejected failed error expired cancelled canceled blocked deleted
    read seen answered not-answered no-answer busy completed voicemail
    """.split()
)
"""States that do not change any more."""
_DELIVERED = frozenset({"delivered", "read", "seen", "answered", "completed"})


def folded(state: str) -> str:
    """Return a state in the spelling that is compared: lower case, its words joined by hyphens."""
    return state.strip().casefold().replace("_", "-").replace(" ", "-")


def is_delivered(state: str) -> bool:
    """Tell whether a state says that the message arrived, or that the call was answered."""
    return folded(state) in _DELIVERED


def is_final(state: str) -> bool:
    """Tell whether a state does not change any more."""
    return folded(state) in FINAL_STATES
