"""The first pass: score all predictions of each system and add the blocks up."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Any, cast

from rankmill.engine.catalogue_inputs import with_catalogue
from rankmill.engine.cuts import with_ways
from rankmill.engine.held_labels import HeldLabels, check_labelled, check_width, read_labels
from rankmill.engine.job import Job
from rankmill.engine.memory import WHOLE, bytes_of_labels, check_room, only, shares_of
from rankmill.engine.progress import Progress
from rankmill.engine.score import score_lists
from rankmill.engine.state import State
from rankmill.engine.tally import Tally
from rankmill.errors import InputError
from rankmill.io.overflow import Overflow
from rankmill.matching.index import LabelIndex, RepeatedQueryError
from rankmill.results import audit
from rankmill.sources.inputs.inputs import Input, begun, map_lists
from rankmill.sources.nouns import Catalogue
from rankmill.sources.rows.long import ScatteredRowsError
from rankmill.threads import Workers

Report = Callable[[int], None]


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
        with ExitStack() as stack:
            if share == WHOLE:
                within = stack.enter_context(begun(within, job.memory, workers))
                index = labels.index(job, workers)
                check_width(index, labels.input, predictions)
            else:
                index = read_labels(of_labels, job, workers)
            if job.cuts is not None:
                job = with_ways(job, of_labels, index, workers)
            state = state or State.of(job)
            tally = _score_input(within, index, job, state, workers, partial(_add, report, rows))
        rows += tally.rows
        state = tally.close(predictions.source.name)
    if not rows and not job.part and predictions.source.rows is None:
        once = "" if predictions.source.format else ": a stream can be read only once"
        raise InputError(f"{predictions.source.name} holds no rows; expected predictions{once}")
    done: Tally = tally
    check_labelled(labels.input, job, done.state.audit["queries_labelled"])
    return done


def _add(report: Report, before: int, done: int) -> None:
    report(before + done)


def _score_input(
    predictions: Input,
    index: LabelIndex,
    job: Job,
    before: State,
    workers: Workers,
    report: Report,
) -> Tally:
    """Score predictions. Long rows are first taken as sorted by query, and read again if not."""
    # Grouping on disk would change the given order. A job that needs this order holds all rows in
    # memory anyway.
    to_group = None if job.heeds_order else job.memory
    source = predictions.source
    if source.best is not None:
        source = source.best(job.reach, job.semantics.order)
    for together in (False,) if predictions.columns.wide else (True, False):
        tally = Tally(index, job, before)
        scored = map_lists(
            partial(
                score_lists,
                index=index,
                job=job,
                empty=tally.empty,
                empties=tally.empties,
                shared=tally.shared,
            ),
            source,
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
            tally.audit = audit.add(tally.audit, predictions.comment_lines())
        except (ScatteredRowsError, RepeatedQueryError):
            if not together:
                raise
        else:
            break
    return tally
