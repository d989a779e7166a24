"""`RelevanceEvaluator` and its neighbours, as pytrec_eval has them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.adapters.trec.measures import (
    MEASURES,
    NICKNAMES,
    OF_OTHER_FILES,
    Levels,
    columns_of,
    judged_hits,
)
from rankmill.columns.ids import to_ids
from rankmill.columns.item_buffers import join_items
from rankmill.columns.lists import offsets_of
from rankmill.columns.ranked_lists import Lists, Place
from rankmill.matching.index import LabelIndex
from rankmill.matching.label_lists import clean_labels
from rankmill.matching.order import arrange
from rankmill.semantics.choices import Scope
from rankmill.semantics.presets import preset

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
