"""The parameters in the name of a metric, such as "(rel=2,judged_only)"."""

from collections.abc import Iterable

from rankmill.errors import UsageError
from rankmill.metrics.base import GAIN, JUDGED_ONLY, REL, MetricSpec
from rankmill.metrics.refusals import parameter_elsewhere

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
