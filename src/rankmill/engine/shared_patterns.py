"""Patterns of hits that many blocks share: each metric of a pattern is computed once."""

from collections import defaultdict, deque
from collections.abc import Mapping

from rankmill.engine.job import Job
from rankmill.matching.hits import Patterns, join_patterns
from rankmill.matching.label_lists import LabelLists
from rankmill.metrics.aggregate import Aggregate, AggregateSettings
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.base import Metric
from rankmill.metrics.values import Matched

# To group queries with gains takes as long as so many metrics of all of them.
WORTH_GROUPING = 4
# Patterns wait for those of later blocks until there are so many of them.
MOST = 1 << 14

# Whether hits are among all judged items, and whether their gains matter.
Kind = tuple[bool, bool]


class SharedPatterns:
    """Collects the patterns of blocks on several threads, and adds up the means of metrics.

    Sums are exact, so neither the threads nor the blocks change a bit.

    Parameters
    ----------
    job : Job
    empty : dict of str to Aggregate
        The aggregates of the job, to which no block is added yet.
    labels : LabelLists
        Those that the hits of all blocks are of.
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
        self._all: list[_Waiting] = []
        self._free: deque[_Waiting] = deque()

    def add(self, kind: Kind, patterns: Patterns) -> None:
        """Add the patterns of a block. Any thread may call it."""
        try:
            waiting = self._free.pop()
        except IndexError:
            waiting = _Waiting(self)
            self._all.append(waiting)
        waiting.add(kind, [patterns])
        self._free.append(waiting)

    def kind(self, metric: Metric) -> Kind:
        """Return which patterns a metric is a function of."""
        judged = self._labels.judged if metric.needs_judged else None
        gains = (judged or self._labels).gains
        return judged is not None, len(gains) > 0 and metric.sees_gains

    def close(self) -> Mapping[str, Aggregate]:
        """Return the means over all patterns."""
        last = _Waiting(self)
        for one in self._all:
            for kind, patterns in one.patterns.items():
                last.add(kind, patterns)
            last.means = {name: mean.merge(one.means[name]) for name, mean in last.means.items()}
        for kind, patterns in last.patterns.items():
            if patterns:
                last.score(kind, join_patterns(patterns))
        return last.means


class _Waiting:
    """The patterns of some blocks, and the means over those that wait no more."""

    def __init__(self, shared: SharedPatterns) -> None:
        self._job = shared.job
        self._kinds = {name: shared.kind(shared.job.asked[name].metric) for name in shared.means}
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
        """Add the values of all metrics of this kind."""
        matched = Matched(patterns.hits, self._job.semantics, self._job.gain_function)
        for name, mean in self.means.items():
            if self._kinds[name] == kind:
                values = matched.values(self._job.asked[name].metric)
                self.means[name] = mean.add(values, patterns.counts)


def _is_function_of_patterns(asked: AggregateSettings) -> bool:
    """Whether a metric needs no query by name, as errors of own metrics and missing values do."""
    metric = asked.metric
    return bool(metric.spec.kernel) and not metric.spec.home and not metric.counts_empty
