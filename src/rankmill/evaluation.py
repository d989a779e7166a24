"""evaluate(): labels and predictions in, a Result out."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill import audit
from rankmill.errors import InputError, UsageError
from rankmill.gap import gap_of_pools
from rankmill.hits import Labels
from rankmill.ids import ids_to_arrow, take_ids
from rankmill.labels import LabelIndex, LabelStore, clean_labels, exponential
from rankmill.metrics import DEFAULT_METRICS, parse_all
from rankmill.ragged import Ragged
from rankmill.result import Result
from rankmill.scoring import Plan, Tally, score_lists
from rankmill.sources.base import Source
from rankmill.sources.columns import Columns, check_comparable, find_columns
from rankmill.sources.convert import Lists
from rankmill.sources.opening import list_pieces, open_source
from rankmill.state import MeanState
from rankmill.workers import BatchReader, available_cpus

Progress = Callable[[int, int | None], None]


def evaluate(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    query: str | None = None,
    item: str | None = None,
    score: Any = None,
    rank: str | None = None,
    gain: Any = None,
    label_query: str | None = None,
    label_item: str | None = None,
    gains: str = "linear",
    threads: int | None = None,
    per_query: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Score ranked predictions against labels.

    Queries without a label are left out of the means; a query with labels and no predictions
    scores 0. Labels are a set; a repeated prediction counts where it stands first.

    Parameters
    ----------
    labels, predictions : str, path, list of paths, pyarrow.Table or Ragged
        A Parquet file, several, a glob, a directory (also Hive-partitioned), or arrays in memory.
        *Wide*: one row a query, with a list column of items in rank order and, optionally, one of
        confidences. *Long*: one row a query and item, optionally with a rank or a confidence; by
        rank if there is one, else by falling confidence, else in row order. Ids are integers or
        strings. If one side is a `Ragged`, both are, and list q of both belongs to query q.
    metrics : str or iterable of str
        Names such as "map@12", "first_hit", "gap"; ``rankmill metrics`` prints all.
    query, item, score, rank, gain : str, optional
        Columns, where their names do not tell. `gain` is one of the labels. With `Ragged` inputs,
        `score` and `gain` are Ragged numbers with the offsets of predictions and labels.
    label_query, label_item : str, optional
        Columns of the labels, where they differ from `query` and `item`.
    gains : {"linear", "exp"}
        Whether a label of gain g counts g or 2**g - 1 in ndcg and dcg.
    threads : int, optional
        Threads to use; by default the CPUs that this process may use. The result does not depend
        on it.
    per_query : bool
        Whether the result holds a table of the values a query.
    progress : callable, optional
        Called with the prediction rows done and their number in all.

    Returns
    -------
    Result
        Values, standard errors, the audit of what was counted, and the table per query.

    Raises
    ------
    InputError
        If the data is not as said; the message tells the file, the place, and what to do.
    UsageError
        If the arguments are wrong, such as an unknown metric.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> predictions = pa.table({"user_id": [8, 7], "items": [[4, 3], [1, 5, 2]]})
    >>> result = evaluate(labels, predictions, ["map@12", "first_hit"])
    >>> result["map@12"], result["first_hit"]
    (0.6666666666666666, 0.75)
    """
    began = time.perf_counter()
    asked = parse_all(metrics)
    threads = _checked_threads(threads)
    if gains not in ("linear", "exp"):
        raise UsageError(f"unknown gains {gains!r}; expected 'linear' or 'exp'")
    plan = Plan(
        per_query=[metric for metric in asked if metric.spec.kernel],
        pooled=[metric for metric in asked if not metric.spec.kernel],
        keep_values=per_query,
    )
    _check_ragged(labels, predictions)
    label_source = open_source(labels, "labels", gain)
    prediction_source = open_source(predictions, "predictions", score)
    label_columns = find_columns(
        label_source,
        "labels",
        {"query": label_query or query, "item": label_item or item, "gain": _name(gain, "gain")},
    )
    prediction_columns = find_columns(
        prediction_source,
        "predictions",
        {"query": query, "item": item, "score": _name(score, "score"), "rank": rank},
        need_score=bool(plan.pooled),
    )
    check_comparable((label_source, label_columns), (prediction_source, prediction_columns))

    store, counts = read_labels(label_source, label_columns, gains, threads)
    pieces, to_lists = list_pieces(prediction_source, prediction_columns, threads)
    with BatchReader(pieces, threads) as reader:  # reads on while the labels are indexed
        index = store.finish()
        label_counts = np.diff(index.labels.offsets)
        labelled = int((label_counts > 0).sum())
        if labelled == 0:
            raise InputError(
                f"{label_source.name}: no query has a label, so there is nothing to average"
            )
        tally = Tally(index, plan)
        done = 0
        for block in reader.map(lambda batch: score_lists(to_lists(batch), index, plan)):
            tally.add(block)
            done += len(block.rows)
            if progress is not None:
                progress(done, prediction_source.rows)
    tally.check_strangers()

    missing = labelled - tally.audit["queries_in_both"]
    counts |= {
        "queries_labelled": labelled,
        "queries_only_labelled": missing,
        "empty_label_lists": len(label_counts) - labelled,
    }
    states = {
        metric.text: replace(state, count=labelled)  # all others are 0
        for metric, state in zip(plan.per_query, tally.states, strict=True)
    }
    pooled = {
        metric.text: gap_of_pools(pools, labelled, threads)
        for metric, pools in zip(plan.pooled, tally.pools, strict=True)
    }
    counts["tied_confidences"] = max((value.tied for value in pooled.values()), default=0)
    table = None
    if per_query:
        table = _per_query_table(label_source, label_columns.query, index, states, tally.values)
    return Result(
        metrics={
            metric.text: states[metric.text].mean
            if metric.text in states
            else pooled[metric.text].expected
            for metric in asked
        },
        standard_errors={
            metric.text: states[metric.text].standard_error if metric.text in states else None
            for metric in asked
        },
        bounds={name: (value.worst, value.best) for name, value in pooled.items()},
        queries=labelled,
        audit=audit.add(tally.audit, counts),
        inputs={
            "labels": _described(label_source, label_columns, labels),
            "predictions": _described(prediction_source, prediction_columns, predictions),
        },
        seconds=time.perf_counter() - began,
        per_query=table,
    )


def read_labels(
    source: Source, columns: Columns, gains: str, threads: int
) -> tuple[LabelStore, dict[str, int]]:
    """All label lists, cleaned, and what was counted."""
    pieces, to_lists = list_pieces(source, columns, threads)

    def clean(batch: Any) -> tuple[Lists, Labels, dict[str, int]]:
        lists = to_lists(batch)
        labels, dropped = clean_labels(lists.offsets, lists.items, lists.numbers)
        return lists, exponential(labels, gains), dropped | {"null_labels": lists.nulls}

    counts = audit.empty()
    store = LabelStore(source.rows, source.values(columns.item))
    with BatchReader(pieces, threads) as reader:
        for lists, labels, dropped in reader.map(clean):
            store.add(lists.queries, labels, lists.place)
            counts = audit.add(counts, dropped)
    return store, counts


def _per_query_table(
    source: Source,
    name: str,
    index: LabelIndex,
    states: dict[str, MeanState],
    values: list[np.ndarray],
) -> Any:
    """The queries with labels, in the order of the labels, and their values."""
    rows = np.flatnonzero(np.diff(index.labels.offsets))
    kinds = {schema.field(name).type for schema in source.schemas.values()}
    ids = ids_to_arrow(take_ids(index.queries, rows), kinds)
    return pa.table([ids, *(pa.array(one[rows]) for one in values)], names=[name, *states])


def _described(source: Source, columns: Columns, value: Any) -> dict[str, object]:
    shape = "ragged" if isinstance(value, Ragged) else "wide" if columns.wide else "long"
    return {
        "source": source.name,
        "files": len(source.schemas),
        "rows": source.rows,
        "shape": shape,
        "columns": columns.mapping(),
    }


def _check_ragged(labels: Any, predictions: Any) -> None:
    if isinstance(labels, Ragged) != isinstance(predictions, Ragged):
        one, other = (
            ("labels", "predictions") if isinstance(labels, Ragged) else ("predictions", "labels")
        )
        raise UsageError(
            f"{one} are Ragged and have no query ids, but {other} are not: give both as "
            "Ragged, list q of both for query q, or both with ids"
        )
    if isinstance(labels, Ragged) and len(labels) != len(predictions):
        raise InputError(
            f"there are {len(labels)} lists of labels and {len(predictions)} of predictions; "
            "expected as many, list q of both for query q"
        )


def _name(column: Any, role: str) -> str | None:
    """The name of a column; numbers given for a Ragged stand in a column named after their role."""
    return role if isinstance(column, Ragged) else column


def _checked_threads(threads: int | None) -> int:
    if threads is None:
        return available_cpus()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise UsageError(
            f"threads is {threads!r}; expected a positive integer, or None for all CPUs"
        )
    return threads
