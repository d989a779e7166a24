"""Making a Comparison from what the queries add up to, with notes where they are few."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from statistics import median
from types import MappingProxyType
from typing import Any

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import (
    Difference,
    Settings,
    SystemPair,
    lacking_of,
    pairs_of,
)
from rankmill.analysis.compare.differences.judgement import (
    Judged,
    differences,
    differences_of_slices,
    estimates,
    judged,
    shown_slices,
)
from rankmill.analysis.compare.differences.pooled_differences import PooledMetrics, Without, pooled
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.statistics.significance import LEAST_EFFECTIVE, check_weighted
from rankmill.engine.results import joint_notes, side_notes
from rankmill.metrics.registry import sides_of
from rankmill.results.audit import beside
from rankmill.results.result import Result

NONE: Mapping[str, Any] = MappingProxyType({})
NO_QUANTILES = PooledMetrics({}, {}, [])
ROUGH_EFFECTIVE = 30
"""With weights or clusters that leave fewer effective ones, a t test is told to be rough."""
MANY_SLICES = 50
"""A note tells of more of one way to cut: they fill more than a screen, and corrected over all of
them the smallest p has to be below 0.001."""


def finish(
    state: ComparisonState,
    settings: Settings,
    threads: int,
    results: Mapping[str, Result] = NONE,
    without: Mapping[str, Without] = NONE,
    *,
    quantiles: PooledMetrics = NO_QUANTILES,
    told: Iterable[str] = (),
    pairs: Callable[[], Judged] | None = None,
    lacking: Mapping[str, list[int | str]] = NONE,
    **facts: Any,
) -> Comparison:
    """Test the differences of a state, and return its comparison; `facts` are more of its fields.

    `results` are those of the systems, if they are known, and `without` has, by metric and system,
    what is known of metrics that are no means without some of the queries. `quantiles` are those
    that are medians or percentiles. `told` are more notes. `pairs` tests the pairs of systems
    without the baseline. `lacking` has for each system some of the queries that do not count for
    it.
    """
    if state.whole.effective is not None:
        for name in settings.tests:
            check_weighted(name)
    metrics, notes, more = state.metrics, [*told], PooledMetrics({}, {}, [])
    if results:
        one = results[state.baseline]
        metrics = tuple(one.metrics)
        no_means = [metric for metric in metrics if metric not in state.metrics]
        asked = settings.confidence, settings.all_pairs
        others = [metric for metric in no_means if metric not in quantiles.values]
        more = pooled(results, without, others, state.baseline, *asked)
        notes = [*joint_notes(results), *notes, *more.notes, *quantiles.notes]
        notes += _without_queries(no_means, state, settings)
        facts["audit"] = {name: each.audit for name, each in results.items()}
        facts["inputs"] = {
            "labels": one.inputs["labels"],
            "systems": {name: each.inputs["predictions"] for name, each in results.items()},
            **beside([*results.values()][-1].inputs),
        }
    values = estimates(state.whole, settings.confidence) | more.values | quantiles.values
    found = differences(state.whole, state.baseline, settings, threads)
    found |= ({} if pairs is None else pairs()) | more.differences | quantiles.differences
    cut = differences_of_slices(state, settings, threads)
    # All queries come first, and their slices are a family of their own: so they cost no power.
    family = judged(found, settings) | judged(cut.alone, settings)
    by_metric: dict[str, dict[str, Difference]] = {metric: {} for metric in metrics}
    of_pairs: dict[tuple[str, str, str], Difference] = {}
    for metric, name in found:
        difference = family[metric, name]
        if isinstance(name, tuple):
            of_pairs[metric, *name] = difference
        else:
            by_metric[metric][name] = of_pairs[metric, state.baseline, name] = difference
    every = product(metrics, pairs_of(state.systems, state.baseline) if settings.all_pairs else ())
    notes += [*few_notes(state, settings), *side_notes(sides_of(metrics))]
    return Comparison(
        baseline=state.baseline,
        values={metric: values[metric] for metric in metrics},
        differences=by_metric,
        pairs=[SystemPair(m, *pair, of_pairs[m, *pair]) for m, pair in every],
        queries=state.whole.queries,
        effective_queries=state.whole.effective,
        left_out=dict(state.left_out),
        differing=state.differing,
        lacking=lacking_of(state.left_out, state.differing, lacking),
        unpredicted=dict(state.unpredicted),
        slices=shown_slices(state, settings, cut, family),
        pooled=[metric for metric in metrics if metric not in state.metrics],
        settings=settings,
        semantics=state.semantics,
        scope=state.scope,
        state=state,
        clusters=None if state.whole.clusters is None else state.whole.clusters.positive,
        notes=notes,
        **facts,
    )


def _without_queries(no_means: list[str], state: ComparisonState, settings: Settings) -> list[str]:
    """Return a note where metrics have no part in what is told of slices and of queries."""
    asked = [("slices", state.slices), ("queries that moved", settings.moved)]
    missing = " and no ".join(what for what, wanted in asked if wanted)
    why = f"no {missing}, which take a mean over queries"
    why += "; 'rankmill evaluate --by' has its slices" if state.slices else ""
    return [f"{', '.join(no_means)}: {why}"] if no_means and missing else []


def few_notes(state: ComparisonState, settings: Settings) -> list[str]:
    """Return a line for each promise that the number of queries does not let a test keep."""
    notes = [*_effective_notes(state, settings)]
    for by, way in state.slices.items():
        if len(by) == 1 and len(way) > MANY_SLICES:
            middle = median(one.queries for one in way.values())
            notes.append(
                f"by {by[0]} there are {len(way):,} slices, with a median of {middle:,g} queries: "
                "among so many only large differences are shown, or chance ones if p is not "
                f"corrected; cut by groups of its values, as in users.csv:{by[0]}:4, or by classes"
            )
    return notes


def _effective_notes(state: ComparisonState, settings: Settings) -> Iterator[str]:
    """Yield a line where weights or clusters leave too few effective queries or clusters (Kish)."""
    mean, effective = state.whole.clusters, state.whole.effective
    if mean is not None and mean.positive:
        told, effective = f"{mean.positive:,} clusters by {settings.cluster}", mean.effective or 0.0
        if mean.positive - effective >= 1:
            told += f" of unequal size count as {effective:.3g} equal ones"
        what, none = "clusters", "no interval and no test but randomization"
        rough = "intervals and tests are rough; take randomization"
    elif effective is not None:
        told = f"the weights leave {effective:.3g} effective queries"
        what, none = "queries", "no t test and no interval"
        rough = "intervals and the t test are rough, as a few queries decide"
    else:
        return
    if effective < LEAST_EFFECTIVE:
        alone = "no test" if mean is not None and mean.positive < LEAST_EFFECTIVE else none
        yield f"{told}: with fewer than {LEAST_EFFECTIVE} there is {alone}"
    elif effective < ROUGH_EFFECTIVE:
        yield f"{told}: with fewer than {ROUGH_EFFECTIVE} {rough}"
    cut = (way.values() for by, way in state.slices.items() if len(by) == 1)
    sizes = [(one.clusters or one).effective or 0.0 for way in cut for one in way]
    few = sum(size < LEAST_EFFECTIVE for size in sizes)
    if few:
        yield f"{few:,} slices have fewer than {LEAST_EFFECTIVE} effective {what}, and so {none}"
