"""Metrics in slices of the queries, and weighted sums of them, from the values of queries."""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from rankmill.columns.numbers import floats_of
from rankmill.columns.ragged_lists import one_chunk
from rankmill.engine.cuts import Cuts, cuts_of, read_classes
from rankmill.engine.job import Job
from rankmill.engine.segments import DERIVED, NO_ROW, Classes, Known, Segments, segments_of
from rankmill.engine.tally import Tally
from rankmill.errors import InputError, UsageError
from rankmill.metrics.aggregate import AggregateSettings, Closing, ScoredBlock, Totals, aggregate_of
from rankmill.metrics.aggregates.mean import UNIT, Mean
from rankmill.metrics.aggregates.weighted_mean import sum_weights
from rankmill.metrics.base import MICRO, Metric
from rankmill.metrics.sums import Term, read_sums
from rankmill.results.result import WEIGHT, Result
from rankmill.results.slices import REACH, UNKNOWN, MetricOfSlice, WeightedSum, table_of_slices
from rankmill.sources.inputs.inputs import Input
from rankmill.threads import Workers

NO_ARRAY: Any = None

Slicing = Callable[[Tally, Result, Input], Result]
"""Adds to the result of a system its slices and its sums."""


def asked_metrics(metrics: Any, sums: str | Iterable[str]) -> Any:
    """Return the metrics asked for, and those that sums need besides."""
    from rankmill.metrics.texts import split_names

    terms = [one.metric.text for each in read_sums(sums).values() for one in each]
    return [*(split_names(metrics) if metrics else ()), *terms] if terms else metrics


def check_several(cuts: Cuts) -> None:
    """Raise UsageError if something cannot cut where several systems are scored."""
    if "unpredicted" in cuts.derived:
        raise UsageError(
            "by='unpredicted' depends on all systems, which evaluate_runs scores one after the "
            "other: compare does that"
        )


def slicing_of(
    job: Job,
    by: Any,
    sums: str | Iterable[str],
    threads: int | None,
    per_query: bool = True,
) -> tuple[Job, Cuts, Slicing]:
    """Return the job of a request with slices and sums, what cuts, and what adds them to results.

    All systems have the same slices; "list_length" is that of the first one.

    Raises
    ------
    UsageError
        If a sum cannot be read, or something cannot cut here.
    """
    cuts, terms = cuts_of(by), read_sums(sums, job.scope.rel)
    if cuts == Cuts() and not terms:
        return job, cuts, lambda tally, result, labels: result
    if cuts == Cuts() and any(one.by for each in terms.values() for one in each):
        name, one = next((n, o) for n, each in terms.items() for o in each if o.by)
        raise UsageError(
            f"the sum {name!r} has {one}, but there are no slices: name {one.by!r} in --by"
        )
    lengths = bool({"list_length", "unpredicted"} & {*cuts.derived})
    job = replace(job, keep_values=True, keep_lengths=job.keep_lengths or lengths)
    held: dict[str, Classes] = {}

    def with_slices(tally: Tally, result: Result, labels: Input) -> Result:
        if cuts != Cuts() and not held:
            with Workers(threads) as workers:
                held.update(read_classes(cuts, labels, tally.index, workers, job.memory)[0])
            known = Known(tally.index, tally.lengths, [tally.lengths > 0])
            held.update({name: DERIVED[name][1](known) for name in cuts.derived})
        found = _Sliced(tally, result, held)
        return replace(
            result,
            by=table_of_slices(found.slices()) if held else None,
            sums={name: found.sum_of(name, each) for name, each in terms.items()},
            notes=[*result.notes, *(found.notes if held else ())],
            per_query=result.per_query if per_query else None,
        )

    return job, cuts, with_slices


class _Sliced:
    """The queries of a system that count, with their slices and their values."""

    def __init__(self, tally: Tally, result: Result, classes: dict[str, Classes]) -> None:
        self._tally = tally
        self._result = result
        labelled = np.flatnonzero(tally.counted.among_labels)
        strangers = len(result.per_query) - len(labelled)
        self._rows = np.concatenate([labelled, np.full(strangers, NO_ROW)])
        self._ways = {name: segments_of(name, of, self._rows) for name, of in classes.items()}

    @property
    def notes(self) -> list[str]:
        """Which metrics have no slices, as they have no values of queries."""
        names = [one.text for one in self._tally.job.metrics if not one.spec.kernel]
        return [f"{', '.join(names)}: no slices"] if names else []

    @cached_property
    def _weights(self) -> np.ndarray | None:
        return None if self._tally.index.weights is None else self._column(WEIGHT)

    def _column(self, name: str) -> np.ndarray:
        found: np.ndarray = floats_of(one_chunk(self._result.per_query.column(name)))
        return found

    def _arrays(self, metric: Metric, at: np.ndarray | None) -> dict[str, Any]:
        """Return the values of some queries, and their divisors and weights if they have any."""
        of = slice(None) if at is None else at
        if metric.summary == MICRO:
            kept = (self._tally.values[f"{metric.text}.{one}"] for one in ("values", "divisors"))
            values, divisors = (np.append(one, 0.0)[self._rows[of]] for one in kept)
        else:
            values, divisors = self._column(metric.text)[of], None
        weights = self._weights
        weights = None if weights is None else weights[of]
        return {"values": values, "divisors": divisors, "weights": weights}

    def _added(self, metric: Metric, arrays: dict[str, Any]) -> Any:
        """Return the value of a metric of some queries, exactly as that of all is computed."""
        job, weights = self._tally.job, arrays["weights"]
        asked = AggregateSettings(metric, job.semantics)
        block = ScoredBlock(*[NO_ARRAY] * 5, **arrays)
        closing = Closing(len(arrays["values"]), 0)
        if weights is not None:
            closing = closing._replace(weights=sum_weights(weights))
        one = aggregate_of(metric, job.scope.weight).init(asked).update(block, asked)
        return one.close(closing).finish(Totals(closing.queries, 0, job.semantics), None, NO_ARRAY)

    def slices(self) -> Iterator[MetricOfSlice]:
        """Yield each metric in each slice."""
        for name, way in self._ways.items():
            places = _places(way)
            for (value,), at in zip(way.values, places, strict=True):
                for metric in self._tally.job.per_query:
                    found = self._added(metric, self._arrays(metric, at))
                    numbers = found.value, found.standard_error, len(at)
                    yield MetricOfSlice(name, value, metric.text, *numbers)

    def sum_of(self, name: str, terms: list[Term]) -> WeightedSum:
        """Return a weighted sum with its standard error, that of its linear part.

        What a query adds to the sum is added up over all terms before it is squared, so that terms
        of the same queries vary together, and those of other queries do not.
        """
        parts = []
        effects: np.ndarray | None = np.zeros(len(self._rows))
        for one in terms:
            at = self._at(name, one)
            if not one.metric.spec.kernel:
                value, effects = self._result.metrics[one.metric.text], None
            else:
                arrays = self._arrays(one.metric, at)
                value = self._added(one.metric, arrays).value
            if value is None:
                raise InputError(f"the sum {name!r} has no value, as {one} has none")
            parts.append(one.weight * value)
            if effects is not None:
                of_term = _effects(one.metric, value, **arrays)
                if of_term is None:
                    effects = None
                else:
                    effects[slice(None) if at is None else at] += one.weight * of_term
        total = math.fsum(parts)
        if effects is None:
            return WeightedSum(total)
        error = math.sqrt(Mean.of(effects).squares / (1 << 2 * UNIT))
        return WeightedSum(total, error, total - REACH * error, total + REACH * error)

    def _at(self, name: str, term: Term) -> np.ndarray | None:
        """Return the places of the queries of a term; None are all."""
        if not term.by:
            return None
        if not term.metric.spec.kernel:
            raise UsageError(f"the sum {name!r} has {term}, but {term.metric.text} has no slices")
        way = self._ways.get(term.by)
        if way is None:
            there = ", ".join(self._ways)
            raise UsageError(
                f"the sum {name!r} has {term}, but slices are only of {there}: name {term.by!r} "
                "in --by"
            )
        texts = [UNKNOWN if value is None else value for (value,) in way.values]
        if term.value not in texts:
            shown = ", ".join(texts[:10]) + (", ..." if len(texts) > 10 else "")
            raise InputError(
                f"the sum {name!r} has {term}, but no query that counts has {term.value!r} in "
                f"{term.by!r}; there are {shown}"
            )
        return np.flatnonzero(way.codes == texts.index(term.value))


def _places(way: Segments) -> list[np.ndarray]:
    """Return the places of the queries of each slice."""
    ends = np.cumsum(np.bincount(way.codes, minlength=len(way.values)))
    return np.split(np.argsort(way.codes, kind="stable"), ends)[:-1]


def _effects(
    metric: Metric,
    value: float,
    values: np.ndarray,
    divisors: np.ndarray | None,
    weights: np.ndarray | None,
) -> np.ndarray | None:
    """Return how far each query moves a mean or a micro-average; None where that is not known.

    The sum of their squares is the square of the standard error.
    """
    counts = np.ones(len(values)) if weights is None else weights
    n = int(np.count_nonzero(counts))
    if n < 2 or metric.summary not in ("", MICRO):
        return None
    apart = values - value if divisors is None else values - value * divisors
    total = math.fsum((counts if divisors is None else counts * divisors).tolist())
    return np.asarray(counts * apart / total * math.sqrt(n / (n - 1)))
