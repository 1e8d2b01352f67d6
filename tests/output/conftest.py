"""How long an example takes is the machine's affair."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("output", deadline=None)
settings.load_profile("output")
