"""Making a Comparison from what the queries add up to."""

from collections.abc import Mapping
from typing import Any

from rankmill.compare.comparison import Comparison
from rankmill.compare.differences import Difference, Estimate, Loss, Settings
from rankmill.compare.few import few_notes
from rankmill.compare.intervals import estimates
from rankmill.compare.judging import Judged, differences, judged
from rankmill.compare.significance import check_weighted
from rankmill.compare.slices import differences_of_slices, losses_of, shown_slices
from rankmill.compare.state import ComparisonState
from rankmill.metrics.registry import sides_of
from rankmill.results.systems import side_notes


def finish(
    state: ComparisonState,
    settings: Settings,
    threads: int,
    *,
    pooled: Mapping[str, Mapping[str, Estimate]] | None = None,
    pooled_differences: Judged | None = None,
    metrics: tuple[str, ...] | None = None,
    **facts: Any,
) -> Comparison:
    """Test the differences of a state, and return its comparison.

    Parameters
    ----------
    state, settings, threads
    pooled, pooled_differences
        The values and differences of metrics that are no mean over queries.
    metrics
        All metrics in the order of the request, if there are pooled ones.
    **facts
        More fields of the Comparison.
    """
    if state.whole.effective is not None:
        for name in settings.tests:
            check_weighted(name)
    values = estimates(state.whole, settings.confidence) | dict(pooled or {})
    found = differences(state.whole, state.baseline, settings, threads) | (pooled_differences or {})
    metrics = metrics or state.metrics
    whole = sum(bool(one.tests) for one in found.values())
    cut = differences_of_slices(state, settings, threads, whole)
    family = judged(found | cut.alone, settings)  # all queries, and the slices of them
    by_metric: dict[str, dict[str, Difference]] = {metric: {} for metric in metrics}
    for metric, name in found:
        by_metric[metric][name] = family.pop((metric, name))
    losses: list[Loss] = []
    if settings.worst_slices:
        losses = losses_of(state, settings, judged(found | cut.found, settings))
    notes = [*facts.pop("notes", []), *few_notes(state, settings), *side_notes(sides_of(metrics))]
    return Comparison(
        baseline=state.baseline,
        values={metric: dict(values[metric]) for metric in metrics},
        differences=by_metric,
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
