"""Systems that `evaluate_runs` has scored, joined by the values of queries that it kept."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.analysis.compare.queries.alignment import Aligned
from rankmill.analysis.compare.queries.join import Joined
from rankmill.analysis.compare.queries.label_facts import QueryTraits, read_covariate
from rankmill.columns.ids import to_ids
from rankmill.columns.ragged_lists import one_chunk
from rankmill.engine.cuts import Cuts, read_classes
from rankmill.engine.segments import NO_ROW, Classes
from rankmill.errors import UsageError
from rankmill.matching.index import LabelIndex
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.registry import parse
from rankmill.metrics.texts import split_names
from rankmill.results.result import WEIGHT, Result
from rankmill.semantics.semantics import Counting
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import Catalogue
from rankmill.sources.roles.source import Columns, InputOptions
from rankmill.threads import Workers

AGAIN = "give labels and runs, as in compare(labels, runs)"


def check_alone(runs: Any, semantics: Counting, catalogue: Catalogue | None) -> None:
    """Raise UsageError if runs, or options that say how to score, are given beside results."""
    scoring = (
        ("runs", runs, None),
        ("semantics", semantics, "default"),
        ("catalogue", catalogue, None),
    )
    given = [name for name, one, usual in scoring if one != usual]
    if given:
        raise UsageError(
            f"{given[0]} cannot be combined with results, which are scored already: {AGAIN}"
        )


def join_results(
    kept: dict[str, Result],
    baseline: str,
    cuts: Cuts,
    workers: Workers,
    memory: int,
) -> Joined:
    """Join results as `join_runs` does what it scores, with the same bits; nothing is scored again.

    Raises UsageError if something is asked for that the values of queries do not tell.
    """
    one = kept[baseline]
    if any(_how(each) != _how(one) for each in kept.values()):
        raise UsageError(f"the results are not of one call of evaluate_runs: {AGAIN}")
    asked = tuple(map(parse, one.metrics))
    pooled = [metric.text for metric in asked if aggregate_of(metric) is Gap]
    if pooled:
        raise UsageError(f"{pooled[0]} needs all predictions, which results do not hold: {AGAIN}")
    of_labels = [*cuts.facts, *cuts.derived]
    if of_labels:
        raise UsageError(
            f"{of_labels[0]!r} needs the labels, which results do not hold: give a table of query "
            f"ids instead, or {AGAIN}"
        )
    aligned = Aligned.of(kept)
    rows = _rows(kept, len(aligned.queries))
    classes: dict[str, Classes] = {}
    codes = covariate = None
    if cuts != Cuts():
        name, queries = one.per_query.column_names[0], aligned.queries.filter(rows >= 0)
        known = _inputs(name, queries)
        classes, codes = read_classes(cuts, *known, workers, memory)
        if cuts.adjust is not None:
            covariate = read_covariate(cuts.adjust, *known, workers, memory)
    traits = QueryTraits.of(rows, aligned.weights(), codes, covariate, classes)
    common = None if aligned.common is None else np.flatnonzero(aligned.common)
    return Joined(asked, kept, baseline, aligned, traits.at(common), one.gain_function)


def chosen(result: Result, metrics: str | Iterable[str], name: str) -> Result:
    """Return a result with the metrics asked for: by default all that it has."""
    if not isinstance(result.per_query, pa.Table):
        raise UsageError(
            f"the result of {name} holds no per-query values: evaluate_runs keeps them with "
            f"per_query=True, and JSON does not hold them; or {AGAIN}"
        )
    if metrics is DEFAULT_METRICS:
        return result
    asked = [(one, result.held(one)) for one in split_names(metrics)]
    missing = next((one for one, held in asked if held is None), None)
    if missing is not None:
        there = ", ".join(result.metrics)
        raise UsageError(f"the results have no {missing!r}, but {there}: {AGAIN}")
    names = list(dict.fromkeys(str(held) for _, held in asked))
    table = result.per_query
    beside = [table.column_names[0], *names, WEIGHT]
    columns = [one for one in dict.fromkeys(beside) if one in table.column_names]
    values = {one: result.metrics[one] for one in names}
    return replace(result, metrics=values, per_query=table.select(columns))


def _how(result: Result) -> tuple[Any, ...]:
    """Return what the results of one call have in common."""
    how = result.semantics, result.scope, result.gain_function, result.inputs.get("labels")
    return *how, list(result.metrics)


def _rows(results: Mapping[str, Result], count: int) -> np.ndarray:
    """Return the place of each query among those of the labels; -1 for those behind them."""
    counted = [one.counted.of_labels for one in results.values() if one.counted is not None]
    labelled = int(np.logical_or.reduce(counted).sum()) if counted else count
    return np.where(np.arange(count) < labelled, np.arange(count), NO_ROW)


def _inputs(name: str, queries: Any) -> tuple[Input, LabelIndex]:
    """Return queries as labels of which there is no more than the ids."""
    source = open_source(pa.table({name: queries}), InputOptions("labels"), may_be_empty=True)
    nothing: Any = None  # whoever looks for ids needs no lists
    index = LabelIndex(to_ids(one_chunk(queries), "the query ids of a result"), nothing)
    return Input(source, Columns(name, name, wide=True)), index
