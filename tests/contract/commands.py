"""Command lines, and what the interface expects to receive for each; written by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Parameters = Mapping[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class Line:
    """A command line, its endpoint, and the parameters that have to arrive there, the credentials left out.

    ``free`` are the parameters that may be any text on one line, and ``prose`` those that may have several lines; each
    of them stands in the command line as it arrives.
    """

    command: tuple[str, ...]
    endpoint: tuple[str, str]
    parameters: Parameters
    free: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(self.command)

    def with_text(self, name: str, text: str) -> Line:
        """The same line with another text for a parameter."""
        before = self.parameters[name]
        after = text if isinstance(before, str) else [text, *before[1:]]
        old = before if isinstance(before, str) else before[0]
        command = tuple(text if word == old else word for word in self.command)
        return Line(command, self.endpoint, {**self.parameters, name: after})


PHONE = "573001234567"

BALANCE = ("GET", "/balance")
BLOCK = ("POST", "/block-phone")
SMS = ("POST", "/send-sms")
CALL = ("POST", "/call/send")
STATE = ("GET", "/messages-state")
SMS_2FA = ("POST", "/2fa/send-sms")
CALL_2FA = ("POST", "/call/2fa/send-call")
CHATAPP_2FA = ("POST", "/2fa/send-chatapp")
VERIFY = ("POST", "/2fa/verification-code")
SHORTEN = ("POST", "/url/short")
STATS = ("POST", "/url/short-statistic")
CHATAPP = ("POST", "/chatapp/send")
ORDER = ("POST", "/chatapp/store/order")

TODAY = "2026-09-21"
"""The day on which these lines are typed."""

FULL = (
    Line(("balance", "show"), BALANCE, {}),
    Line(("balance", "check", "--min", "1"), BALANCE, {}),
    Line(("block", "add", PHONE, "--name", "Ana Ruiz"), BLOCK, {"phone": PHONE, "name": "Ana Ruiz"}, free=("name",)),
    Line(
        ("sms", "send", "+57 (300) 123-45.67", "573007654321,573009999999", "-m", "Hola", "--country-code", "CO"),
        SMS,
        {"phone": f"{PHONE},573007654321,573009999999", "sms": "Hola", "country-code": "CO"},
        prose=("sms",),
    ),
    Line(
        (
            *("call", "send", PHONE, "573007654321", "--message", "Hola", "--voice", "Marian", "--retries", "3"),
            *("--leave-voicemail", "--country-code", "CO"),
        ),
        CALL,
        {
            "phone": f"{PHONE},573007654321",
            "message": "Hola",
            "voice": "Marian",
            "retries": "3",
            "leave-voicemail": "true",
            "country-code": "CO",
        },
        prose=("message",),
    ),
    Line(
        (
            *("call", "send", PHONE, "--audio-code", "A-1029", "--retries", "2", "--no-leave-voicemail"),
            *("--country-code", "CO"),
        ),
        CALL,
        {
            "phone": PHONE,
            "audio-code": "A-1029",
            "retries": "2",
            "leave-voicemail": "false",
            "country-code": "CO",
        },
        free=("audio-code",),
    ),
    Line(("state", "get", "8f3c2a71"), STATE, {"id": "8f3c2a71"}, free=("id",)),
    Line(("state", "watch", "8f3c2a71", "--until", "said"), STATE, {"id": "8f3c2a71"}, free=("id",)),
    Line(
        ("2fa", "send-sms", PHONE, "--app-name", "Shop", "--country-code", "CO"),
        SMS_2FA,
        {"phone": PHONE, "app-name": "Shop", "country-code": "CO"},
        free=("app-name",),
    ),
    Line(
        (
            *("2fa", "send-call", PHONE, "--app-name", "Shop", "--voice", "Mariana", "--retries", "2"),
            *("--country-code", "CO"),
        ),
        CALL_2FA,
        {"phone": PHONE, "app-name": "Shop", "voice": "Mariana", "retries": "2", "country-code": "CO"},
        free=("app-name",),
    ),
    Line(
        ("2fa", "send-chatapp", PHONE, "--app-name", "Shop", "--template", "login", "--country-code", "CO"),
        CHATAPP_2FA,
        {"phone": PHONE, "app-name": "Shop", "template": "login", "country-code": "CO"},
        free=("app-name", "template"),
    ),
    Line(
        ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "480615", "--country-code", "CO"),
        VERIFY,
        {"phone": PHONE, "app-name": "Shop", "code": "480615", "country-code": "CO"},
        free=("app-name",),
    ),
    Line(
        (
            *("url", "shorten", "https://example.com/offers?id=7&lang=es#top", "--name", "offers", "--alias", "sale"),
            *("--premium", "--group-name", "spring", "--domain-name", "s.example", "--expiration-months", "6"),
        ),
        SHORTEN,
        {
            "name": "offers",
            "url-long": "https://example.com/offers?id=7&lang=es#top",
            "alias": "sale",
            "is-premium": "true",
            "group-name": "spring",
            "domain-name": "s.example",
            "expiration-time-statistics": "6",
        },
        free=("name", "alias", "group-name", "domain-name"),
    ),
    Line(
        ("url", "stats", "offers", "--since", "2026-01-01", "--until", "2026-01-31", "--category", "operatingSystem"),
        STATS,
        {"name-url": "offers", "since": "2026-01-01", "until": "2026-01-31", "category": "operatingSystem"},
        free=("name-url",),
    ),
    Line(
        ("chatapp", "send", PHONE, "Ana", "8:00", "--template", "appointment"),
        CHATAPP,
        {"template": "appointment", "phone": PHONE, "body": ["Ana", "8:00"]},
        free=("template",),
        prose=("body",),
    ),
    Line(
        ("chatapp", "order", PHONE, "Ana", "1029", "45.00 EUR", "--template", "order_ready"),
        ORDER,
        {"template": "order_ready", "phone": PHONE, "body": ["Ana", "1029", "45.00 EUR"]},
        free=("template",),
        prose=("body",),
    ),
)
"""With every parameter that may go together; a call has two lines, since a stored audio excludes a text."""

BARE = (
    Line(("balance",), BALANCE, {}),
    Line(("block", "add", PHONE), BLOCK, {"phone": PHONE}),
    Line(("sms", "send", PHONE, "-m", "Hola"), SMS, {"phone": PHONE, "sms": "Hola"}),
    Line(
        ("call", "send", PHONE, "-m", "Hola", "--voice", "Mia"),
        CALL,
        {"phone": PHONE, "message": "Hola", "voice": "Mia"},
    ),
    Line(("call", "send", PHONE, "--audio-code", "A-1029"), CALL, {"phone": PHONE, "audio-code": "A-1029"}),
    Line(("state", "get", "8f3c2a71"), STATE, {"id": "8f3c2a71"}),
    Line(("2fa", "send-sms", PHONE, "--app-name", "Shop"), SMS_2FA, {"phone": PHONE, "app-name": "Shop"}),
    # The interface requires retries here; left out on the command line it is 1.
    Line(
        ("2fa", "send-call", PHONE, "--app-name", "Shop", "--voice", "Mia"),
        CALL_2FA,
        {"phone": PHONE, "app-name": "Shop", "voice": "Mia", "retries": "1"},
    ),
    Line(("2fa", "send-chatapp", PHONE, "--app-name", "Shop"), CHATAPP_2FA, {"phone": PHONE, "app-name": "Shop"}),
    Line(
        ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "480615"),
        VERIFY,
        {"phone": PHONE, "app-name": "Shop", "code": "480615"},
    ),
    Line(
        ("url", "shorten", "https://example.com/", "--name", "offers"),
        SHORTEN,
        {"name": "offers", "url-long": "https://example.com/"},
    ),
    # So for the last day, which is today if omitted.
    Line(
        ("url", "stats", "offers", "--since", "7d"),
        STATS,
        {"name-url": "offers", "since": "2026-09-14", "until": TODAY},
    ),
    Line(
        ("chatapp", "send", PHONE, "Ana", "--template", "appointment"),
        CHATAPP,
        {"template": "appointment", "phone": PHONE, "body": ["Ana"]},
    ),
    Line(
        ("chatapp", "order", PHONE, "Ana", "--template", "order_ready"),
        ORDER,
        {"template": "order_ready", "phone": PHONE, "body": ["Ana"]},
    ),
)
"""With no more than an endpoint needs."""

EVERY = (*FULL, *BARE)
