"""The second pass: count all confidences among those of the correct predictions."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from rankmill.columns.ranked_lists import Lists
from rankmill.engine.job import Job
from rankmill.engine.segments import Key
from rankmill.engine.slices import places_of, ways_at
from rankmill.engine.state import State
from rankmill.matching.index import LabelIndex
from rankmill.matching.order import arrange, changes_lists
from rankmill.metrics.base import NO_CUTOFF
from rankmill.metrics.gap.gap import first_confidences
from rankmill.metrics.gap.gap_counts import Among
from rankmill.metrics.records.state_rows import NOTHING, Seen
from rankmill.sources.inputs.inputs import Input, map_confidences, map_lists
from rankmill.threads import Workers


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
    slices = {key: one for key, one in state.slices.items() if one.two_passes}
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
        ways = ways_at(index, (), index.find(lists.queries), np.zeros(0, np.int64))
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
