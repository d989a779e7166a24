"""From what was tallied to a State, a Result, and the table of queries."""

import math
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import ids_to_arrow, join_ids, take_ids
from rankmill.engine.counted import Counted, counts_may_differ
from rankmill.engine.state import State, reread_among
from rankmill.engine.tally import Confidences, Tally
from rankmill.metrics.gap import AmongState, CorrectState, GapCounter
from rankmill.metrics.gap_rows import join, rank_pooled
from rankmill.metrics.mean import MeanState
from rankmill.metrics.registry import Metric
from rankmill.results import audit
from rankmill.results.result import CountedQueries, Result
from rankmill.sources.inputs import Input
from rankmill.threads import Workers


class Tallied(NamedTuple):
    """One system, its predictions scored.

    Attributes
    ----------
    state : State
        Of all queries.
    tally, counted : Tally, Counted
        Of the last range of queries, which are all of them where values per query are kept.
    labels, predictions : Input
    workers : Workers
    """

    state: State
    tally: Tally
    counted: Counted
    labels: Input
    predictions: Input
    workers: Workers


def state_of(asked: list[Metric], tally: Tally, counts: dict[str, int], counted: Counted) -> State:
    """The state of all that was tallied, but for confidences; `counts` is the labels' audit."""
    labelled = int(tally.has_labels.sum())
    counts = counts | {
        "queries_labelled": labelled,
        "queries_only_labelled": labelled - tally.audit["queries_in_both"],
        "empty_label_lists": len(tally.has_labels) - labelled,
    }
    ones = MeanState.of(np.ones(1), np.array([counted.ones]))
    labels = tally.index.labels
    pairs = int((labels.all_offsets if len(labels.all_offsets) else labels.offsets)[-1])
    totals = {
        "labelled_queries": labelled,
        "label_pairs": pairs,
        "predicted_label_pairs": tally.counts["predicted_labels"],
        "hits": 0,
    }
    return State(
        metrics=tuple(metric.text for metric in asked),
        semantics=tally.plan.semantics,
        gain_function=tally.plan.gain_function,
        queries=counted.queries,
        gap_total=totals[tally.plan.semantics.gap_total],
        audit=audit.add(tally.audit, counts),
        means={
            metric.text: replace(state.merge(ones), count=counted.queries)  # all others are 0
            for metric, state in zip(tally.plan.per_query, tally.states, strict=True)
        },
        correct={},
    )


def with_confidences(state: State, confidences: Confidences) -> State:
    """The state with the confidences of correct predictions, those of all parts at once."""
    each = zip(confidences.plan.pooled, confidences.correct, confidences.seen, strict=True)
    correct = {metric.text: CorrectState.of(parts, seen) for metric, parts, seen in each}
    return replace(state, correct=correct)


def conclude(one: Tallied, began: float, *, several: bool = False) -> Result:
    """The result of what was tallied; which queries count is kept where `several` are compared."""
    plan, confidences = one.tally.plan, one.tally.confidences
    among = _among(one.state, confidences, one.predictions, one.workers)
    result = one.state.finish(among, one.workers.threads)
    if plan.ordered_ties:
        result.metrics.update(_gaps_in_order(one.state, confidences))
    return replace(
        result,
        inputs={"labels": one.labels.described(), "predictions": one.predictions.described()},
        seconds=time.perf_counter() - began,
        per_query=_per_query_table(one) if plan.keep_values else None,
        counted=_counted(one) if several else None,
    )


def _counted(one: Tallied) -> CountedQueries | None:
    """Which queries count; None where that is the same for all systems, or not known of all."""
    state, tally = one.state, one.tally
    queries = state.audit["queries_labelled"] + state.audit["empty_label_lists"]
    whole = one.counted.queries == state.queries and len(tally.has_labels) == queries
    if not whole or not counts_may_differ(state.semantics):
        return None
    others = None
    if one.counted.strangers:
        others = ids_to_arrow(tally.strangers(), _query_types(one.predictions))
    return CountedQueries(one.counted.among_labels, others)


def _among(
    state: State, confidences: Confidences, predictions: Input, workers: Workers
) -> dict[str, AmongState]:
    """Where all confidences fall among the correct ones, from those kept or read once more."""
    if confidences.kept is None:
        return reread_among(state, predictions, workers, confidences.plan.memory)
    counted = {}
    for (name, correct), parts in zip(state.correct.items(), confidences.kept, strict=True):
        counter = GapCounter(correct, workers.threads)
        if confidences.plan.keep_rows:
            for part in parts:
                counter.add(part.confidences)
        else:
            while parts:  # what is counted is let go of
                counter.add(parts.pop())
        counted[name] = counter.finish()
    return counted


def _gaps_in_order(state: State, confidences: Confidences) -> dict[str, float]:
    """The values of gap where ties have an order of their own, from all predictions."""
    ties = confidences.plan.semantics.gap_ties
    return {
        name: math.fsum(rank_pooled(join(parts), ties).terms) / state.total(name)
        for name, parts in zip(state.correct, confidences.kept or [], strict=True)
        if state.total(name)
    }


def _per_query_table(one: Tallied) -> Any:
    """The queries that count and their values: in the order of the labels, others behind by id."""
    tally, counted, labels, predictions = one.tally, one.counted, one.labels, one.predictions
    name = labels.columns.query
    kinds = _query_types(labels)
    rows = np.flatnonzero(counted.among_labels)
    queries = take_ids(tally.index.queries, rows)
    values = [np.where(tally.has_labels, each, counted.no_relevant) for each in tally.values]
    columns = [each[rows] for each in values]
    if counted.strangers:
        strangers = tally.strangers()
        kinds |= _query_types(predictions)
        queries = join_ids([queries, strangers])
        more = np.full(len(strangers.keys), counted.unlabelled)
        columns = [np.concatenate([each, more]) for each in columns]
    names = [metric.text for metric in tally.plan.per_query]
    if name in names:  # a table cannot have two columns of one name
        name = "query"
    ids = ids_to_arrow(queries, kinds)
    return pa.table([ids, *map(arrow_of, columns)], names=[name, *names])


def _query_types(one: Input) -> set[Any]:
    return {schema.field(one.columns.query).type for schema in one.source.schemas.values()}
