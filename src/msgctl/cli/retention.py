"""The setting ``keep_days`` of a profile: delete old records of what it sent, once a day."""

from __future__ import annotations

import os
from contextlib import suppress

from msgctl.cli.context import Context
from msgctl.errors import ConfigurationError
from msgctl.storage import paths
from msgctl.text import timestamp

DAY = 86400


def delete_old(context: Context) -> None:
    """Delete the profile's old history entries and finished jobs, if that was not done today. Keys of --once stay."""
    profile = context.profile
    if profile.keep_days is None or not _is_time(context.clock(), profile.name):
        return
    from msgctl.history import clear
    from msgctl.jobs.report import finished
    from msgctl.jobs.store import Store

    before = max(0, context.clock() - profile.keep_days * DAY)
    store = Store(paths.state("jobs"))
    try:
        clear(profile.name, timestamp(before))
        for job in finished(store, before, context.clock):
            if job["profile"] == profile.name and job["updated"] < timestamp(before):
                with suppress(ConfigurationError):  # someone is resuming it
                    store.remove(job["job"])
    except ConfigurationError as error:
        context.warn(f"Old records were not deleted: {error.message}.")


def _is_time(now: float, profile: str) -> bool:
    """Tell whether a day has passed since this was last true for a profile, and remember that it is true now."""
    mark = paths.state(f".kept-{profile}")
    try:
        if mark.exists() and abs(now - mark.stat().st_mtime) < DAY:
            return False
        mark.touch(mode=0o600)
        os.utime(mark, (now, now))
    except OSError:  # what cannot be marked would be done for every message
        return False
    return True
