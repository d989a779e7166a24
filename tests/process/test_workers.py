"""The pool of a job: errors in order, bounded waiting, and no leftovers after any failure."""

import gc
import inspect
import itertools
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.errors import UsageError
from rankmill.threads import Workers
from strategies import some

METRICS = ["map@3", "gap"]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_an_error_is_raised_however_many_results_wait_behind_it(threads: int) -> None:
    """An earlier version delayed pieces for ever if more than 8 a thread were waiting."""
    others_done = threading.Event()

    def fails() -> Iterator[int]:
        if threads > 1:
            others_done.wait(5)
        yield 0
        raise ValueError("the first piece")

    def small(number: int) -> Iterator[int]:
        if number == 3 * threads:
            others_done.set()
        yield number

    with Workers(threads) as workers:
        found: list[int] = []
        with pytest.raises(ValueError, match="the first piece"):
            found.extend(workers.read([fails(), *map(small, range(1, 100))], lambda one: one))


def test_results_that_wait_for_their_turn_are_bounded() -> None:
    taken: list[int] = []
    go_on = threading.Event()

    def slow() -> Iterator[int]:
        go_on.wait(30)
        yield 0

    def small(number: int) -> Iterator[int]:
        taken.append(number)
        if number == 20:
            go_on.set()
        yield number

    threading.Timer(0.3, go_on.set).start()  # not all 300 are read before the first
    with Workers(2) as workers:
        results = workers.read([slow(), *map(small, range(1, 300))], lambda one: one)
        assert next(results) == 0
        assert max(taken) < 40
        assert list(results) == list(range(1, 300))


@pytest.mark.parametrize("threads", [1, 3])
def test_map_keeps_the_order_and_raises_the_first_error(threads: int) -> None:
    def items() -> Iterator[int]:
        yield from range(20)
        raise KeyError("items")

    def work(item: int) -> int:
        if item == 17:
            raise ValueError("work")
        return item

    with Workers(threads) as workers:
        assert list(workers.map(lambda item: item, range(50))) == list(range(50))
        for bad, error in ((work, ValueError), (lambda item: item, KeyError)):
            found: list[int] = []
            with pytest.raises(error):
                found.extend(workers.map(bad, items()))
            assert found == list(range(17 if error is ValueError else 20))


def test_closing_waits_for_work_and_closes_pieces() -> None:
    closed = []

    def piece(number: int) -> Iterator[int]:
        try:
            yield from range(1000)
        finally:
            closed.append(number)

    def work(item: int) -> int:
        worked.append(item)
        return item

    worked: list[int] = []
    pieces = [piece(number) for number in range(3)]
    with Workers(2) as workers:
        results = workers.read(pieces, work)
        next(results)
        results.close()
        count = len(worked)
        assert sorted(closed) == [0, 1], "no more are begun than there are threads"
        assert inspect.getgeneratorstate(pieces[2]) == inspect.GEN_CLOSED
        assert list(workers.map(lambda one: one, [1])) == [1], "the pool still works"
        assert len(worked) == count, "nothing runs on"


def test_results_are_let_go_of_where_an_error_waits_among_them() -> None:
    class Value:
        pass

    made: list[weakref.ref[Value]] = []

    def work(item: int) -> Value:
        value = Value()
        made.append(weakref.ref(value))
        return value

    def items() -> Iterator[int]:
        yield from range(3)
        raise KeyError("items")

    gc.collect()
    gc.disable()
    try:
        with Workers(2) as workers:
            results = workers.map(work, items())
            next(results)
            results.close()
        del results
        assert [one() for one in made] == [None] * len(made)
    finally:
        gc.enable()


def test_one_piece_of_work_is_done_by_the_thread_that_asks() -> None:
    def named(_: int) -> str:
        return threading.current_thread().name

    def fails() -> Iterator[int]:
        yield 0
        raise ValueError("behind the first batch")

    here, before = threading.current_thread().name, threading.active_count()
    with Workers(4) as workers:
        assert list(workers.map(named, [1])) == list(workers.read([iter([1])], named)) == [here]
        assert list(workers.map(named, [])) == list(workers.read([iter([])], named)) == []
        assert threading.active_count() == before
        for results in (workers.map(named, fails()), workers.read([fails()], named)):
            assert next(results).startswith("rankmill")
            with pytest.raises(ValueError, match="behind the first batch"):
                next(results)
        assert here not in list(workers.read([iter([1, 2])], named))


def interrupted(after: int, call: Callable[[], object]) -> bool:
    """Call under a KeyboardInterrupt after so many instructions; tell whether it came."""
    left = after

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal left
        frame.f_trace_opcodes = True
        left -= event == "opcode"
        if not left:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return left <= 0


def hung(*_: object) -> None:
    raise TimeoutError("a thread waits for what nobody does")


@pytest.mark.rows(1)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers (Unix)")
# Python ignores an interrupt while it finalises a thread of its own.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("first", some(range(1, 98, 6), 8))
@pytest.mark.long
def test_a_pool_survives_an_interrupt_at_any_instruction(first: int) -> None:
    """Ctrl-C inside a Future or Thread.start left a lock taken, for which a worker then waited."""

    def batches(*numbers: int) -> Iterator[int]:
        yield from numbers

    def job() -> None:
        with Workers(2) as workers:
            pieces = [batches(0, 1, 2), batches(3, 4)]
            assert list(workers.read(pieces, str)) == list("01234")
            assert list(workers.map(str, range(4))) == list("0123")

    job()
    threads = threading.active_count()
    handler = signal.signal(signal.SIGALRM, hung)
    signal.setitimer(signal.ITIMER_REAL, 60, 1)
    try:
        for after in itertools.count(first, 97):
            if not interrupted(after, job):
                break
            gc.collect()
            while threading.active_count() > threads:
                time.sleep(0.001)
        assert after > 2000
        job()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)


def test_the_number_of_threads_is_checked() -> None:
    with pytest.raises(UsageError, match="threads is 0"):
        Workers(0)


# ------------------------------------------------------------------ what failures leave behind


def wide(queries: Any, scores: Any = None) -> pa.Table:
    columns = {"query_id": queries, "items": [[1, 2]] * len(queries)}
    if scores is not None:
        columns["score"] = scores
    return pa.table(columns)


def long(queries: Any, scores: Any) -> pa.Table:
    return pa.table({"query_id": queries, "item_id": range(len(queries)), "score": scores})


SCATTERED = [1, 2, 1, 2, 3, 3, 1, 4, 9]
FAILURES: dict[str, tuple[pa.Table, pa.Table, int]] = {
    "bad labels, long predictions": (wide([1, None]), long(SCATTERED, [0.5] * 9), 1 << 30),
    "bad wide predictions": (wide([1, 2]), wide([1, None], [[0.5, 0.5]] * 2), 1 << 30),
    "repeated wide predictions": (wide([1, 2]), wide([7, 1], [[0.5, 0.5]] * 2), 1 << 30),
    "bad long rows": (wide([1, 2]), long(SCATTERED, [0.5] * 8 + [np.nan]), 1 << 30),
    "bad scattered rows on disk": (wide([1, 2]), long(SCATTERED, [0.5] * 8 + [np.nan]), 1),
}


# Any folder may be called rankmill: that of the checkout, and so of all that is installed in it.
OURS = str(Path(rankmill.__file__).parent)


def suspended() -> list[Any]:
    """Return the generators of this package that have started and not ended."""
    return [
        one
        for one in gc.get_objects()
        if type(one).__name__ == "generator"
        and one.gi_frame is not None
        and one.gi_code.co_filename.startswith(OURS)
    ]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run a test without the garbage collector; no object may be left when it ends."""
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(spill))
    rankmill.evaluate(wide([1]), wide([1], [[0.5, 0.5]]), METRICS)  # loads what is loaded only once
    gc.collect()
    before = threading.active_count(), descriptors()
    gc.disable()
    try:
        yield tmp_path
        assert suspended() == []
        assert (threading.active_count(), descriptors()) == before
        assert list(spill.iterdir()) == []
    finally:
        gc.enable()


def written(folder: Path, name: str, table: pa.Table, files: int) -> str:
    root = folder / name
    root.mkdir()
    for number in range(files):
        pq.write_table(table, root / f"{number:02}.parquet", row_group_size=3)
    return str(root)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc (Linux)")
@pytest.mark.parametrize("kind", some(FAILURES, 2))
def test_no_failure_leaves_anything_behind(kind: str, leaves_nothing: Path) -> None:
    labels, predictions, memory = FAILURES[kind]
    paths = written(leaves_nothing, "l", labels, 1), written(leaves_nothing, "p", predictions, 12)
    for _ in range(3):
        with pytest.raises(rankmill.InputError):
            rankmill.evaluate(*paths, METRICS, threads=2, memory=memory)
        with pytest.raises(rankmill.InputError):
            rankmill.evaluate_runs(paths[0], {"a": paths[1], "b": paths[1]}, METRICS)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc (Linux)")
@pytest.mark.parametrize(
    ("shape", "memory"), some([(wide, 1 << 30), (long, 1 << 30), (wide, 1), (long, 1)], 3)
)
def test_no_interrupt_leaves_anything_behind(
    shape: Callable[..., pa.Table], memory: int, leaves_nothing: Path
) -> None:
    def interrupted(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    queries = range(40)
    scores = [[0.5, 0.4]] * 40 if shape is wide else [0.5] * 40
    labels = written(leaves_nothing, "l", wide(queries), 1)
    predictions = written(leaves_nothing, "p", shape(queries, scores), 1)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            rankmill.evaluate(labels, predictions, METRICS, progress=interrupted, memory=memory)
