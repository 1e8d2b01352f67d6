"""The stores of `store`: every test of this directory runs with SQLite and PostgreSQL."""

from __future__ import annotations

from store.conftest import clock, engine, location, passes

__all__ = ["clock", "engine", "location", "passes"]
