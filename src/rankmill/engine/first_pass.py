"""The first pass: score all predictions of each system and add the blocks up."""

import math
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, cast

from rankmill.columns.ids import is_text_type
from rankmill.columns.lists import value_type
from rankmill.engine.cuts import with_ways
from rankmill.engine.held_labels import (
    HeldLabels,
    check_labelled,
    check_width,
    read_in_order,
    read_labels,
    with_catalogue,
)
from rankmill.engine.job import Job
from rankmill.engine.score import score_lists
from rankmill.engine.state import State
from rankmill.engine.tally import Tally
from rankmill.errors import InputError, ResourceError, UsageError
from rankmill.io.overflow import Overflow
from rankmill.matching.index import LabelIndex
from rankmill.results import audit
from rankmill.sources.inputs.inputs import Input, map_lists
from rankmill.sources.nouns import Catalogue
from rankmill.sources.roles.shares import Sample, Share, divided
from rankmill.threads import Workers

Report = Callable[[int], None]
Progress = Callable[[int, int | None], None]


def run(
    job: Job,
    labels: HeldLabels,
    inputs: Mapping[str, Input],
    workers: Workers,
    progress: Progress | None = None,
    catalogue: Catalogue | None = None,
) -> Generator[Tally, None, None]:
    """Score the predictions of each system, one after the other; the labels are read only once.

    Yields the tally of each system. Its `state` covers all queries. The values of each query are in
    it if the job keeps them. What it has on disk is gone when the next is asked for, or the end.
    """
    job = with_catalogue(job, catalogue, labels.input, workers)
    known = [one.source.rows for one in inputs.values()]
    rows = None if None in known else sum(filter(None, known))
    before = told = 0
    for predictions in inputs.values():

        def report(done: int, before: int = before) -> None:
            nonlocal told
            if progress is not None and before + done > told:  # scoring may start again from row 0
                told = before + done
                progress(told, rows)

        with Overflow(predictions.source.name, "confidences") as file:
            of_run = replace(job, file=file) if job.needs else job  # else it is only made anew
            tally = _score_all(of_run, labels, predictions, workers, report)
            before += tally.rows if predictions.source.rows is None else predictions.source.rows
            yield tally
            del tally  # the caller may free its memory before the next system is scored


def _score_all(
    job: Job, labels: HeldLabels, predictions: Input, workers: Workers, report: Report
) -> Tally:
    """Score a system with all labels in memory, or one share of them after the other."""
    whole = bytes_of_labels(labels.input)
    shares = shares_of(labels.input, predictions, job, whole)
    left = check_room(labels.input, predictions, -(-whole // len(shares)), job.memory)
    job = job if left == job.memory else replace(job, memory=left)
    state, rows = None, 0
    for share in shares:
        tally = index = cast(Any, None)  # frees the labels of one share before the next is read
        of_labels, within = only(labels.input, share), only(predictions, share)
        if share == WHOLE:
            index = labels.index(job, workers)
            check_width(index, labels.input, predictions)
        else:
            index = read_labels(of_labels, job, workers)
        if job.cuts is not None:
            job = with_ways(job, of_labels, index, workers)
        state = state or State.of(job)
        tally = _score_input(within, index, job, state, workers, report, rows)
        rows += tally.rows
        state = tally.close(predictions.source.name)
    if not rows and not job.part and predictions.source.rows is None:
        once = "" if predictions.source.format else ": a stream can be read only once"
        raise InputError(f"{predictions.source.name} holds no rows; expected predictions{once}")
    done: Tally = tally
    check_labelled(labels.input, job, done.state.audit["queries_labelled"])
    return done


def _score_input(
    predictions: Input,
    index: LabelIndex,
    job: Job,
    before: State,
    workers: Workers,
    report: Report,
    rows: int,
) -> Tally:
    """Score predictions of an input, of which so many rows were read before."""
    # Grouping on disk would change the given order. A job that needs this order holds all rows in
    # memory anyway.
    to_group = None if job.heeds_order else job.memory
    source = predictions.source
    if source.best is not None:
        source = source.best(job.reach, job.semantics.order)

    def score(together: bool) -> Tally:
        tally = Tally(index, job, before)
        known: Any = {"empty": tally.empty, "empties": tally.empties, "shared": tally.shared}
        work = partial(score_lists, index=index, job=job, **known)
        how: Any = {"together": together, "memory": to_group}
        with closing(map_lists(work, source, predictions.columns, workers, **how)) as blocks:
            for block in blocks:
                tally.add(block)
                report(rows + tally.rows)
        tally.check_strangers()
        tally.audit = audit.add(tally.audit, predictions.comment_lines())
        return tally

    return read_in_order(score, predictions.columns)


# ------------------------------------------------------------------ room for the labels

# The bytes of a query of the labels: its key and its offset; whether it has labels, was seen and
# was predicted; and its share of a hash table, which is needed if the ids do not ascend.
A_QUERY = 8 + 8 + 3 + 16
# The bytes of its weight: read with its key, grouped by query, and put in the order of the labels.
A_WEIGHT = 8 + 8 + 32 + 8
# The bytes of a label: its key. A gain takes as many.
A_LABEL = 8
# The bytes of its value in a column that a metric sees, and of the rows that it is found in.
A_SEEN = 8 + 32
# The bytes that a string takes besides its key: its offset, and its text. The text is assumed to
# take at least 16 bytes, and more if it does in the file.
A_STRING = 8
ITS_BYTES = 16
# Labels of fewer bytes take no room from others: the process alone takes several times as much.
LEAST = 32 << 20
# Labels and lists of fewer bytes are never refused.
SPARED = 64 << 20
MB = 10**6
# The bytes of an item in a list that is read, matched and scored.
A_LISTED = 64
# Shares take three quarters of the memory at most, and each reads all rows.
MOST_SHARES = 16
WHOLE = Share(1, 1)


def bytes_of_labels(labels: Input) -> int:
    """Return the bytes that all labels take in memory, from the counts and sizes in footers."""
    columns, rows = labels.columns, labels.source.rows or 0
    sizes = labels.source.sizes([columns.query, columns.item])
    values, _ = sizes[columns.item]
    held = rows * (A_QUERY + A_WEIGHT * len(columns.facts))
    held += values * (A_LABEL * (2 if columns.gain else 1) + A_SEEN * len(columns.seen))
    for name, count in ((columns.query, rows), (columns.item, values)):
        if is_text_type(value_type(labels.source.schema.field(name).type)):
            held += A_STRING * count + max(ITS_BYTES * count, sizes[name][1])
    return held


def shares_of(labels: Input, predictions: Input, job: Job, whole: int) -> list[Share]:
    """Return the shares of the queries to evaluate: one, if all labels fit or have to be held.

    `whole` are the bytes of all labels.
    """
    semantics = job.semantics
    whole_is_needed = (
        job.keep_values  # the values take as much memory as the labels
        or not (job.cuts is None or job.cuts.by_part)
        or (job.by and any(aggregate.passes > 1 for aggregate in job.kinds.values()))
        or job.holds_rows
        # An "error" reports the number of wrong queries of all shares together.
        or "error" in (semantics.unlabelled, semantics.unpredicted, semantics.no_relevant)
    )
    # Files can be read again. A part of an array job, whose rows are not known, is a share itself.
    again = all(one.source.format and one.source.rows for one in (labels, predictions))
    count = min(MOST_SHARES, -(-4 * whole // (3 * job.memory)))
    if count < 2 or whole_is_needed or not again:
        return [WHOLE]
    return [Share(number, count) for number in range(1, count + 1)]


def check_room(labels: Input, predictions: Input, held: int, memory: int) -> int:
    """Return how many of the bytes allowed are left beside the labels, but a quarter at least.

    `held` are the bytes of the labels that are held at once. Raises ResourceError if files need
    more than is allowed.
    """
    values = 0
    if predictions.source.format and predictions.columns.wide and predictions.source.rows:
        item = predictions.columns.item
        values = predictions.source.sizes([item])[item][0] // predictions.source.rows
    for one, size, what, todo in (
        (labels, held, "its labels take", ", or evaluate parts: 'rankmill docs speed'"),
        (predictions, A_LISTED * values, "a list, which is read as a whole, takes", ""),
    ):
        if one.source.format and size > max(SPARED, memory):
            raise ResourceError(
                f"{one.source.name}: {what} about {size // MB + 1:,}MB in memory, and "
                f"{memory // MB:,}MB are allowed: allow {size // MB + 1}MB{todo}"
            )
    return memory if held <= LEAST else max(1, memory // 4, memory - held)


def only(one: Input, share: Share) -> Input:
    """Return an input that has only the queries of a share."""
    if share == WHOLE:
        return one
    return replace(one, source=divided(one.source, one.columns.query, share, Sample()))


# ------------------------------------------------------------------ telling how far a job is


def progress_of(asked: Any) -> Progress | None:
    """Return the function that is told of progress; True stands for one that prints it."""
    if asked is None or asked is False:
        return None
    if asked is not True and not callable(asked):
        raise UsageError(
            f"progress is {asked!r}; expected True, or a function that takes the number of rows "
            "done and that of all rows, or None if it is not known"
        )
    return _printed() if asked is True else cast(Progress, asked)


def _printed() -> Progress:
    """Return a function that prints rows on a line of standard error, a few times a second."""
    last = -math.inf

    def show(done: int, total: int | None) -> None:
        nonlocal last
        over, now = done == total, time.monotonic()
        if over or now - last > 0.25:
            last = now
            of_all = "" if total is None else f" of {total:,}"
            print(f"\r{done:,}{of_all} rows", end="\n" * over, file=sys.stderr, flush=True)

    return show
