"""Slices of queries: which queries are in which, and what a block adds to each, and to sums.

And what the slices of a state come to: values, weighted sums, and how they merge and travel.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from rankmill.columns.ids import take_ids
from rankmill.columns.lists import take_offsets, take_values
from rankmill.columns.seal import hash_ids
from rankmill.engine.job import Job
from rankmill.engine.segments import (
    DERIVED,
    OF_PREDICTIONS,
    Classes,
    Key,
    Known,
    check_slices,
    compact,
    natural,
)
from rankmill.errors import InputError, UsageError
from rankmill.kernels.identity import Ids
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import NO_GAINS, LabelLists
from rankmill.metrics.aggregate import Aggregate, Need, Ratio, ScoredBlock
from rankmill.metrics.aggregate import Value as Finished
from rankmill.metrics.base import MICRO
from rankmill.metrics.records.state_rows import Row, damaged, field, text
from rankmill.metrics.sums import Term, TermProducts
from rankmill.records import record
from rankmill.results.slices import UNKNOWN, MetricOfSlice, WeightedSum, weighted_sum

# ------------------------------------------------------------------ groups of a jackknife
# The group of a query is a hash of its id, or of the least id of its cluster. It depends on nothing
# else: not on the order of rows, files, threads or the process. So the groups of two systems
# hold the same queries.


# More groups tell no more of how far chance moves a metric, and take more time and memory.
GROUPS = 20
# The name of this way to cut queries; no column is called so.
GROUP = "\0group"
# It must be the same in every process, and odd.
SEED = np.uint64(0x2545F4914F6CDD1D)


def groups_of(queries: Ids) -> np.ndarray:
    """Return the group of each query; signed and unsigned integers of one value are in the same."""
    return _group(hash_ids(queries, SEED))


def classes_of_groups(
    queries: Ids, clusters: np.ndarray | None
) -> tuple[list[str | None], np.ndarray]:
    """Return the groups as slices; `clusters` are the codes of those of queries, or -1."""
    hashed = hash_ids(queries, SEED)
    if clusters is not None:
        known = clusters >= 0
        of = clusters[known]
        least = np.full(int(of.max(initial=-1)) + 1, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(least, of, hashed[known])
        hashed[known] = least[of]
    return [*map(str, range(GROUPS)), None], _group(hashed)


def _group(hashed: np.ndarray) -> np.ndarray:
    return (hashed % np.uint64(GROUPS)).astype(np.int8)


@record(eq=False)
class QueryGroups:
    """Whether queries are cut into groups: no more once these take more memory than allowed."""

    needed: int = 0  # the bytes that they took when they were given up; 0 while they fit

    def fit(self, some: Iterable[Aggregate], memory: int) -> bool:
        """Return whether what aggregates of groups hold fits into so many bytes."""
        held = sum(one.held_bytes for one in some)
        if held > memory:
            self.needed = held
        return not self.needed


# So many queries of the labels are looked at at a time, as numbers of all would take memory.
PIECE = 1 << 20

OfState = TypeVar("OfState")
Values = Mapping[str, Finished]
Ways = Mapping[str, Classes]
"""The ways to cut some queries, by their names."""


def ways_at(
    index: LabelIndex,
    derived: Sequence[str],
    rows: np.ndarray,
    lengths: np.ndarray,
    queries: Ids | None = None,
) -> Ways:
    """Return the ways to cut queries, given their rows in the labels and their predictions.

    Of `queries` that are not among the labels, only what their id tells is known: the group of a
    jackknife, and what a table has.
    """
    found = {}
    strange = np.flatnonzero(rows < 0)
    for name, (values, codes) in index.classes.items():
        of_rows = np.full(len(rows), len(values) - 1) if not len(codes) else codes[rows]
        of_rows[strange] = len(values) - 1
        if queries is not None and len(strange):
            of_rows[strange] = of_others(index, name, take_ids(queries, strange))
        found[name] = values, of_rows
    for name in derived:  # of the first system, while its predictions are read
        if name in OF_PREDICTIONS and name not in index.classes:
            known = Known(index, lengths, [lengths > 0])
            values, codes = compact(name, DERIVED[name].classes(known))
            found[name] = values, np.where(rows < 0, len(values) - 1, codes)
    return found


def of_others(index: LabelIndex, name: str, queries: Ids) -> np.ndarray:
    """Return the places, among the values of a way, of queries that are not among the labels."""
    if name == GROUP:
        return groups_of(queries)
    if name not in index.beyond:
        return np.full(len(queries.keys), len(index.classes[name][0]) - 1)
    lookup, codes = index.beyond[name]
    return np.asarray(codes[lookup.find(queries)])


def pieces_of(index: LabelIndex) -> Iterator[tuple[slice, Ways]]:
    """Yield pieces of the queries of the labels, and the ways to cut them."""
    for start in range(0, len(index.queries.keys), PIECE):
        at = slice(start, start + PIECE)
        yield at, {name: (v, codes[at]) for name, (v, codes) in index.classes.items()}


def places_of(ways: Ways) -> dict[Key, np.ndarray]:
    """Return the places of the queries of each slice that has one."""
    found = {}
    for name, (values, codes) in ways.items():
        order = np.argsort(codes, kind="stable")
        there, starts = np.unique(codes[order], return_index=True)
        for place, at in zip(there.tolist(), np.split(order, starts)[1:], strict=True):
            found[name, values[place]] = at
    return found


def update_slices(
    places: Mapping[Key, np.ndarray],
    empties: Mapping[Key, Mapping[str, Aggregate]],
    job: Job,
    of_queries: Mapping[str, ScoredBlock],
    whole: ScoredBlock | None = None,
) -> dict[Key, dict[str, Aggregate]]:
    """Return what aggregates of a block come to in each slice.

    `of_queries` has, for metrics with a kernel, the block with a value for each query. All others
    take what slices have of the `whole` block.
    """
    found: dict[Key, dict[str, Aggregate]] = {}
    wanted = job.of_slice.asked
    others = [] if whole is None else [name for name in wanted if name not in of_queries]
    for key, at in places.items():
        empty = empties[key]
        blocks = {name: _taken(of_queries[name], at) for name in wanted if name in of_queries}
        if whole is not None and others:
            blocks |= dict.fromkeys(others, _lists_of(whole, at, job))
        found[key] = {name: empty[name].update(one, wanted[name]) for name, one in blocks.items()}
    return found


def _lists_of(block: ScoredBlock, at: np.ndarray, job: Job) -> ScoredBlock:
    """Return a block of the lists of some queries, with what metrics need besides."""
    needs: dict[type[Need], Any] = {}
    part = block._replace(
        lists=block.lists.take(at),
        hits=block.hits.take(at),
        found=block.found.take(at),
        predicted=block.predicted[at],
        rows=None if block.rows is None else block.rows[at],
        needs=needs,
    )
    for need in job.needs:
        needs[need] = need.find(part, job.catalogue)
    return part


def _taken(block: ScoredBlock, at: np.ndarray) -> ScoredBlock:
    """Return a block with the values of some queries; its lists stay those of all."""
    arrays = {name: getattr(block, name) for name in ("values", "divisors", "weights")}
    taken: dict[str, Any] = {n: None if one is None else one[at] for n, one in arrays.items()}
    return block._replace(**taken)


def moments_of(job: Job, ways: Ways, of_queries: Mapping[str, ScoredBlock]) -> TermProducts:
    """Return the moments of the terms of sums that queries of a block have."""
    some = next(iter(of_queries.values()))
    nothing = np.zeros(len(some.predicted)), None, some.weights
    every = {name: (one.values, one.divisors, one.weights) for name, one in of_queries.items()}
    return _moments(job, ways, {name: every.get(name, nothing) for name, *_ in job.terms})


def moments_at_close(
    job: Job, ways: Ways, counts: np.ndarray, ones: np.ndarray, weights: np.ndarray | None
) -> TermProducts:
    """Return what queries add to moments because they count, and score 1 or nothing.

    In a micro-average they add nothing.
    """
    of_mean = ones.astype(np.float64), counts.astype(np.float64), weights
    nothing = np.zeros(len(counts)), np.zeros(len(counts)), weights
    metrics = [one.metric for one in job.terms.values()]
    arrays = {one.text: nothing if one.summary else of_mean for one in metrics}
    return _moments(job, ways, arrays, closing=True)


def _moments(
    job: Job, ways: Ways, arrays: Mapping[str, Any], *, closing: bool = False
) -> TermProducts:
    """Return the moments, given values, divisors and weights for each metric."""
    columns, means = [], []
    for metric, by, value in job.terms:
        values, divisors, times = arrays[metric]
        divisors = np.ones(len(values)) if divisors is None else divisors
        times = 1.0 if times is None else times
        if by:
            there, codes = ways[by]
            known = None if value == UNKNOWN else value
            place = there.index(known) if known in there else -1
            times = times * (codes == place)
        columns.append((values * times, divisors * times))
        means.append(job.terms[metric, by, value].metric.summary != MICRO)
    return TermProducts.of(columns, () if closing else means)


def labels_at(index: LabelIndex, rows: np.ndarray) -> LabelIndex:
    """Return the index of some queries, with their labels alone."""
    labels = index.labels
    offsets = take_offsets(labels.offsets, rows)
    at = take_values(labels.offsets, np.arange(len(labels.items.keys)), rows, offsets)
    own = LabelLists(offsets, take_ids(labels.items, at), NO_GAINS)
    return LabelIndex(take_ids(index.queries, rows), own)


# ------------------------------------------------------------------ what slices come to


def in_order(slices: Mapping[Key, OfState], by: tuple[str, ...]) -> dict[Key, OfState]:
    """Return slices as they are shown; UsageError if they are too many."""
    for name in by:
        check_slices([name], sum(of == name for of, _ in slices))
    order = sorted(slices, key=lambda key: (by.index(key[0]), natural(key[1])))
    return {key: slices[key] for key in order}


def merged(one: Mapping[Key, Any], other: Mapping[Key, Any]) -> dict[Key, Any]:
    """Return the slices of two states."""
    both = {**one}
    for key, state in other.items():
        both[key] = both[key].merge(state) if key in both else state
    return both


def packed(
    by: tuple[str, ...], sums: tuple[str, ...], slices: Mapping[Key, Any], moments: TermProducts
) -> dict[str, Any]:
    """Return the fields of a row; slices are the bytes of an Arrow stream with a row each."""
    if not (by or sums or slices):
        return {}
    rows = [
        {"slice": value, "slice.by": name, **state.to_row()}
        for (name, value), state in in_order(slices, (*by, GROUP)).items()
    ]
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    texts = {"by": "\n".join(by), "sums": "\n".join(sums)}
    return {**texts, "slices": bytes(sink.getvalue()), **moments.to_row()}


def unpacked(row: Row, read: Callable[[Row], OfState]) -> dict[str, Any]:
    """Return the fields of a state that `packed` wrote; UsageError if it wrote others."""
    if "slices" not in row:
        return {}
    by, sums = (tuple(text(row, name).splitlines()) for name in ("by", "sums"))
    try:
        rows = pa.ipc.open_stream(field(row, "slices")).read_all().to_pylist()
        found = {(one["slice.by"], one["slice"]): read(one) for one in rows}
    except (pa.ArrowException, TypeError, KeyError) as error:
        raise damaged(f"slices: {error}") from None
    if not {name for name, _ in found} <= {*by, GROUP}:
        raise damaged("its slices are not those of by")
    moments = TermProducts.from_row(row)
    return {"by": by, "sums": sums, "slices": found, "moments": moments}


def rows_of(slices: Mapping[Key, tuple[int, Values]]) -> list[MetricOfSlice]:
    """Return the rows of `Result.by`."""
    return [
        MetricOfSlice(by, value, metric, one.value, one.standard_error, one.averaged(queries))
        for (by, value), (queries, values) in slices.items()
        for metric, one in values.items()
    ]


def sums_of(
    sums: Mapping[str, list[Term]],
    values: Values,
    slices: Mapping[Key, tuple[int, Values]],
    by: tuple[str, ...],
    moments: TermProducts,
    ratio: Callable[[Key | None, str], Ratio | None],
) -> dict[str, WeightedSum]:
    """Return weighted sums; those of means and micro-averages have an error."""
    found = {}
    linear = [*dict.fromkeys(one.place for each in sums.values() for one in each if one.linear)]
    for name, terms in sums.items():
        parts, weights = [], dict.fromkeys(linear, 0.0)
        ratios: dict[tuple[str, str, str], Ratio | None] = dict.fromkeys(linear)
        for one in terms:
            key = slice_of(name, one, slices, by)
            value = (slices[key][1] if key else values)[one.metric.text].value
            if value is None:
                raise InputError(f"the sum {name!r} has no value, as {one} has none")
            parts.append(one.weight * value)
            if one.linear:
                weights[one.place] += one.weight
                ratios[one.place] = ratio(key, one.metric.text)
        error = None
        if all(one.linear for one in terms):
            error = moments.standard_error([*weights.values()], [*ratios.values()])
        found[name] = weighted_sum(math.fsum(parts), error)
    return found


def check_terms(sums: Mapping[str, list[Term]], by: tuple[str, ...]) -> None:
    """Raise UsageError if a sum has a slice of what does not cut."""
    for name, terms in sums.items():
        for one in terms:
            if one.by and one.by not in by:
                there = f"slices are only of {', '.join(by)}" if by else "there are no slices"
                raise UsageError(
                    f"the sum {name!r} has {one}, but {there}: name {one.by!r} in --by"
                )


def slice_of(name: str, term: Term, slices: Mapping[Key, Any], by: tuple[str, ...]) -> Key | None:
    """Return the slice of a term of a sum; None for all queries."""
    check_terms({name: [term]}, by)
    if not term.by:
        return None
    key = term.by, None if term.value == UNKNOWN else term.value
    if key not in slices:
        texts = [UNKNOWN if value is None else value for of, value in slices if of == term.by]
        shown = ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")
        raise InputError(
            f"the sum {name!r} has {term}, but no query that counts has {term.value!r} in "
            f"{term.by!r}; there are {shown}"
        )
    return key
