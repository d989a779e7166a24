"""The measures of ir_measures that rankmill computes, as a provider of its own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from rankmill.engine.evaluate import evaluate
from rankmill.errors import UsageError, install
from rankmill.metrics.registry import parse, spec_named
from rankmill.semantics.presets import preset
from rankmill.semantics.semantics import Semantics
from rankmill.sources.nouns import Labels, Predictions

try:
    import ir_measures
    from ir_measures.providers import Evaluator, Provider, register
except ImportError:
    raise ImportError(f"ir_measures is not installed: {install('ir_measures')}") from None

# As its own providers count, each of which gives what is missing the value that it has by default.
_RULES: dict[str, Any] = {
    **replace(preset("trec_eval").semantics, repeated_labels="set").differences()
}
# What is another number here, or a text, or is the same under another name.
_RENAMED = {"max_rel": "max", "T": "t"}
# A cutoff beyond every list.
_EVERY = 1_000_000_000


class _View(NamedTuple):
    """How a measure reads qrels and run, where its name here does not say so."""

    gains: tuple[tuple[int, float], ...] = ()  # what each level is worth
    lowest: int = 0  # the level that is worth nothing
    # For measures of subtopics, the least level that counts, and whether documents that the qrels
    # lack are dropped.
    least: int | None = None
    judged_only: bool = False

    def gain(self, level: int) -> float:
        """What a level is worth."""
        if self.least is not None:
            return float(level >= self.least)
        worth = dict(self.gains).get(level, level)
        return max(worth, self.lowest) - self.lowest if self.lowest else worth


def name_of(measure: Any) -> str:
    """Return what a measure of ir_measures is called here.

    Its `gains` and `min_rel` are no part of the name, nor are `rel` and `judged_only` of a measure
    of subtopics: `provider` changes what it reads instead.

    Raises
    ------
    UsageError
        If it is not computed here; the message says why.

    Examples
    --------
    >>> from rankmill.ir_measures import name_of
    >>> import ir_measures
    >>> name_of(ir_measures.parse_measure("P(judged_only=True)@10"))
    'P(judged_only)@10'
    >>> name_of(ir_measures.parse_measure("nDCG(dcg='exp-log2')@10"))
    'nDCG(gain=exp)@10'
    """
    return _read(measure)[0]


def _read(measure: Any) -> tuple[str, _View]:
    """What a measure is called here, and how it reads its inputs."""
    name, given = measure.NAME, dict(measure.params)
    gains = tuple((given.pop("gains", None) or {}).items())
    view = _View(gains, lowest=given.pop("min_rel", 0))
    if view.lowest:
        given["max_rel"] -= view.lowest
    if given.get("dcg") == "log2":
        del given["dcg"]
    if name == "RBP" and "rel" not in given:
        raise UsageError(
            "RBP without rel uses graded gains, which no provider of ir_measures computes: give "
            "a rel"
        )
    if not given.pop("normalize", True):
        name = "rbo"
    if name == "NumRet" and "rel" in given:
        name = "NumRelRet"
    if name == "SetP" and given.pop("relative", False):
        name = "SetRelP"
    if name == "SetF" and given.get("beta", -1) >= 0:  # which is squared already there
        name, given["beta"] = "set_f", math.sqrt(given["beta"])
    if spec_named(name).gains == "subtopics":
        if name in ("alpha_DCG", "ERR_IA") and given.get("cutoff") == 1:
            raise UsageError(
                f"ir_measures does not divide {name}@1 as it does at other cutoffs: ask for "
                f"{name.replace('DCG', 'nDCG').replace('ERR', 'nERR')}@1, or evaluate {name}@1 "
                "with rankmill for the divided value"
            )
        least, judged = given.pop("rel", 1), given.pop("judged_only", False)
        view = view._replace(least=least, judged_only=judged)
    cut = next((given.pop(one) for one in ("cutoff", "recall") if one in given), None)
    if name == "Judged" and cut is None:
        cut = _EVERY
    given = {one: value for one, value in given.items() if value is not False}
    tried = (given, {_RENAMED.get(one, one): value for one, value in given.items()})
    for last, parameters in enumerate(tried):
        inner = ",".join(f"{one}={value}" for one, value in parameters.items())
        at = "" if cut is None else f"@{cut}"
        try:
            return parse(f"{name}{f'({inner})' if inner else ''}{at}").text, view
        except UsageError:
            if last:
                raise
    raise AssertionError


class RankmillProvider(Provider):
    """Computes measures of ir_measures with rankmill, all in one pass over the run.

    Values are those of the providers of ir_measures, up to the last bits of sums. Equal scores are
    ordered as pytrec_eval orders them. Use `supports` to find out which measures it
    computes. Compat is the same for scores above 0: ir_measures takes documents that a run lacks
    for ones of score 0.
    nNRBP of a query without a relevant document is 0 here, and NaN there.
    ``judged_only`` of a measure of subtopics, which fails in ir_measures, drops the documents that
    the qrels lack.

    Examples
    --------
    >>> from rankmill.ir_measures import RankmillProvider
    >>> import ir_measures
    >>> provider = RankmillProvider()
    >>> provider.supports(ir_measures.parse_measure("nDCG(gains={1:3,2:7})@10"))
    True
    >>> provider.calc_aggregate([ir_measures.AP], {"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}})
    {AP: 0.5}
    """

    NAME = "rankmill"

    def supports(self, measure: Any) -> bool:
        """Return whether rankmill computes a measure with these parameters."""
        measure.validate_params()
        try:
            return bool(name_of(measure))
        except UsageError:
            return False

    def install_instructions(self) -> str:
        """Return how to install both."""
        return install("ir_measures")

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> Evaluator:
        return _RankmillEvaluator(list(measures), qrels)


class _RankmillEvaluator(Evaluator):
    def __init__(self, measures: list[Any], qrels: Any) -> None:
        rows = list(ir_measures.util.QrelsConverter(qrels).as_namedtuple_iter())
        super().__init__(measures, {row.query_id for row in rows})
        # A pass for each way to read the qrels and the run.
        self._passes: dict[_View, list[tuple[str, Any]]] = defaultdict(list)
        for measure in measures:
            name, view = _read(measure)
            self._passes[view].append((name, measure))
        self._labels = {view: _labels(rows, view) for view in self._passes}
        self._judged = {(row.query_id, row.doc_id) for row in rows}

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        rows = [
            row
            for row in ir_measures.util.RunConverter(run).as_namedtuple_iter()
            if row.query_id in self.qrel_qids
        ]
        if not rows:
            return
        for view, measures in self._passes.items():
            of_view = rows
            if view.judged_only:
                of_view = [row for row in rows if (row.query_id, row.doc_id) in self._judged]
            if not of_view:
                continue  # queries without a value have that by default
            table = evaluate(
                self._labels[view],
                Predictions(_table(of_view, score=[row.score for row in of_view]), exact_ids=True),
                [*{name: None for name, _ in measures}],
                semantics=Semantics(**_RULES),
                per_query=True,
            ).per_query
            queries = table.column("query").to_pylist()
            for name, measure in measures:
                for query, value in zip(queries, table.column(name).to_pylist(), strict=True):
                    yield ir_measures.Metric(query_id=query, measure=measure, value=value)


def _labels(rows: list[Any], view: _View) -> Labels:
    """The qrels, with gains instead of levels.

    Without subtopics the last level of a document counts, as in a dict.
    """
    if view.least is None:
        rows = list({(row.query_id, row.doc_id): row for row in rows}.values())
    table = _table(rows, gain=[view.gain(row.relevance) for row in rows])
    if view.least is None:
        return Labels(table, exact_ids=True)
    topics = pa.array([row.iteration for row in rows], pa.large_string())
    return Labels(table.append_column("subtopic", topics), subtopic="subtopic", exact_ids=True)


def _table(rows: list[Any], **numbers: list[float]) -> pa.Table:
    """The queries and documents of some rows, with a column of numbers."""
    columns = {
        "query": pa.array([row.query_id for row in rows], pa.large_string()),
        "item": pa.array([row.doc_id for row in rows], pa.large_string()),
    }
    return pa.table(columns | {name: pa.array(of, pa.float64()) for name, of in numbers.items()})


provider = register(RankmillProvider())
