"""Confidences beyond memory: runs in a file give the same bits as arrays."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import rankmill
from rankmill.io.overflow import Overflow
from rankmill.metrics.gap import gap as gap_module
from rankmill.metrics.gap import gap_counts
from rankmill.metrics.gap.gap_counts import (
    GapCounter,
    RunsCounter,
    RunsFile,
    counted,
    everything,
    gap_of_counts,
)
from rankmill.threads import Workers
from strategies import examples

KINDS = ["all differ", "few levels", "one level", "wide range", "pairs"]


def confidences(kind: str, count: int) -> np.ndarray:
    generator = np.random.default_rng(7)
    if kind == "all differ":
        return generator.random(count)
    if kind == "wide range":
        return np.ldexp(generator.random(count), generator.integers(-100, 100, count))
    if kind == "pairs":  # what float32 holds, and what is next to it and becomes the same there
        single = generator.random(count // 4, dtype=np.float32).astype(np.float64)
        return np.concatenate([single, np.nextafter(single, 2), single, single])
    return generator.integers(0, 1 if kind == "one level" else 50, count).astype(np.float64)


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("count", "portions"),
    [(1_000, 3), pytest.param(200_000, 7, marks=pytest.mark.lengthy)],
)
@pytest.mark.parametrize("narrow", [False, True])
def test_counts_of_runs_are_those_of_arrays(
    kind: str, count: int, portions: int, narrow: bool
) -> None:
    """200,000 predictions, half of them right, are several ranges of sums.

    With `narrow`, most wrong ones are float32, and stand beside bounds that float32 cannot hold.
    """
    every = confidences(kind, count)
    right = every[: count // 2]
    with Workers(2) as workers, Overflow("predictions", "confidences") as overflow:
        file = RunsFile(overflow, step=max(4, count // 500), steps=16)
        runs = tuple(file.add(counted([part])) for part in np.array_split(right, portions))
        whole = GapCounter(counted([right]), workers)
        beside = RunsCounter(runs, every.nbytes // portions, file)
        for number, part in enumerate(np.array_split(every, 20)):
            part = part.astype(np.float32) if narrow and number > 10 else part
            whole.add(part)
            beside.add(part)
        expected, found = whole.finish(), beside.finish()
        correct = counted([right])
        for one, other in zip(correct, everything(runs, 16), strict=True):
            assert one.tolist() == other.tolist()
        assert found.at.tolist() == expected.at.tolist()
        assert found.above.tolist() == expected.above.tolist()
        both = [gap_of_counts(correct, one, 100, workers) for one in (expected, found)]
    assert both[0] == both[1]
    if kind in ("all differ", "wide range"):
        assert len(found.bounds) > 2


@pytest.mark.small
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@given(data=st.data())
@settings(max_examples=examples(30))
def test_bits_are_sorted_as_floats(kind: type, data: st.DataObject) -> None:
    """Zeros of both signs are equal, and their order does not matter."""
    width = 8 * np.dtype(kind).itemsize
    floats = st.floats(allow_nan=False, width=width)  # type: ignore[call-overload]
    some = data.draw(st.lists(floats | st.sampled_from([-math.inf, -1.0, 0.0, -0.0, math.inf])))
    given_parts = [np.array(some[:3], kind), np.array(some[3:], kind)]
    expected = np.sort(np.concatenate(given_parts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gap_counts, "FEW", 0)
        found = gap_counts.ascending(given_parts)
    assert found.dtype == kind
    assert found.tolist() == expected.tolist()
    assert not given_parts  # nothing holds them any more


@pytest.mark.small
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("labelled", [300, 0])
def test_gap_within_little_memory(
    kind: str, single: bool, labelled: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    add = RunsFile.add
    noted = lambda file, some: written.append(len(some.values)) or add(file, some)  # noqa: E731
    monkeypatch.setattr(RunsFile, "add", noted)
    queries, each = 300, 6
    items = np.arange(queries * each) % 40
    scores = confidences(kind, len(items)).astype(np.float32 if single else np.float64)
    offsets = np.arange(0, len(items) + 1, each)
    predictions = pa.table(
        {
            "user_id": np.arange(queries),
            "items": pa.ListArray.from_arrays(offsets, items),
            "scores": pa.ListArray.from_arrays(offsets, scores),
        }
    )
    parts = pa.Table.from_batches(predictions.to_batches(max_chunksize=37))
    labels = pa.table({"user_id": np.arange(300), "items": [[q * 6 % 40] for q in range(300)]})
    labels = labels.slice(0, max(1, labelled))
    metrics = ["gap", "gap@2", "map@3", "auprc"]
    for semantics in ("default", {"gap_total": "hits"}, {"gap_ties": "worst"}):
        whole = rankmill.evaluate(labels, parts, metrics, semantics=semantics)
        assert not written
        little = rankmill.evaluate(labels, parts, metrics, semantics=semantics, memory=100)
        assert written
        assert (little.metrics, little.bounds) == (whole.metrics, whole.bounds)
        assert little.audit == whole.audit
        written.clear()


def test_a_share_of_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Confidences go to the file when they take more than a share, not before."""
    assert gap_module.SHARE > 1
    written: list[int] = []
    monkeypatch.setattr(RunsFile, "add", lambda _, some: written.append(len(some.values)))
    lists = pa.table({"user_id": range(100), "items": [[q] for q in range(100)]})
    scored = lists.append_column("scores", pa.array([[float(q)] for q in range(100)]))
    # Two thirds of the memory are for confidences.
    rankmill.evaluate(lists, scored, "gap", memory=100 * 8 * gap_module.SHARE * 3 // 2)
    assert not written
