"""The results that commands return. One place prints them (`msgctl.cli.run`), in the requested format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgctl.errors import MsgctlError
    from msgctl.http.response import Response
    from msgctl.recipients import RecipientOutcome

Document = Mapping[str, Any]


class Format(StrEnum):
    """How a result is printed; the values are those of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"


@dataclass(kw_only=True)
class Result:
    """A result of any kind. ``failures`` are reported after it; the first one decides the exit code.

    With ``shows_failures``, a terminal shows them in the result itself.
    """

    failures: list[MsgctlError] = field(default_factory=list)
    shows_failures: bool = False


@dataclass
class ServiceResult(Result):
    """Responses of the service to one operation. ``asked`` is how many were asked for, some of which may be missing.

    ``outcomes`` are those of the recipients, ``values`` what was asked of the operation, by wire name.
    """

    responses: Sequence[Response]
    asked: int = 1
    outcomes: Sequence[RecipientOutcome] = ()
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class OwnResult(Result):
    """A document of msgctl's own, or a list of them, which may be made while it is printed.

    ``columns`` are those of a table, csv and tsv. ``view`` names
    how a terminal shows them. ``empty`` is what a person reads in place of a table without rows. ``has_fields`` is
    false for a document that --fields does not apply to: a dry run.
    """

    documents: Document | Iterable[Document]
    columns: Sequence[str]
    view: str = ""
    empty: str = ""
    has_fields: bool = True


@dataclass
class StreamResult(Result):
    """Documents of msgctl's own that come without end, each printed as soon as it comes; as JSON, one per line."""

    documents: Iterable[Document]
    columns: Sequence[str]
    view: str = ""


@dataclass
class TextResult(Result):
    """A text for another program, printed exactly; as JSON, ``document``."""

    text: str
    document: Document


@dataclass
class RawResult(Result):
    """The body of any response, printed as it came, below the lines of its ``head``."""

    body: bytes
    head: Sequence[str] = ()
