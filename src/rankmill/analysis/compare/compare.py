"""compare() scores systems over the same queries and tests how they differ from a baseline."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rankmill.analysis.compare.comparison_request import (
    Tests,
    baseline_of,
    cuts_asked,
    metrics_at,
    settings_of,
)
from rankmill.analysis.compare.conclusion import finish
from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import Likeness, Settings
from rankmill.analysis.compare.queries.join import Joined, Reading, join_runs
from rankmill.analysis.compare.queries.kept_values import check_alone, chosen, join_results
from rankmill.analysis.compare.queries.quantiles import quantiles_of
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.compare.view.details import details_of
from rankmill.engine.alike import Alike
from rankmill.engine.cuts import cuts_of
from rankmill.engine.first_pass import Progress
from rankmill.engine.job import parse_job, runs_of
from rankmill.engine.origin import OriginRecorder
from rankmill.engine.results import Results
from rankmill.errors import UsageError, plural, told_shortly
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.texts import split_beside
from rankmill.semantics.semantics import Counting
from rankmill.sources.nouns import Catalogue, Labels, LabelsLike, PredictionsLike, SlicesLike
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers, thread_count


@told_shortly
def compare(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike] | None = None,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    all_pairs: bool = False,
    tests: str | Iterable[str] | Tests = ("t",),
    confidence: float = 0.95,
    cutoffs: str | Iterable[int] | None = None,
    margin: float | None = None,
    by: SlicesLike = (),
    moved: int = 0,
    cluster: str | None = None,
    adjust: Any = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> Comparison:
    """Compare systems with a baseline: differences, intervals, tests, and the queries that changed.

    The values of queries are joined by query id. A query counts only if it counts for every system,
    so that all means are over the same queries. Under the default semantics these are all queries
    with labels, and a system without predictions for one of them scores 0 there. Where the
    semantics leave out queries without predictions, a query that any system lacks is left out for
    all; `Comparison.left_out` counts these.

    Parameters
    ----------
    labels
        As for `evaluate`. Or the results of `evaluate_runs`: then nothing is read again, there are
        no `runs`, and `by` and similar options are tables of query ids.
    runs : mapping of str to predictions
        The predictions of two or more systems, each as for `evaluate`.
    metrics : str or iterable of str
        As for `evaluate`, including sets such as "official", "recsys" and "pr". For results, all
        metrics that they have. With ":baseline" after a metric, as in "rbo(p=0.9)@10:baseline", the
        lists of the baseline are its labels. `Comparison.alike` then shows how similar the lists of
        each system are. Metrics that are not means over queries, such as gap, have the intervals
        and the test of a jackknife over groups of queries, which needs `memory` for these.
    baseline : str, optional
        The system that all others are compared with; by default the first.
    all_pairs : bool
        Whether to compare every pair of systems, not only each one with the baseline. p-values are
        then corrected over all pairs and metrics. Slices are still compared with the baseline.
    tests : str, iterable of str, or Tests
        The names of tests, such as "t" and "randomization"; the first one decides the verdict.
        Use `Tests` to also set the correction and the seed.
    confidence : float
        The confidence of intervals; a difference is shown if its corrected p-value is at most
        1 - `confidence`.
    cutoffs : iterable of int, or str, optional
        Cutoffs, such as [1, 5, 10] or "1,5,10": each metric that takes a cutoff is computed at all
        of these instead of its own, and `Comparison.ranks` shows how the ranking of the systems
        changes over them. p-values are corrected over all cutoffs, too.
    margin : float, optional
        A difference that does not matter. With it, systems can be shown to be equal within the
        margin.
    by : str, table or sequence of these
        Slices of the queries, each of which is tested: a column of the labels; a path or a table
        with query ids, where every other column makes slices, or those that the path names at its
        end, as in "users.parquet:country,age:4,signup:month" (a pandas Series has the ids in its
        index, and its name is that of the slices); or a property of each query: "label_count",
        "list_length", "label_popularity", "activity" or "unpredicted".
    moved : int
        For each metric and system, how many of the queries that gained most and of those that lost
        most to list; with a minus sign, such as -5, only those that lost most. Among equal
        differences the smallest ids are listed.
    cluster : str, optional
        A column of the labels, or of a table of `by`, which then makes no slices: queries with the
        same value, such as the sessions of a user, are not independent. Standard errors and tests
        are computed over clusters. A query without a value is its own cluster.
    adjust : str or table, optional
        A number that was known for each query beforehand, such as its value last month: a column of
        the labels, or a path or a table with query ids and the numbers ("users.parquet:visits"
        chooses a column of several). Differences are adjusted by it (CUPED), which narrows their
        intervals; slices are not. It takes the test "t".
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    Comparison
        The errors are those of `evaluate`. A UsageError is also raised if
        there are fewer than two systems, or an option of the comparison is wrong.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.arrays.Ragged.from_lists([[1], [2], [3], [4]])
    >>> runs = {"old": [[1], [9], [9], [9]], "new": [[1], [9, 2], [3], [9, 4]]}
    >>> runs = {name: rankmill.arrays.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> found = rankmill.compare(labels, runs, ["map@2"])
    >>> new = found.differences["map@2"]["new"]
    >>> new.value, new.won, new.tied, new.lost, new.verdict
    (0.5, 3, 1, 0, 'no difference shown')
    """
    how = baseline, tests, confidence, margin, by, moved, cluster, adjust, all_pairs
    more = cutoffs, semantics, catalogue, threads, memory, progress
    return compare_in_detail(labels, runs, metrics, *how, *more, details=False)


def compare_in_detail(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike] | None = None,
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    baseline: str | None = None,
    tests: str | Iterable[str] | Tests = ("t",),
    confidence: float = 0.95,
    margin: float | None = None,
    by: SlicesLike = (),
    moved: int = 0,
    cluster: str | None = None,
    adjust: Any = None,
    all_pairs: bool = False,
    cutoffs: str | Iterable[int] | None = None,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
    *,
    details: bool = True,
) -> Comparison:
    """Do the same as `compare`; with `details`, what a page shows comes of the same pass."""
    began = time.perf_counter()
    metrics, at = metrics_at(metrics, cutoffs)
    settings = settings_of(tests, confidence, margin, moved, cluster, adjust, all_pairs, at)
    if isinstance(labels, Results):
        check_alone(runs, semantics, catalogue)
        base = baseline_of(labels, baseline)
        weight = next(iter(labels.values())).scope.weight
        cuts = cuts_asked(by, settings, adjust, weight)
        kept = {name: chosen(one, metrics, name) for name, one in labels.items()}
        with Workers(threads) as workers:
            joined = join_results(kept, base, cuts, workers, memory)
    else:
        base, given = baseline_of(runs, baseline), Labels.of(labels)
        cuts = cuts_asked(by, settings, adjust, given.weight)
        names, beside = split_beside(metrics)
        asked = names or DEFAULT_METRICS
        job = parse_job(asked, given, semantics, catalogue, memory=memory)
        more: Any = {"details": details, "alike": Alike.of(beside, job.semantics)}
        reading, systems = Reading(threads, progress), runs_of(runs)
        joined = join_runs(job, given, systems, base, cuts, reading, catalogue, **more)
    with Workers(threads) as workers:
        state = joined.state(workers)
        found = comparison_of(joined, state, settings, workers)
    return replace(found, seconds=time.perf_counter() - began)


def comparison_of(
    joined: Joined, state: ComparisonState, settings: Settings, workers: Workers
) -> Comparison:
    """Return the comparison of systems that were joined, with what their queries add up to."""
    pairs = partial(joined.pairs, state, settings, workers=workers)
    alike, traits = joined.likeness(), joined.traits
    weighted = traits.weights is not None
    told = [] if traits.covariate is None else [traits.covariate.told(weighted)]
    return finish(
        state,
        settings,
        workers.threads,  # the randomization test uses all threads itself
        joined.results,
        joined.without,
        quantiles=quantiles_of(joined, settings),
        moved=joined.moved(settings.moved, workers),
        lacking=joined.aligned.lacking(),
        per_query=joined.aligned.table(),
        told=[*told, *_lists_told(alike)],
        alike=alike,
        details=None if joined.seen is None else details_of(joined, settings, workers),
        pairs=pairs if settings.all_pairs else None,
    )


def _lists_told(alike: Mapping[str, Mapping[str, Likeness]]) -> list[str]:
    """Return a note for each metric of the lists of systems beside those of the baseline."""

    def told(name: str, one: Likeness) -> str:
        value = "no value" if one.value is None else f"{one.value:.6f}"
        return f"{name} {value} over {plural(one.queries, 'query')}"

    each = {metric: [told(*pair) for pair in of.items()] for metric, of in alike.items()}
    return [f"{metric}, where both have a list: {', '.join(of)}" for metric, of in each.items()]


def compare_part(
    labels: LabelsLike,
    runs: Mapping[str, PredictionsLike],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    baseline: str | None = None,
    by: SlicesLike = (),
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> ComparisonState:
    """Return the state of a comparison of some queries, with all that the systems have for them.

    Parameters
    ----------
    labels, runs, metrics, baseline, by
        As for `compare`. Metrics are means over queries, and `by` is not "label_popularity", which
        needs all labels.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

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
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> parts = [
    ...     compare_part(lists([[1]]), {"old": lists([[2, 1]]), "new": lists([[1]])}, ["map@2"]),
    ...     compare_part(lists([[3]]), {"old": lists([[3]]), "new": lists([[3]])}, ["map@2"]),
    ... ]
    >>> compare_state(parts[0].merge(parts[1])).differences["map@2"]["new"].value
    0.25
    """
    base, cuts = baseline_of(runs, baseline), cuts_of(by)
    given, systems = Labels.of(labels), runs_of(runs)
    if "label_popularity" in cuts.derived:
        raise UsageError("label_popularity needs the labels of all queries: use compare")
    recorder = OriginRecorder()
    how: Any = {"memory": memory, "part": True, "recorder": recorder}
    job = parse_job(metrics, given, semantics, catalogue, **how)
    for metric in job.metrics:
        if metric.spec.kernel is None:
            raise UsageError(
                f"{metric.text} is not a mean over queries, and cannot be part of a state: compare "
                "all queries at once with compare"
            )
    joined = join_runs(job, given, systems, base, cuts, Reading(threads, progress), catalogue)
    with Workers(threads) as workers:
        state = joined.state(workers)
    return replace(state, origin=recorder.origin)


def compare_state(
    state: ComparisonState,
    *,
    tests: str | Iterable[str] | Tests = ("t",),
    confidence: float = 0.95,
    margin: float | None = None,
    threads: int | None = None,
) -> Comparison:
    """Test the differences of a state that `compare_part` made, or of several that were merged.

    Parameters
    ----------
    state : ComparisonState
    tests, confidence, margin, threads
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
    settings = settings_of(tests, confidence, margin, 0)
    if not isinstance(state, ComparisonState):
        raise UsageError(
            f"state is a {type(state).__name__}; expected what compare_part returns, or "
            "ComparisonState.from_table"
        )
    return finish(state, settings, thread_count(threads))
