"""The measures of ir_measures that rankmill computes, as a provider of its own."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from rankmill.engine.evaluate import evaluate
from rankmill.errors import UsageError
from rankmill.metrics.families.diversity import is_of_subtopics
from rankmill.metrics.registry import parse
from rankmill.semantics.presets import preset
from rankmill.semantics.semantics import Semantics
from rankmill.sources.nouns import Labels
from rankmill.version import install

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


def name_of(measure: Any) -> str:
    """Return what a measure of ir_measures is called here, but for its ``gains``.

    Raises
    ------
    UsageError
        If it is not computed here; the message says why.

    Examples
    --------
    >>> import ir_measures
    >>> name_of(ir_measures.parse_measure("P(judged_only=True)@10"))
    'P(judged_only)@10'
    >>> name_of(ir_measures.parse_measure("nDCG(dcg='exp-log2')@10"))
    'nDCG(gain=exp)@10'
    """
    given = {name: value for name, value in measure.params.items() if name != "gains"}
    name = measure.NAME
    if name == "RBP" and "rel" not in given:
        raise UsageError("RBP without rel is of graded gains in ir_measures: give a rel")
    if not given.pop("normalize", True):
        raise UsageError(f"{name}(normalize=False) is not computed: type {name}")
    if name == "NumRet" and "rel" in given:
        name = "NumRelRet"
    if name == "SetP" and given.pop("relative", False):
        name = "SetRelP"
    if name == "SetF" and given.get("beta", -1) >= 0:  # which is squared already there
        name, given["beta"] = "set_f", math.sqrt(given["beta"])
    cut = next((given.pop(one) for one in ("cutoff", "recall") if one in given), None)
    if given.get("min_rel") == 0:
        del given["min_rel"]
    given = {one: value for one, value in given.items() if value is not False}
    tried = (given, {_RENAMED.get(one, one): value for one, value in given.items()})
    for last, parameters in enumerate(tried):
        inner = ",".join(f"{one}={value}" for one, value in parameters.items())
        at = "" if cut is None else f"@{cut}"
        try:
            return parse(f"{name}{f'({inner})' if inner else ''}{at}").text
        except UsageError:
            if last:
                raise
    raise AssertionError


class RankmillProvider(Provider):
    """Computes measures of ir_measures with rankmill, all in one pass over the run.

    Values are those of the providers of ir_measures, up to the last bits of sums. Equal scores are
    ordered as pytrec_eval orders them. Use `supports` to find out which measures it computes.
    Compat is the same for scores above 0: ir_measures takes documents that a run lacks for ones of
    score 0.

    Examples
    --------
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
        # A pass for each map of gains, and for subtopics; the others are all in one.
        self._passes: dict[tuple[Any, bool], dict[str, Any]] = defaultdict(dict)
        for measure in measures:
            name = name_of(measure)
            gains = tuple((measure.params.get("gains") or {}).items())
            self._passes[gains, is_of_subtopics(parse(name))][name] = measure
        self._labels = {one: _labels(rows, dict(one[0]), one[1]) for one in self._passes}

    def _iter_calc(self, run: Any) -> Iterator[Any]:
        rows = [
            row
            for row in ir_measures.util.RunConverter(run).as_namedtuple_iter()
            if row.query_id in self.qrel_qids
        ]
        if not rows:
            return
        predictions = pa.table(
            {
                "query": pa.array([row.query_id for row in rows], pa.large_string()),
                "item": pa.array([row.doc_id for row in rows], pa.large_string()),
                "score": pa.array([row.score for row in rows], pa.float64()),
            }
        )
        for one, measures in self._passes.items():
            labels, names = self._labels[one], [*measures]
            table = evaluate(
                labels, predictions, names, semantics=Semantics(**_RULES), per_query=True
            ).per_query
            queries = table.column("query").to_pylist()
            for name, measure in measures.items():
                for query, value in zip(queries, table.column(name).to_pylist(), strict=True):
                    yield ir_measures.Metric(query_id=query, measure=measure, value=value)


def _labels(rows: list[Any], gains: Mapping[int, float], parts: bool) -> Labels:
    """The qrels, with gains in the place of levels.

    Without subtopics the last level of a document counts, as in a dict.
    """
    if not parts:
        rows = list({(row.query_id, row.doc_id): row for row in rows}.values())
    columns = {
        "query": pa.array([row.query_id for row in rows], pa.large_string()),
        "item": pa.array([row.doc_id for row in rows], pa.large_string()),
        "gain": pa.array([gains.get(row.relevance, row.relevance) for row in rows], pa.float64()),
    }
    if not parts:
        return Labels(pa.table(columns))
    columns["subtopic"] = pa.array([row.iteration for row in rows], pa.large_string())
    return Labels(pa.table(columns), subtopic="subtopic")


provider = register(RankmillProvider())
