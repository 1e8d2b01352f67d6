"""Code that tests share."""

PATIENCE = 120.0
"""Seconds that a test waits for a process, a connection or a request before it fails, even on a loaded machine."""
