"""The output formats, in a module of their own, since the command line needs them before anything is printed."""

from __future__ import annotations

from enum import Enum


class Format(Enum):
    """How a result is printed; the values are those of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
