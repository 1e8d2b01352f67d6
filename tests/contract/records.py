"""The records in the service's responses, transcribed by hand from the interface document and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record; ``type`` is in the document's words, ``fields`` are those of an object or an entry."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a response, its fields in the document's order; ``name`` is None if the document gives none."""

    name: str | None
    fields: tuple[Field, ...]


def _strings(*names: str) -> tuple[Field, ...]:
    return tuple(Field(name, "string") for name in names)


def _error(name: str) -> Record:
    return Record(name, (Field("error", "string"), Field("msg", "string")))


BALANCE = Record("ResponseBalance", (Field("status", "integer (int64)"),))

SECURITY = Record("ResponseSecurity", _strings("id", "status", "phone", "name"))

SMS = Record(
    "ResponseSMS",
    (
        Field("id", "string"),
        Field("status", "integer (int64)"),
        Field(
            "data",
            "array of objects",
            (
                Field("id", "string"),
                Field("status", "string"),
                Field("credits", "integer"),
                Field("sms", "string"),
                Field("phone", "string"),
            ),
        ),
    ),
)

CALL = Record(
    "ResponseCall",
    (
        Field("status", "string"),
        Field("id", "string"),
        Field(
            "data",
            "array of objects",
            (
                Field("id", "string"),
                Field("state", "string"),
                Field("credits", "integer"),
                Field("message", "string"),
                Field("phone", "string"),
                Field("voice", "string"),
            ),
        ),
    ),
)

MESSAGE_STATE = Record(
    "ResponseStatusSMS",
    (
        Field("state", "string"),
        Field("credits", "integer (int64)"),
        Field("phone", "integer (int64)"),
        Field("created", "string"),
        Field("sms", "string"),
        Field("dispatch_id", "string"),
        Field("id", "string"),
    ),
)

SMS_2FA = Record(
    "ResponseSMS2fa",
    (
        Field("id", "string"),
        Field("status", "string"),
        Field("minutes_to_expire", "integer (int64)"),
        Field(
            "data",
            "array of objects",
            (
                Field("id", "string"),
                Field("status", "string"),
                Field("credits", "integer"),
                Field("sms", "string"),
                Field("phone", "string"),
            ),
        ),
    ),
)

CALL_2FA = Record(
    "ResponseCALL2fa",
    (
        Field("status", "string"),
        Field("id", "string"),
        Field("minutes_to_expire", "integer (int64)"),
        Field(
            "data",
            "array of objects",
            (
                Field("id", "string"),
                Field("state", "string"),
                Field("credits", "integer"),
                Field("phone", "numeric"),
                Field("voice", "string"),
            ),
        ),
    ),
)

SUCCESS_RESULT = Record("ResponseSucces", _strings("status"))

CHATAPP = Record(None, _strings("id", "status", "phone", "name"))
"""What the chat-app sends answer, shown under each of their endpoints without a name."""

URL_SHORT = Record("ResponseURLShort", _strings("urlShort", "urlLong", "msg"))

STATISTIC = Record(
    "ResponseStatistic",
    (
        Field("urlShort", "string"),
        Field("urlLong", "string"),
        Field("clicksNumber", "integer"),
        Field(
            "metrics",
            "array of objects",
            (
                Field("date", "object", (Field("property", "string"), Field("clicks", "integer"))),
                Field(
                    "hour", "object", (Field("property", "string"), Field("clicks", "integer"), Field("date", "string"))
                ),
                Field("country", "object", (Field("property", "string"), Field("clicks", "integer"))),
                Field("region", "object", (Field("property", "string"), Field("clicks", "integer"))),
                Field(
                    "city",
                    "object",
                    (
                        Field("property", "string"),
                        Field("clicks", "integer"),
                        Field("countryIsoCode", "string"),
                        Field("region", "string"),
                        Field("percent", "number"),
                    ),
                ),
                Field("device", "object", (Field("property", "string"), Field("clicks", "integer"))),
                Field(
                    "brand",
                    "object",
                    (Field("property", "string"), Field("clicks", "integer"), Field("percent", "number")),
                ),
                Field(
                    "model",
                    "object",
                    (Field("property", "string"), Field("clicks", "integer"), Field("percent", "number")),
                ),
                Field("operatingSystem", "object", (Field("property", "string"), Field("clicks", "integer"))),
                Field("browser", "object", (Field("property", "string"), Field("clicks", "integer"))),
                Field("lang", "object", (Field("property", "string"), Field("clicks", "integer"))),
            ),
        ),
    ),
)

ERROR = _error("ErrorResponse")
ERROR_BALANCE = _error("ErrorResponseBalance")
ERROR_CALL = _error("ErrorResponseCall")
ERROR_SECURITY = _error("ErrorResponseSecurity")
