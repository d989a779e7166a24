"""explain(): the walk down one query's list, or that of gap, which ends at what evaluate() says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.explain.trace_view import Trace
from rankmill.analysis.explain.walk import check_walk, choice_text, id_of, lists_of, walk_list
from rankmill.columns.buffers import arrow_of
from rankmill.columns.ids import id_text, id_value, ids_to_arrow, join_ids, slice_ids, take_ids
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.engine.finish import finish
from rankmill.engine.first_pass import Progress, progress_of, run
from rankmill.engine.held_labels import HeldLabels, clean_lists, with_catalogue
from rankmill.engine.job import Job, open_job, parse_job, runs_of
from rankmill.engine.score import known_lists, score_lists
from rankmill.engine.tally import Tally
from rankmill.errors import InputError, UsageError, positive, spoken, told_shortly
from rankmill.kernels.identity import Ids
from rankmill.matching.index import LabelIndex, LabelStore
from rankmill.matching.label_lists import NO_GAINS, LabelLists
from rankmill.metrics.aggregate import aggregate_of, list_walk_of
from rankmill.metrics.gap.gap import Gap, join, rank_pooled
from rankmill.metrics.needs import Confidences
from rankmill.metrics.registry import parse
from rankmill.results.curves import thinned
from rankmill.results.result import Result
from rankmill.semantics.choices import Choices
from rankmill.semantics.semantics import Counting
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Catalogue, Labels, LabelsLike, Predictions, PredictionsLike
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers


@told_shortly
@reading_again
def explain(
    labels: LabelsLike,
    predictions: PredictionsLike,
    metric: str,
    query_id: Any = None,
    *,
    rows: int | None = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> Trace:
    """Show how the value of a metric is computed for one query's list, rank by rank.

    The value is that of `evaluate`, to the last bit. So is ``total / divisor``, but where equal
    confidences count with an expected value, and for ild, epd and their cosines, which are added up
    in another order there: the two may differ by 1e-15 of it, these by 1e-14.

    Parameters
    ----------
    labels, predictions
        As for `evaluate`.
    metric : str
        One metric, such as "map@12".
    query_id : int or str, optional
        The query; an integer can be given as text. For `Ragged` inputs, the number of the list.
        Leave it out for gap, which ranks all predictions in one list, which must fit in memory,
        with about 200 bytes per prediction. Leave it out also for other metrics of all predictions,
        such as auprc and ece, whose rows are the precision-recall curve or the bins. Means over
        lists, such as novelty and ild, have a value for each query with predictions; what they need
        of the catalogue is read.
    rows : int, optional
        How many rows to show; all if not given. Those of a curve are at even steps of recall.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    Trace

    Raises
    ------
    InputError
        If the data is not as said, or neither side has the query.
    UsageError
        If the arguments are wrong.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.arrays.Ragged.from_lists([[1], [2, 3]])
    >>> predictions = rankmill.arrays.Ragged.from_lists([[5], [2, 9, 2, 3]])
    >>> rankmill.explain(labels, predictions, "map@4", 1)
    rank  item  hit  precision      term      sum  note
    ----  ----  ---  ---------  --------  -------  --------------
       1  2     yes   1.000000  1.000000  1.00000
       2  9     no    0.500000  0.000000  1.00000
       3  2     no    0.333333  0.000000  1.00000  repeats rank 1
       4  3     yes   0.500000  0.500000  1.50000
    <BLANKLINE>
    labels       2: 2, 3
    predictions  4
    divisor      min(k, R), which is R without a cutoff (ap_divisor min_k_labels)
    map@4 of query 1 = 1.5 / 2 = 0.75
    """
    if isinstance(query_id, str) and _is_metric(query_id) and not _is_metric(metric):
        raise UsageError(
            f"the metric is {metric!r} and the query {query_id!r}: the metric comes first, as in "
            f"explain(labels, predictions, {query_id!r}, {metric!r})"
        )
    asked = parse(metric)
    check_walk(asked)
    given = Labels.of(labels)
    alone = Catalogue.of(catalogue).of_one_query()
    if catalogue is not None and list_walk_of(asked) is not None:
        alone = catalogue
    pooled = Confidences in aggregate_of(asked).needs
    holds_rows = aggregate_of(asked) is Gap
    how: Any = {"memory": memory, "keep_values": not pooled, "keep_rows": holds_rows}
    job = parse_job([metric], given, semantics, alone, **how)
    # A query's own value has no weight.
    job = replace(job, scope=replace(job.scope, weight=None))
    rows = rows if rows is None else positive(rows, "rows")
    if pooled and query_id is not None:
        raise UsageError(f"{metric} ranks the predictions of all queries: leave out --query-id")
    if not pooled and query_id is None:
        raise UsageError(
            f"{metric} has a value for each query: choose one with --query-id; 'rankmill head' "
            "shows the first ids of a file"
        )
    with (
        open_job(job, given, {"": Predictions.of(predictions)}) as (label_input, inputs),
        Workers(threads) as workers,
    ):
        job = with_catalogue(job, alone, label_input, workers)
        if pooled:
            told = progress_of(progress)
            tally, result = _evaluated(job, label_input, inputs[""], workers, told)
            if not holds_rows:
                return _trace_curve(job, result, rows)
            return _trace_gap(job, tally, result, inputs[""], rows)
        query = id_of(query_id, label_input)
        found = _trace_query(job, query, label_input, inputs[""], workers)
    return _first_rows(found, rows)


def _is_metric(text: Any) -> bool:
    try:
        return bool(parse(text))
    except UsageError:
        return False


def _trace_query(
    job: Job, query: Ids, labels: Input, predictions: Input, workers: Workers
) -> Trace:
    """Evaluate the only query, and walk down its list."""
    (metric,), semantics = job.metrics, job.semantics
    (of_labels,), (lists,) = (lists_of(query, one, workers) for one in (labels, predictions))
    if of_labels is None and lists is None:
        raise InputError(
            f"query {id_text(query, 0)} is neither in {labels.source.name} nor in "
            f"{predictions.source.name}: choose one that is"
        )
    index = index_of(query, of_labels, job)
    tally, seen = Tally(index, job), 0
    if lists is None:
        none = slice_ids(query, 0, 0)
        lists = Lists(query, np.zeros(2, np.int64), none, None, 0, 0, Place(""), 0)
    else:
        if job.catalogue is not None:
            whole = lists
            lists, _ = known_lists(lists, job.catalogue, job.scope.drop_seen)
            seen = len(whole.items.keys) - len(lists.items.keys)
        tally.add(score_lists(lists, index, job, tally.empty))
    state = tally.close(predictions.source.name)
    found = walk_list(metric, lists, index, predictions, job)
    if seen:
        facts = {"seen in training": f"{seen:,}, dropped: later ones move up"}
        found = replace(found, facts=found.facts | facts)
    status = _status(of_labels is not None, len(lists.items.keys) > 0, index, semantics)
    if status and list_walk_of(metric) is None:
        found = replace(found, divisor=None, facts={"query": status} | found.facts)
        found.facts.pop("divisor", None)
    value = state.finish({}, workers).metrics[metric.text]
    return replace(found, query=id_value(query, 0), value=value)


def index_of(query: Ids, lists: Lists | None, job: Job) -> LabelIndex:
    """The labels of one query, as `read_labels` has those of all."""
    none = slice_ids(query, 0, 0)
    if lists is None:
        return LabelIndex(none, LabelLists(np.zeros(1, np.int64), none, NO_GAINS))
    store = LabelStore(1, 0)
    store.add(*clean_lists(lists, job))
    return store.finish()


def _status(known: bool, predicted: bool, index: LabelIndex, semantics: Choices) -> str:
    """What the query lacks, and what semantics make of that; "" if it lacks nothing."""
    if not known and not predicted:
        return "not among the labels, and without predictions"
    if not known:
        field, lacks = "unlabelled", "not among the labels"
    elif not len(index.labels.items.keys):
        field, lacks = "no_relevant", "without a label"
    elif not predicted:
        field, lacks = "unpredicted", "without predictions"
    else:
        return ""
    return f"{lacks}: {choice_text(field, getattr(semantics, field))}"


def _trace_gap(
    job: Job, tally: Tally, result: Result, predictions: Input, rows: int | None
) -> Trace:
    """Return the list of all predictions, in `rows` rows at most."""
    (metric,), semantics = job.metrics, job.semantics
    gap = tally.state.aggregates[metric.text]
    assert isinstance(gap, Gap)
    pooled = join(list(gap.kept or ()))
    ranked = rank_pooled(pooled, semantics.gap_ties)
    order = ranked.order[:rows]
    count = len(order)
    table = {
        "rank": arrow_of(np.arange(1, count + 1)),
        "query": ids_to_arrow(take_ids(pooled.queries, order), predictions.id_types("query")),
        "item": ids_to_arrow(take_ids(pooled.items, order), predictions.id_types("item")),
        "confidence": arrow_of(pooled.confidences[order]),
        "correct": arrow_of(pooled.correct[order]),
        "precision": arrow_of(ranked.precision[:count]),
        "term": arrow_of(ranked.terms[:count]),
        "sum": arrow_of(ranked.terms.cumsum()[:count]),
    }
    facts = {
        "predictions": f"{len(ranked.order):,}, of which correct: {int(pooled.correct.sum()):,}",
        "divisor": choice_text("gap_total", semantics.gap_total),
        "ties": choice_text("gap_ties", semantics.gap_ties),
    }
    value, how = result.metrics[metric.text], (semantics, job.scope)
    quotient = math.fsum(ranked.terms), float(gap.total(tally.state.totals))
    found = Trace(metric.text, None, value, *quotient, pa.table(table), facts, *how)
    return _first_rows(found, rows, len(ranked.order))


def _first_rows(found: Trace, rows: int | None, count: int | None = None) -> Trace:
    """The trace with its first rows only; `count` is how many there are in all."""
    count = found.table.num_rows if count is None else count
    if rows is None or rows >= count:
        return found
    todo = spoken(f"use --rows {count} on the command line, rows={count} in Python")
    facts = found.facts | {"rows": f"the first {rows:,} of {count:,}; for all, {todo}"}
    return replace(found, table=found.table.slice(0, rows), facts=facts)


def _evaluated(
    job: Job, labels: Input, predictions: Input, workers: Workers, progress: Progress | None
) -> tuple[Tally, Result]:
    """Return what all predictions come to, with its state, and the result."""
    with closing(run(job, HeldLabels(labels), {"": predictions}, workers, progress)) as tallies:
        tally = next(tallies)
        return tally, finish(tally, labels, predictions, workers, 0)


def _trace_curve(job: Job, result: Result, rows: int | None) -> Trace:
    """Return the curve of the only metric of a job, in `rows` rows at most."""
    (metric,), semantics = job.metrics, job.semantics
    table = result.curves[metric.text]()
    facts = {}
    if "gap_total" in metric.spec.fields:
        facts["recall"] = f"of {choice_text('gap_total', semantics.gap_total)}"
    count = len(table["correct"])
    table = thinned(table, rows)
    if (kept := len(table["correct"])) < count:
        facts["rows"] = f"{kept:,} of {count:,}, by even steps of correct predictions"
    value = result.metrics[metric.text]
    columns = {name: arrow_of(column) for name, column in table.items()}
    return Trace(
        metric.text, None, value, value or 0.0, None, pa.table(columns), facts, semantics, job.scope
    )


# ------------------------------------------------------------------ several systems side by side


class Listed(NamedTuple):
    """A query: its labels, and for each system the items of its list and whether each is right."""

    query: int | str
    labels: list[int | str]
    lists: dict[str, list[tuple[int | str, bool]]]


@reading_again
def side_by_side(
    labels: Any,
    runs: Mapping[str, Any],
    queries: Sequence[int | str],
    ranks: int,
    *,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
) -> list[Listed]:
    """Return the lists of some queries up to a rank, in the order that counts.

    All inputs are read once more. A list that the semantics drop items of is shown without these.
    Errors are those of `evaluate`.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> side_by_side(lists([[1], [2, 3]]), {"new": lists([[5], [2, 9]])}, [1], 10)
    [Listed(query=1, labels=[2, 3], lists={'new': [(2, True), (9, False)]})]
    """
    given, alone = Labels.of(labels), Catalogue.of(catalogue).of_one_query()
    # The walk of recall tells at each rank whether there is a hit, and it is always defined.
    how: Any = {"memory": memory, "keep_values": False}
    job = parse_job([f"recall@{ranks}"], given, semantics, alone, **how)
    job = replace(job, scope=replace(job.scope, weight=None))
    with (
        open_job(job, given, runs_of(runs)) as (label_input, inputs),
        Workers(threads) as workers,
    ):
        job = with_catalogue(job, alone, label_input, workers)
        ids = join_ids([id_of(one, label_input) for one in queries])
        of_labels = lists_of(ids, label_input, workers)
        of_systems = {name: lists_of(ids, one, workers) for name, one in inputs.items()}
        found = []
        for i, query in enumerate(queries):
            index = index_of(slice_ids(ids, i, i + 1), of_labels[i], job)
            items = index.labels.items
            lists = {
                name: [] if of[i] is None else _marked(of[i], index, inputs[name], job)
                for name, of in of_systems.items()
            }
            right = [id_value(items, place) for place in range(len(items.keys))]
            found.append(Listed(query, right, lists))
    return found


def _marked(lists: Any, index: Any, predictions: Input, job: Job) -> list[tuple[int | str, bool]]:
    """Return the items of the only list, and whether each is right."""
    if job.catalogue is not None:
        lists, _ = known_lists(lists, job.catalogue, job.scope.drop_seen)
    table = walk_list(job.metrics[0], lists, index, predictions, job).table
    rows = table.select(["rank", "item", "hit"]).to_pylist()
    return [(row["item"], bool(row["hit"])) for row in rows if row["rank"] is not None]
