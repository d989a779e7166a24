"""Seeded random dumps with the odd cases a library must accept, compared with a reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from references import REFERENCES, RefusedError, UndefinedError
from references.steps import Labels, Predictions
from strategies import examples

DUMPS = examples(200)
CUTOFFS = (1, 3, 8, None)
ITEMS = [f"item-{number}" for number in range(14)]


def dump(
    seed: int,
    longest: int = 10,
    ties: bool = True,
    repeats: bool = False,
    repeated_labels: bool = False,
    grades: tuple[int, ...] = (1,),
    empty_labels: bool = True,
    scored_labels: bool = False,
    unlabelled: bool = True,
    empty_lists: bool = False,
) -> tuple[Labels, Predictions]:
    """Make nine queries: the first has labels and predictions, others may lack one of them.

    Confidences are multiples of 1/8, which all float types hold, in no order. With
    ``scored_labels``, all labels are in the lists. Without ``unlabelled``, every query has labels.
    """
    draw = Random(seed)
    labels: Labels = {}
    predictions: Predictions = {}
    for number in range(9):
        query = f"q{number}"
        n = draw.randint(1, longest)
        listed = draw.choices(ITEMS, k=n) if repeats else draw.sample(ITEMS, min(n, len(ITEMS)))
        confidences = draw.sample(range(-20, 60), len(listed))
        if ties:
            confidences = [confidence % 5 - 1 for confidence in confidences]
        among = listed if scored_labels else ITEMS
        count = draw.randint(1, min(6, len(among)))
        relevant = draw.choices(among, k=count) if repeated_labels else draw.sample(among, count)
        if number == 0 or not unlabelled or draw.random() < 0.8:
            labels[query] = [(item, float(draw.choice(grades))) for item in relevant]
            if number and unlabelled and empty_labels and draw.random() < 0.25:
                labels[query] = []
        if number == 0 or draw.random() < 0.8:
            eighths = [confidence / 8 for confidence in confidences]
            predictions[query] = list(zip(listed, eighths, strict=True))
            if number and empty_lists and draw.random() < 0.15:
                predictions[query] = []
    return labels, predictions


# The answer of a library: for each metric it has at this k, a value for each query, or the mean.
Answer = Callable[[Labels, Predictions, "int | None"], dict[str, Any]]


def assert_same(found: Any, expected: Any, tolerance: float, told: str) -> None:
    """Compare the values of queries, or one number (their mean, or a global metric)."""
    if isinstance(found, dict):
        assert found.keys() == expected.keys(), told
        pairs = [(found[query], expected[query]) for query in found]
    else:
        if isinstance(expected, dict):
            expected = math.fsum(expected.values()) / len(expected) if expected else 0.0
        pairs = [(found, expected)]
    for one, other in pairs:
        assert math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance / 100), (
            f"{told}: the library says {found}, the reference {expected}"
        )


def hold(
    preset: str,
    answer: Answer,
    tolerance: float = 1e-12,
    cutoffs: tuple[int | None, ...] = CUTOFFS,
    only: set[str] | None = None,
    **shape: Any,
) -> None:
    """Compare the references of a preset with a library on many dumps."""
    references = {
        metric: reference
        for metric, reference in REFERENCES[preset].items()
        if only is None or metric in only
    }
    held = set()
    for seed in range(DUMPS):
        labels, predictions = dump(seed, **shape)
        for k in cutoffs:
            answers = answer(labels, predictions, k)
            for metric, reference in references.items():
                if metric not in answers:
                    with pytest.raises((UndefinedError, RefusedError)):
                        reference(labels, predictions, k)
                    continue
                told = f"{preset} {metric}@{k}, dump {seed}"
                assert_same(answers[metric], reference(labels, predictions, k), tolerance, told)
                held.add(metric)
    assert held == references.keys()
