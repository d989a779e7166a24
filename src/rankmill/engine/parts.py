"""Evaluating in parts, as on a cluster: a state for each part, and the second pass of gap."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from rankmill.engine.evaluate import evaluate
from rankmill.engine.first_pass import run
from rankmill.engine.job import Job, make_job, open_job
from rankmill.engine.labels import HeldLabels
from rankmill.engine.options import options_of, split_options
from rankmill.engine.second_pass import reread_among
from rankmill.engine.state import State
from rankmill.errors import UsageError, positive
from rankmill.metrics.gap_counts import Among
from rankmill.sources.inputs import check_options, open_input
from rankmill.threads import Workers


@options_of(evaluate, without=("per_query",))
def evaluate_part(labels: Any, predictions: Any, metrics: Any, **options: Any) -> State:
    """Return the state of a part: some queries with all their labels and all their predictions.

    Parameters
    ----------
    labels, predictions, metrics
        As for `evaluate`, but both sides may have no rows.
    **options
        The options of `evaluate` except ``per_query``.

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
    >>> lists = rankmill.Ragged.from_lists
    >>> metrics = ["map", "first_hit"]
    >>> states = [
    ...     evaluate_part(lists([[1, 2]]), lists([[1, 5]]), metrics),
    ...     evaluate_part(lists([[3]]), lists([[4, 3]]), metrics),
    ... ]
    >>> states[0].merge(states[1]).result().metrics
    {'map': 0.5, 'first_hit': 0.75}
    """
    return part_states(labels, {"": predictions}, metrics, options)[""]


def part_states(
    labels: Any, runs: Mapping[str, Any], metrics: Any, options: dict[str, Any]
) -> dict[str, State]:
    """Do the same as `evaluate_part` for several systems; the labels are read once."""
    columns, resources, choices = split_options(options)
    job = make_job(metrics, per_query=False, part=True, **choices)
    check_in_parts(job)
    with (
        open_job(job, labels, runs, columns) as (label_input, inputs),
        Workers(resources["threads"]) as workers,
    ):
        held = HeldLabels(label_input)
        with closing(run(job, held, inputs, workers, resources["progress"])) as tallies:
            return {name: next(tallies).state for name in inputs}


def check_in_parts(job: Job) -> None:
    """Raise UsageError if a job cannot be done in parts."""
    if job.holds_rows:
        raise UsageError(f"{job.holds_rows} needs all predictions at once: evaluate does that")


_OTHERS = (
    "gain",
    "label_query",
    "label_item",
    "labels_as",
    "label_columns",
    "label_encoding",
    "binary",
    "subtopic",
    "gain_function",
    "semantics",
    "rel",
    "depth",
    "judged_only",
    "weight",
    "train",
    "items",
    "item_group",
    "features",
    "drop_seen",
    "per_query",
    "progress",
)


@options_of(evaluate, without=_OTHERS)
def second_pass(state: State, predictions: Any, **options: Any) -> dict[str, Among]:
    """Count some of the confidences in a second pass, among those of all correct predictions.

    Parameters
    ----------
    state : State
        The merged state of all parts.
    predictions
        As for `evaluate`.
    **options
        The columns of predictions, threads and memory, as for `evaluate`.

    Returns
    -------
    dict of str to Among
        The counts for each metric that needs them. Merge them with those of the other parts and
        give the sum to `State.result`. Their `to_row` makes a row, which `State.read_counts` reads.
    """
    threads, memory = options.pop("threads"), positive(options.pop("memory"), "memory")
    check_options(state.semantics, rank=options["rank"], in_order=options["in_order"])
    one = open_input(
        predictions,
        "predictions",
        options.pop("score"),
        {name: options[name] for name in ("query", "item", "rank")},
        need_score=True,
        semantics=state.semantics,
        in_order=options["in_order"],
        may_be_empty=True,
        memory=memory,
        told_format=options.pop("predictions_as"),
        columns=options.pop("columns"),
        encoding=options.pop("encoding"),
        padding=options["padding"],
    )
    with closing(one.source), Workers(threads) as workers:
        among = reread_among(state, one, workers, memory, checksum=True)
    return {name: replace(one, state=state.counted_among(name)) for name, one in among.items()}
