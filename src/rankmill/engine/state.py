"""What the queries of a job come to: the state that merges, travels and gives the result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, cast

from rankmill.engine.job import Job
from rankmill.errors import UsageError
from rankmill.metrics import rows
from rankmill.metrics.aggregate import Aggregate, Totals, TwoPasses, aggregate_of
from rankmill.metrics.fingerprints import FORMAT, digest
from rankmill.metrics.gap_counts import Among
from rankmill.metrics.registry import parse, parse_all, spellings
from rankmill.results import audit
from rankmill.results.result import Result
from rankmill.semantics.choices import Semantics
from rankmill.threads import Workers


@dataclass(frozen=True)
class State:
    """What a part of the queries comes to; merging is exact, associative and commutative.

    Attributes
    ----------
    metrics : tuple of str
        As asked for, in that order.
    semantics : Semantics
    gain_function : {"linear", "exp"}
    queries : int
        The queries that count.
    gap_total : int
        What gap is divided by, unless by the hits.
    audit : dict of str to int
    aggregates : dict of str to Aggregate
        What each metric comes to. `second_pass` goes over all predictions once more for those that
        need it, once all parts are merged.
    """

    metrics: tuple[str, ...]
    semantics: Semantics
    gain_function: str
    queries: int
    gap_total: int
    audit: Mapping[str, int]
    aggregates: Mapping[str, Aggregate]

    @classmethod
    def of(cls, job: Job) -> Self:
        """The state of no query."""
        names = tuple(metric.text for metric in job.metrics)
        how = job.semantics, job.gain_function
        return cls(names, *how, 0, 0, audit.empty(), job.aggregates())

    def merge(self, other: Self) -> Self:
        """The state of the queries of both, which must not share any.

        Raises
        ------
        UsageError
            If they are of other metrics, semantics or gain function.
        """
        for name in ("metrics", "semantics", "gain_function"):
            if getattr(self, name) != getattr(other, name):
                raise UsageError(
                    f"states of other {name} do not merge: {getattr(self, name)} and "
                    f"{getattr(other, name)}"
                )
        return replace(
            self,
            queries=self.queries + other.queries,
            gap_total=self.gap_total + other.gap_total,
            audit=audit.add(self.audit, other.audit),
            aggregates={
                name: one.merge(other.aggregates[name]) for name, one in self.aggregates.items()
            },
        )

    @property
    def two_passes(self) -> dict[str, TwoPasses]:
        """The aggregates that need a second pass."""
        return {
            name: cast(TwoPasses, one) for name, one in self.aggregates.items() if one.passes > 1
        }

    @property
    def totals(self) -> Totals:
        """What aggregates need to know of all queries in the end."""
        return Totals(self.queries, self.gap_total, self.semantics)

    def result(
        self, among: Mapping[str, Among] | None = None, threads: int | None = None
    ) -> Result:
        """The result of all queries.

        Parameters
        ----------
        among : dict of str to counts
            For metrics over all predictions: what `second_pass` counted in all parts, merged.
        threads : int, optional

        Raises
        ------
        UsageError
            If a metric needs `among`, and it is not there, was counted among another state, or is
            not of the predictions of all parts, each once.
        """
        among = among or {}
        missing = [name for name in self.two_passes if name not in among]
        if missing:
            raise UsageError(
                f"{', '.join(missing)} needs a second pass: second_pass(state, predictions) "
                "for every part, merged, goes to result()"
            )
        for name in self.two_passes:
            self._check(name, among[name])
        with Workers(threads) as workers:
            return self.finish(among, workers)

    def finish(self, among: Mapping[str, Among], workers: Workers, **facts: Any) -> Result:
        """The result, from counts that are sure to be of this state; `facts` are fields of it."""
        values = {
            name: self.aggregates[name].finish(self.totals, among.get(name), workers)
            for name in self.metrics
        }
        tied = max((one.tied for one in values.values()), default=0)
        return Result(
            metrics={name: one.value for name, one in values.items()},
            standard_errors={name: one.standard_error for name, one in values.items()},
            bounds={name: one.bounds for name, one in values.items() if one.bounds is not None},
            queries=self.queries,
            audit=audit.add(self.audit, {"tied_confidences": tied}),
            semantics=self.semantics,
            aliases=spellings(map(parse, self.metrics)),
            **facts,
        )

    @staticmethod
    def read_counts(row: Mapping[str, Any]) -> Among:
        """The counts of `second_pass` of whose ``to_row()`` a row was made.

        Raises
        ------
        UsageError
            If no counts have such a row.
        """
        return Among.from_row(row)

    @property
    def fingerprint(self) -> str:
        """The hash of format version, metrics, semantics and gain function; equal ones merge."""
        return digest(json.dumps(self._job()))

    def counted_among(self, name: str) -> str:
        """The fingerprint of what `second_pass` counts among: job, metric, and confidences."""
        return self.two_passes[name].fingerprint(json.dumps([*self._job(), name]))

    def _job(self) -> list[Any]:
        return [FORMAT, self.metrics, self.semantics.to_dict(), self.gain_function]

    def _check(self, name: str, among: Among) -> None:
        """Raise UsageError unless counts of the second pass fit; kernels do not look."""
        differs = self.two_passes[name].difference(among)
        if among.state != self.counted_among(name):
            raise UsageError(
                f"{name}: the second pass counted among another state: give second_pass the state "
                "that result() is asked of, that of all parts merged"
            )
        if differs:
            raise UsageError(
                f"{name}: {differs}: merge what second_pass counted in every part, each part once"
            )

    def to_row(self) -> dict[str, Any]:
        """A flat row for Arrow: numbers, text, and arrays of numbers.

        ``pyarrow.Table.from_pylist([state.to_row()])`` makes a table of it.
        """
        row: dict[str, Any] = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "metrics": list(self.metrics),
            "semantics": json.dumps(self.semantics.to_dict()),
            "gain_function": self.gain_function,
            "queries": self.queries,
            "gap_total": self.gap_total,
        }
        row |= {f"audit.{name}": count for name, count in self.audit.items()}
        for name, one in self.aggregates.items():
            row |= {f"{name}.{key}": value for key, value in one.to_row().items()}
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The state that `to_row` made the row of.

        Raises
        ------
        UsageError
            If the row is of another format version, or no state has such a row.
        """
        rows.check_format(row)
        metrics = parse_all(rows.texts(row, "metrics"))
        try:
            semantics = Semantics(**json.loads(rows.text(row, "semantics")))
        except (TypeError, ValueError) as error:
            raise rows.damaged(f"semantics: {error}") from None
        state = cls(
            metrics=tuple(one.text for one in metrics),
            semantics=semantics,
            gain_function=rows.text(row, "gain_function"),
            queries=rows.count(row, "queries"),
            gap_total=rows.count(row, "gap_total"),
            audit={name: rows.count(row, f"audit.{name}") for name in audit.FIELDS},
            aggregates={
                one.text: aggregate_of(one).from_row(row, f"{one.text}.") for one in metrics
            },
        )
        for one in metrics:
            count = row.get(f"{one.text}.count", state.queries)
            if count != state.queries:
                raise rows.damaged(
                    f"{one.text} is a mean over {count:,} of {state.queries:,} queries"
                )
        if rows.text(row, "fingerprint") != state.fingerprint:
            raise rows.damaged(
                "its fingerprint is not that of its metrics, semantics and gain function"
            )
        return state
