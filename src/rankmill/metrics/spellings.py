"""How metrics are spelled: parameters, summaries, and all names by which a result knows them."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from rankmill.errors import UsageError
from rankmill.metrics.base import GAIN, JUDGED_ONLY, REL, Metric, MetricSpec
from rankmill.metrics.libraries import parameter_elsewhere
from rankmill.semantics.metric_names import canonical, number_text

# What the values of a metric come to, other than their mean.
SUMMARIES = {
    "mean": "the arithmetic mean, as without a summary",
    "gm": "the geometric mean, with values below 0.00001 as 0.00001, as trec_eval's gm_map has it",
    "median": "the middle value, or the mean of both",
    "p10": "a percentile from p0 to p100, between two values on the line through them",
    "sum": "the sum",
    "micro": "the micro-average, such as all hits over all labels: what queries count, over what "
    "that is divided by, both summed first (Manning, Raghavan and Schütze, 2008, chapter 13)",
    "above=0.5": "the share of queries with a value above a number",
}

# Names of trec_eval and ir_measures that are a metric with another summary than the mean.
SUMMARISED = {
    **dict.fromkeys(("gm_map", "gmap"), ("map", "gm", "geometric mean")),
    "gm_bpref": ("bpref", "gm", "geometric mean"),
    "gauc": ("gauc", "micro", "micro-average"),
    "numret": ("num_ret", "sum", "sum"),
    "numrel": ("num_rel", "sum", "sum"),
    "numrelret": ("num_rel_ret", "sum", "sum"),
}

# What ir_measures calls the gains of its dcg.
_DISCOUNTS = {"log2": "linear", "exp-log2": "exp"}


def read_parameters(
    spec: MetricSpec, inner: str | None, text: str, rel: float | None
) -> tuple[tuple[str, float], ...]:
    """The parameters in parentheses, in the order in which the metric declares them."""
    known = {one.name: one for one in (*spec.parameters, *spec.options)}
    there = "; ".join(f"{one.name}, {one.expected}: {one.meaning}" for one in spec.parameters)
    there = f"{spec.name} has {there}" if there else f"{spec.name} has none"
    given: dict[str, float] = {}
    for pair in inner.split(",") if inner is not None else []:
        name, equals, value = (part.strip() for part in pair.partition("="))
        name = name.lower()
        if name == JUDGED_ONLY.name and name in known and not equals:
            equals, value = "=", "true"
        if name == "dcg" and GAIN.name in known and (of := _DISCOUNTS.get(value.strip("'\""))):
            if of == "linear":
                continue
            name, value = GAIN.name, of
        if not equals or name not in known:
            if typed := parameter_elsewhere(text, name, value):
                raise UsageError(f"{text!r} has {name}, which is not a parameter here: {typed}")
            first = next(iter(spec.parameters), None)
            example = f", such as {first.name}=..." if first and not equals else ""
            raise UsageError(
                f"{text!r} has {pair.strip()!r}, which is not a parameter{example}: {there}"
            )
        if name in given:
            raise UsageError(f"{text!r} gives {name} twice: leave out one")
        given[name] = known[name].read(value, text)
    if rel is not None:
        given.setdefault(REL.name, rel)
    return tuple((name, given[name]) for name in known if name in given)


def given_text(spec: MetricSpec, given: Iterable[tuple[str, float]]) -> str:
    """The text of parameters, without parentheses."""
    known = {one.name: one for one in (*spec.parameters, *spec.options)}
    return ",".join(
        name if name == JUDGED_ONLY.name else f"{name}={known[name].written(value)}"
        for name, value in given
    )


def read_summary(text: str, metric: str) -> str:
    """Return a summary in canonical form, "" for the mean; `metric` is the name it stands in.

    UsageError if there is no such summary.

    Examples
    --------
    >>> read_summary("Above=.50", "map:above=.50"), read_summary("mean", "map:mean")
    ('above=0.5', '')
    """
    name = text.strip().lower()
    if name in ("gm", "median", "sum"):
        return name
    if name in ("micro", "pooled"):
        return "micro"
    if name == "mean":
        return ""
    found = re.fullmatch(r"(p|above=)([0-9]{1,9}(?:[.][0-9]{1,9})?|[.][0-9]{1,9})", name)
    if found and (found[1] != "p" or float(found[2]) <= 100):
        return found[1] + number_text(float(found[2]))
    if name == "baseline":
        raise UsageError(
            f"{metric!r} compares the lists of two systems: use compare, on one machine"
        )
    there = "; ".join(f"{one}, {what}" for one, what in SUMMARIES.items())
    raise UsageError(f"{metric!r} has no summary {text!r}: there are {there}")


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
