"""The value over equal confidences is the mean over all orders of them, for every metric."""

from __future__ import annotations

import itertools

import pytest

import rankmill
from rankmill.metrics.registry import REGISTRY

OF_QUERIES = [name for name, spec in REGISTRY.items() if spec.kernel and spec.expected]
# (gains of labels; runs of items of equal confidence)
LISTS = [
    ({"a": 1, "b": 1, "c": 1}, ["axby"]),
    ({"a": 1, "b": 1}, ["x", "abyz"]),
    ({"a": 1, "b": 1, "c": 1}, ["ax", "yb", "c"]),
    ({"a": 1, "x": 0, "b": 1}, ["xya", "bz"]),
    ({"a": 3, "b": 1, "c": 2}, ["axc", "yb"]),
]


def _texts(name: str) -> list[str]:
    """Names of a metric, with cutoffs within runs, at their ends and beyond."""
    spec = REGISTRY[name]
    bare = [spec.example] if spec.cutoff != "required" else []
    base = spec.example.partition("@")[0]
    cut = [f"{base}@{k}" for k in (1, 2, 3, 6)] if spec.cutoff != "none" and spec.at is None else []
    return [*bare, *cut]


@pytest.mark.small
@pytest.mark.parametrize("name", OF_QUERIES)
def test_a_metric_is_expected_to_be_the_mean_over_all_orders(name: str) -> None:
    """A kernel's twin counts what a list is expected to hold, which not every divisor allows."""
    for labels, runs in LISTS:
        scores = {item: -float(place) for place, run in enumerate(runs) for item in run}
        for text in _texts(name):
            orders = itertools.product(*map(itertools.permutations, runs))
            lists = {place: [*itertools.chain(*one)] for place, one in enumerate(orders)}
            how = {"order": "expected"}
            try:
                one = rankmill.evaluate({"q": labels}, {"q": scores}, text, semantics=how)
                values = rankmill.evaluate(dict.fromkeys(lists, labels), lists, text)
            except rankmill.UsageError:  # of such a cutoff, or lrap, which has no other order
                continue
            assert one[text] == pytest.approx(values[text], rel=1e-12, abs=1e-15), (
                f"{text} over the ties of {runs} is not the mean over all orders: the row of "
                f"{name!r} in src/rankmill/metrics/families/ needs expected=None, or a twin of its "
                "own in src/rankmill/kernels/expectation.py"
            )
