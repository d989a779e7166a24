"""The metrics: the rows of all families, and the parser of names such as "map(rel=2)@12"."""

import difflib
import math
import re
from collections.abc import Iterable
from dataclasses import replace

from rankmill.errors import UsageError
from rankmill.metrics import libraries
from rankmill.metrics.base import MICRO, Better, Metric, MetricSpec, Parameter
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.families import (
    browsing_models,
    catalogue_metrics,
    confidence,
    diversity,
    gain,
    judgements,
    overlap,
    precision,
    ranks,
    wholelist,
)
from rankmill.metrics.packages import load_packages
from rankmill.metrics.texts import (
    DEFINED,
    LISTED,
    SETS,
    SUMMARISED,
    given_text,
    pieces_of,
    place_of,
    read_parameters,
    read_summary,
    split_names,
    without_cutoff,
)
from rankmill.semantics.choices import DEFAULT, Choices
from rankmill.semantics.metric_names import number_text
from rankmill.semantics.presets import PRESETS, preset_named

REGISTRY: dict[str, MetricSpec] = {}
NAMES: dict[str, MetricSpec] = {}
_BY_NAME: dict[str, MetricSpec] = {}
_BY_CUT_NAME: dict[str, MetricSpec] = {}
_registered = 0

# A name with its parameters and cutoff, and what stands behind a colon.
_WHOLE = re.compile(r"((?:[^:(]|\([^()]*\)?)*)(?::(.*))?", re.DOTALL)
_SHAPE = re.compile(r"\s*([^\s@(),]*)\s*(?:\(([^()]*)\)\s*)?(?:@(.*))?", re.DOTALL)


def register(spec: MetricSpec) -> None:
    """Add a metric: the only way in, for the families here and for metrics of somebody's own.

    UsageError if there is another metric of its name.
    """
    same = REGISTRY.get(spec.name)  # a function that was changed and run again, as in a notebook
    if spec.home and not (same and same.home == spec.home):
        small = spec.name.lower()
        there = _BY_NAME.get(small) or _BY_CUT_NAME.get(small.rpartition("_")[0])
        if there or small in (*SETS, *SUMMARISED, *libraries.refused_anywhere(), *_BY_CUT_NAME):
            whose = f", of {there.source}" if there and there.home else ""
            raise UsageError(
                f"a metric named {spec.name!r} already exists{whose}: choose another name"
            )
    global _registered
    _registered += 1
    REGISTRY[spec.name] = spec
    NAMES.update(dict.fromkeys((spec.name, *spec.aliases), spec))
    _BY_NAME.update({name.lower(): spec for name in (spec.name, *spec.aliases)})
    _BY_CUT_NAME.update({name.lower(): spec for name in spec.cut_names})


def registered() -> int:
    """How often a metric was registered: names that were parsed before may mean another one since.

    A function that was changed and run again is registered a second time.
    """
    return _registered


def own_metrics() -> list[MetricSpec]:
    """The metrics that are somebody's own."""
    return [spec for spec in REGISTRY.values() if spec.home]


for _family in (
    *(precision, ranks, wholelist, gain, browsing_models, overlap, judgements, confidence),
    *(diversity, catalogue_metrics),
):
    for _spec in _family.METRICS:
        register(_spec)


def parse(text: str, rel: float | None = None) -> Metric:
    """The metric that a name such as "map(rel=2)@12" asks for, in any case.

    The text of the metric is what was asked for, its parameters in canonical form. `rel` is given
    to a metric that takes it and has none in its name; the text then includes it.

    Raises
    ------
    UsageError
        If there is no such metric (the message has the nearest), the cutoff is missing, not
        allowed, or not a positive integer, or a parameter is not as declared.

    Examples
    --------
    >>> from rankmill.metrics import parse
    >>> parse("mrr@5")
    Metric(k=5, text='mrr@5', given=())
    >>> parse("RBP( p=.80 )@10").text
    'RBP(p=0.8)@10'
    >>> parse("map@12", rel=2).text
    'map(rel=2)@12'
    >>> parse("map@12:p10").summary
    'p10'
    """
    if len(pieces_of(text)) > 1:
        raise UsageError(f"{text!r} names several metrics; expected one")
    return _read(text, rel)


def _read(text: str, rel: float | None) -> Metric:
    """The metric that one name asks for; an error tells the file and the line that it is from."""
    if not isinstance(text, str):
        raise UsageError(f"a metric is {text!r}; expected a name such as 'map@12'")
    if "[" in text:
        raise UsageError(
            f"{text!r} is a metric of a slice, which rules, sums and a history take: here, ask for "
            f"{text.partition('[')[0]!r}, and for the slices with --by"
        )
    try:
        return _parse_summarised(text, rel)
    except UsageError as error:
        if place := place_of(text):
            raise UsageError(f"{place}{error}") from None
        raise


def _parse_summarised(text: str, rel: float | None) -> Metric:
    text, behind = _WHOLE.fullmatch(text).groups()  # type: ignore[union-attr]
    metric = _parse(text, rel)
    summary = "" if behind is None else read_summary(behind, f"{text}:{behind}")
    if summarised := SUMMARISED.get(_name_in(text).lower()):
        if behind is not None:
            raise UsageError(f"{text} is a {summarised[2]} already: leave out :{behind}")
        return replace(metric, summary=summarised[1])
    if not summary:
        return metric
    if not metric.spec.kernel:
        raise UsageError(f"{metric.text} has no value for each query: leave out :{behind}")
    if summary == MICRO and (metric.spec.divisor is None or metric.spec.counts_empty):
        why = "a list without predictions has a value of its own in it"
        why = "it is divided by nothing" if metric.spec.divisor is None else why
        raise UsageError(
            f"{metric.text} has no :{behind}, as {why}: take a metric such as recall or precision, "
            "or another summary"
        )
    return replace(metric, text=f"{metric.text}:{summary}", summary=summary)


def _parse(text: str, rel: float | None) -> Metric:
    """The metric without a summary."""
    found = _SHAPE.fullmatch(text)
    if not found and ("(" in text or ")" in text):
        raise UsageError(f"{text!r} is not the name of a metric, such as 'map(rel=2)@12'")
    name, inner, cutoff = found.groups() if found else (text.strip(), None, None)
    spec, cut = _spec_of(name, text)
    given = read_parameters(spec, inner, text, rel)
    if name.lower() == "setf" and (square := dict(given).get("beta", 1)) != 1:
        others = [(one, math.sqrt(square) if one == "beta" else value) for one, value in given]
        raise UsageError(
            f"the beta of {text!r} is squared already in ir_measures: type "
            f"set_f({given_text(spec, others)})"
        )
    if cut is not None:
        if cutoff is not None:
            raise UsageError(f"{text!r} has two cutoffs, {cut} and {cutoff}: leave out one")
        cutoff = cut
    if spec.at is not None:
        return _parse_at(spec, spec.at, name, cutoff, given, text, cut is not None)
    if missing := [one for one in spec.wanted if one.name not in dict(given)]:
        one = missing[0]
        raise UsageError(f"{name} needs {one.name}, {one.meaning}, such as {spec.example}")
    shown = f"({given_text(spec, given)})" if given else ""
    if cutoff is None:
        if spec.cutoff == "required":
            raise UsageError(f"{name} needs a cutoff, such as {name}@10")
        return Metric(spec, None, f"{name}{shown}", given)
    if spec.cutoff == "none":
        raise UsageError(f"{name} takes no cutoff, but {text!r} was asked for: leave out @{cutoff}")
    cutoff = cutoff.strip()
    if not re.fullmatch(r"[0-9]{1,100}", cutoff) or int(cutoff) < 1:
        raise UsageError(f"the cutoff of {text!r} is {cutoff!r}; expected a positive integer")
    at = "" if cut is not None else f"@{cutoff}"
    return Metric(spec, int(cutoff), f"{name}{shown}{at}", given)


def _parse_at(
    spec: MetricSpec,
    at: Parameter,
    name: str,
    number: str | None,
    given: tuple[tuple[str, float], ...],
    text: str,
    in_name: bool,
) -> Metric:
    """The metric with its parameter `at`, which stands behind the @, in the name or among all."""
    found = dict(given)
    if number is not None:
        if at.name in found:
            raise UsageError(f"{text!r} gives {at.name} twice: leave out one")
        found[at.name] = at.read(number.strip(), text)
    if at.name not in found:
        raise UsageError(f"{name} needs {at.name}, {at.meaning}, such as {spec.name}@0.5")
    known = (*spec.parameters, *spec.options)
    ordered = tuple((one.name, found[one.name]) for one in known if one.name in found)
    others = given_text(spec, (pair for pair in ordered if pair[0] != at.name))
    behind = "" if in_name else f"@{number_text(found[at.name])}"
    return Metric(spec, None, f"{name}{f'({others})' if others else ''}{behind}", ordered)


def spec_named(text: str) -> MetricSpec:
    """The row of a name, with or without parameters and a cutoff.

    UsageError if there is no such metric; the message has the nearest.
    """
    return _spec_of(_name_in(text), text)[0]


def _name_in(text: str) -> str:
    """The name without parameters, cutoff and summary."""
    return re.split(r"[(@:]", text)[0].strip()


# The words of a name, as other tools print it: map_at_10, nDCG-10, precisionAtK, top_5_accuracy.
_WORD = re.compile(r"[0-9]+(?:[.][0-9]+)?|[A-Z]+(?![a-z])|[A-Z]?[^\W0-9A-Z_]+|[+]")


def _spec_of(name: str, text: str) -> tuple[MetricSpec, str | None]:
    """The row that a name is of, and the cutoff that stands in it, as in P_10."""
    small = name.lower()
    if spec := _BY_NAME.get(SUMMARISED.get(small, (small,))[0]):
        return spec, None
    cut_name, _, cutoff = small.rpartition("_")
    there = _BY_CUT_NAME.get(cut_name)
    if there and re.fullmatch(r"[0-9]+([.][0-9]+)?" if there.at else r"[0-9]+", cutoff):
        return there, cutoff
    load_packages()
    if spec := _BY_NAME.get(small):
        return spec, None
    why = "" if small in _BY_CUT_NAME else libraries.refused_elsewhere(small)
    if why := libraries.refused_anywhere().get(small, why):
        raise UsageError(f"{name} is not a metric here: {why}")
    if cut_spec := _BY_CUT_NAME.get(small):
        at, example = ("recall or multiple", "0.5") if cut_spec.at else ("cutoff", "10")
        raise UsageError(f"{name} needs a {at}, such as {name}_{example}")
    if here := libraries.here_for(name):
        raise UsageError(f"unknown metric {text!r}: type {here}; {LISTED}")
    if small in SETS:
        raise UsageError(
            f"{name} is a set of metrics, and one is expected: 'rankmill metrics --sets' lists "
            "what it holds"
        )
    if text.lstrip().startswith("@"):
        raise UsageError(f"{text!r} is a file of metrics; expected one metric, such as map@12")
    hint = f"did you mean {' or '.join(near)}? " if (near := _near(name, text)) else ""
    raise UsageError(f"unknown metric {text!r}: {hint}{LISTED}; {DEFINED}")


def _near(name: str, text: str) -> list[str]:
    """The metrics nearest to a name, each with the cutoff and parameters that the text asks for.

    Other tools join words in other ways, write the cutoff as a word, and put one before the name.
    """
    rest = text.strip()[len(name) :]
    words = [one.lower() for one in _WORD.findall(name)]
    known = {one: [name] for one, name in libraries.table("written")[""].items()}
    for one in _BY_NAME:
        known.setdefault("".join(_WORD.findall(one)), []).append(one)
    near, cutoff = known.get("".join(words)), ""
    if not near:
        words, cutoff = _cut_off(words)
        ends = ("".join(words[i:]) for i in range(1, len(words)))
        bare, names = "_".join(words), [*_BY_NAME, *({} if rest else SETS)]
        near = (
            known.get("".join(words))
            or difflib.get_close_matches(bare, names, 5, 0.85)
            or next((known[end] for end in ends if end in known), None)
            or difflib.get_close_matches(bare, names, 5)
        )
    found: dict[str, str] = {}
    for one in near:
        spec = _BY_NAME.get(one)
        at = cutoff if spec and (spec.at or spec.cutoff != "none") and "@" not in rest else ""
        found.setdefault(spec.name if spec else one, f"{one}{rest}{at}")
    return list(found.values())


def _cut_off(words: list[str]) -> tuple[list[str], str]:
    """The words of a name without its cutoff, and that as @12; 10 stands for k."""
    numbers = [i for i, word in enumerate(words) if word[0].isdigit() or word in ("k", "topk")]
    if not numbers:
        return words, ""
    i = numbers[-1]
    before = words[: i - 1] if i and words[i - 1] in ("at", "cut", "top") else words[:i]
    return before + words[i + 1 :], f"@{words[i] if words[i][0].isdigit() else 10}"


def parse_all(texts: str | Iterable[str], rel: float | None = None) -> list[Metric]:
    """The metrics asked for, each once, in order; a text may hold several, as in `split_names`.

    `rel` is as in `parse`.
    """
    metrics = (_read(one, rel) for one in split_names(texts))
    return list({metric.text: metric for metric in metrics}.values())


def parse_under(
    texts: str | Iterable[str], semantics: object, rel: float | None = None
) -> tuple[list[Metric], dict[str, str]]:
    """The metrics asked for as in `parse_all`, and what is left out under a preset -> why.

    It is what the evaluator has among its measures and is no metric, such as num_q, and of the
    default metrics, which nobody typed, those that mean something else there. But something is
    always left. The preset of a competition has one metric, which stands for the default ones.
    `semantics` are as given. UsageError as `parse`, and for a name that means something else in
    the library of the preset.
    """
    names, named = split_names(texts), preset_named(semantics)
    if named and tuple(names) == DEFAULT_METRICS and PRESETS[named].own_metric:
        names = [PRESETS[named].own_metric]
    known = PRESETS[named].skipped if named else ()
    small = {one: one.strip().lower() for one in names}
    skipped = {
        one: libraries.refused_anywhere()[name] for one, name in small.items() if name in known
    }
    left = {one: _read(one, rel) for one in [one for one in names if one not in skipped] or names}
    elsewhere = {
        one: why for one, metric in left.items() if (why := libraries.told_under(semantics, metric))
    }
    if elsewhere and (tuple(names) != DEFAULT_METRICS or len(elsewhere) == len(left)):
        one, why = next(iter(elsewhere.items()))
        raise UsageError(f"{left[one].text} under the preset {named}: {why}")
    metrics = {metric.text: metric for one, metric in left.items() if one not in elsewhere}
    return list(metrics.values()), skipped | elsewhere


def sides_of(names: Iterable[str]) -> dict[str, Better]:
    """Which side of each metric is better, by its name in a result.

    >>> sides_of(["map@12", "first_rank:median", "gini"])
    {'map@12': 'higher', 'first_rank:median': 'lower', 'gini': 'neither'}
    """
    return {name: parse(name).better for name in names}


def lines_of(names: Iterable[str]) -> dict[str, dict[int, str]]:
    """Metric without its cutoff -> cutoff -> its name, of the names that have a cutoff.

    >>> lines_of(["map@5", "map@10", "gini"])
    {'map': {5: 'map@5', 10: 'map@10'}}
    """
    found: dict[str, dict[int, str]] = {}
    for name in names:
        if k := parse(name).k:
            found.setdefault(without_cutoff(name), {})[k] = name
    return found


def examples(semantics: Choices = DEFAULT) -> list[str]:
    """Return a name of each metric that has a value under these semantics, at most with its @.

    >>> examples()[:3]
    ['map', 'first_hit', 'precision@10']
    """
    names = [spec.example for spec in REGISTRY.values()]
    return [name for name in names if is_defined(parse(name), semantics)]


def is_defined(metric: Metric, semantics: Choices) -> bool:
    """Whether `check_defined` passes a metric."""
    try:
        check_defined(metric, semantics)
    except UsageError:
        return False
    return True


def check_defined(metric: Metric, semantics: Choices) -> None:
    """Raise UsageError if a metric has no value under these semantics."""
    why = metric.spec.undefined(metric, semantics) if metric.spec.undefined else ""
    if metric.judged_only and semantics.ties_open:
        why = f"needs one order of equal confidences: choose another than {semantics.order!r}"
    if semantics.order == "expected" and metric.spec.kernel and not metric.spec.expected:
        why = (
            "has no closed form of its expected value over ties here: choose another order than "
            "'expected'"
        )
    if why:
        raise UsageError(f"{metric.text} {why}")
