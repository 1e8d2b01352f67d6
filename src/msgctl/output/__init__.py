"""The only place that prints a result: as a table, as JSON, as csv or tsv.

Rich is loaded for a coloured table alone.
"""

from __future__ import annotations

from msgctl.output.fields import check_fields, check_own_fields
from msgctl.output.printer import Format, Printer
from msgctl.output.screen import Screen

__all__ = ["Format", "Printer", "Screen", "check_fields", "check_own_fields"]
