"""Classify delivery states (on its way, delivered, not answered, failed) and statuses of requests and code checks.

Services write states in English or Spanish, in any case, as phrases or as identifiers: "DELIVRD", "notSent",
"No contesta", "Error:1081 msg: Destino inaccesible". No other module interprets such words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache

MAX_STATE = 1_000
"""Longest part of a state that is classified, in characters."""


class Delivery(StrEnum):
    """The class of a delivery state. All but the first are final."""

    ON_ITS_WAY = "on its way"
    NOT_ANSWERED = "not answered"
    FAILED = "failed"
    DELIVERED = "delivered"


def _stem(word: str) -> str:
    """Return the masculine singular of a Spanish word: "entregadas" gives "entregado", "errores" gives "error"."""
    if len(word) <= 3:
        return word
    if word.endswith(("ores", "ones", "edes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return word[:-1] + "o" if word.endswith("a") else word


def _stems(words: str) -> frozenset[str]:
    return frozenset(map(_stem, words.split()))


_NEGATIONS = _stems("no not non never nunca jamas cannot sin without")
_NOT_YET = _stems("aun todavia yet")
_READ = _stems("read seen leido")
_ANSWER = _stems("answer answered contesta contestada contesto respuesta")
_NO_ANSWER = _stems("busy ocupado voicemail buzon")
_CARRIER = _stems("operator operador carrier red gateway timeout")
_DELIVERED = _stems(
    "delivered delivrd entregado read leido seen visto answered contestada atendida completed completado"
)
_SENT = _stems("sent enviado")
_DELIVERABLE = _DELIVERED | _SENT | _stems("entregar saldo cobertura")
_BLOCKED = _stems("blocked bloqueado")
_UNBLOCKED = _stems("unblocked desbloqueado")
_FAILED = _BLOCKED | _stems(
    """
    error fail failed failure reject rejected rejectd denied refused invalid undelivered undeliv undeliverable
    unreachable expired cancelled canceled deleted
    fallo fallido rechazado denegado invalido expirado vencido caducado cancelado eliminado inaccesible insuficiente
    devuelto
    """
)
_VERIFIED = _stems(
    "ok success successful verified valid correct approved verificado valido correcto aprobado exitoso exito"
)
_VERIFIED_FILLERS = frozenset("code codigo is es the el".split())
_ACCEPTED = _VERIFIED | _DELIVERED | _SENT | _stems("queued accepted aceptado")
_NOT_VERIFIED = (
    _FAILED
    | _NEGATIONS
    | _stems("incorrect incorrecto wrong erroneo false falso unverified mismatch pending pendiente")
    | _stems("used usado utilizado locked agotado errado equivocado intente retry again unauthorized forbidden")
)
"""Words that contradict a success in ``msg`` or ``message``."""

_INNER_CAPITAL = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PHRASE_ENDS = re.compile("[.,;:()]")
_WORD = re.compile(r"[^\W_]+")
_FAILURES = "(?:error(?:e?s)?|fail(?:ed|ures)|fallid[oa]s|rejected|rechazad[oa]s)"
_ERROR_ZERO = re.compile(
    rf"\berror(?:e?s)?(?:[\W_]+(?:code|codigo))?[\W_]*0+(?![0-9])|\b{_FAILURES}\s*[:=]\s*0+(?![0-9])|\b0 {_FAILURES}\b"
)
_NOT_PLAIN = re.compile(r"[^a-z\s_.,:;!¡'\"-]")
_NO_APOSTROPHE = re.compile("n['’]t\\b")


class _Vocabulary:
    """The built-in words and a profile's words for ``delivered``, ``failed`` and ``verified``."""

    def __init__(self, words: Mapping[str, Sequence[str]]) -> None:
        self.states = {
            state: kind
            for kind, name in ((Delivery.DELIVERED, "delivered"), (Delivery.FAILED, "failed"))
            for text in words.get(name, ())
            if (state := tuple(_words(text)))
        }
        single = [(state[0], kind) for state, kind in self.states.items() if len(state) == 1]
        self.delivered = _DELIVERED | {word for word, kind in single if kind is Delivery.DELIVERED}
        self.failed = _FAILED | {word for word, kind in single if kind is Delivery.FAILED}
        self.verified = [tuple(_words(text)) for text in words.get("verified", ())]


_vocabulary = _Vocabulary({})


def use_words(words: Mapping[str, Sequence[str]]) -> None:
    """Add a profile's words to the built-in ones, and remove the words added before."""
    global _vocabulary  # noqa: PLW0603 (a run has one profile, and all views classify states)
    _vocabulary = _Vocabulary(words)
    _classify.cache_clear()
    _is_failure.cache_clear()
    _negates.cache_clear()


def classify(state: str) -> Delivery:
    """Return the class of a delivery state; an unknown state is on its way."""
    return _classify(state[:MAX_STATE])


@lru_cache(maxsize=256)
def _classify(text: str) -> Delivery:
    if known := _vocabulary.states.get(tuple(_words(text))):
        return known
    phrases = list(_phrases(_folded(text)))
    words = {word for phrase in phrases for word in phrase}
    delivered = _vocabulary.delivered
    if (
        words & _NOT_YET
        or (words & delivered and words & _CARRIER)
        or any(_is_negated(phrase, _READ) for phrase in phrases)
    ):
        return Delivery.ON_ITS_WAY
    if words & _NO_ANSWER or any(_is_negated(phrase, _ANSWER) for phrase in phrases):
        return Delivery.NOT_ANSWERED
    if _means_failure(text, delivered | _DELIVERABLE, _vocabulary.failed):
        return Delivery.FAILED
    return Delivery.DELIVERED if words & delivered else Delivery.ON_ITS_WAY


def is_final(state: str) -> bool:
    """Return whether a state is final."""
    return classify(state) is not Delivery.ON_ITS_WAY


def is_delivered(state: str) -> bool:
    """Return whether a state means that the message arrived, or that the call was answered."""
    return classify(state) is Delivery.DELIVERED


def reaches(state: str, wanted: str) -> bool:
    """Return whether a message in a state has reached the wanted state.

    A final state is reached by every state of the same class. Any other state is reached by the same words, or by a
    delivery.
    """
    found = classify(state)
    if is_final(wanted):
        return found is classify(wanted)
    return found is Delivery.DELIVERED or (found is Delivery.ON_ITS_WAY and _spelled(state) == _spelled(wanted))


def is_failure(status: str, *, of_block: bool = False) -> bool:
    """Return whether a status means failure. For ``of_block``, "blocked" means success."""
    return _is_failure(status[:MAX_STATE], of_block=of_block)


@lru_cache(maxsize=256)
def _is_failure(text: str, *, of_block: bool) -> bool:
    if of_block:
        return _means_failure(text, _DELIVERABLE | _BLOCKED, _FAILED - _BLOCKED | _UNBLOCKED)
    if (known := _vocabulary.states.get(tuple(_words(text)))) is not None:
        return known is Delivery.FAILED
    successes = _vocabulary.delivered | _DELIVERABLE if _NOT_YET.isdisjoint(_words(text)) else frozenset[str]()
    return _means_failure(text, successes, _vocabulary.failed)


def is_success(status: str, *, of_block: bool = False) -> bool:
    """Return whether a status means that a request was accepted. For ``of_block``, "blocked" counts too."""
    words = set(_words(status[:MAX_STATE]))
    accepted = _ACCEPTED | _vocabulary.delivered | (_BLOCKED if of_block else frozenset())
    return bool(words & accepted) and not words & _NEGATIONS and not is_failure(status, of_block=of_block)


def negates(status: str) -> bool:
    """Return whether an unknown status contains a negation that may mean a failure: "No credits"."""
    return _negates(status[:MAX_STATE])


@lru_cache(maxsize=256)
def _negates(text: str) -> bool:
    words = set(_words(text))
    return bool(words & _NEGATIONS) and not words & _NOT_YET and not is_final(text)


def is_verified_word(status: str) -> bool:
    """Return whether the status of a code check is a word for success, with only filler words such as "code"."""
    found = tuple(_words(status))
    if found in _vocabulary.verified:
        return True
    words = set(found)
    is_plain = not _NOT_PLAIN.search(_folded(status))
    return is_plain and bool(words & _VERIFIED) and words <= _VERIFIED | _VERIFIED_FILLERS


def contradicts_success(message: str) -> bool:
    """Return whether the message beside a successful code check contains a word for failure or a negation."""
    return not _NOT_VERIFIED.isdisjoint(_words(message))


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents; identifiers are split at ``_`` and inner capitals."""
    return _WORD.findall(_folded(text))


def _folded(text: str) -> str:
    """Return a text in lower case, without accents and zero-width characters, with a space before inner capitals."""
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if unicodedata.category(char) not in ("Mn", "Cf"))
    lowered = _INNER_CAPITAL.sub(" ", text).casefold()
    return _NO_APOSTROPHE.sub(" not", lowered)


def _words(text: str) -> list[str]:
    return list(map(_stem, words(text)))


def _phrases(folded: str) -> Iterator[list[str]]:
    """Yield the stems of each phrase of a folded text."""
    for phrase in _PHRASE_ENDS.split(folded):
        yield list(map(_stem, _WORD.findall(phrase)))


def _is_negated(phrase: Sequence[str], wanted: Iterable[str]) -> bool:
    """Return whether a negation comes before one of the wanted words."""
    first = next((place for place, word in enumerate(phrase) if word in _NEGATIONS), None)
    return first is not None and not set(phrase[first + 1 :]).isdisjoint(wanted)


def _means_failure(text: str, successes: frozenset[str], failures: frozenset[str]) -> bool:
    """Return whether a text contains a failure without a negation before it, or a success after a negation."""
    for phrase in _phrases(_ERROR_ZERO.sub(" ", _folded(text))):  # "error 0" is not an error
        if _is_negated(phrase, successes):
            return True
        for word in phrase:
            if word in _NEGATIONS:
                break
            if word in failures:
                return True
    return False


def _spelled(state: str) -> tuple[str, ...]:
    """Return the words of a state for a comparison, with "sent" for "enviado"."""
    return tuple("sent" if word == "enviado" else word for word in _words(state))
