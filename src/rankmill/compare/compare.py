"""compare() scores systems over the same queries and tests how they differ from a baseline."""

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from rankmill.compare.aligned import Aligned
from rankmill.compare.comparison import Comparison
from rankmill.compare.corrections import CORRECTIONS
from rankmill.compare.differences import Difference, Estimate, Moved, Settings
from rankmill.compare.distributions import t_quantile
from rankmill.compare.judging import judged, relative, tested
from rankmill.compare.moved import most_moved
from rankmill.compare.paired import Paired, paired_of
from rankmill.compare.significance import TESTS
from rankmill.engine.evaluate import evaluate, evaluate_runs
from rankmill.engine.options import options_of
from rankmill.errors import UsageError, positive
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.mean import Mean
from rankmill.results.result import Result
from rankmill.threads import Workers


@options_of(evaluate, without=("per_query",))
def compare(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    tests: str | Iterable[str] = ("t",),
    correction: str = "holm",
    confidence: float = 0.95,
    margin: float | None = None,
    moved: int = 0,
    replicates: int = 10_000,
    seed: int = 0,
    **options: Any,
) -> Comparison:
    """Compare systems with a baseline: differences, intervals, tests, and the queries behind them.

    The values of queries are joined by query id. A query counts only if it counts for every system,
    so that all means are over the same queries. Under the default semantics these are all queries
    with labels, and a system without predictions for one of them scores 0 there. Where the
    semantics leave out queries without predictions, a query that any system lacks is left out for
    all; `Comparison.left_out` tells how many.

    Parameters
    ----------
    labels
        As for `evaluate`.
    runs : mapping of str to predictions
        Two systems or more, each with predictions as for `evaluate`.
    metrics : str or iterable of str
        As for `evaluate`. A metric over all predictions, such as gap, has a value and no test.
    baseline : str, optional
        The system that all others are compared with; by default the first.
    tests : str or iterable of str
        The names of tests; the first one decides the verdict. "t" is the paired t-test,
        ``rankmill docs comparing`` tells of all of them.
    correction : str
        How p-values are corrected over all metrics and systems: "holm", "bonferroni", "bh"
        (Benjamini and Hochberg) or "none".
    confidence : float
        The confidence of intervals; a difference is shown if its corrected p-value is at most
        1 - `confidence`.
    margin : float, optional
        A difference that does not matter. With it, systems can be shown to be equal within the
        margin.
    moved : int
        For each metric and system, how many of the queries that gained most and of those that lost
        most to list. Among equal differences the smallest ids are listed.
    replicates, seed : int
        The number of random replicates of the tests that use them, and their seed.

    Returns
    -------
    Comparison
        All other parameters and the errors are those of `evaluate`. A UsageError is also raised if
        there are fewer than two systems, or an option of the comparison is wrong.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.Ragged.from_lists([[1], [2], [3], [4]])
    >>> runs = {"old": [[1], [9], [9], [9]], "new": [[1], [9, 2], [3], [9, 4]]}
    >>> runs = {name: rankmill.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> found = rankmill.compare(labels, runs, ["map@2"])
    >>> new = found.differences["map@2"]["new"]
    >>> new.value, new.won, new.tied, new.lost, new.verdict
    (0.5, 3, 1, 0, 'no difference shown')
    """
    began = time.perf_counter()
    settings = Settings(_names(tests), correction, confidence, margin, moved, replicates, seed)
    _check(settings)
    base = _baseline(runs, baseline)
    results = evaluate_runs(labels, runs, metrics, **options)
    compared = _Compared.of(results, base, settings)
    with Workers(options["threads"]) as workers:
        values = compared.values(workers)
        differences, rows = compared.differences(values, workers)
    return Comparison(
        baseline=base,
        values=values,
        differences=differences,
        queries=compared.queries,
        left_out=compared.left_out(),
        differing=len(compared.aligned.queries) - compared.queries,
        unpredicted={name: one.audit["queries_only_labelled"] for name, one in results.items()},
        moved=rows,
        per_query=compared.aligned.table(),
        pooled=compared.pooled,
        settings=settings,
        semantics=results[base].semantics,
        scope=results[base].scope,
        notes=results[base].notes,
        inputs={
            "labels": results[base].inputs["labels"],
            "systems": {name: one.inputs["predictions"] for name, one in results.items()},
        },
        seconds=time.perf_counter() - began,
    )


def _names(tests: Any) -> tuple[str, ...]:
    if not isinstance(tests, Iterable):
        raise UsageError(f"tests is {tests!r}; expected names of tests: {', '.join(TESTS)}")
    return (tests,) if isinstance(tests, str) else tuple(dict.fromkeys(tests))


def _check(settings: Settings) -> None:
    """Raise UsageError if an option is wrong, before anything is read."""
    for test in settings.tests:
        _check_name("test", test, TESTS)
    _check_name("correction", settings.correction, CORRECTIONS)
    if not settings.tests:
        raise UsageError(f"tests is empty; expected one or more of {', '.join(TESTS)}")
    if not 0 < settings.confidence < 1:
        raise UsageError(
            f"confidence is {settings.confidence!r}; expected a number between 0 and 1, such as "
            "0.95"
        )
    if settings.margin is not None and not 0 < settings.margin < float("inf"):
        raise UsageError(f"margin is {settings.margin!r}; expected a positive number, such as 0.01")
    if settings.moved != 0:
        positive(settings.moved, "moved")
    positive(settings.replicates, "replicates")
    if settings.seed != 0:
        positive(settings.seed, "seed")


def _check_name(what: str, chosen: object, known: Mapping[str, object]) -> None:
    if chosen not in known:
        raise UsageError(f"there is no {what} {chosen!r}; expected one of {', '.join(known)}")


def _baseline(runs: Any, baseline: str | None) -> str:
    if not isinstance(runs, Mapping) or len(runs) < 2:
        found = f"{len(runs)} of them" if isinstance(runs, Mapping) else f"a {type(runs).__name__}"
        raise UsageError(
            f"runs is {found}; expected a mapping of two systems or more to their predictions, "
            'such as {"old": ..., "new": ...}'
        )
    if baseline is not None and baseline not in runs:
        raise UsageError(f"there is no system {baseline!r}; expected one of {', '.join(runs)}")
    return next(iter(runs)) if baseline is None else baseline


_Values: TypeAlias = dict[str, dict[str, Estimate]]
_Differences: TypeAlias = dict[str, dict[str, Difference]]
_MovedQueries: TypeAlias = dict[str, dict[str, list[Moved]]]


class _Task(NamedTuple):
    metric: str
    system: str


class _Pairing(NamedTuple):
    """The differences of a system, and the queries that moved most."""

    paired: Paired
    moved: list[Moved]


class _Compared(NamedTuple):
    """The results of systems, joined, and the queries that count for all of them."""

    results: dict[str, Result]
    base: str
    settings: Settings
    aligned: Aligned
    common: np.ndarray | None
    kept: dict[str, np.ndarray | None]

    @classmethod
    def of(cls, results: dict[str, Result], base: str, settings: Settings) -> "_Compared":
        aligned = Aligned.of(results)
        common = aligned.common()
        kept = {name: aligned.kept(name, common) for name in results}
        return cls(results, base, settings, aligned, common, kept)

    @property
    def queries(self) -> int:
        """The number of queries that count for all."""
        return len(self.aligned.queries) if self.common is None else int(self.common.sum())

    @property
    def metrics(self) -> list[str]:
        """All metrics, in the order asked for."""
        return list(self.results[self.base].metrics)

    @property
    def pooled(self) -> list[str]:
        """The metrics that are no mean over queries."""
        per_query = self.aligned.tables[self.base].column_names[1:]
        return [metric for metric in self.metrics if metric not in per_query]

    def left_out(self) -> dict[str, int]:
        """Return how many queries count for each system, but not for all."""
        return {name: one.queries - self.queries for name, one in self.results.items()}

    def values(self, workers: Workers) -> _Values:
        """Return the value of each metric and system, with an interval if it is a mean."""
        tasks = [_Task(metric, name) for metric in self.metrics for name in self.results]
        found: _Values = {metric: {} for metric in self.metrics}
        with closing(workers.map(self._estimate, tasks)) as all_found:
            for (metric, name), one in zip(tasks, all_found, strict=True):
                found[metric][name] = one
        return found

    def _estimate(self, task: _Task) -> Estimate:
        result = self.results[task.system]
        value, error = result.metrics[task.metric], result.standard_errors[task.metric]
        if task.metric in self.pooled:
            return Estimate(value)
        if self.common is not None:
            mean = Mean.of(self._of_queries(task.system, task.metric))
            value, error = mean.mean, mean.standard_error
        if value is None or error is None:
            return Estimate(value)
        half = t_quantile((1 + self.settings.confidence) / 2, self.queries - 1) * error
        return Estimate(value, error, value - half, value + half)

    def _of_queries(self, name: str, metric: str) -> np.ndarray:
        return self.aligned.values(name, metric, self.kept[name])

    def differences(self, values: _Values, workers: Workers) -> tuple[_Differences, _MovedQueries]:
        """Return the difference of each metric and system, and the queries that moved most."""
        found: _Differences = {metric: {} for metric in self.metrics}
        moved: _MovedQueries = {}
        tasks = [_Task(m, name) for m in self.metrics for name in self.results if name != self.base]
        with closing(workers.map(self._paired, tasks)) as all_paired:
            for (metric, name), pairing in zip(tasks, all_paired, strict=True):
                base, value = (values[metric][one].value for one in (self.base, name))
                if pairing is None:
                    less = None if value is None or base is None else value - base
                    found[metric][name] = Difference(less, relative(less, base))
                    continue
                # Tests that resample use all threads themselves.
                found[metric][name] = tested(pairing.paired, base, self.settings, workers.threads)
                if self.settings.moved:
                    moved.setdefault(metric, {})[name] = pairing.moved
        return judged(found, self.settings), moved

    def _paired(self, task: _Task) -> _Pairing | None:
        """Pair the queries of a system with those of the baseline; None if there is no mean."""
        if task.metric in self.pooled:
            return None
        before, after = (self._of_queries(name, task.metric) for name in (self.base, task.system))
        differences, count = after - before, self.settings.moved
        rows = most_moved(self._ids(), before, after, differences, count) if count else []
        return _Pairing(paired_of(differences), rows)

    def _ids(self) -> Any:
        queries = self.aligned.queries
        return queries if self.common is None else queries.filter(pa.array(self.common))
