"""The forms of output, apart from what makes them: the command line names them long before anything is printed."""

from __future__ import annotations

from enum import Enum


class Format(Enum):
    """How a result is printed; the values are those of ``--output``."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    TSV = "tsv"
