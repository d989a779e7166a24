"""The state of a job: what its queries add up to. It merges, travels and gives the result."""

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Self, cast

import numpy as np

from rankmill.engine.job import Job
from rankmill.engine.origin import Origin, check_whole, merged_origin
from rankmill.engine.segments import Key
from rankmill.engine.slices import in_order, merged, packed, rows_of, sums_of, unpacked
from rankmill.errors import UsageError
from rankmill.metrics.aggregate import (
    Aggregate,
    Need,
    Ratio,
    Totals,
    TwoPasses,
    Value,
    has_curve,
    kinds_of,
    table_of_groups,
)
from rankmill.metrics.base import Metric
from rankmill.metrics.elsewhere import notes_on
from rankmill.metrics.gap.gap_counts import Among, merged_counts
from rankmill.metrics.no_value import notes_on_values
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.state_rows import FORMAT, JOB_FORMAT, digest
from rankmill.metrics.registry import parse_all
from rankmill.metrics.sums import TermProducts, read_sums
from rankmill.metrics.texts import spellings
from rankmill.records import record
from rankmill.results import audit
from rankmill.results.audit import PADDED
from rankmill.results.result import Result
from rankmill.results.slices import table_of_slices
from rankmill.semantics.choices import Choices, Scope
from rankmill.sources.meaning.plain_ids import padding_notes
from rankmill.threads import Workers

# The fields of a row besides those of its audit and its aggregates.
_FIELDS = ["format", "fingerprint", "metrics", "semantics", "gain_function", "scope", "catalogue"]
_FIELDS += ["queries", "gap_total", "by", "sums", "slices", "products"]


@record(frozen=True, eq=False)
class State:
    """The sums over some of the queries; merging is exact, associative and commutative.

    Attributes
    ----------
    metrics : tuple of Metric
        In the order of the request.
    semantics : Choices
    gain_function : {"linear", "exp"} or a map such as "1=3,2=7"
    scope : Scope
        Which labels and predictions count, and how much: rel, depth, judged_only and weight.
    queries : int
        The number of queries that count.
    gap_total : int
        The divisor of gap, unless the semantics divide by the hits.
    audit : dict of str to int
    aggregates : dict of str to Aggregate
        The aggregate of each metric, and of what metrics need. Once all parts are merged,
        `second_pass` counts all predictions for the aggregates that need it.
    catalogue : str
        What the catalogue and the training set hold, in a line; "" without both.
    definitions : tuple of str
        The fingerprints of users' metrics.
    by : tuple of str
        The names of the ways in which queries are cut into slices.
    sums : tuple of str
        Weighted sums of metrics and slices.
    slices : dict of slice to State
        What the queries of each slice add up to, by the name of what cuts and its value.
    moments : TermProducts
        What the terms of sums add up to together.
    origin : Origin or None
        The parts that it covers, as far as that is known.
    """

    metrics: tuple[Metric, ...]
    semantics: Choices
    gain_function: str
    scope: Scope
    queries: int
    gap_total: int
    audit: Mapping[str, int]
    aggregates: Mapping[str, Aggregate]
    catalogue: str = ""
    definitions: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    slices: Mapping[Key, Any] = field(default_factory=dict)
    moments: TermProducts = field(default_factory=TermProducts)
    origin: Origin | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        """Return the state of a job before any query is added."""
        how = job.semantics, job.gain_function, job.scope
        told = "" if job.catalogue is None else str(job.catalogue)
        kept = job.aggregates()
        more = _own(job.metrics), job.by, job.sums
        return cls(job.metrics, *how, 0, 0, audit.add({}, {}), kept, told, *more)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(metric.text for metric in self.metrics)

    def merge(self, other: Self) -> Self:
        """Return the state of the queries of both, which must have no query in common.

        Raises
        ------
        UsageError
            If they differ in metrics, semantics, gain function, scope or catalogue, hold a query
            or a part twice, or are parts of other inputs.
        """
        compared = ("names", "definitions", "semantics", "gain_function", "scope", "catalogue")
        for name in (*compared, "by", "sums"):
            if getattr(self, name) != getattr(other, name):
                what = {"names": "metrics", "by": "slices"}.get(name, name)
                raise UsageError(
                    f"states of other {what} do not merge: {getattr(self, name) or 'none'} and "
                    f"{getattr(other, name) or 'none'}; make both with the same"
                )
        return replace(
            self,
            queries=self.queries + other.queries,
            gap_total=self.gap_total + other.gap_total,
            audit=audit.add(self.audit, other.audit),
            aggregates={
                name: one.merge(other.aggregates[name]) for name, one in self.aggregates.items()
            },
            slices=merged(self.slices, other.slices),
            moments=self.moments.merge(other.moments),
            origin=merged_origin(self.origin, other.origin),
        )

    def small(self) -> Self:
        """Return the state without the predictions that it holds, of which the counts stay."""
        slices = {key: one.small() for key, one in self.slices.items()}
        small = {name: one.small() for name, one in self.aggregates.items()}
        return replace(self, aggregates=small, slices=slices)

    @property
    def two_passes(self) -> dict[str, TwoPasses]:
        """The aggregates that need a second pass."""
        return {
            name: cast(TwoPasses, one) for name, one in self.aggregates.items() if one.passes > 1
        }

    @property
    def totals(self) -> Totals:
        """What the aggregates need to know of all queries for their values."""
        shared: list[Any] = [one for one in self.aggregates.values() if isinstance(one, Need)]
        needs = {type(one): one for one in shared}
        return Totals(self.queries, self.gap_total, self.semantics, needs)

    def result(
        self,
        among: Mapping[str, Among] | Iterable[Mapping[str, Among]] = (),
        threads: int | None = None,
    ) -> Result:
        """Return the result of all queries.

        Parameters
        ----------
        among : iterable of dict, or dict of str to counts
            What `second_pass` returned for each part, or that merged by metric.
        threads : int, optional

        Raises
        ------
        UsageError
            If a part is missing; or if a metric needs `among` and it is missing, belongs to
            another state, or does not cover the predictions of every part exactly once.
        """
        among = merged_counts(among or ())
        check_whole(self.origin)
        missing = [name for name in self.two_passes if name not in among]
        if missing:
            raise UsageError(
                f"{', '.join(missing)} needs a second pass: give result() what "
                "second_pass(state, predictions) returns for every part"
            )
        for name in self.two_passes:
            self._check(name, among[name])
        with Workers(threads) as workers:
            return self.finish(among, workers)

    def values(self, among: Mapping[str, Among], workers: Workers) -> dict[str, Value]:
        """Return the value of each metric, but of those that lack counts."""
        totals = self.totals._replace(workers=workers)
        return {
            name: self.aggregates[name].finish(totals._replace(among=among.get(name)))
            for name in self.names
            if name in among or self.aggregates[name].passes == 1
        }

    def finish(
        self,
        among: Mapping[str, Among],
        workers: Workers,
        of_slices: Mapping[Key, Mapping[str, Among]] = MappingProxyType({}),
        **facts: Any,
    ) -> Result:
        """Return the result from counts known to be of this state; `facts` are fields of Result.

        Metrics that lack counts have no value: a part of all queries has none. `of_slices` are the
        counts in each slice.
        """
        values = self.values(among, workers)
        slices = self._sliced(of_slices, workers) if self.by else {}
        sums = read_sums(self.sums, self.scope.rel) if self.sums else {}
        tied = int(max((one.tied for one in values.values()), default=0))
        effective = [one.effective for one in values.values() if one.effective is not None]
        numbers = {name: one.value for name, one in values.items()}
        return Result(
            metrics=numbers,
            standard_errors={name: one.standard_error for name, one in values.items()},
            bounds={name: one.bounds for name, one in values.items() if one.bounds is not None},
            queries=self.queries,
            effective_queries=effective[0] if effective else None,
            audit={name: {**self.audit, "tied_confidences": tied}[name] for name in audit.FIELDS},
            semantics=self.semantics,
            scope=self.scope,
            gain_function=self.gain_function,
            aliases=spellings(self.metrics, self.scope.rel),
            notes=notes_on(self.metrics, self.semantics)
            + padding_notes(self.audit[PADDED])
            + notes_on_values(numbers, self.metrics, self.semantics),
            lists={name: one.lists for name, one in values.items() if one.lists is not None},
            groups=table_of_groups([(one, self.aggregates[one.text]) for one in self.metrics]),
            curves={
                one.text: self._curve(one.text, among.get(one.text))
                for one in self.metrics
                if one.text in values and has_curve(one)
            },
            by=table_of_slices(rows_of(slices)) if self.by else None,
            sums=sums_of(sums, values, slices, self.by, self.moments, self._ratio),
            **facts,
        )

    def _sliced(
        self, among: Mapping[Key, Mapping[str, Among]], workers: Workers
    ) -> dict[Key, tuple[int, Mapping[str, Value]]]:
        """Return for each slice how many queries count, and the values, in the order shown."""
        there = {key: one for key, one in self.slices.items() if one.queries and key[0] in self.by}
        return {
            key: (one.queries, one.values(among.get(key, {}), workers))
            for key, one in in_order(there, self.by).items()
        }

    def _ratio(self, key: Key | None, name: str) -> Ratio | None:
        """Return a metric as a ratio of sums over the queries of a slice, or over all."""
        state = self if key is None else self.slices[key]
        found: Ratio | None = state.aggregates[name].ratio()
        return found

    def _curve(self, name: str, among: Among | None) -> Callable[[], dict[str, np.ndarray]]:
        """Return what makes the curve of a metric; it does not hold all the predictions."""
        small = self.small()
        one: Any = small.aggregates[name]
        return partial(one.table, small.totals._replace(among=among))

    @staticmethod
    def read_counts(row: Mapping[str, Any]) -> Among:
        """Return the counts of `second_pass` from a row that their ``to_row()`` made.

        Raises
        ------
        UsageError
            If the row is not one of such counts.
        """
        return Among.from_row(row)

    @property
    def fingerprint(self) -> str:
        """A hash of what is computed and how, and of its version; only equal ones merge."""
        return digest(json.dumps(self._job()))

    def counted_among(self, name: str) -> str:
        """A fingerprint of what `second_pass` depends on: the job, the metric and confidences."""
        return self.two_passes[name].fingerprint(json.dumps([*self._job(), name]))

    def _job(self) -> list[Any]:
        how = self.semantics.to_dict(), self.gain_function, self.scope.to_dict()
        more = (self.catalogue, self.definitions, [self.by, self.sums] * bool(self.by or self.sums))
        return [JOB_FORMAT, self.names, *how, *filter(None, more)]

    def _check(self, name: str, among: Among) -> None:
        """Raise UsageError unless the counts fit this state; kernels do not check them."""
        differs = self.two_passes[name].difference(among)
        if among.state != self.counted_among(name):
            raise UsageError(
                f"{name}: the second pass used another state: give second_pass the merged state of "
                "all parts, whose result() you ask for"
            )
        if differs:
            raise UsageError(
                f"{name}: {differs}: merge what second_pass counted in every part, each part once"
            )

    def to_row(self) -> dict[str, Any]:
        """Return a flat row for Arrow: numbers, text, and arrays of numbers.

        ``pyarrow.Table.from_pylist([state.to_row()])`` makes a table of it.
        """
        row: dict[str, Any] = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "metrics": list(self.names),
            "semantics": json.dumps(self.semantics.to_dict()),
            "gain_function": self.gain_function,
            "scope": json.dumps(self.scope.to_dict()),
            "catalogue": self.catalogue,
            "queries": self.queries,
            "gap_total": self.gap_total,
        }
        row |= packed(self.by, self.sums, self.slices, self.moments)
        row |= {} if self.origin is None else self.origin.to_row()
        row |= {f"audit.{name}": count for name, count in self.audit.items()}
        for name, one in self.aggregates.items():
            row |= {f"{name}.{key}": value for key, value in one.to_row().items()}
        return state_rows.sealed(row)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the state from a row that `to_row` made.

        Raises
        ------
        UsageError
            If the row has another format version, is damaged, or is not a row of a state.
        """
        state_rows.check_format(row)
        names = state_rows.texts(row, "metrics")
        prefixes = tuple(f"{name}." for name in ("audit", "part", *names, *_beside(names)))
        state_rows.check_seal(row, prefixes, _FIELDS)
        row = {f"audit.{PADDED}": 0, **row}  # which states of older versions lack
        metrics, scope = parse_all(names), state_rows.choices(Scope, row, "scope")
        kinds = kinds_of(metrics, scope.weight)
        state = cls(
            metrics=tuple(metrics),
            semantics=state_rows.choices(Choices, row, "semantics"),
            gain_function=state_rows.text(row, "gain_function"),
            scope=scope,
            catalogue=state_rows.text(row, "catalogue"),
            queries=state_rows.count(row, "queries"),
            gap_total=state_rows.count(row, "gap_total"),
            audit={one: state_rows.count(row, f"audit.{one}") for one in (*audit.FIELDS, PADDED)},
            aggregates={name: kind.from_row(row, f"{name}.") for name, kind in kinds.items()},
            definitions=_own(metrics),
            origin=Origin.from_row(row),
            **unpacked(row, cls.from_row),
        )
        for aggregate in state.aggregates.values():
            aggregate.check_whole(state.totals)
        for one in metrics:
            count = row.get(f"{one.text}.count", state.queries)
            positive = row.get(f"{one.text}.positive", 0)
            if count != state.queries or positive > count:
                raise state_rows.damaged(
                    f"{one.text} is a mean over {max(count, positive):,} of {state.queries:,} "
                    "queries"
                )
        if state_rows.text(row, "fingerprint") != state.fingerprint:
            raise state_rows.damaged(
                "its fingerprint is not that of its metrics, semantics and gain function, or its "
                f"scope{', or a metric of your own is defined otherwise' * bool(state.definitions)}"
            )
        return state


def _own(metrics: Iterable[Metric]) -> tuple[str, ...]:
    """Return the fingerprints of those metrics that are somebody's own."""
    return tuple(one.spec.fingerprint for one in metrics if one.spec.fingerprint)


def _beside(names: list[str]) -> list[str]:
    """Return the names of what metrics need, as far as there are such metrics."""
    with contextlib.suppress(UsageError):
        return list(kinds_of(parse_all(names), None))
    return []
