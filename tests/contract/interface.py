"""The service's REST interface, version 1.0.0, transcribed by hand from its document and from nothing else.

It shares nothing with the package, so that a wrong fact there is found. Below each endpoint are command lines for it
(``$``), and the parameters that must arrive (``>``), besides the credentials; ``name+=`` is an element of an array.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

PLACES = ("query", "form", "json")

BASE_PATH = "/api/v1"
"""The end of the base URL."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
ERROR_FIELDS = ("error", "msg")
"""The fields of every error record, with status 520."""

PHONE = "573001234567"

CALL_VOICES = ("Marian", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
CALL_2FA_VOICES = ("Mariana", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
CATEGORIES = ("date", "hour", "country", "device", "operatingSystem")
PREMIUM_CATEGORIES = ("region", "city", "brand", "model", "browser", "lang")
_VALUES = {
    "call-voice": CALL_VOICES,
    "code-voice": CALL_2FA_VOICES,
    "category": CATEGORIES + PREMIUM_CATEGORIES,
}

_RECORDS = """
ResponseBalance    status integer
ResponseSecurity   id string, status string, phone string, name string
ResponseSMS        id string, status integer,
                   data [id string, status string, credits integer, sms string, phone string]
ResponseCall       status string, id string,
                   data [id string, state string, credits integer, message string, phone string, voice string]
ResponseStatusSMS  state string, credits integer, phone integer, created string, sms string, dispatch_id string,
                   id string
ResponseSMS2fa     id string, status string, minutes_to_expire integer,
                   data [id string, status string, credits integer, sms string, phone string]
ResponseCALL2fa    status string, id string, minutes_to_expire integer,
                   data [id string, state string, credits integer, phone number, voice string]
ResponseSucces     status string
ResponseURLShort   urlShort string, urlLong string, msg string
ResponseStatistic  urlShort string, urlLong string, clicksNumber integer, metrics [
                     date {property string, clicks integer},
                     hour {property string, clicks integer, date string},
                     country {property string, clicks integer},
                     region {property string, clicks integer},
                     city {property string, clicks integer, countryIsoCode string, region string, percent number},
                     device {property string, clicks integer},
                     brand {property string, clicks integer, percent number},
                     model {property string, clicks integer, percent number},
                     operatingSystem {property string, clicks integer},
                     browser {property string, clicks integer},
                     lang {property string, clicks integer}]
unnamed            id string, status string, phone string, name string
"""
"""The records of responses, their fields in order: ``[]`` is an array of objects, ``{}`` an object."""

_ENDPOINTS = """
GET /balance ResponseBalance
  client key      query required
  $ balance
  $ balance
  $ balance check --min 1

POST /block-phone ResponseSecurity
  client key      form required
  phone           form required
  name            form optional text
  $ block add 573001234567 --name 'Ana Ruiz'
  > phone=573001234567 'name=Ana Ruiz'
  $ block add 573001234567
  > phone=573001234567

POST /send-sms ResponseSMS
  client key      form required
  phone           form required several
  sms             form required prose
  country-code    form optional country
  $ sms send '+57 (300) 123-45.67' 573007654321,573009999999 -m Hola --country-code CO
  > phone=573001234567,573007654321,573009999999 sms=Hola country-code=CO
  $ sms send 573001234567 -m Hola
  > phone=573001234567 sms=Hola

POST /call/send ResponseCall
  client key      form required
  phone           form required several
  message         form conditional unless=audio-code prose
  voice           form conditional unless=audio-code values=call-voice
  retries         form optional maximum=3
  leave-voicemail form optional boolean
  country-code    form optional country
  audio-code      form optional excludes=voice,message text
  $ call send 573001234567 573007654321 --message Hola --voice Marian --retries 3 --leave-voicemail --country-code CO
  > phone=573001234567,573007654321 message=Hola voice=Marian retries=3 leave-voicemail=true country-code=CO
  $ call send 573001234567 --audio-code A-1029 --retries 2 --no-leave-voicemail --country-code CO
  > phone=573001234567 audio-code=A-1029 retries=2 leave-voicemail=false country-code=CO
  $ call send 573001234567 -m Hola --voice Mia
  > phone=573001234567 message=Hola voice=Mia
  $ call send 573001234567 --audio-code A-1029
  > phone=573001234567 audio-code=A-1029

GET /messages-state ResponseStatusSMS
  client key      query required
  id              query required text
  $ state get 8f3c2a71
  > id=8f3c2a71
  $ state watch 8f3c2a71 --until sent
  > id=8f3c2a71

POST /2fa/send-sms ResponseSMS2fa
  client key      form required
  phone           form required
  app-name        form required text
  country-code    form optional country
  $ 2fa send-sms 573001234567 --app-name Shop --country-code CO
  > phone=573001234567 app-name=Shop country-code=CO
  $ 2fa send-sms 573001234567 --app-name Shop
  > phone=573001234567 app-name=Shop

POST /call/2fa/send-call ResponseCALL2fa
  client key      form required
  phone           form required
  app-name        form required text
  voice           form required values=code-voice
  retries         form required maximum=3
  country-code    form optional country
  $ 2fa send-call 573001234567 --app-name Shop --voice Mariana --retries 2 --country-code CO
  > phone=573001234567 app-name=Shop voice=Mariana retries=2 country-code=CO
  $ 2fa send-call 573001234567 --app-name Shop --voice Mia
  > phone=573001234567 app-name=Shop voice=Mia retries=1

POST /2fa/verification-code ResponseSucces
  client key      form required
  phone           form required
  app-name        form required text
  code            form required
  country-code    form optional country
  $ 2fa verify 573001234567 --app-name Shop --code 480615 --country-code CO
  > phone=573001234567 app-name=Shop code=480615 country-code=CO
  $ 2fa verify 573001234567 --app-name Shop --code 480615
  > phone=573001234567 app-name=Shop code=480615

POST /url/short ResponseURLShort
  client key      form required
  name            form required text
  url-long        form required
  alias           form optional text
  is-premium      form optional boolean
  group-name      form optional text
  domain-name     form optional text
  expiration-time-statistics form optional months
  $ url shorten 'https://example.com/offers?id=7&lang=es#top' --name offers --alias sale --premium \
    --group-name spring --domain-name s.example --expiration-months 6
  > name=offers 'url-long=https://example.com/offers?id=7&lang=es#top' alias=sale is-premium=true \
    group-name=spring domain-name=s.example expiration-time-statistics=6
  $ url shorten https://example.com/ --name offers
  > name=offers url-long=https://example.com/

POST /url/short-statistic ResponseStatistic
  client key      form required
  name-url        form required text
  since           form required day
  until           form required day
  category        form optional values=category
  $ url stats offers --since 2026-01-01 --until 2026-01-31 --category operatingSystem
  > name-url=offers since=2026-01-01 until=2026-01-31 category=operatingSystem
  $ url stats offers
  > name-url=offers since=2026-09-14 until=2026-09-21

POST /chatapp/send unnamed
  client key      query required
  template        query required text
  phone           json unstated
  body            json unstated array prose
  $ chatapp send 573001234567 Ana 8:00 --template appointment
  > template=appointment phone=573001234567 body+=Ana body+=8:00

POST /chatapp/store/order unnamed
  client key      query required
  template        query required text
  phone           json unstated
  body            json unstated array prose
  $ chatapp order 573001234567 Ana 1029 '45.00 EUR' --template order_ready
  > template=order_ready phone=573001234567 body+=Ana body+=1029 'body+=45.00 EUR'

POST /2fa/send-chatapp unnamed
  client key      form required
  phone           form required
  app-name        form required text
  country-code    form optional country
  template        form optional text
  $ 2fa send-chatapp 573001234567 --app-name Shop --template login --country-code CO
  > phone=573001234567 app-name=Shop template=login country-code=CO
  $ 2fa send-chatapp 573001234567 --app-name Shop
  > phone=573001234567 app-name=Shop
"""
"""Each parameter with its place, whether it is required, and its rules; of a JSON body the document requires nothing.

``text`` may be any text on one line, ``prose`` any text; such a value is in the command line as it arrives.
"""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record; ``type`` is the document's word; ``fields`` are the fields of an object or an entry."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an endpoint, with the place and the rules of its line above."""

    name: str
    place: str
    presence: str
    rules: frozenset[str]

    def rule(self, name: str) -> str:
        """Return the value of a rule such as ``maximum=3``; empty if there is none."""
        return next((rule.partition("=")[2] for rule in self.rules if rule.startswith(f"{name}=")), "")

    @property
    def values(self) -> tuple[str, ...]:
        """All allowed values; empty if any value is allowed."""
        return _VALUES.get(self.rule("values"), ())

    @property
    def excludes(self) -> set[str]:
        return set(filter(None, self.rule("excludes").split(",")))


@dataclass(frozen=True)
class Line:
    """A command line, its endpoint, and the parameters that have to arrive there."""

    command: tuple[str, ...]
    endpoint: Endpoint
    parameters: Mapping[str, str | list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join(self.command)

    def with_text(self, name: str, text: str) -> Line:
        """Return the same line with another text for a parameter."""
        before = self.parameters[name]
        old, after = (before, text) if isinstance(before, str) else (before[0], [text, *before[1:]])
        command = tuple(text if word == old else word for word in self.command)
        return replace(self, command=command, parameters={**self.parameters, name: after})


@dataclass(frozen=True)
class Endpoint:
    """One endpoint: its parameters, and the name and the fields of the record in its response."""

    method: str
    path: str
    record: str
    parameters: list[Parameter] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list, repr=False, compare=False)

    @property
    def content_type(self) -> str | None:
        """The type of the request's body, by the document's general rules."""
        places = {each.place for each in self.parameters}
        return JSON if "json" in places else FORM if "form" in places else None

    @property
    def own(self) -> dict[str, Parameter]:
        """The parameters besides the credentials, by name."""
        return {each.name: each for each in self.parameters if each.name not in ("client", "key")}


def _fields(words: Iterator[str]) -> tuple[Field, ...]:
    fields = []
    for name in words:
        if name in "]}":
            break
        kind = next(words)
        inner = _fields(words) if kind in "[{" else ()
        fields.append(Field(name, {"[": "array", "{": "object"}.get(kind, kind), inner))
    return tuple(fields)


def _endpoint(text: str) -> Endpoint:
    first, *lines = text.strip().splitlines()
    method, path, record = first.split()
    endpoint = Endpoint(method, path, record)
    for line in map(str.strip, lines):
        if line.startswith("$"):
            endpoint.lines.append(Line(tuple(shlex.split(line[1:])), endpoint))
        elif line.startswith(">"):
            given: dict[str, str | list[str]] = {}
            for name, _, value in (word.partition("=") for word in shlex.split(line[1:])):
                given[name.rstrip("+")] = [*given.get(name[:-1], []), value] if name.endswith("+") else value
            endpoint.lines[-1] = replace(endpoint.lines[-1], parameters=given)
        else:
            parts = line.split()
            at = next(index for index, word in enumerate(parts) if word in PLACES)
            place, presence, *rules = parts[at:]
            endpoint.parameters.extend(Parameter(name, place, presence, frozenset(rules)) for name in parts[:at])
    return endpoint


RECORDS: dict[str, tuple[Field, ...]] = {
    name: _fields(iter(re.findall(r"[\w-]+|[\[\]{}]", rest)))
    for name, rest in re.findall(r"(?m)^(\w+) +((?:.|\n )+)$", _RECORDS)
}
ENDPOINTS = {(each.method, each.path): each for each in map(_endpoint, _ENDPOINTS.strip().split("\n\n"))}
"""Every endpoint by method and path, in the document's order."""
LINES = [line for endpoint in ENDPOINTS.values() for line in endpoint.lines]
