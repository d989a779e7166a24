"""The numbers of a comparison, what each of them means, and the queries that moved most."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.analysis.statistics.significance import Tested
from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.errors import plural
from rankmill.metrics.base import Better
from rankmill.records import record
from rankmill.results.answer import plain, read_fields
from rankmill.results.slices import UNKNOWN
from rankmill.show.tables import Beaten

BETTER, WORSE = "better", "worse"
# Of a metric of which neither side is better.
HIGHER, LOWER = "higher", "lower"
NOT_SHOWN = "no difference shown"
EQUAL = "equal within the margin"
NON_INFERIOR = "non-inferior"


class Estimate(NamedTuple):
    """The value of a metric for one system: a mean over queries with its interval.

    All but the value are None where fewer than two queries count. Where all have the same value,
    the interval is what the range of the metric leaves open, and None without such a range. For
    metrics that are not means over queries, they are those of a jackknife; medians and percentiles
    have an interval alone.
    """

    value: float | None
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def half(self) -> float | None:
        """Half of the interval, the longer one where it is not the same to both sides."""
        if self.value is None or self.low is None or self.high is None:
            return None
        return max(self.high - self.value, self.value - self.low)


@record(frozen=True)
class Difference:
    """A system less the baseline, in one metric, over the same queries.

    Attributes
    ----------
    value : float or None
    relative : float or None
        The difference over the value of the baseline; None where that is 0.
    relative_low, relative_high : float or None
        The interval of `relative` by Fieller's theorem; None where it has no end, as the value of
        the baseline may be 0.
    low, high : float or None
        The interval of the t-test. Where no query differs from the others in its difference, it is
        what the range of the metric leaves open, and None without such a range.
    won, tied, lost : int or None
        The number of queries where the system is better than, the same as and worse than the
        baseline; None for a metric that is not a mean over queries. `won` and `lost` are None where
        neither side is better.
    tests : dict of str to Tested
        By the name of the test, in the order asked for. For metrics that are not means it is "t"
        alone: that of the jackknife, or of draws of queries for medians and percentiles.
    equivalence, noninferiority : Tested or None
        Whether the difference is shown to be within the margin, and worse by less than the margin;
        None without a margin, and `noninferiority` where neither side is better.
    verdict : str or None
        "better" or "worse" if the first test shows it and points where the mean does, "equal within
        the margin", "non-inferior" (worse by less than the margin at most), else "no difference
        shown"; None where nothing is tested. Where neither side is better, "higher" or "lower".
    better : {"higher", "lower", "neither"}
        Which side of the metric is better. `value` is always the system less the baseline.
    variance_reduction : float or None
        By which share `adjust` makes the variance of the mean smaller; None without it.
    detects : float or None
        The smallest difference that the t-test shows in 80% of such comparisons, not corrected;
        None if that is more than the range of the metric.
    bound_p : float or None
        The p that one unseen query at the far end of the range of the metric leaves; None without a
        range. Where a test shows a difference and this does not, it rests on few queries.
    """

    value: float | None
    relative: float | None = None
    relative_low: float | None = None
    relative_high: float | None = None
    low: float | None = None
    high: float | None = None
    won: int | None = None
    tied: int | None = None
    lost: int | None = None
    tests: dict[str, Tested] = field(default_factory=dict)
    equivalence: Tested | None = None
    noninferiority: Tested | None = None
    verdict: str | None = None
    better: Better = "higher"
    variance_reduction: float | None = None
    detects: float | None = None
    bound_p: float | None = None

    @property
    def gain(self) -> float | None:
        """The difference as a gain: above 0 is better; None where neither side is."""
        if self.value is None or self.better == "neither":
            return None
        return -self.value if self.better == "lower" else self.value

    @property
    def interval(self) -> tuple[float, float] | None:
        """The ends of the interval of `value`, if both are known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def relative_interval(self) -> tuple[float, float] | None:
        """The ends of the interval of `relative`, infinite where it has none."""
        if self.relative is None or self.low is None:
            return None
        low, high = self.relative_low, self.relative_high
        return -math.inf if low is None else low, math.inf if high is None else high

    @property
    def order(self) -> float:
        """The gain, or where neither side is better the difference; 0 without a value."""
        return (self.value if self.gain is None else self.gain) or 0.0

    def share(self, count: int | None) -> float | None:
        """Return a number of queries as a share of all of them, None where there are none."""
        if count is None or self.won is None or self.tied is None or self.lost is None:
            return None
        queries = self.won + self.tied + self.lost
        return count / queries if queries else None

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as dicts, strings and numbers, and the shares of queries."""
        shares = {
            f"{name}_share": self.share(getattr(self, name)) for name in ("won", "tied", "lost")
        }
        told: dict[str, Any] = plain(vars(self))
        return told | shares


class Lacking(NamedTuple):
    """The queries that count for another system, but not for this one, so that they are left out.

    Attributes
    ----------
    queries : int
    first : list of int or str
        The smallest ids of these, a few at most; none if the values of queries are not known here.
    """

    queries: int
    first: list[int | str]


def lacking_of(
    left_out: Mapping[str, int], differing: int, first: Mapping[str, list[int | str]]
) -> dict[str, Lacking]:
    """Return the systems that queries are left out for; `first` are the ids of some of these."""
    return {
        name: Lacking(differing - count, first.get(name, []))
        for name, count in left_out.items()
        if differing > count
    }


def left_out_note(differing: int, lacking: Mapping[str, Lacking]) -> str:
    """Return a line that says how many queries are left out, and which system lacks which.

    Examples
    --------
    >>> left_out_note(6, {"new": Lacking(5, [3, 17, 21]), "old": Lacking(1, ["q7"])})
    '6 queries are left out of the comparison: new lacks 5 (3, 17, 21, ...), old lacks 1 (q7)'
    """
    each = []
    for name, (queries, first) in lacking.items():
        ids = [*map(str, first), *(["..."] if queries > len(first) else [])]
        each.append(f"{name} lacks {queries:,}" + (f" ({', '.join(ids)})" if first else ""))
    told = plural(differing, "query", "is", "are")
    return f"{told} left out of the comparison: {', '.join(each)}"


class Moved(NamedTuple):
    """A query whose value differs between the baseline and a system."""

    query: int | str
    baseline: float
    value: float
    difference: float


class Likeness(NamedTuple):
    """How alike two systems rank: the mean over queries with lists of both, and how many."""

    value: float | None
    queries: int


@record(frozen=True)
class Slice:
    """Some of the queries of a comparison.

    Attributes
    ----------
    by : tuple of str
        What cuts: a column, or a name such as "label_count".
    value : tuple of (str or None)
        Its value for these queries; None where it is not known.
    queries : int
    values, differences
        As in a `Comparison`. Tests are corrected over all slices of one name together, apart from
        those of all queries, and the intervals of differences of slices hold together with the
        confidence asked for.
    confidence : float or None
        That of each interval of a difference alone, which Bonferroni makes of it.
    """

    by: tuple[str, ...]
    value: tuple[str | None, ...]
    queries: int
    values: dict[str, dict[str, Estimate]]
    differences: dict[str, dict[str, Difference]]
    confidence: float | None = None

    @property
    def tests_run(self) -> int:
        """How many of its differences were tested."""
        return sum(bool(one.tests) for of in self.differences.values() for one in of.values())

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as dicts, lists, strings and numbers."""
        told = {"by": list(self.by), "value": list(self.value), "queries": self.queries}
        told["confidence"] = self.confidence
        return told | {"metrics": by_metric(self.values, self.differences)}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        return read_fields(cls, told | read_by_metric(told["metrics"]))


class SystemPair(NamedTuple):
    """Two systems in one metric; the difference is that of `system` from `baseline`."""

    metric: str
    baseline: str
    system: str
    difference: Difference


def pairs_of(systems: Iterable[str], baseline: str) -> list[tuple[str, str]]:
    """Return each pair of systems once, those with the baseline first.

    Examples
    --------
    >>> pairs_of(["a", "b", "c"], "b")
    [('b', 'a'), ('b', 'c'), ('a', 'c')]
    """
    return list(combinations([baseline, *(one for one in systems if one != baseline)], 2))


def beaten_of(pairs: Iterable[SystemPair], values: Mapping[str, Iterable[str]]) -> Beaten:
    """Return for each metric and system those that it is shown to be better than.

    Where neither side is better, these are the systems that it is shown to be higher than.
    """
    found = {metric: {name: list[str]() for name in systems} for metric, systems in values.items()}
    for metric, baseline, system, one in pairs:
        if one.verdict in (BETTER, HIGHER):
            found[metric][system].append(baseline)
        if one.verdict in (WORSE, LOWER):
            found[metric][baseline].append(system)
    return found


def ranks_of(values: Mapping[str, Estimate], better: Better) -> dict[str, int | None]:
    """Return the rank of each system: 1 plus the number of systems that are better.

    Values share a rank if they differ only by rounding, which is less than 2^-40 of the largest.

    Examples
    --------
    >>> ranks_of({"a": Estimate(0.2), "b": Estimate(0.5), "c": Estimate(0.5)}, "higher")
    {'a': 3, 'b': 1, 'c': 1}
    """
    known = [one.value for one in values.values() if one.value is not None]
    rounding = 2.0**-40 * max(map(abs, known), default=0.0)
    sign = -1 if better == "lower" else 1

    def rank(value: float | None) -> int | None:
        return None if value is None else 1 + sum(sign * (v - value) > rounding for v in known)

    return {name: rank(one.value) for name, one in values.items()}


def by_metric(
    values: dict[str, dict[str, Estimate]], differences: dict[str, dict[str, Difference]]
) -> dict[str, Any]:
    """Return values and differences as metric -> system -> numbers."""

    def system(metric: str, name: str) -> dict[str, Any]:
        difference = differences[metric].get(name)
        shown = None if difference is None else difference.to_dict()
        return values[metric][name]._asdict() | {"difference": shown}

    return {metric: {name: system(metric, name) for name in of} for metric, of in values.items()}


def read_by_metric(told: dict[str, Any]) -> dict[str, Any]:
    """Return the values and differences that `by_metric` told of; `read_fields` reads them."""
    differences = {
        metric: {name: one["difference"] for name, one in of.items() if one["difference"]}
        for metric, of in told.items()
    }
    return {"values": told, "differences": differences}


@record(frozen=True)
class Settings:
    """How systems were compared: the arguments of `compare`."""

    tests: tuple[str, ...] = ("t",)
    correction: str = "holm"
    confidence: float = 0.95
    margin: float | None = None
    moved: int = 0
    seed: int = 0
    cluster: str | None = None
    adjust: str | None = None
    all_pairs: bool = False
    cutoffs: tuple[int, ...] = ()


def named(by: Sequence[str], value: Sequence[str | None]) -> tuple[str, str]:
    """Return what cuts and the slice as the columns of a table or a history have them."""
    return ", ".join(by), ", ".join(UNKNOWN if one is None else one for one in value)


# ------------------------------------------------------------------ the queries that moved most

MovedRows = Mapping[tuple[str, str], pa.Table]
"""Metric and system -> what `rows_moved` returns."""


def rows_moved(
    ids: Any, before: np.ndarray, after: np.ndarray, count: int, better: Better
) -> pa.Table:
    """Return the queries that gained most, then those that lost most; the last lost most.

    They are `count` each at most, with their id and both values. Below 0, they are only those that
    lost, the one that lost most first. Where neither side is better, the queries that rose most are
    first.
    """
    gains = before - after if better == "lower" else after - before
    lost = _most(ids, -gains, abs(count))
    places = lost if count < 0 else [*_most(ids, gains, count), *lost[::-1]]
    columns = {"query": ids, "baseline": arrow_of(before), "value": arrow_of(after)}
    return pa.table(columns).take(arrow_of(np.array(places, np.int64)))


def merged_rows(parts: Sequence[pa.Table], count: int, better: Better) -> pa.Table:
    """Return what `rows_moved` finds of all queries, from what it found of each part of them."""
    rows = pa.concat_tables(parts)
    before, after = (rows[name].to_numpy() for name in ("baseline", "value"))
    return rows_moved(rows["query"].combine_chunks(), before, after, count, better)


def lists_moved(found: MovedRows) -> dict[str, dict[str, list[Moved]]]:
    """Return metric -> system -> the queries that moved most."""
    lists: dict[str, dict[str, list[Moved]]] = {}
    for (metric, system), rows in found.items():
        lists.setdefault(metric, {})[system] = [
            Moved(_id(one["query"]), one["baseline"], one["value"], one["value"] - one["baseline"])
            for one in rows.to_pylist()
        ]
    return lists


def _most(ids: Any, sizes: np.ndarray, count: int) -> list[int]:
    """Return the places of the largest positive sizes; the smaller id first among equal ones."""
    import pyarrow.compute as pc

    count = min(count, int((sizes > 0).sum()))
    if not count:
        return []
    least = np.partition(sizes, len(sizes) - count)[len(sizes) - count]
    places = np.flatnonzero(sizes >= least)
    table = pa.table({"size": arrow_of(sizes[places]), "id": ids.take(arrow_of(places))})
    order = pc.sort_indices(table, sort_keys=[("size", "descending"), ("id", "ascending")])
    return [int(one) for one in places[numbers_of(order)[:count]]]


def _id(value: Any) -> int | str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
