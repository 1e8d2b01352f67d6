"""Country codes and names (ISO 3166-1 alpha-2), from the table that the tzdata package carries."""

from __future__ import annotations

from functools import cache


@cache
def names() -> dict[str, str]:
    """Return the English name of each country by its two-letter code, in upper case: 249 of them."""
    from importlib.resources import files  # few commands need it

    table = files("tzdata").joinpath("zoneinfo", "iso3166.tab").read_text(encoding="utf-8")
    rows = (line.partition("\t") for line in table.splitlines() if not line.startswith("#"))
    return {code: name for code, _, name in rows}
