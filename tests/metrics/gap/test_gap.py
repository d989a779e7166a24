"""Counting confidences among the correct ones: against plain NumPy, and within bounded memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import rankmill
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_array import gap_in_portions
from rankmill.metrics.gap.gap_counts import GapCounter
from rankmill.threads import Workers


@pytest.mark.small
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("distinct", "correct"), [(5, 3), (5, 5), (40, 2), (900, 1), (900, 30), (900, 700), (900, 0)]
)
def test_counts_are_those_of_searchsorted(kind: type, distinct: int, correct: int) -> None:
    """Few distinct confidences make long ties; few correct ones leave long gaps between them."""
    generator = np.random.default_rng(distinct + correct)
    chosen = generator.choice(distinct, correct, replace=False)
    confidences = generator.integers(0, distinct, 1500).astype(kind)
    state = Gap.of([chosen.astype(kind)]).correct
    with Workers(3) as workers:
        counter = GapCounter(state, workers)
        for piece in np.array_split(confidences, 7):
            counter.add(piece)
        counts = counter.finish()
    confidences.sort()
    first = np.searchsorted(confidences, state.values)
    beyond = np.searchsorted(confidences, state.values, side="right")
    ends = np.append(first[1:], len(confidences))[: len(first)]
    assert counts.at.tolist() == (beyond - first).tolist()
    assert counts.above.tolist() == (ends - beyond).tolist()


@pytest.mark.small
def test_portions_do_not_change_a_bit() -> None:
    generator = np.random.default_rng(0)
    confidences = generator.integers(0, 2000, 5000).astype(np.float32)
    correct = generator.random(5000) < 0.1
    values = set()
    with Workers() as workers:
        for portion in (64, 4 * 99, 4 * 2500, 4 * 5000, 1 << 26):
            found = gap_in_portions(confidences, correct, 700, "expected", workers, portion)
            values.add(found.hex())
    values.add(rankmill.arrays.global_average_precision(confidences, correct, 700).hex())
    assert len(values) == 1


def test_memory_is_that_of_a_portion() -> None:
    """At most one portion and its sorted copy are in memory, for any number of confidences."""
    portion = 1 << 20
    generator = np.random.default_rng(0)
    confidences = generator.random(20 * portion // 4, dtype=np.float32)
    correct = np.zeros(len(confidences), np.bool_)
    correct[::5000] = True

    def stream() -> None:
        with Workers(2) as workers:
            counter = GapCounter(Gap.of([confidences[correct]]).correct, workers, portion)
            for start in range(0, len(confidences), 10_000):
                counter.add(confidences[start : start + 10_000].copy())
            counter.finish()

    def whole() -> None:
        with Workers() as workers:
            gap_in_portions(confidences, correct, 700, "expected", workers, portion)

    for count, portions in ((stream, 2), (whole, 1)):
        count()
        tracemalloc.start()
        count()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert portion / 2 < peak < 1.25 * portions * portion


@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.longdouble])
def test_confidences_that_float64_cannot_hold_are_refused(kind: type) -> None:
    """Rounded to float64, two of them would be equal."""
    confidence = np.array([2**53 + 1, 2**53], np.int64).astype(kind)
    if np.finfo(np.longdouble).nmant > 52 or kind is not np.longdouble:
        with pytest.raises(rankmill.InputError, match="float64"):
            rankmill.arrays.global_average_precision(confidence, [True, False], 1)
    assert rankmill.arrays.global_average_precision(confidence[1:], [True], 1) == 1.0
