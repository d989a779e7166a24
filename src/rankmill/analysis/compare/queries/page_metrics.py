"""What is computed aside for a page: metrics at more cutoffs, more slices, and calibration."""

from contextlib import closing
from typing import NamedTuple

import numpy as np

from rankmill.engine.job import Job
from rankmill.engine.segments import Segments
from rankmill.metrics.base import REL, Metric, MetricSpec
from rankmill.metrics.gap.distinct import Distinct
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.registry import is_defined
from rankmill.threads import Workers

WAYS = ("label_count", "label_popularity")
"""What the queries are cut by, besides what is asked for."""

CUTOFFS = (1, 2, 3, 5, 10, 20, 50, 100)
MOST_RANKS = 20
# So many metrics get a line over cutoffs: each takes half a dozen further ones.
MOST_LINES = 4
# Bins of predictions by confidence, and of how many predictions their ends are made.
BINS, SAMPLE = 20, 1_000_000

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


class Aside(NamedTuple):
    """The metrics that are computed aside: for lines over cutoffs, and for hits by rank."""

    cutoffs: dict[str, list[Metric]]
    hits: list[Metric]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All of them, each once."""
        every = [one for of in self.cutoffs.values() for one in of] + self.hits
        return tuple({one.text: one for one in every}.values())


def aside_of(job: Job) -> Aside:
    """Return what to compute aside for the metrics of a job."""
    rel, semantics, asked = job.scope.rel, job.semantics, job.metrics
    limit = max(one.limit for one in asked)
    lines = [one for one in asked if one.spec.kernel and one.spec.cutoff != "none"]
    cutoffs = {
        one.text: [
            each
            for k in CUTOFFS
            if k < one.limit and is_defined(each := _at(one.spec, k, one.given), semantics)
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


class Bin(NamedTuple):
    """Some of the predictions, next to each other by confidence; `confidence` is the mean one."""

    low: float
    high: float
    confidence: float
    predictions: int
    correct: int


class PageNumbers(NamedTuple):
    """What was computed aside."""

    asked: Aside
    ways: list[Segments]  # the slices of the queries that count for all systems, by each of `WAYS`
    # System -> the text of a metric aside -> its value and error over all queries of the system.
    values: dict[str, dict[str, tuple[float | None, float | None]]]
    bins: dict[str, list[Bin]]  # as in `Details`

    def at(self, kept: np.ndarray) -> "PageNumbers":
        """Return this with the slices of some of the queries."""
        return self._replace(ways=[way.at(kept) for way in self.ways])


def bins_of(gap: Gap, workers: Workers) -> list[Bin]:
    """Return all predictions in `BINS` bins of about the same size; none if they are not held.

    Equal confidences are in the same bin.
    """
    parts = list(gap.held() or ())
    size = sum(map(len, parts))
    if not size:
        return []
    # A sample tells well enough where the bins end, and sorting all would take most of the time.
    step = max(1, size // SAMPLE)
    sample = np.concatenate([one[::step] for one in parts])
    ends = np.unique(np.quantile(sample, np.arange(1, BINS) / BINS))

    many = len(ends) + 1

    def bins(confidences: np.ndarray) -> np.ndarray:
        return np.searchsorted(ends.astype(confidences.dtype), confidences, side="left")

    def add_up(one: np.ndarray) -> np.ndarray:
        places = bins(one)
        return np.stack([np.bincount(places, minlength=many), np.bincount(places, one, many)])

    with closing(workers.map(add_up, parts)) as found:
        counts, sums = sum(found, start=np.zeros((2, many)))
    correct: Distinct = gap.correct
    hits = np.bincount(bins(correct.values), correct.counts, many)
    low = min(float(one.min()) for one in parts if len(one))
    high = max(float(one.max()) for one in parts if len(one))
    bounds = [low, *ends.tolist(), high]
    return [
        Bin(bounds[i], bounds[i + 1], float(sums[i] / counts[i]), int(counts[i]), int(hits[i]))
        for i in np.flatnonzero(counts).tolist()
    ]
