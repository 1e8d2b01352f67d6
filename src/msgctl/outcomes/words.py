"""The words of the service, and the meaning of a text that consists of them.

No other module knows a word of the service. Words are compared without case, accents and invisible characters; a plural
or feminine word equals its masculine singular. A profile may add whole texts, which come before every list.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

MAX_TEXT = 4_000
"""Maximum characters read of a text; the rest of a longer text counts as an unknown word."""


def _stem(word: str) -> str:
    """Return the masculine singular of a word: "enviadas" gives "enviado"."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if len(word) > 3 and word.endswith("a"):
        word = word[:-1] + "o"
    return word


class WordList:
    """A list of words. An item that ends in "-" matches every word with this beginning."""

    def __init__(self, text: str) -> None:
        items = text.split()
        # Also without the "-", because the stem of "falta" is "falto", which does not begin with "falta".
        self._words = frozenset(_stem(item.removesuffix("-")) for item in items)
        self._beginnings = tuple(item[:-1] for item in items if item.endswith("-"))

    def __contains__(self, word: str) -> bool:
        return word in self._words or word.startswith(self._beginnings)

    def among(self, words: Iterable[str]) -> bool:
        """Return whether the list has one of the words."""
        return any(word in self for word in words)


_ACCEPTED = """
    ok success successful successfully exito exitoso exitosamente correctamente satisfactoriamente sucesso accepted
    acceptd aceptado aceito queued enqueued enqueud queue encolado cola fila sent sending enviado enviando enviara
    reenviado direcionado submitted submitd transmitted transmitido dispatched despachado buffered enroute staged
    routed transit transito scheduled programado agendado pending pendiente pendente waiting processed processing
    procesado procesando proceso processando processamento progress created creado criado initiated iniciado started
    received recibido recebido realizado ringing calling llamando marcando done aguardando added
    """
_DELIVERED = """
    delivered delivrd entregado entregue read leido lido seen visto visualizado answered contestado atendido completed
    complete completado
    """
GOOD = WordList(_ACCEPTED + _DELIVERED)
"""Words of a request that was accepted; a delivered message was accepted, too."""
DELIVERED = WordList(_DELIVERED)
"""Words of a message that arrived, or of a call that was answered."""
VERIFIED = WordList(
    "ok success successful successfully exito exitoso exitosamente correctamente sucesso verified verificado valid "
    "valido validated validado correct correcto correto approved aprobado aprovado confirmed confirmado matched"
)
"""Words of a correct code."""
FILLER = WordList(
    "message mensaje mensagem msg sms call llamada chamada otp pin token code codigo verification verificacion "
    "verificacao number numero phone telefono request requisicao solicitud operation operacion operacao template "
    "plantilla delivery entrega envio handset recipient destinatario user usuario cliente end final operator "
    "operador operadora carrier telco telefonica platform plataforma api movil mobile celular telefonia device "
    "dispositivo destination destino new nuevo just recien voice voz terminal human added peticion a al ao and by "
    "com con de del e el em en es esta foi for fue ha has have been fully in is la na nossa on our session sesion "
    "las los para por pronto s se sido su the to tu was with y your"
)
"""Words without a meaning for the outcome."""
FAILED = WordList(
    "fail- fall- falh- reject- rechaz- rejeit- undeliv undelivered undeliverable unreachable noroute inacces- "
    "inalcanz- expired expirad- vencid- caduc- cancelled canceled cancelad- anulad- delet- eliminad- deni- deneg- "
    "refused blocked bloquead- black- blist negra barred inval- insuf- unauthor- unsupported forbidden prohib- "
    "restrict- restring- wrong incorrect- incomplete inexist- devuelto missing falta- required requerid- obligator- "
    "exced- exceed- too empty vaci- blank suspend- disabled inactiv- desactiv- deshabil- locked agotad- esgotad- "
    "mismatch unverified unregistered bad notallowed dnd optout opted unsubscribed undvbl notdelivered incapable "
    "unprovisioned violation mora throttl- overdue"
)
"""Words of something that was not done."""
REASON = WordList(
    "param- auth- autent- creden- autor- credit- saldo- balanc- fund- dinero cupo limit- max- permi- allow- format- "
    "valid- exist- regist- support- enabled habilit- whitelist ip enough route template activ- acces- approv- aprob- "
    "defin- numeric cadastr- sent enviado delivered entregado entregue recipient present right coverage configur- "
    "correct"
)
"""Words that mean a failure after a negation: "no credit"."""
OPEN = WordList(
    "time- tiempo tempo- transi- partial- parcial- retry- retri- reint- intent- attempt- excep- connect- conex- "
    "conect- gateway unavail- indispon- disponib- avail- yet aun todavia ainda will sera waiting espera- pending "
    "pendiente pendente unknown desconocido unexpected inesperado internal interno system sistema server servidor "
    "network red platform plataforma provider proveedor application general fatal tecnico technical database "
    "maintenance mantenim- manuten- overload- congest- hold held review revision paused test prueba confirm- already "
    "ya duplic- would something over after of sql- sqlstat- undefin- index offset warning argument foreach log "
    "callback webhook billing record column constraint null write disk json encod- decod- pars- syntax header- php "
    "line stack trac- second- segund- first primer ssl certific- deadlock transac- file firewall proxy next proximo "
    "remitio remitido cursado mandado mandamos despachamos despacho salio saiu relayed forwarded handed charged "
    "cobro cobrado enviaron enviamos entrego ?"
)
"""Words of a breakdown, a delay or a doubt: the outcome may still change."""
NO_ANSWER = WordList(
    "busy ocupado voicemail buzon machine contestador unanswered noanswer answer- contest- respon- respues- atend-"
)
"""Words of an unanswered call, by themselves or after a negation."""
NEGATION = WordList(
    "no not never sin without cannot nao sem nunca ningun ninguno none unable don doesn didn isn aren wasn couldn "
    "hasn haven"
)
"""Words that negate the rest of their phrase."""
SENT = WordList("sent enviado submitted transmitted transmitido dispatched despachado")
"""Words of a message that has left the service, for ``--until sent``."""
NOT_A_DELIVERY = WordList(
    "operator operador operadora carrier telco telefonica platform plataforma api request requisicao solicitud "
    "peticion operation operacion operacao template plantilla envio session sesion verification verificacion "
    "verificacao code codigo token otp pin"
)
"""Words of a state that is not about the person's phone: "delivered to the operator", "request completed"."""
NOT_A_CODE = WordList(
    "number numero phone telefono call llamada message mensaje msg sms request requisicao solicitud peticion "
    "operation operacion operacao template plantilla delivery entrega envio handset recipient destinatario user "
    "usuario cliente"
)
"""Words of a result that is not about the code: "request successful"."""
NO_REASON = WordList("fail- fall- falh-")
"""Words of `FAILED` that give no reason: the request may have been carried out in part."""
ERROR = WordList("err-")
"""Words of an error, whose outcome is open."""
ALONE = WordList("busy ocupado voicemail buzon machine contestador unanswered noanswer")
"""Words of `NO_ANSWER` that need no negation."""

_URL = r"https?://\S+|\A/\S+\Z"
"""A URL, or a text that is only a path."""
_INNER_CAPITAL = "(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
_PHRASE_END = "[.,;:()]"
_WORD = r"[^\W_]+|\?"
_BLOCKED = r"\b(?:blocked|blacklist(?:ed)?|bloquead[oa]s?|lista negra|added|agregad[oa]s?)\b"
"""Words that mean that a number was blocked, which is the purpose of `block add`."""


class Text(NamedTuple):
    """The words of a text: all ``words``, the ``plain`` words before a negation, and the ``negated`` words after it."""

    words: tuple[str, ...]
    plain: tuple[str, ...]
    negated: tuple[str, ...]

    def is_all(self, needed: WordList, *others: WordList, numbers: frozenset[str] = frozenset()) -> bool:
        """Return whether the text has a word in ``needed``, and all its words are in the lists or in ``numbers``."""
        lists = (needed, FILLER, *others)
        return needed.among(self.words) and all(
            word in numbers or any(word in word_list for word_list in lists) for word in self.words
        )

    @property
    def is_known(self) -> bool:
        """Whether every word is a number or in a list of good words or `FILLER`."""
        lists = (GOOD, VERIFIED, FILLER)
        return all(word.isdecimal() or any(word in word_list for word_list in lists) for word in self.words)

    @property
    def is_doubtful(self) -> bool:
        """Whether the text has a word of a failure, an open outcome or an error, or a negation beside other words."""
        if len(self.words) > 1 and NEGATION.among(self.words):
            return True
        return FAILED.among(self.words) or OPEN.among(self.words) or ERROR.among(self.words)

    def fails(self, *, with_reason: bool = False) -> bool:
        """Return whether the text means that nothing was done.

        With ``with_reason``, words such as "failed" do not suffice.
        """
        if OPEN.among(self.words) or NO_ANSWER.among(self.words) or GOOD.among(self.plain):
            return False
        if REASON.among(self.negated):
            return True
        return any(word in FAILED and not (with_reason and word in NO_REASON) for word in self.plain)


def together(texts: Iterable[Text]) -> Text:
    """Join texts; a negation still applies only to its own phrase."""
    parts = [*texts]
    return Text(
        tuple(word for text in parts for word in text.words),
        tuple(word for text in parts for word in text.plain),
        tuple(word for text in parts for word in text.negated),
    )


def tokenize(text: str, *, of_block: bool = False) -> Text:
    """Return a text. With ``of_block``, words such as "blocked" mean "accepted"."""
    return _tokenize(cut(text), of_block)


def cut(text: str) -> str:
    """Truncate a long text for the cache, and add an unknown word in place of the rest."""
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} ?"


@lru_cache(maxsize=512)
def _tokenize(text: str, of_block: bool) -> Text:
    folded = _folded(text)
    if of_block:
        folded = re.sub(_BLOCKED, "accepted", folded)
    words: list[str] = []
    plain: list[str] = []
    negated: list[str] = []
    for phrase in re.split(_PHRASE_END, folded):
        phrase_words = [_stem(word) for word in re.findall(_WORD, phrase)]
        words += phrase_words
        end = next((index for index, word in enumerate(phrase_words) if word in NEGATION), len(phrase_words))
        plain += phrase_words[:end]
        negated += phrase_words[end + 1 :]
    return Text(tuple(words), tuple(plain), tuple(negated))


def _folded(text: str) -> str:
    """Return a text in lower case, without URLs, accents and invisible characters, with words apart."""
    text = re.sub(_URL, " ", text, flags=re.IGNORECASE)
    if not text.isascii():
        # Marks are removed first: sorting a long run of them (Unicode Standard Annex 15) takes quadratic time.
        text = "".join(char for char in text if not unicodedata.combining(char))
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in decomposed if unicodedata.category(char) not in ("Mn", "Cf"))
    return re.sub(_INNER_CAPITAL, " ", text).replace("_", " ").lower()


class AddedWords:
    """The strings that a profile adds, by kind: accepted, refused, delivered, failed or verified."""

    def __init__(self, texts: Mapping[str, Sequence[str]]) -> None:
        self._texts = texts
        self._words = {kind: frozenset(filter(None, (tokenize(text).words for text in texts[kind]))) for kind in texts}

    def has(self, kind: str, text: str) -> bool:
        """Return whether the profile adds a text."""
        return kind in self._words and tokenize(text).words in self._words[kind]

    def plus(self, kind: str, texts: Sequence[str]) -> AddedWords:
        """Return these words and more texts of one kind."""
        return AddedWords({**self._texts, kind: [*self._texts.get(kind, ()), *texts]})


NO_WORDS = AddedWords({})
"""The added words of a profile without any."""
