"""What a page is about, told apart: a result, a comparison or a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pyarrow as pa

from rankmill.analysis.compare.differences.differences import Difference, Estimate, Settings, Slice
from rankmill.analysis.compare.differences.judgement import interval_of
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.compare.view.details import Details, Histogram, histograms_of
from rankmill.analysis.explain.trace import Listed
from rankmill.errors import UsageError, plural
from rankmill.metrics.registry import parse
from rankmill.metrics.texts import spellings
from rankmill.nightly.rules.reports import Trends
from rankmill.nightly.rules.verdict import Verdict
from rankmill.records import record
from rankmill.results.result import Result
from rankmill.semantics.choices import Choices, Scope
from rankmill.semantics.metric_names import canonical

ONLY = "the predictions"
"""What the system of a page about one result is called."""


@record(frozen=True)
class Subject:
    """What a page is about."""

    systems: list[str]  # those that are looked at, the first one above all; without the baseline
    baseline: str | None
    values: dict[str, dict[str, Estimate]]  # metric -> system -> value
    comparison: Comparison | None
    verdict: Verdict | None
    results: dict[str, Result]  # of each system that is known
    details: Details  # without them, what the subject itself has
    lists: Sequence[Listed]
    history: Trends
    command: str | None

    @property
    def main(self) -> str:
        """The system that is looked at above all."""
        return self.systems[0]

    @property
    def shown(self) -> list[str]:
        """All systems, the baseline second."""
        base = [] if self.baseline is None else [self.baseline]
        return [self.main, *base, *self.systems[1:]]

    @property
    def metrics(self) -> list[str]:
        """The metrics, in the order asked."""
        return list(self.values)

    @property
    def result(self) -> Result | None:
        """The result of the main system."""
        return self.results.get(self.main)

    @property
    def queries(self) -> int:
        """The number of queries that count."""
        if self.comparison is not None:
            return self.comparison.queries
        return self.result.queries if self.result is not None else 0

    @property
    def counted(self) -> str:
        """Over how many queries, and in how many clusters they come."""
        told, known = plural(self.queries, "query"), self.comparison or self.details
        if known.clusters is None:
            return told
        by = self.settings.cluster or self.details.cluster
        return f"{told} in {plural(known.clusters, 'cluster')} by {by}"

    @property
    def settings(self) -> Settings:
        """How systems were compared."""
        return Settings() if self.comparison is None else self.comparison.settings

    @property
    def slices(self) -> list[Slice]:
        """The slices that were asked for, then those of the details."""
        asked = [] if self.comparison is None else self.comparison.slices
        there = {one.by for one in asked}
        return [*asked, *(one for one in self.details.slices if one.by not in there)]

    @property
    def rules(self) -> tuple[Choices, Scope]:
        """How it was counted."""
        one: Any = self.comparison or self.result
        return one.semantics, one.scope

    @property
    def changes(self) -> list[tuple[str, str, Difference | None]]:
        """Each metric and system with its difference from the baseline."""
        pairs = product(self.metrics, self.systems)
        return [(metric, system, self.difference(metric, system)) for metric, system in pairs]

    def difference(self, metric: str, system: str) -> Difference | None:
        """Return the difference of a system from the baseline, None if there is none."""
        found = None if self.comparison is None else self.comparison.differences.get(metric, {})
        return None if found is None else found.get(system)


def subject_of(
    found: Any,
    details: Details | None = None,
    lists: Sequence[Listed] = (),
    history: Trends | None = None,
    command: str | None = None,
) -> Subject:
    """Return what a page about a Result, a Comparison or a Verdict is about."""
    verdict, comparison, result = None, None, found
    if isinstance(found, Verdict):
        verdict, comparison, result = found, found.comparison, found.result
    elif isinstance(found, Comparison):
        comparison, result = found, None
    elif not isinstance(found, Result):
        raise UsageError(
            f"there is no page of a {type(found).__name__}; expected a Result, a Comparison or a "
            "Verdict"
        )
    details = details or getattr(found, "details", None) or getattr(comparison, "details", None)
    rest = lists, history or {}, command
    if comparison is not None:
        columns = {
            metric: {name: f"{name}:{metric}" for name in comparison.systems}
            for metric in comparison.values
            if metric not in comparison.pooled
        }
        details = details or Details({}, histograms=_histograms(comparison.per_query, columns))
        results = dict(details.results)
        if result is not None:
            results[comparison.others[0]] = result
        known = comparison.others, comparison.baseline, comparison.values, comparison
        return _each_metric_once(Subject(*known, verdict, results, details, *rest))
    system = next(iter(details.results), ONLY) if details is not None else ONLY
    values = {}
    for metric, value in result.metrics.items():
        error, queries = result.standard_errors.get(metric), result.averaged(metric)
        effective = result.effective_queries
        values[metric] = {system: interval_of(metric, value, error, queries, effective=effective)}
    values |= {} if details is None else details.values
    columns = {metric: {system: metric} for metric in result.metrics}
    if details is None:
        drawn = _histograms(result.per_query, columns)
        details = Details({}, histograms=drawn, slices=_slices_of(result, system))
    of_system = {system: result}
    return _each_metric_once(
        Subject([system], None, values, None, verdict, of_system, details, *rest)
    )


def _slices_of(result: Result, system: str) -> list[Slice]:
    """Return the slices that a result has, with the values of a system in them."""
    found: dict[tuple[str, str | None], Slice] = {}
    for row in [] if result.by is None else result.by.to_pylist():
        by, value, metric, queries = (row[one] for one in ("by", "slice", "metric", "queries"))
        empty = Slice((by,), (value,), queries, {}, {}, None)
        one = found.setdefault((by, value), empty)
        estimate = interval_of(metric, row["value"], row["standard_error"], queries)
        one.values[metric] = {system: estimate}
    return [*found.values()]


def _each_metric_once(subject: Subject) -> Subject:
    """The subject without metrics that stand there twice, as map@12 and MAP@12; the first stays."""
    first = spellings(map(parse, subject.values))
    again = {metric for metric in subject.values if first[canonical(metric)] != metric}
    if not again:
        return subject

    def kept(of: Mapping[str, Any]) -> dict[str, Any]:
        return {metric: one for metric, one in of.items() if metric not in again}

    of = subject.details
    details = replace(of, cutoffs=kept(of.cutoffs), histograms=kept(of.histograms))
    return replace(subject, values=kept(subject.values), details=details)


def _histograms(
    table: Any, columns: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, Histogram]]:
    """Return histograms of the columns of metrics and systems that a table of queries has."""
    if not isinstance(table, pa.Table):  # none, or a DataFrame of Spark
        return {}
    return {
        metric: histograms_of(
            {name: table.column(one).drop_null().to_numpy() for name, one in of.items()}
        )
        for metric, of in columns.items()
        if {*of.values()} <= {*table.column_names}
    }
