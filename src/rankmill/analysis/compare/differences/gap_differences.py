"""Metrics over all predictions, such as gap: intervals and differences by the jackknife."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from rankmill.analysis.compare.differences.differences import Difference, Estimate, pairs_of
from rankmill.analysis.compare.differences.intervals import relative, relative_ends
from rankmill.analysis.compare.differences.judgement import Judged
from rankmill.analysis.statistics.distributions import t_quantile
from rankmill.analysis.statistics.jackknife import (
    LEAST_HITS,
    JackknifeError,
    estimate,
    interval_within,
    jackknife_test,
)
from rankmill.engine.tally import Tally
from rankmill.metrics.aggregate import aggregate_of
from rankmill.metrics.base import Better
from rankmill.metrics.gap.gap import Gap
from rankmill.metrics.gap.gap_groups import LeftOut, groups_in
from rankmill.metrics.needs import ORDERED_TIES, Confidences
from rankmill.metrics.registry import parse
from rankmill.results.result import Result
from rankmill.threads import Workers

Values = Mapping[str, float | None]
Without = Mapping[str, LeftOut | str]
"""System -> its values without each group of queries, or why these are not known."""


NO_VALUE = "it has no value without some of the queries"


def leave_out(
    tally: Tally, workers: Workers, cluster: str | None = None
) -> dict[str, LeftOut | str]:
    """Return for each metric over all predictions its values without each group of queries.

    The job must have kept ``gap_groups``, and the result must be made. If the values are not known,
    a text says why, as if queries come in clusters, the column of which is `cluster`. The tally may
    be freed afterwards.
    """
    semantics = tally.state.semantics
    found: dict[str, LeftOut | str] = {}
    for metric, groups in groups_in(tally.state.aggregates).items():
        if cluster is not None:
            found[metric] = f"the jackknife leaves out queries, and not clusters by {cluster}"
        elif semantics.gap_ties in ORDERED_TIES:
            ties = semantics.gap_ties
            found[metric] = f"the jackknife does not know the order of gap_ties {ties!r}"
        elif not groups.complete:
            found[metric] = "the predictions with their queries need more memory: allow more"
        else:  # only now, as it takes the correct confidences back into memory
            correct = cast(Gap, tally.state.aggregates[metric]).correct
            left = groups.left_out(correct, tally.among[metric], semantics, workers)
            found[metric] = left or NO_VALUE
    return found


def pooled_estimates(values: Values, without: Without, confidence: float) -> dict[str, Estimate]:
    """Return the value of each system in one metric, with its interval if there is one."""
    return {name: _estimate(value, without[name], confidence) for name, value in values.items()}


def _estimate(value: float | None, without: LeftOut | str, confidence: float) -> Estimate:
    spread = None if isinstance(without, str) else spread_of(without)
    if value is None or spread is None or isinstance(without, str):
        return Estimate(value)
    if few_hits([without]):
        return Estimate(value, spread.standard_error)
    ends = interval_within(value, spread, without.most, confidence)
    return Estimate(value, spread.standard_error, *ends)


def spread_of(one: LeftOut) -> JackknifeError | None:
    """Return the spread of a value, from the values without each group."""
    return estimate(one.whole, one.values, one.sizes)


def few_hits(sides: Iterable[LeftOut]) -> str:
    """Return why there is no interval of gap or of a difference of it, or ""."""
    hits = max(one.hits for one in sides)
    return f"{hits} hits are too few" if hits < LEAST_HITS else ""


def pooled_difference(
    values: Values,
    without: Without,
    baseline: str,
    system: str,
    confidence: float,
    better: Better = "higher",
) -> Difference:
    """Return how a system differs from the baseline in one metric; p is not corrected yet.

    The groups hold the same queries for both systems, so that they pair: the difference is
    estimated without each group. The test is "t", whatever tests are asked for.
    """
    base, value = values[baseline], values[system]
    if value is None or base is None:
        return Difference(None, better=better)
    less = value - base
    one, other = without[system], without[baseline]
    if isinstance(one, str) or isinstance(other, str) or few_hits([one, other]):
        return Difference(less, relative(less, base), better=better)
    spread = estimate(one.whole - other.whole, one.values - other.values, one.sizes)
    found = jackknife_test(less, spread, confidence)
    tests = {"t": found._replace(direction=(less > 0) - (less < 0))}
    ends: tuple[float | None, float | None] = (None, None)
    if spread is not None and spread.standard_error:
        spreads = spread_of(one), spread_of(other)
        errors = [None if each is None else each.standard_error for each in spreads]
        t = t_quantile((1 + confidence) / 2, spread.freedom)
        ends = relative_ends(value, base, (errors[0], errors[1], spread.standard_error), t, True)
    return Difference(
        less, relative(less, base), *ends, found.low, found.high, tests=tests, better=better
    )


class PooledMetrics(NamedTuple):
    """The values and differences of metrics that are not means over queries, and notes on each."""

    values: dict[str, dict[str, Estimate]]
    differences: Judged
    notes: list[str]


def pooled(
    results: Mapping[str, Result],
    without: Mapping[str, Without],
    metrics: Iterable[str],
    baseline: str,
    confidence: float,
    all_pairs: bool = False,
) -> PooledMetrics:
    """Return the values and differences of metrics that are not means over queries.

    `without` holds what `leave_out` found, by metric and system.
    """
    found = PooledMetrics({}, {}, [])
    for metric in metrics:
        of = {name: one.metrics[metric] for name, one in results.items()}
        known = without.get(metric, {})  # a system of an earlier run has values of queries alone
        why = "its predictions are not at hand"
        asked = parse(metric)
        if aggregate_of(asked) is not Gap:
            why = "the jackknife here is that of gap"
        if asked.summary:
            why = f"the tests here are of means, and not of {asked.summary!r}"
        elif Confidences not in aggregate_of(asked).needs:
            why = "it counts what all lists show"
        left = {name: known.get(name, why) for name in of}
        found.values[metric] = pooled_estimates(of, left, confidence)
        for base, name in pairs_of(of, baseline):
            if base == baseline or all_pairs:
                one = pooled_difference(of, left, base, name, confidence, asked.better)
                found.differences[metric, name if base == baseline else (base, name)] = one
        found.notes.append(_note(metric, left))
    return found


def _note(metric: str, without: Without) -> str:
    """Return how the intervals of a metric came to be, or why there are none."""
    why = next((one for one in without.values() if isinstance(one, str)), "")
    how = f"no interval and no test, because {why}"
    if not why:
        known = {name: one for name, one in without.items() if isinstance(one, LeftOut)}
        groups = next(len(one.sizes) for one in known.values())
        how = f"its interval is a jackknife over {groups} groups of queries"
        few = [name for name, one in known.items() if few_hits([one])]
        if few:
            how += f"; there is none for {', '.join(few)}, which has fewer than {LEAST_HITS} hits"
    return f"{metric} is not a mean over queries: {how}"
