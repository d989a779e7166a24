"""evaluate(): labels and predictions in, a Result out."""

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from rankmill.engine.finish import finish
from rankmill.engine.first_pass import run
from rankmill.engine.job import Progress, make_job, open_job
from rankmill.engine.labels import HeldLabels
from rankmill.engine.options import options_of, split_options
from rankmill.errors import UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.results.result import Result
from rankmill.semantics.choices import Semantics
from rankmill.sources.inputs import MEMORY
from rankmill.threads import Workers

# What is no option of `evaluate`.
_INPUTS = ("labels", "predictions", "metrics")


def evaluate(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    query: str | None = None,
    item: str | None = None,
    score: Any = None,
    rank: str | None = None,
    gain: Any = None,
    label_query: str | None = None,
    label_item: str | None = None,
    gain_function: str = "linear",
    semantics: str | Semantics | Mapping[str, str] = "default",
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Score ranked predictions against labels.

    Queries without a label are left out of the means; a query with labels and no predictions
    scores 0. Labels are a set; a repeated prediction counts where it stands first. A null item is
    no prediction: those behind it move up. Equal confidences in gap count with the expected value
    over their orders. All that may be asked for otherwise, as other libraries have it: `semantics`.

    Parameters
    ----------
    labels, predictions : str, path, list of paths, pyarrow.Table or Ragged
        A Parquet file, several, a glob, a directory (also Hive-partitioned), or arrays in memory.
        *Wide*: one row a query, with a list column of items in rank order and, optionally, one of
        confidences. *Long*: one row a query and item, optionally with a rank or a confidence; by
        rank if there is one, else by falling confidence, else in row order. Ids are integers or
        strings. If one side is a `Ragged`, both are, and list q of both belongs to query q.
    metrics : str or iterable of str
        Names such as "map@12", "first_hit", "gap"; ``rankmill metrics`` prints all.
    query, item, score, rank, gain : str, optional
        Columns, where their names do not tell (such as user_id, query_id, item_id, items, score,
        rank, gain). `query` and `item` hold for both sides, `score` and `rank` for predictions,
        `gain` for labels. With `Ragged` inputs, `score` and `gain` are Ragged numbers with the
        offsets of predictions and labels.
    label_query, label_item : str, optional
        Columns of the labels, where they differ from `query` and `item`.
    gain_function : {"linear", "exp"}
        Whether a label of gain g counts g or 2**g - 1 in ndcg and dcg.
    semantics : str, Semantics or mapping
        The name of a preset such as "trec_eval" (``rankmill presets`` prints all), or how to count
        where evaluators differ, question by question; a mapping names only the fields that are not
        as by default.
    threads : int, optional
        Threads to use; by default the CPUs that this process may use. The result does not depend
        on it.
    memory : int
        Bytes that the confidences of all predictions may take in memory for gap; if they need
        more, they are read from the file a second time. Also what long predictions may take if
        their queries are scattered; if they need more, they are grouped in temporary files. Also
        what labels may take, where `per_query` is False and the row groups of Parquet files are
        sorted by query id on both sides; if they need more, ranges of queries are scored one by
        one. The result does not depend on it.
    per_query : bool
        Whether the result holds a table of the values a query.
    progress : callable, optional
        Called with the prediction rows done and their number in all.

    Returns
    -------
    Result
        Values, standard errors, the audit of what was counted, and the table per query.

    Raises
    ------
    InputError
        If the data is not as said; the message tells the file, the row (counted from 0) and what
        to do.
    UsageError
        If the arguments are wrong, such as an unknown metric.

    Examples
    --------
    >>> import pyarrow as pa
    >>> labels = pa.table({"user_id": [7, 8], "items": [[1, 2], [3]]})
    >>> predictions = pa.table({"user_id": [8, 7], "items": [[4, 3], [1, 5, 2]]})
    >>> result = evaluate(labels, predictions, ["map@12", "first_hit"])
    >>> result["map@12"], result["first_hit"]
    (0.6666666666666666, 0.75)
    """
    options = {name: value for name, value in locals().items() if name not in _INPUTS}
    return _evaluate(labels, {"": predictions}, metrics, options)[""]


@options_of(evaluate)
def evaluate_runs(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    **options: Any,
) -> dict[str, Result]:
    """Score several systems against the same labels, which are read once.

    Parameters
    ----------
    labels
        As for `evaluate`.
    runs : mapping of str to predictions
        The predictions of each system, each as for `evaluate`.

    Returns
    -------
    dict of str to Result
        The result of each system. All other parameters and the errors are those of `evaluate`;
        UsageError also if `runs` is no mapping.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.Ragged.from_lists([[1], [2]])
    >>> runs = {"old": [[1], [3]], "new": [[1], [3, 2]]}
    >>> runs = {name: rankmill.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> results = rankmill.evaluate_runs(labels, runs, ["first_hit"])
    >>> {name: result["first_hit"] for name, result in results.items()}
    {'old': 0.5, 'new': 0.75}
    """
    if not isinstance(runs, Mapping):
        raise UsageError(
            f"runs is a {type(runs).__name__}; expected a mapping of names to predictions, such as "
            '{"old": ..., "new": ...}'
        )
    return _evaluate(labels, runs, metrics, options)


def _evaluate(
    labels: Any, runs: Mapping[str, Any], metrics: Any, options: dict[str, Any]
) -> dict[str, Result]:
    began = time.perf_counter()
    columns, resources, choices = split_options(options)
    job = make_job(metrics, **choices)
    label_input, inputs = open_job(job, labels, runs, columns)
    results = {}
    with Workers(resources["threads"]) as workers:
        tallies = run(job, HeldLabels(label_input), inputs, workers, resources["progress"])
        with closing(tallies):
            for (name, one), tally in zip(inputs.items(), tallies, strict=True):
                several = len(runs) > 1
                results[name] = finish(tally, label_input, one, workers, began, several=several)
                began = time.perf_counter()
    return results
