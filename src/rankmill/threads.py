"""The pool of threads of a job, which has one owner and yields results in the order of input."""

import contextlib
import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import cache, cached_property
from pathlib import Path
from threading import Event
from typing import Any, Generic, Self, TypeVar

from rankmill.errors import positive

Item = TypeVar("Item")
Value = TypeVar("Value")

END = object()
# No machine gains from more threads than this.
MOST_THREADS = 1024


def available_cpus() -> int:
    """The number of CPUs that this process may use, by its CPU affinity and its cgroup's quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cpus, _quota()))


@cache
def _quota() -> int:
    """The number of CPUs that the quota allows; to read its file takes as long as 50,000 items."""
    with contextlib.suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            return math.ceil(int(quota) / int(period))
    return MOST_THREADS


def thread_count(threads: int | None) -> int:
    """The requested number of threads, at most MOST_THREADS; by default the number of CPUs.

    Raises UsageError if the number is not positive.
    """
    if threads is None:
        return available_cpus()
    return min(positive(threads, "threads"), MOST_THREADS)


class Workers:
    """The pool of threads of a job. The caller that creates it ends it, with a `with` block.

    The generators of `map` and `read` run in the thread that consumes them, and that thread must
    close them even if an error is raised. Closing waits for the running work, so no work continues
    after an error.

    The number of threads is by default that of the CPUs. `waiting` is how many results may wait for
    those before them, for each thread.
    """

    def __init__(self, threads: int | None = None, waiting: int = 8) -> None:
        self._waiting = waiting
        if threads is not None:
            self.threads = thread_count(threads)
        self._begun: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._begun is not None:
            self._begun.shutdown(cancel_futures=True)

    @cached_property
    def threads(self) -> int:
        """The number of threads. CPUs are counted when there is work for more than one."""
        return available_cpus()

    @property
    def _pool(self) -> ThreadPoolExecutor:
        """The threads, which are begun when there is work for more than the calling one."""
        if self._begun is None:
            # NumPy imports numpy.ma when pyarrow or numba ask it for that, and recurses without end
            # if another thread has begun to.
            import numpy.ma  # noqa: F401

            self._begun = ThreadPoolExecutor(self.threads, thread_name_prefix="rankmill")
        return self._begun

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item]
    ) -> Generator[Value, None, None]:
        """Yield work(item) for each item, in the order of the items.

        A few items are taken in advance. If several items fail, the error of the first of them in
        this order is raised, even if another thread failed earlier.
        """
        source = iter(items)
        results: deque[Future[Value]] = deque()
        more = True
        try:
            first, rest = _begin(source)
            if rest is None:
                yield from map(work, first)
                return
            items = itertools.chain(first, rest)
            while more or results:
                while more and len(results) <= 2 * self.threads:
                    more = self._take_item(items, work, results)
                if results:
                    yield results.popleft().result()
        finally:
            _end(results)
            results.clear()  # an error in a result refers to this frame: break the cycle
            _close(source)

    def _take_item(
        self,
        source: Iterator[Item],
        work: Callable[[Item], Value],
        results: deque[Future[Value]],
    ) -> bool:
        """Submit the next item to the pool; return whether the source may have more items."""
        try:
            item = next(source, END)
        except Exception as error:  # it is raised after the results of the earlier items
            results.append(Future())
            results[-1].set_exception(error)
            return False
        if item is not END:
            results.append(self._pool.submit(work, item))  # type: ignore[arg-type]
        return item is not END

    def read(
        self, pieces: Iterable[Iterator[Item]], work: Callable[[Item], Value]
    ) -> Generator[Value, None, None]:
        """Yield work(batch) for each batch of all pieces, in the order of the batches.

        Several pieces are read at once, each by one thread at a time. The thread that reads a batch
        also works on it, because the batch is then still in the CPU cache. If fewer pieces than
        threads are left, one thread only reads a piece, and other threads work on its batches. If
        several batches fail, the error of the first of them in this order is raised.
        """
        unread = deque(pieces)
        begun: deque[_Piece[Item, Value]] = deque()
        lone = list(unread) if len(unread) == 1 else []
        try:
            if lone:
                batches, rest = _begin(lone[0])
                if rest is None:
                    yield from map(work, batches)
                    return
                unread[0] = itertools.chain(batches, rest)
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
            for one in (*(piece.batches for piece in begun), *unread, *lone):
                _close(one)

    @contextlib.contextmanager
    def ahead(
        self, pieces: Sequence[Iterator[Item]], size: Callable[[Item], int], most: int
    ) -> Iterator[list[Iterator[Item]]]:
        """Give pieces for `read`, of which a thread begins to read the first at once.

        It reads until the first batch is asked for, or until those read have `most` bytes, by the
        `size` of each. An error is raised behind the batches before it. The pieces are closed at
        the end of the `with` block.
        """
        first, *others = pieces
        ready: deque[Item] = deque()
        errors: list[BaseException] = []
        asked = Event()

        def read() -> None:
            room = most
            try:
                while room > 0 and not asked.is_set():
                    batch = next(first, END)
                    if batch is END:
                        break
                    ready.append(batch)  # type: ignore[arg-type]
                    room -= size(ready[-1])
            except BaseException as error:  # else what follows would be missing without a word
                errors.append(error)

        reading = self._pool.submit(read)
        try:
            yield [_after(reading, asked, ready, errors, first), *others]
        finally:
            asked.set()
            _end([reading])
            for piece in pieces:
                _close(piece)

    def _read_on(
        self,
        begun: "deque[_Piece[Item, Value]]",
        unread: deque[Iterator[Item]],
        work: Callable[[Item], Value],
    ) -> None:
        """Collect the finished steps, begin more pieces and submit the next step of each piece.

        The number of waiting results limits how far the pool reads ahead.
        """
        for piece in begun:
            self._take_step(piece, work)
        most = self._waiting * self.threads
        waiting = sum(len(piece.results) for piece in begun)
        reading = [piece for piece in begun if not piece.ended]
        # More pieces than threads would save no wait that can be measured, and take more memory.
        while unread and len(reading) < self.threads and max(waiting, len(begun)) < most:
            begun.append(_Piece(unread.popleft()))
            reading.append(begun[-1])
        for piece in reading:
            # The first piece is always read on, because its results are yielded next.
            ahead = piece is begun[0] and len(piece.results) <= self.threads
            if piece.step is None and (ahead or waiting < most):
                piece.alone = len(reading) < self.threads
                step = _read if piece.alone else _read_and_work
                piece.step = self._pool.submit(step, piece.batches, work)

    def _take_step(self, piece: "_Piece[Item, Value]", work: Callable[[Item], Value]) -> None:
        """Collect the result of the last step of a piece, if the step is done."""
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
    """A piece that is being read: its batches and the results so far.

    `step` reads the next batch. It also works on the batch, unless `alone` says that a step only
    reads.
    """

    def __init__(self, batches: Iterator[Item]) -> None:
        self.batches = batches
        self.results: deque[Future[Value]] = deque()
        self.step: Future[Any] | None = None
        self.alone = False
        self.ended = False

    def futures(self) -> list[Future[Any]]:
        """All futures of this piece that are running, or done but not yet yielded."""
        return [*self.results, *([] if self.step is None else [self.step])]


def _after(
    reading: "Future[None]",
    asked: Event,
    ready: "deque[Item]",
    errors: list[BaseException],
    rest: Iterator[Item],
) -> Iterator[Item]:
    """Yield what was read ahead, then the rest of the piece."""
    asked.set()
    reading.cancel()
    while not reading.done():
        if ready:
            yield ready.popleft()
        else:  # it reads one more batch at most
            wait([reading])
    while ready:
        yield ready.popleft()
    if errors:
        raise errors.pop()
    yield from rest


def _begin(source: Iterator[Item]) -> tuple[list[Item], Iterator[Item] | None]:
    """Return the first items of a source, and what follows two of them, or None behind one.

    One item alone is worked on by the thread that asks: a small input needs no other.
    """
    first: list[Item] = []
    try:
        first += itertools.islice(source, 1)
        first += itertools.islice(source, 1)
    except Exception as error:  # it is raised after the results of the first item
        return first, _failing([error])
    return first, source if len(first) == 2 else None


def _failing(errors: list[Exception]) -> Iterator[Any]:
    raise errors.pop()  # an error refers to this frame, which must not refer to the error
    yield


def _read(batches: Iterator[Item], work: object) -> Any:
    return next(batches, END)


def _read_and_work(batches: Iterator[Item], work: Callable[[Item], Value]) -> Any:
    batch = next(batches, END)
    return END if batch is END else work(batch)  # type: ignore[arg-type]


def _wait_for_any(begun: "deque[_Piece[Any, Any]]") -> None:
    """Wait until any step is done, or the result that is yielded next.

    This is a separate function because it holds futures in local variables. An error refers to the
    frames that it passes through; if such a frame held the future of the error, neither would be
    freed.
    """
    steps = [piece.step for piece in begun if piece.step is not None]
    wait([*steps, *itertools.islice(begun[0].results, 1)], return_when=FIRST_COMPLETED)


def _end(futures: Iterable[Future[Any]]) -> None:
    """Cancel the futures that have not begun, and wait for the others."""
    running = [future for future in list(futures) if not future.cancel()]
    if running:
        wait(running)


def _close(batches: Iterator[Any]) -> None:
    """Close the iterator of batches if it is a generator, because it may hold open files."""
    if isinstance(batches, Generator):
        with contextlib.suppress(ValueError):  # after Ctrl-C a thread may still be running it
            batches.close()


def map_blocks(work: Callable[[int, int], Value], count: int, threads: int) -> list[Value]:
    """Return work(start, end) of blocks that cover 0 to count, in order, from a pool of its own."""
    size = max(1, min(1 << 15, math.ceil(count / threads)))
    blocks = [(start, min(count, start + size)) for start in range(0, count, size)]
    if len(blocks) <= 1 or threads == 1:
        return [work(*block) for block in blocks]
    with Workers(threads) as workers:
        return list(workers.map(lambda block: work(*block), blocks))
