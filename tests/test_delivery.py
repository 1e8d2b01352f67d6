"""The classes of delivery states, in English and Spanish."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from msgctl.delivery import (
    Delivery,
    classify,
    contradicts_success,
    is_failure,
    is_success,
    is_verified_word,
    negates,
    reaches,
    use_words,
)

STATES = {
    Delivery.DELIVERED: """
        delivered | DELIVERED | Delivered | DELIVRD | delivrd | DeliveredToTerminal | delivered_to_handset
        message delivered | sms-delivered | SMSDelivered | Delivery report: delivered | delivered (2 segments)
        entregado | entregada | ENTREGADO | Entregados | entregadas | Mensaje entregado | mensaje_entregado
        read | READ | leído | Leído | leida | LEÍDAS | leido | seen | Seen by user | visto | Vista | vistos
        answered | Answered | call-answered | contestada | Contestado | CONTESTADAS | llamada contestada
        atendida | Atendido | completed | Completed | callCompleted | completado | completada | Completados
        Error 0: delivered | error:0 entregado | sin error. Entregado | Entregado; leído | ｄｅｌｉｖｅｒｅｄ
        deli\u200bvered | ya nos fue entregado
        """,
    Delivery.NOT_ANSWERED: """
        busy | Busy | BUSY | line busy | ocupado | Ocupada | OCUPADOS | Teléfono ocupado | voicemail | Voicemail left
        buzón | Buzón de voz | BUZON DE VOZ | buzones | no answer | no-answer | NoAnswer | NO_ANSWER | noAnswer
        not answered | NotAnswered | not-answered | was not answered | wasn't answered | no contesta | No contestada
        no contestado | No contestó | NO CONTESTA | sin respuesta | Sin Respuesta | SIN_RESPUESTA | no hay respuesta
        never answered | Rejected: busy | Fallido (ocupado)
        """,
    Delivery.FAILED: """
        failed | FAILED | Failed | fail | failure | delivery failure | failed: 1081 | failed(12) | sendFailed
        error | ERROR | Error 1081 | Error:1081 | error=1081 | Error:1081 msg: Destino inaccesible | errors | errores
        internal error | rejected | REJECTED | Rejectd | REJECTD | reject | RejectedByOperator | rejected by carrier
        denied | refused | blocked | Blocked by user | invalid | INVALID_NUMBER | InvalidNumber | undelivered
        Undelivered | UNDELIV | undeliverable | UNDELIVERABLE | unreachable | expired | EXPIRED | cancelled | canceled
        deleted | DELETED | not delivered | NOT_DELIVERED | notDelivered | not-delivered | no delivered | not sent
        notSent | NotSent | could not be delivered | couldn't be delivered | cannot be delivered | never delivered
        not completed | without delivered report | fallo | Falló | fallos | fallido | Fallida | FALLIDOS
        rechazado | Rechazada | RECHAZADOS | rechazadas | denegado | Denegada | bloqueado | Bloqueada | inválido
        Número inválido | invalida | expirado | Expirada | vencido | Vencidas | caducado | caducada | cancelado
        canceladas | eliminado | Eliminada | inaccesible | Destino inaccesible | insuficiente | Saldo insuficiente
        devuelto | devueltas | no entregado | NO ENTREGADO | NoEntregado | no_entregada | no enviado | No enviada
        no se pudo entregar | sin saldo | Sin cobertura | sin entregar | no hay saldo | no leer: rechazado
        aceptado, luego rechazado | Enviado. Fallido | no problem: failed
        """,
    Delivery.ON_ITS_WAY: """
        sent | Sent | SENT | enviado | Enviada | ENVIADOS | Enviando | sending | queued | en cola | En Cola | EN_COLA
        pending | pendiente | procesando | Processing | accepted | Aceptado | ACCEPTD | scheduled | programado
        submitted | in progress | en proceso | ringing | timbrando | unknown | UNKNOWN | desconocido | 0 | 1 | 200
        -1 | 3.5 | ok | ? | enroute | EN RUTA | buffered | transmitido | despachado | retry | reintento
        not yet delivered | aún no entregado | Aun no entregada | todavía no entregado | yet to be delivered
        no leído | not read | NOT_READ | notRead | not seen | never seen | delivered, not read | entregado (no leído)
        aún no leído | delivered to operator | Entregado al operador | DeliveredToCarrier | delivered to gateway
        entregado a las redes | entregado a la red | read timeout | Delivered: operator timeout | no error | sin errores
        without errors | not rejected | no rechazado | error 0 | Error: 0 | ERROR_0 | error:000 | not blocked
        no expirado | terror | rejectable | deliver | entrega | redelivery | undecided | shipped
        """,
}


def test_every_state_has_its_class() -> None:
    spellings = {
        state.strip(): kind for kind, text in STATES.items() for line in text.splitlines() for state in line.split("|")
    }
    spellings.pop("")
    assert len(spellings) >= 250
    wrong = {state: str(found) for state, kind in spellings.items() if (found := classify(state)) is not kind}
    assert wrong == {}


def test_a_very_long_state_is_read_only_to_its_1000th_character() -> None:
    assert classify("x" * 2_000_000 + " delivered") is Delivery.ON_ITS_WAY


def test_the_state_to_wait_for_is_reached() -> None:
    for state, wanted in (
        ("Entregado", "delivered"),
        ("read", "DELIVERED"),
        ("Rechazado", "failed"),
        ("No contesta", "busy"),
        ("Enviado", "sent"),
        ("SENT", "enviada"),
        ("en_cola", "En cola"),
        ("delivered", "sent"),
        ("Leído", "queued"),
    ):
        assert reaches(state, wanted), (state, wanted)
    for state, wanted in (
        ("sent", "delivered"),
        ("queued", "sent"),
        ("not sent", "sent"),
        ("Fallido", "sent"),
        ("failed", "delivered"),
        ("busy", "failed"),
        ("delivered", "failed"),
        ("not yet sent", "sent"),
    ):
        assert not reaches(state, wanted), (state, wanted)


def test_an_unknown_status_with_a_negation_is_doubtful() -> None:
    for status in ("NO_CREDITS", "No autorizado", "not allowed"):
        assert negates(status), status
    for status in ("queued", "No contesta", "not delivered", "Aún no enviado", "7"):
        assert not negates(status), status


def test_a_status_of_a_request_means_success_failure_or_neither() -> None:
    for status in (
        "success",
        "Mensaje enviado",
        "queued",
        "accepted",
        "Aceptada",
        "OK",
        "exitoso",
        "sent",
        "entregado",
    ):
        assert is_success(status), status
        assert not is_failure(status), status
    for status in (
        "error",
        "not sent",
        "Rechazado",
        "no aceptado: fallo",
        "invalid",
        "blocked",
        "Error: aún no existe",
    ):
        assert is_failure(status), status
        assert not is_success(status), status
    for status in ("", "pending", "no aceptado", "7", "processing", "no error", "Aún no entregado", "not sent yet"):
        assert not is_failure(status), status
        assert not is_success(status), status
    assert is_success("blocked", of_block=True)
    assert not is_failure("blocked", of_block=True)
    assert is_failure("not blocked", of_block=True)


@pytest.fixture
def own_words() -> Iterator[None]:
    use_words({"delivered": ["RECEIVED", "en destino"], "failed": ["PERDIDO"], "verified": ["Código aceptado"]})
    yield
    use_words({})


def test_a_profile_adds_words(own_words: None) -> None:
    assert classify("Received") is classify("message received") is classify("EN_DESTINO") is Delivery.DELIVERED
    assert classify("not received") is classify("perdida") is classify("Mensaje perdido") is Delivery.FAILED
    assert classify("received by operator") is classify("destino") is Delivery.ON_ITS_WAY
    assert classify("delivered") is Delivery.DELIVERED
    assert is_failure("Perdido")
    assert is_verified_word("CODIGO ACEPTADO")
    assert not is_verified_word("aceptado")


def test_the_words_of_a_profile_end_with_it(own_words: None) -> None:
    use_words({})
    assert classify("Received") is Delivery.ON_ITS_WAY
    assert not is_failure("Perdido")


def test_a_word_for_verified_stands_alone() -> None:
    for status in (
        "ok", "OK", "success", "Successful", "verified", "isVerified", "valid", "Correct!", "approved", "verificado",
        "Verificada", "válido", "VALIDA", "correcto", "Código correcto", "El código es válido.", "The code is valid",
        "aprobada", "exitoso", "exitosa", "éxito", "code_verified", "codeIsValid",
    ):  # fmt: skip
        assert is_verified_word(status), status
    for status in (
        "", " ", "1", "404", "true", "already used", "used", "Codigo ya utilizado", "locked", "too many attempts",
        "intentos agotados", "desconocido", "bad code", "not verified", "no verificado", "notVerified", "unverified",
        "invalid", "InvalidCode", "OTPInvalid", "inválido", "incorrecto", "code", "el código", "valid until 10:00",
        "ok?", "❌ verified", "verified by someone else", "success: false", "sent", "delivered", "accepted", "pending",
        "válido pero expirado", "correct code already used", "success 0", "no ok", "ok not ok", "okay",
    ):  # fmt: skip
        assert not is_verified_word(status), status


def test_a_message_contradicts_a_success() -> None:
    for message in ("Código inválido", "not verified", "no coincide", "code expired", "Ya fue utilizado", "sin éxito",
                    "incorrect code", "El código no es correcto", "wasn't accepted", "locked"):  # fmt: skip
        assert contradicts_success(message), message
    for message in ("", "Código verificado", "The code is right", "Bienvenido", "verified at 10:00"):
        assert not contradicts_success(message), message
