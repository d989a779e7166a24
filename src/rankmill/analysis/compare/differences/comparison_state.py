"""The state of a comparison: what its queries add up to. It merges, travels and can be tested."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.analysis.statistics.moments import PairMoments, moments_of
from rankmill.analysis.statistics.paired_differences import (
    LARGEST,
    Adjusted,
    AnyPaired,
    ClusteredMean,
    ClusteredPaired,
    Paired,
    WeightedPaired,
    merged,
    of_clusters,
    paired_of,
)
from rankmill.columns.seal import seal_of
from rankmill.engine.origin import Origin, merged_origin
from rankmill.errors import UsageError
from rankmill.metrics.aggregates.mean import Mean, WeightedMean
from rankmill.metrics.records import state_rows
from rankmill.metrics.records.state_rows import FORMAT
from rankmill.package import GONE
from rankmill.records import record
from rankmill.semantics.choices import Choices, Scope

# ------------------------------------------------------------------ the sums

AnyMean = Mean | WeightedMean
Moments = Literal["none", "system", "pairs"]
"""Whose moments are added up: of no values, of those of a system, or also of pairs."""
NO_MOMENTS: Moments = "none"
OF_SYSTEM: Moments = "system"
OF_PAIRS: Moments = "pairs"


class SystemColumn(NamedTuple):
    """A metric and a system: the mean of its values, and its differences from the baseline.

    `moments` are those of its values, and of those of the baseline beside them, where the bound of
    a mean was asked for.
    """

    mean: AnyMean
    paired: AnyPaired | None
    moments: PairMoments | None = None

    @property
    def counted(self) -> tuple[int, float | None]:
        """How many queries count, and how many effective ones weights or clusters leave of them."""
        mean = self.mean
        return (
            (mean.positive, mean.effective)
            if isinstance(mean, WeightedMean)
            else (mean.count, None)
        )


def joined(parts: Sequence[SystemColumn]) -> SystemColumn:
    """Return the column of the queries of all parts; there is a part."""
    mean: Any = parts[0].mean
    for one in parts[1:]:
        mean = mean.merge(one.mean)
    known = [one.moments for one in parts if one.moments is not None]
    # Parts of no query have none, and those of states of 0.9.
    full = known and all(one.moments is not None or one.mean.mean is None for one in parts)
    moments = reduce(PairMoments.merge, known) if full else None
    pairs = [one.paired for one in parts]
    plain = [one for one in pairs if isinstance(one, Paired)]
    weighted = [one for one in pairs if isinstance(one, WeightedPaired)]
    if plain:
        return SystemColumn(mean, merged(plain), moments)
    if not weighted:
        return SystemColumn(mean, None, moments)
    of_all: Any = weighted[0].weighted
    for each in weighted[1:]:
        of_all = of_all.merge(each.weighted)
    paired = WeightedPaired(of_all, merged([one.products for one in weighted]))
    return SystemColumn(mean, paired, moments)


@record(frozen=True, eq=False)
class Sums:
    """What some queries add up to."""

    queries: int
    columns: Mapping[str, Mapping[str, SystemColumn]]  # by metric and system

    def merge(self, other: Self) -> "Sums":
        """Return what the queries of both add up to; they have no query in common."""
        return Sums(
            self.queries + other.queries,
            {
                metric: {
                    name: joined([one, other.columns[metric][name]]) for name, one in of.items()
                }
                for metric, of in self.columns.items()
            },
        )

    @property
    def effective(self) -> float | None:
        """The effective number of queries of the weights; None without weights."""
        mean = self._mean
        weighted = isinstance(mean, WeightedMean) and not isinstance(mean, ClusteredMean)
        return mean.effective if weighted else None

    @property
    def clusters(self) -> ClusteredMean | None:
        """A mean over the clusters of queries, which has their number; None without clusters."""
        return self._mean if isinstance(self._mean, ClusteredMean) else None

    @property
    def _mean(self) -> Any:
        return next((one.mean for of in self.columns.values() for one in of.values()), None)


def column_of(
    values: np.ndarray,
    base: np.ndarray | None,
    weights: np.ndarray | None,
    clusters: np.ndarray | None = None,
    *,
    moments: Moments = NO_MOMENTS,
) -> SystemColumn:
    """Return what the values of a metric and a system add up to; `base` are the baseline's.

    `clusters` are codes of the clusters of queries, which have no weights then. With `moments`, the
    values have a finite range.
    """
    found = None
    if moments != NO_MOMENTS:
        beside = base if moments == OF_PAIRS else None
        found = moments_of(values, beside, weights, clusters)
    if clusters is not None:
        paired = None if base is None else ClusteredPaired.of(values - base, clusters)
        return SystemColumn(of_clusters(values, clusters).mean, paired, found)
    mean: AnyMean = Mean.of(values) if weights is None else WeightedMean.of(values, weights)
    if base is None:
        return SystemColumn(mean, None, found)
    differences = values - base
    if weights is None:
        return SystemColumn(mean, paired_of(differences), found)
    counted = weights > 0
    products = paired_of((differences * weights)[counted])
    weighted = WeightedMean.of(differences, weights)
    return SystemColumn(mean, WeightedPaired(weighted, products), found)


def columns_of_slices(
    values: np.ndarray,
    base: np.ndarray | None,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    order: np.ndarray,
    ends: Sequence[int],
    *,
    moments: Moments = NO_MOMENTS,
) -> list[SystemColumn]:
    """Return what each slice adds up to; slice i holds the queries order[ends[i - 1]:ends[i]]."""
    more = [None if one is None else one[order] for one in (base, weights, clusters)]
    values = values[order]
    return [
        column_of(
            values[start:end],
            *(None if one is None else one[start:end] for one in more),
            moments=moments,
        )
        for start, end in pairwise((0, *ends))
    ]


# ------------------------------------------------------------------ the state

Slices = Mapping[tuple[str, ...], Mapping[tuple[str | None, ...], Sums]]
"""What cuts, one or two names -> the value of a slice for each name -> its sums."""

_KEY = b"rankmill comparison"
_SCHEMA = pa.schema(
    {
        "by": pa.list_(pa.string()),
        "slice": pa.list_(pa.string()),
        "queries": pa.int64(),
        "metric": pa.string(),
        "system": pa.string(),
        "mean": pa.string(),
        "weighted": pa.string(),
        "differences": pa.list_(pa.float64()),
        "counts": pa.list_(pa.int64()),
    }
)


@record(frozen=True, eq=False)
class ComparisonState:
    """The sums over the queries of a comparison, or of a part of it.

    The sums and the histograms of differences are exact, and merging is associative and
    commutative: any test says the same of merged parts as of the whole.

    Attributes
    ----------
    systems, metrics : tuple of str
    baseline : str
    semantics, gain_function, scope
    whole : Sums
        Of all queries that count for every system.
    slices : dict of tuple of str to dict of tuple to Sums
        What cuts -> the value of a slice -> the sums of its queries.
    left_out, differing, unpredicted
        As in a `Comparison`.
    catalogue, origin
        As in a `State`.
    """

    systems: tuple[str, ...]
    baseline: str
    metrics: tuple[str, ...]
    semantics: Choices
    gain_function: str
    scope: Scope
    whole: Sums
    slices: Slices
    left_out: Mapping[str, int]
    differing: int
    unpredicted: Mapping[str, int]
    catalogue: str = ""
    origin: Origin | None = None

    def merge(self, other: Self) -> Self:
        """Return the state of the queries of both, which must have no query in common.

        Raises
        ------
        UsageError
            If they compare other systems or metrics, count or cut in another way, or share
            queries; or if queries come in clusters, which may be in both.
        """
        self._check_apart()
        mine, theirs = self._job(), other._job()
        for name, one in mine.items():
            if one != theirs[name]:
                raise UsageError(
                    f"comparisons of other {name} do not merge: {one} and {theirs[name]}; make "
                    "both with the same"
                )
        return replace(
            self,
            whole=self.whole.merge(other.whole),
            slices={by: _merged(of_way, other.slices[by]) for by, of_way in self.slices.items()},
            left_out=_added(self.left_out, other.left_out),
            differing=self.differing + other.differing,
            unpredicted=_added(self.unpredicted, other.unpredicted),
            origin=merged_origin(self.origin, other.origin),
        )

    def _check_apart(self) -> None:
        why = "" if self.whole.clusters is None else "in clusters, which may be in several states"
        of = (one.paired for way in self.whole.columns.values() for one in way.values())
        if any(isinstance(one, Adjusted) for one in of):
            why = "that are adjusted by a regression over all of them"
        if why:
            raise UsageError(
                f"the state of queries {why}, does not merge or travel: compare all queries at "
                "once with compare"
            )

    def _job(self) -> dict[str, Any]:
        return {
            "systems": list(self.systems),
            "baseline": self.baseline,
            "metrics": list(self.metrics),
            "semantics": self.semantics.to_dict(),
            "gain_function": self.gain_function,
            "scope": self.scope.to_dict(),
            "catalogue": self.catalogue,
            "slices": [list(by) for by in self.slices],
        }

    def _counts(self) -> dict[str, Any]:
        return {
            "left_out": dict(self.left_out),
            "differing": self.differing,
            "unpredicted": dict(self.unpredicted),
        }

    def to_table(self) -> pa.Table:
        """Return the state as a table: a row for each slice, metric and system."""
        self._check_apart()
        found = _rows_of((), (), self.whole)
        for by, of_way in self.slices.items():
            for value, sums in of_way.items():
                found += _rows_of(by, value, sums)
        origin = {} if self.origin is None else self.origin.to_row()
        read = {"format": FORMAT, "job": self._job(), "counts": self._counts(), "origin": origin}
        sealed = {**read, state_rows.SEAL: _seal(read, found)}
        told = json.dumps(sealed, default=np.ndarray.tolist)
        return pa.Table.from_pylist(found, _SCHEMA.with_metadata({_KEY: told}))

    @classmethod
    def from_table(cls, table: pa.Table) -> Self:
        """Return the state from a table that `to_table` made.

        Raises
        ------
        UsageError
            If the table is not one of a comparison, is damaged, or of another format version.
        """
        if not isinstance(table, pa.Table):
            raise UsageError(
                f"this is a {type(table).__name__}; expected a table that to_table made"
            )
        told = (table.schema.metadata or {}).get(_KEY)
        if told is None or not table.schema.equals(_SCHEMA):
            raise UsageError("this is not a table of a comparison; expected one that to_table made")
        try:
            read = json.loads(told)
            state_rows.check_format(read)
            found = table.to_pylist()
            if read.pop(state_rows.SEAL) != _seal(read, found):
                raise state_rows.damaged("its checksum is not that of its rows")
            job = {"catalogue": "", **read["job"]}  # which states of format 6 lack
            if job.pop("tests", []):  # the rows of Tukey's test, which 0.9 wrote
                raise UsageError(
                    f"the state was made with tukey=True: {GONE['tukey']}; make it again"
                )
            origin = Origin.from_row(read.get("origin", {}))
            state = replace(cls._read(job, read["counts"], found), origin=origin)
        except UsageError:
            raise
        except (AttributeError, LookupError, TypeError, ValueError, pa.ArrowException) as error:
            raise state_rows.damaged(f"{type(error).__name__}: {error}") from None
        # What is written again is what was read: no field is missing, changed or of another type.
        if state._job() != job or state._counts() != read["counts"]:
            raise state_rows.damaged("its job or its counts are not those of its rows")
        return state

    @classmethod
    def _read(
        cls, job: Mapping[str, Any], counts: Mapping[str, Any], table: list[dict[str, Any]]
    ) -> Self:
        """Return the state from what a table tells; errors are of any kind."""
        names = set(job["systems"])
        for key in ("left_out", "unpredicted"):
            if {name: state_rows.count(counts[key], name) for name in counts[key]}.keys() != names:
                raise state_rows.damaged(f"{key} is not of its systems")
        state_rows.count(counts, "differing")
        if job["baseline"] not in names or len(names) != len(job["systems"]):
            raise state_rows.damaged(
                "its systems are not different ones with the baseline among them"
            )
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in table:
            found.setdefault((tuple(row["by"]), tuple(row["slice"])), []).append(row)
        whole = _sums_of(found.pop(((), ()), []), job)
        slices: dict[Any, dict[Any, Sums]] = {tuple(by): {} for by in job["slices"]}
        for (by, value), of_slice in found.items():
            slices[by][value] = _sums_of(of_slice, job)
        for by, of_way in slices.items():
            queries = sum(one.queries for one in of_way.values())
            if queries != whole.queries:
                raise state_rows.damaged(
                    f"the slices by {' and '.join(by)} hold {queries:,} queries, and all hold "
                    f"{whole.queries:,}"
                )
        return cls(
            systems=tuple(job["systems"]),
            baseline=job["baseline"],
            metrics=tuple(job["metrics"]),
            semantics=Choices(**job["semantics"]),
            gain_function=state_rows.text(job, "gain_function"),
            scope=Scope(**job["scope"]),
            catalogue=state_rows.text(job, "catalogue"),
            whole=whole,
            slices=slices,
            **counts,
        )


def _seal(told: Mapping[str, Any], found: list[dict[str, Any]]) -> str:
    text = json.dumps(told, sort_keys=True, default=np.ndarray.tolist)
    return seal_of([text, *sorted(map(seal_of, found))])


def _merged(one: Mapping[Any, Sums], other: Mapping[Any, Sums]) -> dict[Any, Sums]:
    """Return the slices of both; a slice may be in one of them only."""
    found = dict(one)
    for value, sums in other.items():
        found[value] = found[value].merge(sums) if value in found else sums
    return found


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: count + other[name] for name, count in one.items()}


def _rows_of(by: tuple[str, ...], value: Any, sums: Sums) -> list[dict[str, Any]]:
    same = {"by": list(by), "slice": list(value), "queries": sums.queries}
    found = []
    for metric, of_metric in sums.columns.items():
        for system, (mean, paired, moments) in of_metric.items():
            row = same | {"metric": metric, "system": system, "mean": json.dumps(mean.to_row())}
            if isinstance(paired, WeightedPaired):
                told = paired.weighted.to_row()
                told |= {} if moments is None else {"moments": moments.to_row()}
                row["weighted"] = json.dumps(told)
                paired = paired.products
            if paired is not None:
                row |= {"differences": paired.values, "counts": paired.counts}
            found.append(row)
    return found


def _sums_of(found: list[dict[str, Any]], job: Mapping[str, Any]) -> Sums:
    columns: dict[str, dict[str, SystemColumn]] = {metric: {} for metric in job["metrics"]}
    queries = state_rows.count(found[0], "queries") if found else 0
    for row in found:
        metric, system = row["metric"], row["system"]
        if row["queries"] != queries or system in columns[metric]:
            raise state_rows.damaged(f"two rows of {metric} and {system} do not belong together")
        columns[metric][system] = _column_of(row, system == job["baseline"])
    expected = set(job["systems"])
    if not all(set(of) == expected for of in columns.values()):
        raise state_rows.damaged("a slice does not have a row for each metric and system")
    return Sums(queries, columns)


def _column_of(row: Mapping[str, Any], is_baseline: bool) -> SystemColumn:
    told = json.loads(row["mean"])
    mean: AnyMean = (WeightedMean if "wv" in told else Mean).from_row(told)
    count, _ = SystemColumn(mean, None).counted
    if count > row["queries"] or (isinstance(mean, Mean) and count < row["queries"]):
        raise state_rows.damaged(f"a mean is over {count:,} of {row['queries']:,} queries")
    if is_baseline != (row["differences"] is None):
        raise state_rows.damaged("the differences are not those of all systems but the baseline")
    if is_baseline:
        return SystemColumn(mean, None)
    values, counts = (
        state_rows.ascending(row, "differences"),
        state_rows.counts(row, "counts", least=1),
    )
    state_rows.same_length(row, "differences", "counts")
    paired = Paired(values.astype(np.float64), counts)
    if paired.n != count or (np.abs(values) > LARGEST).any():
        raise state_rows.damaged(
            f"{paired.n:,} differences of {count:,} queries, or beyond {LARGEST:g}"
        )
    if isinstance(mean, Mean):
        return SystemColumn(mean, paired)
    known = json.loads(row["weighted"])
    sums = known.pop("moments", None)  # which states of 0.9 lack
    moments = None if sums is None else PairMoments.from_row(sums)
    weighted = WeightedMean.from_row(known)
    if (weighted.positive, weighted.w, weighted.ww) != (mean.positive, mean.w, mean.ww):
        raise state_rows.damaged("the differences have other weights than the values")
    return SystemColumn(mean, WeightedPaired(weighted, paired), moments)
