"""What does not fit into memory is in a file that is closed on every way out, with no collector."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill.engine.cuts import job_of
from rankmill.engine.evaluate import score_systems
from rankmill.io import overflow as overflow_module
from rankmill.io.overflow import Overflow

METRICS = ["gap", "map@3"]

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors")


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The temporary files that a test made; it must leave none of them, open or by its name."""
    files: list[Any] = []
    make = overflow_module.temporary_file

    def noted(name: str) -> Any:
        files.append(make(name))
        return files[-1]

    monkeypatch.setattr(overflow_module, "temporary_file", noted)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    rankmill.evaluate({1: [1]}, {1: {1: 0.5}}, METRICS)  # opens what stays open
    gc.collect()
    gc.disable()
    before = open_files()
    try:
        yield files
        assert files, "nothing went to a file"
        assert all(file.closed for file in files)
        assert open_files() == before
        assert not list(tmp_path.iterdir())
    finally:
        gc.enable()


def sides(queries: int = 400) -> tuple[pa.Table, list[pa.Table]]:
    generator = np.random.default_rng(5)
    items = generator.permutation(10**6)[: queries * 4].reshape(queries, 4)
    runs = []
    for _ in range(2):
        scores = generator.random((queries, 4))
        columns = {"user_id": range(queries), "items": list(items), "scores": list(scores)}
        runs.append(pa.Table.from_batches(pa.table(columns).to_batches(max_chunksize=37)))
    return pa.table({"user_id": range(queries), "items": list(items[:, :2])}), runs


def test_after_success(made: list[Any]) -> None:
    labels, (run, _) = sides()
    whole = rankmill.evaluate(labels, run, METRICS)
    assert not made
    result = rankmill.evaluate(labels, run, METRICS, memory=1, threads=2)
    assert result.metrics == whole.metrics
    assert len(made) == 1


def test_each_system_has_its_own_until_the_next(made: list[Any]) -> None:
    labels, runs = sides()
    nothing: Any = ("default", None, (), ())
    job = job_of(METRICS, rankmill.Labels.of(labels), *nothing, memory=1)
    given = {name: rankmill.Predictions.of(run) for name, run in zip("ab", runs, strict=True)}
    with closing(score_systems(job, rankmill.Labels.of(labels), given)) as systems:
        for number, _ in enumerate(systems, 1):
            assert [file.closed for file in made] == [True] * (number - 1) + [False]


def of_comparison(labels: Any, run: Any) -> Any:
    both = {"a": run, "b": run}
    rankmill.compare(labels, both, ["gap", "map@3"], memory=1)
    return rankmill.evaluate_runs(labels, both, METRICS, memory=1)["a"]


def of_slices(labels: Any, run: Any) -> Any:
    return rankmill.evaluate(labels, run, METRICS, by="label_count", memory=1)


@pytest.mark.parametrize("way", [of_comparison, of_slices])
def test_on_other_ways(way: Callable[[Any, Any], Any]) -> None:
    labels, (run, _) = sides()
    found, whole = way(labels, run), rankmill.evaluate(labels, run, METRICS)
    assert {name: whole.metrics[name] for name in found.metrics} == dict(found.metrics)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_after_ctrl_c(kind: type[BaseException], threads: int, made: list[Any]) -> None:
    labels, (run, _) = sides()

    def interrupted(done: int, rows: int | None) -> None:
        if made and done > 200:
            raise kind

    with pytest.raises(kind):
        rankmill.evaluate(labels, run, METRICS, memory=1, threads=threads, progress=interrupted)


def test_after_an_error_in_the_data() -> None:
    labels, (run, _) = sides()
    wrong = pa.concat_tables([run, run.slice(0, 1)])
    with pytest.raises(rankmill.InputError, match="appears a second time"):
        rankmill.evaluate(labels, wrong, METRICS, memory=1)


def test_after_an_error_in_the_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, (run, _) = sides()

    def failing(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("rankmill.metrics.gap.gap_counts.RunsCounter.finish", failing)
    with pytest.raises(MemoryError):
        rankmill.evaluate(labels, run, METRICS, memory=1)


def test_nothing_is_added_once_it_is_closed(made: list[Any]) -> None:
    """A thread that is still at work after Ctrl-C makes no new file."""
    with Overflow("predictions", "confidences") as file:
        file.add(b"one")
    with pytest.raises(ValueError, match="closed"):
        file.add(b"two")
    with Overflow("predictions", "confidences") as unused:
        pass
    with pytest.raises(ValueError, match="closed"):
        unused.add(b"two")
    assert len(made) == 1


def test_several_threads_add(made: list[Any]) -> None:
    found: dict[bytes, tuple[int, int]] = {}
    with Overflow("predictions", "confidences") as file:

        def add(letter: bytes) -> None:
            for count in range(200):
                found[letter * count] = file.add(letter * count)
                assert file.read(found[letter * count]).to_pybytes() == letter * count

        threads = [Thread(target=add, args=(letter,)) for letter in (b"a", b"b", b"c")]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert all(file.read(place).to_pybytes() == data for data, place in found.items())


@pytest.mark.small
def test_buffers_come_back_while_others_are_added() -> None:
    """A stream that is read twice adds batches between reads of those before them."""
    buffers = [bytes([i]) * (1 + 997 * i) for i in range(40)]
    with closing(Overflow("a source", "what it holds")) as kept:
        places = []
        for i, one in enumerate(buffers):
            places.append(kept.add(one))
            assert kept.read(places[i // 2]).to_pybytes() == buffers[i // 2]
        assert [kept.read(place).to_pybytes() for place in places] == buffers
