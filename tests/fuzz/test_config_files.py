"""Whatever is in the configuration file, its bytes or its members: every command ends well, and sends what it may."""

from __future__ import annotations

from typing import Any

import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from fuzz.damage import VALUES, contents
from fuzz.world import World, tries
from support.files import table, write_config

LINES = (
    ("profile", "list"),
    ("profile", "show"),
    ("profile", "show", "main", "--json"),
    ("profile", "use", "main"),
    (
        "profile",
        "add",
        "new",
        "--base-url",
        "https://service.example/api/v1",
        "--client",
        "1",
        "--key-command",
        "echo k",
    ),
    ("profile", "remove", "main"),
    ("balance",),
    ("-p", "main", "balance", "-n"),
    ("sms", "send", "573001234567", "-m", "Hola"),
    ("2fa", "send-call", "573001234567"),
    ("state", "get", "--last"),
    ("sandbox", "inbox"),
)
SAMPLE = 'default_profile = "main"\n' + table("main", 'country_code = "CO"', "allow_http = true", "history = false")

URLS = ["http://127.0.0.1:{port}/api/v1", "http://localhost:{port}", "https://service.example/api/v1", "http://[::1]:1"]
URLS += [
    "",
    "x",
    "http://",
    "https://u:p@h/",
    "ftp://h",
    "http://127.0.0.1:99999",
    "https://h/ñ?q#f",
    "http://127.0.0.1:{port}/%zz\x1b",
]
COMMANDS = [
    "echo k",
    "exit 3",
    "",
    "printf '\\0'",
    "echo",
    "printf '\\377'",
    "nothing-of-that-name",
    "echo k >&2",
    "kill -9 $$",
]
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "base_url": st.sampled_from(URLS),
    "client": st.sampled_from([0, 1, 12345, 2**63 - 1, 2**63, -1, True, 1.0, "1"]),
    "key": st.sampled_from(["k", "", "a b", "é", "\x00", "x" * 5000, "k\n"]),
    "key_command": st.sampled_from(COMMANDS),
    "country_code": st.sampled_from(["CO", "co", "XX", "", "ß"]),
    "app_name": st.sampled_from(["Shop", "", " ", "\x1b[2J", "x" * 300]),
    "voice": st.sampled_from(["Mia", "mariana", "Marian", "nobody"]),
    "allow_http": st.booleans(),
    "history": st.booleans(),
}
whole = st.fixed_dictionaries({name: MEMBERS[name] for name in ("base_url", "client", "key")})
parts = st.fixed_dictionaries({}, optional={name: values | VALUES for name, values in MEMBERS.items()})
profiles = st.builds(lambda all_of_it, some: all_of_it | some, whole, parts) | parts | VALUES
documents = st.fixed_dictionaries(
    {},
    optional={
        "default_profile": st.sampled_from(["main", "sandbox", "nobody", ""]) | VALUES,
        "profiles": st.dictionaries(
            st.sampled_from(["main", "main", "a b", "\x1b", "", "sandbox"]), profiles, max_size=3
        )
        | VALUES,
        "more": VALUES,
    },
)


@tries(110)
@given(content=contents(SAMPLE.encode()), line=st.sampled_from(LINES))
def test_any_bytes_in_the_file_end_well(content: bytes, line: tuple[str, ...], world: World) -> None:
    world.renew()
    path = write_config(content)
    outcome = world.run(line)
    assert outcome.code == 0 or path.read_bytes() == content


@tries(110)
@given(document=documents, line=st.sampled_from(LINES))
def test_any_members_of_any_kind_end_well(document: dict[str, Any], line: tuple[str, ...], world: World) -> None:
    world.renew()
    content = as_toml(document).replace("{port}", str(world.service.port)).encode()
    path = write_config(content)
    outcome = world.run(line)
    assert outcome.code == 0 or path.read_bytes() == content


def as_toml(document: dict[str, Any]) -> str:
    """A document as TOML, without what TOML has no word for."""
    return tomli_w.dumps(_writable(document))


def _writable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(name): _writable(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_writable(each) for each in value if each is not None]
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode()
