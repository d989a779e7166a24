"""What texts of metrics ask for: names between commas, more cutoffs, named sets, and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rankmill.errors import UsageError

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

_COMMA = re.compile(r",(?![^()]*\))")
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
    if not isinstance(texts, str | Iterable) and texts is not None:
        raise UsageError(f"metrics is {texts!r}; expected names such as 'map@12'")
    named = [texts] if isinstance(texts, str) else list(texts or [])
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
    """The pieces of a text, between commas that stand outside of parentheses."""
    if not isinstance(text, str):
        return [text]
    pieces = _COMMA.split(text)
    if len(pieces) > 1 and not all(piece.strip() for piece in pieces):
        raise UsageError(f"{text!r} has a comma without a metric next to it: leave it out")
    return pieces


def _names(text: str) -> Iterator[str]:
    before = ""  # the metric that a number would be another cutoff of
    for piece in pieces_of(text):
        bare = piece.strip() if isinstance(piece, str) else ""
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
