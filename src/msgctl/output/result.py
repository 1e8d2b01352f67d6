"""The results that commands return. `msgctl.cli.shell.main` prints them in the requested format.

They are named tuples, because every run defines them, and a dataclass takes seven times as long to define.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from msgctl.errors import MsgctlError
    from msgctl.http.response import Response
    from msgctl.outcomes.outcome import Outcome
    from msgctl.outcomes.words import AddedWords

Document = Mapping[str, Any]


class Documented(Protocol):
    """One of msgctl's own results, such as a job, which has a JSON document."""

    def document(self) -> Document:
        """Return the fields by name."""


Item = Document | Documented


class StoredRows:
    """Rows of the store. Each iteration reads them again, so that a million are not in memory together."""

    def __init__(self, read: Callable[[], Iterator[Document]]) -> None:
        self._read = read

    def __bool__(self) -> bool:
        return next(self._read(), None) is not None

    def __iter__(self) -> Iterator[Document]:
        return self._read()


class Format(StrEnum):
    """The output format; the values are the choices of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"


class Layout(Enum):
    """How a terminal shows msgctl's own results."""

    PLAIN = auto()
    """A list of fields, or a table."""
    BALANCE = auto()
    CHECKS = auto()
    """The findings of doctor, with its failures."""
    HISTORY = auto()
    INBOX = auto()
    JOB = auto()
    JOB_POLLED = auto()
    JOB_RUN = auto()
    """A job after a run that sent its messages, with a verdict."""
    JOBS = auto()
    OPTOUTS = auto()
    PLAN = auto()
    """The summary of a job before it is sent."""
    PROFILES = auto()
    REPORT = auto()
    """The recipients of a job."""
    REQUEST = auto()
    """A dry run; --fields does not apply to it."""


class ServiceResult(NamedTuple):
    """Responses of the service to one operation.

    ``outcomes`` are the recipients' outcomes. ``values`` are the parameters of the request, by wire name.
    ``is_tracked`` means that the command itself tracks the messages, so no hint shows how to do it. ``states`` are the
    last states by ID and phone (None: all that share the ID). In csv, tsv and jsonl, they replace the states in the
    responses.
    """

    responses: Sequence[Response]
    outcomes: Sequence[Outcome] = ()
    values: Mapping[str, Any] = {}
    failures: Sequence[MsgctlError] = ()
    is_tracked: bool = False
    states: Mapping[tuple[str, str | None], str] = {}


class OwnResult(NamedTuple):
    """One of msgctl's own results, or several; an iterator is printed as it is consumed.

    ``columns`` are the columns of a table, csv and tsv. ``empty`` is shown on a terminal instead of a table without
    rows. ``hints`` are the next steps. A terminal shows them if nothing has failed. After a job was sent or polled,
    other outputs except JSON show them, too. With ``save``, the rows are written to that file instead.
    ``about`` are facts, each with its name, that a table shows below its rows. ``words`` are the words of the profile
    of a report, for the signs of delivery states.
    """

    content: Item | Iterable[Item]
    columns: Sequence[str]
    layout: Layout = Layout.PLAIN
    empty: str = ""
    failures: Sequence[MsgctlError] = ()
    hints: Sequence[str] = ()
    save: Path | None = None
    about: Sequence[tuple[str, str]] = ()
    words: AddedWords | None = None


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
