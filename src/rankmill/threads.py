"""The threads of a job: one pool with one owner, and results in the order of the input."""

import contextlib
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from rankmill.errors import positive

Item = TypeVar("Item")
Value = TypeVar("Value")

END = object()
# More threads than that gain nothing on any machine.
MOST_THREADS = 1024


def available_cpus() -> int:
    """The number of CPUs this process may use: its affinity, capped by its cgroup's quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cpus = min(cpus, math.ceil(int(quota) / int(period)))
    return max(1, cpus)


def thread_count(threads: int | None) -> int:
    """The threads asked for, if not absurdly many, else the CPUs there are.

    Raises UsageError if the number is not positive.
    """
    if threads is None:
        return available_cpus()
    return min(positive(threads, "threads"), MOST_THREADS)


class Workers:
    """The pool of threads of a job. Whoever makes it ends it, with a `with` block.

    Its generators run in the thread that takes their values: that thread closes them, on every way
    out. Closing waits for the work under way, so that nothing runs on when an error is raised.

    Parameters
    ----------
    threads : int, optional
        By default the CPUs there are; a UsageError is raised if it is not positive.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = thread_count(threads)
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="rankmill")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item]
    ) -> Generator[Value, None, None]:
        """Yield work(item) for each item, in their order; items are taken a few ahead.

        Of several errors the first in that order is raised, whichever thread came first.
        """
        source = iter(items)
        results: deque[Future[Value]] = deque()
        more = True
        try:
            while more or results:
                while more and len(results) <= 2 * self.threads:
                    more = self._take_item(source, work, results)
                if results:
                    yield results.popleft().result()
        finally:
            _end(results)
            results.clear()  # an error among them holds the frame that put it there
            _close(source)

    def _take_item(
        self,
        source: Iterator[Item],
        work: Callable[[Item], Value],
        results: deque[Future[Value]],
    ) -> bool:
        """Have the next item worked on; whether there may be another one."""
        try:
            item = next(source, END)
        except Exception as error:  # raised when its turn comes
            results.append(Future())
            results[-1].set_exception(error)
            return False
        if item is not END:
            results.append(self._pool.submit(work, item))  # type: ignore[arg-type]
        return item is not END

    def read(
        self, pieces: Iterable[Iterator[Item]], work: Callable[[Item], Value]
    ) -> Generator[Value, None, None]:
        """Yield work(batch) for each batch of all pieces, in their order.

        A piece is read by one thread at a time, several pieces at once. The thread that reads a
        batch works on it, while it is in the cache; where fewer pieces are left than threads, the
        others work on the batches of a piece while it is read on. Of several errors the first in
        the order of batches is raised, whichever thread came first.
        """
        unread = deque(pieces)
        begun: deque[_Piece[Item, Value]] = deque()
        try:
            while unread or begun:
                self._read_on(begun, unread, work)
                first = begun[0]
                if first.results and first.results[0].done():
                    yield first.results.popleft().result()
                elif first.ended and not first.results:
                    begun.popleft()
                else:
                    _wait_for_any(begun)
        finally:
            _end(one for piece in begun for one in piece.futures())
            for batches in (*(piece.batches for piece in begun), *unread):
                _close(batches)

    def _read_on(
        self,
        begun: "deque[_Piece[Item, Value]]",
        unread: deque[Iterator[Item]],
        work: Callable[[Item], Value],
    ) -> None:
        """Take what was read; go on with pieces, and begin others, as far as there is room."""
        for piece in begun:
            self._take_step(piece, work)
        most = 8 * self.threads
        waiting = sum(len(piece.results) for piece in begun)
        reading = [piece for piece in begun if not piece.ended]
        # Twice the threads: none of them waits until this thread comes to give it more.
        while unread and len(reading) < 2 * self.threads and max(waiting, len(begun)) < most:
            begun.append(_Piece(unread.popleft()))
            reading.append(begun[-1])
        for piece in reading:
            # The first piece goes on whatever waits behind it: its results are taken next.
            ahead = piece is begun[0] and len(piece.results) <= self.threads
            if piece.step is None and (ahead or waiting < most):
                piece.alone = len(reading) < self.threads
                step = _read if piece.alone else _read_and_work
                piece.step = self._pool.submit(step, piece.batches, work)

    def _take_step(self, piece: "_Piece[Item, Value]", work: Callable[[Item], Value]) -> None:
        """Take what the last step of a piece came to, if it is done."""
        if piece.step is None or not piece.step.done():
            return
        step, piece.step = piece.step, None
        failed = step.exception() is not None
        piece.ended = failed or step.result() is END
        if piece.alone and not piece.ended:
            piece.results.append(self._pool.submit(work, step.result()))
        elif failed or not piece.ended:
            piece.results.append(step)


class _Piece(Generic[Item, Value]):
    """A piece that is being read: its batches, and what came of them so far.

    `step` reads the next batch and, unless the piece is read `alone`, works on it.
    """

    def __init__(self, batches: Iterator[Item]) -> None:
        self.batches = batches
        self.results: deque[Future[Value]] = deque()
        self.step: Future[Any] | None = None
        self.alone = False
        self.ended = False

    def futures(self) -> list[Future[Any]]:
        """All that is under way or done, and not taken yet."""
        return [*self.results, *([] if self.step is None else [self.step])]


def _read(batches: Iterator[Item], work: object) -> Any:
    return next(batches, END)


def _read_and_work(batches: Iterator[Item], work: Callable[[Item], Value]) -> Any:
    batch = next(batches, END)
    return END if batch is END else work(batch)  # type: ignore[arg-type]


def _wait_for_any(begun: "deque[_Piece[Any, Any]]") -> None:
    """Wait until a step is done, or the result whose turn it is.

    A function of its own, as all that holds a future: the frames that an error passes must not
    hold the future it came from, or neither would be freed.
    """
    steps = [piece.step for piece in begun if piece.step is not None]
    wait([*steps, *itertools.islice(begun[0].results, 1)], return_when=FIRST_COMPLETED)


def _end(futures: Iterable[Future[Any]]) -> None:
    """Cancel what has not begun, and wait for the rest."""
    wait([future for future in list(futures) if not future.cancel()])


def _close(batches: Iterator[Any]) -> None:
    """Close what is read from, if it is a generator: it may hold files open."""
    if isinstance(batches, Generator):
        with contextlib.suppress(ValueError):  # Ctrl-C came before the step that runs it was noted
            batches.close()


def map_blocks(work: Callable[[int, int], Value], count: int, threads: int) -> list[Value]:
    """work(start, end) for blocks of 0 .. count, on threads of their own, in order."""
    size = max(1, min(1 << 15, math.ceil(count / threads)))
    blocks = [(start, min(count, start + size)) for start in range(0, count, size)]
    if len(blocks) <= 1 or threads == 1:
        return [work(*block) for block in blocks]
    with Workers(threads) as workers:
        return list(workers.map(lambda block: work(*block), blocks))
