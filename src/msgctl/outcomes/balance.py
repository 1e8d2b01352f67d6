"""The credits left, in the response to `balance`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgctl.jsontext import Number, ShapeError, objects
from msgctl.outcomes.content import is_nothing
from msgctl.outcomes.record import levels

if TYPE_CHECKING:
    from decimal import Decimal


_CREDITS = re.compile(r"-?(0|[1-9][0-9]{0,18})(\.[0-9]{1,19})?", re.ASCII)
_NUMBER_OF_CREDITS = re.compile(rf"{_CREDITS.pattern}([eE][+-]?[0-9])?", re.ASCII)


def credits_left(document: Any) -> Decimal:
    """Return the credits left in a response to `balance`. Raises ShapeError if it does not contain them."""
    from decimal import Decimal  # most commands do not need it

    records = list(levels(document))
    named = [record[name] for record in records for name in ("balance", "credits", "saldo") if name in record]
    if not named and records and [*records[0]] == ["status"] and not str(records[0]["status"]).startswith("-"):
        named = [records[0]["status"]]
    has_error = any(not is_nothing(content.get("error")) for content in objects(document))
    if named and not has_error and isinstance(named[0], str):
        pattern = _NUMBER_OF_CREDITS if isinstance(named[0], Number) else _CREDITS
        text = named[0].strip()
        if pattern.fullmatch(text):
            return Decimal(text)
    raise ShapeError("it does not contain the credits left")
