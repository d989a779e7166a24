"""All names by which a result knows its metrics."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from rankmill.metrics.base import REL, Metric
from rankmill.metrics.name_parameters import given_text
from rankmill.metrics.summary import SUMMARISED
from rankmill.semantics.metric_names import canonical, number_text


def spellings(metrics: Iterable[Metric], rel: float | None = None) -> dict[str, str]:
    """All names of metrics that were asked for, in canonical form, each with that asked for.

    Where two names of one metric were asked for, the first is given for all others. A name without
    ``rel`` is of the metric with `rel`, as for `parse`.
    """
    return {**_spellings(tuple(metrics), rel)}


@lru_cache(1 << 6)
def _spellings(metrics: tuple[Metric, ...], rel: float | None) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for metric in metrics:
        found.setdefault(canonical(metric.text), metric.text)
        at = "" if metric.cut is None else f"@{number_text(metric.cut)}"
        behind = f":{metric.summary}" if metric.summary else ""
        ends = dict.fromkeys((metric.spec.name, *metric.spec.aliases), behind)
        of = (metric.spec.name, metric.summary)
        ends |= {name: "" for name, known in SUMMARISED.items() if known[:2] == of}
        for inner in _spelled_parameters(metric, rel):
            for name, end in ends.items():
                found.setdefault(canonical(f"{name}{inner}{at}{end}"), metric.text)
            if (cut := metric.cut) is None:
                continue
            for name in metric.spec.cut_names:
                found.setdefault(
                    canonical(f"{name}_{number_text(cut)}{inner}{behind}"), metric.text
                )
                if metric.spec.at:  # trec_eval has two digits
                    found.setdefault(canonical(f"{name}_{cut:.2f}{inner}{behind}"), metric.text)
    return found


def _spelled_parameters(metric: Metric, rel: float | None) -> set[str]:
    """The parameters as given, all of them, and those that are not as by default."""
    defaults = {one.name: one.default for one in metric.spec.parameters} | {REL.name: rel}
    at = metric.spec.at.name if metric.spec.at else ""
    given, every = (
        [pair for pair in pairs if pair[0] != at] for pairs in (metric.given, metric.values.items())
    )
    needed = [(name, value) for name, value in every if value != defaults.get(name)]
    return {f"({given_text(metric.spec, one)})" if one else "" for one in (given, every, needed)}
