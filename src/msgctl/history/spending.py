"""Credits that programs spent through `msgctl mcp`, so that their limit for a day survives restarts and kills.

Each send is stored with the most that it may cost before its request goes out, and with its real cost afterwards. If a
process ends in between, what is stored counts. Several servers share the file, so they cannot exceed a limit together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import date, timedelta
from pathlib import Path

from msgctl.errors import ConditionError, ConfigurationError, MsgctlError, RefusedError, UsageError
from msgctl.storage import database
from msgctl.storage.database import FileFormat
from msgctl.values import quote

KEEP = timedelta(days=90)
"""How long sends are kept: as long as the keys of --once."""

FORMAT = FileFormat(
    name="the list of sends of msgctl mcp",
    application=0x6D736770,  # "msgp"
    version=1,
    fix="Move it away; then the credits of today count from 0 again.",
    most_wait=10.0,
)
# day is YYYY-MM-DD. credits are at least the estimate until the response says what was charged.
_SCHEMA = (
    """
    CREATE TABLE sends (
        account TEXT NOT NULL,
        key TEXT NOT NULL,
        day TEXT NOT NULL,
        operation TEXT NOT NULL,
        estimate INTEGER NOT NULL,
        credits INTEGER NOT NULL,
        PRIMARY KEY (account, key)
    ) WITHOUT ROWID
    """,
)


class LimitError(ConditionError):
    """A send could exceed the credits of the day; it was not made."""

    nothing_sent = True


@contextmanager
def reserved(
    path: Path, account: str, key: str, *, operation: str, estimate: int, most: int, day: date
) -> Iterator[Callable[[int], None]]:
    """Reserve credits for the send that the block makes under a key; the block calls what is yielded with its cost.

    Until then the estimate counts, or more if earlier sends of the operation cost more than theirs. Raises LimitError
    if more than ``most`` credits could be charged on this day, and UsageError if the key was used before.
    """
    named = (account, key)
    with FORMAT.explained(path):
        database.provide(path)
        db = FORMAT.connect(path)
    with closing(db):
        with FORMAT.explained(path):
            FORMAT.prepare(db, path, _SCHEMA)
            db.execute("PRAGMA synchronous = FULL")
            with database.transaction(db):
                db.execute("DELETE FROM sends WHERE day < ?", [str(day - KEEP)])
                if db.execute("SELECT 1 FROM sends WHERE account = ? AND key = ?", named).fetchone():
                    raise UsageError(f"The key {quote(key)} was used before", "Choose another key to send again.")
                found = db.execute(
                    """SELECT coalesce(sum(credits) FILTER (WHERE day = :day), 0),
                    max(1.0, max(credits * 1.0 / estimate) FILTER (WHERE operation = :operation))
                    FROM sends WHERE account = :account""",
                    {"day": str(day), "operation": operation, "account": account},
                )
                spent, price = found.fetchone()
                cost = math.ceil(round(estimate * (price or 1), 6))
                if spent + cost > most:
                    raise LimitError(
                        f"This send could exceed --max-credits {most} a day: it may cost {cost}, and {spent} were used",
                        "Ask the user, or try again tomorrow.",
                        consequence="nothing was sent",
                    )
                db.execute("INSERT INTO sends VALUES (?, ?, ?, ?, ?, ?)", [*named, str(day), operation, estimate, cost])

        def change(statement: str, *values: int) -> None:
            with suppress(ConfigurationError), FORMAT.explained(path):  # the reserved credits count then
                db.execute(f"{statement} WHERE account = ? AND key = ?", [*values, *named])

        try:
            yield lambda credits: change("UPDATE sends SET credits = ?", credits)
        except MsgctlError as error:
            if error.nothing_sent or isinstance(error, RefusedError):
                change("DELETE FROM sends")
            raise
