"""Delivery states of what a job sent: asked for in rounds, at the job's rate, stopped and taken up again at will."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator

from msgctl import operations
from msgctl.delivery_states import is_final
from msgctl.errors import MsgctlError, no_more, unexpected
from msgctl.http.client import Client
from msgctl.jobs import reading, rounds
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.limits import Failures, Pace
from msgctl.jobs.records import Heard
from msgctl.jobs.threads import begin
from msgctl.text import storable

_COMMIT_EVERY = 200
"""Answers that are written together; what is lost of them is asked for again."""

_NAP = 0.5
"""Seconds after which the thread that writes looks whether it was stopped."""


class Round:
    """One round of questions; those that an earlier, stopped round got answers to are not asked again.

    ``due`` is how many there are to ask. ``asked`` and ``failed`` count messages, and ``first_fault`` is what the first
    of the failed ones failed with. Used like a `Runner`.
    """

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._connect = connect
        self._monotonic = monotonic
        self._pace = Pace(ledger.order.rate)
        self._failures = Failures()
        self._questions: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Heard] = queue.SimpleQueue()
        self._stopping = False
        self._ended = threading.Event()
        self._may_ask = threading.Event()
        self._begun: list[threading.Thread] = []
        self._number = ledger.order.concurrency
        self._conductor = threading.Thread(target=self._conduct, name="ledger", daemon=True)
        self._askers = [threading.Thread(target=self._ask, name=f"asker {n}", daemon=True) for n in range(self._number)]
        self._stopped_by: MsgctlError | None = None
        self.first_fault: MsgctlError | None = None
        self.due = 0
        self.asked = 0
        self.failed = 0

    def start(self) -> None:
        """Begin, with fewer threads where the system allows no more; with none, that is what stopped the round."""
        self._ledger.is_in_use = True
        self._begun = begin([self._conductor, *self._askers])
        if len(self._begun) < 2:
            self._stopped_by, self._stopping = no_more("threads"), True
        if not self._begun:
            self._ended.set()
        self._may_ask.set()

    def wait(self, seconds: float) -> bool:
        """Wait that long, or until the round is over or stopped; whether that is so."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        self._stopping = True

    def finish(self) -> MsgctlError | None:
        """The error that ended the round early, if any."""
        for thread in self._begun:
            thread.join()
        self._ledger.is_in_use = False
        return self._stopped_by

    def _conduct(self) -> None:
        """Give out questions at the job's pace, and write the answers; whatever happens, nobody waits for ever."""
        self._may_ask.wait()
        try:
            number = rounds.begin(self._ledger)
            self.due = self._ledger.totals.accepted - rounds.left_out(self._ledger, number)
            if self._converse(number) and not self._stopping:
                rounds.end(self._ledger)
        except Exception as error:  # noqa: BLE001 (it is told by `finish`)
            self._stopped_by = self._stopped_by or (error if isinstance(error, MsgctlError) else unexpected(error))
        finally:
            for _ in self._askers:
                self._questions.put(None)
            self._ended.set()

    def _converse(self, number: int) -> bool:
        """Ask all that is to be asked in a round and hear the answers; true where it came to its end."""
        heard: list[Heard] = []
        under_way = 0
        try:
            for question in self._due(number):
                while under_way >= self._number or (self._pace.delay(self._monotonic()) and not self._stopping):
                    under_way -= self._hear(heard, number)
                if self._stopping:
                    return False
                self._questions.put(question)
                self._pace.took(1, self._monotonic())
                under_way += 1
        finally:
            while under_way:
                under_way -= self._hear(heard, number)
            rounds.note(self._ledger, number, heard)
        return True

    def _due(self, number: int) -> Iterator[tuple[int, str]]:
        """Line and message id of what is to be asked in a round: not what was asked in it, nor what is final."""
        for line, message in reading.accepted(self._ledger):
            state, asked_in = rounds.last_heard(self._ledger, line)
            if asked_in != number and not is_final(state or ""):
                yield line, message

    def _hear(self, heard: list[Heard], number: int) -> int:
        """Wait a little for an answer and take note of it; how many were heard."""
        delay = self._pace.delay(self._monotonic())
        try:
            answer = self._answers.get(timeout=min(delay, _NAP) or _NAP)
        except queue.Empty:
            return 0
        heard.append(answer)
        self.asked += 1
        if answer.fault:
            self.failed += 1
            self.first_fault = self.first_fault or answer.fault
        if self._failures.add(answer.fault):
            self._stopped_by, self._stopping = answer.fault, True
        if len(heard) >= _COMMIT_EVERY:
            rounds.note(self._ledger, number, heard)
            heard.clear()
        return 1

    def _ask(self) -> None:
        client: Client | None = None
        try:
            while (question := self._questions.get()) is not None:
                line, message = question
                try:
                    client = client or self._connect()
                    answer = client.send(operations.MESSAGES_STATE, {"id": message})
                    state = answer.document.get("state")
                    self._answers.put(Heard(line, None if state is None else storable(str(state)), None))
                except MsgctlError as error:
                    self._answers.put(Heard(line, None, error))
                except Exception as error:  # noqa: BLE001 (who waits for the answer must get one)
                    self._answers.put(Heard(line, None, unexpected(error)))
        finally:
            if client:
                client.close()
