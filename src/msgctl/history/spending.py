"""What programs spent through `msgctl mcp`, so that their limit for a day holds after restarts and kills.

Each send is stored with the most that it may cost before its request goes out, and with its real cost afterwards. If a
process ends in between, what is stored counts. Several servers share the file, so they cannot exceed a limit together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import date, timedelta

from msgctl.errors import ConditionError, ConfigurationError, MsgctlError, RefusedError, UsageError
from msgctl.storage import files
from msgctl.storage.files import FileFormat
from msgctl.values import quote

KEEP = timedelta(days=90)
"""How long sends are kept: as long as the keys of --once."""

# day is YYYY-MM-DD. credits are at least the estimate until the response says what was charged.
_SCHEMA = """
    CREATE TABLE sends (
        account TEXT NOT NULL,
        key TEXT NOT NULL,
        day TEXT NOT NULL,
        operation TEXT NOT NULL,
        estimate INTEGER NOT NULL,
        credits INTEGER NOT NULL,
        PRIMARY KEY (account, key)
    ) WITHOUT ROWID
    """
SENDS = FileFormat(
    name="the record of credits spent by msgctl mcp",
    application=0x6D736770,  # "msgp"
    version=1,
    fix="Move it away; then the credits of today count from 0 again.",
    schema=(_SCHEMA,),
)


class LimitError(ConditionError):
    """A send could exceed the credits of the day; it was not made."""

    nothing_sent = True


@contextmanager
def reserved(
    account: str, key: str, *, operation: str, estimate: int, most: int, day: date
) -> Iterator[Callable[[int, int], int]]:
    """Reserve credits for the send that the block makes under a key.

    The block calls what is yielded with the credits that were charged, and the estimate for recipients whose charge the
    response does not tell; that returns the credits used on this day. Until then, and as a minimum if a charge is not
    told, the estimate counts, or more if earlier sends of the operation cost more than estimated. Raises LimitError if
    more than ``most`` credits could be charged on this day, and UsageError if the key was used before.
    """
    path = files.state("mcp.sqlite3")
    with SENDS.opened(path, create=True) as db:
        db.execute("PRAGMA synchronous = FULL")
        with files.transaction(db):
            db.execute("DELETE FROM sends WHERE day < ?", [str(day - KEEP)])
            if db.execute("SELECT 1 FROM sends WHERE account = ? AND key = ?", [account, key]).fetchone():
                raise UsageError(f"The key {quote(key)} was used before", "Choose another key to send again.")
            query = """SELECT total(credits) FILTER (WHERE day = ?), max(credits * 1.0 / estimate)
                FILTER (WHERE operation = ?) FROM sends WHERE account = ?"""
            spent, price = db.execute(query, [str(day), operation, account]).fetchone()
            cost = math.ceil(round(estimate * max(1.0, price or 1.0), 6))
            if spent + cost > most:
                raise LimitError(
                    f"This send could exceed --max-credits {most} a day: it may cost {cost} ({spent:.0f} used today)",
                    "Ask the user, or try again tomorrow.",
                    consequence="nothing was sent",
                )
            db.execute(
                "INSERT INTO sends VALUES (?, ?, ?, ?, ?, ?)", [account, key, str(day), operation, estimate, cost]
            )

    def change(statement: str, *values: int) -> None:
        with suppress(ConfigurationError), SENDS.opened(path) as db:  # else the reserved credits count
            db.execute(f"{statement} WHERE account = ? AND key = ?", [*values, account, key])

    def settle(charged: int, untold: int) -> int:
        real = max(charged + untold, cost if untold else 0)
        change("UPDATE sends SET credits = ?", real)
        return int(spent) + real

    try:
        yield settle
    except MsgctlError as error:
        if error.nothing_sent or isinstance(error, RefusedError):
            change("DELETE FROM sends")
        raise
