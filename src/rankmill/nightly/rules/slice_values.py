"""The slices of a run: a night records them, and they are a baseline of rules for slices later."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.engine.segments import natural
from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import Mean
from rankmill.nightly.rules.rules import Rule
from rankmill.nightly.runs.folder import Folder
from rankmill.nightly.runs.runs import RecordedMetric, Run, SliceKey
from rankmill.results.slices import UNKNOWN
from rankmill.semantics.metric_names import canonical

Value = tuple[str | None, ...]


class SliceValue(NamedTuple):
    """A metric of a system in a slice, as a row of the history has it."""

    by: str
    slice: str
    metric: str
    value: float | None
    standard_error: float | None
    queries: int
    effective_queries: float | None = None


def slice_values(state: ComparisonState, system: str, rules: Iterable[Rule]) -> list[SliceValue]:
    """Return a system in all slices of one name, and in those of two names that a rule is for."""
    asked = {frozenset(name for name, _ in one.slices) for one in rules}
    found = []
    for by, of_way in state.slices.items():
        if len(by) > 1 and frozenset(by) not in asked:
            continue
        for value in sorted(of_way, key=lambda value: tuple(map(natural, value))):
            for metric, of in of_way[value].columns.items():
                mean = of[system].mean
                n: tuple[Any, ...] = (
                    (mean.count,) if isinstance(mean, Mean) else (mean.positive, mean.effective)
                )
                place = *named(by, value), metric
                found.append(SliceValue(*place, mean.mean, mean.standard_error, *n))
    return found


def slices_before(
    folder: Folder, runs: Mapping[str, Run], rules: Iterable[tuple[Rule, str]]
) -> dict[SliceKey, RecordedMetric]:
    """Return the slices of earlier runs that rules compare with; only their rows are read.

    Parameters
    ----------
    folder
    runs
        Metric -> the run that is its baseline.
    rules
        Those for a drop in slices, each with the name of its metric.

    Raises
    ------
    InputError
        If a run has none of the slices, so that nothing would break the rule.
    """
    found: dict[SliceKey, RecordedMetric] = {}
    for rule, metric in rules:
        rows = {
            (by, value, metric): one
            for (by, value, name), one in folder.slices_of(runs[metric]).items()
            if canonical(name) == canonical(metric)
        }
        names = [name for name, _ in rule.slices]
        cuts = {", ".join(names), ", ".join(reversed(names))}
        if not any(by in cuts for by, _, _ in rows):
            by = " and ".join(names)
            asked = "".join(f" --by {name!r}" for name in names)
            raise InputError(
                f"the run {runs[metric].id} of the history {folder.name} has no {metric} by {by}, "
                f"which a rule needs: {rule.text!r}: record a night with these slices: --rule "
                f"'queries > 0' --metric {metric!r}{asked} on the command line, gate(labels, "
                f"predictions, 'queries > 0', metrics={metric!r}, by={names}) in Python"
            )
        found |= rows
    return found


def slice_before(
    found: Mapping[SliceKey, RecordedMetric], by: tuple[str, ...], value: Value, metric: str
) -> RecordedMetric | None:
    """Return an earlier value of a slice, which may have been cut in the other order."""
    either = (named(by, value), named(by[::-1], value[::-1]))
    known = (found.get((*names, metric)) for names in either)
    return next((one for one in known if one is not None), None)


def slices_lost(
    found: Mapping[SliceKey, RecordedMetric], rule: Rule, metric: str, there: set[tuple[str, str]]
) -> Iterator[tuple[tuple[str, ...], Value, RecordedMetric]]:
    """Yield the slices of an earlier run that a rule is for, and that are not `there` any more.

    Two values of which one has a comma are not told apart, and are passed over.
    """
    names = tuple(name for name, _ in rule.slices)
    for (by, text, name), one in found.items():
        way = next((each for each in (names, names[::-1]) if ", ".join(each) == by), None)
        if way is None or name != metric or not one.queries:
            continue
        texts = (text,) if len(way) == 1 else tuple(text.split(", "))
        if (
            len(texts) == len(way)
            and not {named(way, texts), named(way[::-1], texts[::-1])} & there
        ):
            yield way, tuple(None if each == UNKNOWN else each for each in texts), one


def named(by: tuple[str, ...], value: Value) -> tuple[str, str]:
    """Return what cuts and the slice as the columns of a row have them."""
    return ", ".join(by), ", ".join(UNKNOWN if one is None else one for one in value)
