"""Result: what an evaluation found, and how it reads as text, HTML and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rankmill.errors import InputError
from rankmill.package import stamp
from rankmill.records import record
from rankmill.results import audit as audit_counts
from rankmill.results.answer import Answer, WhenAsked, plain, read_fields
from rankmill.results.audit import described, rules_of
from rankmill.results.slices import UNKNOWN, WeightedSum, slice_parts, table_of_slices
from rankmill.semantics.choices import DEFAULT, WHOLE, Choices, Scope
from rankmill.semantics.metric_names import canonical
from rankmill.show.tables import Cell, Column, Facts, Kind, Part, Table, View
from rankmill.show.writers import plain_text

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from rankmill.results.curves import Curves
    from rankmill.show.pictures import Picture

# The column of weights in the table of each query.
WEIGHT = "weight"
# The key of the metadata of a table of queries that holds the result which it is part of, as JSON.
PER_QUERY = b"rankmill result"
# A result as text has so many values of slices at most.
SHOWN_SLICES = 40


class CountedQueries(NamedTuple):
    """The queries that a mean is over."""

    of_labels: np.ndarray  # which of those of the labels they are, in the order of the labels
    others: pa.Array | None  # the ids of those that are not among the labels, ascending


@record(frozen=True, repr=False, eq=False)
class Result(Answer):
    """The metrics of one evaluation, with their uncertainty and an audit of what was counted.

    Attributes
    ----------
    metrics : dict of str to (float or None)
        Value of each metric, under the name it was asked for by, in the order asked. None where it
        has none: no query counts in the mean, or gap is divided by nothing.
    standard_errors : dict of str to (float or None)
        Standard error of the mean over queries; None for gap, which is not a mean over queries, and
        where there are fewer than two queries.
    bounds : dict of str to (float, float)
        For each gap metric that has a value the worst and the best one over all orders of tied
        predictions.
    queries : int
        Number of queries averaged over: by default those with at least one label.
    effective_queries : float or None
        With weights, sum(weight)**2 / sum(weight**2): so many queries of equal weight give a mean
        of the same variance. None without weights, and where all are 0.
    audit : dict of str to int
        What was counted, see `rankmill.results.audit.meanings`.
    inputs : dict
        Under "labels" and "predictions": source, shape, rows and columns of what was read, and
        the columns that were not, if any, as "unread".
    seconds : float
        Wall time of the evaluation.
    per_query : pyarrow.Table or None
        One row per query that counts, in the order of the labels, then other queries by id: its id,
        a float64 column for each metric with per-query values, and "weight" if queries have one.
    semantics : Choices
        How it was counted, where evaluators differ.
    counted : CountedQueries or None
        Which queries were averaged over, where several systems may have different ones. None where
        these semantics give all systems the same, and where the labels did not fit in memory.
    aliases : dict of str to str
        Other names of metrics, as `canonical` spells them -> the name that each was asked for by.
    scope : Scope
        Which labels and predictions counted, and how much: `rel`, `depth`, `judged_only` and
        `weight` of `evaluate`.
    notes : list of str
        Which metrics the evaluator of the preset does not have, or has otherwise; and that the ids
        of both inputs may differ, if nothing is in both.
    gain_function : {"linear", "exp"} or a map such as "1=3,2=7"
        How ndcg and dcg count a gain.
    lists : dict of str to int
        The number of lists, for metrics of all lists, such as novelty and coverage. For them, it
        replaces `queries`.
    groups : pyarrow.Table or None
        One row per group of items, with its values of metrics such as exposure_parity; see
        ``rankmill docs catalogue``. None without such a metric.
    by : pyarrow.Table or None
        One row per slice and metric, as `evaluate` cuts by `by`: "by", "slice" (null where it is
        not known), "metric", "value", "standard_error" and "queries". None without slices.
    sums : dict of str to WeightedSum
        The value of each weighted sum, its standard error and its 95% interval.
    curves : dict of str to callable
        For each metric that `curve` takes what makes its columns.

    Examples
    --------
    >>> import rankmill
    >>> result = rankmill.Result(
    ...     metrics={"map@12": 0.25, "gap": 0.0625},
    ...     standard_errors={"map@12": 0.0312, "gap": None},
    ...     bounds={"gap": (0.05, 0.075)},
    ...     queries=1200,
    ...     audit={"queries_only_labelled": 7},
    ... )
    >>> result["map@12"]
    0.25
    >>> result
    metric      value  standard error  queries  worst..best
    ------  ---------  --------------  -------  --------------------
    map@12  0.2500000          0.0312    1,200
    gap     0.0625000                    1,200  0.0500000..0.0750000
    <BLANKLINE>
    audit: queries_only_labelled 7
    """

    metrics: dict[str, float | None]
    standard_errors: dict[str, float | None]
    bounds: dict[str, tuple[float, float]]
    queries: int
    audit: dict[str, int] = field(default_factory=audit_counts.empty)
    inputs: dict[str, dict[str, object]] = field(default_factory=dict)
    seconds: float = 0.0
    # Any: so that type checkers ask no user to rule None out
    per_query: pa.Table | Any = WhenAsked()
    semantics: Choices = DEFAULT
    counted: CountedQueries | None = None
    aliases: dict[str, str] = field(default_factory=dict)
    scope: Scope = WHOLE
    notes: list[str] = field(default_factory=list)
    effective_queries: float | None = None
    gain_function: str = "linear"
    groups: pa.Table | Any = None
    curves: Curves = field(default_factory=dict)
    lists: dict[str, int] = field(default_factory=dict)
    by: pa.Table | Any = None
    sums: dict[str, WeightedSum] = field(default_factory=dict)

    def _ipython_key_completions_(self) -> list[str]:
        return [*self.metrics]

    def __getitem__(self, name: str) -> float:
        """Return the value of a metric by the name it was asked for by, or by an alias of it.

        Aliases are found in any case, and with their parameters in any order. `metrics` has None
        where a metric has no value.

        Raises
        ------
        KeyError
            If this result does not hold the metric; the message lists those it holds.
        InputError
            If the metric has no value; the message says why.
        """
        if name in self.sums:
            return self.sums[name].value
        held = self.held(name)
        if held is None:
            raise KeyError(self._missing(name))
        value = self.metrics[held]
        if value is None:
            raise no_value(self, [held])
        return value

    def __contains__(self, name: object) -> bool:
        return self.held(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def held(self, name: object) -> str | None:
        """Return the name of a metric as it was asked for, None if this result has none such."""
        if name in self.metrics:
            return str(name)
        spelled = canonical(str(name))
        held = self.aliases.get(spelled, spelled)
        return held if held in self.metrics else None

    def curve(self, name: str, rows: int | None = None) -> pa.Table:
        """Return the curve or the bins of a metric of confidences.

        For auprc and related metrics, these are the points of precision and recall at the
        confidences of correct predictions (at most `rows`, at even steps of recall), for ece the
        bins, for brier and dprime correct and wrong predictions. A KeyError says that the result
        does not hold the metric, a UsageError that it has no curve.
        """
        from rankmill.results.curves import curve_table

        held = self.held(name)
        if held is None:
            raise KeyError(self._missing(name))
        return curve_table(self.curves, held, rows)

    def _missing(self, name: object) -> str:
        from difflib import get_close_matches

        close = get_close_matches(str(name), self.metrics, n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return f"no metric {name!r} in this result, it has {', '.join(self.metrics)}{hint}"

    def averaged(self, metric: str) -> int:
        """Return how many queries, or lists, a metric of this result is a mean over."""
        return self.lists.get(metric, self.queries)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the per-query table as dicts, strings and numbers, as `to_json` has it."""
        from rankmill.columns.seal import seal_of_json

        bounds = {name: {"worst": ends[0], "best": ends[1]} for name, ends in self.bounds.items()}
        weighted = self.scope.weight is not None
        told = {
            **stamp(),
            "queries": self.queries,
            **({"effective_queries": self.effective_queries} if weighted else {}),
            "metrics": self.metrics,
            "standard_errors": self.standard_errors,
            "bounds": bounds,
            **({"lists": self.lists} if self.lists else {}),
            "semantics": self.semantics.to_dict(),
            "scope": self.scope.to_dict(),
            **({"gain_function": self.gain_function} if self.gain_function != "linear" else {}),
            **({} if self.groups is None else {"groups": self.groups.to_pylist()}),
            **({} if self.by is None else {"by": self.by.to_pylist()}),
            **({"sums": plain(self.sums)} if self.sums else {}),
            "notes": self.notes,
            "audit": self.audit,
            "inputs": self.inputs,
        }
        return {**told, "seconds": self.seconds, "checksum": seal_of_json(told)}

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned, without aliases and per-query tables."""
        from rankmill.columns.seal import seal_of_json

        own = {name: one for name, one in told.items() if name not in ("seconds", "checksum")}
        if told.get("checksum") != seal_of_json(own):
            raise InputError(
                "the JSON of a Result does not match its checksum: it was changed; score again"
            )
        bounds = {name: (one["worst"], one["best"]) for name, one in told["bounds"].items()}
        by = table_of_slices(told["by"]) if "by" in told else None
        found = read_fields(cls, told | {"bounds": bounds, "groups": None, "by": None})
        found = replace(found, by=by)
        if "groups" not in told:
            return found
        import pyarrow as pa

        return replace(found, groups=pa.Table.from_pylist(told["groups"]))

    def to_arrow(self) -> pa.Table:
        """Return one row per metric: its name, value and standard error, null where there is none.

        Returns
        -------
        pyarrow.Table
            "metric", "value", "standard_error", "queries" and, with weights, "effective_queries".
            The values of each query are in `per_query`, which is a table already.

        Examples
        --------
        >>> import rankmill
        >>> result = rankmill.Result({"map": 0.25, "gap": 0.5}, {"map": 0.125, "gap": None}, {}, 4)
        >>> result.to_arrow().to_pylist()[1]
        {'metric': 'gap', 'value': 0.5, 'standard_error': None, 'queries': 4}
        """
        import pyarrow as pa

        names = list(self.metrics)
        columns = {
            "metric": pa.array(names, pa.string()),
            "value": pa.array(self.metrics.values(), pa.float64()),
            "standard_error": pa.array(map(self.standard_errors.get, names), pa.float64()),
            "queries": pa.array(map(self.averaged, names), pa.int64()),
        }
        if self.scope.weight is not None:
            columns["effective_queries"] = pa.array(
                [self.effective_queries] * len(names), pa.float64()
            )
        return pa.table(columns)

    def __repr__(self) -> str:
        counts = audit_counts.notable(self.audit)
        noted = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        below: list[Part] = [f"audit: {noted}"] if noted else []
        if self.by is not None and self.by.num_rows > SHOWN_SLICES:
            below = [f"{self.by.num_rows:,} values of slices are in by", *below]
        elif self.by is not None or self.sums:
            below = [*slice_parts({"": self}), *below]
            below = below if noted else below[:-1]
        return plain_text([metrics_table(self), *self.notes, *([""] if below else []), *below])

    def _picture(self) -> Picture:
        from rankmill.results.values_picture import picture_of_values

        return picture_of_values({"": self})

    def _view(self) -> View:
        def screen() -> list[Part]:
            counted = audit_counts.rows([self.audit], self.semantics, self.scope)
            counts = Facts([(name, f"{count:,}", meaning) for name, (count,), meaning in counted])
            facts = {side: described(details) for side, details in self.inputs.items()}
            facts |= rules_of(self.semantics, self.scope)
            facts["seconds"] = f"{self.seconds:.2f}"
            first = [metrics_table(self), *self.notes, "", *groups_part(self)]
            return [*first, *slice_parts({"": self}), counts, "", Facts(facts.items())]

        page, exact = lambda: _page(self), lambda: exact_table(self)
        return View(screen, page, exact, self.to_dict, notes=self.notes)


def check_values(results: Mapping[str, Result]) -> None:
    """Raise InputError if a metric has no value in one of the results."""
    for result in results.values():
        missing = [name for name, value in result.metrics.items() if value is None]
        if missing:
            raise no_value(result, missing)


def no_value(result: Result, missing: list[str]) -> InputError:
    """Return the error that says why metrics of a result have no value."""
    source = result.inputs.get("predictions", {}).get("source", "predictions")
    told = [one for one in result.notes if one.partition(" has no value: ")[0] in missing]
    if len(told) == len(missing):
        return InputError(
            f"{source}: {'; '.join(told)}: leave it out, or check that the ids of both sides agree"
        )
    why = "there is nothing to divide by" if result.queries else "no query counts"
    todo = (
        "check that the query ids of both sides agree, or count queries without labels or "
        "predictions as well"
    )
    if result.scope.weight is not None and result.queries:
        why = f"each query that counts has the weight 0 in column {result.scope.weight!r}"
        todo = "name another column"
    return InputError(
        f"{source}: {', '.join(missing)} has no value, as {why} under these semantics: {todo}"
    )


def _page(result: Result) -> list[Part]:
    meanings = audit_counts.meanings(result.semantics, result.scope)
    counts = audit_counts.notable(result.audit).items()
    return [
        metrics_table(result),
        *result.notes,
        *groups_part(result)[:1],
        *(one for one in slice_parts({"": result}) if one),
        Facts([(name, f"{count:,}", meanings[name]) for name, count in counts]),
    ]


def metrics_table(result: Result) -> Table:
    """Return the metrics of a result as a table; with bounds only if there are any."""
    columns = [Column("metric"), Column("value", "value"), Column("standard error", "error")]
    columns.append(Column("queries", "count"))
    rows: list[list[Cell]] = [
        [name, value, result.standard_errors.get(name), result.averaged(name)]
        for name, value in result.metrics.items()
    ]
    if result.scope.weight is not None:  # then no metric has bounds, which gap alone has
        columns.append(Column("effective", "number"))
        rows = [[*row, result.effective_queries] for row in rows]
    if result.bounds:
        columns.append(Column("worst..best", "range"))
        rows = [[*row, result.bounds.get(str(row[0]))] for row in rows]
    return Table(columns, rows)


def groups_part(result: Result) -> list[Part]:
    """Return what each group of items gets as a table and an empty line; nothing without groups."""
    if result.groups is None:
        return []
    first, *names = result.groups.column_names
    kinds: dict[str, Kind] = {"items": "score", "labels": "score", "share": "share"}
    columns = [Column(name, kinds.get(name.partition("@")[0], "number")) for name in names]
    rows = zip(*(column.to_pylist() for column in result.groups.columns), strict=True)
    return [Table([Column(first), *columns], [list(row) for row in rows]), ""]


def exact_table(result: Result) -> Table:
    """Return the metrics of a result, its sums and its slices as a table for programs."""
    names = ["metric", "value", "standard_error", "queries", "worst", "best"]
    names += ["effective_queries"] if result.scope.weight is not None else []
    names += ["by", "slice"] if result.by is not None or result.sums else []
    rows: list[dict[str, Any]] = []
    for name, value in result.metrics.items():
        worst, best = result.bounds.get(name, (None, None))
        told = {"metric": name, "value": value, "worst": worst, "best": best}
        told["standard_error"] = result.standard_errors.get(name)
        told["queries"] = result.averaged(name)
        rows.append(told | {"effective_queries": result.effective_queries})
    for name, one in result.sums.items():
        told = {"metric": name, "value": one.value, "standard_error": one.standard_error}
        rows.append(told | {"worst": one.low, "best": one.high})
    for row in [] if result.by is None else result.by.to_pylist():
        rows.append(row | {"slice": UNKNOWN if row["slice"] is None else row["slice"]})
    return Table([Column(name) for name in names], [[*map(row.get, names)] for row in rows])
