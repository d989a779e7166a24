"""Evaluating in parts, as on a cluster: a state a part, and gap's second pass over each."""

from contextlib import closing
from dataclasses import replace
from typing import Any

from rankmill.engine.evaluate import evaluate
from rankmill.engine.first_pass import run
from rankmill.engine.job import make_job, open_job
from rankmill.engine.labels import HeldLabels
from rankmill.engine.options import options_of, split_options
from rankmill.engine.second_pass import reread_among
from rankmill.engine.state import State
from rankmill.errors import UsageError, positive
from rankmill.metrics.gap_counts import Among
from rankmill.sources.inputs import open_input
from rankmill.threads import Workers


@options_of(evaluate, without=("per_query",))
def evaluate_part(labels: Any, predictions: Any, metrics: Any, **options: Any) -> State:
    """The state of some of the queries, with all their labels and all their predictions.

    Parameters
    ----------
    labels, predictions, metrics
        As for `evaluate`; either side may hold no rows.
    **options
        Those of `evaluate`, but ``per_query``.

    Returns
    -------
    State
        To be merged with those of the other queries. For gap `second_pass` goes over all
        predictions once more, with the merged state.

    Raises
    ------
    InputError, UsageError
        As `evaluate`; UsageError if gap needs all predictions at once, for its ties.

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
    columns, resources, choices = split_options(options)
    job = make_job(metrics, per_query=False, part=True, **choices)
    if job.holds_rows:
        ties = job.semantics.gap_ties
        raise UsageError(f"gap_ties {ties!r} needs all predictions at once: evaluate does that")
    label_input, inputs = open_job(job, labels, {"": predictions}, columns)
    with Workers(resources["threads"]) as workers:
        held = HeldLabels(label_input)
        with closing(run(job, held, inputs, workers, resources["progress"])) as tallies:
            return next(tallies).state


_OTHERS = (
    "gain",
    "label_query",
    "label_item",
    "gain_function",
    "semantics",
    "per_query",
    "progress",
)


@options_of(evaluate, without=_OTHERS)
def second_pass(state: State, predictions: Any, **options: Any) -> dict[str, Among]:
    """Count the confidences of some predictions among those of all correct ones.

    Parameters
    ----------
    state : State
        Of all parts, merged.
    predictions
        As for `evaluate`.
    **options
        The columns of predictions, threads and memory, as for `evaluate`.

    Returns
    -------
    dict of str to Among
        For each metric that needs it the counts, to be merged with those of the other parts and
        given to `State.result`. They have `to_row`, of which `State.read_counts` makes them again.
    """
    threads, memory = options.pop("threads"), positive(options.pop("memory"), "memory")
    one = open_input(
        predictions,
        "predictions",
        options.pop("score"),
        options,
        need_score=True,
        semantics=state.semantics,
        may_be_empty=True,
    )
    with Workers(threads) as workers:
        among = reread_among(state, one, workers, memory, checksum=True)
    return {name: replace(one, state=state.counted_among(name)) for name, one in among.items()}
