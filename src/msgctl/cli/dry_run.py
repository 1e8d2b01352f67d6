"""Requests that are shown instead of made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgctl.output.result import Document, OwnResult

if TYPE_CHECKING:
    from msgctl.http.request import Request


def describe(requests: Sequence[Request], base_url: str) -> OwnResult:
    """Describe requests, their credentials masked."""
    documents = [request.described(base_url) for request in requests]
    columns = dict.fromkeys(column for document in documents for column in _dotted(document))
    shown = documents[0] if len(documents) == 1 else documents
    return OwnResult(shown, tuple(columns), view="request", has_fields=False)


def _dotted(document: Document) -> list[str]:
    """Return the columns of a nested document, in its order: ``headers.Accept``, ``form.phone``."""
    columns: list[str] = []
    for name, value in document.items():
        if isinstance(value, dict):
            columns.extend(f"{name}.{inner}" for inner in value)
        else:
            columns.append(name)
    return columns
