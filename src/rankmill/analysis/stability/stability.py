"""stability() tells how far a ranking depends on the cutoff, the metric and the queries."""

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rankmill.analysis.compare.differences.differences import Estimate
from rankmill.analysis.compare.differences.intervals import interval_of
from rankmill.analysis.compare.queries.alignment import Aligned, check_names
from rankmill.analysis.stability.halves import Halves, half_sums, halves_of, random_keys
from rankmill.analysis.stability.stability_view import Design, Stability
from rankmill.analysis.statistics.agreement import Correlation, correlation, order_of, ranks_of
from rankmill.analysis.statistics.sample_size import Needed, queries_needed
from rankmill.columns.ids import to_ids
from rankmill.columns.ragged_lists import one_chunk
from rankmill.engine.evaluate import evaluate_runs
from rankmill.engine.progress import Progress
from rankmill.engine.results_view import joint_notes, side_notes
from rankmill.errors import UsageError, positive, share
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.registry import parse
from rankmill.metrics.texts import split_names
from rankmill.results.provenance import beside
from rankmill.results.result import Result
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.sources.input_options import MEMORY
from rankmill.sources.nouns import Catalogue
from rankmill.threads import Workers

CUTOFFS = (1, 2, 3, 5, 10, 20, 50)


def stability(
    labels: Any,
    runs: Any,
    metrics: str | Iterable[str] = ("map",),
    *,
    cutoffs: Iterable[int] = CUTOFFS,
    confidence: float = 0.95,
    power: float = 0.8,
    splits: int = 100,
    seed: int = 0,
    semantics: Counting = "default",
    catalogue: Catalogue | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> Stability:
    """Show how far the ranking of systems depends on the cutoff, the metric and the queries.

    As in `compare`, values are joined by query id, and a query counts only if it counts for every
    system.

    Parameters
    ----------
    labels
        As for `evaluate`.
    runs : mapping of str to predictions, or predictions
        The predictions of each system, each as for `evaluate`. A mapping is always one of systems.
        Anything else is the predictions of one system, and then there are values and intervals
        only.
    metrics : str or iterable of str
        Names of metrics without a cutoff, such as "map" or "recall", and no sets of them.
    cutoffs : iterable of int
        The cutoffs of each metric.
    confidence : float
        The confidence of intervals; 1 - `confidence` is the level of the t-test.
    power : float
        The power of the t-test for which `Stability.needed` estimates the number of queries.
    splits, seed : int
        How many times to split the queries into random halves, and the seed. Nothing else is
        random, and the only test is the paired t-test of the queries needed: there is no `Tests`.
    semantics, catalogue, threads, memory, progress
        As for `evaluate`.

    Returns
    -------
    Stability
        The errors are those of `evaluate`. A UsageError is also raised if
        a metric takes no cutoff or already has one, or an option is wrong.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.arrays.Ragged.from_lists([[1], [2], [3], [4]])
    >>> runs = {"top": [[1], [2], [9], [9]], "deep": [[9, 1], [9, 2], [9, 3], [9, 4]]}
    >>> runs = {name: rankmill.arrays.Ragged.from_lists(lists) for name, lists in runs.items()}
    >>> found = rankmill.stability(labels, runs, "hit", cutoffs=[1, 2])
    >>> found.ranks["hit"]["top"], found.between_cutoffs["hit"][1][2].tau_b
    ({1: 1, 2: 2}, -1.0)
    """
    began = time.perf_counter()
    design = Design(_cutoffs(cutoffs), confidence, power, splits, seed)
    _check(design)
    named = _named(metrics, design.cutoffs, Semantics.of(semantics).rel)
    runs = runs if isinstance(runs, Mapping) else {"predictions": runs}
    if not runs:
        raise UsageError('runs is empty; expected a system or more, such as {"old": ...}')
    check_names(runs)
    texts = [text for at in named.values() for text in at.values()]
    results = evaluate_runs(
        labels,
        runs,
        texts,
        semantics=semantics,
        catalogue=catalogue,
        threads=threads,
        memory=memory,
        progress=progress,
    )
    systems = _Systems(results, Aligned.of(results))
    queries = systems.aligned.queries_of_all
    first = next(iter(results.values()))
    values = {metric: systems.values(at, confidence) for metric, at in named.items()}
    sides = {metric: parse(next(iter(at.values()))).better for metric, at in named.items()}
    orders = {
        metric: _orders(of_system, design.cutoffs, sides[metric])
        for metric, of_system in values.items()
    }
    # One system has no ranking that could be compared.
    compared = orders if len(results) > 1 else {}
    halves, needed = {}, {}
    with Workers(threads) as workers:
        keys = random_keys(to_ids(one_chunk(systems.aligned.ids()), "the query ids"), seed)
        for metric, order in compared.items():
            at = named[metric]
            halves[metric] = systems.halves(at, keys, splits, workers)
            needed[metric] = {k: systems.needed(at[k], order.get(k), design) for k in at}
    return Stability(
        values=values,
        ranks={metric: _ranks(list(results), at, design.cutoffs) for metric, at in orders.items()},
        between_cutoffs={metric: _between_cutoffs(at) for metric, at in compared.items()},
        between_metrics={metric: _between_metrics(metric, compared) for metric in compared},
        halves=halves,
        needed=needed,
        queries=queries,
        left_out={name: one.queries - queries for name, one in results.items()},
        differing=len(systems.aligned.queries) - queries,
        unpredicted={name: one.audit["queries_only_labelled"] for name, one in results.items()},
        design=design,
        semantics=first.semantics,
        scope=first.scope,
        notes=[*joint_notes(results), *side_notes(sides)],
        inputs={
            "labels": first.inputs["labels"],
            "systems": {name: one.inputs["predictions"] for name, one in results.items()},
            **beside(first.inputs),
        },
        seconds=time.perf_counter() - began,
    )


def _cutoffs(given: Any) -> tuple[int, ...]:
    if not isinstance(given, Iterable) or isinstance(given, str):
        raise UsageError(f"cutoffs is {given!r}; expected positive integers, such as [1, 5, 10]")
    found = {positive(one, "a cutoff") for one in given}
    if not found:
        raise UsageError("cutoffs is empty; expected positive integers, such as [1, 5, 10]")
    return tuple(sorted(found))


def _check(design: Design) -> None:
    """Raise UsageError if an option is wrong, before anything is read."""
    for name, example in (("confidence", 0.95), ("power", 0.8)):
        share(getattr(design, name), name, example)
    positive(design.splits, "splits")
    if design.seed != 0:
        positive(design.seed, "seed")


def _named(metrics: Any, cutoffs: Sequence[int], rel: float | None) -> dict[str, dict[int, str]]:
    """Return metric -> cutoff -> the name of the metric at the cutoff."""
    found = {}
    for name in split_names(metrics):
        _check_metric(name)
        at = {k: parse(f"{name.strip()}@{k}", rel).text for k in cutoffs}
        found[at[cutoffs[0]].removesuffix(f"@{cutoffs[0]}")] = at
    return found


def _check_metric(name: str) -> None:
    """Raise UsageError if a metric has a cutoff, takes none, or is not a mean over queries."""
    try:
        metric = parse(name)
    except UsageError as error:
        try:
            metric = parse(f"{name}@1")  # some metrics need a cutoff
        except UsageError:
            raise error from None
    else:
        if metric.k is not None:
            raise UsageError(
                f"{name!r} already has a cutoff; name the metric without it, as --cutoffs has "
                "those of all metrics"
            )
    if metric.spec.cutoff == "none":
        raise UsageError(
            f"{name} takes no cutoff, so it cannot be compared over cutoffs: leave it out"
        )
    if metric.spec.kernel is None or metric.summary:
        raise UsageError(
            f"{name} is not a mean over queries, so queries cannot be halved or counted for "
            "it: leave it out"
        )


def _orders(
    values: dict[str, dict[int, Estimate]], cutoffs: Sequence[int], better: str
) -> dict[int, np.ndarray]:
    """Return at each cutoff with values for each two systems 1 if the first is better, 0 or -1."""
    found = {}
    for k in cutoffs:
        means = [at[k].value for at in values.values()]
        known = [one for one in means if one is not None]
        if len(known) == len(means):
            found[k] = -order_of(known) if better == "lower" else order_of(known)
    return found


def _between_cutoffs(orders: dict[int, np.ndarray]) -> dict[int, dict[int, Correlation]]:
    return {
        k: {other: correlation(order, orders[other]) for other in orders}
        for k, order in orders.items()
    }


def _between_metrics(
    metric: str, orders: dict[str, dict[int, np.ndarray]]
) -> dict[str, dict[int, Correlation]]:
    return {
        other: {k: correlation(order, at[k]) for k, order in orders[metric].items()}
        for other, at in orders.items()
        if other != metric
    }


def _ranks(
    systems: Sequence[str], orders: dict[int, np.ndarray], cutoffs: Sequence[int]
) -> dict[str, dict[int, int | None]]:
    ranks = {k: ranks_of(signs) for k, signs in orders.items()}
    return {
        name: {k: ranks[k][i] if k in ranks else None for k in cutoffs}
        for i, name in enumerate(systems)
    }


class _Systems(NamedTuple):
    """The results of systems, joined, and the queries that count for all of them."""

    results: dict[str, Result]
    aligned: Aligned

    def values(self, at: dict[int, str], confidence: float) -> dict[str, dict[int, Estimate]]:
        """Return system -> cutoff -> the mean with its interval, for one metric."""
        return {
            name: {k: self._estimate(name, text, confidence) for k, text in at.items()}
            for name in self.results
        }

    def _estimate(self, name: str, text: str, confidence: float) -> Estimate:
        result = self.results[name]
        value, error = result.metrics[text], result.standard_errors[text]
        if self.aligned.common is not None:
            mean = Mean.of(self.aligned.values(name, text))
            value, error = mean.mean, mean.standard_error
        return interval_of(text, value, error, self.aligned.queries_of_all, confidence)

    def halves(
        self, at: dict[int, str], keys: np.ndarray, splits: int, workers: Workers
    ) -> dict[int, Halves]:
        """Return cutoff -> how well random halves of the queries agree, for one metric."""
        systems = list(self.results)
        columns = [self.aligned.values(name, text) for text in at.values() for name in systems]
        sizes = [float(np.abs(one).max(initial=0.0)) for one in columns]
        many = len(systems)
        groups = range(0, len(columns), many)
        # The systems of a cutoff share a unit, so that their sums compare.
        largest = [max(sizes[start : start + many]) for start in groups for _ in systems]
        sums = half_sums(columns, largest, keys, splits, workers)
        return {
            k: halves_of(
                systems,
                sums._replace(
                    first=sums.first[start : start + many], second=sums.second[start : start + many]
                ),
            )
            for k, start in zip(at, groups, strict=True)
        }

    def needed(self, text: str, order: np.ndarray | None, design: Design) -> list[Needed]:
        """Return what it takes to tell each system from the next one in the ranking."""
        if order is None:
            return []
        ranks = dict(zip(self.results, ranks_of(order), strict=True))
        ranked = sorted(ranks, key=lambda name: (ranks[name], name))
        found, values = [], self.aligned.values
        for better, worse in pairwise(ranked):
            mean = Mean.of(values(better, text) - values(worse, text))
            error = mean.standard_error
            difference = 0.0 if ranks[better] == ranks[worse] else mean.mean
            deviation = None if error is None else error * self.aligned.queries_of_all**0.5
            effect = difference / deviation if difference and deviation else None
            queries = queries_needed(effect, design.confidence, design.power) if effect else None
            found.append(Needed(better, worse, difference, deviation, effect, queries))
        return found
