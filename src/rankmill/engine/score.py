"""Scoring one block of predictions against the labels, and adding blocks up."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankmill.columns.ids import id_text
from rankmill.columns.ranked import Lists
from rankmill.engine.job import Plan
from rankmill.errors import InputError
from rankmill.kernels.identity import Ids
from rankmill.matching.hits import Hits, group_hits, match
from rankmill.matching.index import LabelIndex
from rankmill.matching.order import arrange
from rankmill.matching.ties import runs_of, with_hits_at_ends
from rankmill.metrics.fingerprints import Seen
from rankmill.metrics.gap import correct_of_hits, first_confidences
from rankmill.metrics.gap_rows import pool
from rankmill.metrics.mean import MeanState
from rankmill.metrics.values import compute


@dataclass(frozen=True)
class BlockScores:
    """What one block of lists comes to, without the lists."""

    queries: Ids
    place: tuple[str, int]
    input_rows: int
    rows: np.ndarray
    predicted: np.ndarray
    states: list[MeanState]
    values: list[np.ndarray]
    correct: list[np.ndarray]
    kept: list[Any]
    seen: list[Seen]
    audit: dict[str, int]
    counts: dict[str, int]


def score_lists(lists: Lists, index: LabelIndex, plan: Plan) -> BlockScores:
    """Match the lists with the labels of their queries, and compute every metric."""
    semantics = plan.semantics
    lists = arrange(lists, semantics)
    rows = index.find(lists.queries)
    each = semantics.repeated_predictions == "each"
    hits = match(
        index.labels, lists.offsets, lists.items, plan.limit, rows=rows, repeats_count=each
    )
    labelled = hits.label_counts > 0
    predicted = hits.prediction_counts > 0
    unlabelled = predicted & (rows < 0)
    no_relevant = predicted & (rows >= 0) & ~labelled
    _refuse(lists, unlabelled, semantics.unlabelled, "is not among the labels", "unlabelled")
    _refuse(lists, no_relevant, semantics.no_relevant, "is left without a label", "no_relevant")
    order = semantics.order if lists.numbers is not None else "given"
    kept = [_to_keep(lists, hits, plan, order, metric.limit) for metric in plan.pooled]
    if order in ("worst", "best"):
        hits = with_hits_at_ends(hits, lists.offsets, lists.confidences, first=order == "best")
    states, values = _values(lists, hits, plan, order)
    both = labelled & predicted
    return BlockScores(
        queries=lists.queries,
        place=lists.place,
        input_rows=lists.rows,
        rows=rows,
        predicted=predicted,
        states=states,
        values=values,
        correct=[
            correct_of_hits(lists.offsets, hits, lists.confidences, metric.limit)
            for metric in plan.pooled
        ],
        kept=kept,
        seen=[Seen.of(one.confidences if plan.keep_rows else one, plan.part) for one in kept],
        audit={
            "queries_predicted": int(predicted.sum()),
            "queries_in_both": int(both.sum()),
            "queries_only_predicted": int((predicted & ~labelled).sum()),
            "repeated_items": hits.repeats + lists.repeats,
            "null_items": lists.nulls,
            "short_lists": int((both & (hits.prediction_counts < plan.largest_cutoff)).sum()),
            "tied_ranks": lists.tied,
        },
        counts={
            "unlabelled": int(unlabelled.sum()),
            "no_relevant": int(no_relevant.sum()),
            "predicted_labels": int(hits.label_counts[both].sum()),
        },
    )


def _to_keep(lists: Lists, hits: Hits, plan: Plan, order: str, limit: int) -> Any:
    """What gap needs of the first `limit` predictions of each list: all, or their confidences."""
    if plan.keep_rows:
        return pool(lists, hits, limit, order)
    return first_confidences(lists.offsets, lists.confidences, limit)


def _values(
    lists: Lists, hits: Hits, plan: Plan, order: str
) -> tuple[list[MeanState], list[np.ndarray]]:
    """The state of each metric and, if they are kept, its values by query."""
    if order == "expected":
        runs = runs_of(hits, lists.offsets, lists.confidences)
        values = [compute(metric, hits, plan.semantics, runs) for metric in plan.per_query]
        return [MeanState.of(one) for one in values], values if plan.keep_values else []
    patterns = group_hits(hits)
    values = [compute(metric, patterns.hits, plan.semantics) for metric in plan.per_query]
    return (
        [MeanState.of(one, patterns.counts) for one in values],
        [one[patterns.of_query] for one in values] if plan.keep_values else [],
    )


def _refuse(lists: Lists, queries: np.ndarray, choice: str, what: str, field: str) -> None:
    """Raise InputError if one of the queries is there and should not be."""
    if choice == "error" and queries.any():
        source, first_row = lists.place
        row = int(queries.argmax())
        where = f" in row {first_row + row}" if first_row >= 0 else ""
        raise InputError(
            f"{source}: query {id_text(lists.queries, row)}{where} has predictions but {what}, and "
            f"{field} is 'error': drop it, or choose 'skip' or 'zero'"
        )
