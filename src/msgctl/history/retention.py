"""Delete old records: entries of the history and finished jobs, if the profile has ``keep_days``."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgctl.config.profiles import Profile
from msgctl.errors import ConfigurationError
from msgctl.history.store import CONTACT_SECONDS, reading
from msgctl.jobs import resends
from msgctl.jobs.report import finished
from msgctl.jobs.store import Store
from msgctl.storage import files
from msgctl.text import timestamp

DAY = 86400


def delete_old(profile: Profile, clock: Callable[[], float], warn: Callable[[str], None]) -> None:
    """Delete entries and finished jobs older than the profile's ``keep_days``, once a day. Keys of --once are kept.

    ``warn`` is called with the reason if they cannot be deleted.
    """
    now = clock()
    if profile.keep_days is None or not _is_due(files.state(f".kept-{profile.name}"), now):
        return
    before = max(0, now - profile.keep_days * DAY)
    store = Store(files.state("jobs"))
    try:
        with reading() as history:
            if history is not None:
                history.clear(profile.name, timestamp(before), contacts_before=timestamp(max(0, now - CONTACT_SECONDS)))
        for job in finished(store, before, clock):
            if job["profile"] == profile.name and job["updated"] < timestamp(before):
                with suppress(ConfigurationError):  # another process is resuming it
                    resends.remove(store, job["job"])
    except ConfigurationError as error:
        warn(f"Old records were not deleted: {error.message}.")


def _is_due(mark: Path, now: float) -> bool:
    """Return whether a day has passed since the time of a file, and set that time to now."""
    with suppress(OSError):  # if the time cannot be set, the next send checks again
        if not mark.exists() or abs(now - mark.stat().st_mtime) >= DAY:
            mark.touch(mode=0o600)
            os.utime(mark, (now, now))
            return True
    return False
