"""The URLs of a profile: which base URLs may get the key, and how URLs are shown without their passwords."""

from __future__ import annotations

import pytest

from msgctl.config.urls import (
    MAX_BASE_URL,
    account,
    base_url_fault,
    has_password,
    is_loopback,
    is_store,
    origin,
    percent_encoded,
    store_shown,
    without_password,
    without_secrets,
)

MALFORMED = "has a malformed host or port"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("https://api.example", None),
        ("HTTPS://api.example:65535/v1", None),
        ("https://xn--senal-pta.example", None),
        ("https://señal.example", None),
        ("https://192.0.2.1:1/", None),
        ("https://[2001:db8::1]:443/", None),
        ("https://api.example./", None),
        ("http://localhost:80/v1", None),
        ("http://127.0.0.9", None),
        ("http://[::1]", None),
        ("http://api.example", "is plain http, which would expose the key on the way to api.example"),
        ("", "is empty"),
        ("https://a.example/ x", "contains a space or a control character"),
        ("https://a.example/\u202e", "contains a space or a control character"),
        ("https://a.example/".ljust(MAX_BASE_URL, "x"), None),
        ("https://a.example/".ljust(MAX_BASE_URL + 1, "x"), f"is longer than {MAX_BASE_URL} characters"),
        ("api.example", "does not begin with https://"),
        ("ftp://api.example", "does not begin with https://"),
        ("https://", "has no host"),
        ("https:///v1", "has no host"),
        (
            "https://bob:secret@api.example",
            "contains a user name or password; the credentials are the client ID and the key",
        ),
        ("https://api.example/@v1", None),
        ("https://api.example?x=1", "contains a query or a fragment"),
        ("https://api.example/v1#x", "contains a query or a fragment"),
        ("https://api.example:0", MALFORMED),
        ("https://api.example:65536", MALFORMED),
        ("https://api.example:", None),
        ("https://api.example:x", MALFORMED),
        ("https://a..example", MALFORMED),
        (f"https://{'a' * 63}.example", None),
        (f"https://{'a' * 64}.example", MALFORMED),
        ("https://1.2.3", MALFORMED),
        ("https://[::g]", MALFORMED),
        ("https://[1.2.3.4.5]", MALFORMED),
        ("https://straße.example", MALFORMED),
    ],
)
def test_the_key_is_only_sent_to_a_base_url_without_a_fault(text: str, fault: str | None) -> None:
    assert base_url_fault(text) == fault
    if fault and fault.startswith("is plain http"):
        assert base_url_fault(text, allow_http=True) is None


def test_only_this_machine_is_a_loopback_address() -> None:
    hosts = ("127.0.0.1", "127.255.255.254", "::1", "LocalHost", "128.0.0.1", "0.0.0.0", "::2", "localhost.example")
    assert [is_loopback(host) for host in hosts] == [True] * 4 + [False] * 4


def test_every_spelling_of_a_base_url_is_the_same_account() -> None:
    for spelling in ("HTTPS://Api.Example:443/v1", "https://api.example/./old/../v1/"):
        assert account(spelling, 1) == account("https://api.example/v1", 1)
    for other in (
        "https://api.example/V1",
        "http://api.example/v1",
        "https://api.example:444/v1",
        "https://api.example:80/v1",
    ):
        assert account(other, 1) != account("https://api.example/v1", 1)
    assert account("http://[0:0:0:0:0:0:0:1]:80/v1", 1) == "http://[::1]/v1 1"
    assert account("https://api.example:444/v1", 1) == "https://api.example:444/v1 1"
    assert account("nowhere", 1) == "nowhere 1"
    assert [origin(value) for value in ("https://SEÑAL.example/x", "http://a.example", "x", None, 5)] == [
        "https://xn--seal-hqa.example", "http://a.example", None, None, None,
    ]  # fmt: skip


def test_a_url_is_repeated_without_its_secrets() -> None:
    for text, shown in (
        ("https://bob:secret@api.example/v1?key=secret#secret", "https://api.example/v1"),
        ("bob:secret@api.example/v1#secret?x", "api.example/v1"),
        ("/path?key=secret", "/path"),
        ("https://bob:sec@ret@api.example", "https://api.example"),
        ("https://bob:sec://ret@api.example", "https://bob:sec://api.example"),
    ):
        assert without_secrets(text) == shown
    assert percent_encoded("/a%20b/ñ %/:@!$&'()*+,;=~") == "/a%20b/%C3%B1%20%25/:@!$&'()*+,;=~"


@pytest.mark.parametrize(
    ("store", "shown", "again"),
    [
        ("/var/store\x1b", "/var/store\\x1b", "/var/store\\x1b"),
        ("postgresql://db.example/m", "postgresql://db.example/m", "postgresql://db.example/m"),
        ("postgresql://bob@db.example/m?sslmode=require", None, "postgresql://bob@db.example/m?sslmode=require"),
        (
            "postgresql://bob:secret@db.example,[::1]:5433/m?sslmode=require",
            "postgresql://db.example,[::1]:5433/m (with a password)",
            "postgresql://bob@db.example,[::1]:5433/m?sslmode=require",
        ),
        (
            "postgres://db.example/m?a=1&ssl%50assword=secret&b=2",
            "postgres://db.example/m (with a password)",
            "postgres://db.example/m?a=1&b=2",
        ),
        (
            "postgresql://bob:@db.example/m",
            "postgresql://db.example/m (with a password)",
            "postgresql://bob@db.example/m",
        ),
        ("postgresql://bob:se@cret@db", "postgresql://*** (with a password)", "postgresql://*** (with a password)"),
    ],
)
def test_a_store_is_shown_without_its_password(store: str, shown: str | None, again: str) -> None:
    assert store_shown(store) == (shown or store)
    assert without_password(store) == again
    assert has_password(store) == ("cret" in store or ":@" in store)


def test_a_store_is_an_absolute_path_or_the_url_of_a_database() -> None:
    stores = ("/a", "~/a", "~ana/a", "postgresql://h/d", "postgres://h/d")
    others = ("a", "", "./a", "/a\0b", "mysql://h/d", "postgresql:/h/d", "~x://y")
    assert [is_store(text) for text in (*stores, *others)] == [True] * len(stores) + [False] * len(others)
