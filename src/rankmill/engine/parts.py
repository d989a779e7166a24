"""Evaluating in parts, as on a cluster: a state for each part, and the second pass of gap."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from rankmill.engine.cuts import job_of
from rankmill.engine.finish import reread_among
from rankmill.engine.first_pass import Progress, progress_of, run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job, open_job
from rankmill.engine.origin import OriginRecorder
from rankmill.engine.state import State
from rankmill.errors import UsageError, positive
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.gap.gap_counts import Among
from rankmill.semantics.semantics import Counting
from rankmill.sources.input_options import MEMORY
from rankmill.sources.inputs.inputs import check_told, open_input
from rankmill.sources.meaning.later_rows import reading_again
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.sources.roles.shares import Sample, Share, divided
from rankmill.threads import Workers


def evaluate_part(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    semantics: Counting = "default",
    by: Any = (),
    sums: str | Iterable[str] = (),
    catalogue: Catalogue | None = None,
    part: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> State:
    """Return the state of a part: some queries with all their labels and all their predictions.

    Parameters
    ----------
    labels, predictions, metrics, semantics, by, sums, catalogue, threads, memory, progress
        As for `evaluate`, but both sides may have no rows. `by` is not "label_popularity", which
        needs all labels, and metrics that need a second pass, such as gap, have no slices.
    part : str, optional
        "3/8" is the third of eight parts of the queries, by a hash of their ids: both inputs are
        read whole, and only the rows of this part are evaluated. By default both inputs are the
        part.

    Returns
    -------
    State
        Merge it with the states of the other parts. For gap, call `second_pass` with the merged
        state and all predictions.

    Raises
    ------
    InputError, UsageError
        As `evaluate`. A UsageError is also raised if the ties of gap need all predictions at once.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> metrics = ["map", "first_hit"]
    >>> states = [
    ...     evaluate_part(lists([[1, 2]]), lists([[1, 5]]), metrics),
    ...     evaluate_part(lists([[3]]), lists([[4, 3]]), metrics),
    ... ]
    >>> states[0].merge(states[1]).result().metrics
    {'map': 0.5, 'first_hit': 0.75}
    """
    given = Labels.of(labels)
    recorder = OriginRecorder(None if part is None else Share.read(part))
    more: Any = {"memory": memory, "part": True, "recorder": recorder}
    job = job_of(metrics, given, semantics, catalogue, by, sums, **more)
    runs = {"": Predictions.of(predictions)}
    state = part_states(job, given, runs, threads, progress, catalogue)[""]
    return replace(state, origin=recorder.origin)


@reading_again
def part_states(
    job: Job,
    labels: Labels,
    runs: Mapping[str, Predictions],
    threads: int | None = None,
    progress: Progress | bool | None = None,
    catalogue: Catalogue | None = None,
) -> dict[str, State]:
    """Do the same as `evaluate_part` for several systems; the labels are read once."""
    check_in_parts(job)
    facts = {} if job.cuts is None else job.cuts.facts
    job, told = replace(job, keep_values=False), progress_of(progress)
    with (
        open_job(job, labels, runs, facts) as (label_input, inputs),
        Workers(threads, job.waiting) as workers,
    ):
        held = HeldLabels(label_input)
        with closing(run(job, held, inputs, workers, told, catalogue)) as tallies:
            return {name: next(tallies).state for name in inputs}


def check_in_parts(job: Job) -> None:
    """Raise UsageError if a job cannot be done in parts."""
    if job.holds_rows:
        raise UsageError(f"{job.holds_rows} needs all predictions at once: use evaluate")
    if job.cuts is None:
        return
    if "label_popularity" in job.cuts.derived:
        raise UsageError("label_popularity needs the labels of all queries: use evaluate")
    twice = [metric.text for metric in job.metrics if aggregate_of(metric).passes > 1]
    if twice:
        raise UsageError(
            f"{', '.join(twice)} has no slices in parts or on Spark, as the second pass does not "
            "know the slices of predictions: rankmill.evaluate has them; or ask for "
            f"{twice[0]} without by"
        )


def second_pass(
    state: State,
    predictions: Any,
    *,
    part: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
) -> dict[str, Among]:
    """Count some of the confidences in a second pass, among those of all correct predictions.

    Parameters
    ----------
    state : State
        The merged state of all parts.
    predictions, threads, memory
        As for `evaluate`.
    part : str, optional
        As for `evaluate_part`.

    Returns
    -------
    dict of str to Among
        The counts for each metric that needs them. `State.result` takes those of all parts. Their
        `to_row` makes a row, which `State.read_counts` reads.
    """
    memory, given = positive(memory, "memory"), Predictions.of(predictions)
    share = None if part is None else Share.read(part)
    check_told(given, state.semantics)
    one = open_input(
        given, need_score=True, semantics=state.semantics, may_be_empty=True, memory=memory
    )
    with closing(one.source), Workers(threads) as workers:
        source = divided(one.source, one.columns.query, share, Sample())
        one = one if share is None else replace(one, source=source)
        among = reread_among(state, one, workers, memory, checksum=True)
    counted = among.items()
    return {name: replace(one, state=state.counted_among(name)) for name, one in counted}
