"""What other tests share with those of semantics."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

import oracle
import oracle_lists
import semantics_oracle
import strategies
from rankmill.semantics.choices import CHOICES
from strategies import Case

METRICS = strategies.metric_names([1, 3, 1000], every=True)


@st.composite
def some_semantics(draw: st.DrawFn, **fixed: Any) -> dict[str, str]:
    """Choose for every field. At most one choice is an error, or most examples would be refused."""
    chosen = {
        field: draw(st.sampled_from([choice for choice in choices if choice != "error"]))
        for field, choices in CHOICES.items()
    }
    chosen["nan_confidence"] = "last"
    if chosen["order"] in semantics_oracle.OPEN_ORDERS and draw(st.integers(0, 7)):
        chosen["repeated_predictions"] = draw(st.sampled_from(["drop", "each"]))
    if draw(st.integers(0, 4)) == 0:
        errors = [field for field, choices in CHOICES.items() if "error" in choices]
        chosen[draw(st.sampled_from(errors))] = "error"
    return chosen | fixed


@st.composite
def semantic_cases(draw: st.DrawFn) -> Case:
    """Make cases in which some confidences are missing or NaN, or all are equal."""
    case = draw(strategies.cases())
    how = draw(st.sampled_from(["as drawn", "as drawn", "missing", "few"]))
    if how == "as drawn":
        return case
    shuffle = random.Random(draw(st.integers(0, 2**32)))
    among = [None, math.nan, 0.5, 1.0] if how == "missing" else [0.0, 0.5]
    return replace(
        case,
        predictions={
            query: listed and [(item, shuffle.choice(among)) for item, _ in listed[:6]]
            for query, listed in case.predictions.items()
        },
    )


def defined(metrics: Sequence[str], chosen: dict[str, str], confidences: bool) -> list[str]:
    """Return the metrics that have a value under these semantics and on this input."""
    out = []
    for metric in metrics:
        name, k = oracle.parse(metric)
        if name in oracle.POOLED and not confidences:
            continue
        if chosen["order"] == "expected" and (
            (name in oracle.POOLED and k) or (name == "map" and chosen["ap_divisor"] == "hits")
        ):
            continue
        if oracle_lists.is_defined(name, k, chosen):
            out.append(metric)
    return out


def bad(confidence: float | None) -> bool:
    return confidence is None or math.isnan(confidence)


def few_orders(case: Case) -> bool:
    """Return whether there are few enough orders of equal confidences to try them all."""
    orders = []
    for listed in case.predictions.values():
        bare = [-math.inf if bad(conf) else conf for item, conf in listed or [] if item is not None]
        orders.append(math.prod(math.factorial(bare.count(one)) for one in set(bare)))
    return max(orders) <= semantics_oracle.MOST_ORDERS


def joinable(case: Case) -> bool:
    """Return whether one column can hold the queries of both sides (not -1 and 2**64 - 1)."""
    queries = [q for q in (*case.labels, *case.predictions) if isinstance(q, int)]
    return not (min(queries, default=0) < 0 and max(queries, default=0) >= 2**63)
