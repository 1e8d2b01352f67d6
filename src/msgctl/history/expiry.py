"""Delete expired records without trusting the clock."""

from __future__ import annotations

from msgctl.storage.records import Connection


def delete_expired(db: Connection, table: str, column: str, before: object, *, day: str, days: int) -> None:
    """Delete the rows with a time before ``before`` if the table has rows of at least this number of later days.

    A clock that is far ahead makes every row look old, but it adds no rows for the days in between. ``column`` is the
    time of a row, and ``day`` the SQL expression for its day. Called in a transaction.
    """
    db.execute(
        f"""DELETE FROM {table} WHERE {column} < ?
        AND {day} < (SELECT DISTINCT {day} FROM {table} ORDER BY 1 DESC LIMIT 1 OFFSET ?)""",  # noqa: S608
        (before, days - 1),
    )
