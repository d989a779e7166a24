"""What texts of metrics ask for: names between commas, more cutoffs, named sets, and files.

And how each is spelled: parameters, summaries, and all names by which a result knows a metric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from numbers import Number
from typing import Any, NamedTuple

from rankmill.errors import UsageError
from rankmill.metrics.base import GAIN, JUDGED_ONLY, REL, Metric, MetricSpec
from rankmill.metrics.libraries import parameter_elsewhere
from rankmill.semantics.metric_names import canonical, number_text

LISTED = "'rankmill metrics' lists all"
# What stands behind a metric whose labels are the lists of the baseline.
OF_BASELINE = ":baseline"
DEFINED = "define your own by --define FILE.py on the command line, @rankmill.metric in Python"


class MetricSet(NamedTuple):
    """Metrics that a name stands for, and whose they are."""

    metrics: tuple[str, ...]
    meaning: str


SETS = {
    "official": MetricSet(
        (
            *("num_ret:sum", "num_rel:sum", "num_rel_ret:sum", "map", "gm_map", "Rprec", "bpref"),
            "recip_rank",
            *(f"iprec_at_recall_{tenths / 10:.2f}" for tenths in range(11)),
            *(f"P_{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
        ),
        "what trec_eval prints by default; choose its preset as well",
    ),
    "recsys": MetricSet(
        (
            *("precision@10", "recall@10", "hit@10", "first_hit@10", "map@10", "ndcg@10"),
            "coverage@10",
        ),
        "hits and their ranks in the first 10 predictions, and how many items are shown at all",
    ),
    "pr": MetricSet(
        tuple(f"iprec@{tenths / 10:g}" for tenths in range(11)),
        "the curve of precision over recall: interpolated precision at eleven levels of recall",
    ),
}

_COMMA = re.compile(r",(?![^()]*\)|[^\[\]]*\])")
_NUMBER = re.compile(r"[-+]?[0-9.][-+0-9.e]*")
# Cutoffs from one to another, as in map@1..100.
_RANGE = re.compile(r"(.*[@_])\s*([0-9]+)\.\.([0-9]+)\s*((?:\(.*\))?(?::.*)?)", re.DOTALL)
MOST_CUTOFFS = 1_000
# What stands before and behind the cutoff, as in map(rel=2)@5:median and P_5(rel=2).
_CUT = re.compile(r"(.*@|[^(@]*_)\s*[0-9.]+\s*((?:\(.*\))?(?::.*)?)", re.DOTALL)
# A blank between two metrics of a line; those beside commas, brackets and @ are of a metric.
_BLANK = re.compile(r"(?<=[^\s,(@])\s+(?=[A-Za-z0-9])(?![^()]*\))")


class _OfFile(str):
    """A name that a file has."""

    __slots__ = ("place",)
    place: str


def place_of(name: str) -> str:
    """Where a name of a metric was read, as "metrics.txt, line 3: "; "" if it was given itself."""
    return name.place if isinstance(name, _OfFile) else ""


def texts_of(what: str, given: Any, expected: str) -> list[str]:
    """Return a text or texts that are given; UsageError if that is data, such as a table."""
    if isinstance(given, str):
        return [given]
    # The values of a result are by the names of its metrics.
    values = given.values() if isinstance(given, Mapping) else ()
    data = hasattr(given, "columns") or not all(isinstance(one, Number | None) for one in values)
    wrong = given
    if isinstance(given, Iterable) and not data:
        texts = list(given)
        wrong = next((one for one in texts if not isinstance(one, str)), None)
        if wrong is None:
            return texts
        what = f"one of {what}"
    shown = repr(wrong) if isinstance(wrong, Number) else f"a {type(wrong).__name__}"
    raise UsageError(f"{what} is {shown}; expected {expected}")


def split_names(texts: str | Iterable[str]) -> list[str]:
    """The names asked for, in order.

    A text may hold several names between commas. A bare number is another cutoff of the metric
    before it, ``map@1..100`` are 100 metrics, the name of a set is all its metrics, and
    ``@metrics.txt`` all those of a file. UsageError if nothing is asked for, a number is no cutoff
    of anything, or a file cannot be read.

    Examples
    --------
    >>> split_names("map(rel=2)@5,10,mrr")
    ['map(rel=2)@5', 'map(rel=2)@10', 'mrr']
    """
    wanted = "names such as 'map@12'; a function gets one by @rankmill.metric"
    named = [] if texts is None else texts_of("metrics", texts, wanted)
    if not named:
        raise UsageError(f"no metric was asked for: {LISTED}")
    return [one for text in named for one in _names(text)]


def names_file(texts: Iterable[str]) -> bool:
    """Whether texts ask for the metrics in a file, which may change.

    Examples
    --------
    >>> names_file(["map@12,mrr"]), names_file(["mrr, @metrics.txt"])
    (False, True)
    """
    named = (text for text in texts if isinstance(text, str))
    return any(piece.lstrip()[:1] == "@" for text in named for piece in text.split(","))


def split_beside(texts: str | Iterable[str]) -> tuple[list[str], list[str]]:
    """The names asked for of the labels, and those of the lists of the baseline.

    Examples
    --------
    >>> split_beside("map@12,rbo(p=0.9)@10:baseline")
    (['map@12'], ['rbo(p=0.9)@10:baseline'])
    """
    names = split_names(texts)
    beside = [one for one in names if isinstance(one, str) and one.rstrip().endswith(OF_BASELINE)]
    return [one for one in names if one not in beside], beside


def pieces_of(text: str) -> list[str]:
    """The pieces of a text, between commas that stand outside of parentheses and brackets."""
    if not isinstance(text, str):
        return [text]
    pieces = _COMMA.split(text)
    if len(pieces) > 1 and not all(piece.strip() for piece in pieces):
        raise UsageError(f"{text!r} has a comma without a metric next to it: leave it out")
    return pieces


def _names(text: str) -> Iterator[str]:
    before = ""  # the metric that a number would be another cutoff of
    for piece in pieces_of(text):
        bare = piece.strip()
        if bare.startswith("@"):
            yield from _of_file(bare[1:].strip())
            before = ""
        elif bare.lower() in SETS:
            yield from SETS[bare.lower()].metrics
            before = ""
        elif _NUMBER.fullmatch(bare):
            yield _at(before, bare, text)
        elif cuts := _RANGE.fullmatch(bare):
            first, last = int(cuts[2]), int(cuts[3])
            if not 0 < first < last < first + MOST_CUTOFFS:
                raise UsageError(
                    f"{bare!r} asks for cutoffs from {first} to {last}; expected rising ones, "
                    f"{MOST_CUTOFFS:,} at most, as in map@1..100"
                )
            yield from (f"{cuts[1]}{k}{cuts[4]}" for k in range(first, last + 1))
            before = f"{cuts[1]}{last}{cuts[4]}"
        else:
            yield piece
            before = piece


def _at(metric: str, cutoff: str, text: str) -> str:
    """The metric at another cutoff."""
    cut = _CUT.fullmatch(metric)
    if cut is None:
        todo = f"write {metric.strip()}@{cutoff}" if metric else "write map@5,10"
        raise UsageError(
            f"the number {cutoff} in {text!r} does not follow a metric with a cutoff: {todo}"
        )
    return f"{cut[1]}{cutoff}{cut[2]}"


def at_cutoff(name: str, cutoff: int) -> str:
    """The name of a metric that takes a cutoff, at this one.

    Examples
    --------
    >>> at_cutoff("map(rel=2)@5:median", 10), at_cutoff("ndcg:p10", 10), at_cutoff("P_5", 10)
    ('map(rel=2)@10:median', 'ndcg@10:p10', 'P_10')
    """
    cut = _CUT.fullmatch(name)
    whole, colon, behind = name.partition(":")
    return f"{cut[1]}{cutoff}{cut[2]}" if cut else f"{whole.strip()}@{cutoff}{colon}{behind}"


def without_cutoff(name: str) -> str:
    """The name of a metric with a cutoff, without it.

    Examples
    --------
    >>> without_cutoff("map(rel=2)@5:median"), without_cutoff("P_5")
    ('map(rel=2):median', 'P')
    """
    cut = _CUT.fullmatch(name)
    return name if cut is None else f"{cut[1][:-1]}{cut[2]}"


def _of_file(path: str) -> Iterator[str]:
    """The names in a file: one or several in a line, and behind a # what is no name."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        hint = f"; a cutoff stands behind its metric, as in map@{path}" if path.isdigit() else ""
        raise UsageError(
            f"'@{path}' is a file of metrics that cannot be read: {why}{hint}"
        ) from None
    found = False
    for number, line in enumerate(lines, 1):
        text = _BLANK.sub(",", line.partition("#")[0].strip().removesuffix(","))
        place = f"{path}, line {number}: "
        if "@" in (piece.strip()[:1] for piece in text.split(",")):
            raise UsageError(f"{place}a file of metrics names metrics and sets, and no other file")
        try:
            names = list(_names(text)) if text else []
        except UsageError as error:
            raise UsageError(f"{place}{error}") from None
        for name in names:
            found = True
            placed = _OfFile(name)
            placed.place = place
            yield placed
    if not found:
        raise UsageError(f"'@{path}' is a file of metrics that names none: {LISTED}")


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
