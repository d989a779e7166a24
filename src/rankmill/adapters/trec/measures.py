"""The measures of trec_eval, in the order in which it prints them, and how they are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from rankmill.errors import UsageError
from rankmill.package import GONE


@dataclass(frozen=True)
class Measure:
    """A row of the table."""

    # The metric of rankmill that has its value for a query, {} in the place of a parameter; ""
    # where `rankmill.adapters.trec.values` computes it itself.
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


@dataclass(frozen=True)
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
            raise UsageError(
                f"trec_eval has no measure {text!r}: it has {', '.join((*NICKNAMES, *there))}, "
                "with parameters as in P.5,10"
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
