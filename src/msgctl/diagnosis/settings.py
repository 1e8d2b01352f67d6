"""What is on this machine: the program, the profile, its file, the base URL and the key."""

from __future__ import annotations

import re
import shlex
import ssl
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from msgctl import __version__
from msgctl.config import file as config
from msgctl.config import profiles
from msgctl.config.base_url import is_loopback
from msgctl.config.profiles import Choice
from msgctl.diagnosis.case import Case
from msgctl.diagnosis.findings import Result, ok, skipped, warning
from msgctl.errors import ConfigurationError
from msgctl.text import clean, shorten

WHERE_THE_CLIENT_IS = "Set MSGCTL_CLIENT to the client identifier, which stands in the security menu of the account."
OF_OTHERS = 0o077
WRITABLE_BY_OTHERS = 0o022
VERSION_SEGMENT = "v1"
"""What a base URL ends in (interface, beginning)."""
_VERSION = re.compile(r"v[0-9]+")


def version(case: Case) -> Result:  # noqa: ARG001
    """The program and what runs it."""
    python = ".".join(map(str, sys.version_info[:3]))
    return ok(f"msgctl {__version__}, Python {python}, {ssl.OPENSSL_VERSION}")


def profile(case: Case) -> Result:
    """Which profile is used, and what says so."""
    if case.in_sandbox:
        case.choose(Choice(profiles.SANDBOX, "-p" if case.named else "MSGCTL_PROFILE"))
        return ok(f"{profiles.SANDBOX}, which {'-p' if case.named else 'MSGCTL_PROFILE'} names")
    try:
        case.config_path = case.find_config()
        document = config.load(case.config_path)
    except ConfigurationError as error:  # the next check is about that
        case.file_error = error
        named = case.named or case.environ.get("MSGCTL_PROFILE")
        return skipped(f"{shorten(named, 64) if named else 'not known'}: the configuration file cannot be used")
    with _told_what_to_do(lambda: _how_to_choose(case, document)):
        choice = profiles.chosen(document, case.environ, case.named)
    profiles.check_more(choice.name, choice.members)
    case.choose(choice)
    if choice.by is None:
        return ok(f"made of {_listed(choice.variables)} alone")
    return ok(f"{shorten(choice.name, 64)}, which {choice.by} names{_overridden(case, choice)}")


@contextmanager
def _told_what_to_do(advice: Callable[[], str | None]) -> Iterator[None]:
    """Where the block fails, say what to do about it before what the error says itself."""
    try:
        yield
    except ConfigurationError as error:
        error.hint = " ".join(filter(None, (advice(), error.hint))) or None
        raise


def _how_to_choose(case: Case, document: config.Document) -> str | None:
    """What to do where no profile is chosen, or one that is not there."""
    if case.named:
        return "Name another one with -p."
    if case.environ.get("MSGCTL_PROFILE"):
        return "Set MSGCTL_PROFILE to another one, or unset it."
    if document.get("default_profile"):
        return "Make another one the default with: msgctl profile use NAME"
    missing = [variable for variable in profiles.VARIABLES.values() if not case.environ.get(variable)]
    return f"Set {_listed(missing)} too." if len(missing) < len(profiles.VARIABLES) else None


def _overridden(case: Case, choice: Choice) -> str:
    """What the variables of the environment do to the profile."""
    if choice.by == "-p":
        ignored = [variable for variable in profiles.VARIABLES.values() if case.environ.get(variable)]
        return f"; it is taken whole, without {_listed(ignored)}" if ignored else ""
    if not choice.variables:
        return ""
    return f"; {_listed(choice.variables)} {'wins' if len(choice.variables) == 1 else 'win'} over its members"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def file(case: Case) -> Result:
    """The configuration file: where it is, whether only its owner can read it, and whether it can be understood."""
    if case.file_error is not None:
        raise case.file_error
    path = case.config_path
    shown = clean(str(path))
    if not path.exists():
        return ok(f"there is none at {shown}{', and none is needed' if case.choice else ''}")
    mode = stat.S_IMODE(path.stat().st_mode)
    open_to = path.parent.stat().st_mode & (WRITABLE_BY_OTHERS if case.environ.get("MSGCTL_CONFIG") else OF_OTHERS)
    if open_to:
        return _open_folder(path.parent)
    return ok(f"{shown}, which only its owner can read ({mode:04o})")


def _open_folder(folder: Path) -> Result:
    mode = stat.S_IMODE(folder.stat().st_mode)
    doing = "write to" if mode & WRITABLE_BY_OTHERS else "look into"
    return warning(
        f"others can {doing} its folder {clean(str(folder))} ({mode:04o})",
        f"Make it private with: chmod 700 {clean(shlex.quote(str(folder)))}",
    )


def base_url(case: Case) -> Result:
    """Where the service is."""
    choice = case.choice
    if choice is None or case.in_sandbox:
        return ok(f"{profiles.SANDBOX_URL}, which is answered in this process")
    case.base_url = profiles.base_url_of(choice.name, choice.overridden("base_url"))
    source = ", from MSGCTL_BASE_URL" if "base_url" in choice.given else ""
    parts = urlsplit(case.base_url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        return warning(
            f"{case.base_url}{source}: plain http shows the key to everyone on the way",
            "Use https:// and take allow_http out, if the service can be reached so.",
        )
    segment = case.base_url.rpartition("/")[2]
    if segment != VERSION_SEGMENT:
        other = "another version than v1" if _VERSION.fullmatch(segment) else "no version segment"
        return warning(
            f"{case.base_url}{source}: it ends in {other}",
            "It usually ends in /api/v1: look at what the service gave you.",
        )
    return ok(f"{case.base_url}{source}")


def key(case: Case) -> Result:
    """Whether there is a client identifier and a key, and where the key comes from; the key itself is not shown."""
    choice = case.choice
    if choice is None or case.in_sandbox:
        case.identify(profiles.sandbox().credential())
        return ok("built in")
    with _told_what_to_do(lambda: WHERE_THE_CLIENT_IS if "client" in choice.given else None):
        choice.overridden("client")
    members = choice.overridden("client", "key")
    client, fetch_key = profiles.client_of(choice.name, members), profiles.key_source_of(choice.name, members)
    case.identify(profiles.Profile(choice.name, case.base_url, client, fetch_key).credential())
    text = case.credential.key.reveal()
    found = f"client {client}; a key of {len(text)} characters {_source_of_key(choice)}"
    if text != text.strip():
        return warning(f"{found}, a blank at its beginning or end", "If it is refused, store it without the blank.")
    return ok(found)


def _source_of_key(choice: Choice) -> str:
    if "key" in choice.given:
        return "from MSGCTL_KEY"
    return "that the key command printed" if choice.members.get("key_command") else "from the configuration file"
