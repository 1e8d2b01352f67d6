"""Objects that hold the key do not show it, and neither do errors about it."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

import pytest

from conftest import KEY
from msgctl.cli.context import Context
from msgctl.config import file as config_file
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
        "Client": context.client,
        "Context": context,
    }


@pytest.mark.parametrize("name", ["Secret", "Credential", "Profile", "ConfigFile", "Client", "Context"])
@pytest.mark.parametrize("show", [repr, str, format, ascii, lambda it: repr([it])])
def test_no_object_shows_the_key(objects: dict[str, Any], name: str, show: Callable[[Any], str]) -> None:
    assert not shows_key(show(objects[name]))
