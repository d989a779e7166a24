"""What a comparison of semantics found, and how it reads as text."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from rankmill.metrics.registry import Metric, parse
from rankmill.results.tables import aligned_numbers, html_table, plain_lines, plain_table
from rankmill.semantics.choices import CHOICES, Semantics
from rankmill.semantics.presets import PRESETS

# The columns of `difference_cells` that hold text.
TEXTS = (0, 4, 5)
LEGEND = "(R labels and n predictions of a query, k the cutoff)"


class Example(NamedTuple):
    """A query, and its value in the base and with a change; None where it does not count."""

    query: int | str
    before: float | None
    after: float | None


@dataclass(frozen=True)
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
        gap, which has no value a query.
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

    def to_dict(self) -> dict[str, Any]:
        """All attributes as dicts, lists, strings and numbers."""
        example = None if self.example is None else self.example._asdict()
        return {**vars(self), "example": example, "kept": list(self.kept)}


@dataclass(frozen=True, repr=False)
class Differences:
    """A metric under several semantics.

    Attributes
    ----------
    metric : str
    base : str
        The name of the semantics that all others are compared with.
    value : float
        The metric there.
    semantics : dict of str to Semantics
        Name -> semantics, the base's among them, in the order asked for.
    wholes : dict of str to Change
        Name -> what all its choices together make of the metric; not for the base.
    fields : dict of str to dict of str to Change
        Name -> field that differs -> what it alone makes of the metric, all others as in the base.
    """

    metric: str
    base: str
    value: float
    semantics: dict[str, Semantics]
    wholes: dict[str, Change]
    fields: dict[str, dict[str, Change]]

    def interplay(self, name: str) -> float | None:
        """What remains of a whole difference once those of its fields alone are taken off."""
        whole = self.wholes[name].difference
        alone = [one.difference for one in self.fields[name].values() if one.difference is not None]
        return None if whole is None else math.fsum([whole, *(-one for one in alone)])

    def to_dict(self) -> dict[str, Any]:
        """Everything as dicts, strings and numbers."""
        from rankmill.version import __version__

        return {
            "rankmill": __version__,
            "metric": self.metric,
            "base": self.base,
            "value": self.value,
            "semantics": {name: one.to_dict() for name, one in self.semantics.items()},
            "changes": {
                name: whole.to_dict()
                | {
                    "fields": {field: one.to_dict() for field, one in self.fields[name].items()},
                    "interplay": self.interplay(name),
                }
                for name, whole in self.wholes.items()
            },
        }

    def __repr__(self) -> str:
        header, rows = difference_cells(self)
        table = plain_table(header[:-1], [row[:-1] for row in rows], left=TEXTS)
        return "\n".join([table, "", *plain_lines(notes(rows)), LEGEND])

    def _repr_html_(self) -> str:
        return html_table(*difference_cells(self), left=TEXTS)


def difference_cells(comparison: Differences) -> tuple[list[str], list[list[str]]]:
    """The header and the rows of a comparison as text; below each preset the fields that matter."""
    metric = parse(comparison.metric)
    (value,) = aligned_numbers([comparison.value], 6)
    decimals = len(value.partition(".")[2]) if "e" not in value else 6

    def signed(difference: float | None) -> str:
        if difference is None:
            return ""
        shown = f"{difference:+.{decimals}f}"
        return f"{difference:+.1e}" if difference and float(shown) == 0 else shown

    def row(title: str, change: Change, text: str) -> list[str]:
        number = "" if change.value is None else f"{change.value:.{decimals}f}"
        queries = "" if change.queries is None else f"{change.queries:,}"
        return [title, number, signed(change.difference), queries, _example(change), text]

    rows = []
    for name in comparison.semantics:
        if name == comparison.base:
            rows.append([name, value, "", "", "", ""])
            continue
        whole, fields = comparison.wholes[name], comparison.fields[name]
        rows.append(row(name + "*" * bool(whole.kept), whole, _of_whole(comparison, name, metric)))
        still = [one for one in fields.values() if one.difference == 0 and not one.queries]
        for field, one in fields.items():
            if one not in still:
                text = one.reason or _meaning(field, comparison, name)
                rows.append(row(f"  {field} {one.choices[field]}", one, text))
        rest = comparison.interplay(name)
        if rest is not None and abs(rest) > 0.5 * 10**-decimals:
            text = "what the fields change together beyond each alone"
            rows.append(["  all at once", "", signed(rest), "", "", text])
        if still:
            choices = (f"{f} {c}" for one in still for f, c in one.choices.items())
            rows.append(["  no effect", "", "", "", ", ".join(choices), ""])
    return ["counted as", comparison.metric, f"from {comparison.base}", *_TITLES], rows


_TITLES = ("queries", "example", "meaning")


def notes(rows: list[list[str]]) -> list[tuple[str, str]]:
    """What stands in the last column of `difference_cells`, each once, with what it is about."""
    return list(dict.fromkeys((row[0].strip(), row[-1]) for row in rows if row[-1]))


def _example(change: Change) -> str:
    if change.example is None:
        return "" if change.value is not None else "not possible on this data"
    query, *values = change.example
    before, after = ("not counted" if one is None else f"{one:.5g}" for one in values)
    return f"{query}: {before} -> {after}"


def _of_whole(comparison: Differences, name: str, metric: Metric) -> str:
    whole, there = comparison.wholes[name], name_there(name, metric)
    if name in PRESETS and PRESETS[name].metrics and not there:
        there = f"there is no {metric.text} there"
    if whole.kept:
        kept = f"* with {', '.join(whole.kept)} as in {comparison.base}"
        return f"{there}; {kept}" if there else kept
    return whole.reason or there


def _meaning(field: str, comparison: Differences, name: str) -> str:
    choice, instead = (
        CHOICES[field][getattr(comparison.semantics[one], field)] for one in (name, comparison.base)
    )
    return f"{choice}; {comparison.base}: {instead}"


def name_there(name: str, metric: Metric) -> str:
    """What a metric is called by whom a preset is of, "" if it is not there."""
    metrics = PRESETS[name].metrics if name in PRESETS else {}
    suffix = "" if metric.k is None else "@k"
    return metrics.get(f"{metric.name}@{metric.k}") or metrics.get(metric.name + suffix, "")
