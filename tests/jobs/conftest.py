"""A server that counts, and processes that run jobs on it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from jobs.bulk import TEXTS, Bulk, NewBulk
from support.counting_server import CountingServer, counting


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingServer]:
    """A server that counts, and the environment that points to it."""
    with counting(delay=0.005) as counter:
        monkeypatch.setenv("MSGCTL_BASE_URL", counter.base_url)
        monkeypatch.setenv("MSGCTL_CLIENT", "12345")
        monkeypatch.setenv("MSGCTL_KEY", "key")
        yield counter


@pytest.fixture
def new_bulk(tmp_path: Path) -> Iterator[NewBulk]:
    with contextlib.ExitStack() as stack:

        def new(number: int, *options: str, texts: Sequence[str] = TEXTS[:1]) -> Bulk:
            return stack.enter_context(contextlib.closing(Bulk(tmp_path, number, *options, texts=texts)))

        yield new
