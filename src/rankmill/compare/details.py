"""What a page shows beyond the numbers of a result or a comparison, from the same pass."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from rankmill.compare.cutting import Cuts
from rankmill.compare.differences import Moved, Settings, Slice
from rankmill.compare.joined import Joined, join
from rankmill.compare.slices import tested_slices
from rankmill.engine.evaluate import evaluate
from rankmill.engine.options import options_of
from rankmill.errors import UsageError
from rankmill.metrics.base import REL, Metric, MetricSpec
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.registry import check_defined, parse_all
from rankmill.results.result import Result
from rankmill.semantics.choices import Semantics
from rankmill.semantics.presets import semantics_of
from rankmill.threads import Workers

WAYS = ("label_count", "label_popularity")
"""What the queries are cut by, besides what is asked for."""

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
MOST_RANKS = 20
# So many metrics get a line over cutoffs: each takes half a dozen further ones.
MOST_LINES = 4
BARS = 20

# Not in the registry, as nobody asks for it: unlike precision it is divided by nothing, whatever
# the semantics divide by.
_HITS = MetricSpec(
    name="hits",
    kernel="count_hits",
    expected="count_hits",
    definition="hits within k",
    range="0 to k",
    source="",
    parameters=(REL,),
)


class Point(NamedTuple):
    """The value of a metric at a cutoff, and its standard error."""

    cutoff: int
    value: float | None
    standard_error: float | None


class Histogram(NamedTuple):
    """How many queries have which values.

    Attributes
    ----------
    low, high : float
        The ends of the first and the last bar, all of which are of the same width.
    zeros : int
        The number of queries with a value of exactly 0, which are in no bar.
    counts : tuple of int
    """

    low: float
    high: float
    zeros: int
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Details:
    """What a page shows beyond the numbers.

    Attributes
    ----------
    results : dict of str to Result
        The result of each system, without the table of queries.
    cutoffs : dict of str to dict of str to list of Point
        Metric -> system -> its value at cutoffs up to its own.
    hits : dict of str to list of float
        System -> the hits at rank 1, 2, ... over the number of queries.
    slices : list of Slice
        The queries cut by each of `WAYS`.
    histograms : dict of str to dict of str to Histogram
        Metric -> system -> the values of queries.
    moved : dict of str to dict of str to list of Moved
        As in a `Comparison`.
    """

    results: dict[str, Result]
    cutoffs: dict[str, dict[str, list[Point]]] = field(default_factory=dict)
    hits: dict[str, list[float]] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    histograms: dict[str, dict[str, Histogram]] = field(default_factory=dict)
    moved: dict[str, dict[str, list[Moved]]] = field(default_factory=dict)


class Aside(NamedTuple):
    """The metrics that are computed aside: for lines over cutoffs, and for hits by rank."""

    cutoffs: dict[str, list[Metric]]
    hits: list[Metric]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All of them, each once."""
        every = [one for of in self.cutoffs.values() for one in of] + self.hits
        return tuple({one.text: one for one in every}.values())


def aside_of(metrics: Any, options: Mapping[str, Any]) -> Aside:
    """Return what to compute aside for metrics, given the options of `evaluate`."""
    rel = options["rel"]
    asked = parse_all(metrics, None if rel is None else REL.read(str(rel), "all metrics"))
    semantics = semantics_of(options["semantics"])
    limit = max(one.limit for one in asked)
    lines = [one for one in asked if one.spec.kernel and one.spec.cutoff != "none"]
    cutoffs = {
        one.text: [
            each
            for k in CUTOFFS
            if k < one.limit and _defined(each := _at(one.spec, k, one.given), semantics)
        ]
        for one in lines[:MOST_LINES]
    }
    of_rel = () if rel is None else ((REL.name, float(rel)),)
    hits = [_at(_HITS, k, of_rel) for k in range(1, min(limit, MOST_RANKS) + 1)]
    if "one" in (semantics.no_relevant, semantics.unlabelled):
        hits = []  # queries that score 1 without a hit would count as hits
    return Aside(cutoffs, hits)


def _at(spec: MetricSpec, k: int, given: tuple[tuple[str, float], ...]) -> Metric:
    # The name is one that nobody can ask for.
    return Metric(spec, k, f"{spec.name} {given} at {k}", given)


def _defined(metric: Metric, semantics: Semantics) -> bool:
    try:
        check_defined(metric, semantics)
    except UsageError:
        return False
    return True


@options_of(evaluate, without=("per_query",))
def evaluate_in_detail(
    labels: Any,
    runs: Mapping[str, Any],
    metrics: str | Iterable[str] = DEFAULT_METRICS,
    **options: Any,
) -> tuple[dict[str, Result], Details]:
    """Score systems as `evaluate_runs` does, and return the details for a page with the results.

    Examples
    --------
    >>> import rankmill
    >>> lists = rankmill.Ragged.from_lists
    >>> runs = {"new": lists([[1], [3, 2]])}
    >>> results, details = evaluate_in_detail(lists([[1], [2]]), runs, ["map@2"])
    >>> results["new"]["map@2"], details.hits["new"]
    (0.75, [0.5, 0.5])
    """
    aside = aside_of(metrics, options)
    baseline = next(iter(runs), "")
    joined = join(
        labels, runs, metrics, baseline, Cuts(), options, ways=WAYS, aside=aside.metrics
    )
    with Workers(options["threads"]) as workers:
        return joined.results, details_of(joined, aside, Settings(), workers)


def details_of(joined: Joined, aside: Aside, settings: Settings, workers: Workers) -> Details:
    """Return the details of joined systems, given what was computed aside."""
    values = joined.aside
    slices = []
    if joined.more and joined.metrics:
        cut = joined._replace(segments=joined.more)
        state = cut.state(workers, crossed=False, rows=False)
        slices, _ = tested_slices(state, settings, workers.threads)
    return Details(
        results={name: replace(one, per_query=None) for name, one in joined.results.items()},
        cutoffs={
            metric: {
                name: _line(joined.results[name], metric, of, values[name]) for name in values
            }
            for metric, of in aside.cutoffs.items()
        },
        hits={name: _by_rank([of[one.text][0] for one in aside.hits]) for name, of in values.items()},
        slices=slices,
        histograms={
            metric: _histograms({name: joined.values(metric, name) for name in values})
            for metric in joined.metrics
        },
    )


def _line(
    result: Result,
    metric: str,
    at: list[Metric],
    values: Mapping[str, tuple[float | None, float | None]],
) -> list[Point]:
    """Return the line over cutoffs, which ends at the metric itself if that has a cutoff."""
    points = [Point(one.k or 0, *values[one.text]) for one in at]
    (own,) = parse_all([metric])
    if own.k is not None:
        points.append(Point(own.k, result.metrics[metric], result.standard_errors[metric]))
    return points


def _by_rank(sums: list[float | None]) -> list[float]:
    """Return the hits at each rank from those up to each rank, over the number of queries."""
    known = [one for one in sums if one is not None]
    return [float(one) for one in np.maximum(np.diff([0.0, *known]), 0)]


def _histograms(values: Mapping[str, np.ndarray]) -> dict[str, Histogram]:
    """Return the histograms of systems, which have the same bars."""
    there = [one for one in values.values() if len(one)]
    low = min([0.0, *(float(one.min()) for one in there)])
    high = max([1.0, *(float(one.max()) for one in there)])
    return {name: histogram(one, low, high) for name, one in values.items()}


def histogram(values: np.ndarray, low: float, high: float) -> Histogram:
    """Return how many values are in each of `BARS` bars from `low` to `high`."""
    zeros = int(np.count_nonzero(values == 0))
    counts, _ = np.histogram(values[values != 0], BARS, (low, high))
    return Histogram(low, high, zeros, tuple(counts.tolist()))
