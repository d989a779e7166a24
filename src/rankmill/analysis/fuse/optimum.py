"""The weights and the constant of a method with the best value over training queries."""

import random
from collections.abc import Sequence
from functools import partial
from itertools import combinations, product
from math import comb
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rankmill.analysis.fuse.fused_block import fuse_block, joined_rows
from rankmill.analysis.fuse.methods import METHODS, Fusion
from rankmill.analysis.stability.halves import random_keys
from rankmill.columns.ids import to_ids
from rankmill.engine.evaluate import evaluate
from rankmill.errors import InputError, UsageError
from rankmill.metrics.base import Metric
from rankmill.metrics.registry import parse_all
from rankmill.sources.nouns import Labels
from rankmill.threads import Workers

# Weights are so many parts in all, as in ranx, shared out among the runs.
PARTS = 10
# The numbers of k that are tried, as in ranx.
KS = range(10, 101, 10)
SEED = 0

Constants = tuple[int | None, float | None, Sequence[float] | None]
"""The k, the parameter and the weights of a setting, as they are given."""
Block = tuple[Any, list[Any]]
"""Labels of some queries, and the lists of each run for these, or None."""


def metric_of(text: Any, method: str, labels: Labels | None) -> Metric:
    """The metric to optimise; raises UsageError if there can be no best value of it."""
    if METHODS[method].rates is not None:
        raise UsageError(
            f"{method} learns its rates from the training labels: choose a method that is not "
            "trained, or leave out --optimise"
        )
    if labels is None:
        raise UsageError("--optimise needs labels of training queries: give --train-labels")
    if labels.weight is not None or labels.subtopic is not None:
        raise UsageError("--optimise takes labels without weights and subtopics: leave these out")
    found = parse_all(text)
    if len(found) != 1 or found[0].better == "neither":
        raise UsageError(f"--optimise is {text!r}; expected one metric with a better side")
    return found[0]


def grid_of(
    names: Sequence[str],
    method: str,
    k: int | None,
    parameter: float | None,
    weights: Sequence[float] | None,
    tries: int,
) -> list[Constants]:
    """What is not given, in each setting to try: the most even weights first.

    A grid of more than `tries` settings is drawn from. The order of the names changes nothing.
    """
    asked = METHODS[method].parameter
    ks = KS if method == "rrf" and k is None else [k]
    numbers = asked.tried if asked is not None and parameter is None else [parameter]
    places = range(PARTS + len(names) - 1)
    bars = len(names) - 1
    shares = 1 if weights is not None else comb(len(places), bars)
    if shares * len(ks) * len(numbers) <= tries:
        cuts = combinations(places, bars) if weights is None else [()]
        drawn = {*product(cuts, ks, numbers)}
    else:
        draw, drawn = random.Random(SEED), set()
        while len(drawn) < tries:
            cut = tuple(sorted(draw.sample(places, bars))) if weights is None else ()
            drawn.add((cut, draw.choice(ks), draw.choice(numbers)))
    settings = []
    for cut, one, number in drawn:
        parts, shared = [0], weights
        if weights is None:
            ends = zip((-1, *cut), (*cut, len(places)), strict=True)
            parts = [end - start - 1 for start, end in ends]
            by_name = dict(zip(sorted(names), parts, strict=True))
            shared = [by_name[name] / PARTS for name in names]
        order = max(parts) - min(parts), parts, one or 0, number or 0.0
        settings.append((order, (one, number, shared)))
    return [setting for _, setting in sorted(settings, key=lambda pair: pair[0])]


def training_block(tables: Sequence[Any]) -> Block | None:
    """The rows of queries with labels, which the first table holds; None if it has none."""
    labels, *runs = tables
    if labels is None:
        return None
    of_training = partial(pc.is_in, value_set=labels.column(0).combine_chunks())
    kept = [None if run is None else run.filter(of_training(run.column(0))) for run in runs]
    return labels, [run if run is not None and len(run) else None for run in kept]


def best_of(
    fusions: Sequence[Fusion],
    names: Sequence[str],
    blocks: Sequence[Block | None],
    schemas: tuple[Any, Any],
    metric: Metric,
    workers: Workers,
) -> tuple[Fusion, dict[str, Any]]:
    """The fusion with the best value over training queries, and what is told of it.

    `schemas` are those of the labels and of fused rows. The first of equal fusions is chosen.
    """
    known = [block for block in blocks if block is not None]
    listed = [runs for _, runs in known if any(run is not None for run in runs)]
    if not listed:
        raise InputError("no run has a query of the training labels: there is nothing to optimize")
    labels = joined_rows([block[0] for block in known], schemas[0])
    queries = labels.column(0).combine_chunks()
    sides = random_keys(to_ids(queries, "queries"), SEED) % 2
    halves = pa.table({"query_id": queries, "half": pa.array(sides.astype(str))})
    sign = -1.0 if metric.better == "lower" else 1.0
    values, parts = [], []
    for fusion in fusions:
        work = partial(fuse_block, fusion=fusion, schema=schemas[1])
        rows = joined_rows([block.rows for block in workers.map(work, iter(listed))], schemas[1])
        found = evaluate(
            labels, rows, metric.text, by=halves, threads=workers.threads, per_query=False
        )
        values.append(sign * found[metric.text])
        assert found.by is not None
        parts.append({one["slice"]: one for one in found.by.to_pylist()})
    best = _first_best(values)
    chosen = fusions[best]
    return chosen._replace(trained_on=found.queries), {
        "metric": metric.text,
        "value": sign * values[best],
        "held_out": _held_out(parts, sign),
        "settings": len(fusions),
        "weights": dict(zip(names, chosen.weights.tolist(), strict=True)),
        "k": chosen.k if chosen.method == "rrf" else None,
        "parameter": chosen.parameter if chosen.row.parameter else None,
    }


def _held_out(parts: Sequence[dict[str, Any]], sign: float) -> float | None:
    """The mean over both halves of the value of what is best on the other, None without two."""
    if {half for half, one in parts[0].items() if one["queries"]} != {"0", "1"}:
        return None
    total = 0.0
    for half, other in ("01", "10"):
        held = parts[_first_best([sign * part[other]["value"] for part in parts])][half]
        total += held["value"] * held["queries"]
    return float(total / sum(one["queries"] for one in parts[0].values()))


def _first_best(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
