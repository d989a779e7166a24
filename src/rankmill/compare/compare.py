"""compare() scores systems over the same queries and tests how they differ from a baseline."""

import inspect
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

from rankmill.compare.aligned import check_names
from rankmill.compare.comparison import Comparison
from rankmill.compare.corrections import CORRECTIONS
from rankmill.compare.cutting import Cuts, cuts_of
from rankmill.compare.dependence import covariate_name, with_dependence
from rankmill.compare.details import details_of
from rankmill.compare.differences import Settings
from rankmill.compare.finish import finish
from rankmill.compare.joined import Joined, join
from rankmill.compare.kept import check_alone, join_results
from rankmill.compare.paired import LARGEST
from rankmill.compare.pooled import Without, pooled
from rankmill.compare.significance import TESTS, TUKEY, check_weighted
from rankmill.compare.state import ComparisonState
from rankmill.engine.evaluate import evaluate
from rankmill.engine.options import options_of
from rankmill.engine.results import Results
from rankmill.errors import UsageError, positive, share
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.registry import parse_all
from rankmill.results.described import beside
from rankmill.results.result import Result
from rankmill.threads import Workers, thread_count

# The options of `compare` that say how to compare, and not how to score.
OPTIONS = (
    *("baseline", "tests", "correction", "confidence", "margin", "by", "worst_slices", "moved"),
    *("replicates", "seed", "cluster", "adjust"),
)


@options_of(evaluate, without=("per_query",))
def compare(
    labels: Any,
    runs: Mapping[str, Any] | None = None,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    tests: str | Iterable[str] = ("t",),
    correction: str = "holm",
    confidence: float = 0.95,
    margin: float | None = None,
    by: Any = (),
    worst_slices: int = 0,
    moved: int = 0,
    cluster: str | None = None,
    adjust: Any = None,
    replicates: int = 10_000,
    seed: int = 0,
    details: bool = False,
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
        As for `evaluate`. Or what `evaluate_runs` returned: then nothing is read again, there are
        no `runs`, and `by` and its like are tables of query ids.
    runs : mapping of str to predictions
        Two systems or more, each with predictions as for `evaluate`.
    metrics : str or iterable of str
        As for `evaluate`; of results all that they have. gap is no mean over queries: its intervals
        and its test are those of a jackknife over groups of queries, which needs `memory` for all
        predictions.
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
    by : str, table or sequence of these
        How to cut the queries into slices, each of which is tested: a column of the labels; a path
        or a table with query ids, all other columns of which cut (of a pandas Series, the index
        holds the ids, and the name is that of the slices); or what is known of each query,
        which is "label_count", "list_length", "label_popularity" or "unpredicted".
    worst_slices : int
        For each metric and system, how many of the slices with the largest loss to list, among
        those of each way in `by` and of each two ways. Their p is corrected over all of them.
    moved : int
        For each metric and system, how many of the queries that gained most and of those that lost
        most to list. Among equal differences the smallest ids are listed.
    cluster : str, optional
        A column of the labels, or of a table of `by`, which then does not cut: queries with the
        same value, such as the sessions of a user, are not independent. Standard errors and tests
        are of clusters. A query without a value is a cluster of its own.
    adjust : str or table, optional
        A number that was known of each query before, such as its value last month: a column of the
        labels, or a path or a table with query ids and the numbers. Differences are adjusted by it
        (CUPED), which narrows their intervals; slices are not. It takes the test "t".
    replicates, seed : int
        The number of random replicates of the tests that use them, and their seed.
    details : bool
        Whether to collect in the same pass what the page of `rankmill.report` shows beyond the
        numbers, as `Comparison.details`.

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
    given = locals()
    given = {name: given[name] for name in OPTIONS}
    if isinstance(labels, Results):
        usual = inspect.signature(evaluate).parameters
        check_alone(runs, [name for name in options if options[name] is not usual[name].default])
        weight = next((one.scope.weight for one in labels.values()), None)
        asked = asked_of(labels, given, weight)
        how = asked.baseline, asked.cuts
        with Workers(options["threads"]) as workers:
            joined = join_results(labels, metrics, *how, workers, options["memory"])
    else:
        asked = asked_of(runs, given, options["weight"])
        assert runs is not None  # as they were checked
        joined = join(labels, runs, metrics, asked.baseline, asked.cuts, options, details=details)
    with Workers(options["threads"]) as workers:
        state = joined.state(workers, crossed=asked.crossed, rows=asked.rows)
        found = comparison_of(joined, state, asked.settings, workers)
    return replace(found, seconds=time.perf_counter() - began)


class Asked(NamedTuple):
    """How to compare: the checked options of `compare`."""

    settings: Settings
    baseline: str
    cuts: Cuts

    @property
    def crossed(self) -> bool:
        """Whether slices of two ways to cut are needed."""
        return self.settings.worst_slices > 0

    @property
    def rows(self) -> bool:
        """Whether the values of all systems are needed, query by query."""
        return TUKEY in self.settings.tests


def asked_of(runs: Any, given: Mapping[str, Any], weight: str | None) -> Asked:
    """Check the options of a comparison, those of `OPTIONS`, before anything is read."""
    names = [name for name in OPTIONS if name not in ("baseline", "by", "tests", "adjust")]
    own = {name: given[name] for name in names}
    settings = Settings(_names(given["tests"]), adjust=covariate_name(given["adjust"]), **own)
    _check(settings)
    for name in settings.tests if weight is not None else ():
        check_weighted(name)
    base = _baseline(runs, given["baseline"])
    cuts = with_dependence(cuts_of(given["by"]), settings, given["adjust"], weight)
    if settings.worst_slices and cuts == Cuts(cluster=cuts.cluster, adjust=cuts.adjust):
        raise UsageError("worst_slices needs a way to cut queries into slices: give by")
    return Asked(settings, base, cuts)


def comparison_of(
    joined: Joined, state: ComparisonState, settings: Settings, workers: Workers
) -> Comparison:
    """Return the comparison of systems that were joined, with what their queries add up to."""
    return compared(
        joined.results,
        joined.without,
        state,
        settings,
        workers.threads,  # tests that resample use all threads themselves
        moved=joined.moved(settings.moved, workers),
        per_query=joined.aligned.table(),
        told=[] if joined.covariate is None else [joined.covariate.told],
        details=None if joined.seen is None else details_of(joined, settings, workers),
    )


def compared(
    results: Mapping[str, Result],
    without: Mapping[str, Without],
    state: ComparisonState,
    settings: Settings,
    threads: int,
    told: Sequence[str] = (),
    **facts: Any,
) -> Comparison:
    """Return the comparison of systems, given their results and what their queries add up to.

    `without` has, by metric and system, what is known of metrics over all predictions without some
    of the queries. `told` are more notes, and `facts` more fields of the `Comparison`.
    """
    one = results[state.baseline]
    no_means = [metric for metric in one.metrics if metric not in state.metrics]
    more = pooled(results, without, no_means, state.baseline, settings.confidence)
    return finish(
        state,
        settings,
        threads,
        pooled=more.values,
        pooled_differences=more.differences,
        metrics=tuple(one.metrics),
        notes=[*one.notes, *told, *more.notes, *_without_queries(no_means, state, settings)],
        inputs={
            "labels": one.inputs["labels"],
            "systems": {n: each.inputs["predictions"] for n, each in results.items()},
            **beside([*results.values()][-1].inputs),
        },
        **facts,
    )


def _without_queries(no_means: list[str], state: ComparisonState, settings: Settings) -> list[str]:
    """Return a note where metrics have no part in what is told of slices and of queries."""
    asked = [("slices", state.slices), ("queries that moved", settings.moved)]
    missing = " and no ".join(what for what, wanted in asked if wanted)
    return [f"{', '.join(no_means)}: no {missing}"] if no_means and missing else []


@options_of(evaluate, without=("per_query",))
def compare_part(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    by: Any = (),
    crossed: bool = False,
    tukey: bool = False,
    **options: Any,
) -> ComparisonState:
    """Return the state of a comparison of some queries, with all that the systems have for them.

    Parameters
    ----------
    labels, runs, metrics, baseline, by
        As for `compare`. Metrics are means over queries, and `by` is not "label_popularity", which
        needs all labels.
    crossed, tukey : bool
        Whether to add what `worst_slices` and Tukey's test need.

    Returns
    -------
    ComparisonState
        Merge it with the states of other queries; then `compare_state` tests it.

    Raises
    ------
    InputError, UsageError
        As `compare`.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.Ragged.from_lists
    >>> parts = [
    ...     compare_part(lists([[1]]), {"old": lists([[2, 1]]), "new": lists([[1]])}, ["map@2"]),
    ...     compare_part(lists([[3]]), {"old": lists([[3]]), "new": lists([[3]])}, ["map@2"]),
    ... ]
    >>> compare_state(parts[0].merge(parts[1])).differences["map@2"]["new"].value
    0.25
    """
    base, cuts = _baseline(runs, baseline), cuts_of(by)
    if "label_popularity" in cuts.derived:
        raise UsageError("label_popularity needs the labels of all queries: compare does that")
    for metric in parse_all(metrics, semantics=options["semantics"]):
        if metric.spec.kernel is None:
            raise UsageError(
                f"{metric.text} is no mean over queries, and is not part of a state: compare all "
                "queries at once with compare"
            )
    joined = join(labels, runs, metrics, base, cuts, options, part=True)
    with Workers(options["threads"]) as workers:
        return joined.state(workers, crossed=crossed, rows=tukey)


def compare_state(
    state: ComparisonState,
    *,
    tests: str | Iterable[str] = ("t",),
    correction: str = "holm",
    confidence: float = 0.95,
    margin: float | None = None,
    worst_slices: int = 0,
    replicates: int = 10_000,
    seed: int = 0,
    threads: int | None = None,
) -> Comparison:
    """Test the differences of a state that `compare_part` made, or of several that were merged.

    Parameters
    ----------
    state : ComparisonState
    tests, correction, confidence, margin, worst_slices, replicates, seed, threads
        As for `compare`.

    Returns
    -------
    Comparison
        As that of `compare`, without the values of queries and those that moved.

    Raises
    ------
    UsageError
        If an option is wrong, or the state lacks what a test needs.
    """
    settings = Settings(
        _names(tests), correction, confidence, margin, 0, replicates, seed, worst_slices
    )
    _check(settings)
    if not isinstance(state, ComparisonState):
        raise UsageError(
            f"state is a {type(state).__name__}; expected what compare_part returns, or "
            "ComparisonState.from_table"
        )
    alone = sum(len(by) == 1 for by in state.slices)
    if worst_slices and (not alone or (alone > 1 and alone == len(state.slices))):
        raise UsageError(
            "the state lacks slices for worst_slices: make it with by and crossed=True"
        )
    if TUKEY in settings.tests and state.metrics and not state.whole.rows:
        raise UsageError("the state has no rows for Tukey's test: make it with tukey=True")
    return finish(state, settings, thread_count(threads))


def _names(tests: Any) -> tuple[str, ...]:
    if not isinstance(tests, Iterable):
        raise UsageError(f"tests is {tests!r}; expected names of tests: {', '.join(TESTS)}")
    several = [tests] if isinstance(tests, str) else list(tests)
    for test in several:
        _check_name("test", test, {**TESTS, TUKEY: None})
    return tuple(dict.fromkeys(several))


def _check(settings: Settings) -> None:
    """Raise UsageError if an option is wrong, before anything is read."""
    _check_name("correction", settings.correction, CORRECTIONS)
    if not settings.tests:
        raise UsageError(f"tests is empty; expected one or more of {', '.join(TESTS)}")
    share(settings.confidence, "confidence", 0.95)
    margin = settings.margin
    if margin is not None and not (isinstance(margin, Real) and 0 < margin <= LARGEST):
        raise UsageError(f"margin is {margin!r}; expected a positive number, such as 0.01")
    for name in ("moved", "worst_slices"):
        if getattr(settings, name) != 0:
            positive(getattr(settings, name), name)
    positive(settings.replicates, "replicates")
    if settings.seed != 0:
        positive(settings.seed, "seed")


def _check_name(what: str, chosen: object, known: Mapping[str, object]) -> None:
    if not isinstance(chosen, str) or chosen not in known:
        raise UsageError(f"there is no {what} {chosen!r}; expected one of {', '.join(known)}")


def _baseline(runs: Any, baseline: str | None) -> str:
    if not isinstance(runs, Mapping) or len(runs) < 2:
        found = f"{len(runs)} of them" if isinstance(runs, Mapping) else f"a {type(runs).__name__}"
        raise UsageError(
            f"runs is {found}; expected a mapping of two systems or more to their predictions, "
            'such as {"old": ..., "new": ...}'
        )
    check_names(runs)
    if baseline is not None and (not isinstance(baseline, str) or baseline not in runs):
        raise UsageError(f"there is no system {baseline!r}; expected one of {', '.join(runs)}")
    return next(iter(runs)) if baseline is None else baseline
