"""The job: what to compute and how, the same for all steps of an evaluation."""

import numbers
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from os.path import exists
from typing import Any

from rankmill.errors import UsageError, positive, spoken
from rankmill.io.overflow import Overflow
from rankmill.matching.catalogue import KnownItems
from rankmill.matching.label_lists import canonical_gain_function, least_gain
from rankmill.metrics.aggregate import (
    Aggregate,
    AggregateSettings,
    Need,
    aggregate_of,
    kinds_of,
    needs_of,
)
from rankmill.metrics.base import GAIN, NO_CUTOFF, REL, Metric
from rankmill.metrics.exposure import is_of_catalogue
from rankmill.metrics.families.diversity import heeds_gains, is_of_subtopics
from rankmill.metrics.needs import TrainingRows, side_of
from rankmill.metrics.own import OwnKernel
from rankmill.metrics.registry import check_defined, parse_under
from rankmill.metrics.sums import Term, read_sums
from rankmill.records import record
from rankmill.semantics.choices import WHOLE, Choices, Scope
from rankmill.semantics.presets import PRESETS, preset_named
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.sources.files.formats import is_path
from rankmill.sources.inputs.inputs import Input, open_inputs
from rankmill.sources.meaning.shapes import NO_FACTS, Kind
from rankmill.sources.nouns import Catalogue, Labels, Predictions
from rankmill.sources.roles.source import FRUGAL, MEMORY

# The inputs of a catalogue.
BESIDE = "train", "items", "features"


@record(frozen=True)
class Job:
    """What to compute, and how."""

    metrics: tuple[Metric, ...]  # in the order of the request
    semantics: Choices
    gain_function: str = "linear"
    scope: Scope = WHOLE
    whole_gains: str = ""  # the preset whose evaluator cuts gains to whole numbers, if one does
    skipped: tuple[str, ...] = ()  # notes on what is not computed: see `parse_under`
    beside: tuple[str, ...] = ()  # the fields of `Catalogue` that are given as inputs
    group: str | None = None  # the column of the group of items
    # The items that can be shown, and what queries had in training, once they are read.
    catalogue: KnownItems | None = None
    memory: int = MEMORY
    keep_values: bool = True  # of each query
    keep_lengths: bool = False  # how many predictions each query of the labels has
    # `QueryGroups`, so that metrics that are no means over queries can leave some queries out.
    groups: Any = None
    hold: bool = False  # whether a part keeps its predictions, as a whole does
    in_group: bool = False  # whether it is done in such a group, which holds no more than it needs
    keep_rows: bool = False  # every prediction with its ids, for a metric over all predictions
    part: bool = False  # of an evaluation, which may have no labels of its own
    recorder: Any = None  # `OriginRecorder`: sees what a part reads
    # More means over queries, which are added up and change nothing that is shown: no count of the
    # audit, no table of queries, no result. No cutoff of theirs is above those of `metrics`.
    aside: tuple[Metric, ...] = ()
    alike: Any = None  # `Alike`: what each list is beside that of the baseline
    # `Cuts`: how to cut the queries into slices, in each of which the job is done as well.
    cuts: Any = None
    by: tuple[str, ...] = ()  # the names of these ways, once their tables are opened
    sums: tuple[str, ...] = ()  # of metrics and slices, weighted, as `read_sums` reads them
    # Where aggregates put what needs more memory; the run that made it closes it.
    file: Overflow | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "memory", positive(self.memory, "memory"))

    @cached_property
    def every(self) -> tuple[Metric, ...]:
        """All metrics, those aside among them."""
        return (*self.metrics, *self.aside)

    @property
    def waiting(self) -> int:
        """How many results of a thread may wait for those before them."""
        return 2 if self.memory < FRUGAL else 8

    @cached_property
    def per_query(self) -> list[Metric]:
        """The metrics that have a value for each query."""
        return [metric for metric in self.metrics if metric.spec.kernel]

    @cached_property
    def values_kept(self) -> list[str]:
        """The metrics whose values of queries are kept."""
        return [one.text for one in self.per_query] if self.keep_values else []

    @cached_property
    def of_slice(self) -> "Job":
        """The job as it is done in each slice; each way to cut has as much memory as the whole.

        In groups that are left out it is done for the metrics that need them.
        """
        whole: dict[str, Any] = {"groups": None, "aside": (), "by": (), "sums": ()}
        if self.groups is not None:
            memory = max(1, self.memory // 2)
            some: Any = {"metrics": self.left_out, "in_group": True, "file": None}
            return replace(self, memory=memory, **whole, **some)
        return replace(self, memory=max(1, self.memory // (1 + len(self.by))), **whole)

    @cached_property
    def left_out(self) -> tuple[Metric, ...]:
        """The metrics that have to leave out groups of queries, as they are no means over these."""
        return tuple(one for one in self.metrics if not one.is_mean and one.quantile is None)

    @cached_property
    def own_catalogue(self) -> list[str]:
        """The metrics of a catalogue that is not given: all labels and predictions are."""
        return [] if self.beside else [one.text for one in self.metrics if is_of_catalogue(one)]

    @property
    def cut(self) -> bool:
        """Whether blocks of queries are cut into slices, or into groups."""
        return self.cuts is not None and not (self.groups and self.groups.needed)

    @cached_property
    def terms(self) -> dict[tuple[str, str, str], Term]:
        """The different terms of the sums, as far as each query adds to them by itself."""
        every = (one for each in read_sums(self.sums, self.scope.rel).values() for one in each)
        return {one.place: one for one in every if one.linear}

    @cached_property
    def share(self) -> int:
        """The memory of each need that holds more the more is read."""
        growing = sum(need.grows for need in _users_of_needs(self.every))
        return max(1, self.memory // max(1, growing))

    def columns(self, side: str) -> dict[str, str]:
        """The columns of a side that users' metrics see, each with the first metric that does."""
        every = ((name, one.text) for one in reversed(self.every) for name in one.spec.columns)
        return {name.partition("_")[2]: of for name, of in every if side_of(name) == side}

    @cached_property
    def needs(self) -> dict[type[Need], AggregateSettings]:
        """What its metrics need, each behind what it needs itself."""
        more: Any = {"catalogue": self.catalogue, "file": self.file}
        return {
            need: AggregateSettings(some[0], self.semantics, self.share, users=some, **more)
            for need, some in _users_of_needs(self.every).items()
        }

    @cached_property
    def pooled(self) -> list[Metric]:
        """The metrics over all predictions in one list by confidence, such as gap."""
        return [one for need, asked in self.needs.items() if need.of_scores for one in asked.users]

    @cached_property
    def of_unpredicted(self) -> bool:
        """Whether queries without predictions count, and may not score 0 in a metric."""
        counts = self.semantics.unpredicted == "zero"
        return counts and any(metric.counts_empty for metric in self.metrics)

    @cached_property
    def needs_judged(self) -> bool:
        """Whether a metric asks for judged items of gain 0 or less."""
        return any(metric.needs_judged for metric in self.every)

    @cached_property
    def keeps_judged(self) -> bool:
        """Whether judged items of gain 0 or less are kept with the labels."""
        return self.scope.judged_only or self.needs_judged

    @cached_property
    def limit(self) -> int:
        """The last rank at which any metric needs the hits."""
        # Ties, and items that are dropped, may move hits from later ranks forward.
        if self.semantics.ties_open or any(metric.judged_only for metric in self.every):
            return NO_CUTOFF
        return max(NO_CUTOFF if one.spec.sees_all else one.limit for one in self.metrics)

    @property
    def reach(self) -> int:
        """How many of the best items of a query have to be known, those it had in training too."""
        if self.scope.judged_only or self.keep_lengths:
            return NO_CUTOFF
        beside = [self.alike.reach] if self.alike else []
        last: int = max([*beside, *(metric.limit for metric in self.every)])
        last = min(last, self.scope.depth or last)
        if self.scope.drop_seen and self.catalogue and self.catalogue.training:
            last += self.catalogue.training.most
        return last

    @cached_property
    def largest_cutoff(self) -> int:
        """The largest cutoff of a metric, or 0 if no metric has one."""
        return max((metric.limit if metric.k else 0) for metric in self.metrics)

    @cached_property
    def holds_rows(self) -> str:
        """The option that needs every prediction with its ids, as an error names it, or ""."""
        return self._rows_held(self.scope)

    @cached_property
    def heeds_order(self) -> bool:
        """Whether these are needed because the order matters in which predictions are read."""
        return bool(self._rows_held(WHOLE))

    def _rows_held(self, scope: Scope) -> str:
        if self.in_group:  # all that is held with ids is held once
            return ""
        how = self.semantics, scope, self.keep_rows
        return "".join(need.rows_held(one.users, *how) for need, one in self.needs.items())

    @cached_property
    def asked(self) -> dict[str, AggregateSettings]:
        """How to make each aggregate: of each metric, those aside among them, and of needs.

        They share the memory for confidences; metrics without a cutoff keep the same ones. A third
        is for joining and sorting them, where no rows are held.
        """
        kept = [metric for metric in self.pooled if aggregate_of(metric).passes > 1]
        whole = 0 if self.holds_rows else sum(metric.k is None for metric in kept)
        ways = 1 + len(self.by) + (self.groups is not None)  # each keeps them again
        room = (self.share if self.holds_rows else self.share * 2 // 3) // ways
        memory = 0 if self.part and not self.hold else room // max(1, len(kept) - max(0, whole - 1))
        more = (memory, self.holds_rows, self.part, self.catalogue)
        every = {one.text: one for one in (*self.metrics, *self.aside)}
        asked = {
            name: AggregateSettings(metric, self.semantics, *more, file=self.file)
            for name, metric in every.items()
        }
        return asked | {need.name: one for need, one in self.needs.items() if need.name}

    @cached_property
    def kinds(self) -> dict[str, type[Aggregate]]:
        """The class of each aggregate."""
        return kinds_of(self.every, self.scope.weight)

    def aggregates(self) -> dict[str, Aggregate]:
        """Each aggregate before any query is added."""
        return {name: self.kinds[name].init(one) for name, one in self.asked.items()}


def parse_job(
    metrics: str | Iterable[str],
    labels: Labels,
    semantics: Counting,
    catalogue: Catalogue | None = None,
    sums: str | Iterable[str] = (),
    **more: Any,
) -> Job:
    """Parse and check what a function of the face is asked for; `more` are other fields of the job.

    Raises UsageError if a metric or a choice does not exist, or a number is out of range.
    """
    given, items = Semantics.of(semantics), Catalogue.of(catalogue)
    rel, depth, weight = given.rel, given.depth, labels.weight
    if rel is not None:
        rel = REL.read(str(rel), "all metrics")
    if depth is not None:
        depth = positive(depth, "depth")
    choices = given.choices
    sums = (sums,) if isinstance(sums, str) else tuple(sums)
    terms = [one.metric.text for each in read_sums(sums, rel).values() for one in each]
    asked, skipped = parse_under(metrics, given, rel) if not terms or metrics else ([], {})
    if terms:  # by themselves, as metrics that nobody typed may be left out
        used = parse_under(terms, given, rel)[0]
        asked = [*{one.text: one for one in (*asked, *used)}.values()]
    gain_function = canonical_gain_function(given.gain_function)
    for metric in asked:
        check_defined(metric, choices)
        if metric.rel is not None:
            least_gain(metric.rel, gain_function)
        if GAIN.name in dict(metric.given) and gain_function != "linear":
            raise UsageError(
                f"{metric.text} has a gain function of its own: leave out gain_function "
                f"{gain_function!r}, or leave out the gain of {metric.name}"
            )
    if depth is not None and choices.ties_open:
        raise UsageError(
            f"depth {depth} may cut through equal confidences, which order {choices.order!r} does "
            "not put in order: choose another order, such as item_descending, or leave out depth"
        )
    if weight is not None:
        _check_weight(weight, asked, choices)
    _check_needs(asked, items)
    scope = Scope(rel, depth, bool(given.judged_only), weight, bool(items.drop_seen))
    told = tuple(f"{name} is left out: {why}" for name, why in skipped.items())
    beside = tuple(name for name in BESIDE if getattr(items, name) is not None)
    named = preset_named(given)
    whole = named if named and PRESETS[named].whole_gains else ""
    how = choices, gain_function, scope, whole, told, beside, items.group
    return Job(tuple(asked), *how, sums=sums, **more)


def runs_of(runs: Any) -> dict[str, Predictions]:
    """Return the predictions of each system; UsageError if it is not a mapping of them."""
    if not isinstance(runs, Mapping):
        raise UsageError(
            f"runs is a {type(runs).__name__}; expected a mapping of names to predictions, such as "
            '{"old": ..., "new": ...}'
        )
    check_run_of_each(runs)
    return {name: Predictions.of(one) for name, one in runs.items()}


def check_run_of_each(runs: Mapping[Any, Any]) -> None:
    """Raise UsageError if these are the lists of one system, by query, and not those of several."""
    name, run = next(iter(runs.items()), ("", None))
    listed = isinstance(run, list | tuple)
    values: Any = run if listed else run.values() if isinstance(run, Mapping) else ()
    first: Any = next(iter(values), None)
    # A list may be of files, also without a suffix, if they are there.
    text = listed and isinstance(first, str)
    if isinstance(first, numbers.Number) or (text and not is_path(first) and not exists(first)):
        raise UsageError(
            f"runs has {name!r} with the items of one list, as one system has them by query; "
            'expected a mapping of names to such systems, as in {"old": ..., "new": ...}'
        )


def _users_of_needs(metrics: Iterable[Metric]) -> dict[type[Need], tuple[Metric, ...]]:
    """Return what metrics need, each behind what it needs itself, and the metrics that need it."""
    users: dict[type[Need], tuple[Metric, ...]] = {}
    for metric in metrics:
        for need in needs_of(metric):
            users[need] = (*users.get(need, ()), metric)
    return users


def _check_needs(metrics: Iterable[Metric], given: Catalogue) -> None:
    """Raise UsageError if something is needed beside labels and predictions, and not given."""
    if given.group is not None and given.items is None:
        raise UsageError(
            f"--item-group {given.group!r} on the command line, Catalogue(group={given.group!r}) "
            "in Python is a column of the catalogue, and there is none: give it with --items"
        )
    users = _users_of_needs(metrics).items()
    needs = {need: [each.text for each in some] for need, some in users}
    if given.drop_seen:
        needs.setdefault(TrainingRows, []).append(spoken("--drop-seen"))
    for need, names in needs.items():
        if need.given and getattr(given, need.given) is None:
            raise UsageError(f"{', '.join(names)} {need.lacks}")


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


def check_subtopics(job: Job, subtopic: str | None) -> None:
    """Raise UsageError if a metric does not fit labels with, or without, subtopics."""
    if subtopic is not None and (seen := job.columns("hit")):
        raise UsageError(
            f"{', '.join(dict.fromkeys(seen.values()))} sees columns of the labels, which have "
            "several rows a label with subtopics: leave it out, or leave out --subtopic"
        )
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
    *,
    noted: bool = False,
) -> Iterator[tuple[Input, dict[str, Input]]]:
    """Open the labels and the predictions of each system, with the columns that the job needs.

    `facts` are columns of the labels with a value a query, which the caller will read; `noted` is
    that of `open_input`.
    """
    if not isinstance(labels.data, Input):  # else checked before, as on the driver of a cluster
        check_subtopics(job, labels.subtopic)
    for metric in job.metrics:
        if isinstance(metric.spec.kernel, OwnKernel):
            metric.spec.kernel.refresh()
    weight: dict[str, Kind] = {} if job.scope.weight is None else {job.scope.weight: "number"}
    with open_inputs(
        labels,
        runs,
        memory=job.memory,
        need_score=bool(job.pooled),
        semantics=job.semantics,
        may_be_empty=job.part,
        facts={**facts, **weight},
        seen=job.columns("hit"),
        noted=noted,
    ) as (label_input, inputs):
        if job.recorder is not None:
            label_input = job.recorder.divided(label_input, "labels")
            inputs = {n: job.recorder.divided(one, "predictions") for n, one in inputs.items()}
        yield label_input, inputs
