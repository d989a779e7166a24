"""How alike the lists of two systems are: metrics whose labels are the lists of the baseline."""

from collections.abc import Sequence

import numpy as np

from rankmill.columns.ids import take_ids
from rankmill.columns.lists import drop_values, offsets_of, take_spans
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import UsageError, plural
from rankmill.kernels.hits import mark_repeats
from rankmill.kernels.identity import SEED
from rankmill.matching.hits import match
from rankmill.matching.index import LabelIndex, LabelStore
from rankmill.matching.label_lists import NO_GAINS, LabelLists
from rankmill.matching.order import ranks_of
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.metrics.registry import check_defined, parse
from rankmill.metrics.texts import OF_BASELINE
from rankmill.metrics.values import Matched
from rankmill.records import record
from rankmill.semantics.choices import Choices


@record
class Alike:
    """The metrics of each list beside that of the baseline, which is scored before all others."""

    metrics: dict[str, Metric]  # by the name that was asked for
    semantics: Choices
    # The lists of the baseline by query; None until all are read. As labels, their gains fall by 1
    # a rank.
    index: LabelIndex | None = None

    @classmethod
    def of(cls, names: Sequence[str], semantics: Choices) -> "Alike | None":
        """Return what is asked for by names that end in :baseline; None without any."""
        metrics = {}
        for name in names:
            metric = parse(name.strip().removesuffix(OF_BASELINE))
            if not metric.spec.kernel or metric.needs_judged or metric.summary:
                raise UsageError(
                    f"{name} cannot be computed for two lists: take a metric with a mean over "
                    f"queries that depends on hits alone, such as rbo(p=0.9)@10{OF_BASELINE}"
                )
            check_defined(metric, semantics)
            if semantics.ties_open:
                raise UsageError(
                    f"{name} needs one order of equal confidences: choose another than "
                    f"{semantics.order!r}"
                )
            metrics[f"{metric.text}{OF_BASELINE}"] = metric
        return cls(metrics, semantics) if metrics else None

    @property
    def reach(self) -> int:
        """The last rank that is looked at."""
        return max(metric.limit for metric in self.metrics.values())

    def score(self, lists: Lists) -> tuple[Lists | None, dict[str, np.ndarray]]:
        """Return the first items of lists of the baseline; or the values of lists of others."""
        repeat = np.empty(len(lists.items.keys), np.bool_)
        if mark_repeats(lists.offsets, lists.items, SEED, repeat):
            lists = lists.keep(~repeat)
        if self.reach < NO_CUTOFF:
            lists = lists.keep(ranks_of(lists.offsets) <= self.reach)
        return (lists, {}) if self.index is None else (None, self._values(lists, self.index))

    def _values(self, lists: Lists, index: LabelIndex) -> dict[str, np.ndarray]:
        """Return the values of each list; NaN where one of the systems has no list."""
        shown, matched = index.labels, dict[int, Matched]()
        rows = index.find(lists.queries)
        starts, ends = take_spans(shown.offsets, rows)
        offsets = offsets_of(ends - starts)
        ranks = ranks_of(offsets)
        places = np.repeat(starts, ends - starts) + ranks - 1
        for limit in {metric.limit for metric in self.metrics.values()}:
            keep = ranks <= limit
            cut = drop_values(offsets, keep)
            gains = np.repeat(np.diff(cut), np.diff(cut)) + 1.0 - ranks[keep]
            labels = LabelLists(cut, take_ids(shown.items, places[keep]), gains)
            hits = match(labels, lists.offsets, lists.items, limit)
            matched[limit] = Matched(hits, self.semantics)
        nothing = (starts == ends) | (np.diff(lists.offsets) == 0)
        return {
            name: np.where(nothing, np.nan, matched[metric.limit].values(metric))
            for name, metric in self.metrics.items()
        }


class ShownLists:
    """Collects the lists of the baseline; UsageError if they need more than so many bytes."""

    def __init__(self, memory: int) -> None:
        self._store = LabelStore(0, 0)
        self._left = self._memory = memory

    def add(self, lists: Lists) -> None:
        """Add the lists of a block."""
        ids = lists.items
        self._left -= ids.keys.nbytes + ids.ends.nbytes + int((ids.ends - ids.starts).sum())
        if self._left < 0:
            raise UsageError(
                f"the lists of the baseline, which metrics with {OF_BASELINE} hold, need more than "
                f"the memory of {plural(self._memory, 'byte')}: give these a smaller cutoff, or "
                "more memory"
            )
        self._store.add(lists, LabelLists(lists.offsets, ids, NO_GAINS), {})()

    def index(self) -> LabelIndex:
        """Return the lists as labels."""
        return self._store.finish()
