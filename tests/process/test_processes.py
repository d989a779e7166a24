"""The bits are the same in forked and spawned processes, in threads, on one CPU, in any batches."""

import multiprocessing
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from flat import flat
from portions import in_batches
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_counts import Among, GapCounter, gap_of_counts
from rankmill.threads import Workers

METRICS = ["map@3", "first_hit", "ndcg@5", "recall@2", "gap", "gap@1"]


def table(seed: int, queries: int, *, scores: bool) -> pa.Table:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, 9, queries)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    items = generator.integers(0, 40, lengths.sum())
    columns = {
        "query_id": generator.permutation(2 * queries)[:queries],
        "items": pa.ListArray.from_arrays(offsets, pa.array(items)),
    }
    if scores:
        drawn = generator.integers(0, 99, lengths.sum()).astype(np.float32)
        columns["score"] = pa.ListArray.from_arrays(offsets, pa.array(drawn))
    return pa.table(columns)


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("dump")
    paths = str(folder / "labels.parquet"), str(folder / "predictions.parquet")
    for path, seed in zip(paths, (1, 2), strict=True):
        pq.write_table(table(seed, 4000, scores=seed == 2), path, row_group_size=500)
    return paths


def score(paths: tuple[Any, Any], **options: Any) -> tuple[Any, ...]:
    result = flat(rankmill.evaluate, *paths, METRICS, **options)
    return result.metrics, result.standard_errors, result.bounds, result.audit


def in_child(paths: tuple[str, str], answers: Any) -> None:
    answers.put(score(paths))


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.long
def test_a_child_of_a_parent_that_has_evaluated(dump: tuple[str, str], method: Any) -> None:
    expected = score(dump)
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    children = [context.Process(target=in_child, args=(dump, answers)) for _ in range(2)]
    for child in children:
        child.start()
    found = [answers.get(timeout=60) for _ in children]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    assert found == [expected] * 2


def test_four_threads_at_once(dump: tuple[str, str]) -> None:
    expected = score(dump)
    barrier = threading.Barrier(4)

    def work(_: int) -> tuple[Any, ...]:
        barrier.wait(30)
        return score(dump)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [expected] * 4


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity (Linux)")
def test_one_cpu(dump: tuple[str, str]) -> None:
    code = (
        "import os, sys; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "import rankmill; from rankmill.threads import available_cpus\n"
        "assert available_cpus() == 1\n"
        "print(rankmill.evaluate(*sys.argv[1:], ['map@3'])['map@3'].hex())"
    )
    done = subprocess.run([sys.executable, "-c", code, *dump], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == rankmill.evaluate(*dump, ["map@3"])["map@3"].hex()


def test_rows_row_groups_threads_files_and_memory_do_not_change_a_bit(
    dump: tuple[str, str], tmp_path: Path
) -> None:
    expected = score(dump)
    for seed, (rows, threads, memory) in enumerate(
        [(40, 1, 1), (400, 3, 1), (1000, 2, 1 << 30), (5000, 4, 10_000)]
    ):
        paths = []
        for name, path in zip(("labels", "predictions"), dump, strict=True):
            whole = pq.read_table(path)
            order = np.random.default_rng(seed).permutation(whole.num_rows)
            folder = tmp_path / f"{name}-{seed}"
            folder.mkdir()
            paths.append(folder)
            for number, part in enumerate(np.array_split(order, 3)):
                taken = whole.take(pa.array(part))
                pq.write_table(taken, folder / f"{number}.parquet", row_group_size=max(50, rows))
        sides = [in_batches(path, rows, memory=memory) for path in paths]
        assert score((sides[0], sides[1]), threads=threads, memory=memory) == expected


def test_several_runs_are_scored_as_each_alone(dump: tuple[str, str], tmp_path: Path) -> None:
    other = tmp_path / "other.parquet"
    pq.write_table(table(3, 3000, scores=True), other)
    seen: list[tuple[int, int | None]] = []
    results = rankmill.evaluate_runs(
        dump[0], {"a": dump[1], "b": other}, METRICS, progress=lambda *at: seen.append(at)
    )
    for name, path in (("a", dump[1]), ("b", str(other))):
        alone = rankmill.evaluate(dump[0], path, METRICS)
        assert results[name].metrics == alone.metrics
        assert results[name].audit == alone.audit
        assert results[name].per_query == alone.per_query
    assert seen[-1] == (7000, 7000)
    assert seen == sorted(seen)


# ------------------------------------------------------------------ states and the reader


def test_mean_states_merge_exactly() -> None:
    generator = np.random.default_rng(0)
    values = np.concatenate([generator.random(500), [5e-324, 1e300, 0.0, 1 / 3]])
    whole = Mean.of(values)
    parts = [Mean.of(part) for part in np.array_split(generator.permutation(values), 7)]
    merged = Mean()
    for part in parts:
        merged = part.merge(merged)
    assert merged == whole
    assert Mean.of(np.repeat(values, 3)) == Mean.of(values, np.full(len(values), 3))
    assert Mean.from_row(whole.to_row()) == whole


def test_gap_states_merge_exactly() -> None:
    generator = np.random.default_rng(1)
    confidence = generator.integers(0, 300, 2000).astype(np.float32)
    right = generator.random(2000) < 0.2
    parts = np.array_split(generator.permutation(2000), 5)
    correct = Gap.of([])
    for part in parts:
        correct = correct.merge(Gap.of([confidence[part][right[part]]]))
    expected = Gap.of([confidence[right]])
    assert correct.correct.values.tolist() == expected.correct.values.tolist()
    assert correct.correct.counts.tolist() == expected.correct.counts.tolist()
    distinct = correct.correct
    among = Among(np.zeros(len(distinct.values), int), np.zeros(len(distinct.values), int))
    with Workers(2) as workers:
        for part in parts:
            counter = GapCounter(distinct, workers)
            counter.add(confidence[part])
            among = counter.finish().merge(among)
        value = gap_of_counts(distinct, among, 700, workers).expected
    assert value == rankmill.arrays.global_average_precision(confidence, right, 700)


def test_the_first_error_in_order_is_raised_whichever_thread_was_first() -> None:
    first_may_fail = threading.Event()

    def piece(number: int) -> Any:
        yield from ((number, step) for step in range(5))

    def work(batch: tuple[int, int]) -> tuple[int, int]:
        if batch == (1, 1):
            first_may_fail.set()
            raise ValueError("later")
        if batch == (0, 3):
            assert first_may_fail.wait(30)
            raise ValueError("earlier")
        return batch

    with Workers(4) as workers, pytest.raises(ValueError, match="earlier"):
        list(workers.read([piece(0), piece(1)], work))


def test_results_come_in_order() -> None:
    pieces = [iter([(number, step) for step in range(number)]) for number in (3, 0, 40, 1)]
    with Workers(3) as workers:
        found = list(workers.read(pieces, lambda batch: batch))
    assert found == [(number, step) for number in (3, 0, 40, 1) for step in range(number)]
