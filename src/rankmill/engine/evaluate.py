"""evaluate(): labels and predictions in, a Result out."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from functools import cache, partial
from typing import Any

from rankmill.engine.counted import counts_without_labels
from rankmill.engine.finish import Tallied, conclude
from rankmill.engine.first_pass import tally_system
from rankmill.engine.job import Plan
from rankmill.engine.labels import LabelsRead, read_labels
from rankmill.engine.state import State
from rankmill.errors import UsageError, positive
from rankmill.metrics.registry import DEFAULT_METRICS, check_defined, parse_all
from rankmill.results.result import Result
from rankmill.semantics.choices import Semantics
from rankmill.semantics.presets import semantics_of
from rankmill.sources.inputs import MEMORY, open_inputs
from rankmill.threads import Workers

Progress = Callable[[int, int | None], None]


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
    results = evaluate_runs(
        labels,
        {"": predictions},
        metrics,
        query=query,
        item=item,
        score=score,
        rank=rank,
        gain=gain,
        label_query=label_query,
        label_item=label_item,
        gain_function=gain_function,
        semantics=semantics,
        threads=threads,
        memory=memory,
        per_query=per_query,
        progress=progress,
    )
    return results[""]


def evaluate_runs(
    labels: Any,
    runs: Mapping[str, Any],
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
        The result of each system. All other parameters and the errors are those of `evaluate`.

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
    began = time.perf_counter()
    results = {}
    with Workers(threads) as workers:
        tallied = tally_runs(
            labels,
            runs,
            metrics,
            workers,
            query=query,
            item=item,
            score=score,
            rank=rank,
            gain=gain,
            label_query=label_query,
            label_item=label_item,
            gain_function=gain_function,
            semantics=semantics,
            memory=memory,
            per_query=per_query,
            progress=progress,
        )
        with closing(tallied):
            for name, one in zip(runs, tallied, strict=True):
                results[name] = conclude(one, began, several=len(runs) > 1)
                began = time.perf_counter()
    return results


def evaluate_part(
    labels: Any, predictions: Any, metrics: Any, *, threads: int | None = None, **options: Any
) -> State:
    """The state of some of the queries, with all their labels and all their predictions.

    Parameters
    ----------
    labels, predictions, metrics, threads
        As for `evaluate`; either side may hold no rows.
    **options
        All others of `evaluate`, but ``per_query``.

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
    options |= {"per_query": False, "part": True}
    with Workers(threads) as workers:
        (one,) = tally_runs(labels, {"": predictions}, metrics, workers, **options)
    if one.tally.plan.keep_rows:
        ties = one.tally.plan.semantics.gap_ties
        raise UsageError(f"gap_ties {ties!r} needs all predictions at once: evaluate does that")
    return one.state


def tally_runs(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str],
    workers: Workers,
    *,
    gain_function: str = "linear",
    semantics: str | Semantics | Mapping[str, str] = "default",
    memory: int = MEMORY,
    per_query: bool = True,
    progress: Progress | None = None,
    every_row: bool = False,
    part: bool = False,
    read: Callable[..., LabelsRead] = read_labels,
    **columns: Any,
) -> Generator[Tallied, None, None]:
    """Score the predictions of all systems; the labels are read once, by `read`, if they are held.

    With `every_row` all predictions are kept, if a metric is over all of them. A `part` has other
    queries elsewhere.
    """
    asked = parse_all(metrics)
    memory = positive(memory, "memory")
    if gain_function not in ("linear", "exp"):
        raise UsageError(f"unknown gain_function {gain_function!r}; expected 'linear' or 'exp'")
    semantics = semantics_of(semantics)
    for metric in asked:
        check_defined(metric, semantics)
    plan = Plan(
        per_query=[metric for metric in asked if metric.spec.kernel],
        pooled=[metric for metric in asked if not metric.spec.kernel],
        keep_values=per_query,
        memory=memory,
        semantics=semantics,
        gain_function=gain_function,
        every_row=every_row,
        part=part,
    )
    label_input, inputs = open_inputs(
        labels,
        runs,
        need_score=bool(plan.pooled),
        semantics=semantics,
        may_be_empty=part,
        **columns,
    )
    repeats = semantics.repeated_labels
    labelled = not part and not counts_without_labels(semantics)
    whole = cache(
        lambda: read(label_input, gain_function, workers, repeats=repeats, whole=labelled)
    )
    read_range = partial(
        read_labels, gain_function=gain_function, workers=workers, repeats=repeats, whole=False
    )
    rows = sum(one.source.rows for one in inputs.values())
    before = told = 0
    for one in inputs.values():

        def report(done: int, before: int = before) -> None:
            nonlocal told
            if progress is not None and before + done > told:  # work may start over
                told = before + done
                progress(told, rows)

        yield tally_system(asked, label_input, one, plan, whole, read_range, workers, report)
        before += one.source.rows
