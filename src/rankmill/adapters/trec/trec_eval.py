"""What trec_eval prints, a line for each measure of each query; and pytrec_eval's evaluator."""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.adapters.trec.measures import (
    LEAST,
    MEASURES,
    NICKNAMES,
    OF_OTHER_FILES,
    Levels,
    MeasureColumn,
    columns_of,
    in_order,
    judged_hits,
    relevance_string,
)
from rankmill.columns.buffers import join_items
from rankmill.columns.ids import ids_to_arrow, take_ids, to_ids
from rankmill.columns.lists import offsets_of
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.engine.held_labels import read_labels
from rankmill.engine.job import Job, open_job
from rankmill.errors import InputError
from rankmill.matching.hits import Hits
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import clean_labels
from rankmill.matching.order import arrange
from rankmill.metrics.registry import parse
from rankmill.records import record
from rankmill.semantics.choices import Scope
from rankmill.semantics.presets import preset
from rankmill.sources.inputs.inputs import Input, map_lists
from rankmill.sources.nouns import Labels, Predictions
from rankmill.sources.readers.trec import TAG
from rankmill.sources.roles.source import Source, batch_of
from rankmill.sources.rows.long import ScatteredRowsError
from rankmill.threads import Workers

PRESETS = {9: "trec_eval", 10: "trec_eval-10"}
# What a z-score is where no mean and deviation are known.
_NO_ZSCORE = -1000000.0


@record(frozen=True)
class Request:
    """What trec_eval is asked for, a field a flag; `scores` is the file of -Z."""

    version: int = 9
    measures: tuple[str, ...] = ("official",)
    each: bool = False
    complete: bool = False
    level: int = 1
    depth: int | None = None
    judged_only: bool = False
    summary: bool = True
    documents: int = 0
    query: str = ""
    scores: str = ""

    @property
    def job(self) -> Job:
        """How its files are read."""
        scope = Scope(depth=self.depth, judged_only=self.judged_only)
        return Job((parse("judged@1"),), preset(PRESETS[self.version]).semantics, scope=scope)


class Topics(NamedTuple):
    """The queries that count, in order: their judged predictions, and which the run lacks.

    ``all`` is how many the qrels have, and ``relevant`` the number of relevant items of these.
    """

    names: list[str]
    judged: Hits
    lacking: np.ndarray
    all: int
    relevant: int


def printed(qrels: str, run: str, asked: Request) -> str:
    """Return what trec_eval prints about a run; bytes that are no UTF-8 are surrogates."""
    columns, job = columns_of(asked.measures, asked.version), asked.job
    sides = (
        Labels(qrels, format="trec", exact_ids=True),
        {"run": Predictions(run, format="trec", exact_ids=True)},
    )
    with Workers() as workers, open_job(job, *sides) as (labels, inputs):
        index = read_labels(labels, job, workers)
        hits, rows = _read(inputs["run"], index, asked, workers)
        wants_name = asked.summary and any(one.measure == "runid" for one in columns)
        run_name = _run_name(inputs["run"].source) if wants_name else ""
    topics = _topics(hits, rows, index, asked, (qrels, run))
    levels = Levels(topics.judged, asked.level, job.semantics, asked.documents)
    values = {column.name: levels.values(column) for column in columns}
    for name, found in values.items():
        # By these names: with parameters, utility has another.
        if name in ("num_ret", "utility", "rbp_resid") or name.startswith("unj"):
            found[topics.lacking] = 0
    if asked.scores:
        _to_zscores(values, topics.names, asked.scores)
    lines = _of_queries(columns, values, topics, asked) if asked.each else ()
    last = _of_all(columns, values, topics, asked, run_name) if asked.summary else ()
    return "".join((*lines, *last))


def _read(
    predictions: Input, index: LabelIndex, asked: Request, workers: Workers
) -> tuple[list[Hits], np.ndarray]:
    """The judged predictions of the queries of a run, in parts, and their rows in the qrels."""
    job = asked.job

    def work(lists: Lists) -> tuple[Hits, np.ndarray]:
        rows = index.find(lists.queries)
        known = lists.keep(np.repeat(rows >= 0, np.diff(lists.offsets)))
        arranged = arrange(known, job.semantics)
        return judged_hits(index.labels, arranged, rows, job.scope), rows

    for together in (True, False):
        read = map_lists(work, predictions.source, predictions.columns, workers, together=together)
        try:
            with closing(read) as blocks:
                found = list(blocks)
        except ScatteredRowsError:
            if not together:
                raise
            continue
        rows = np.concatenate([np.zeros(0, np.int64), *(one for _, one in found)])
        known = rows[rows >= 0]
        if len(np.unique(known)) == len(known):
            break
    return [one for one, _ in found], rows


def _topics(
    hits: list[Hits], rows: np.ndarray, index: LabelIndex, asked: Request, files: tuple[str, str]
) -> Topics:
    """The topics sorted byte by byte: those of the run in 9, all of the qrels in 10."""
    texts = ids_to_arrow(index.queries, set()).cast(pa.large_string())  # integers, of no line
    ids = texts.view(pa.large_binary()).to_pylist()
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    if asked.query:
        order = order[[ids[row] == asked.query.encode() for row in order]]
    place = np.full(len(ids), -1)
    place[rows[rows >= 0]] = np.flatnonzero(rows >= 0)
    lacking = place[order] < 0
    if asked.version == 9:
        order = order[~lacking]
        lacking = np.zeros(len(order), np.bool_)
    elif lacking.any() and not asked.complete:
        raise InputError(
            f"{files[1]} has no query {ids[order[lacking.argmax()]].decode(errors='replace')} of "
            f"{files[0]}, where trec_eval 10.0-rc3 stops: add -c, or ask for 9.0.8"
        )
    if not len(order):
        raise InputError(
            f"no query is in both {files[0]} and {files[1]}: check that their query ids agree"
        )
    if lacking.any():  # 10 gives it a list of one item, which is not judged
        made = _judged(index, order[lacking])
        count = np.full(int(lacking.sum()), int(not asked.judged_only and asked.depth != 0))
        place[order[lacking]] = len(rows) + np.arange(len(count))
        hits = [*hits, made._replace(prediction_counts=count)]
    every = _judged(index, np.arange(len(ids)))
    names = [ids[row].decode(errors="surrogateescape") for row in order]
    relevant = int((every.label_gains > 0).sum())
    return Topics(names, in_order(hits, place[order]), lacking, len(ids), relevant)


def _judged(index: LabelIndex, rows: np.ndarray) -> Hits:
    """The judged items of queries without predictions."""
    no_items = take_ids(index.labels.items, np.zeros(0, np.int64))
    offsets = np.zeros(len(rows) + 1, np.int64)
    lists = Lists(take_ids(index.queries, rows), offsets, no_items, None, 0, 0, Place(""), 0)
    return judged_hits(index.labels, lists, rows, Scope())


def _of_queries(
    columns: Sequence[MeasureColumn], values: dict[str, np.ndarray], topics: Topics, asked: Request
) -> Iterator[str]:
    """The lines of each query, without those of measures that are only of all of them."""
    shown = [
        one for one in columns if one.row.over != "geometric" and one.name not in ("runid", "num_q")
    ]
    cells = []
    for column in shown:
        if column.measure == "relstring":
            length = int(column.params[0])
            cleared = topics.lacking & (column.name == "relstring")
            cells.append(
                [
                    f"'{'' if empty else relevance_string(topics.judged, q, length)}'"
                    for q, empty in enumerate(cleared)
                ]
            )
        else:
            cells.append([_text(one, column, asked) for one in values[column.name].tolist()])
    labels = [_label(column, asked) for column in shown]
    for q, query in enumerate(topics.names):
        for label, texts in zip(labels, cells, strict=True):
            yield f"{label}\t{query}\t{texts[q]}\n"


def _of_all(
    columns: Sequence[MeasureColumn],
    values: dict[str, np.ndarray],
    topics: Topics,
    asked: Request,
    run_name: str,
) -> Iterator[str]:
    """The lines of all queries."""
    counted = topics.all if asked.complete else len(topics.names)
    for column in columns:
        if column.measure == "relstring":
            continue
        if column.measure == "runid":
            text = run_name
        elif column.measure == "num_q":
            text = _text(counted, column, asked)
        elif column.measure == "num_rel" and asked.complete:
            text = _text(topics.relevant, column, asked)
        else:
            text = _text(_over(values[column.name], column.row.over, counted), column, asked)
        yield f"{_label(column, asked)}\tall\t{text}\n"


def _over(values: np.ndarray, how: str, counted: int) -> float:
    """What values come to, added one after the other as trec_eval does."""
    total = float(np.cumsum(values)[-1])
    if how == "geometric":
        return math.exp((total + (counted - len(values)) * math.log(LEAST)) / counted)
    return total if how == "sum" else total / counted


def _label(column: MeasureColumn, asked: Request) -> str:
    return f"{'Z' if asked.scores and column.row.over != 'text' else ''}{column.name:<22}"


def _text(value: float, column: MeasureColumn, asked: Request) -> str:
    if column.row.over == "sum" and not asked.scores:
        return str(int(value))
    return f"{value:6.4f}" if value == value else "  -nan"  # as C prints 0 / 0


def _to_zscores(values: dict[str, np.ndarray], queries: Sequence[str], path: str) -> None:
    """Put (value - mean) / deviation in the place of values, by a file of these."""
    known = {}
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(lines, 1):
        try:
            query, measure, *numbers = line.split()
            one, other = map(float, numbers)
            known[query, measure] = one, other
        except ValueError:
            raise InputError(
                f"{path}, line {number}: {line.strip()!r}; expected query, measure, mean and "
                "standard deviation"
            ) from None
    for name, found in values.items():
        for q, query in enumerate(queries):
            mean, deviation = known.get((query, name), (math.nan, 0.0))
            if deviation:
                found[q] = (found[q] - mean) / deviation
            else:
                found[q] = 0.0 if found[q] == mean else _NO_ZSCORE


def _run_name(run: Source) -> str:
    """The tag in the last row of a run, of which only the last blocks are parsed again."""
    for piece in reversed(run.pieces([TAG])):
        for block in reversed(deque(piece, maxlen=2)):  # the last may hold blank lines only
            if len(tags := batch_of(block).data.column(TAG)):
                return str(tags[-1].as_py())
    return ""


# ------------------------------------------------------------------ pytrec_eval's evaluator

supported_measures = {name for name, row in MEASURES.items() if row.since < 10} - {"yaap"}
supported_nicknames = {
    name: {one for one in names if one in supported_measures} for name, names in NICKNAMES.items()
} | {name: set(some) for name, some in OF_OTHER_FILES.items()}
_NUMBERS = r"[._]([0-9]+(?:\.[0-9]+)?(?:,[0-9]+(?:\.[0-9]+)?)*)"
_SEMANTICS = preset("trec_eval").semantics
_NOT_SCORES = "Unable to extract query/object scores."


class RelevanceEvaluator:
    """Evaluate runs under relevance judgments, as ``pytrec_eval.RelevanceEvaluator`` does.

    Parameters
    ----------
    query_relevance : dict of str to dict of str to int
        Query id -> document id -> level of relevance.
    measures : iterable of str
        Measures and sets of trec_eval, such as ``"map"``, ``"ndcg_cut.5,10"``, ``"P_5"``,
        ``"official"``.
    relevance_level : int
        The lowest level that is relevant.
    judged_docs_only_flag : bool
        Whether documents that are not judged are left out.

    Raises
    ------
    TypeError, ValueError
        Where pytrec_eval raises them, with its messages.

    Examples
    --------
    >>> from rankmill.pytrec_eval import RelevanceEvaluator
    >>> evaluator = RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "P_5"})
    >>> evaluator.evaluate({"q1": {"d1": 0.3, "d2": 0.7}})
    {'q1': {'map': 0.5, 'P_5': 0.2}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        self._columns = columns_of(_combined(measures), 9)
        if not isinstance(relevance_level, int):
            raise TypeError("Expected object_relevance_per_qid dictionary and measures set.")
        if relevance_level < 1:
            raise TypeError("Argument relevance_level should be positive.")
        self._level = relevance_level
        self._scope = Scope(judged_only=bool(judged_docs_only_flag))
        relevance = {query: found for query, found in query_relevance.items() if len(found) > 0}
        if not all(isinstance(query, str) for query in relevance):
            raise TypeError("Expected string as key.")
        if not all(isinstance(found, dict) for found in relevance.values()):
            raise TypeError("Expected dictionary as value.")
        not_ids = "Expected mapping of document id to query relevance or matching score."
        lists = _lists(relevance, int, not_ids, "Expected relevance to be integer.")
        labels, _ = clean_labels(lists.offsets, lists.items, lists.confidences, judged=True)
        self._index = LabelIndex(lists.queries, labels)

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Return query id -> measure -> value, for the queries of a run that are judged.

        Parameters
        ----------
        scores : dict of str to dict of str to float
            Query id -> document id -> score.

        Raises
        ------
        TypeError
            If it is something else.
        """
        if not scores:
            return {}
        if not isinstance(scores, dict):
            raise TypeError("Argument object scores should be of type dictionary.")
        if not all(isinstance(one, dict) for one in scores.values()) or not all(
            isinstance(query, str) for query in scores
        ):
            raise TypeError(_NOT_SCORES)
        lists = _lists(scores, (float, int), _NOT_SCORES, _NOT_SCORES)
        rows = self._index.find(lists.queries)
        lists = arrange(lists, _SEMANTICS)
        judged = judged_hits(self._index.labels, lists, rows, self._scope)
        levels = Levels(judged, self._level, _SEMANTICS)
        names = [
            column.name if column.row.form in ("cutoffs", "shares") else column.measure
            for column in self._columns
        ]
        table = np.empty((len(rows), len(names)))
        for place, column in enumerate(self._columns):
            table[:, place] = levels.values(column)
        return {
            query: dict(zip(names, values, strict=True))
            for query, row, values in zip(scores, rows.tolist(), table.tolist(), strict=True)
            if row >= 0
        }


def _lists(given: Mapping[str, Mapping[str, Any]], kind: Any, not_ids: str, not_kind: str) -> Lists:
    """Query id -> item id -> number as lists; TypeError where they are something else."""
    lengths = np.fromiter(map(len, given.values()), np.int64, len(given))
    numbers: list[Any] = []
    for found in given.values():
        numbers.extend(found.values())
    items = join_items(given.values(), len(numbers))
    if not isinstance(items, pa.Array) and not all(isinstance(one, str) for one in items):
        raise TypeError(not_ids)
    if not all(issubclass(one, kind) for one in set(map(type, numbers))):
        raise TypeError(not_kind)
    texts = pa.array(items, pa.large_string()) if isinstance(items, list) else items
    return Lists(
        queries=to_ids(pa.array(list(given), pa.large_string()), "queries"),
        offsets=offsets_of(lengths),
        items=to_ids(texts, "documents"),
        numbers=np.array(numbers, np.float64),
        nulls=0,
        tied=0,
        place=Place("the run"),
        rows=len(given),
    )


def _combined(measures: Iterable[str]) -> list[str]:
    """Measures with all their parameters, however they were given: P_5 and P.10 are P.5,10."""
    found: dict[str, set[str]] = defaultdict(set)
    expanded = {one for name in measures for one in supported_nicknames.get(name, (name,))}
    for measure in sorted(expanded):
        if measure in supported_measures:
            found.setdefault(measure, set())
            continue
        for name in supported_measures:
            if match := re.match(re.escape(name) + _NUMBERS, measure):
                found[name].update(match[1].split(","))
                break
        else:
            raise ValueError(f"unsupported measure {measure}")
    return [f"{name}.{','.join(sorted(some))}" if some else name for name, some in found.items()]


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """Return the aggregate of the values of queries: a sum, a geometric mean or a mean.

    Parameters
    ----------
    measure : str
        Those called num_... are added; of gm_..., the values are logarithms.
    values : list of float

    Examples
    --------
    >>> from rankmill.pytrec_eval import compute_aggregated_measure
    >>> compute_aggregated_measure("num_ret", [1.0, 2.0]), compute_aggregated_measure("map", [0, 1])
    (3.0, 0.5)
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values))


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return query id -> document id -> score, of the lines of a run.

    Parameters
    ----------
    f_run : iterable of str
        Lines of six fields.

    Raises
    ------
    AssertionError
        If a document appears twice under a query, as pytrec_eval has it.

    Examples
    --------
    >>> from rankmill.pytrec_eval import parse_run
    >>> dict(parse_run(["q1 Q0 d1 1 2.5 bm25"]))
    {'q1': {'d1': 2.5}}
    """
    run: dict[str, dict[str, float]] = defaultdict(dict)
    for line in f_run:
        query, _, document, _, score, _ = line.strip().split()
        _add(run[query], document, float(score))
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Return query id -> document id -> level, of the lines of qrels.

    Parameters
    ----------
    f_qrel : iterable of str
        Lines of four fields.

    Raises
    ------
    AssertionError
        If a document appears twice under a query, as pytrec_eval has it.

    Examples
    --------
    >>> from rankmill.pytrec_eval import parse_qrel
    >>> dict(parse_qrel(["q1 0 d1 2"]))
    {'q1': {'d1': 2}}
    """
    qrel: dict[str, dict[str, int]] = defaultdict(dict)
    for line in f_qrel:
        query, _, document, level = line.strip().split()
        _add(qrel[query], document, int(level))
    return qrel


def _add(found: dict[str, Any], document: str, value: float) -> None:
    if document in found:
        raise AssertionError
    found[document] = value
