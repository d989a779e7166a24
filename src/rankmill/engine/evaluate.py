"""evaluate() scores predictions against labels and returns a Result."""

import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

from rankmill.engine.finish import finish, sealed
from rankmill.engine.first_pass import run
from rankmill.engine.job import Progress, make_job, open_job
from rankmill.engine.labels import HeldLabels
from rankmill.engine.options import options_of, split_options
from rankmill.engine.results import Results
from rankmill.engine.tally import Tally
from rankmill.errors import UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.results.result import Result
from rankmill.semantics.choices import Semantics
from rankmill.sources.asked import MEMORY
from rankmill.sources.facts import NO_FACTS, Kind
from rankmill.sources.inputs import Input
from rankmill.threads import Workers

# The parameters of `evaluate` that are no options.
_INPUTS = ("labels", "predictions", "metrics")


def evaluate(
    labels: Any,
    predictions: Any,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    query: str | Sequence[str] | None = None,
    item: str | None = None,
    score: Any = None,
    rank: str | None = None,
    gain: Any = None,
    label_query: str | Sequence[str] | None = None,
    label_item: str | None = None,
    labels_as: str | None = None,
    predictions_as: str | None = None,
    columns: str | Sequence[str] | None = None,
    label_columns: str | Sequence[str] | None = None,
    encoding: str | None = None,
    label_encoding: str | None = None,
    in_order: bool = False,
    binary: bool = False,
    subtopic: str | None = None,
    padding: Any = None,
    gain_function: str = "linear",
    semantics: str | Semantics | Mapping[str, str] = "default",
    rel: float | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    weight: str | None = None,
    train: Any = None,
    items: Any = None,
    item_group: str | None = None,
    features: Any = None,
    drop_seen: bool = False,
    threads: int | None = None,
    memory: int = MEMORY,
    per_query: bool = True,
    progress: Progress | bool | None = None,
) -> Result:
    """Score ranked predictions against labels.

    By default, queries without a label are left out of the means, and a query with labels but no
    predictions scores 0. Labels are a set. A repeated prediction counts at its first place. A null
    item is no prediction: the predictions after it move up. Equal confidences count in gap with
    the expected value over all their orders. `semantics` changes each of these rules, so the
    result can follow the rules of another library.

    Parameters
    ----------
    labels, predictions : str, path, list of paths, frame, dict, lists or Arrow data
        A Parquet file, several, a glob, a directory (also Hive-partitioned); or a frame of pandas
        or Polars, a DuckDB relation, a pyarrow.Table or anything that exports an Arrow stream; or
        ``{query: [items]}``, ``{query: {item: score or gain}}``, or lists aligned by position
        (``rankmill docs python`` shows all of them).
        *Wide*: one row for each query, with a list column of items in rank order and, optionally,
        a list column of confidences. *Long*: one row for each query and item, optionally with a
        rank or a confidence. A long list is in the order of its ranks if there are any, else of
        falling confidence, else of its rows, if no column of numbers is left over. Ids are
        integers or strings. If one side is a `Ragged` or a list of lists, so must be the other,
        and list q of both belongs to query q.
    metrics : str or iterable of str
        Names such as "map@12", "first_hit", "gap"; ``rankmill metrics`` prints all of them.
    query, item, score, rank, gain : str (query also a list), optional
        The names of columns that are not found by their usual names (such as user_id, query_id,
        item_id, items, score, rank, gain). `query` and `item` apply to both sides, `score` and
        `rank` to predictions, `gain` to labels. With `Ragged` inputs, `score` and `gain` are
        Ragged numbers with the offsets of predictions and labels. Where several columns make a
        query, `query` is a list of them, or their names with commas between. If the other side has
        one column with their joined text, it is a template of this text, such as
        "{session}_{type}". Results show the joined ids.
    label_query, label_item : str, optional
        Columns of the labels, if they differ from `query` and `item`.
    labels_as, predictions_as : str, optional
        The format of the files, where neither their names nor their content tell it: "parquet",
        "arrow", "orc", "csv", "tsv", "trec", "jsonl"; or how a cell of CSV is to be read:
        "csv-long" (one item), "csv-wide" (a list), "csv-pairs" (items and confidences in turn),
        "csv-blanks", "csv-commas", "csv-semicolons" or "csv-bars" (a list, parted by these).
    columns, label_columns : str or sequence of str, optional
        The names of the columns of text without a header, in order, such as "query,item,score".
        `columns` applies to both sides, unless `label_columns` is given.
    encoding, label_encoding : str, optional
        The encoding of text that is not UTF-8, by any name that Python has for it: "latin-1",
        "cp1252", "utf-16". `encoding` applies to both sides, unless `label_encoding` is given.
    in_order : bool
        Whether the rows of long predictions are in rank order: neither ranks nor confidences order
        them. gap still reads the confidences. The semantics must keep the order "given".
    binary : bool
        Whether labels are just relevant or not: no gains are read, and every label is relevant. By
        default, a RuntimeWarning names columns of numbers in labels that could be gains but have no
        name by which they are found.
    subtopic : str, optional
        The column of long labels that says which subtopic of its query a row is about, for
        alpha_ndcg, err_ia and subtopic_recall; "iteration" for TREC's qrels of diversity. Other
        metrics see an item as relevant if it is to any subtopic.
    padding : int or str, optional
        The item that is none, such as the -1 with which FAISS and implicit fill short lists. It is
        read as a null item in all inputs: dropped, and counted so in the audit.
    gain_function : {"linear", "exp"} or a map such as "1=3,2=7"
        What a label of gain g is worth in ndcg, dcg and their like: g, 2**g - 1, or what a map says
        for every gain above 0, as trec_eval's ndcg.1=3,2=7. ``rel`` is in units of the gain itself.
    semantics : str, Semantics or mapping
        The counting rules on which evaluators differ: the name of a preset such as "trec_eval"
        (``rankmill presets`` prints all of them), or a choice for each field. A mapping names only
        the fields that differ from the default.
    rel : float, optional
        The least gain that counts as relevant, for every metric that has the parameter ``rel`` and
        no value for it in its name; trec_eval's -l. "map" becomes "map(rel=2)" in the result, which
        has it as "map" too. ndcg, dcg, judged and gap do not have the parameter.
    depth : int, optional
        Only so many predictions of each query count, the first ones in the order of the semantics,
        for all metrics; trec_eval's -M.
    judged_only : bool
        Whether predictions that are not judged are dropped, so that those behind move up;
        trec_eval's -J. An item is judged if it is among the labels with a gain of 0 or more. They
        are dropped after the cut at `depth`.
    weight : str, optional
        A column of the labels with the weight of each query: 0, or a number from 1e-100 to 1e100.
        Means are then sum(weight * value) / sum(weight), with standard errors that are made for
        it (``rankmill docs counting``), and the result tells the effective number of queries. gap
        is no mean over queries and is refused.
    train : optional
        The items that queries had in training, in any form that labels may have; repeated rows are
        one interaction. novelty, popularity and their kin need it (``rankmill docs catalogue``).
        The audit counts the predictions that their query had.
    items : optional
        The catalogue, which coverage and gini are over: a table or file with a column of items. By
        default it is the items of `train`, else of `features`, else all labels and predictions.
    item_group : str, optional
        The column of `items` with the group of each item, or a list of its groups, such as genres;
        for exposure_parity, miscalibration, ild and epd.
    features : optional
        The vectors of items, such as embeddings: a table or file with a column of items, each once,
        and a column of lists of numbers or several columns of numbers; or {item: vector}. For
        ild_cosine and epd_cosine.
    drop_seen : bool
        Whether predictions that their query had in `train` are dropped, so that those behind move
        up.
    threads : int, optional
        The number of threads; by default the number of CPUs that this process may use. The result
        does not depend on it.
    memory : int
        A limit in bytes for each of three uses. The confidences of all predictions for gap: if
        they need more, they are read a second time. Long predictions whose queries are scattered:
        if they need more, they are grouped in temporary files. Labels, if `per_query` is False and
        the row groups of the Parquet files of both sides are sorted by query id: if they need
        more, ranges of queries are scored one after the other. The result does not depend on the
        limit.
    per_query : bool
        Whether the result holds a table with the values of each query.
    progress : bool or callable, optional
        True prints rows on standard error. Else a function, called with the number of
        prediction rows done and the number of all.

    Returns
    -------
    Result
        Values, standard errors, the audit of what was counted, and the table of each query.

    Raises
    ------
    InputError
        If the data breaks a rule; the message names the file, the row (counted from 0) and what to
        do.
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
) -> Results:
    """Score several systems against the same labels, which are read only once.

    Parameters
    ----------
    labels
        As for `evaluate`.
    runs : mapping of str to predictions
        The predictions of each system, each as for `evaluate`.

    Returns
    -------
    Results
        A dict with the result of each system, shown as a table. All other parameters and the errors
        are those of `evaluate`. A UsageError is also raised if `runs` is no mapping.

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
    results = _evaluate(labels, runs, metrics, options)
    return Results(results)


class Scored(NamedTuple):
    """A scored system: its tally and result, and the inputs that they came from."""

    name: str
    tally: Tally
    result: Result
    labels: Input
    predictions: Input


def _evaluate(
    labels: Any, runs: Mapping[str, Any], metrics: Any, options: dict[str, Any]
) -> dict[str, Result]:
    results = {}
    with closing(score_systems(labels, runs, metrics, options)) as systems:
        for one in systems:
            results[one.name] = sealed(one.result)
            del one  # frees the tally before the next system is scored
    return results


def score_systems(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: Any,
    options: dict[str, Any],
    *,
    facts: Mapping[str, Kind] = NO_FACTS,
    **fields: Any,
) -> Generator[Scored, None, None]:
    """Score one system after the other; the caller closes the generator.

    Parameters
    ----------
    labels, runs, metrics, options
        As for `evaluate_runs`.
    facts
        Columns of the labels with a value a query, which the caller reads while a system is given.
    **fields
        More fields of the `Job`.
    """
    began = time.perf_counter()
    columns, resources, choices = split_options(options)
    job = make_job(metrics, **choices, **fields)
    with (
        open_job(job, labels, runs, columns, facts) as (label_input, inputs),
        Workers(resources["threads"]) as workers,
    ):
        tallies = run(job, HeldLabels(label_input), inputs, workers, resources["progress"])
        with closing(tallies):
            several = len(runs) > 1
            for name, one in inputs.items():
                tally = next(tallies)  # zip would hold it while the next system is scored
                result = finish(tally, label_input, one, workers, began, several=several)
                yield Scored(name, tally, result, label_input, one)
                del tally
                began = time.perf_counter()
