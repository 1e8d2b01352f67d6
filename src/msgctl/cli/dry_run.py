"""A request that is shown instead of made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgctl.cli.context import Context
    from msgctl.http.request import Request


def show(context: Context, made: Request) -> None:
    """Print a request, its credentials masked."""
    described = made.described(context.profile.base_url)
    context.printer.own(described, _dotted(described), all_fields=True)


def _dotted(document: Mapping[str, Any]) -> list[str]:
    """The columns of a nested document, in its order: ``headers.Accept``, ``form.phone``."""
    columns: list[str] = []
    for name, value in document.items():
        if isinstance(value, dict):
            columns.extend(f"{name}.{member}" for member in value)
        else:
            columns.append(name)
    return columns
