"""Scoring all predictions of a system: with all labels held, or range by range of query ids."""

import contextlib
import functools
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache, partial
from typing import Any

from rankmill.engine.counted import counted_queries, counts_without_labels
from rankmill.engine.finish import Tallied, state_of, with_confidences
from rankmill.engine.job import Plan
from rankmill.engine.labels import LabelsRead, check_labelled
from rankmill.engine.memory import IdRange, id_ranges, restrict
from rankmill.engine.score import score_lists
from rankmill.engine.state import State
from rankmill.engine.tally import Confidences, Tally
from rankmill.matching.index import RepeatedQueryError
from rankmill.metrics.registry import Metric
from rankmill.sources.inputs import Input, map_lists
from rankmill.sources.long import ScatteredRowsError
from rankmill.sources.ranges_of_ids import UnsortedError
from rankmill.threads import Workers


def tally_system(
    asked: list[Metric],
    labels: Input,
    predictions: Input,
    plan: Plan,
    whole: Callable[[], LabelsRead],
    read_range: Callable[[Input], LabelsRead],
    workers: Workers,
    report: Callable[[int], None],
) -> Tallied:
    """Score all predictions of a system.

    `whole` gives all labels, which other systems use as well; `read_range` reads those of a range.
    `report` is called with the rows done: with fewer than before if the work starts over.
    """
    tally_ranges = partial(
        _tally_ranges, asked, labels, predictions, plan, whole, read_range, workers, report
    )
    ranges = id_ranges(labels, predictions, plan)
    if ranges:
        with contextlib.suppress(UnsortedError):
            return tally_ranges(ranges)
    return tally_ranges([None])  # all labels are held, which does for any order


def _tally_ranges(
    asked: list[Metric],
    labels: Input,
    predictions: Input,
    plan: Plan,
    whole: Callable[[], LabelsRead],
    read_range: Callable[[Input], LabelsRead],
    workers: Workers,
    report: Callable[[int], None],
    ranges: Sequence[IdRange | None],
) -> Tallied:
    """Score one range of queries after the other; all at once if there are none."""
    confidences = Confidences(plan)
    states: list[State] = []
    rows = label_rows = 0
    of_range, index = predictions, whole
    for one in ranges:
        if one is not None:
            of_range = restrict(predictions, one.predictions, one)
            index = cache(partial(read_range, restrict(labels, one.labels, one)))
        tally: Any = None  # its labels are let go of before others are read
        tally = _tally(of_range, plan, index, confidences, workers, partial(_add, report, rows))
        confidences = tally.confidences
        rows += tally.rows
        label_rows += index().rows
        counted = counted_queries(tally, predictions.source.name)
        states.append(state_of(asked, tally, index().counts, counted))
    # No row was in two ranges. One that was in none is not where its footer said.
    if one is not None and (rows, label_rows) != (predictions.source.rows, labels.source.rows):
        raise UnsortedError
    state = with_confidences(functools.reduce(State.merge, states), confidences)
    if not plan.part and not counts_without_labels(plan.semantics):
        check_labelled(labels, state.audit["queries_labelled"])
    return Tallied(state, tally, counted, labels, predictions, workers)


def _add(report: Callable[[int], None], before: int, done: int) -> None:
    report(before + done)


def _tally(
    predictions: Input,
    plan: Plan,
    index: Callable[[], LabelsRead],
    confidences: Confidences,
    workers: Workers,
    report: Callable[[int], None],
) -> Tally:
    """Score predictions; long ones as if queries stood together, until they do not."""
    # Grouping on disk would mix up the order given; all rows are held in memory then anyway.
    to_group = None if plan.keep_rows else plan.memory
    for together in (False,) if predictions.columns.wide else (True, False):
        tally = Tally(index().index, plan, confidences)
        score = partial(score_lists, index=tally.index, plan=plan)
        scored = map_lists(
            score,
            predictions.source,
            predictions.columns,
            workers,
            together=together,
            memory=to_group,
        )
        try:
            with closing(scored) as blocks:
                for block in blocks:
                    tally.add(block)
                    report(tally.rows)
            tally.check_strangers()
        except (ScatteredRowsError, RepeatedQueryError):
            if not together:
                raise
        else:
            break
    return tally
