"""The measures of trec_eval, in the order in which it prints them, and how they are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Literal

import numpy as np

from rankmill.columns.lists import drop_values, offsets_of
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import UsageError
from rankmill.matching.hits import Hits, as_levels, match, of_least_gain
from rankmill.matching.label_lists import LabelLists
from rankmill.matching.order import within
from rankmill.metrics.base import NO_CUTOFF, Metric
from rankmill.metrics.registry import parse
from rankmill.metrics.values import Matched
from rankmill.package import GONE
from rankmill.records import record
from rankmill.semantics.choices import Choices, Scope


@record(frozen=True)
class Measure:
    """A row of the table."""

    # The metric of rankmill that has its value for a query, {} in the place of a parameter; ""
    # where `rankmill.adapters.trec.measures` computes it itself.
    metric: str = ""
    # What stands behind its dot: cutoffs or shares, of which each has a line of its own, numbers,
    # pairs such as 1=3 of a level and its gain, or nothing.
    form: Literal["", "cutoffs", "shares", "numbers", "pairs"] = ""
    params: tuple[float, ...] = ()  # those that are not given
    # What it comes to over queries.
    over: Literal["mean", "sum", "geometric", "text"] = "mean"
    since: int = 9  # the version that has it first


_CUTOFFS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
_RECALLS = tuple(k / 10 for k in range(11))
_TIMES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)

MEASURES = {
    "runid": Measure(over="text"),
    "num_q": Measure(over="sum"),
    "num_ret": Measure("num_ret", over="sum"),
    "num_rel": Measure("num_rel", over="sum"),
    "num_rel_ret": Measure("num_rel_ret", over="sum"),
    "map": Measure("map"),
    "gm_map": Measure("map", over="geometric"),
    "Rprec": Measure("rprec"),
    "bpref": Measure("bpref"),
    "recip_rank": Measure("first_hit"),
    "iprec_at_recall": Measure("iprec@{}", "shares", _RECALLS),
    "P": Measure("precision@{}", "cutoffs", _CUTOFFS),
    "relstring": Measure("", "numbers", (10,), "text"),
    "recall": Measure("recall@{}", "cutoffs", _CUTOFFS),
    "infAP": Measure("infap"),
    "gm_bpref": Measure("bpref", over="geometric"),
    "Rprec_mult": Measure("rprec_mult@{}", "shares", _TIMES),
    "utility": Measure("", "numbers", (1, -1, 0, 0)),
    "11pt_avg": Measure("", "numbers", _RECALLS),
    "binG": Measure("bing"),
    "G": Measure("g", "pairs"),
    "dcg": Measure("dcg", "pairs", since=10),
    "ideal_dcg": Measure("", "pairs", since=10),
    "ndcg": Measure("ndcg", "pairs"),
    "ndcg_rel": Measure("ndcg_rel", "pairs"),
    "Rndcg": Measure("rndcg", "pairs"),
    "ndcg_cut": Measure("ndcg@{}", "cutoffs", _CUTOFFS),
    "map_cut": Measure("map@{}", "cutoffs", _CUTOFFS),
    "relative_P": Measure("relative_p@{}", "cutoffs", _CUTOFFS),
    "success": Measure("hit@{}", "cutoffs", (1, 5, 10)),
    "set_P": Measure("set_p"),
    "set_relative_P": Measure("set_relative_p"),
    "set_recall": Measure("recall"),
    "set_map": Measure("set_map"),
    "set_F": Measure("", "numbers", (1,)),
    "num_nonrel_judged_ret": Measure("num_nonrel_judged_ret", over="sum"),
    "yaap": Measure("yaap"),
    "rbp": Measure("graded_rbp(p={})", "pairs", since=10),
    "rbp_resid": Measure("rbp_resid(p={})", "pairs", since=10),
    "unj": Measure("unj@{}", "cutoffs", (5, 10, 20), since=10),
}
_SET = ("set_P", "set_recall", "set_relative_P", "set_map", "set_F")
_ALONE = ("dcg", "ideal_dcg", "yaap")
NICKNAMES = {
    "official": tuple(MEASURES)[: tuple(MEASURES).index("P") + 1],
    "set": (*tuple(MEASURES)[:5], "utility", *_SET),
    "all_trec": tuple(one for one in MEASURES if one not in _ALONE),
}
_PREFS = ("num_prefs_poss", "num_prefs_ful", "num_prefs_ful_ret", "simp", "pair", "avgjg")
_MORE_PREFS = (
    *("avgjg_Rnonrel", "simp_ret", "pair_ret", "avgjg_ret", "avgjg_Rnonrel_ret"),
    *("simp_imp", "pair_imp", "avgjg_imp"),
)
# Those of preferences and of several judges, which are not computed here.
OF_OTHER_FILES = {
    "all_prefs": ("runid", "num_q", *(f"prefs_{one}" for one in _PREFS + _MORE_PREFS)),
    "prefs": ("runid", "num_q", *(f"prefs_{one}" for one in _PREFS)),
    "qrels_jg": ("runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"),
}


@record(frozen=True)
class MeasureColumn:
    """A value of each query, as it is printed: its name, its measure, the parameters of that."""

    name: str
    measure: str
    params: tuple[float, ...] = ()
    gains: tuple[tuple[int, float], ...] = ()

    @property
    def row(self) -> Measure:
        """The row of its measure."""
        return MEASURES[self.measure]


def columns_of(asked: Iterable[str], version: int) -> list[MeasureColumn]:
    """The columns of measures such as ``P.5,10``, in the order in which trec_eval has them.

    Of several parameters for one measure, those given first count, as in trec_eval.
    """
    there = {name: row for name, row in MEASURES.items() if row.since <= version}
    wanted: set[str] = set()
    given: dict[str, str] = {}
    for text in asked:
        name, dot, params = text.partition(".")
        if (name not in there and name not in NICKNAMES) or (dot and not params):
            gone = [one for one, of in OF_OTHER_FILES.items() if name in {one, *of} - {*there}]
            if gone:
                raise UsageError(GONE[gone[0]])
            measure, _, cutoffs = name.rpartition("_")
            known = measure in there and there[measure].form == "cutoffs"
            hint = f"did you mean {measure}.{cutoffs}? " if known and cutoffs.isdigit() else ""
            raise UsageError(
                f"trec_eval has no measure {text!r}: {hint}it has "
                f"{', '.join((*NICKNAMES, *there))}, with parameters as in P.5,10"
            )
        wanted.update(NICKNAMES.get(name, (name,)))
        if dot:
            given.setdefault(name, params)
    return [
        column
        for name in there
        if name in wanted
        for column in _columns(name, there[name], given.get(name))
    ]


def _columns(name: str, row: Measure, text: str | None) -> list[MeasureColumn]:
    if row.form == "pairs":
        params, gains = _pairs(name, text)
        return [MeasureColumn(f"{name}_{text}" if text else name, name, params, gains)]
    params = row.params
    if row.form and text is not None:
        params = tuple(_number(one, name, row.form == "cutoffs") for one in text.split(","))
    if row.form in ("cutoffs", "shares"):
        ordered = sorted(params)
        if len(set(ordered)) < len(ordered) or (row.form == "cutoffs" and ordered[0] < 1):
            raise UsageError(f"{name}.{text}: expected distinct numbers, and cutoffs from 1")
        ends = ((f"{one:.0f}" if row.form == "cutoffs" else f"{one:3.2f}") for one in ordered)
        return [
            MeasureColumn(f"{name}_{end}", name, (one,))
            for end, one in zip(ends, ordered, strict=True)
        ]
    if name == "utility" and len(params) != 4:
        raise UsageError(f"utility.{text}: expected four numbers, as in utility.1,-1,0,0")
    return [MeasureColumn(f"{name}_{text}" if row.form and text else name, name, params)]


def _pairs(name: str, text: str | None) -> tuple[tuple[float, ...], tuple[tuple[int, float], ...]]:
    """The p of rbp, if it is one of them, and the gains of levels."""
    persistence = 0.9
    gains: dict[int, float] = {}
    for pair in text.split(",") if text else ():
        level, _, value = pair.partition("=")
        number = _number(value, name, False)
        if name.startswith("rbp") and level == "p":
            persistence = number
        elif not level.isdecimal() or len(level) > 18 or name.startswith("rbp"):
            what = "p=0.8" if name.startswith("rbp") else "a level and its gain, as in 1=3"
            raise UsageError(
                f"{name}.{text}: {pair!r} is not one of its parameters; expected {what}"
            )
        else:
            gains.setdefault(int(level), number)
    return ((persistence,) if name.startswith("rbp") else ()), tuple(gains.items())


def _number(text: str, name: str, whole: bool) -> float:
    number = math.nan
    with suppress(ValueError):
        number = int(text) if whole else float(text)
    if not -math.inf < number < math.inf:
        kind = "an integer" if whole else "a number"
        raise UsageError(f"{name} is given {text!r}; expected {kind}, as in P.5,10")
    return number


# The least value in a geometric mean.
LEAST = 0.00001


def judged_hits(labels: LabelLists, lists: Lists, rows: np.ndarray, scope: Scope) -> Hits:
    """The predictions that are judged, and all judged items, with whole gains."""
    if scope.drops:
        lists, _ = within(lists, labels, rows, scope)
    among = labels.judged or labels
    found = match(among, lists.offsets, lists.items, NO_CUTOFF, rows=rows).with_label_gains()
    return found._replace(gains=np.trunc(found.gains), label_gains=np.trunc(found.label_gains))


def in_order(parts: Sequence[Hits], order: np.ndarray) -> Hits:
    """The hits of all parts as one, query by query in an order."""

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(one, name) for one in parts])

    def offsets(name: str) -> np.ndarray:
        return offsets_of(np.concatenate([np.diff(getattr(one, name)) for one in parts]))

    together = Hits(
        offsets=offsets("offsets"),
        ranks=joined("ranks"),
        gains=joined("gains"),
        label_counts=joined("label_counts"),
        prediction_counts=joined("prediction_counts"),
        label_offsets=offsets("label_offsets"),
        label_gains=joined("label_gains"),
        discounts=max((one.discounts for one in parts), key=len),
        repeats=0,
    )
    return together.take(order)


# The rows of measures are not redefined, and each batch of a training asks for the same.
_named = lru_cache(1 << 10)(parse)


class Levels:
    """Judged hits as measures see them: relevant from a level on, or with gains of their levels.

    Gains of `judged` are levels; those below 0 are in the pool, and not judged. `documents` is how
    many there are in the collection, for utility.
    """

    def __init__(self, judged: Hits, level: int, semantics: Choices, documents: int = 0) -> None:
        self.judged = judged
        self._semantics = semantics
        self._documents = documents
        self.marked = as_levels(judged, level)
        self._relevant = of_least_gain(self.marked, 1)
        self._of_marked = Matched(self.marked, semantics)
        self._of_relevant = Matched(self._relevant, semantics)
        self._of_gains: dict[tuple[tuple[int, float], ...], Matched] = {}

    def values(self, column: MeasureColumn) -> np.ndarray:
        """The value of each query, float64[n]; 0 in measures that are texts."""
        row, params = column.row, column.params
        if own := getattr(self, f"_{column.measure.lower()}", None):
            return np.asarray(own(*params), np.float64)
        if column.measure == "ideal_dcg":
            return self._of_graded(column).divisors(parse("ndcg"))
        if row.over == "text":
            return np.zeros(len(self.marked.label_counts))
        number = f"{params[0]:.17g}" if params else ""
        values = self._value(row.metric.format(number), column)
        if row.over == "geometric":  # logarithms as C has them: those of NumPy differ in a bit
            values = np.array([math.log(one) for one in np.maximum(values, LEAST).tolist()])
        return values

    def _value(self, name: str, column: MeasureColumn | None = None) -> np.ndarray:
        metric = _named(name)
        matched = self._matched(metric, column)
        values = matched.counts(metric)
        if metric.spec.divisor is not None:
            divisors = matched.divisors(metric)
            values = np.asarray(values / np.where(divisors > 0, divisors, 1))
        if metric.name == "rndcg":  # only with -l 0 may all that is relevant be worth nothing
            relevant, worth = self._counts[2], matched.hits(metric).label_counts
            values = np.where(relevant > 0, np.where(worth > 0, values, np.nan), 0.0)
        return values

    def _matched(self, metric: Metric, column: MeasureColumn | None) -> Matched:
        if metric.spec.needs_judged:
            return self._of_marked
        if column is None or metric.name not in _GRADED:
            return self._of_relevant
        return self._of_graded(column)

    def _of_graded(self, column: MeasureColumn) -> Matched:
        """The hits with the gains of their levels, or those that stand for them in a column."""
        if column.gains not in self._of_gains:
            judged, worth = self.judged, dict(column.gains)
            gains, label_gains = (_worth(one, worth) for one in (judged.gains, judged.label_gains))
            queries = np.repeat(np.arange(len(judged.label_counts)), np.diff(judged.label_offsets))
            label_gains = label_gains[np.lexsort((-label_gains, queries))]
            kept, kept_labels = gains != 0, label_gains > 0
            label_offsets = drop_values(judged.label_offsets, kept_labels)
            hits = judged._replace(
                offsets=drop_values(judged.offsets, kept),
                ranks=judged.ranks[kept],
                gains=gains[kept],
                label_counts=np.diff(label_offsets),
                label_offsets=label_offsets,
                label_gains=label_gains[kept_labels],
            )
            self._of_gains[column.gains] = Matched(hits, self._semantics)
        return self._of_gains[column.gains]

    # ------------------------------------------------------------------ values of its own

    @property
    def _counts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The relevant predictions, all predictions and the relevant items of each query."""
        hits = self._relevant
        return np.diff(hits.offsets), hits.prediction_counts, hits.label_counts

    def _num_q(self) -> np.ndarray:
        return np.ones(len(self.marked.label_counts))

    def _utility(self, a: float, b: float, c: float, d: float) -> np.ndarray:
        found, n, relevant = self._counts
        beside = self._documents + found - n - relevant
        return np.asarray(a * found + b * (n - found) + c * (relevant - found) + d * beside)

    def _set_f(self, x: float) -> np.ndarray:
        found, n, relevant = self._counts
        p, r = found / np.maximum(n, 1), found / np.maximum(relevant, 1)
        below = x * p + r
        return np.asarray((x + 1.0) * p * r / np.where(below != 0, below, 1))

    def _iprec_at_recall(self, recall: float) -> np.ndarray:
        """trec_eval divides 0 by 0 where recall 0 is asked of a list that -J left empty."""
        values, (_, n, relevant) = self._value(f"iprec@{recall:.17g}"), self._counts
        more = 0.9 if self._semantics.recall_rounding == "up" else 0.5
        return np.where((n == 0) & (recall * relevant + more < 1), np.nan, values)

    def _11pt_avg(self, *recalls: float) -> np.ndarray:
        total = np.zeros(len(self.marked.label_counts))
        for recall in sorted(recalls, reverse=True):  # as its sum goes
            total = total + self._iprec_at_recall(recall)
        return np.asarray(total / len(recalls))


_GRADED = ("g", "dcg", "ndcg", "ndcg_rel", "rndcg", "graded_rbp")


def _worth(levels: np.ndarray, gains: dict[int, float]) -> np.ndarray:
    worth: np.ndarray = np.maximum(levels, 0.0)
    for level, gain in gains.items():
        worth[levels == level] = gain
    return worth


def relevance_string(hits: Hits, q: int, length: int) -> str:
    """The levels of the first predictions of a query, a character each."""
    found = ["-"] * min(max(length, 0), int(hits.prediction_counts[q]))
    for h in range(hits.offsets[q], hits.offsets[q + 1]):
        if (place := int(hits.ranks[h]) - 1) < len(found):
            level = int(hits.gains[h])
            found[place] = "." if level < 0 else ">" if level > 9 else str(level)
    return "".join(found)
