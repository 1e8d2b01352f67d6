"""The results that commands return. One place prints them (`msgctl.cli.main.run`), in the requested format.

They are named tuples, because every run defines them, and a dataclass takes seven times as long to define.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from msgctl.errors import MsgctlError
    from msgctl.http.response import Response
    from msgctl.outcomes.judge import RecipientOutcome

Document = Mapping[str, Any]


class Format(StrEnum):
    """The output format; the values are the choices of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"


class ServiceResult(NamedTuple):
    """Responses of the service to one operation.

    ``outcomes`` are the recipients' outcomes. ``values`` are the parameters of the request, by wire name.
    """

    responses: Sequence[Response]
    outcomes: Sequence[RecipientOutcome] = ()
    values: Mapping[str, Any] = {}
    failures: Sequence[MsgctlError] = ()


class OwnResult(NamedTuple):
    """One of msgctl's own documents, or several; an iterator is printed as it is consumed.

    ``columns`` are the columns of a table, csv and tsv. ``view`` selects the view on a terminal. ``empty`` is shown on
    a terminal instead of a table without rows. --fields does not apply to the view "request", a dry run. On a terminal,
    the view "doctor" shows the failures. ``hints`` are the next steps. If nothing has failed, a terminal shows them;
    after a job, other outputs except JSON do too.
    """

    documents: Document | Iterable[Document]
    columns: Sequence[str]
    view: str = ""
    empty: str = ""
    failures: Sequence[MsgctlError] = ()
    hints: Sequence[str] = ()


class TextResult(NamedTuple):
    """A text for another program, printed unchanged; with JSON output, ``document`` is printed."""

    text: str
    document: Document
    failures: Sequence[MsgctlError] = ()


class RawResult(NamedTuple):
    """The body of any response, printed unchanged."""

    body: bytes
    failures: Sequence[MsgctlError] = ()


Result = ServiceResult | OwnResult | TextResult | RawResult
"""The result of a command. Its ``failures`` are printed after it, and the first one determines the exit code."""
