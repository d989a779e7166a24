"""What a page shows beyond the numbers of a result or a comparison, from the same pass."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple

import numpy as np

from rankmill.analysis.compare.differences.differences import Estimate, Moved, Settings, Slice
from rankmill.analysis.compare.differences.judgement import tested_slices
from rankmill.analysis.compare.queries.join import Joined, join_runs
from rankmill.analysis.compare.queries.label_facts import Bin
from rankmill.engine.cuts import Cuts, check_several, job_of
from rankmill.engine.evaluate import Local
from rankmill.engine.first_pass import Progress
from rankmill.engine.job import runs_of
from rankmill.engine.segments import Segments
from rankmill.metrics.base import Metric
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.registry import parse_all
from rankmill.records import record
from rankmill.results.result import Result
from rankmill.semantics.semantics import Counting
from rankmill.sources.nouns import Catalogue, Labels
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers

BARS = 20
# Without `moved`, a page lists so many queries that gained most, and as many that lost most.
MOST_MOVED = 5


class CutoffPoint(NamedTuple):
    """The value of a metric at a cutoff, and its standard error."""

    cutoff: int
    value: float | None
    standard_error: float | None


class Histogram(NamedTuple):
    """How many queries have which values, in bars of the same width from `low` to `high`."""

    low: float
    high: float
    zeros: int  # the queries with a value of exactly 0, which are in no bar
    counts: tuple[int, ...]


@record(frozen=True)
class Details:
    """What a page shows beyond the numbers, by metric and system, or by system."""

    results: dict[str, Result]  # without the tables of queries
    cutoffs: dict[str, dict[str, list[CutoffPoint]]] = field(default_factory=dict)
    # The hits at rank 1, 2, ... over the number of queries.
    hits: dict[str, list[float]] = field(default_factory=dict)
    # The queries cut by each of `WAYS`; without a comparison, also by what was asked for.
    slices: list[Slice] = field(default_factory=list)
    histograms: dict[str, dict[str, Histogram]] = field(default_factory=dict)
    # The predictions by rising confidence, if there is gap among the metrics; none of them if they
    # do not fit in memory.
    bins: dict[str, list[Bin]] = field(default_factory=dict)
    moved: dict[str, dict[str, list[Moved]]] = field(default_factory=dict)  # as in a `Comparison`
    # With the intervals of clusters, where there is no comparison; how many there are, by what.
    values: dict[str, dict[str, Estimate]] = field(default_factory=dict)
    clusters: int | None = None
    cluster: str | None = None


def evaluate_in_detail(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    *,
    by: Any = (),
    sums: str | Iterable[str] = (),
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> tuple[dict[str, Result], Details]:
    """Score systems as `evaluate_runs` does, and return the details for a page with the results.

    Queries are also cut by `by`.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.arrays.Ragged.from_lists
    >>> runs = {"new": lists([[1], [3, 2]])}
    >>> results, details = evaluate_in_detail(lists([[1], [2]]), runs, ["map@2"])
    >>> results["new"]["map@2"], details.hits["new"]
    (0.75, [0.5, 0.5])
    """
    baseline = next(iter(runs), "")
    given, systems = Labels.of(labels), runs_of(runs)
    job = job_of(metrics, given, semantics, catalogue, by, sums, memory=memory)
    if len(systems) > 1:
        check_several(job)
    cuts, local = job.cuts or Cuts(), Local(threads, progress)
    joined = join_runs(job, given, systems, baseline, cuts, local, catalogue, details=True)
    with Workers(threads) as workers:
        return joined.results, details_of(joined, Settings(), workers, joined.traits.segments)


def details_of(
    joined: Joined, settings: Settings, workers: Workers, segments: Sequence[Segments] = ()
) -> Details:
    """Return the details of systems that were joined with `details`; `segments` cut too."""
    seen = joined.seen
    assert seen is not None
    slices: list[Slice] = []
    ways = [*segments, *seen.ways]
    if ways and joined.metrics:
        cut = joined._replace(traits=joined.traits._replace(segments=ways))
        state = cut.state(workers)
        slices = tested_slices(state, settings, workers.threads)
    return Details(
        results={name: replace(one, per_query=None) for name, one in joined.results.items()},
        cutoffs={
            metric: {
                name: _line(joined.results[name], metric, at, of)
                for name, of in seen.values.items()
            }
            for metric, at in seen.asked.cutoffs.items()
        },
        hits={
            name: _by_rank([of[one.text][0] for one in seen.asked.hits])
            for name, of in seen.values.items()
        },
        slices=slices,
        histograms={
            metric: histograms_of({name: joined.values(metric, name) for name in joined.results})
            for metric in joined.metrics
        },
        bins=seen.bins,
        moved=joined.moved(settings.moved or MOST_MOVED, workers),
    )


def _line(
    result: Result,
    metric: str,
    at: list[Metric],
    values: Mapping[str, tuple[float | None, float | None]],
) -> list[CutoffPoint]:
    """Return the line over cutoffs, which ends at the metric itself if that has a cutoff."""
    points = [CutoffPoint(one.k or 0, *values[one.text]) for one in at]
    (own,) = parse_all([metric])
    if own.k is not None:
        points.append(CutoffPoint(own.k, result.metrics[metric], result.standard_errors[metric]))
    return points


def _by_rank(sums: list[float | None]) -> list[float]:
    """Return the hits at each rank from those up to each rank, over the number of queries."""
    known = [one for one in sums if one is not None]
    return [float(one) for one in np.maximum(np.diff([0.0, *known]), 0)]


def histograms_of(values: Mapping[str, np.ndarray]) -> dict[str, Histogram]:
    """Return the histograms of systems, which have the same bars."""
    low = min((float(one.min(initial=0.0)) for one in values.values()), default=0.0)
    high = max((float(one.max(initial=1.0)) for one in values.values()), default=1.0)
    return {name: histogram(one, low, high) for name, one in values.items()}


def histogram(values: np.ndarray, low: float, high: float) -> Histogram:
    """Return how many values are in each of `BARS` bars from `low` to `high`."""
    zeros = int(np.count_nonzero(values == 0))
    counts, _ = np.histogram(values[values != 0], BARS, (low, high))
    return Histogram(low, high, zeros, tuple(counts.tolist()))
