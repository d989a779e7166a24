"""What metrics are called in the evaluators that presets are of, and which of them they lack."""

import re
from collections.abc import Iterable

from rankmill.metrics.base import Metric
from rankmill.metrics.libraries import table
from rankmill.metrics.registry import REGISTRY, parse_all
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.semantics.presets import PRESETS

# The libraries of the table of names. Those with a preset have the metrics of the preset, whose
# values are equal, and those below, which they define alike.
LIBRARIES = (
    *("trec_eval", "trec_eval-10", "ir_measures", "ranx", "rectools", "replay", "sklearn"),
    *("torchmetrics", "recommenders"),
)
_CUT = re.compile(r"[@(]k\b")


def names_elsewhere() -> dict[str, dict[str, str]]:
    """Metric -> library -> what the library calls it; "" where it has no such metric.

    Metrics that no library has are left out.
    """
    found = {}
    for name in REGISTRY:
        there = {library: ", ".join(_names_of(library, name)) for library in LIBRARIES}
        if any(there.values()):
            found[name] = there
    return found


def exported_names(asked: Iterable[str], refused: bool) -> list[list[str]]:
    """The names that each library exports for some metrics: library, names, and what to type here.

    Those that are not computed come too if `refused` ones are asked for, with why at the end.
    """
    some = set(asked)
    rows: dict[tuple[str, str, str], list[str]] = {}
    computed, why_not = table("computed"), table("refused")
    for library in {**computed, **why_not}:
        for there, here in computed.get(library, {}).items():
            if parse_all(here.partition(";")[0])[0].name in some:
                rows.setdefault((library, here.replace(";", " with"), ""), []).append(there)
        for there, why in why_not.get(library, {}).items() if refused else ():
            rows.setdefault((library, "", why), []).append(there)
    return [[library, ", ".join(names), *told] for (library, *told), names in rows.items()]


def _names_of(library: str, name: str) -> list[str]:
    of_preset = PRESETS[library].metrics if library in PRESETS else {}
    names = [there for metric, there in of_preset.items() if metric.partition("@")[0] == name]
    more = table("named").get(library, {}).get(name)
    return [*names, *([more] if more else [])]


def name_there(name: str, metric: Metric) -> str:
    """What a metric is called by whom a preset is of, "" if it is not there."""
    metrics = PRESETS[name].metrics if name in PRESETS else {}
    suffix = "@x" if metric.spec.at else "" if metric.k is None else "@k"
    there = metrics.get(f"{metric.name}@{metric.k}") or metrics.get(metric.name + suffix)
    if there or name not in PRESETS:
        return there or ""
    more = re.split(r", (?![^()]*\))", table("named").get(name, {}).get(metric.name, ""))
    return next((one for one in more if bool(_CUT.search(one)) == (metric.k is not None)), "")


def notes_on(metrics: Iterable[Metric], semantics: Choices) -> list[str]:
    """Return a note that names the metrics that the evaluator with these semantics does not have.

    There is none for the default: several presets have its semantics, and it is no other evaluator.
    """
    if semantics == DEFAULT:
        return []
    asked = list(metrics)
    notes = []
    for name, one in PRESETS.items():
        if one.semantics == semantics:
            missing = [metric.text for metric in asked if not name_there(name, metric)]
            if missing:
                # Nobody may have named it: one choice is enough to be that of a preset.
                lack = f"which has no {', '.join(missing)} as defined here"
                notes.append(f"the semantics are those of {name}, {lack}")
    return notes
