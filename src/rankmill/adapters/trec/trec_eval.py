"""What trec_eval prints: a line for each measure of each query, and for all of them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.adapters.trec.measures import (
    LEAST,
    Levels,
    MeasureColumn,
    columns_of,
    in_order,
    judged_hits,
    relevance_string,
)
from rankmill.columns.ids import ids_to_arrow, take_ids
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.engine.held_labels import read_labels
from rankmill.engine.job import Job, open_job
from rankmill.errors import InputError
from rankmill.matching.hits import Hits
from rankmill.matching.index import LabelIndex
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
