"""Patterns of hits that many blocks share: each metric of a pattern is computed once."""

from collections import defaultdict, deque
from collections.abc import Mapping

from rankmill.engine.job import Job
from rankmill.matching.hits import (
    Hits,
    Patterns,
    group_counted,
    group_hits,
    join_patterns,
    of_least_gain,
    without_gains,
    without_labels,
)
from rankmill.matching.label_lists import LabelLists
from rankmill.metrics.aggregate import Aggregate, AggregateSettings
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.base import Metric, Sees
from rankmill.metrics.values import Matched

# To group queries with gains takes as long as so many metrics of all of them.
WORTH_GROUPING = 4
# Patterns wait for those of later blocks until there are so many of them.
MOST = 1 << 14

# Whether hits are among all judged items, and what metrics look at.
Kind = tuple[bool, Sees]


class SharedPatterns:
    """Collects the patterns of blocks on several threads, and adds up the means of metrics.

    Sums are exact, so neither the threads nor the blocks change a bit. The queries of a block are
    grouped once, by all that any metric looks at. The fewer patterns of metrics that look at less
    are made of those. The hits of all blocks are of `labels`, and `empty` are the aggregates of the
    job, to which no block is added yet.
    """

    def __init__(self, job: Job, empty: Mapping[str, Aggregate], labels: LabelLists) -> None:
        self.job, self._labels = job, labels
        each = job.keep_values or job.cuts or job.terms  # then each query needs its own value
        each = each or len(job.asked) < WORTH_GROUPING
        self.means = {
            name: one
            for name, one in empty.items()
            if isinstance(one, Mean) and not each and _is_function_of_patterns(job.asked[name])
        }
        self.kinds = {name: self._kind(job.asked[name].metric) for name in self.means}
        every = {*self.kinds.values()}
        self.base: Kind = max(every, default=(False, "ranks"))
        if len(every) > 1:  # then it has all that these look at
            self.base = self.base[0], "labels"
        self._all: list[_Waiting] = []
        self._free: deque[_Waiting] = deque()

    def add(self, hits: Hits, judged: Hits | None) -> None:
        """Add the hits of a block, and those among judged items. Any thread may call it."""
        if not self.means:
            return
        try:
            waiting = self._free.pop()
        except IndexError:
            waiting = _Waiting(self)
            self._all.append(waiting)
        among, sees = self.base
        some = judged if judged is not None and among else hits
        waiting.add(self.base, [group_hits(_narrowed(some, sees))])
        self._free.append(waiting)

    def _kind(self, metric: Metric) -> Kind:
        judged = self._labels.judged if metric.needs_judged else None
        gains = (judged or self._labels).gains
        return judged is not None, metric.sees if len(gains) else "ranks"

    def close(self) -> Mapping[str, Aggregate]:
        """Return the means over all patterns."""
        last = _Waiting(self)
        for one in self._all:
            for kind, patterns in one.patterns.items():
                last.add(kind, patterns)
            last.means = {name: mean.merge(one.means[name]) for name, mean in last.means.items()}
        for kind in dict.fromkeys((self.base, *self.kinds.values())):
            if last.patterns[kind]:
                last.score(kind, join_patterns(last.patterns[kind]))
        return last.means


def _narrowed(hits: Hits, sees: Sees) -> Hits:
    """The hits with only what some metrics look at."""
    narrow = {"ranks": without_gains, "gains": without_labels}.get(sees)
    return hits if narrow is None else narrow(hits)


class _Waiting:
    """The patterns of some blocks, and the means over those that wait no more."""

    def __init__(self, shared: SharedPatterns) -> None:
        self._shared, self._job = shared, shared.job
        self.means = dict(shared.means)
        self.patterns: defaultdict[Kind, list[Patterns]] = defaultdict(list)

    def add(self, kind: Kind, patterns: list[Patterns]) -> None:
        waiting = self.patterns[kind]
        waiting += patterns
        if sum(len(one.counts) for one in waiting) > MOST:
            joined = join_patterns(waiting)
            waiting[:] = [joined]
            if 2 * len(joined.counts) > MOST:  # the next blocks would join with little less
                waiting.clear()
                self.score(kind, joined)

    def score(self, kind: Kind, patterns: Patterns) -> None:
        """Add the values of all metrics of this kind, and the patterns of those made of it."""
        others = {*self._shared.kinds.values()} - {kind} if kind == self._shared.base else ()
        for other in others:
            # Ties do not matter: of judged items at the same ranks, labels have the larger gains.
            labels_only = kind[0] and not other[0]
            hits = of_least_gain(patterns.hits, 5e-324) if labels_only else patterns.hits
            self.add(other, [group_counted(_narrowed(hits, other[1]), patterns.counts)])
        matched = Matched(patterns.hits, self._job.semantics, self._job.gain_function)
        for name, mean in self.means.items():
            if self._shared.kinds[name] == kind:
                values = matched.values(self._job.asked[name].metric)
                self.means[name] = mean.add(values, patterns.counts)


def _is_function_of_patterns(asked: AggregateSettings) -> bool:
    """Whether a metric needs no query by name, as errors of own metrics and missing values do."""
    metric = asked.metric
    return bool(metric.spec.kernel) and not metric.spec.home and not metric.counts_empty
