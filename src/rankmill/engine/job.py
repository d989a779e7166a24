"""The job: what to compute and how, the same for all steps of an evaluation."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rankmill.errors import UsageError, positive
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.gains import canonical_gain_function, least_gain
from rankmill.metrics.aggregate import Aggregate, Asked, aggregate_of
from rankmill.metrics.base import NO_CUTOFF, REL, Metric
from rankmill.metrics.diversity import heeds_gains, is_of_subtopics
from rankmill.metrics.exposed import OfExposure
from rankmill.metrics.exposure import Exposure, Wanted
from rankmill.metrics.gap import ORDERED_TIES, Gap
from rankmill.metrics.gap_groups import GapGroups
from rankmill.metrics.registry import check_defined, parse_under
from rankmill.semantics.choices import Choices
from rankmill.semantics.scope import WHOLE, Scope
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.sources.asked import MEMORY
from rankmill.sources.facts import NO_FACTS, Kind
from rankmill.sources.inputs import Input, open_inputs
from rankmill.sources.nouns import Catalogue, Labels, Predictions


@dataclass(frozen=True)
class Job:
    """What to compute, and how.

    Attributes
    ----------
    metrics : tuple of Metric
        In the order of the request.
    semantics, gain_function, memory
    aside : tuple of Metric
        More means over queries, which are added up and change nothing that is shown: no count of
        the audit, no table of queries, no result. No cutoff of theirs is above those of `metrics`.
    keep_values : bool
        Whether the values of each query are kept.
    keep_lengths : bool
        Whether the number of predictions of each query of the labels is kept.
    gap_groups : bool
        Whether metrics such as gap can be computed without some of the queries, too.
    keep_rows : bool
        Whether every prediction is kept with its ids for a metric over all predictions.
    part : bool
        Whether this is a part of an evaluation, which may have no labels of its own.
    scope : Scope
    beside : Catalogue
        The items that can be shown, and what queries had in training, as the caller gave them.
    catalogue : KnownItems or None
        The same, once they are read.
    skipped : tuple of str
        Notes on what was asked for and is not computed: see `parse_under`.
    """

    metrics: tuple[Metric, ...]
    semantics: Choices
    gain_function: str = "linear"
    memory: int = MEMORY
    keep_values: bool = True
    keep_lengths: bool = False
    gap_groups: bool = False
    keep_rows: bool = False
    part: bool = False
    scope: Scope = WHOLE
    aside: tuple[Metric, ...] = ()
    beside: Catalogue = field(default_factory=Catalogue)
    catalogue: KnownItems | None = None
    skipped: tuple[str, ...] = ()

    @property
    def per_query(self) -> list[Metric]:
        """The metrics that have a value for each query."""
        return [metric for metric in self.metrics if metric.spec.kernel]

    @cached_property
    def pooled(self) -> list[Metric]:
        """The metrics over all predictions in one list by confidence, such as gap."""
        return [metric for metric in self.metrics if aggregate_of(metric).needs_confidences]

    @property
    def of_unpredicted(self) -> bool:
        """Whether queries without predictions count, and may not score 0 in a metric."""
        counts = self.semantics.unpredicted == "zero"
        return counts and any(metric.spec.counts_empty for metric in self.metrics)

    @cached_property
    def wanted(self) -> Wanted | None:
        """What metrics need of how many lists show each item; None if none does."""
        found = {one: self.aggregate_of(one) for one in (*self.metrics, *self.aside)}
        of = {one: kind for one, kind in found.items() if issubclass(kind, OfExposure)}
        if not of:
            return None
        given = self.beside.train, self.beside.items, self.beside.features
        told = any(one is not None for one in given)
        whole = any(kind.whole for kind in of.values()) and not told
        # What is shown behind the last cutoff is in the catalogue too.
        cutoffs = {one.limit for one in of} | ({NO_CUTOFF} if whole else set())
        return Wanted(
            tuple(sorted(cutoffs)),
            hits=any(kind.hits for kind in of.values()),
            labels=whole or any(kind.labels for kind in of.values()),
            catalogue=self.catalogue,
        )

    @cached_property
    def needs_training(self) -> bool:
        """Whether a metric needs to know what queries had in training."""
        return any(_needs("training", one) for one in self.metrics)

    @cached_property
    def needs_groups(self) -> bool:
        """Whether a metric needs the groups of items."""
        return any(_needs("groups", one) for one in self.metrics)

    @cached_property
    def needs_group_labels(self) -> bool:
        """Whether a metric needs to know how many labels each group of items has."""
        return any(_needs("group_labels", one) for one in self.metrics)

    @cached_property
    def needs_features(self) -> bool:
        """Whether a metric needs the features of items."""
        return any(_needs("features", one) for one in self.metrics)

    @property
    def of_catalogue(self) -> bool:
        """Whether a metric needs to know more of each item."""
        return self.needs_training or self.needs_groups or self.needs_features

    @property
    def needs_judged(self) -> bool:
        """Whether a metric asks for judged items of gain 0 or less."""
        return any(metric.spec.needs_judged for metric in self.metrics)

    @property
    def keeps_judged(self) -> bool:
        """Whether judged items of gain 0 or less are kept with the labels."""
        return self.scope.judged_only or self.needs_judged

    @property
    def limit(self) -> int:
        """The last rank at which any metric needs the hits."""
        if self.semantics.ties_open:  # ties may move hits from later ranks forward
            return NO_CUTOFF
        return max(metric.limit for metric in self.metrics)

    @property
    def largest_cutoff(self) -> int:
        """The largest cutoff of a metric, or 0 if no metric has one."""
        return max((metric.limit if metric.k else 0) for metric in self.metrics)

    @property
    def holds_rows(self) -> str:
        """The option that needs every prediction with its ids, as an error names it, or ""."""
        by_order = any("gap_ties" in metric.spec.fields for metric in self.pooled)
        if by_order and self.semantics.gap_ties in ORDERED_TIES:
            return f"gap_ties {self.semantics.gap_ties!r}"
        # A second pass would see confidences alone.
        if self.pooled and self.scope.judged_only:
            return "gap with judged_only"
        if self.pooled and self.scope.drop_seen:
            return "gap with drop_seen"
        return "gap row by row" if self.pooled and self.keep_rows else ""

    @property
    def needs_order(self) -> bool:
        """Whether the order in which predictions are read matters to gap."""
        return bool(self.pooled) and (self.semantics.gap_ties in ORDERED_TIES or self.keep_rows)

    @cached_property
    def asked(self) -> dict[str, Asked]:
        """How to make the aggregate of each metric, those aside among them.

        They share the memory for confidences; metrics without a cutoff keep the same ones.
        """
        kept = [metric for metric in self.pooled if aggregate_of(metric).passes > 1]
        whole = 0 if self.holds_rows else sum(metric.k is None for metric in kept)
        memory = 0 if self.part else self.memory // max(1, len(kept) - max(0, whole - 1))
        more = (memory, self.holds_rows, self.part, self.catalogue)
        every = (*self.metrics, *self.aside)
        return {metric.text: Asked(metric, self.semantics, *more) for metric in every}

    def aggregate_of(self, metric: Metric) -> type[Aggregate]:
        """The class that adds up the values of a metric."""
        return aggregate_of(metric, self.scope.weight)

    def aggregates(self) -> dict[str, Aggregate]:
        """The aggregate of each metric before any query is added."""
        return {name: self.aggregate_of(one.metric).init(one) for name, one in self.asked.items()}

    def exposure(self) -> Exposure | None:
        """The exposure before any list is added, if a metric needs it."""
        return None if self.wanted is None else Exposure.init(self.wanted)

    def groups(self) -> dict[str, GapGroups]:
        """The groups of each metric over all predictions before any query is added, if kept."""
        pooled = self.pooled if self.gap_groups else []
        names = [metric.text for metric in pooled if aggregate_of(metric) is Gap]
        return {name: GapGroups.init(self.memory // len(names)) for name in names}


def make_job(
    metrics: str | Iterable[str],
    labels: Labels,
    semantics: Counting,
    catalogue: Catalogue | None,
    *,
    memory: int = MEMORY,
    **more: Any,
) -> Job:
    """Check a request and make its job; `more` are fields of `Job`.

    Raises
    ------
    UsageError
        If a metric or a choice does not exist, or a number is out of range.
    """
    given, beside = Semantics.of(semantics), Catalogue.of(catalogue)
    rel, depth, weight = given.rel, given.depth, labels.weight
    if rel is not None:
        rel = REL.read(str(rel), "all metrics")
    if depth is not None:
        depth = positive(depth, "depth")
    choices = given.choices
    asked, skipped = parse_under(metrics, given, rel)
    memory = positive(memory, "memory")
    gain_function = canonical_gain_function(given.gain_function)
    for metric in asked:
        check_defined(metric, choices)
        if metric.rel is not None:
            least_gain(metric.rel, gain_function)
    if depth is not None and choices.ties_open:
        raise UsageError(
            f"depth {depth} may cut through equal confidences, which order {choices.order!r} does "
            "not put in order: choose another order, such as item_descending, or leave out depth"
        )
    if weight is not None:
        _check_weight(weight, asked, choices)
    _check_training(beside.train, asked, beside.drop_seen)
    _check_groups(beside.items, beside.group, asked)
    _check_features(beside.features, asked)
    scope = Scope(rel, depth, bool(given.judged_only), weight, bool(beside.drop_seen))
    told = tuple(f"{name} is left out: {why}" for name, why in skipped.items())
    more = {"scope": scope, "beside": beside, "skipped": told, **more}
    return Job(tuple(asked), choices, gain_function, memory, **more)


def _needs(what: str, metric: Metric) -> bool:
    """Whether the aggregate of a metric needs something, such as "training"."""
    return bool(getattr(aggregate_of(metric), f"needs_{what}", False))


def _check_groups(items: Any, group: str | None, metrics: Iterable[Metric]) -> None:
    """Raise UsageError if items have no groups, and something needs them."""
    needs = [metric.text for metric in metrics if _needs("groups", metric)]
    if group is not None and items is None:
        raise UsageError(
            f"--item-group {group!r} on the command line, Catalogue(group={group!r}) in Python is "
            "a column of the catalogue, and there is none: give it with --items"
        )
    if needs and group is None:
        raise UsageError(
            f"{', '.join(needs)} needs the groups of items, such as genres: give a catalogue with "
            "--items, and name its column of groups with --item-group"
        )


def _check_features(features: Any, metrics: Iterable[Metric]) -> None:
    """Raise UsageError if there are no vectors of items, and something needs them."""
    needs = [metric.text for metric in metrics if _needs("features", metric)]
    if needs and features is None:
        raise UsageError(
            f"{', '.join(needs)} needs the vectors of items, such as embeddings: give a table of "
            "items and vectors with --features"
        )


def _check_training(train: Any, metrics: Iterable[Metric], drop_seen: bool) -> None:
    """Raise UsageError if there is no training set, and something needs it."""
    needs = [metric.text for metric in metrics if _needs("training", metric)]
    needs += ["drop_seen"] if drop_seen else []
    if needs and train is None:
        raise UsageError(
            f"{', '.join(needs)} needs to know what queries had in training: give the interactions "
            "with --train"
        )


def _check_weight(weight: object, metrics: Iterable[Metric], semantics: Choices) -> None:
    """Raise UsageError if queries cannot have weights under this request."""
    if not isinstance(weight, str):
        raise UsageError(
            f"weight is a {type(weight).__name__}; expected the name of a column of the labels"
        )
    for metric in metrics:
        aggregate_of(metric, weight)
    if semantics.unlabelled in ("zero", "one"):
        raise UsageError(
            f"queries that are not among the labels have no weight, but unlabelled "
            f"{semantics.unlabelled!r} counts them: choose --semantics unlabelled=skip, or leave "
            "out --weight"
        )


def _check_subtopics(job: Job, subtopic: str | None) -> None:
    """Raise UsageError if a metric does not fit labels with, or without, subtopics."""
    for metric in job.metrics:
        if subtopic is None and is_of_subtopics(metric):
            raise UsageError(
                f"{metric.text} needs labels with subtopics: name their column with --subtopic"
            )
        if subtopic is not None and not is_of_subtopics(metric) and heeds_gains(metric):
            raise UsageError(
                f"{metric.text} looks at gains, and labels with subtopics have a gain for each "
                "subtopic: leave it out, or leave out --subtopic"
            )
    if subtopic is not None and job.gain_function != "linear":
        raise UsageError(
            f"gain_function {job.gain_function!r} has no meaning for subtopics: leave it out"
        )


@contextmanager
def open_job(
    job: Job,
    labels: Labels,
    runs: Mapping[str, Predictions],
    facts: Mapping[str, Kind] = NO_FACTS,
) -> Iterator[tuple[Input, dict[str, Input]]]:
    """Open the labels and the predictions of each system, with the columns that the job needs.

    `facts` are columns of the labels with a value a query, which the caller will read.
    """
    _check_subtopics(job, labels.subtopic)
    weight: dict[str, Kind] = {} if job.scope.weight is None else {job.scope.weight: "number"}
    with open_inputs(
        labels,
        runs,
        memory=job.memory,
        need_score=bool(job.pooled),
        semantics=job.semantics,
        may_be_empty=job.part,
        facts={**facts, **weight},
    ) as opened:
        yield opened
