"""The walk down one list: what stands at each rank, what it is divided by, and its rows as a table.

The sum at a rank is what the metric counts of the list that ends there, and the term is what that
rank adds. Metrics that are means over lists, such as novelty and ild, have a walk of their own.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from operator import index
from string import whitespace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.analysis.explain.trace_view import Trace
from rankmill.columns.buffers import array_of_values, arrow_of
from rankmill.columns.elementary import discounts
from rankmill.columns.ids import (
    id_value,
    ids_to_arrow,
    is_text_type,
    join_ids,
    slice_ids,
    take_ids,
    to_ids,
)
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.job import Job
from rankmill.engine.score import match_block, whole_block
from rankmill.errors import UsageError, plural
from rankmill.kernels.hits import mark_repeats
from rankmill.kernels.identity import SEED, Ids
from rankmill.matching.catalogue import Training
from rankmill.matching.hits import Hits
from rankmill.matching.index import LabelIndex, look_up, repeated_query
from rankmill.matching.label_lists import LabelLists
from rankmill.matching.order import Runs, arrange, only_judged, runs_of, within
from rankmill.metrics.aggregate import aggregate_of, list_walk_of
from rankmill.metrics.base import NO_CUTOFF, Columns, Metric
from rankmill.metrics.needs import Confidences
from rankmill.metrics.quantities import counted, divided_by
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.metrics.texts import SUMMARISED
from rankmill.metrics.values import Matched
from rankmill.semantics.choices import CHOICES, Choices
from rankmill.sources.inputs.inputs import Input, map_lists
from rankmill.sources.roles.source import Batch, read_batches
from rankmill.sources.rows.long import group_lists, long_rows
from rankmill.sources.rows.wide import queries_of, wide_lists
from rankmill.threads import Workers

# ------------------------------------------------------------------ the list of a query


def id_of(query: Any, one: Input) -> Ids:
    """Return a query id in the type of an input's ids: an integer (also from text) or a text.

    Raises UsageError if the input cannot have such an id.
    """
    name = one.columns.query
    kind = one.source.schema.field(name).type
    if is_text_type(kind):
        if not isinstance(query, str | bytes):
            raise UsageError(
                f"query id {query!r} is not text, but the ids in column {name!r} are: give text"
            )
        if isinstance(query, str):
            # As `tidy` reads the ids.
            query = query if one.source.exact_ids else query.strip(whitespace)
            try:
                query = query.encode(errors="surrogateescape")  # Python's form of undecoded bytes
            except UnicodeEncodeError:
                raise UsageError(f"query id {query!r} is not valid UTF-8 text") from None
        return to_ids(array_of_values([query], pa.binary()), "the query id")
    try:
        number = int(query) if isinstance(query, str | bytes) else index(query)
        return to_ids(np.array([number], np.uint64 if number > 0 else np.int64), "the query id")
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"query id {query!r} is not a 64-bit integer, but the ids in column {name!r} of "
            f"{one.source.name} are"
        ) from None


def lists_of(queries: Ids, one: Input, workers: Workers) -> list[Lists | None]:
    """Return the list of each of some different queries; None where the input lacks the query.

    All rows are read once, and InputError is raised if two rows of a wide input have a query.
    """
    lookup, _ = look_up(queries)

    def rows_of(batch: Batch) -> list[tuple[int, Batch]]:
        numbers = lookup.find(queries_of(batch, one.columns))
        places = np.flatnonzero(numbers >= 0)
        ends = (np.diff(places) > 1) | (np.diff(numbers[places]) != 0)
        runs = np.split(places, np.flatnonzero(ends) + 1) if len(places) else []
        return [
            (
                int(numbers[run[0]]),
                Batch(batch.data.slice(run[0], len(run)), batch.place.onwards(int(run[0]))),
            )
            for run in runs
        ]

    def lists_at(lists: Lists) -> list[tuple[int, Lists]]:
        numbers = lookup.find(lists.queries)
        places = np.flatnonzero(numbers >= 0).tolist()
        return [(int(numbers[place]), lists.slice(place, place + 1)) for place in places]

    read: Any  # of rows or lists, each with the number of its query
    if one.source.lists is None:
        read = read_batches(rows_of, one.source, one.columns.names(), workers)
    else:  # each list belongs to one query
        read = map_lists(lists_at, one.source, one.columns, workers)
    parts: list[list[Any]] = [[] for _ in range(len(queries.keys))]
    with closing(read) as blocks:
        for block in blocks:
            for number, part in block:
                parts[number].append(part)
    if one.source.lists is not None:
        return [of[-1] if of else None for of in parts]
    return [_list_in(of, slice_ids(queries, i, i + 1), one) for i, of in enumerate(parts)]


def _list_in(parts: list[Batch], query: Ids, one: Input) -> Lists | None:
    """Return the list of a query, given all of its rows."""
    if not parts:
        return None
    if not one.columns.wide:
        return group_lists([long_rows(part, one.columns) for part in parts], one.columns)
    rows = [(part.place, i) for part in parts for i in range(part.data.num_rows)]
    if len(rows) > 1:
        raise repeated_query(query, 0, *rows[1])
    return wide_lists(parts[0], one.columns)


# ------------------------------------------------------------------ the walk

# Arrow cannot take rows of views.
_LARGE = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
# So many labels are listed by name.
LISTED = 20
NOTHING = np.empty(0)


def check_walk(metric: Metric) -> None:
    """Raise UsageError if a metric has no walk; nothing else could stand for it."""
    spec = metric.spec
    own = SUMMARISED.get(metric.name, ("",))[0] == metric.name  # gauc is not the mean of lists
    if metric.summary and not own:
        raise UsageError(
            f"{metric.text} has a summary over all queries, {metric.summary!r}: leave it out"
        )
    if metric.judged_only:
        raise UsageError(
            f"leave judged_only out of {metric.text}, as explain drops predictions before all: "
            "type --judged-only on the command line, judged_only=True of Semantics in Python"
        )
    if not _is_explained(metric):
        where = "evaluate has its value for each query"
        if spec.kernel is None:
            where = "it is of all lists together, and no list has a value of its own"
        names = [name for name, one in REGISTRY.items() if _is_explained(parse(one.example))]
        raise UsageError(
            f"explain does not support {metric.text}: {where}. explain takes {', '.join(names)}"
        )


def _is_explained(metric: Metric) -> bool:
    if metric.spec.kernel is not None or list_walk_of(metric) is not None:
        return not metric.spec.columns
    return Confidences in aggregate_of(metric).needs


def items_to_hit(labels: LabelLists, metric: Metric, hits: Hits) -> Ids:
    """The items among which hits are: by falling gain, so that those that count stand first."""
    if metric.spec.needs_judged and labels.judged is not None:
        labels = labels.judged
    distinct = int(hits.label_counts[0])
    if len(labels.all_offsets):  # repeats are among those
        distinct = len(labels.items.keys)
        if len(hits.label_gains) and not metric.spec.needs_judged:
            distinct = int((labels.gains >= hits.label_gains.min()).sum())
    return slice_ids(labels.items, 0, distinct)


def last_rank(metric: Metric, hits: Hits) -> int:
    """The last rank that a metric looks at in the only list of `hits`."""
    predictions, labels = int(hits.prediction_counts[0]), int(hits.label_counts[0])
    return min(predictions, labels if metric.spec.within_labels else metric.limit)


def standing(
    hits: Hits, confidences: np.ndarray | None, order: str
) -> tuple[np.ndarray, Hits, Columns]:
    """The places of the only list in the order that counts, its hits, and what stands there.

    For "worst" and "best" the places of equal confidence are put in another order, hits last by
    rising gain or first by falling gain. Under "expected" a place has the chance of a hit there,
    over all orders of its run.
    """
    count = int(hits.prediction_counts[0])
    hit, gain = np.zeros(count, np.bool_), np.zeros(count)
    hit[hits.ranks - 1], gain[hits.ranks - 1] = True, hits.gains
    places, columns = np.arange(count), {}
    if confidences is not None:
        run = np.append(True, confidences[1:] != confidences[:-1])[:count].cumsum() - 1
        if order in ("worst", "best"):
            sign = 1 if order == "worst" else -1
            places = np.lexsort((sign * gain, hit == (order == "worst"), run))
            hit, gain = hit[places], gain[places]
            hits = hits._replace(ranks=np.flatnonzero(hit) + 1, gains=gain[hit])
        elif order == "expected" and count:
            columns["chance"] = (np.bincount(run, hit) / np.bincount(run))[run]
        columns["confidence"] = confidences[places]
    return places, hits, {**columns, "hit": hit, "gain": gain}


def sums_of(metric: Metric, hits: Hits, runs: Runs | None, count: int, semantics: Choices) -> Any:
    """What the metric counts with its cutoff at each rank, float64[count]; the last is its own."""
    spec = metric.spec
    how = *metric.arguments, *(spec.chosen(semantics) if spec.chosen else ())
    runs = None if spec.expected is None else runs
    name = spec.kernel if runs is None else spec.expected
    cutoffs = [*range(1, count), metric.limit][-count:] if count else []
    if runs is not None:
        return np.array([counted(name or "", hits, k, *how, runs=runs)[0] for k in cutoffs])
    # Some have no cutoff: the list that ends there stands for it. Own functions may divide by what
    # depends on the cutoff.
    ends = [(_up_to(hits, k), metric.limit if callable(name) else k) for k in cutoffs]
    return np.array([counted(name or "", some, k, *how)[0] for some, k in ends])


def _up_to(hits: Hits, k: int) -> Hits:
    """The hits of the only list up to a rank."""
    found = int((hits.ranks <= k).sum())
    ranks, gains = hits.ranks[:found], hits.gains[:found]
    return hits._replace(offsets=np.array([0, found]), ranks=ranks, gains=gains)


def choice_text(field: str, choice: str) -> str:
    """What a choice of semantics means, and its name."""
    return f"{CHOICES[field][choice].removeprefix('divided by ')} ({field} {choice})"


def divisor_of(metric: Metric, hits: Hits, semantics: Choices) -> tuple[float, str] | None:
    """What the sum over the only list is divided by, and what that is; None if by nothing."""
    if metric.spec.divisor is None:
        return None
    divisor = float(divided_by(hits, metric, semantics)[0])
    meanings = (choice_text(field, getattr(semantics, field)) for field in metric.spec.fields)
    return divisor if divisor > 0 else 1.0, metric.spec.divisor.meaning.format(*meanings)


def repeats_of(
    lists: Lists, labels: LabelLists, rows: np.ndarray, job: Job, count: int
) -> tuple[Ids, np.ndarray]:
    """Repeats that were dropped, and how many predictions stand before each; up to a rank."""
    if job.semantics.repeated_predictions != "drop":
        return slice_ids(lists.items, 0, 0), np.empty(0, np.int64)
    listed = arrange(lists, replace(job.semantics, repeated_predictions="each"))
    if job.scope.judged_only:
        listed = only_judged(listed, labels, rows)
    repeat = np.empty(len(listed.items.keys), np.bool_)
    mark_repeats(listed.offsets, listed.items, SEED, repeat)
    before = np.cumsum(~repeat)
    places = np.flatnonzero(repeat & (before <= count))
    return take_ids(listed.items, places), before[places]


def table_of(
    items: Ids,
    columns: dict[str, np.ndarray],
    ideal: np.ndarray,
    dropped: tuple[Ids, np.ndarray],
    kinds: set[Any],
) -> pa.Table:
    """A row a rank, with the best list beside it if that is longer, and dropped items between."""
    count = len(items.keys)
    width = max(count, len(ideal))
    order = np.argsort(np.append(np.arange(width), dropped[1] - 0.5), kind="stable")
    at_rank, at_item = order < width, order < count
    rank = arrow_of(order + 1, ~at_rank)
    item_place = np.where(at_rank, order, order - width + count)
    kinds = {_LARGE.get(kind, kind) for kind in kinds}
    item = ids_to_arrow(join_ids([items, dropped[0]]), kinds)
    item = item.take(arrow_of(item_place, at_rank & ~at_item))
    table = {"rank": rank, "item": item}
    place = arrow_of(order, ~at_item)
    table |= {name: arrow_of(column).take(place) for name, column in columns.items()}
    if len(ideal):
        gain = np.append(ideal, np.zeros(width - len(ideal)))
        best = {"ideal_gain": gain, "ideal_sum": (gain / discounts(width)[1:]).cumsum()}
        place = arrow_of(order, ~at_rank)
        table |= {name: arrow_of(one).take(place) for name, one in best.items()}
    table["note"] = array_of_values(_notes(item.to_pylist(), rank.to_pylist()), pa.string())
    return pa.table(table)


def _notes(items: list[Any], ranks: list[int | None]) -> list[str]:
    """Which items repeat an earlier one, and at which rank that stands."""
    first: dict[Any, int | None] = {}
    notes = []
    for item, rank in zip(items, ranks, strict=True):
        note = ""
        if item is None:
            note = "no prediction"
        elif item in first:
            note = f"repeats rank {first[item]}" + (", dropped" if rank is None else "")
        else:
            first[item] = rank
        notes.append(note)
    return notes


def tell_labels(items: Ids, count: int) -> str:
    """How many labels there are, and the first of them."""
    named = [str(id_value(items, i)) for i in range(min(LISTED, len(items.keys)))]
    more = ["..."] if len(items.keys) > LISTED else []
    return f"{count:,}: {', '.join([*named, *more])}" if count else "0"


def tell_predictions(lists: Lists, arranged: Lists, dropped: Mapping[str, int], count: int) -> str:
    """How many predictions there are, and which of them do not count."""
    predictions = len(arranged.items.keys)
    text = f"{predictions:,}"
    if count < predictions:
        text += f", of which the first {count:,} count"
    uncounted = {
        "repeats dropped": arranged.repeats,
        "null items dropped": lists.nulls,
        "beyond the depth": dropped["items_beyond_depth"],
        "unjudged, dropped": dropped["unjudged_items"],
    }
    return text + "".join(f"; {what}: {one:,}" for what, one in uncounted.items() if one)


class _Walked(NamedTuple):
    """The walk down the items of one list, of which `hits` are right."""

    items: Ids
    columns: Columns
    hits: Hits
    order: str
    ideal: np.ndarray = NOTHING
    divisor: tuple[float, str] | None = None  # the number, and what it is
    facts: Mapping[str, str] = MappingProxyType({})
    of_items: bool = True  # whether rows are items


def walk_list(
    metric: Metric, lists: Lists, index: LabelIndex, predictions: Input, job: Job
) -> Trace:
    """The walk down the only list, without its query and value."""
    arranged = arrange(lists, job.semantics)
    rows = index.find(arranged.queries)
    arranged, dropped = within(arranged, index.labels, rows, job.scope)
    found, judged = match_block(arranged, index, rows, job, NO_CUTOFF)
    if list_walk_of(metric) is not None:
        walked = _walked_by_items(metric, arranged, found, (index, rows), job)
    else:
        hits = Matched(judged or found, job.semantics, job.gain_function).hits(metric)
        walked = _walked_by_hits(metric, arranged, hits, job.semantics)
    items, columns, hits, order = walked[:4]
    columns.setdefault("sum", columns["term"].cumsum())
    if walked.of_items:
        repeats = repeats_of(lists, index.labels, rows, job, len(items.keys))
        table = table_of(items, columns, walked.ideal, repeats, predictions.id_types("item"))
    else:
        table = pa.table({name: arrow_of(one) for name, one in columns.items()})
    labels = tell_labels(items_to_hit(index.labels, metric, hits), int(hits.label_counts[0]))
    facts = {
        "judged" if metric.spec.needs_judged else "labels": labels,
        "predictions": tell_predictions(lists, arranged, dropped, len(items.keys)),
        **walked.facts,
    }
    if order != "given":
        facts["order"] = choice_text("order", order)
    divisor = None
    if walked.divisor is not None:
        divisor, facts["divisor"] = walked.divisor
    total = float(columns["sum"][-1]) if len(columns["sum"]) else 0.0
    return Trace(metric.text, None, None, total, divisor, table, facts, job.semantics, job.scope)


def _walked_by_hits(metric: Metric, arranged: Lists, hits: Hits, semantics: Choices) -> _Walked:
    """The walk by the hits, whose sums are what a kernel counts."""
    order = semantics.order if arranged.numbers is not None else "given"
    runs = None
    if order == "expected" and arranged.numbers is not None:
        runs = runs_of(hits, arranged.offsets, arranged.numbers)
    places, hits, columns = standing(hits, arranged.numbers, order)
    count = last_rank(metric, hits)
    columns = {name: one[:count] for name, one in columns.items()}
    if metric.spec.gains == "subtopics" or (hits.gains == 1).all():
        del columns["gain"]
    if metric.spec.needs_judged:
        columns = {"judged" if name == "hit" else name: one for name, one in columns.items()}
    elif metric.spec.kernel == "sum_precisions" and order != "expected":
        columns["precision"] = columns["hit"].cumsum() / np.arange(1, count + 1)
    sums = sums_of(metric, hits, runs, count, semantics)
    columns |= {"term": np.diff(sums, prepend=0.0), "sum": sums}
    ideal = metric.spec.ideal
    best = NOTHING if ideal is None else ideal(hits, metric, semantics)
    items = take_ids(arranged.items, places[:count])
    return _Walked(items, columns, hits, order, best, divisor_of(metric, hits, semantics))


def _walked_by_items(
    metric: Metric, arranged: Lists, found: Hits, rows: tuple[LabelIndex, np.ndarray], job: Job
) -> _Walked:
    """The walk by what the items are, such as how novel, which the catalogue tells."""
    walk, catalogue = list_walk_of(metric), job.catalogue
    assert walk is not None
    assert catalogue is not None
    scored, _ = whole_block(arranged, found, None, np.diff(arranged.offsets) > 0, rows, job)
    walked = walk(scored, metric.limit, catalogue, *metric.arguments)
    items = slice_ids(arranged.items, 0, min(len(arranged.items.keys), metric.limit))
    facts = {"catalogue": plural(len(catalogue), "item")}
    if catalogue.training is not None:
        facts = {"training": _history(catalogue.training, arranged.queries), **facts}
    divisor = None if walked.divisor is None else (walked.divisor, walked.meaning)
    how = scored.order, NOTHING, divisor, facts, walked.of_items
    return _Walked(items, walked.columns, scored.hits, *how)


def _history(training: Training, query: Ids) -> str:
    """What the query had in training, among how many queries."""
    labels, (row,) = training.index.labels, training.index.find(query)
    start, end = labels.offsets[row : row + 2] if row >= 0 else (0, 0)
    had = tell_labels(slice_ids(labels.items, int(start), int(end)), int(end - start))
    return f"{plural(training.queries, 'query')}; this one had {had}"
