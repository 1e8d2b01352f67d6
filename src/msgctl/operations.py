"""The 13 operations of the service as data: the only place for its facts.

Everything here is transcribed from the API documentation, version 1.0.0 (sections "Resources and their fields" and
"Endpoints"), including odd spellings: the voice ``Marian`` of a call is ``Mariana`` in a verification call. Request
building, the checks of required fields and limits, the emulator's routing and the help texts use this data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from msgctl.errors import NOTHING_SENT


class Kind(Enum):
    """The JSON or form type of a field, with the API's names."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    ARRAY = "array"
    OBJECT = "object"


class Place(Enum):
    """Where a parameter is placed in a request."""

    QUERY = "query"
    FORM = "form"
    JSON = "json"


class Effect(Enum):
    """The effect of a request, which decides whether it may be retried after a lost response.

    READS may be retried. CHANGES and SENDS are made once: a second request could be a second charge or message.
    """

    READS = "reads"
    CHANGES = "changes"
    SENDS = "sends"

    @property
    def prevented(self) -> str:
        """The consequence of an error before the request was carried out; empty for a request that only reads."""
        if self is Effect.SENDS:
            return NOTHING_SENT
        return "nothing was changed" if self is Effect.CHANGES else ""


class Shape(Enum):
    """The shape of a record, which determines how it is read, shown and imitated.

    A DISPATCH has an entry for each recipient in ``data``. A RECORD is one object, and a LIST has objects in ``data``.
    STATES are the delivery states of messages. STATISTICS have metrics by category. BALANCE and LINK are one object
    with the credits left or a short URL.
    """

    DISPATCH = "dispatch"
    RECORD = "record"
    LIST = "list"
    STATES = "states"
    STATISTICS = "statistics"
    BALANCE = "balance"
    LINK = "link"


class Field(NamedTuple):
    """One parameter of an operation.

    ``name`` is the spelling on the wire; ``typed`` is the option, or the argument in capitals. ``least`` and ``most``
    are the bounds of a number. With ``several``, commas separate several values.
    """

    name: str
    typed: str
    help: str
    place: Place = Place.FORM
    kind: Kind = Kind.STRING
    required: bool = True
    several: bool = False
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


class ResponseField(NamedTuple):
    """One field of a response; ``of`` describes the elements of an array or the fields of an object."""

    name: str
    kind: Kind = Kind.STRING
    of: tuple[ResponseField, ...] = ()


class Record(NamedTuple):
    """The record in a successful response: its name in the API, its fields in order, and its shape."""

    name: str
    fields: tuple[ResponseField, ...]
    shape: Shape = Shape.RECORD

    @property
    def entries(self) -> tuple[ResponseField, ...]:
        """The fields of one ``data`` entry; empty if the record has no ``data``."""
        return next((field.of for field in self.fields if field.name == "data"), ())


class Operation(NamedTuple):
    """One operation: method and path under the base URL, effect, fields without the credentials, and response.

    ``name`` is the command that makes the request; ``credentials`` is the place of ``client`` and ``key``. ``advice``
    contains the parts of the hint after an unknown outcome, with ``{name}`` for a parameter (see `msgctl.errors.Hint`).
    ``verdict`` is the message after a success, with ``{phone}`` for the number; it is empty for operations that send
    messages. ``blocks`` and ``verifies`` mean that the operation blocks a number or checks a code.
    """

    name: str
    method: str
    path: str
    effect: Effect
    fields: tuple[Field, ...]
    record: Record
    credentials: Place = Place.FORM
    advice: Sequence[str] = ("Before you resend, check the delivery state, the balance, or the phone itself.",)
    verdict: str = ""
    blocks: bool = False
    verifies: bool = False

    @property
    def is_recorded(self) -> bool:
        """Whether the history contains its requests."""
        return self.effect is Effect.SENDS or self.blocks

    @property
    def sends_code(self) -> bool:
        return self.effect is Effect.SENDS and any(field.name == "app-name" for field in self.fields)

    @property
    def channel(self) -> str:
        """How its messages reach people, one of `CHANNELS`; for a code and other operations, its group of commands."""
        return self.name.split()[0]

    def field(self, name: str) -> Field:
        """Return the field with a wire name. Raises KeyError."""
        return {field.name: field for field in self.fields}[name]


METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""The HTTP methods that `msgctl api` accepts."""

CALL_VOICES = ("Marian", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
VERIFICATION_VOICES = ("Mariana", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
PLAIN_CATEGORIES = ("date", "hour", "country", "device", "operatingSystem")
PREMIUM_CATEGORIES = ("region", "city", "brand", "model", "browser", "lang")
MAX_RETRIES = 3
CHANNELS = {"sms": "SMS", "call": "calls", "chatapp": "chat-app messages"}
"""The channels that a person can opt out of, and their names in messages."""


def _response_fields(*fields: str | ResponseField) -> tuple[ResponseField, ...]:
    """Return the fields of a response; a field without a type is a string."""
    return tuple(ResponseField(field) if isinstance(field, str) else field for field in fields)


_CREDITS = ResponseField("credits", Kind.INTEGER)
_MINUTES = ResponseField("minutes_to_expire", Kind.INTEGER)
_PERCENT = ResponseField("percent", Kind.NUMBER)
_CLICKS = _response_fields("property", ResponseField("clicks", Kind.INTEGER))
_METRICS = {
    "date": (),
    "hour": _response_fields("date"),
    "country": (),
    "region": (),
    "city": _response_fields("countryIsoCode", "region", _PERCENT),
    "device": (),
    "brand": (_PERCENT,),
    "model": (_PERCENT,),
    "operatingSystem": (),
    "browser": (),
    "lang": (),
}
_SMS_DATA = ResponseField("data", Kind.ARRAY, _response_fields("id", "status", _CREDITS, "sms", "phone"))
_CALL_DATA = ResponseField("data", Kind.ARRAY, _response_fields("id", "state", _CREDITS, "message", "phone", "voice"))
_CALL_2FA_DATA = ResponseField(
    "data", Kind.ARRAY, _response_fields("id", "state", _CREDITS, ResponseField("phone", Kind.NUMBER), "voice")
)

RESPONSE_BALANCE = Record("ResponseBalance", (ResponseField("status", Kind.INTEGER),), Shape.BALANCE)
RESPONSE_SECURITY = Record("ResponseSecurity", _response_fields("id", "status", "phone", "name"))
RESPONSE_SMS = Record(
    "ResponseSMS", _response_fields("id", ResponseField("status", Kind.INTEGER), _SMS_DATA), Shape.DISPATCH
)
RESPONSE_CALL = Record("ResponseCall", _response_fields("status", "id", _CALL_DATA), Shape.DISPATCH)
RESPONSE_STATE = Record(
    "ResponseStatusSMS",
    _response_fields("state", _CREDITS, ResponseField("phone", Kind.INTEGER), "created", "sms", "dispatch_id", "id"),
    Shape.STATES,
)
RESPONSE_SMS_2FA = Record("ResponseSMS2fa", _response_fields("id", "status", _MINUTES, _SMS_DATA), Shape.DISPATCH)
RESPONSE_CALL_2FA = Record(
    "ResponseCALL2fa", _response_fields("status", "id", _MINUTES, _CALL_2FA_DATA), Shape.DISPATCH
)
RESPONSE_SUCCESS = Record("ResponseSucces", _response_fields("status"))
RESPONSE_URL_SHORT = Record("ResponseURLShort", _response_fields("urlShort", "urlLong", "msg"), Shape.LINK)
RESPONSE_STATISTIC = Record(
    "ResponseStatistic",
    _response_fields(
        "urlShort",
        "urlLong",
        ResponseField("clicksNumber", Kind.INTEGER),
        ResponseField(
            "metrics",
            Kind.ARRAY,
            tuple(ResponseField(name, Kind.OBJECT, _CLICKS + more) for name, more in _METRICS.items()),
        ),
    ),
    Shape.STATISTICS,
)
RESPONSE_CHATAPP = Record("chat-app record", _response_fields("id", "status", "phone", "name"), Shape.DISPATCH)

_COUNTRY_CODE = Field("country-code", "--country-code", "ISO 3166 country code, for example CO.", required=False)
_PHONE = Field("phone", "PHONE", "Phone number, with its country code.")
_PHONES = Field("phone", "PHONE...", "Phone numbers; commas between them also work.", several=True)
_APP_NAME = Field("app-name", "--app-name", "Name of the application the code is for.")

BALANCE = Operation("balance", "GET", "/balance", Effect.READS, (), RESPONSE_BALANCE, Place.QUERY)
BLOCK_PHONE = Operation(
    "block add",
    "POST",
    "/block-phone",
    Effect.CHANGES,
    (
        Field("phone", "PHONE...", "Phone numbers to block, each with its own request."),
        Field("name", "--name", "Name of the contact.", required=False),
    ),
    RESPONSE_SECURITY,
    advice=("Block the number again: that changes nothing if it is blocked already.",),
    verdict="Blocked {phone}",
    blocks=True,
)
SEND_SMS = Operation(
    "sms send",
    "POST",
    "/send-sms",
    Effect.SENDS,
    (_PHONES, Field("sms", "--message", "Text to send."), _COUNTRY_CODE),
    RESPONSE_SMS,
)
SEND_CALL = Operation(
    "call send",
    "POST",
    "/call/send",
    Effect.SENDS,
    (
        _PHONES,
        Field("message", "--message", "Text to speak when the call starts.", required=False),
        Field("voice", "--voice", "Voice that speaks the message.", required=False, choices=CALL_VOICES),
        Field("retries", "--retries", "Number of call attempts, 1 to 3.", required=False, least=1, most=MAX_RETRIES),
        Field(
            "leave-voicemail",
            "--leave-voicemail",
            "Leave a voicemail if the call is not answered.",
            kind=Kind.BOOLEAN,
            required=False,
        ),
        _COUNTRY_CODE,
        Field(
            "audio-code",
            "--audio-code",
            "Stored audio to play instead of a message.",
            required=False,
        ),
    ),
    RESPONSE_CALL,
)
MESSAGES_STATE = Operation(
    "state get",
    "GET",
    "/messages-state",
    Effect.READS,
    (Field("id", "ID...", "Message ID.", place=Place.QUERY),),
    RESPONSE_STATE,
    Place.QUERY,
)
SMS_2FA = Operation(
    "2fa send-sms",
    "POST",
    "/2fa/send-sms",
    Effect.SENDS,
    (_PHONE, _APP_NAME, _COUNTRY_CODE),
    RESPONSE_SMS_2FA,
)
CALL_2FA = Operation(
    "2fa send-call",
    "POST",
    "/call/2fa/send-call",
    Effect.SENDS,
    (
        _PHONE,
        _APP_NAME,
        Field("voice", "--voice", "Voice that speaks the code.", choices=VERIFICATION_VOICES),
        Field("retries", "--retries", "Number of call attempts, 1 to 3.", least=1, most=MAX_RETRIES),
        _COUNTRY_CODE,
    ),
    RESPONSE_CALL_2FA,
)
VERIFY_2FA = Operation(
    "2fa verify",
    "POST",
    "/2fa/verification-code",
    Effect.CHANGES,
    (
        _PHONE,
        Field("app-name", "--app-name", "Application name used when the code was sent."),
        Field("code", "--code", "The code received; - reads it from standard input."),
        _COUNTRY_CODE,
    ),
    RESPONSE_SUCCESS,
    advice=("The code may be used up. Send a new code.",),
    verdict="{phone} is verified",
    verifies=True,
)
URL_SHORT = Operation(
    "url shorten",
    "POST",
    "/url/short",
    Effect.CHANGES,
    (
        Field("name", "--name", "Name of the short URL, for `msgctl url stats`."),
        Field("url-long", "LONG_URL", "URL to shorten."),
        Field("alias", "--alias", "Last part of the short URL.", required=False),
        Field(
            "is-premium",
            "--premium",
            "Create a premium URL with complete statistics.",
            kind=Kind.BOOLEAN,
            required=False,
        ),
        Field("group-name", "--group-name", "Group for the URL.", required=False),
        Field("domain-name", "--domain-name", "Domain of the short URL.", required=False),
        Field(
            "expiration-time-statistics",
            "--expiration-months",
            "Months until the statistics expire; 0 for the service's default.",
            required=False,
            least=0,
        ),
    ),
    RESPONSE_URL_SHORT,
    advice=("Before you repeat the request, check if the short URL exists: ", "url stats {name} --since today"),
    verdict="Short URL created",
)
URL_STATISTIC = Operation(
    "url stats",
    "POST",
    "/url/short-statistic",
    Effect.READS,
    (
        Field("name-url", "NAME", "Name of the short URL."),
        Field("since", "--since", "First day: YYYY-MM-DD, today, yesterday, or 7d for seven days ago."),
        Field("until", "--until", "Last day. [default: today]"),
        Field(
            "category",
            "--category",
            "Show one category (the last six need a premium URL).",
            required=False,
            choices=PLAIN_CATEGORIES + PREMIUM_CATEGORIES,
        ),
    ),
    RESPONSE_STATISTIC,
)
_TEMPLATE_FIELDS = (
    Field("template", "--template", "Name of the template.", place=Place.QUERY),
    Field("phone", "PHONE", "Phone number, with its country code.", place=Place.JSON),
    Field("body", "VALUE...", "Template values, in order.", place=Place.JSON, kind=Kind.ARRAY),
)
CHATAPP_SEND = Operation(
    "chatapp send",
    "POST",
    "/chatapp/send",
    Effect.SENDS,
    _TEMPLATE_FIELDS,
    RESPONSE_CHATAPP,
    Place.QUERY,
)
CHATAPP_ORDER = Operation(
    "chatapp order",
    "POST",
    "/chatapp/store/order",
    Effect.SENDS,
    _TEMPLATE_FIELDS,
    RESPONSE_CHATAPP,
    Place.QUERY,
)
CHATAPP_2FA = Operation(
    "2fa send-chatapp",
    "POST",
    "/2fa/send-chatapp",
    Effect.SENDS,
    (
        _PHONE,
        _APP_NAME,
        _COUNTRY_CODE,
        Field("template", "--template", "Name of the template.", required=False),
    ),
    RESPONSE_CHATAPP,
)

OPERATIONS = (
    BALANCE,
    BLOCK_PHONE,
    SEND_SMS,
    SEND_CALL,
    MESSAGES_STATE,
    SMS_2FA,
    CALL_2FA,
    VERIFY_2FA,
    URL_SHORT,
    URL_STATISTIC,
    CHATAPP_SEND,
    CHATAPP_ORDER,
    CHATAPP_2FA,
)


def message_digest(operation: Operation, values: Mapping[str, object]) -> Callable[[str], bytes]:
    """Return a function that returns a digest of the message that a recipient gets, to recognize a repeat.

    Its argument is the text or the template values, as JSON. ``values`` contains the other parameters.
    """
    from hashlib import sha256  # few commands need it

    fixed = json.dumps([operation.name, values.get("audio-code"), values.get("template")])
    return lambda content: sha256((fixed + content).encode()).digest()
