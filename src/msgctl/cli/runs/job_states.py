"""Check the delivery states of a job's messages, for `job states`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from threading import Lock
from typing import TYPE_CHECKING

from msgctl.cli.runs import running
from msgctl.cli.runs.polling import LAST_CHECK, Goal, Tracked, poll
from msgctl.cli.runs.pool import Pool
from msgctl.cli.shell.context import Context
from msgctl.errors import ConditionError, Hint, Interrupted, MsgctlError
from msgctl.jobs.limits import FailureCounter, RateLimiter
from msgctl.jobs.settings import Settings
from msgctl.output.result import Layout, OwnResult
from msgctl.store import results
from msgctl.store.jobs import Job
from msgctl.store.results import Sent
from msgctl.text import plural, shorten, some_of

if TYPE_CHECKING:
    from msgctl.http.client import Client

TOGETHER = 100
"""Maximum messages whose states are stored together."""
READ_AHEAD = 10_000
"""Recipients that are read at a time, so that those with the same ID are checked together."""
INTERVAL = 10.0
"""Seconds between two polls with --follow."""
MAX_FOLLOW = 3600.0
"""Seconds that --follow waits if --max-wait is omitted."""


def poll_states(
    context: Context, job: Job, *, follow: bool = False, until: str | None = None, max_wait: float = MAX_FOLLOW
) -> OwnResult:
    """Poll the delivery states of a job's messages and return the job, with the errors.

    With ``follow``, show each change, and poll again for at most ``max_wait`` seconds, until each message is in a final
    state or in ``until``. Ctrl-C only ends the reading.
    """
    hint, deadline, bar = Hint("Continue: ", f"job states {job.typed}"), None, None
    if follow:
        hint = Hint("Continue: ", f"job states {job.typed} --follow")
        deadline = context.monotonic() + max_wait
    else:
        bar = running.progress_bar(context)
    goal = Goal(until, context.words)
    states = JobStates(context, job, goal, deadline)
    due = states.unfinished().total()

    def check() -> bool:
        for changes in states.check():
            if bar:
                failed = [("failed", states.failed)] if states.failed else []
                bar.show(states.checked, due, failed)
            elif context.shows_notes and follow:
                context.printer.print_states(changes)
        return not states.is_over()

    error: MsgctlError | None
    try:
        if follow and due:
            poll(context, check, max_wait, INTERVAL, f"for {plural(due, 'message')} to reach {goal}")
        else:
            check()
        error = states.error(hint, follow=follow)
    except KeyboardInterrupt:
        error = Interrupted(f"Interrupted after checking {plural(states.checked, 'message')}", hint)
    finally:
        if bar:
            bar.stop()
    return running.result(context, job, error, Layout.JOB_POLLED)


class JobStates:
    """Checks the delivery states of a job's messages that have an ID, and stores them.

    ``checked`` counts the messages of the last `check`, and ``failed`` counts the ones with an error.
    """

    def __init__(self, context: Context, job: Job, goal: Goal, deadline: float | None) -> None:
        settings = Settings.shown(job.settings)
        self._store = context.store
        self._monotonic, self._sleep = context.monotonic, context.sleep
        self._job = job
        self._goal = goal
        self._end = None if deadline is None else deadline + LAST_CHECK
        self._pool = Pool(context, settings.concurrency)
        self._limiter = RateLimiter(settings.rate)
        self._lock = Lock()
        self.checked = 0
        self.failed = 0
        self._first_error: MsgctlError | None = None
        self._texts: set[str] = set()
        """The states that are words of the service."""

    def unfinished(self) -> Counter[str | None]:
        """Count the messages that need another check, by their last state; None is an unknown state."""
        counts = results.state_counts(self._store, self._job.number)
        return Counter({state: number for state, number in counts.items() if not self._goal.is_over(state)})

    def is_over(self) -> bool:
        """Return whether more checks are useless: all messages have final states, or the service refuses to check."""
        is_refused = self._pool.is_stopped and not (self._first_error and self._first_error.retryable)
        return is_refused or not self.unfinished()

    def check(self) -> Iterator[list[tuple[str, str]]]:
        """Check the messages, store their states, and yield lists of phones with new states.

        Raises the errors of the store.
        """
        self.checked, self.failed, self._first_error = 0, 0, None
        messages = takewhile(lambda _: not self._pool.is_stopped, self._messages())
        checked = self._counted(self._pool.map(self._check, messages))
        while together := [*islice(checked, TOGETHER)]:
            changes = [(message.id, phone, state) for message in together for phone, state in message.changes().items()]
            results.store_states(self._store, self._job.account, changes)
            yield [(phone or id_, state) for id_, phone, state in changes]

    def _check(self, client: Client, message: Tracked) -> Tracked | None:
        """Check a message in a thread, no faster than the rate of the job; return None if the check has stopped."""
        timeout = None
        with self._lock:
            now = self._monotonic()
            delay = self._limiter.delay(now)
            if self._end is not None:
                timeout = self._end - now - delay
                if timeout <= 0:
                    self._pool.is_stopped = True
                    return None
            self._limiter.sent(1, now)
        if delay:
            self._sleep(delay)
        message.check(client, timeout, self._goal.added)
        message.response = None  # so that memory is bounded while many messages wait for the caller
        return message

    def _messages(self) -> Iterator[Tracked]:
        """Yield the messages that need a check, ordered by their first lines.

        Recipients who share an ID are usually on consecutive lines.
        """
        accepted = results.accepted(self._store, self._job.number)
        due = (sent for sent in accepted if not self._goal.is_over(sent.state))
        while together := [*islice(due, READ_AHEAD)]:
            groups: dict[str, list[Sent]] = {}
            for sent in together:
                groups.setdefault(sent.id, []).append(sent)
            for id_, group in groups.items():
                reported = {sent.phone: sent.state for sent in group if sent.state}
                yield Tracked(id_, [sent.phone or "" for sent in group], reported=reported)

    def _counted(self, checked: Iterable[Tracked | MsgctlError | None]) -> Iterator[Tracked]:
        """Count messages that were checked; stop after too many failures in a row."""
        failures = FailureCounter()
        for message in checked:
            if not isinstance(message, Tracked):  # the check has stopped
                continue
            kind = ""
            self.checked += len(message.phones)
            self._texts |= message.texts
            if message.error:
                kind = "failed"
                self.failed += len(message.phones)
                self._first_error = self._first_error or message.error
            if failures.count(kind):
                self._pool.is_stopped = True
            yield message

    def error(self, hint: str, *, follow: bool) -> MsgctlError | None:
        """Return the error for states that could not be read or are not the goal, if any."""
        first = self._first_error
        unread = f"{plural(self.failed, 'delivery state')} could not be checked. The first"
        if first and not (follow and first.retryable):
            return first.within(unread)
        if not follow:
            return None
        goal, parts = self._goal, []
        counts = results.state_counts(self._store, self._job.number)
        ended = sum(number for state, number in counts.items() if goal.is_over(state) and not goal.is_reached(state))
        unfinished = self.unfinished()
        if ended:
            parts.append(f"{plural(ended, 'message')} ended in another state than {goal}")
        if unfinished:
            states = unfinished.most_common()
            now = some_of([f"{number:,} {shorten(state or 'unknown', 60)}" for state, number in states])
            parts.append(f"{plural(unfinished.total(), 'message')} did not reach {goal} in time (now: {now})")
        if first:
            parts.append(f"{unread}: {first.message}")
        if number := results.without_id(self._store, self._job.number):
            parts.append(f"The state of {plural(number, 'message')} cannot be checked: the service returned no ID")
        if not parts:
            return None
        reason = "not_delivered" if ended else "state_not_reached"
        words = [state for state, _ in unfinished.most_common() if state and state in self._texts]
        details = first.details if first else None
        if not unfinished:
            hint = ""
        return ConditionError(
            "; ".join(parts), hint, reason=reason, missing_words=("delivered", words[:1]), details=details
        )
