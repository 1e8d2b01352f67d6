"""Responses in the forms that services send: the last step before the emulator encodes a response.

The emulator produces the documented records. A `Dialect` converts a record, or a refusal, to another form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, NamedTuple

from msgctl.errors import UsageError
from msgctl.operations import BALANCE, MESSAGES_STATE, VERIFY_2FA, Operation
from msgctl.sandbox.protocol import UNKNOWN_ERROR, Refusal, SandboxResponse, json_response, quoted

CHOICES: Mapping[str, tuple[str, ...]] = {
    "data": ("array", "object", "numbered", "phones", "bare", "none"),
    "entry_ids": ("true", "false"),
    "state": ("object", "array", "data-object", "data-array"),
    "words": ("english", "spanish"),
    "numbers": ("numbers", "strings"),
    "balance": ("status", "balance", "credits", "saldo"),
    "errors": ("520", "400", "200"),
    "verify": ("verified", "success", "1", "true"),
}
"""The values of each setting of a dialect. The first value is the documented one."""

DOCUMENTED, OBSERVED, MIXED = NAMES = ("documented", "observed", "mixed")
"""The sets of responses with a name."""
CUSTOM = "custom"
"""The name of any other set."""

_LISTS = ("array", "data-array")
_HIDES_PRICES = "none"

SPANISH = {
    "accepted": "Aceptado",
    "answered": "Contestada",
    "blocked": "Bloqueado",
    "busy": "Ocupado",
    "delivered": "Entregado",
    "not-answered": "No contesta",
    "queued": "En cola",
    "rejected": "Rechazado",
    "ringing": "Timbrando",
    "sent": "Enviado",
    "success": "exitoso",
    "undelivered": "No entregado",
    "verified": "verificado",
    "voicemail": "Buzón de voz",
}
_WORDED = ("state", "status")
"""The fields that contain one of these words."""

_ERRORS = {
    "MISSING_PARAMETER": (1001, "Parametros invalidos"),
    "INVALID_PARAMETER": (1001, "Parametros invalidos"),
    "UNAUTHORIZED": (1003, "Credenciales invalidas"),
    "NOT_ENOUGH_CREDITS": (1004, "Saldo insuficiente"),
    "NOT_FOUND": (1005, "No existe"),
    "ALREADY_TAKEN": (1006, "El nombre ya existe"),
    "INVALID_CODE": (1010, "Codigo invalido"),
    "EXPIRED_CODE": (1011, "Codigo expirado"),
    "NOT_PREMIUM": (1012, "Categoria no disponible"),
}
"""The number and the Spanish message of each error."""


class Dialect(NamedTuple):
    """The settings of a form of responses. The defaults are documented; `CHOICES` lists the values."""

    data: str = "array"
    entry_ids: str = "true"
    state: str = "object"
    words: str = "english"
    numbers: str = "numbers"
    balance: str = "status"
    errors: str = "520"
    verify: str = "verified"

    def response(self, operation: Operation, record: Any) -> SandboxResponse:
        """Return a successful response. ``record`` is the documented record, or a list of records for messages-state.

        If a setting cannot express a record without hiding who got the message, the nearest form that can is used.
        """
        document: Any = record
        if operation is BALANCE:
            document = {"status": 1, self.balance: record["status"]} if self.balance != "status" else record
        elif operation is VERIFY_2FA:
            document = {"verified": True} if self.verify == "true" else {"status": self.verify}
            if self.verify == "1":
                document = {"status": 1}
        elif operation is MESSAGES_STATE:
            document = self._states(record)
        elif operation.record.entries:
            document = self._dispatch(record)
        elif self.data == "bare":
            document = [record]
        return json_response(self._spelled(document))

    def refusal(self, operation: Operation | None, refusal: Refusal) -> SandboxResponse:
        """Return the response to a refused request."""
        documented = refusal.response()
        if refusal.status != UNKNOWN_ERROR:  # the request is not for an operation
            return documented
        number, message = _ERRORS[refusal.error]
        document: Any = {
            "error": refusal.error if self.errors == "520" else number,
            "msg": refusal.msg if self.words == "english" else message,
        }
        status = int(self.errors)
        if operation is MESSAGES_STATE and refusal.error == "NOT_FOUND" and self.state in _LISTS:
            status, document = 200, [] if self.state == "array" else {"data": []}
        return json_response(document, status)._replace(refusal=documented.refusal)

    def _states(self, records: Sequence[Mapping[str, Any]]) -> Any:
        """Return the states of one or several messages; several are always a list."""
        is_list = self.state in _LISTS or len(records) > 1
        found = records if is_list else records[0]
        return {"data": found} if self.state.startswith("data-") else found

    def _dispatch(self, record: Mapping[str, Any]) -> Any:
        """Return the record of a dispatch, with its entries in the form of ``data``."""
        form = self.data
        if form == "array":
            return {**record, "data": [self._entry(entry) for entry in record["data"]]}
        # Observed services send a state for all kinds of messages.
        entries = [
            {("state" if name == "status" else name): value for name, value in entry.items()}
            for entry in record["data"]
        ]
        if form == "bare" and record.keys() <= {"id", "status", "data"}:
            return entries
        if form == _HIDES_PRICES and all(entry["state"] != "blocked" for entry in entries):
            return {name: value for name, value in record.items() if name != "data"}
        entries = [self._entry(entry) for entry in entries]
        data: Any = None
        if form == "phones":
            data = {str(entry["phone"]): _without(entry, "phone") for entry in entries}
        elif form == "object":
            data = _merged(entries)
        return {**record, "data": data or {str(place): entry for place, entry in enumerate(entries)}}

    def _entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        return entry if self.entry_ids == "true" else _without(entry, "id")

    def _spelled(self, value: Any, name: str = "") -> Any:
        """Return a JSON value with the words and numbers of this dialect."""
        if isinstance(value, dict):
            return {name: self._spelled(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self._spelled(each) for each in value]
        if self.words == "spanish" and name in _WORDED and isinstance(value, str):
            return SPANISH.get(value, value)
        if self.numbers == "strings" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return str(value)
        return value


_NAMED = {
    DOCUMENTED: Dialect(),
    OBSERVED: Dialect("object", "false", "array", "spanish", "strings", "balance", "400", "1"),
}


def _without(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in entry.items() if each != name}


def _merged(entries: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return one entry for all numbers, or None if the entries differ in more than number and credits."""
    first = entries[0]
    if len(entries) == 1:
        return first
    if any({**entry, "phone": first["phone"], "credits": first["credits"]} != first for entry in entries):
        return None
    phones = ",".join(str(entry["phone"]) for entry in entries)
    return {**first, "credits": sum(entry["credits"] for entry in entries), "phone": phones}


# --- choosing


def checked(settings: Mapping[str, object], where: str = "") -> str:
    """Check settings, or ``{"responses": NAME}``, and return the text to store. Raises UsageError.

    Missing settings are as documented. Messages begin with ``where``.
    """
    if "responses" in settings:
        if len(settings) > 1:
            raise UsageError(f"{where}responses cannot be combined with settings")
        name = settings["responses"]
        if name not in NAMES:
            raise UsageError(f"{where}responses must be {_listed(NAMES)}, not {quoted(str(name))}")
        return str(name)
    found = {}
    for key, value in settings.items():
        if key not in CHOICES:
            raise UsageError(f"{where}unknown key {quoted(key)}", f"Choose from {_listed(tuple(CHOICES), 'and')}.")
        # A TOML file has false, 400 and 1.
        text = str(value).lower() if isinstance(value, (bool, int)) else value
        if text not in CHOICES[key]:
            raise UsageError(f"{where}{key} must be {_listed(CHOICES[key])}, not {quoted(str(value))}")
        found[key] = text
    dialect = Dialect(**found)
    return next((name for name in _NAMED if _NAMED[name] == dialect), json.dumps(dialect._asdict()))


def dialect(stored: str, random: Random) -> Dialect:
    """Return the dialect of the next response; ``random`` draws one of `MIXED`.

    `MIXED` never omits the ``data`` of a dispatch: the price of its messages would be unknown.
    """
    if stored == MIXED:
        return Dialect(*[random.choice([each for each in CHOICES[key] if each != _HIDES_PRICES]) for key in CHOICES])
    return _loaded(stored)


def described(stored: str) -> dict[str, str]:
    """Return the name of stored responses, and their settings."""
    if stored == MIXED:
        return {"responses": MIXED, **dict.fromkeys(CHOICES, "any")}
    return {"responses": stored if stored in NAMES else CUSTOM, **_loaded(stored)._asdict()}


@lru_cache(maxsize=1)
def _loaded(stored: str) -> Dialect:
    return _NAMED.get(stored) or Dialect(**json.loads(stored))


def _listed(names: Sequence[str], last: str = "or") -> str:
    return f"{', '.join(names[:-1])} {last} {names[-1]}"
