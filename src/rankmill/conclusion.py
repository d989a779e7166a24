"""From what was tallied to a Result: means over the queries that count, gap, and the table."""

import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill import audit
from rankmill.arranging import arrange, changes_lists
from rankmill.buffers import arrow_of
from rankmill.counting import Counted, counted_queries
from rankmill.gap import CorrectState, GapCounter, GapValue, first_confidences, gap_of_states
from rankmill.ids import ids_to_arrow, join_ids, take_ids
from rankmill.metrics import Metric
from rankmill.pooled import join, rank_pooled
from rankmill.reading import Input
from rankmill.result import Result
from rankmill.scoring import Tally
from rankmill.sources.opening import reread_confidences
from rankmill.state import MeanState


def conclude(
    asked: list[Metric],
    tally: Tally,
    counts: dict[str, int],
    labels: Input,
    predictions: Input,
    threads: int,
    began: float,
) -> Result:
    """The result of what was tallied; `counts` is the audit of the labels."""
    gaps = _gaps(tally, predictions, threads)
    counted = counted_queries(tally)
    labelled = int(tally.has_labels.sum())
    counts = counts | {
        "queries_labelled": labelled,
        "queries_only_labelled": labelled - tally.audit["queries_in_both"],
        "empty_label_lists": len(tally.has_labels) - labelled,
        "tied_confidences": max((value.tied for value in gaps.values()), default=0),
    }
    ones = MeanState.of(np.ones(1), np.array([counted.ones]))
    states = {
        metric.text: replace(state.merge(ones), count=counted.queries)  # all others are 0
        for metric, state in zip(tally.plan.per_query, tally.states, strict=True)
    }
    means = {name: state.mean for name, state in states.items()}
    errors = {name: state.standard_error for name, state in states.items()}
    for i, metric in enumerate(tally.plan.pooled):
        kept = tally.kept[i] if tally.kept else []
        means[metric.text] = _gap_value(gaps[metric.text], kept, tally)
    return Result(
        metrics={metric.text: means[metric.text] for metric in asked},
        standard_errors={metric.text: errors.get(metric.text) for metric in asked},
        bounds={name: (value.worst, value.best) for name, value in gaps.items()},
        queries=counted.queries,
        audit=audit.add(tally.audit, counts),
        inputs={"labels": labels.described(), "predictions": predictions.described()},
        seconds=time.perf_counter() - began,
        per_query=_per_query_table(labels, tally, counted) if tally.plan.keep_values else None,
        semantics=tally.plan.semantics,
    )


def _gaps(tally: Tally, predictions: Input, threads: int) -> dict[str, GapValue]:
    """The metrics over all predictions, from the confidences kept or read once more."""
    metrics, semantics = tally.plan.pooled, tally.plan.semantics
    if not metrics:
        return {}
    counters = [GapCounter(CorrectState.of(parts), threads) for parts in tally.correct]
    if tally.plan.keep_rows:
        for counter, parts in zip(counters, tally.kept or [], strict=True):
            for part in parts:
                counter.add(part.confidences)
    elif tally.kept is not None:
        for counter, parts in zip(counters, tally.kept, strict=True):
            while parts:
                counter.add(parts.pop())
    else:
        arranged = changes_lists(semantics) or tally.audit["null_items"] > 0
        for offsets, confidences in reread_confidences(
            predictions.source,
            predictions.columns,
            threads,
            memory=tally.plan.memory,
            arrange=partial(arrange, semantics=semantics) if arranged else None,
        ):
            for metric, counter in zip(metrics, counters, strict=True):
                counter.add(first_confidences(offsets, confidences, metric.limit))
    return {
        metric.text: gap_of_states(
            counter.correct, counter.finish(), _gap_total(tally, counter.correct), threads
        )
        for metric, counter in zip(metrics, counters, strict=True)
    }


def _gap_total(tally: Tally, correct: CorrectState) -> int:
    """What gap is divided by; 1 where there is nothing."""
    labels = tally.index.labels
    totals = {
        "labelled_queries": tally.has_labels.sum(),
        "label_pairs": labels.counts.sum() if len(labels.counts) else len(labels.items.keys),
        "predicted_label_pairs": tally.counts["predicted_labels"],
        "hits": correct.counts.sum(),
    }
    return max(1, int(totals[tally.plan.semantics.gap_total]))


def _gap_value(value: GapValue, parts: list[Any], tally: Tally) -> float:
    """The value of gap with ties as asked for; `parts` are what was kept of all predictions."""
    ties = tally.plan.semantics.gap_ties
    if not tally.plan.keep_rows:
        return float(getattr(value, ties))
    pooled = join(parts)
    total = _gap_total(tally, CorrectState.of([pooled.confidences[pooled.correct]]))
    return math.fsum(rank_pooled(pooled, ties).terms) / total


def _per_query_table(labels: Input, tally: Tally, counted: Counted) -> Any:
    """The queries that count, in the order of the labels, and their values."""
    name = labels.columns.query
    kinds = {schema.field(name).type for schema in labels.source.schemas.values()}
    queries = take_ids(tally.index.queries, counted.rows)
    values = [np.where(tally.has_labels, one, counted.no_relevant) for one in tally.values]
    columns = [one[counted.rows] for one in values]
    if counted.strangers:
        strangers = tally.strangers()
        queries = join_ids([queries, strangers])
        more = np.full(len(strangers.keys), counted.unlabelled)
        columns = [np.concatenate([one, more]) for one in columns]
    names = [metric.text for metric in tally.plan.per_query]
    if name in names:  # a table cannot have two columns of one name
        name = "query"
    ids = ids_to_arrow(queries, kinds)
    return pa.table([ids, *map(arrow_of, columns)], names=[name, *names])
