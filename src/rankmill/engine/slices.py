"""Slices of queries: which queries are in which, and what a block adds to each, and to sums."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rankmill.columns.ids import take_ids
from rankmill.columns.lists import take_offsets, take_values
from rankmill.engine.job import Job
from rankmill.engine.segments import DERIVED, Classes, Key, Known, compact
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import NO_GAINS, LabelLists
from rankmill.metrics.aggregate import Aggregate, Need, ScoredBlock
from rankmill.metrics.base import MICRO
from rankmill.metrics.sums import TermProducts
from rankmill.results.slices import UNKNOWN

# What is known of queries only once the predictions of the first system are read.
OF_PREDICTIONS = frozenset({"list_length", "unpredicted"})
# So many queries of the labels are looked at at a time, as numbers of all would take memory.
PIECE = 1 << 20


Ways = Mapping[str, Classes]
"""The ways to cut some queries, by their names."""


def ways_at(
    index: LabelIndex, derived: Sequence[str], rows: np.ndarray, lengths: np.ndarray
) -> Ways:
    """Return the ways to cut queries, given their rows in the labels and their predictions."""
    found = {}
    for name, (values, codes) in index.classes.items():
        of_rows = codes[rows] if len(codes) else np.zeros(len(rows), np.int8)
        found[name] = values, np.where(rows < 0, len(values) - 1, of_rows)
    for name in derived:  # of the first system, while its predictions are read
        if name in OF_PREDICTIONS and name not in index.classes:
            values, codes = compact(name, DERIVED[name][1](Known(index, lengths, [lengths > 0])))
            found[name] = values, np.where(rows < 0, len(values) - 1, codes)
    return found


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
    if not places:
        return found
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
    if not job.terms:
        return TermProducts()
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
