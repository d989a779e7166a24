"""What metrics are called in the evaluators that presets are of, and which of them they lack."""

from collections.abc import Iterable

from rankmill.metrics.base import Metric
from rankmill.semantics.choices import DEFAULT, Semantics
from rankmill.semantics.presets import PRESETS


def name_there(name: str, metric: Metric) -> str:
    """What a metric is called by whom a preset is of, "" if it is not there."""
    metrics = PRESETS[name].metrics if name in PRESETS else {}
    suffix = "" if metric.k is None else "@k"
    return metrics.get(f"{metric.name}@{metric.k}") or metrics.get(metric.name + suffix, "")


def notes_on(metrics: Iterable[Metric], semantics: Semantics) -> list[str]:
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
                notes.append(
                    f"{name} has no {', '.join(missing)} as defined here; counted under its rules"
                )
    return notes
