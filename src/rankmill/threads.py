"""The pool of threads of a job, which has one owner and yields results in the order of input.

Ctrl-C can raise KeyboardInterrupt between any two instructions of the main thread. In the middle of
Thread.start or of a method of a Future or Condition, that leaves a lock taken, and others wait for
it for ever. So the owner waits for nothing but a SimpleQueue, each call of which is atomic.
"""

import _thread
import contextlib
import itertools
import math
import os
import weakref
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from functools import cache, cached_property, partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Self, TypeAlias, TypeVar

from rankmill.errors import positive

Item = TypeVar("Item")
Value = TypeVar("Value")

Queue: TypeAlias = SimpleQueue[Any]

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


class Task(Generic[Value]):
    """A call that a thread of a pool makes; its value, or its error, once it is done.

    Each task puts a mark into `marks` when it is done. One thread only waits for the tasks that
    share them.
    """

    def __init__(self, call: Callable[[], Value], marks: Queue | None = None) -> None:
        self._call = [call]
        self._marks = marks or SimpleQueue()
        self.value: Any = None
        self.errors: list[BaseException] = []
        self.running = self.cancelled = self.done = False

    def run(self, caught: type[BaseException] = BaseException) -> None:
        """Make the call, unless it is cancelled."""
        # `_end` sets `cancelled` before it looks at `running`, so one of the two sees the other.
        self.running = True
        try:
            if not self.cancelled:
                self.value = self._call.pop()()
        except caught as error:
            self.errors.append(error)
        self.done = True
        self._marks.put(None)

    def wait(self) -> None:
        """Wait until the call is done."""
        while not self.done:
            self._marks.get()

    def result(self) -> Value:
        """Wait; return the value, or raise the error, which can be done once."""
        self.wait()
        if self.errors:
            raise self.errors.pop()  # an error refers to this frame: break the cycle
        return self.value  # type: ignore[no-any-return]


def apart(call: Callable[[], Value]) -> Value:
    """Return the result of a call that no signal may interrupt, which another thread makes."""
    task = Task(call)
    _thread.start_new_thread(task.run, ())
    return task.result()


class Workers:
    """The pool of threads of a job. The caller that creates it ends it, with a `with` block.

    The generators of `map` and `read` run in the thread that consumes them, and that thread must
    close them even if an error is raised. Closing waits for the running work, so no work continues
    after an error.

    The number of threads is by default that of the CPUs. `waiting` is how many results may wait for
    those before them, for each thread.
    """

    def __init__(self, threads: int | None = None, waiting: int = 8) -> None:
        self._tasks: Queue = SimpleQueue()
        self._waiting = waiting
        if threads is not None:
            self.threads = thread_count(threads)
        self._pool: list[Thread] = []
        # An interrupt can come before the first line of __exit__. The threads end also when this
        # object is gone; a method __del__ could be interrupted too, and Python would ignore that.
        self._gone = weakref.ref(self, self._tasks.put)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._tasks.put(None)
        for thread in self._pool:
            if thread.is_alive():
                thread.join()
        # Here, as Python ignores an interrupt that comes while a thread is freed.
        self._pool.clear()

    @cached_property
    def threads(self) -> int:
        """The number of threads. CPUs are counted when there is work for more than one."""
        return available_cpus()

    def begin(self, task: Task[Any]) -> None:
        """Let a thread run a task. The caller has stored it, as an interrupt may follow at once."""
        if not self._pool:
            # NumPy imports numpy.ma when pyarrow or numba ask it for that, and recurses without end
            # if another thread has begun to.
            import numpy.ma  # noqa: F401

            apart(partial(_add_thread, self._tasks, self._pool, self.threads))
        self._tasks.put(task)

    def map(
        self, work: Callable[[Item], Value], items: Iterable[Item]
    ) -> Generator[Value, None, None]:
        """Yield work(item) for each item, in the order of the items.

        A few items are taken in advance. If several items fail, the error of the first of them in
        this order is raised, even if another thread failed earlier.
        """
        return self.read([iter(items)], work, here=True)

    def read(
        self,
        pieces: Iterable[Iterator[Item]],
        work: Callable[[Item], Value],
        *,
        here: bool = False,
    ) -> Generator[Value, None, None]:
        """Yield work(batch) for each batch of all pieces, in the order of the batches.

        Several pieces are read at once, each by one thread at a time. The thread that reads a batch
        also works on it, because the batch is then still in the CPU cache. If fewer pieces than
        threads are left, one thread only reads a piece, and other threads work on its batches. If
        several batches fail, the error of the first of them in this order is raised. The thread
        that asks reads a single piece itself if it is to be read `here`.
        """
        unread = deque(pieces)
        marks: Queue = SimpleQueue()
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
                self._read_on(begun, unread, work, marks, here)
                first = begun[0]
                if first.results and first.results[0].done:
                    yield first.results.popleft().result()
                elif first.ended and not first.results:
                    begun.popleft()
                else:
                    marks.get()  # of a step, or of the result that is yielded next
        finally:
            tasks = [one for piece in begun for one in (*piece.results, piece.step)]
            _end([one for one in tasks if one is not None])
            for one in (*(piece.batches for piece in begun), *unread, *lone):
                _close(one)

    def _read_on(
        self,
        begun: "deque[_Piece[Item, Value]]",
        unread: deque[Iterator[Item]],
        work: Callable[[Item], Value],
        marks: Queue,
        here: bool,
    ) -> None:
        """Collect the finished steps, begin more pieces and the next step of each piece.

        The number of waiting results limits how far the pool reads ahead.
        """
        for piece in begun:
            self._take_step(piece, work, marks)
        most = (2 if here else self._waiting) * self.threads
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
                piece.alone = here or len(reading) < self.threads
                step = Task(
                    partial(next, piece.batches, END)
                    if piece.alone
                    else partial(_read_and_work, piece.batches, work),
                    marks,
                )
                if here:
                    step.run(Exception)
                piece.step = step  # behind that, as an interrupted one would be waited for
                if not here:
                    self.begin(step)

    def _take_step(
        self, piece: "_Piece[Item, Value]", work: Callable[[Item], Value], marks: Queue
    ) -> None:
        """Collect the result of the last step of a piece, if the step is done."""
        if piece.step is None or not piece.step.done:
            return
        step, piece.step = piece.step, None
        failed = bool(step.errors)
        piece.ended = failed or step.value is END
        if piece.alone and not piece.ended:
            piece.results.append(Task(partial(work, step.value), marks))
            self.begin(piece.results[-1])
        elif failed or not piece.ended:
            piece.results.append(step)


class _Piece(Generic[Item, Value]):
    """A piece that is being read: its batches and the results so far.

    `step` reads the next batch. It also works on the batch, unless `alone` says that a step only
    reads.
    """

    def __init__(self, batches: Iterator[Item]) -> None:
        self.batches = batches
        self.results: deque[Task[Value]] = deque()
        self.step: Task[Any] | None = None
        self.alone = False
        self.ended = False


def _add_thread(tasks: Queue, pool: list[Thread], most: int) -> None:
    """Start one more thread of a pool."""
    pool.append(
        Thread(
            target=_run_tasks,
            args=(tasks, pool, most),
            name=f"rankmill_{len(pool)}",
            daemon=True,
        )
    )
    pool[-1].start()


def _run_tasks(tasks: Queue, pool: list[Thread], most: int) -> None:
    """Run tasks until something else comes, which is passed on to the other threads of the pool.

    The last thread of the pool adds another when it gets its first task, so one is idle.
    """
    number = len(pool)
    while isinstance(task := tasks.get(), Task):
        if len(pool) == number < most:
            with contextlib.suppress(Exception):  # fewer threads do the same work
                _add_thread(tasks, pool, most)
        task.run()
        del task  # its value may be large
    tasks.put(task)


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


def _read_and_work(batches: Iterator[Item], work: Callable[[Item], Value]) -> Any:
    batch = next(batches, END)
    return END if batch is END else work(batch)  # type: ignore[arg-type]


def _end(tasks: Collection[Task[Any]]) -> None:
    """Cancel the tasks that have not begun, and wait for the others."""
    for task in tasks:
        task.cancelled = True
    for task in tasks:
        if task.running:
            task.wait()
        task.errors.clear()  # an error refers to the task: break the cycle


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
