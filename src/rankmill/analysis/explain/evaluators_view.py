"""What a comparison of semantics found, and how it reads as text."""

import math
from typing import Any, NamedTuple, Self

from rankmill.metrics.elsewhere import name_there
from rankmill.metrics.libraries import told_under
from rankmill.metrics.no_value import notes_on_values
from rankmill.metrics.registry import parse
from rankmill.package import stamp
from rankmill.records import record
from rankmill.results.answer import Answer, plain, plain_fields, read_fields
from rankmill.semantics.choices import CHOICES, WHOLE, Choices, Scope
from rankmill.semantics.presets import PRESETS
from rankmill.show.tables import Cell, Column, Facts, Part, Table, View, decimals_of

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
