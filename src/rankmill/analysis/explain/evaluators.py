"""explain_evaluators() scores one metric under several semantics and explains the differences."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from rankmill.columns.ids import id_value
from rankmill.columns.ragged_lists import Ragged
from rankmill.engine.finish import finish
from rankmill.engine.first_pass import Progress, progress_of, run
from rankmill.engine.held_labels import HeldLabels
from rankmill.engine.job import Job, open_job, parse_job
from rankmill.engine.tally import Tally
from rankmill.errors import RankmillError, UsageError, told_shortly
from rankmill.metrics.base import Metric
from rankmill.metrics.elsewhere import name_there
from rankmill.metrics.libraries import told_under
from rankmill.metrics.no_value import notes_on_values
from rankmill.metrics.registry import REGISTRY, parse
from rankmill.package import stamp
from rankmill.records import record
from rankmill.results.answer import Answer, plain, plain_fields, read_fields
from rankmill.results.result import check_values
from rankmill.semantics.choices import CHOICES, DEFAULT, WHOLE, Choices, Scope
from rankmill.semantics.presets import PRESETS, preset
from rankmill.semantics.semantics import Counting, Semantics
from rankmill.show.tables import Cell, Column, Facts, Part, Table, View, decimals_of
from rankmill.sources.inputs.any_source import open_source, reusable
from rankmill.sources.inputs.inputs import check_told
from rankmill.sources.meaning.looks import reading_again
from rankmill.sources.nouns import Labels, LabelsLike, Predictions, PredictionsLike
from rankmill.sources.roles.source import MEMORY
from rankmill.threads import Workers

# ------------------------------------------------------------------ what is shown

_LEGEND = "(R labels and n predictions of a query, k the cutoff)"


class Example(NamedTuple):
    """A query, and its value in the base and with a change; None where it does not count."""

    query: int | str
    before: float | None
    after: float | None


@record(frozen=True)
class Change:
    """What choices other than those of the base make of a metric.

    Attributes
    ----------
    choices : dict of str to str
        The fields that differ from the base, and their choices.
    value : float or None
        The metric with these choices; None where there is none on this data, as `reason` says.
    difference : float or None
        The value less that of the base.
    queries : int or None
        How many queries it touches: their value differs, or they count on one side only. None for
        gap, which has no value for each query.
    example : Example or None
        The query whose value changes most, the first of the labels among several; one that does
        not count is taken as 0 for this.
    kept : tuple of str
        Fields that were left as in the base, since their choice is not possible on this data.
    reason : str
        Why there is no value, or not with all choices.
    """

    choices: dict[str, str]
    value: float | None = None
    difference: float | None = None
    queries: int | None = None
    example: Example | None = None
    kept: tuple[str, ...] = ()
    reason: str = ""


@record(frozen=True, repr=False, eq=False)
class EvaluatorDifferences(Answer):
    """A metric under several semantics.

    Attributes
    ----------
    metric : str
    base : str
        The name of the semantics that all others are compared with.
    value : float
        The metric there.
    semantics : dict of str to Choices
        Name -> semantics, the base's among them, in the order asked for.
    wholes : dict of str to Change
        Name -> what all its choices together make of the metric; not for the base.
    fields : dict of str to dict of str to Change
        Name -> field that differs -> what it alone makes of the metric, all others as in the base.
    scope : Scope
        Which labels and predictions counted, for all of them.
    """

    metric: str
    base: str
    value: float
    semantics: dict[str, Choices]
    wholes: dict[str, Change]
    fields: dict[str, dict[str, Change]]
    scope: Scope = WHOLE

    def interplay(self, name: str) -> float | None:
        """What remains of a whole difference once those of its fields alone are taken off."""
        whole = self.wholes[name].difference
        alone = [one.difference for one in self.fields[name].values() if one.difference is not None]
        return None if whole is None else math.fsum([whole, *(-one for one in alone)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, strings and numbers."""
        return {
            **stamp(),
            **plain_fields(self, "metric base value semantics scope"),
            "changes": {
                name: plain(whole)
                | {"fields": plain(self.fields[name]), "interplay": self.interplay(name)}
                for name, whole in self.wholes.items()
            },
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        wholes = told["changes"]
        fields = {name: one["fields"] for name, one in wholes.items()}
        return read_fields(cls, told | {"wholes": wholes, "fields": fields})

    def _view(self) -> View:
        return View(
            lambda: _parts(self), lambda: [_table(self)], lambda: _exact(self), self.to_dict
        )


def _parts(found: EvaluatorDifferences) -> list[Part]:
    """The table without its last column, which is long, and below it what stands there."""
    columns, rows = _table(found)
    meanings = dict.fromkeys((str(row[0]).strip(), str(row[-1])) for row in rows if row[-1])
    table = Table(columns[:-1], [row[:-1] for row in rows])
    scope = [f"scope: {found.scope}"] if found.scope != WHOLE else []
    values = {found.base: found.value, **{name: one.value for name, one in found.wholes.items()}}
    notes = {
        note: None
        for name, semantics in found.semantics.items()
        if values[name] is not None
        for note in notes_on_values({found.metric: values[name]}, [parse(found.metric)], semantics)
    }
    return [table, "", Facts(list(meanings)), _LEGEND, *scope, *notes, *_remarks(found)]


def _remarks(found: EvaluatorDifferences) -> list[str]:
    """Return what no choice expresses of the evaluators: why a value may still not be theirs."""
    others = (name for name in found.semantics if name != found.base and name in PRESETS)
    return [f"{name}: {PRESETS[name].remark}" for name in others if PRESETS[name].remark]


def _table(found: EvaluatorDifferences) -> Table:
    """A row a preset, and below each the fields that matter."""
    columns = [
        Column("counted as"),
        Column(found.metric, "value"),
        Column(f"from {found.base}", "difference"),
        Column("queries", "count"),
        Column("example"),
        Column("meaning"),
    ]
    rows: list[list[Cell]] = []
    for name in found.semantics:
        if name == found.base:
            rows.append([name, found.value, None, None, "", ""])
            continue
        whole, fields = found.wholes[name], found.fields[name]
        rows.append(_row(name + "*" * bool(whole.kept), whole, _of_whole(found, name)))
        still = [one for one in fields.values() if one.difference == 0 and not one.queries]
        for field, one in fields.items():
            if one not in still:
                text = one.reason or _meaning(field, found, name)
                rows.append(_row(f"  {field} {one.choices[field]}", one, text))
        rest = found.interplay(name)
        if rest is not None and abs(rest) > 0.5 * 10 ** -decimals_of([found.value]):
            text = "what the fields change together beyond each alone"
            rows.append(["  all at once", None, rest, None, "", text])
        if still:
            choices = (f"{f} {c}" for one in still for f, c in one.choices.items())
            rows.append(["  no effect", None, None, None, ", ".join(choices), ""])
    return Table(columns, rows)


def _row(title: str, change: Change, text: str) -> list[Cell]:
    return [title, change.value, change.difference, change.queries, _example(change), text]


def _exact(found: EvaluatorDifferences) -> Table:
    names = ["preset", "field", "choice", "value", "difference", "queries"]
    names += ["query", "before", "after", "kept", "reason"]
    changes = [(name, "", whole) for name, whole in found.wholes.items()]
    changes += [(name, *one) for name, fields in found.fields.items() for one in fields.items()]
    base: list[Cell] = [found.base, "", "", found.value, *[None] * 7]
    rows = [
        [
            *(name, field, one.choices.get(field, "")),
            *(one.value, one.difference, one.queries),
            *(one.example or [None] * 3),
            *(" ".join(one.kept), one.reason),
        ]
        for name, field, one in changes
    ]
    return Table([Column(name) for name in names], [base, *rows])


def _example(change: Change) -> str:
    if change.example is None:
        return "" if change.value is not None else "not possible on this data"
    query, *values = change.example
    before, after = ("not counted" if one is None else f"{one:.5g}" for one in values)
    return f"{query}: {before} -> {after}"


def _of_whole(comparison: EvaluatorDifferences, name: str) -> str:
    metric = parse(comparison.metric)
    whole, there = comparison.wholes[name], told_under(name, metric)
    there = there or name_there(name, metric)
    if name in PRESETS and PRESETS[name].metrics and not there:
        there = f"it has no {metric.text} as defined here; counted under its rules"
    if whole.kept:
        kept = f"* with {', '.join(whole.kept)} as in {comparison.base}"
        return f"{there}; {kept}" if there else kept
    return whole.reason or there


def _meaning(field: str, comparison: EvaluatorDifferences, name: str) -> str:
    choice, instead = (
        CHOICES[field][getattr(comparison.semantics[one], field)] for one in (name, comparison.base)
    )
    return f"{choice}; {comparison.base}: {instead}"


# ------------------------------------------------------------------ the steps

Side = TypeVar("Side", Labels, Predictions)

# The fields that only these metrics depend on; all other fields matter to every metric.
ONLY_FOR = {
    field: tuple(one.name for one in REGISTRY.values() if field in one.fields)
    for spec in REGISTRY.values()
    for field in spec.fields
}


class _Scored(NamedTuple):
    """A metric's value, its values by query (NaN: does not count; None for gap), and their ids."""

    value: float
    values: np.ndarray | None
    query: Callable[[int], int | str]


@told_shortly
@reading_again
def explain_evaluators(
    labels: LabelsLike,
    predictions: PredictionsLike,
    metric: str,
    presets: str | Iterable[str] | Mapping[str, Any] | None = None,
    *,
    semantics: Counting = "default",
    threads: int | None = None,
    memory: int = MEMORY,
    progress: Progress | bool | None = None,
) -> EvaluatorDifferences:
    """Score predictions as several evaluators do, and find which choices make the difference.

    The base is the first preset that has a value on this data. Every other preset is compared with
    the base: each field in which it differs is changed alone, and all other fields stay as in the
    base. The labels are read once, or once for each rule for repeated labels. The predictions are
    scored once for each distinct semantics.

    A choice may be impossible on this data, such as "error" if there are repeats. Then the value of
    the preset is computed with the field of the base, and `Change.kept` names the field.

    Parameters
    ----------
    labels, predictions
        As for `evaluate`.
    metric : str
        Such as "map@12".
    presets : str, iterable of str, or mapping, optional
        Names of presets, or a mapping from your own names to semantics, as `evaluate` takes them. A
        single one is compared with the default. If not given, the default and all presets that
        have the metric are compared.
    semantics : Semantics, optional
        What applies to all evaluators: its `rel`, `depth`, `judged_only` and `gain_function`. The
        presets make the choices.
    threads, memory
        As for `evaluate`.
    progress : bool or callable, optional
        As for `evaluate`, over all evaluations.

    Returns
    -------
    EvaluatorDifferences

    Raises
    ------
    InputError
        If no preset has a value, for example because a file is missing.
    UsageError
        If the metric or a preset does not exist.

    Examples
    --------
    >>> import rankmill
    >>> labels = rankmill.arrays.Ragged.from_lists([[1], [2, 3], [4]])
    >>> predictions = rankmill.arrays.Ragged.from_lists([[1, 1], [9, 2], []])
    >>> found = rankmill.explain_evaluators(labels, predictions, "map@3", ["default", "spark"])
    >>> found.value, found.wholes["spark"].value
    (0.4166666666666667, 1.125)
    >>> found.fields["spark"]["repeated_predictions"].example
    Example(query=0, before=1.0, after=2.0)
    """
    parse(metric)  # one metric, not several
    of_labels, of_predictions = Labels.of(labels), Predictions.of(predictions)
    scope = Semantics.of(semantics)
    job = parse_job([metric], of_labels, scope, memory=memory)
    (asked,) = job.metrics
    given = _named(presets, asked)
    named = {name: _as_seen_by(asked, choices) for name, choices in given.items()}
    steps = _steps(progress_of(progress), named)
    with ExitStack() as opened:
        # What can be read only once is kept here, because every semantics opens its inputs anew.
        of_labels = _reopenable(of_labels, job.memory, opened)
        of_predictions = _reopenable(of_predictions, job.memory, opened)
        score = _scorer(of_labels, of_predictions, job, scope, threads, steps)
        base, first = _first_scored(named, score)
        wholes, fields = _changes(named, base, first, score)
    return EvaluatorDifferences(asked.text, base, first.value, given, wholes, fields, job.scope)


def _reopenable(one: Side, memory: int, opened: ExitStack) -> Side:
    """Return an input with an opened source for several readers; `opened` closes it."""
    check_told(one)
    if isinstance(one.data, Ragged):  # its numbers stand beside it
        return one
    source = reusable(open_source(one.data, one.asked()), memory)
    opened.callback(source.close)
    return replace(one, data=source.shared())


def _changes(
    named: Mapping[str, Choices],
    base: str,
    first: _Scored,
    score: Callable[[Choices], _Scored],
) -> tuple[dict[str, Change], dict[str, dict[str, Change]]]:
    """Return what each preset changes as a whole, and each of its fields alone."""

    @cache
    def change_to(semantics: Choices) -> Change:
        try:
            return _change(first, first if semantics == named[base] else score(semantics))
        except RankmillError as error:
            return Change({}, reason=_short(error))

    wholes: dict[str, Change] = {}
    fields: dict[str, dict[str, Change]] = {}
    for name, semantics in named.items():
        if name == base:
            continue
        choices = semantics.differences(named[base])
        fields[name] = {
            field: replace(change_to(replace(named[base], **one)), choices=one)
            for field, one in ((field, {field: choice}) for field, choice in choices.items())
        }
        impossible = [field for field, one in fields[name].items() if one.value is None]
        whole = change_to(semantics)
        if whole.value is None and impossible:
            kept = {field: getattr(named[base], field) for field in impossible}
            nearest = change_to(replace(semantics, **kept))
            if nearest.value is not None:
                whole = replace(nearest, kept=tuple(kept), reason=whole.reason)
        wholes[name] = replace(whole, choices=choices)
    return wholes, fields


def _named(presets: Any, metric: Metric) -> dict[str, Choices]:
    """Return the semantics to compare, by name."""
    if isinstance(presets, Mapping):
        named = {str(name): Semantics.of(one).choices for name, one in presets.items()}
    elif presets is None:
        having = [
            name for name in PRESETS if name_there(name, metric) and not told_under(name, metric)
        ]
        named = {name: preset(name).semantics for name in ("default", *having)}
    else:
        if not isinstance(presets, Iterable):
            raise UsageError(
                f"presets is {presets!r}; expected names of presets, or a mapping of names to "
                "semantics"
            )
        names = [presets] if isinstance(presets, str) else list(presets)
        named = {name: preset(name).semantics for name in names}
    if not named:
        raise UsageError("there is no preset to compare: name one, or leave presets out")
    return {"default": DEFAULT, **named} if len(named) == 1 else named


def _as_seen_by(metric: Metric, semantics: Choices) -> Choices:
    """Return the semantics with the default in all fields that the metric does not depend on."""
    unseen = [field for field, names in ONLY_FOR.items() if metric.name not in names]
    return replace(semantics, **{field: getattr(DEFAULT, field) for field in unseen})


def _scorer(
    labels: Labels,
    predictions: Predictions,
    asked: Job,
    scope: Semantics,
    threads: int | None,
    steps: Callable[[], Progress | None],
) -> Callable[[Choices], _Scored]:
    """Return a function that scores under given semantics; it shares the labels between calls."""
    (metric,) = asked.metrics
    held: list[HeldLabels] = []

    def score(choices: Choices) -> _Scored:
        job = parse_job([metric.text], labels, scope.under(choices), memory=asked.memory)
        with (
            open_job(job, labels, {"": predictions}) as (label_input, inputs),
            Workers(threads) as workers,
        ):
            if not held:
                held.append(HeldLabels(label_input))
            with closing(run(job, held[0], inputs, workers, steps())) as tallies:
                tally = next(tallies)
            result = finish(tally, label_input, inputs[""], workers, 0.0)
        check_values({"": result})
        value = result.metrics[metric.text]
        assert value is not None
        values = _by_query(tally, metric) if metric.spec.kernel else None
        return _Scored(value, values, partial(_query, tally))

    return score


def _first_scored(
    named: Mapping[str, Choices], score: Callable[[Choices], _Scored]
) -> tuple[str, _Scored]:
    """Return the first that has a value. Raises the first error if none has a value."""
    (first, semantics), *others = named.items()
    try:
        return first, score(semantics)
    except RankmillError:
        for name, other in others:
            with suppress(RankmillError):
                return name, score(other)
        raise


def _by_query(tally: Tally, metric: Metric) -> np.ndarray:
    """Return the value of each query of the labels, then of each query only in predictions."""
    counted = tally.counted
    all_values = tally.values[metric.text]
    if counted.no_relevant is not None:
        all_values = np.where(tally.has_labels, all_values, counted.no_relevant)
    values = np.where(counted.among_labels, all_values, math.nan)
    of_strangers = counted.unlabelled if counted.strangers else math.nan
    return np.append(values, np.full(tally.counts["unlabelled"], of_strangers))


def _query(tally: Tally, place: int) -> int | str:
    known = len(tally.has_labels)
    if place < known:
        return id_value(tally.index.queries, place)
    return id_value(tally.strangers(), place - known)


def _change(first: _Scored, other: _Scored) -> Change:
    difference = other.value - first.value
    if first.values is None or other.values is None:
        return Change({}, other.value, difference)
    before, after = first.values, other.values
    touched = (before != after) & ~(np.isnan(before) & np.isnan(after))
    example = None
    if touched.any():
        sizes = np.abs(np.nan_to_num(after) - np.nan_to_num(before))
        place = int(np.where(touched, sizes, -1).argmax())
        values = (None if math.isnan(one[place]) else float(one[place]) for one in (before, after))
        example = Example(first.query(place), *values)
    return Change({}, other.value, difference, int(touched.sum()), example)


def _short(error: RankmillError) -> str:
    """Return what a message says was found, without the file before it and the advice after it."""
    parts = str(error).split(": ")
    return ": ".join(parts[1:-1] if len(parts) > 2 else parts[:1])


def _steps(
    progress: Progress | None, named: Mapping[str, Choices]
) -> Callable[[], Progress | None]:
    """Return a function that makes the progress of the next of all evaluations."""
    base, *others = named.values()
    alone = [
        replace(base, **{field: choice})
        for one in others
        for field, choice in one.differences(base).items()
    ]
    expected = len({base, *others, *alone})
    started = itertools.count()

    def step() -> Progress | None:
        before = next(started)

        def report(done: int, rows: int | None) -> None:
            if progress is not None and rows is not None:
                progress(before * rows + done, max(expected, before + 1) * rows)

        return report

    return step
