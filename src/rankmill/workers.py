"""Running work on a bounded number of threads, with results in the order of the input."""

import contextlib
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

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


def map_batches(
    pieces: Iterable[Iterator[Batch]], work: Callable[[Batch], Value], threads: int
) -> Iterator[Value]:
    """Yield work(batch) for each batch of each piece, in order, reading and working in parallel.

    A piece is read by one thread at a time, and up to `threads` pieces at once; a piece's batches
    are worked on by any thread while the piece is read on. At most two batches a thread wait.
    Of several errors the first in order is raised, whichever thread came upon its own first.
    """
    waiting = deque(enumerate(pieces))
    running: dict[Future[Any], tuple[int, int, Iterator[Batch] | None]] = {}
    parked: deque[tuple[int, int, Iterator[Batch]]] = deque()
    results: dict[tuple[int, int], Value] = {}
    lengths: dict[int, int] = {}
    failure: tuple[tuple[int, int], BaseException] | None = None
    turn = (0, 0)
    reading = 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="rankmill")
    try:
        while waiting or running or parked:
            while waiting and reading < threads:
                index, piece = waiting.popleft()
                parked.append((index, 0, piece))
                reading += 1
            while parked and len(running) <= 2 * threads:
                index, number, piece = parked.popleft()
                if failure is None or (index, number) < failure[0]:
                    running[pool.submit(next, piece, END)] = (index, number, piece)
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                index, number, reader = running.pop(future)
                try:
                    value = future.result()
                except Exception as error:
                    if failure is None or (index, number) < failure[0]:
                        failure = ((index, number), error)
                        waiting = deque(one for one in waiting if one[0] < index)
                    reading -= reader is not None
                    continue
                if reader is None:
                    results[index, number] = value
                elif value is END:
                    lengths[index] = number
                    reading -= 1
                else:
                    running[pool.submit(work, value)] = (index, number, None)
                    parked.append((index, number + 1, reader))
            while turn in results or lengths.get(turn[0]) == turn[1]:
                if turn in results:
                    yield results.pop(turn)
                    turn = (turn[0], turn[1] + 1)
                else:
                    turn = (turn[0] + 1, 0)
        if failure is not None:
            raise failure[1]
    finally:
        pool.shutdown(cancel_futures=True)


def map_blocks(work: Callable[[int, int], Value], count: int, threads: int) -> list[Value]:
    """work(start, end) for blocks of 0 .. count, on threads, in order."""
    size = max(1, min(1 << 15, math.ceil(count / threads)))
    blocks = [(start, min(count, start + size)) for start in range(0, count, size)]
    if len(blocks) <= 1 or threads == 1:
        return [work(*block) for block in blocks]
    with ThreadPoolExecutor(threads, thread_name_prefix="rankmill") as pool:
        return list(pool.map(lambda block: work(*block), blocks))
