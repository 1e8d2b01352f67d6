"""Build a request as the API defines it: each parameter in its place, under its name, and in its spelling.

Credentials are not part of a `Request`, so that it can be shown and stored. The client adds them when it sends.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from msgctl import __version__
from msgctl.errors import Hint, UsageError
from msgctl.jsontext import ShapeError, load_json
from msgctl.jsontext import values as json_values
from msgctl.operations import Operation, Place, Shape
from msgctl.outcomes.outcome import RequestFacts
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.text import MASK, clean

Value = str | bool | Sequence[str] | None
Pairs = tuple[tuple[str, str], ...]

USER_AGENT = f"msgctl/{__version__}"
JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"

KIB = 1024
MAX_RESPONSE = 4096 * KIB
"""The largest response to `url stats` and `api`, in bytes."""
MAX_SHARED_RESPONSE = 5 * 1024 * KIB
"""The largest response to any other request, in bytes."""
MAX_SHARED = 100
"""Maximum recipients of one dispatch to match with its states."""
MAX_SMS = 1600
"""Maximum characters of the message in a delivery state. Its length is not in the request, so this is an assumption."""

_MESSAGES = ("sms", "message")


class Request(NamedTuple):
    """An operation with its parameters, grouped by place (query, form or JSON); without credentials.

    ``is_own_body`` means that the user wrote the whole JSON body. ``values`` are the parameters by wire name.
    ``contacts``, which are not sent, are the international numbers of the recipients, for --at-most and repeats.
    """

    operation: Operation
    query: Pairs = ()
    form: Pairs = ()
    json: bytes | None = None
    is_own_body: bool = False
    values: Mapping[str, Value] = {}
    contacts: Sequence[str | None] = ()

    @property
    def phones(self) -> list[str | None]:
        """The recipients without duplicates; None is a recipient that the body does not specify."""
        if self.json is None:
            phones = [phone for name, text in self.form if name == "phone" for phone in text.split(",")]
            return [*dict.fromkeys(phones)]
        body = None
        with suppress(ShapeError):
            body = load_json(self.json, repeated="all")  # the service may use either value
        fields = body.items() if isinstance(body, dict) else ()
        numbers = [value for name, value in fields if name.casefold() == "phone"]  # .NET ignores the case of names
        texts = [text for text in reversed([*json_values(numbers)]) if isinstance(text, str)]
        phones = [text.strip() for text in ",".join(texts).split(",")]
        return [*dict.fromkeys(filter(None, phones))] or [None]

    def facts(self, added: AddedWords = NO_WORDS) -> RequestFacts:
        """Return the facts that a response is judged by, with the words of a profile."""
        values = {value for _, value in (*self.query, *self.form)}
        if self.json is not None:
            with suppress(ShapeError):
                values |= {value for value in json_values(load_json(self.json)) if isinstance(value, str)}
        phones = self.phones or [None]
        values |= {phone for phone in phones if phone}
        numbers = {value for value in values if value.isdecimal()} | {str(len(phones))}
        return RequestFacts(
            phones,
            frozenset(values),
            frozenset(numbers),
            is_block=self.operation.blocks,
            is_link=self.operation.record.shape is Shape.LINK,
            is_call=any(field.name == "message" for field in self.operation.fields),
            added=added,
        )

    @property
    def advice(self) -> str:
        """The advice after an unknown outcome, with the name in its command."""
        return Hint(*(part.format(name=self.quoted_name) for part in self.operation.advice))

    @property
    def quoted_name(self) -> str:
        """The name of a short URL, for a command in a hint."""
        return shlex.quote(clean(str(self.values.get("name"))))

    @property
    def max_response(self) -> int:
        """The largest response that is read, in bytes. A response may repeat the message for each recipient.

        A character takes at most 12 bytes: two escapes such as ``\\ud83d`` (RFC 8259, section 7).
        Drawing a response as a table takes up to 42 times as much memory, of which a command may use 256 MiB.
        """
        shape = self.operation.record.shape
        if shape in (Shape.STATISTICS, Shape.LIST) or not self.operation.record.fields:
            return MAX_RESPONSE
        if shape is Shape.STATES:
            recipients, length = MAX_SHARED, MAX_SMS
        else:
            recipients = len(self.phones)
            length = sum(len(text) for name, text in self.form if name in _MESSAGES) + len((self.json or b"").decode())
        return min(256 * KIB + recipients * (4 * KIB + 12 * length), MAX_SHARED_RESPONSE)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that the API requires ("General rules"), and the User-Agent."""
        headers = {"Accept": JSON_TYPE, "User-Agent": USER_AGENT}
        if self.json is not None:
            headers["Content-Type"] = JSON_TYPE
        elif self.form or self.operation.credentials is Place.FORM:
            headers["Content-Type"] = FORM_TYPE
        return headers

    def with_credentials(self, credentials: Pairs) -> tuple[Pairs, Pairs]:
        """Return query and form, with the credentials before the other parameters."""
        if self.operation.credentials is Place.QUERY:
            return credentials + self.query, self.form
        return self.query, credentials + self.form

    def described(self, base_url: str) -> dict[str, Any]:
        """Return the whole request for a dry run, with the credentials masked."""
        query, form = self.with_credentials((("client", MASK), ("key", MASK)))
        document: dict[str, Any] = {
            "method": self.operation.method,
            "url": base_url + self.operation.path,
            "headers": self.headers,
        }
        if query:
            document["query"] = by_name(query)
        if form:
            document["form"] = by_name(form)
        if self.json is not None:
            document["json"] = load_json(self.json)
        return document


def build(operation: Operation, values: Mapping[str, Value], body: bytes | None = None) -> Request:
    """Return the request for an operation; ``values`` are by wire name, and None is not sent.

    ``body`` is a whole JSON document that replaces the JSON fields. Raises UsageError if a required parameter is
    missing or a value is empty: empty values are never sent.
    """
    pairs: dict[Place, list[tuple[str, str]]] = {Place.QUERY: [], Place.FORM: []}
    document: dict[str, Value] = {}
    for field in operation.fields:
        value = values.get(field.name)
        if value == "":
            raise UsageError(f"{field.typed} is empty: give it a value, or leave it out if it is optional")
        if value is None:
            if field.required and not (body is not None and field.place is Place.JSON):
                raise UsageError(f"{field.typed} is missing")
        elif field.place is Place.JSON:
            document[field.name] = value
        else:
            if isinstance(value, bool):
                value = "true" if value else "false"
            text = value if isinstance(value, str) else ",".join(value)  # General rule 7
            pairs[field.place].append((field.name, text))
    is_own_body = body is not None
    if body is None and document:
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    return Request(operation, tuple(pairs[Place.QUERY]), tuple(pairs[Place.FORM]), body, is_own_body, values)


def by_name(pairs: Pairs) -> dict[str, str | list[str]]:
    """Return parameters by name; a repeated parameter is an array."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: texts if len(texts) > 1 else texts[0] for name, texts in values.items()}
