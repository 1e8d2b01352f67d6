"""Check the delivery states of a job's messages, for `job states`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from msgctl.errors import MsgctlError
from msgctl.http.client import Client
from msgctl.jobs.ending import FAILURES_IN_A_ROW
from msgctl.jobs.limits import RateLimiter
from msgctl.jobs.polling import TOGETHER, Goal, Poller, Tracked
from msgctl.jobs.settings import Settings
from msgctl.store import results
from msgctl.store.jobs import Job
from msgctl.store.results import Sent
from msgctl.store.store import Store

READ_AHEAD = 10_000
"""Recipients that are read at a time, to check those who share an ID together."""


class JobStates:
    """The delivery states of a job's messages that have an ID, in the store.

    ``due`` counts the messages that needed a check at the beginning of the last `check`. ``checked`` counts the
    messages that it checked, and ``failed`` the messages with an error, of which ``first_error`` is the first.
    """

    def __init__(
        self,
        store: Store,
        job: Job,
        goal: Goal,
        connect: Callable[[], Client],
        monotonic: Callable[[], float],
        deadline: float | None = None,
    ) -> None:
        """``connect``, ``monotonic`` and ``deadline`` are arguments of `Poller`."""
        self._store = store
        self._job = job
        self._goal = goal
        settings = Settings.shown(job.settings)
        limiter = RateLimiter(settings.rate)
        self._poller = Poller(connect, goal.added, monotonic, deadline, limiter=limiter, threads=settings.concurrency)
        self.due = self.unfinished().total()
        self.checked = 0
        self.failed = 0
        self.first_error: MsgctlError | None = None
        self.texts: set[str] = set()
        """The states that are words of the service."""

    def unfinished(self) -> Counter[str | None]:
        """Count the messages that need another check, by their last state; None is not known."""
        states = results.state_counts(self._store, self._job.number)
        counts = Counter({state: number for state, number in states.items() if not self._goal.is_over(state)})
        counts[None] -= self.without_id
        return +counts

    @property
    def without_id(self) -> int:
        """How many messages have no ID, and therefore no state."""
        return results.without_id(self._store, self._job.number)

    @property
    def ended_otherwise(self) -> int:
        """How many messages are in a final state other than the goal."""
        states = results.state_counts(self._store, self._job.number)
        return sum(
            number for state, number in states.items() if self._goal.is_over(state) and not self._goal.is_reached(state)
        )

    def check(self) -> Iterator[list[tuple[str, str]]]:
        """Check the messages and store their states; yield new ones, each after its phone, from time to time.

        Raises the errors of the store.
        """
        if self._poller.is_late:
            return  # the errors of the last time remain
        self.checked, self.failed, self.first_error, self.due = 0, 0, None, self.unfinished().total()
        checked = self._counted(self._poller.run(self._messages()))
        while some := [*islice(checked, TOGETHER)]:
            changes = [(message.id, phone, state) for message in some for phone, state in message.changes().items()]
            results.learn_states(self._store, self._job.account, changes)
            yield [(phone or id_, state) for id_, phone, state in changes]

    @property
    def is_over(self) -> bool:
        """Return whether more checks are useless: all messages have final states, or the service refuses to check."""
        is_refused = self._poller.is_stopped and not (self.first_error and self.first_error.retryable)
        return is_refused or not self.unfinished()

    def _messages(self) -> Iterator[Tracked]:
        """Yield the messages that need a check, in the order of their first lines.

        Recipients who share an ID are on consecutive lines, unless the messages of the job alternate.
        """
        accepted = results.accepted(self._store, self._job.number)
        due = (sent for sent in accepted if not self._goal.is_over(sent.state))
        while some := [*islice(due, READ_AHEAD)]:
            groups: dict[str, list[Sent]] = {}
            for sent in some:
                groups.setdefault(sent.id, []).append(sent)
            for id_, group in groups.items():
                known = {sent.phone: sent.state for sent in group if sent.state}
                yield Tracked(id_, [sent.phone for sent in group], known=known)

    def _counted(self, checked: Iterator[Tracked]) -> Iterator[Tracked]:
        """Count messages that were checked; stop after too many failures in a row."""
        failures_in_a_row = 0
        for message in checked:
            self.checked += len(message.phones)
            failures_in_a_row += 1
            if message.error is None:
                failures_in_a_row = 0
                self.texts |= message.texts
            else:
                self.failed += len(message.phones)
                self.first_error = self.first_error or message.error
            if failures_in_a_row == FAILURES_IN_A_ROW:
                self._poller.is_stopped = True
            yield message
