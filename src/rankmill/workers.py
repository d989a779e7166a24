"""Running work on a bounded number of threads, with results in the order of the input."""

import contextlib
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from rankmill.errors import positive

Batch = TypeVar("Batch")
Value = TypeVar("Value")

END = object()


def available_cpus() -> int:
    """The number of CPUs this process may use: its affinity, capped by its cgroup's quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cpus = min(cpus, math.ceil(int(quota) / int(period)))
    return max(1, cpus)


def thread_count(threads: int | None) -> int:
    """The threads asked for, else the CPUs there are; raises UsageError if it is not positive."""
    return available_cpus() if threads is None else positive(threads, "threads")


class BatchReader(Generic[Batch]):
    """Batches of pieces, read on threads from the start, and worked on by the same threads.

    A piece is read by one thread at a time, and up to `threads` pieces at once; a piece's batches
    are worked on by any thread while the piece is read on. At most two batches a thread wait.
    """

    def __init__(self, pieces: Iterable[Iterator[Batch]], threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rankmill")
        # What runs -> the number of its piece and of its batch, and the piece if it is read.
        self._running: dict[Future[Any], tuple[int, int, Iterator[Batch] | None]] = {}
        self._waiting = deque(enumerate(pieces))
        for index, piece in itertools.islice(self._waiting, threads):
            self._read(index, 0, piece)
        self._waiting = deque(itertools.islice(self._waiting, threads, None))

    def _read(self, index: int, number: int, piece: Iterator[Batch]) -> None:
        self._running[self._pool.submit(next, piece, END)] = (index, number, piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(self, work: Callable[[Batch], Value]) -> Iterator[Value]:
        """Yield work(batch) for each batch, in the order of pieces and of their batches.

        Of several errors the first in that order is raised, whichever thread came first.
        """
        parked: deque[tuple[int, int, Iterator[Batch]]] = deque()
        results: dict[tuple[int, int], Value] = {}
        lengths: dict[int, int] = {}
        failure: tuple[tuple[int, int], Exception] | None = None
        turn = (0, 0)
        while self._running or parked:
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                index, number, piece = self._running.pop(future)
                ended = False
                try:
                    value = future.result()
                except Exception as error:
                    if failure is None or (index, number) < failure[0]:
                        failure = ((index, number), error)
                    ended = piece is not None
                else:
                    if piece is None:
                        results[index, number] = value
                    elif value is END:
                        lengths[index] = number
                        ended = True
                    else:
                        self._running[self._pool.submit(work, value)] = (index, number, None)
                        parked.append((index, number + 1, piece))
                if ended and self._waiting:
                    following, unread = self._waiting.popleft()
                    parked.append((following, 0, unread))
            for _ in range(len(parked)):
                index, number, piece = parked.popleft()
                # Results that wait for their turn are bounded; the piece whose turn it is goes on.
                crowded = len(results) > 8 * self._threads and index != turn[0]
                if crowded or len(self._running) > 2 * self._threads:
                    parked.append((index, number, piece))
                elif failure is None or (index, number) < failure[0]:
                    self._read(index, number, piece)
            while turn in results or lengths.get(turn[0]) == turn[1]:
                if turn in results:
                    yield results.pop(turn)
                    turn = (turn[0], turn[1] + 1)
                else:
                    turn = (turn[0] + 1, 0)
        if failure is not None:
            raise failure[1]


def map_blocks(work: Callable[[int, int], Value], count: int, threads: int) -> list[Value]:
    """work(start, end) for blocks of 0 .. count, on threads, in order."""
    size = max(1, min(1 << 15, math.ceil(count / threads)))
    blocks = [(start, min(count, start + size)) for start in range(0, count, size)]
    if len(blocks) <= 1 or threads == 1:
        return [work(*block) for block in blocks]
    with ThreadPoolExecutor(threads, thread_name_prefix="rankmill") as pool:
        return list(pool.map(lambda block: work(*block), blocks))
