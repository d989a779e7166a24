"""Making a Result, with its table of queries, from a tally."""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import array_of_values, arrow_of, pc
from rankmill.columns.ids import (
    KEEP_TEXT,
    id_text,
    ids_to_arrow,
    join_ids,
    other_forms,
    take_ids,
    to_ids,
)
from rankmill.columns.ranked_lists import Lists
from rankmill.columns.seal import seal_of_table
from rankmill.engine.job import Job
from rankmill.engine.segments import Key
from rankmill.engine.slices import places_of, ways_at
from rankmill.engine.state import State
from rankmill.engine.tally import Tally
from rankmill.errors import plural, spoken
from rankmill.kernels.identity import STRING, Ids
from rankmill.matching.index import LabelIndex
from rankmill.matching.order import arrange, changes_lists
from rankmill.metrics.base import MICRO, NO_CUTOFF
from rankmill.metrics.exposure import GIVE_ITEMS
from rankmill.metrics.gap.gap import first_confidences
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.records.state_rows import NOTHING, Seen
from rankmill.metrics.registry import parse
from rankmill.results.result import PER_QUERY, WEIGHT, CountedQueries, Result
from rankmill.semantics.choices import DEFAULT, WHOLE
from rankmill.semantics.presets import PRESETS
from rankmill.sources.inputs.inputs import Input, map_confidences, map_lists
from rankmill.sources.meaning.column_names import ITEM_ALIASES, plain
from rankmill.sources.meaning.several_runs import several_runs
from rankmill.threads import Workers

_LOOKED_AT = 1000
"""Of queries without labels, so many are looked up with other zeros."""
_OF_SUBMISSIONS = {plain(name) for name in ITEM_ALIASES["predictions"]}
"""What the column of items is called in the solutions of competitions."""
_BETWEEN_PAIRS = "items with their confidences", "items separated by spaces"


def finish(
    tally: Tally,
    labels: Input,
    predictions: Input,
    workers: Workers,
    began: float,
    *,
    several: bool = False,
) -> Result:
    """Return the result of a system; it keeps which queries count if `several` are compared."""
    among: dict[str, Among] = {}
    of_slices: dict[Key, dict[str, Among]] = {}
    if not tally.job.part and tally.state.two_passes:  # only of all queries it tells something
        among = count_among(tally.state, predictions, workers, tally.job.memory)
        of_slices = count_in_slices(tally.state, tally.index, predictions, workers, tally.job)
    tally.among = among
    result = tally.state.finish(
        among,
        workers,
        of_slices,
        inputs={
            "labels": labels.described(tally.index.rows),
            "predictions": predictions.described(tally.rows),
            **({} if tally.job.catalogue is None else tally.job.catalogue.described),
        },
        seconds=time.perf_counter() - began,
        counted=_counted(tally, predictions) if several else None,
    )
    result.notes.extend(_notes(tally, result, labels, predictions))
    if not tally.job.keep_values:
        return result
    table = per_query_table(tally, labels, predictions)
    return replace(result, per_query=partial(_with_result, table, result))


def _with_result(table: Callable[[], Any], result: Result, checksum: bool = False) -> Any:
    """Return a table of queries that tells how it was counted, so that a gate may compare with it.

    The same data give the same bytes: the time that it took is left out.
    """
    told, made = result.to_dict(), table()
    del told["seconds"]
    told |= {"values_checksum": seal_of_table(made)} if checksum else {}
    return made.replace_schema_metadata({PER_QUERY: json.dumps(told, allow_nan=False).encode()})


def sealed(result: Result) -> Result:
    """Return a result whose values of queries have a checksum, for a file that is read again.

    To make it takes time, and values that are only compared are never written.
    """
    made = vars(result)["per_query"]
    if isinstance(made, pa.Table):  # it was asked for
        made = partial(_with_result, partial(made.slice), result)
    whole = partial(made, checksum=True) if isinstance(made, partial) else made
    return replace(result, per_query=whole)


def _notes(tally: Tally, result: Result, labels: Input, predictions: Input) -> Iterator[str]:
    """Yield what has to be said of a result beside its values."""
    yield from nothing_in_common(result, partial(_examples, tally))
    mine, theirs = labels.source, predictions.source
    formats = (one.format.partition(", ")[2] for one in (mine, theirs))
    cells, others = (one.replace(*_BETWEEN_PAIRS) for one in formats)
    if cells.startswith("items ") and others.startswith("items ") and cells != others:
        yield (
            f"the labels have {cells}, the predictions {others}: both are read, but a competition "
            "may count the predictions as wrong; 'rankmill check' lists them"
        )
    elif cells.startswith("items ") and plain(labels.columns.item) in _OF_SUBMISSIONS:
        yield from _other_columns(mine.schema.names, theirs.schema.names)
    yield from _other_zeros(tally, result)
    tied = result.audit["tied_ranks"]
    same_score = (
        f"{plural(tied, 'prediction', 'has', 'have')} the same score as another of their query"
    )
    if tied and theirs.format == "TREC run" and result.semantics == DEFAULT:
        yield (
            f"{same_score}: they rank in the order of the file; trec_eval ranks them by document, "
            "as its preset does"
        )
    elif tied and result.semantics == PRESETS["sklearn_ap"].semantics:
        yield (
            f"{same_score}, and scikit-learn counts each with the precision behind the last of "
            "them: its average_precision_score may differ; here they rank in the given order"
        )
    beside = labels.source.schema.names
    yield from map(spoken, several_runs(theirs, predictions.columns, result.audit, beside))
    yield from map(spoken, (*labels.columns.doubts, *predictions.columns.doubts))
    for source in (mine, theirs):
        yield from map(spoken, source.findings.notes())
    yield from catalogue_notes(tally.job)
    yield from tally.job.skipped


def catalogue_notes(job: Job) -> list[str]:
    """Return a note if slices have a catalogue of their own, so that values do not compare."""
    if not job.own_catalogue or not job.by or job.catalogue is not None:
        return []
    return [
        f"{', '.join(job.own_catalogue)}: each slice has a catalogue of its own, of its labels and "
        f"predictions; to compare slices, {GIVE_ITEMS}"
    ]


def _other_columns(labels: list[str], predictions: list[str]) -> Iterator[str]:
    """Yield a note if a submission has other columns than the solution, both lists in cells."""
    if {*labels} - {"Usage"} != {*predictions} - {"Usage"}:
        yield (
            f"the labels have the columns {', '.join(map(repr, labels))}, the predictions "
            f"{', '.join(map(repr, predictions))}: both are read, but a competition may reject the "
            "predictions; 'rankmill check' lists what is wrong"
        )


# Metrics that are 0 only where no prediction within the cutoff is correct.
OF_HITS = ("map", "first_hit", "precision", "recall", "hit", "f1", "ndcg", "dcg", "gap")


def nothing_in_common(result: Result, examples: Callable[[], str] = str) -> list[str]:
    """Return a note if no query is in both inputs, or no prediction is correct: ids may differ."""
    audit = result.audit
    if not (audit["queries_labelled"] and audit["queries_predicted"]):
        return []
    exactly = "ids are compared exactly, with their case and leading zeros"
    if not audit["queries_in_both"]:
        return [f"no query is in both inputs{examples()}; {exactly}"]
    plain = [parse(name) for name in result.metrics]
    cutoffs = [one.k for one in plain if one.name in OF_HITS and not one.summary]
    none = all(value == 0 for value in result.metrics.values())
    if cutoffs and none and replace(result.scope, weight=None) == WHOLE:
        seen = max(cutoffs, key=lambda k: math.inf if k is None else k)
        where = "" if seen is None else f" up to rank {seen}"
        return [f"no prediction is correct{where}; {exactly}"]
    return []


def _examples(tally: Tally) -> str:
    """Return a query id of each input, if the predictions have one that the labels do not have."""
    stranger = tally.first_stranger()
    if stranger is None or not len(tally.index.queries.keys):
        return ""
    first = id_text(tally.index.queries, 0)
    return f": the labels have {first}, the predictions {stranger}"


def _other_zeros(tally: Tally, result: Result) -> list[str]:
    """Return a note if queries of the predictions would have labels with other leading zeros.

    So many of them are looked at as take no time; ids that are integers have no zeros in front.
    """
    audit = result.audit
    unmatched = audit["queries_only_predicted"] and audit["queries_only_labelled"]
    if not unmatched or tally.index.queries.kind != STRING:
        return []
    some = tally.some_strangers(_LOOKED_AT)
    if not len(some.keys):  # they are among the labels, without any
        return []
    strange = ids_to_arrow(some, {pa.large_binary()}).to_pylist()
    meant: dict[str, str] = {}
    for forms in other_forms(strange):
        ids = to_ids(array_of_values(forms, pa.binary()), "the query ids")
        for place in np.flatnonzero(tally.unseen(ids)).tolist():
            meant.setdefault(id_text(some, place), id_text(ids, place))
    if not meant:
        return []
    found, label = min(meant.items())
    more = "at least " * (audit["queries_only_predicted"] > len(strange))
    told = plural(len(meant), "query", "has", "have")
    return [
        f"{more}{told} no labels because of zeros in the id, such as {found}, which is {label} in "
        f"the labels: keep ids as text ({KEEP_TEXT})"
    ]


def _counted(tally: Tally, predictions: Input) -> CountedQueries | None:
    """Return which queries count, or None if all systems count the same, or not all are known."""
    state = tally.state
    queries = state.audit["queries_labelled"] + state.audit["empty_label_lists"]
    whole = tally.counted.closing.queries == state.queries and len(tally.has_labels) == queries
    if not whole or not state.semantics.counts_by_predictions:
        return None
    others = None
    if tally.counted.strangers:
        others = ids_to_arrow(tally.strangers(), predictions.id_types("query"))
    return CountedQueries(tally.counted.among_labels, others)


def per_query_table(tally: Tally, labels: Input, predictions: Input) -> Callable[[], Any]:
    """Return what makes the table of the queries that count, and holds no more than these.

    It has the values of labelled queries in the order of the input, then others by id.
    """
    counted = tally.counted
    name = labels.columns.query
    kinds = labels.id_types("query")
    rows = np.flatnonzero(counted.among_labels)
    queries = take_ids(tally.index.queries, rows)
    names = [metric.text for metric in tally.job.per_query]
    columns = [tally.values[each][rows] for each in names]
    without = np.flatnonzero(~tally.has_labels[rows])
    # What has no label, and no value of its own, adds nothing to a micro-average.
    added = [np.nan if one.summary == MICRO else 0.0 for one in tally.job.per_query]
    for column, more in zip(columns, added, strict=True) if counted.no_relevant is not None else ():
        column[without] = more + (counted.no_relevant or 0.0)
    if counted.strangers:
        strangers = tally.strangers()
        kinds |= predictions.id_types("query")
        queries = join_ids([queries, strangers])
        others = np.full(len(strangers.keys), counted.unlabelled)
        columns = [np.append(one, others + more) for one, more in zip(columns, added, strict=True)]
    for each, alike in tally.alike.items():
        names.append(each)
        columns.append(np.append(alike[rows], np.full(len(queries.keys) - len(rows), np.nan)))
    if tally.index.weights is not None:  # then strangers do not count
        names.append(WEIGHT)
        columns.append(tally.index.weights[rows])
    if name in names:  # a table cannot have two columns of one name
        name = "query"
    return partial(_table_of, queries, kinds, columns, [name, *names])


def _table_of(queries: Ids, kinds: set[Any], columns: list[np.ndarray], names: list[str]) -> Any:
    values = (
        pc.if_else(pc.is_nan(arrow_of(one)), pa.NULL, arrow_of(one))
        if np.isnan(one.min(initial=0.0))  # quick, as most have none
        else arrow_of(one)
        for one in columns
    )
    return pa.table([ids_to_arrow(queries, kinds), *values], names=names)


# ------------------------------------------------------------------ the second pass


def count_among(
    state: State, predictions: Input, workers: Workers, memory: int
) -> dict[str, Among]:
    """Count all confidences among the correct ones; they are read again if they were not kept."""
    held = {name: one.held() for name, one in state.two_passes.items()}
    if any(confidences is None for confidences in held.values()):
        return reread_among(state, predictions, workers, memory)
    counted: dict[str, Among] = {}
    alike = _alike(state)
    for name, confidences in held.items():
        if alike[name] == name:
            counter = state.two_passes[name].counter(workers)
            for part in confidences or ():
                counter.add(part)
            counted[name] = counter.finish()
    return {name: counted[first] for name, first in alike.items()}


def count_in_slices(
    state: State, index: LabelIndex, predictions: Input, workers: Workers, job: Job
) -> dict[Key, dict[str, Among]]:
    """Count all confidences of each slice among its correct ones, as `count_among` does."""
    slices = {
        key: one for key, one in state.slices.items() if one.two_passes and key[0] in state.by
    }
    if all(one.held() is not None for each in slices.values() for one in each.two_passes.values()):
        return {key: count_among(one, predictions, workers, 0) for key, one in slices.items()}
    limits = limits_of(state)
    counters = {
        (key, name): each.two_passes[name].counter(workers)
        for key, each in slices.items()
        for name in limits
    }

    def within(lists: Lists) -> list[tuple[tuple[Key, str], Any]]:
        lists = arrange(lists, state.semantics)
        rows = index.find(lists.queries)
        ways = ways_at(index, (), rows, np.zeros(0, np.int64), lists.queries)
        parts = {key: lists.take(at) for key, at in places_of(ways).items() if key in slices}
        return [
            ((key, name), first_confidences(one.offsets, one.confidences, limit))
            for key, one in parts.items()
            for name, limit in limits.items()
        ]

    source, columns = predictions.source, predictions.columns
    with closing(map_lists(within, source, columns, workers, memory=job.memory)) as blocks:
        for block in blocks:
            for place, confidences in block:
                counters[place].add(confidences)
    return {key: {name: counters[key, name].finish() for name in limits} for key in slices}


def _alike(state: State) -> dict[str, str]:
    """Return for each metric of the second pass the first one that counts the same."""
    metrics: dict[str, Any] = {**state.two_passes}
    if len(metrics) == 1:
        return {name: name for name in metrics}
    limits = limits_of(state)
    first: dict[tuple[Any, ...], str] = {}
    return {
        name: first.setdefault(
            (limits[name], type(one).counter, id(one) if one.runs else one.fingerprint("")), name
        )
        for name, one in metrics.items()
    }


def reread_among(
    state: State, predictions: Input, workers: Workers, memory: int, *, checksum: bool = False
) -> dict[str, Among]:
    """Read the confidences of an opened input a second time, and count them."""
    alike = _alike(state)
    counters = {
        name: state.two_passes[name].counter(workers) for name in dict.fromkeys(alike.values())
    }
    seen = dict.fromkeys(counters, NOTHING)
    limits = limits_of(state)
    arranged: Callable[[Any], Any] | None = None
    if needs_items(state):
        arranged = partial(arrange, semantics=state.semantics)

    def within(offsets: Any, confidences: Any) -> list[tuple[Any, Seen]]:
        each = [first_confidences(offsets, confidences, limits[name]) for name in counters]
        return [(one, Seen.of(one, checksum)) for one in each]

    source, columns = predictions.source, predictions.columns
    how: dict[str, Any] = {"memory": memory, "arrange": arranged}
    how["whole"] = all(limit == NO_CUTOFF for limit in limits.values())
    read = map_confidences(within, source, columns, workers, **how)
    with closing(read) as blocks:
        for block in blocks:
            for name, (confidences, new) in zip(counters, block, strict=True):
                counters[name].add(confidences)
                seen[name] = seen[name].merge(new)
    counted = {name: replace(one.finish(), seen=seen[name]) for name, one in counters.items()}
    return {name: counted[first] for name, first in alike.items()}


def limits_of(state: State) -> dict[str, int]:
    """Return the last rank whose confidence counts, for each metric of the second pass."""
    depth = state.scope.depth or NO_CUTOFF
    passes = state.two_passes
    return {one.text: min(one.limit, depth) for one in state.metrics if one.text in passes}


def needs_items(state: State) -> bool:
    """Tell whether the second pass has to read the items, as some of them may not count."""
    return changes_lists(state.semantics) or state.audit["null_items"] > 0
