"""The results that commands return. One place prints them (`msgctl.cli.main.run`), in the requested format.

They are named tuples, since each run defines them: a dataclass takes seven times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

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


class ServiceResult(NamedTuple):
    """Responses of the service to one operation. ``asked`` is how many were asked for, some of which may be missing.

    ``outcomes`` are those of the recipients, ``values`` what was asked of the operation, by wire name.
    """

    responses: Sequence[Response]
    asked: int = 1
    outcomes: Sequence[RecipientOutcome] = ()
    values: Mapping[str, Any] = {}
    failures: Sequence[MsgctlError] = ()


class OwnResult(NamedTuple):
    """A document of msgctl's own, or a list of them, which may be made while it is printed.

    ``columns`` are those of a table, csv and tsv. ``view`` names how a terminal shows them. ``empty`` is what a person
    reads in place of a table without rows. --fields does not apply to the view "request", a dry run; on a terminal the
    view "doctor" shows the failures. ``hints`` are the next steps, shown on a terminal if nothing has failed.
    """

    documents: Document | Iterable[Document]
    columns: Sequence[str]
    view: str = ""
    empty: str = ""
    failures: Sequence[MsgctlError] = ()
    hints: Sequence[str] = ()


class StreamResult(NamedTuple):
    """Documents of msgctl's own that come without end, each printed as soon as it comes; as JSON, one per line."""

    documents: Iterable[Document]
    columns: Sequence[str]
    view: str = ""
    failures: Sequence[MsgctlError] = ()


class TextResult(NamedTuple):
    """A text for another program, printed exactly; as JSON, ``document``."""

    text: str
    document: Document
    failures: Sequence[MsgctlError] = ()


class RawResult(NamedTuple):
    """The body of any response, printed as it came, below the lines of its ``head``."""

    body: bytes
    head: Sequence[str] = ()
    failures: Sequence[MsgctlError] = ()


Result = ServiceResult | OwnResult | StreamResult | TextResult | RawResult
"""What a command returns. Its ``failures`` are reported after it; the first one decides the exit code."""
