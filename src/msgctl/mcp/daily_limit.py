"""The credits that programs used through `msgctl mcp`, stored so that a restart or a kill does not reset the limit.

Each send is stored with its maximum cost before its request is sent, and with its charge afterwards. If a process ends
in between, the maximum counts. Servers share the records, so together they cannot exceed the limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import date, timedelta

from msgctl.errors import ConditionError, MsgctlError, RefusedError, UsageError
from msgctl.history.expiry import delete_expired
from msgctl.phones import price_area
from msgctl.recipients import ACCEPTED, RecipientOutcome, charge
from msgctl.storage import database
from msgctl.storage.database import FileFormat
from msgctl.storage.records import RECORD_ERRORS, Connection, Records
from msgctl.values import quote

KEEP_DAYS = 90
"""Days that sends are kept, at least: as long as the keys of --once."""

# One row per send and country (see `price_area`). day is YYYY-MM-DD in UTC. credits is the maximum charge, and later
# the actual charge. price is the highest charge per estimated credit, NULL if the response reports no charge.
_SCHEMA = """
    CREATE TABLE sends (
        account TEXT NOT NULL,
        key TEXT NOT NULL,
        country TEXT NOT NULL,
        day TEXT NOT NULL,
        operation TEXT NOT NULL,
        credits INTEGER NOT NULL,
        price REAL,
        PRIMARY KEY (account, key, country)
    ) WITHOUT ROWID
    """
SENDS = FileFormat(
    name="the record of credits spent by msgctl mcp",
    file="mcp.sqlite3",
    table="sends",
    application=0x6D736770,  # "msgp"
    version=2,
    fix="Rename it; today's count then restarts at 0.",
    schema=(_SCHEMA,),
)

Settle = Callable[[Sequence[RecipientOutcome]], int]
"""A function that stores the charge of a send from its recipients' outcomes, and returns the day's used credits."""


class LimitError(ConditionError):
    """A send was not made because it could exceed the day's credits."""

    nothing_sent = True

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint, consequence="nothing was sent")


class _Send:
    """A send with a key, estimated at ``estimate`` credits per recipient."""

    def __init__(self, account: str, key: str, operation: str, phones: Sequence[str], estimate: int) -> None:
        self.account = account
        self.key = key
        self.operation = operation
        self.estimate = estimate
        self.recipients = Counter(map(price_area, phones))
        self.prices: dict[str, float] = {}
        self.spent = 0

    def reserve(self, db: Connection, day: date, most: int, *, is_alone: bool) -> bool:
        """Store the send's maximum cost. Return False if prices are unknown and other sends must end first.

        Called in a transaction. Raises LimitError and UsageError.
        """
        delete_expired(db, "sends", "day", str(day - timedelta(days=KEEP_DAYS)), day="day", days=KEEP_DAYS)
        if db.execute("SELECT 1 FROM sends WHERE account = ? AND key = ?", [self.account, self.key]).fetchone():
            raise UsageError(f"The key {quote(self.key)} was used before", "Choose another key to send again.")
        query = """SELECT country, max(price) FROM sends WHERE account = ? AND operation = ? AND price IS NOT NULL
            GROUP BY country"""
        self.prices = dict(db.execute(query, [self.account, self.operation]))
        if self.recipients.keys() - self.prices.keys():
            if self.recipients.total() > 1:
                raise LimitError(
                    f"The price of {self.operation} is not known for all of these numbers",
                    "Send to one number in each country first.",
                )
            if not is_alone:
                return False
        query = "SELECT coalesce(sum(credits), 0) FROM sends WHERE account = ? AND day = ?"
        self.spent = int(db.execute(query, [self.account, str(day)]).fetchone()[0])
        costs = {country: self.cost(country, number * self.estimate) for country, number in self.recipients.items()}
        if self.spent + (cost := sum(costs.values())) > most:
            raise LimitError(
                f"This send could exceed --max-credits {most} a day: it may cost {cost} ({self.spent} used today)",
                "Ask the user, or try again tomorrow.",
            )
        rows = [(self.account, self.key, each, str(day), self.operation, cost) for each, cost in costs.items()]
        db.executemany("INSERT INTO sends VALUES (?, ?, ?, ?, ?, ?, NULL)", rows)
        return True

    def cost(self, country: str, estimate: int) -> int:
        """Return the maximum cost of a message to a country, at least the estimate."""
        return math.ceil(round(estimate * max(1.0, self.prices.get(country, 1.0)), 6))

    def charges(self, outcomes: Sequence[RecipientOutcome]) -> dict[str, tuple[int, float | None]]:
        """Return the credits charged in each country, and the highest price there.

        Entries without a known recipient count in the first country.
        """
        found: dict[str, tuple[int, float | None]] = dict.fromkeys(self.recipients, (0, None))
        for each in outcomes:
            country = price_area(each.phone or "")
            paid, in_doubt = charge(each, self.estimate)
            if country not in found:
                country, in_doubt = next(iter(found)), 0
            credits_, price = found[country]
            if paid and each.outcome == ACCEPTED:
                price = max(price or 0.0, paid / self.estimate)
            found[country] = credits_ + paid + self.cost(country, in_doubt), price
        return found


@contextmanager
def reserved(
    records: Records,
    account: str,
    key: str,
    *,
    operation: str,
    phones: Sequence[str],
    estimate: int,
    most: int,
    today: Callable[[], date],
) -> Iterator[Settle]:
    """Reserve credits for the block's send with a key, at an estimate for each phone.

    A message is assumed to cost as much as the most expensive earlier message to its country. Until a price there is
    known, only one send at a time, to one number, goes to that country. If a response does not report a charge, the
    reserved credits count. Raises LimitError if more than ``most`` credits could be charged ``today`` (in UTC), and
    UsageError if the key was used before.
    """
    send = _Send(account, key, operation, phones, estimate)

    def reserve(*, is_alone: bool) -> bool:
        with records.opened(SENDS) as db, database.transaction(db):
            return send.reserve(db, today(), most, is_alone=is_alone)

    def change(statement: str, *values: object) -> None:
        with suppress(*RECORD_ERRORS), records.opened(SENDS) as db:  # on failure, the reserved credits count
            db.execute(statement, [*values, account, key])

    def settle(outcomes: Sequence[RecipientOutcome]) -> int:
        charges = send.charges(outcomes)
        for country, (credits_, price) in charges.items():
            update = "UPDATE sends SET credits = ?, price = ? WHERE country = ? AND account = ? AND key = ?"
            change(update, credits_, price, country)
        return send.spent + sum(credits_ for credits_, _ in charges.values())

    with ExitStack() as stack:
        if not reserve(is_alone=False):
            # Wait for all other sends with unknown prices.
            stack.enter_context(records.locked(SENDS, "mcp", lambda _: False))
            reserve(is_alone=True)
        try:
            yield settle
        except MsgctlError as error:
            if error.nothing_sent or isinstance(error, RefusedError):
                change("DELETE FROM sends WHERE account = ? AND key = ?")
            raise
