"""The history: what was sent from this machine, and the result."""

from __future__ import annotations

from msgctl.history.store import FIELDS, NOT_SENT, History, Send, clear, reading

__all__ = ["FIELDS", "NOT_SENT", "History", "Send", "clear", "reading"]
