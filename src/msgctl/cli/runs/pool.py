"""Requests about many items, several at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from msgctl.cli.shell.context import Context
from msgctl.errors import MsgctlError, of_thread

if TYPE_CHECKING:
    from msgctl.http.client import Client

Item = TypeVar("Item")
Value = TypeVar("Value")

READ_AHEAD = 100
"""Maximum items whose values wait for the caller."""


class Pool:
    """Threads, each with its own client, which is kept from one `map` to the next."""

    def __init__(self, context: Context, threads: int) -> None:
        self._context = context
        self._threads = threads
        self._clients: SimpleQueue[Client] = SimpleQueue()
        self._clients.put(context.client)  # before the threads, because it fails without a credential
        self.is_stopped = False
        """Whether no further work of this `map` may begin."""

    def map(self, work: Callable[[Client, Item], Value], items: Iterable[Item]) -> Iterator[Value | MsgctlError | None]:
        """Yield the value that ``work`` returns for each item, or its error, in order; None for items after a stop."""
        self.is_stopped = False

        def work_on(item: Item) -> Value | MsgctlError | None:
            if self.is_stopped:
                return None
            try:
                client = self._clients.get_nowait()
            except Empty:
                client = self._context.stack.enter_context(closing(self._context.client.sibling()))
            try:
                return work(client, item)
            except Exception as error:  # noqa: BLE001 (one item must not end the others)
                return of_thread(error)
            finally:
                self._clients.put(client)

        waiting = iter(items)
        pool = ThreadPoolExecutor(self._threads)
        try:
            futures = deque(pool.submit(work_on, item) for item in islice(waiting, READ_AHEAD))
            while futures:
                yield futures.popleft().result()
                futures.extend(pool.submit(work_on, item) for item in islice(waiting, 1))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
