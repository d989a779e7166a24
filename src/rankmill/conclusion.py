"""From what was tallied to a State, a Result, and the table of queries."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill import audit
from rankmill.buffers import arrow_of
from rankmill.counting import Counted, counted_queries
from rankmill.gap import AmongState, CorrectState, GapCounter
from rankmill.ids import ids_to_arrow, join_ids, take_ids
from rankmill.metrics import Metric
from rankmill.parts import State, reread_among
from rankmill.pooled import join, rank_pooled
from rankmill.reading import Input
from rankmill.result import Result
from rankmill.scoring import Tally
from rankmill.state import MeanState


def state_of(asked: list[Metric], tally: Tally, counts: dict[str, int], counted: Counted) -> State:
    """The state of all that was tallied; `counts` is the audit of the labels."""
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
        queries=counted.queries,
        gap_total=totals[tally.plan.semantics.gap_total],
        audit=audit.add(tally.audit, counts),
        means={
            metric.text: replace(state.merge(ones), count=counted.queries)  # all others are 0
            for metric, state in zip(tally.plan.per_query, tally.states, strict=True)
        },
        correct={
            metric.text: CorrectState.of(parts)
            for metric, parts in zip(tally.plan.pooled, tally.correct, strict=True)
        },
    )


def conclude(
    asked: list[Metric],
    tally: Tally,
    counts: dict[str, int],
    labels: Input,
    predictions: Input,
    threads: int,
    began: float,
) -> Result:
    """The result of what was tallied."""
    counted = counted_queries(tally, predictions.source.name)
    state = state_of(asked, tally, counts, counted)
    result = state.result(_among(state, tally, predictions, threads), threads)
    if tally.plan.ordered_ties:
        result.metrics.update(_gaps_in_order(state, tally))
    return replace(
        result,
        inputs={"labels": labels.described(), "predictions": predictions.described()},
        seconds=time.perf_counter() - began,
        per_query=_per_query_table(labels, predictions, tally, counted)
        if tally.plan.keep_values
        else None,
    )


def _among(state: State, tally: Tally, predictions: Input, threads: int) -> dict[str, AmongState]:
    """Where all confidences fall among the correct ones, from those kept or read once more."""
    if tally.kept is None:
        return reread_among(state, predictions, threads, tally.plan.memory)
    counted = {}
    for (name, correct), parts in zip(state.correct.items(), tally.kept, strict=True):
        counter = GapCounter(correct, threads)
        if tally.plan.keep_rows:
            for part in parts:
                counter.add(part.confidences)
        else:
            while parts:  # what is counted is let go of
                counter.add(parts.pop())
        counted[name] = counter.finish()
    return counted


def _gaps_in_order(state: State, tally: Tally) -> dict[str, float]:
    """The values of gap where ties have an order of their own, from all predictions."""
    ties = tally.plan.semantics.gap_ties
    return {
        name: math.fsum(rank_pooled(join(parts), ties).terms) / state.total(name)
        for name, parts in zip(state.correct, tally.kept or [], strict=True)
    }


def _per_query_table(labels: Input, predictions: Input, tally: Tally, counted: Counted) -> Any:
    """The queries that count and their values: in the order of the labels, others behind by id."""
    name = labels.columns.query
    kinds = _query_types(labels)
    rows = np.flatnonzero(counted.among_labels)
    queries = take_ids(tally.index.queries, rows)
    values = [np.where(tally.has_labels, one, counted.no_relevant) for one in tally.values]
    columns = [one[rows] for one in values]
    if counted.strangers:
        strangers = tally.strangers()
        kinds |= _query_types(predictions)
        queries = join_ids([queries, strangers])
        more = np.full(len(strangers.keys), counted.unlabelled)
        columns = [np.concatenate([one, more]) for one in columns]
    names = [metric.text for metric in tally.plan.per_query]
    if name in names:  # a table cannot have two columns of one name
        name = "query"
    ids = ids_to_arrow(queries, kinds)
    return pa.table([ids, *map(arrow_of, columns)], names=[name, *names])


def _query_types(one: Input) -> set[Any]:
    return {schema.field(one.columns.query).type for schema in one.source.schemas.values()}
