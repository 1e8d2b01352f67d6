"""Objects that hold the key do not show it, and neither do errors about it."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from conftest import KEY
from msgctl.cli.context import Context
from msgctl.config import file as config_file
from msgctl.config import profiles
from msgctl.config.credential import Secret
from msgctl.errors import ConfigurationError
from support.files import table, write_config
from support.leaks import shows_key
from support.service import Service


@pytest.fixture
def objects(service: Service) -> dict[str, Any]:
    """The objects that hold a key, with the key in them."""
    context = Context(stdin=StringIO(), stdout=StringIO(), stderr=StringIO())
    profile = context.profile
    credential = profile.credential()
    assert credential.parameters() == (("client", "12345"), ("key", KEY))
    config = config_file.load(write_config(table("main", key=KEY)))
    return {
        "Secret": credential.key,
        "Credential": credential,
        "Profile": profile,
        "ConfigFile": config,
        "Choice": profiles.choose(config, context.environ, "main"),
        "Client": context.client,
        "Context": context,
    }


NAMES = ("Secret", "Credential", "Profile", "ConfigFile", "Choice", "Client", "Context")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("show", [repr, str, format, ascii, lambda it: repr([it])])
def test_no_object_shows_the_key(objects: dict[str, Any], name: str, show: Callable[[Any], str]) -> None:
    assert not shows_key(show(objects[name]))


@pytest.mark.parametrize("name", ["Secret", "Credential", "Profile", "Client", "Context"])
def test_no_object_with_a_key_is_pickled(objects: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(objects[name])


def test_a_secret_is_not_copied_into_plain_text(objects: dict[str, Any]) -> None:
    for do in (copy.copy, copy.deepcopy, json.dumps):
        with pytest.raises(TypeError):
            do(objects["Secret"])


def with_locals(error: BaseException) -> str:
    """Return the traceback as a tool that shows locals prints it, without the frame of the test."""
    assert error.__traceback__ is not None
    error = error.with_traceback(error.__traceback__.tb_next)
    return "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())


def test_a_traceback_with_locals_does_not_show_a_secret(objects: dict[str, Any]) -> None:
    def fail(secret: Secret, *others: Any) -> None:
        raise RuntimeError(f"{secret} {others}")

    with pytest.raises(RuntimeError) as raised:
        fail(*objects.values())
    shown = with_locals(raised.value)
    assert "secret = " in shown
    assert not shows_key(shown)


@pytest.mark.parametrize(
    "line", ["key = 'k3y-awkward\\u0007'", f"key = '{'k3y-awkward' * 400}'", "key_command = 'cat key; exit 3'"]
)
def test_an_error_about_a_key_does_not_show_it_in_its_locals(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("key").write_text("k3y-awkward", encoding="utf-8")
    path = write_config(table("main", line.replace("'", '"'), key=None))
    profile = profiles.find(config_file.load(path), {}, "main")
    with pytest.raises(ConfigurationError) as raised:
        profile.credential()
    assert not shows_key(with_locals(raised.value))
