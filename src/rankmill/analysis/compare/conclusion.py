"""Making a Comparison from what the queries add up to."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import (
    Difference,
    Estimate,
    Loss,
    Settings,
    SystemPair,
    pairs_of,
)
from rankmill.analysis.compare.differences.few_queries import few_notes
from rankmill.analysis.compare.differences.intervals import estimates
from rankmill.analysis.compare.differences.judgement import (
    Joint,
    Judged,
    differences,
    jointly,
    judged,
)
from rankmill.analysis.compare.differences.slices import (
    differences_of_slices,
    losses_of,
    shown_slices,
)
from rankmill.analysis.compare.view.comparison import Comparison
from rankmill.analysis.statistics.significance import check_weighted
from rankmill.engine.results_view import side_notes
from rankmill.metrics.registry import sides_of


def finish(
    state: ComparisonState,
    settings: Settings,
    threads: int,
    *,
    pooled: Mapping[str, Mapping[str, Estimate]] | None = None,
    pooled_differences: Judged | None = None,
    metrics: tuple[str, ...] | None = None,
    pairs: Callable[[Joint], Judged] | None = None,
    **facts: Any,
) -> Comparison:
    """Test the differences of a state, and return its comparison.

    Parameters
    ----------
    state, settings, threads
    pooled, pooled_differences
        The values and differences of metrics that are not means over queries.
    metrics
        All metrics in the order of the request, if there are pooled ones.
    pairs
        Tests the pairs of systems without the baseline, if they are asked for.
    **facts
        More fields of the Comparison.
    """
    if state.whole.effective is not None:
        for name in settings.tests:
            check_weighted(name)
    values = estimates(state.whole, settings.confidence) | dict(pooled or {})
    joint = jointly(state.whole, settings, threads)
    found = differences(state.whole, state.baseline, settings, threads, joint=joint)
    found |= ({} if pairs is None else pairs(joint)) | (pooled_differences or {})
    metrics = metrics or state.metrics
    whole = sum(bool(one.tests) for one in found.values())
    cut = differences_of_slices(state, settings, threads, whole)
    family = judged(found | cut.alone, settings)  # all queries, and the slices of them
    by_metric: dict[str, dict[str, Difference]] = {metric: {} for metric in metrics}
    of_pairs: dict[tuple[str, str, str], Difference] = {}
    for metric, name in found:
        one = family.pop((metric, name))
        if isinstance(name, tuple):
            of_pairs[metric, *name] = one
        else:
            by_metric[metric][name] = of_pairs[metric, state.baseline, name] = one
    every = product(metrics, pairs_of(state.systems, state.baseline) if settings.all_pairs else ())
    losses: list[Loss] = []
    if settings.worst_slices:
        losses = losses_of(state, settings, judged(found | cut.found, settings))
    notes = [*facts.pop("notes", []), *few_notes(state, settings), *side_notes(sides_of(metrics))]
    return Comparison(
        baseline=state.baseline,
        values={metric: dict(values[metric]) for metric in metrics},
        differences=by_metric,
        pairs=[SystemPair(m, *pair, of_pairs[m, *pair]) for m, pair in every],
        queries=state.whole.queries,
        effective_queries=state.whole.effective,
        left_out=dict(state.left_out),
        differing=state.differing,
        unpredicted=dict(state.unpredicted),
        slices=shown_slices(state, settings, cut, family),
        losses=losses,
        pooled=[metric for metric in metrics if metric not in state.metrics],
        settings=settings,
        semantics=state.semantics,
        scope=state.scope,
        state=state,
        clusters=None if state.whole.clusters is None else state.whole.clusters.positive,
        notes=notes,
        **facts,
    )
