"""evaluate(): labels and predictions in, a Result out."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill import audit
from rankmill.errors import InputError, UsageError
from rankmill.gap import CorrectState, GapCounter, GapValue, first_confidences, gap_of_states
from rankmill.hits import Labels
from rankmill.ids import ids_to_arrow, take_ids
from rankmill.labels import LabelIndex, LabelStore, clean_labels, exponential
from rankmill.metrics import DEFAULT_METRICS, Metric, parse_all
from rankmill.ragged import Ragged
from rankmill.result import Result
from rankmill.scoring import BlockScores, Plan, Tally, score_lists
from rankmill.sources.base import Source
from rankmill.sources.columns import Columns, Role, check_comparable, find_columns
from rankmill.sources.convert import Lists
from rankmill.sources.opening import list_pieces, open_source, reread_confidences
from rankmill.workers import BatchReader, available_cpus

Progress = Callable[[int, int | None], None]
# What the confidences of gap may take before they are read a second time instead of kept.
MEMORY = 1 << 30


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
    memory: int = MEMORY,
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
    memory : int
        Bytes that the confidences of all predictions may take in memory for gap; if they need
        more, they are read from the file a second time. The result does not depend on it.
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
    results = evaluate_runs(
        labels,
        {"": predictions},
        metrics,
        query=query,
        item=item,
        score=score,
        rank=rank,
        gain=gain,
        label_query=label_query,
        label_item=label_item,
        gains=gains,
        threads=threads,
        memory=memory,
        per_query=per_query,
        progress=progress,
    )
    return results[""]


def evaluate_runs(
    labels: Any,
    runs: Mapping[str, Any],
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
    memory: int = MEMORY,
    per_query: bool = True,
    progress: Progress | None = None,
) -> dict[str, Result]:
    """Score several systems against the same labels, which are read once.

    Parameters
    ----------
    labels
        As for `evaluate`.
    runs : mapping of str to predictions
        The predictions of each system, each as for `evaluate`.

    Returns
    -------
    dict of str to Result
        The result of each system. All other parameters and the errors are those of `evaluate`.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.Ragged.from_lists([[1], [2]])
    >>> runs = {"old": [[1], [3]], "new": [[1], [3, 2]]}
    >>> runs = {name: rankmill.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> results = rankmill.evaluate_runs(labels, runs, ["first_hit"])
    >>> {name: result["first_hit"] for name, result in results.items()}
    {'old': 0.5, 'new': 0.75}
    """
    began = time.perf_counter()
    asked = parse_all(metrics)
    threads = _positive(threads, "threads") if threads is not None else available_cpus()
    memory = _positive(memory, "memory")
    if gains not in ("linear", "exp"):
        raise UsageError(f"unknown gains {gains!r}; expected 'linear' or 'exp'")
    if not runs:
        raise UsageError("there are no predictions to evaluate")
    pooled = [metric for metric in asked if not metric.spec.kernel]
    for predictions in runs.values():
        _check_ragged(labels, predictions)
    label_input = _open(
        labels,
        "labels",
        gain,
        {"query": label_query or query, "item": label_item or item, "gain": _name(gain, "gain")},
    )
    chosen = {"query": query, "item": item, "score": _name(score, "score"), "rank": rank}
    inputs = {
        name: _open(predictions, "predictions", score, chosen, need_score=bool(pooled))
        for name, predictions in runs.items()
    }
    for one in inputs.values():
        check_comparable((label_input.source, label_input.columns), (one.source, one.columns))
    store, counts = read_labels(label_input, gains, threads)
    index: LabelIndex | None = None
    rows = sum(one.source.rows for one in inputs.values())
    done = 0
    results = {}
    for name, one in inputs.items():
        plan = Plan(
            per_query=[metric for metric in asked if metric.spec.kernel],
            pooled=pooled,
            keep_values=per_query,
            keep_confidences=_bytes_of_confidences(one, pooled) <= memory,
        )
        pieces, to_lists = list_pieces(one.source, one.columns, threads)
        with BatchReader(pieces, threads) as reader:  # reads on while the labels are indexed
            index = index or _index(store, label_input)
            tally = Tally(index, plan)
            score_batch = partial(_score_batch, to_lists=to_lists, index=index, plan=plan)
            for block in reader.map(score_batch):
                tally.add(block)
                done += len(block.rows)
                if progress is not None:
                    progress(done, rows)
        tally.check_strangers()
        gaps = _gaps(tally, one, threads)
        results[name] = _result(asked, tally, gaps, counts, label_input, one, began)
        began = time.perf_counter()
    return results


@dataclass(frozen=True)
class Input:
    """An opened input, and its columns."""

    source: Source
    columns: Columns
    ragged: bool

    def described(self) -> dict[str, object]:
        """What was read, for the result."""
        return {
            "source": self.source.name,
            "files": len(self.source.schemas),
            "rows": self.source.rows,
            "shape": "ragged" if self.ragged else "wide" if self.columns.wide else "long",
            "columns": self.columns.mapping(),
        }


def _open(
    value: Any,
    role: Role,
    numbers: Any,
    chosen: Mapping[str, str | None],
    *,
    need_score: bool = False,
) -> Input:
    source = open_source(value, role, numbers)
    columns = find_columns(source, role, chosen, need_score=need_score)
    return Input(source, columns, isinstance(value, Ragged))


def _index(store: LabelStore, labels: Input) -> LabelIndex:
    index = store.finish()
    if not len(index.labels.items.keys):
        raise InputError(
            f"{labels.source.name}: no query has a label, so there is nothing to average"
        )
    return index


def _score_batch(
    batch: Any, to_lists: Callable[[Any], Lists], index: LabelIndex, plan: Plan
) -> BlockScores:
    return score_lists(to_lists(batch), index, plan)


def _bytes_of_confidences(predictions: Input, pooled: list[Metric]) -> int:
    """The memory that the confidences of all predictions take, for as many metrics."""
    if not pooled:
        return 0
    name = str(predictions.columns.score)
    return 8 * predictions.source.values(name) * len(pooled)


def _gaps(tally: Tally, predictions: Input, threads: int) -> dict[str, GapValue]:
    """The metrics over all predictions, from the confidences kept or read once more."""
    metrics = tally.plan.pooled
    if not metrics:
        return {}
    counters = [GapCounter(CorrectState.of(parts), threads) for parts in tally.correct]
    if tally.plan.keep_confidences:
        for counter, kept in zip(counters, tally.confidences, strict=True):
            while kept:
                counter.add(kept.pop())
    else:
        nulls = tally.audit["null_items"] > 0
        for offsets, confidences in reread_confidences(
            predictions.source, predictions.columns, threads, nulls
        ):
            for metric, counter in zip(metrics, counters, strict=True):
                counter.add(first_confidences(offsets, confidences, metric.limit))
    return {
        metric.text: gap_of_states(counter.correct, counter.finish(), tally.labelled, threads)
        for metric, counter in zip(metrics, counters, strict=True)
    }


def _result(
    asked: list[Metric],
    tally: Tally,
    gaps: dict[str, GapValue],
    counts: dict[str, int],
    labels: Input,
    predictions: Input,
    began: float,
) -> Result:
    counts = counts | {
        "queries_labelled": tally.labelled,
        "queries_only_labelled": tally.labelled - tally.audit["queries_in_both"],
        "empty_label_lists": len(tally.index.queries.keys) - tally.labelled,
        "tied_confidences": max((value.tied for value in gaps.values()), default=0),
    }
    states = {
        metric.text: replace(state, count=tally.labelled)  # all others are 0
        for metric, state in zip(tally.plan.per_query, tally.states, strict=True)
    }
    table = _per_query_table(labels, tally) if tally.plan.keep_values else None
    means = {name: state.mean for name, state in states.items()}
    errors = {name: state.standard_error for name, state in states.items()}
    means |= {name: value.expected for name, value in gaps.items()}
    return Result(
        metrics={metric.text: means[metric.text] for metric in asked},
        standard_errors={metric.text: errors.get(metric.text) for metric in asked},
        bounds={name: (value.worst, value.best) for name, value in gaps.items()},
        queries=tally.labelled,
        audit=audit.add(tally.audit, counts),
        inputs={"labels": labels.described(), "predictions": predictions.described()},
        seconds=time.perf_counter() - began,
        per_query=table,
    )


def read_labels(labels: Input, gains: str, threads: int) -> tuple[LabelStore, dict[str, int]]:
    """All label lists, cleaned, and what was counted."""
    pieces, to_lists = list_pieces(labels.source, labels.columns, threads)

    def clean(batch: Any) -> tuple[Lists, Labels, dict[str, int]]:
        lists = to_lists(batch)
        cleaned, dropped = clean_labels(lists.offsets, lists.items, lists.numbers)
        return lists, exponential(cleaned, gains), dropped | {"null_labels": lists.nulls}

    counts = audit.empty()
    store = LabelStore(labels.source.rows, labels.source.values(labels.columns.item))
    with BatchReader(pieces, threads) as reader:
        for lists, cleaned, dropped in reader.map(clean):
            store.add(lists.queries, cleaned, lists.place)
            counts = audit.add(counts, dropped)
    return store, counts


def _per_query_table(labels: Input, tally: Tally) -> Any:
    """The queries with labels, in the order of the labels, and their values."""
    rows = np.flatnonzero(np.diff(tally.index.labels.offsets))
    name = labels.columns.query
    kinds = {schema.field(name).type for schema in labels.source.schemas.values()}
    ids = ids_to_arrow(take_ids(tally.index.queries, rows), kinds)
    names = [metric.text for metric in tally.plan.per_query]
    return pa.table([ids, *(pa.array(one[rows]) for one in tally.values)], names=[name, *names])


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


def _positive(number: Any, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise UsageError(f"{name} is {number!r}; expected a positive integer")
    return number
