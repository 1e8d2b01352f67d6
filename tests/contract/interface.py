"""The service's REST interface, version 1.0.0, transcribed by hand from its document and from nothing else.

It shares nothing with the package, so that a wrong fact there is found. What the document
leaves open is open here: ``unstated``, or a name that is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from contract import records
from contract.records import Record

Place = Literal["query", "form", "json"]
Presence = Literal["required", "optional", "conditional", "unstated"]

VERSION = "1.0.0"
BASE_PATH = "/api/v1"
"""What the base URL ends in."""

SUCCESS = 200
FAILURE = 520
STATUSES = (SUCCESS, FAILURE)

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an endpoint; ``type`` is in the document's words.

    ``several`` is whether several values may be given, separated by commas. ``values`` are all that are allowed (any
    is, where it is empty), and ``premium_values`` those of them that only premium URLs have. A conditional parameter
    is required when the one named in ``unless`` is not sent. What is named in ``excludes`` must not be sent along.
    """

    name: str
    type: str
    place: Place
    presence: Presence
    several: bool = False
    values: tuple[str, ...] = ()
    premium_values: tuple[str, ...] = ()
    maximum: int | None = None
    format: str | None = None
    default: bool | None = None
    unless: str | None = None
    excludes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint: its parameters, and its responses with 200 (``answer``) and with 520 (``error``).

    ``content_type`` is that of the request's body, and ``accept`` the request header that the document names.
    """

    method: str
    path: str
    parameters: tuple[Parameter, ...]
    answer: Record
    error: Record
    content_type: str | None = None
    accept: str | None = None

    def placed(self, place: Place) -> tuple[Parameter, ...]:
        """Return the parameters in one place, in the document's order."""
        return tuple(parameter for parameter in self.parameters if parameter.place == place)

    def present(self, presence: Presence) -> tuple[Parameter, ...]:
        """The parameters that are required, or optional, …, in the document's order."""
        return tuple(parameter for parameter in self.parameters if parameter.presence == presence)

    def parameter(self, name: str) -> Parameter:
        """The parameter of that name; there is one, or a KeyError."""
        return {parameter.name: parameter for parameter in self.parameters}[name]


CALL_VOICES = ("Marian", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
CALL_2FA_VOICES = ("Mariana", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")

CATEGORIES = ("date", "hour", "country", "device", "operatingSystem")
PREMIUM_CATEGORIES = ("region", "city", "brand", "model", "browser", "lang")

_BY_QUERY = (
    Parameter("client", "integer (int64)", "query", "required"),
    Parameter("key", "string", "query", "required"),
)
_BY_FORM = (
    Parameter("client", "integer (int64)", "form", "required"),
    Parameter("key", "string", "form", "required"),
)
_COUNTRY_CODE = Parameter("country-code", "string", "form", "optional", format="ISO 3166")

_TEMPLATE_SEND = (
    *_BY_QUERY,
    Parameter("template", "string", "query", "required"),
    # The body is required; which of its fields are, and whether there are more, is not shown.
    Parameter("phone", "string", "json", "unstated"),
    Parameter("body", "array of strings", "json", "unstated"),
)

_ALL = (
    Endpoint("GET", "/balance", _BY_QUERY, records.BALANCE, records.ERROR_BALANCE),
    Endpoint(
        "POST",
        "/block-phone",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required"),
            Parameter("name", "string", "form", "optional"),
        ),
        records.SECURITY,
        records.ERROR_SECURITY,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "POST",
        "/send-sms",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required", several=True),
            Parameter("sms", "string", "form", "required"),
            _COUNTRY_CODE,
        ),
        records.SMS,
        records.ERROR,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "POST",
        "/call/send",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required", several=True),
            Parameter("message", "string", "form", "conditional", unless="audio-code"),
            Parameter("voice", "string", "form", "conditional", values=CALL_VOICES, unless="audio-code"),
            Parameter("retries", "string", "form", "optional", maximum=3),
            Parameter("leave-voicemail", "boolean", "form", "optional"),
            _COUNTRY_CODE,
            Parameter("audio-code", "string", "form", "optional", excludes=("voice", "message")),
        ),
        records.CALL,
        records.ERROR_CALL,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "GET",
        "/messages-state",
        (*_BY_QUERY, Parameter("id", "string", "query", "required")),
        records.MESSAGE_STATE,
        records.ERROR_BALANCE,
    ),
    Endpoint(
        "POST",
        "/2fa/send-sms",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required"),
            Parameter("app-name", "string", "form", "required"),
            _COUNTRY_CODE,
        ),
        records.SMS_2FA,
        records.ERROR,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "POST",
        "/call/2fa/send-call",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required"),
            Parameter("app-name", "string", "form", "required"),
            Parameter("voice", "string", "form", "required", values=CALL_2FA_VOICES),
            # The maximum is stated for the call operation of the same kind.
            Parameter("retries", "string", "form", "required", maximum=3),
            _COUNTRY_CODE,
        ),
        records.CALL_2FA,
        records.ERROR_CALL,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "POST",
        "/2fa/verification-code",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required"),
            Parameter("app-name", "string", "form", "required"),
            Parameter("code", "string", "form", "required"),
            _COUNTRY_CODE,
        ),
        records.SUCCESS_RESULT,
        records.ERROR,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "POST",
        "/url/short",
        (
            *_BY_FORM,
            Parameter("name", "string", "form", "required"),
            Parameter("url-long", "string", "form", "required"),
            Parameter("alias", "string", "form", "optional"),
            Parameter("is-premium", "boolean", "form", "optional", default=False),
            Parameter("group-name", "string", "form", "optional"),
            Parameter("domain-name", "string", "form", "optional"),
            Parameter("expiration-time-statistics", "string", "form", "optional", format="months"),
        ),
        records.URL_SHORT,
        records.ERROR,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint(
        "POST",
        "/url/short-statistic",
        (
            *_BY_FORM,
            Parameter("name-url", "string", "form", "required"),
            Parameter("since", "string", "form", "required", format="YYYY-MM-DD"),
            Parameter("until", "string", "form", "required", format="YYYY-MM-DD"),
            Parameter(
                "category",
                "string",
                "form",
                "optional",
                values=CATEGORIES + PREMIUM_CATEGORIES,
                premium_values=PREMIUM_CATEGORIES,
            ),
        ),
        records.STATISTIC,
        records.ERROR,
        content_type=FORM,
        accept=JSON,
    ),
    Endpoint("POST", "/chatapp/send", _TEMPLATE_SEND, records.CHATAPP, records.ERROR, content_type=JSON),
    Endpoint("POST", "/chatapp/store/order", _TEMPLATE_SEND, records.CHATAPP, records.ERROR, content_type=JSON),
    Endpoint(
        "POST",
        "/2fa/send-chatapp",
        (
            *_BY_FORM,
            Parameter("phone", "string", "form", "required"),
            Parameter("app-name", "string", "form", "required"),
            _COUNTRY_CODE,
            Parameter("template", "string", "form", "optional"),
        ),
        records.CHATAPP,
        records.ERROR,
        content_type=FORM,
        accept=JSON,
    ),
)

ENDPOINTS: dict[tuple[str, str], Endpoint] = {(endpoint.method, endpoint.path): endpoint for endpoint in _ALL}
"""Every endpoint by method and path, in the document's order."""
