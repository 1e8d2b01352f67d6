"""The history: the dispatches that were made from this machine, and what came of them."""

from __future__ import annotations

from msgctl.history.notes import Dispatch, Document, Entry, History, Outcome, clear, reading

__all__ = ["Dispatch", "Document", "Entry", "History", "Outcome", "clear", "reading"]
