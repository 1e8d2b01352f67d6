"""Convert documented responses to observed ones: the last step before the emulator encodes a response.

The emulator produces the documented records. With the responses named `OBSERVED`, a record gets an undocumented field,
numbers are strings, ``data`` is an object without message IDs, and an error is a number with status 400.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

from msgctl.operations import Operation, Shape
from msgctl.sandbox.protocol import UNKNOWN_ERROR, JsonObject, Refusal, SandboxResponse, json_response

DOCUMENTED, OBSERVED = NAMES = ("documented", "observed")
"""The names of the responses."""

UNREACHABLE = "Error:1081 msg: Destino inaccesible"
"""The state of a message that is never delivered; its credits are 0."""

STATES: Mapping[str, tuple[str, ...]] = {
    "delivered": ("Enviado", "Error temporal, reintentando", "Entregado a la operadora", "Entregado"),
    "undelivered": ("Enviado", UNREACHABLE),
    "rejected": ("Enviado", "Rechazado"),
    "queued": ("Enviado",),
    "blocked": ("Bloqueado",),
    "answered": ("En cola", "Timbrando", "Contestada"),
    "not-answered": ("En cola", "Timbrando", "No contesta"),
    "voicemail": ("En cola", "Timbrando", "Buzón de voz"),
    "busy": ("En cola", "Ocupado"),
    "ringing": ("En cola", "Timbrando"),
}
"""The states of a message, by its documented final state."""

_STATUSES = {"accepted": "Aceptado", "blocked": "Bloqueado"}

_VERIFIED: tuple[JsonObject, ...] = ({"status": 1}, {"verified": True}, {"status": "exitoso"})
"""The responses to a correct code."""

_ERRORS = {
    "MISSING_PARAMETER": (1001, "Parametros invalidos"),
    "INVALID_PARAMETER": (1001, "Parametros invalidos"),
    "UNAUTHORIZED": (1003, "Credenciales invalidas"),
    "NOT_ENOUGH_CREDITS": (1004, "Saldo insuficiente"),
    "NOT_FOUND": (1005, "No existe"),
    "INVALID_NAME": (1006, "Nombre invalido"),
    "INVALID_CODE": (1010, "Codigo invalido o expirado"),
    "EXPIRED_CODE": (1010, "Codigo invalido o expirado"),
    "NOT_PREMIUM": (1012, "Categoria invalida"),
    "INVALID_TEMPLATE": (1040, "Plantilla no existe"),
}
"""The number and the Spanish message of each error."""


def observed(operation: Operation, record: Any, now: float, random: Random) -> SandboxResponse:
    """Return a successful response. ``record`` is the documented record, or a list of records for messages-state."""
    extra = {"created_at": f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S}"}
    if operation.verifies:
        return json_response(random.choice(_VERIFIED) | extra)
    shape = operation.record.shape
    if shape is Shape.BALANCE:
        record = {"status": 1, "balance": record["status"]}
    elif shape is Shape.DISPATCH and operation.record.entries:
        record = {**record, "data": _data(record["data"])}
    if isinstance(record, list):
        return json_response([_spelled(element) | extra for element in record])
    if "status" in record:
        record = {**record, "status": _STATUSES.get(record["status"], record["status"])}
    return json_response(_spelled(record) | extra)


def observed_refusal(operation: Operation | None, refusal: Refusal) -> SandboxResponse:
    """Return the response to a refused request."""
    documented = refusal.response()
    if refusal.status != UNKNOWN_ERROR:  # the request is not for an operation
        return documented
    is_states = operation is not None and operation.record.shape is Shape.STATES
    if is_states and refusal.reason.error == "NOT_FOUND":
        response = json_response([])
    else:
        number, message = _ERRORS[refusal.reason.error]
        response = json_response({"error": number, "msg": message}, 400)
    return response._replace(refusal=documented.refusal)


def _data(entries: Sequence[JsonObject]) -> JsonObject:
    """Return one object for all recipients, or an object of objects if their states differ."""
    states = [
        {("state" if name == "status" else name): value for name, value in entry.items() if name != "id"}
        for entry in entries
    ]
    alike = [{name: value for name, value in state.items() if name not in ("phone", "credits")} for state in states]
    if any(other != alike[0] for other in alike):
        return {str(index): state for index, state in enumerate(states)}
    entry = {**states[0], "phone": ",".join(str(state["phone"]) for state in states)}
    if "credits" in entry:
        entry["credits"] = sum(state["credits"] for state in states)
    return entry


def _spelled(value: Any) -> Any:
    """Return a JSON value with its numbers as strings."""
    if isinstance(value, dict):
        return {name: _spelled(element) for name, element in value.items()}
    if isinstance(value, list):
        return [_spelled(element) for element in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    return value
