"""More metrics of one list in plain Python, for both oracles; shares no code with the package.

A list is its *worths*: at each rank what the prediction gains, or None for a wrong one. ``count``
is R, and ``ideal`` the gains of all labels, falling. Of metrics that look at judged items, worths
are gains of all judged items, or levels: 1 of relevant items, 0 of others, -1 below 0.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Worths = Sequence[float | None]
DEEPEST = 1000


@dataclass(frozen=True)
class Listed:
    """One list with its labels, up to a cutoff."""

    worths: Worths
    count: int
    ideal: Sequence[float]
    k: float = math.inf
    given: dict[str, float] = field(default_factory=dict)
    rounding: str = "up"

    @property
    def cut(self) -> list[float | None]:
        return [worth for rank, worth in enumerate(self.worths, 1) if rank <= self.k]

    @property
    def ranks(self) -> list[int]:
        return [rank for rank, worth in enumerate(self.cut, 1) if worth is not None]

    def of(self, name: str, default: float) -> float:
        return self.given.get(name, default)


def ratio(above: float, below: float) -> float:
    return above / below if below else 0.0


def set_f(one: Listed) -> float:
    precision = ratio(len(one.ranks), len(one.worths))
    recall = ratio(len(one.ranks), one.count)
    square = one.of("beta", 1) ** 2
    return ratio((1 + square) * precision * recall, square * precision + recall)


def utility(one: Listed) -> float:
    found = len(one.ranks)
    terms = [one.of("a", 1) * found, one.of("b", -1) * (len(one.worths) - found)]
    return math.fsum([*terms, one.of("c", 0) * max(0, one.count - found)])


def mean_rank(one: Listed) -> float:
    missing = max(0, one.count - len(one.ranks))
    return ratio(sum(one.ranks) + missing * (len(one.cut) + 1), one.count)


def auc(one: Listed) -> float:
    right = [worth is not None for worth in one.cut]
    pairs = [(a, b) for a, b in itertools.combinations(right, 2) if a != b]
    if not pairs:
        return float(any(right))
    return sum(a for a, _ in pairs) / len(pairs)


def pair_accuracy(one: Listed) -> float:
    gains = [worth for worth in one.cut if worth is not None and worth >= 0]
    pairs = [(a, b) for a, b in itertools.combinations(gains, 2) if a != b]
    return ratio(sum(a > b for a, b in pairs), len(pairs))


def precision_at_recall(one: Listed, recall: float) -> float:
    needed = int(recall * one.count + 0.9)
    if one.rounding == "nearest":
        whole = int(recall * one.count)
        needed = whole + (recall * one.count - whole >= 0.5)
    found = enumerate(one.ranks, 1)
    return max((hits / rank for hits, rank in found if hits >= needed), default=0.0)


def precision_at_multiple(one: Listed) -> float:
    cut = int(one.given["times"] * one.count + 0.9)
    return ratio(sum(rank <= cut for rank in one.ranks), cut)


def bing(one: Listed) -> float:
    others = [rank - hits for hits, rank in enumerate(one.ranks, 1)]
    return ratio(math.fsum(1 / math.log2(2 + above) for above in others), one.count)


def cascade(powers: Worths, most: float) -> float:
    """The gains are 2**g - 1."""
    stops = [min(gain or 0.0, 2.0**most - 1) / 2**most for gain in powers]
    return math.fsum(
        stop * math.prod(1 - other for other in stops[: rank - 1]) / rank
        for rank, stop in enumerate(stops, 1)
    )


def err(one: Listed) -> float:
    return cascade(one.cut, one.of("max", 4))


def nerr(one: Listed) -> float:
    best = [gain for rank, gain in enumerate(one.ideal, 1) if rank <= one.k]
    return ratio(err(one), cascade(best, one.of("max", 4)))


def q_measure(one: Listed) -> float:
    beta = one.of("beta", 1)
    terms = []
    for hits, rank in enumerate(one.ranks, 1):
        gain = math.fsum(worth for worth in one.worths[:rank] if worth is not None)
        terms.append((hits + beta * gain) / (rank + beta * math.fsum(one.ideal[:rank])))
    return ratio(math.fsum(terms), min(one.k, one.count))


def g(one: Listed) -> float:
    terms = []
    for rank, worth in enumerate(one.worths, 1):
        if worth is not None:
            best = [*one.ideal[:rank], *[0.0] * max(0, rank - len(one.ideal))]
            cost = math.fsum(max(1, gain) for gain in best)
            lost = cost - math.fsum(other or 0.0 for other in one.worths[:rank])
            terms.append(worth / math.log2(2 + max(0.0, lost)))
    return ratio(math.fsum(terms), math.fsum(one.ideal))


def dcg(gains: Worths) -> float:
    return math.fsum((gain or 0.0) / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def late_dcg(gains: Worths, k: float = math.inf) -> float:
    return math.fsum(
        (gain or 0.0) / max(1.0, math.log2(rank)) for rank, gain in enumerate(gains, 1) if rank <= k
    )


def ndcg_rel(one: Listed) -> float:
    terms = [ratio(dcg(one.worths[:rank]), dcg(one.ideal[:rank])) for rank in one.ranks]
    missing = max(0, one.count - len(terms))
    last = ratio(dcg(one.worths), dcg(one.ideal))
    return ratio(math.fsum([*terms, missing * last]), one.count)


def rndcg(one: Listed) -> float:
    falls = [
        rank
        for rank, gain in enumerate(one.ideal, 1)
        if rank == len(one.ideal) or one.ideal[rank] != gain
    ]
    terms = [ratio(dcg(one.worths[:rank]), dcg(one.ideal[:rank])) for rank in falls]
    if falls and len(one.worths) > len(one.ideal) + 1:
        terms.append(ratio(dcg(one.worths), dcg(one.ideal)))
    return ratio(math.fsum(terms), len(terms))


def shares(one: Listed) -> list[float]:
    """Gains as shares of the largest, over all ranks that are read."""
    found = [min(1.0, (worth or 0.0) / one.of("max", 1)) for worth in one.worths[:DEEPEST]]
    return [*found, *[0.0] * (DEEPEST - len(found))]


def bpm(one: Listed) -> float:
    gains = shares(one)
    sated = (
        rank for rank, gain in enumerate(itertools.accumulate(gains), 1) if gain >= one.of("t", 1)
    )
    last = int(min(next(sated, DEEPEST), one.k))
    return math.fsum(gains[:last]) / last


def weighted(gains: Sequence[float], goes_on: Sequence[float]) -> float:
    weights = list(itertools.accumulate(goes_on[:-1], lambda a, b: a * b, initial=1.0))
    total = math.fsum(weights)
    return math.fsum(w * gain for w, gain in zip(weights, gains, strict=True)) / total


def insq(one: Listed) -> float:
    if not one.ranks:
        return 0.0
    twice = 2 * one.of("t", 1)
    goes_on = [((rank + twice - 1) / (rank + twice)) ** 2 for rank in range(1, DEEPEST + 1)]
    return weighted(shares(one), goes_on)


def inst(one: Listed) -> float:
    if not one.ranks:
        return 0.0
    wanted, gains = one.of("t", 1), shares(one)
    ahead = [
        rank + wanted + wanted - so_far
        for rank, so_far in enumerate(itertools.accumulate(gains), 1)
    ]
    return weighted(gains, [((one - 1) / one) ** 2 for one in ahead])


def rbp_residual(one: Listed) -> float:
    p = one.of("p", 0.8)
    return 1 - math.fsum((1 - p) * p ** (rank - 1) for rank in one.ranks)


def graded_rbp(one: Listed) -> float:
    p, most = one.of("p", 0.9), max([1.0, *one.ideal])
    return math.fsum(
        (1 - p) * p ** (rank - 1) * (worth or 0.0) / most for rank, worth in enumerate(one.cut, 1)
    )


def unjudged_ranks(one: Listed) -> list[int]:
    return [rank for rank, worth in enumerate(one.cut, 1) if worth is None or worth < 0]


def rbp_resid(one: Listed) -> float:
    p, ranks = one.of("p", 0.9), unjudged_ranks(one)
    behind = p ** len(one.worths) if ranks else 0.0
    return math.fsum([behind, *((1 - p) * p ** (rank - 1) for rank in ranks)])


def infap(one: Listed) -> float:
    terms = []
    for rank in one.ranks:
        above = [worth for worth in one.worths[: rank - 1] if worth is not None]
        relevant, others = above.count(1), above.count(0)
        if one.worths[rank - 1] == 1:
            share = (relevant + 1e-5) / (relevant + others + 2e-5)
            terms.append(1 / rank + (rank - 1) / rank * ratio(len(above), rank - 1) * share)
    return ratio(math.fsum(terms), one.count)


def lrap(one: Listed) -> float:
    """Without equal confidences."""
    return ratio(math.fsum(hits / rank for hits, rank in enumerate(one.ranks, 1)), one.count)


def fbeta(one: Listed) -> float:
    precision, recall = len(one.ranks) / one.k, ratio(len(one.ranks), one.count)
    square = one.of("beta", 1) ** 2
    return ratio((1 + square) * precision * recall, square * precision + recall)


def fallout(one: Listed) -> float:
    wrong = [worth is None for worth in one.worths]
    return ratio(sum(wrong[: len(one.cut)]), sum(wrong))


def mcc(one: Listed) -> float:
    """From the four cells of the table of items within k or not, labels or not."""
    items, right = one.given["items"], len(one.ranks)
    if max(one.k, one.count) >= items:
        return 0.0
    shown, missed = one.k - right, one.count - right
    others = items - right - shown - missed
    sides = (one.k, one.count, others + shown, others + missed)
    return ratio(right * others - shown * missed, math.sqrt(math.prod(sides)))


def yaap(one: Listed) -> float:
    total = math.fsum(hits / rank for hits, rank in enumerate(one.ranks, 1))
    return math.log((1 + total) / (1 + max(0.0, one.count - total)))


def compatibility(one: Listed, best: Callable[[int], float]) -> float:
    """Each label is a number by falling gain; of one gain, those found stand first."""
    ideal: list[Any] = sorted(one.ideal, reverse=True)
    found, names = dict.fromkeys(ideal, 0), []
    for worth in one.worths:
        names.append(None if worth is None else (worth, found[worth]))
        if worth is not None:
            found[worth] += 1
    labels = [(gain, sum(other == gain for other in ideal[:at])) for at, gain in enumerate(ideal)]
    depth = int(min(one.k, max(len(one.worths), one.count)))
    p, depths = one.of("p", 0.95), range(1, depth + 1)
    both = [len({*labels[:d]} & {*names[:d]}) for d in depths]
    total = math.fsum(p ** (d - 1) * n / d for d, n in zip(depths, both, strict=True))
    return ratio(total, math.fsum(p ** (d - 1) * best(d) for d in depths))


def nearly(one: Listed, goes_on: Callable[[int], float]) -> float:
    """Behind each rank, so many go on of those who have not got their gain."""
    if not one.ranks:
        return 0.0
    gains = shares(one)[: int(min(one.k, DEEPEST))]
    rest = [goes_on(rank) * (1 - gain) for rank, gain in enumerate(gains, 1)]
    return weighted(gains, rest)


def blended(one: Listed, rank: int) -> float:
    found = [worth for worth in one.worths[:rank] if worth is not None]
    beta = one.of("beta", 1)
    return (len(found) + beta * math.fsum(found)) / (rank + beta * math.fsum(one.ideal[:rank]))


def best_rank(one: Listed) -> int:
    most = max(one.worths[rank - 1] or 0.0 for rank in one.ranks)
    return next(rank for rank in one.ranks if one.worths[rank - 1] == most)


def p_plus(one: Listed) -> float:
    some = [rank for rank in one.ranks if rank <= best_rank(one)] if one.ranks else []
    return ratio(math.fsum(blended(one, rank) for rank in some), len(some))


def ncu_rb(one: Listed) -> float:
    gamma = one.of("gamma", 0.95)
    terms = [gamma**before * blended(one, rank) for before, rank in enumerate(one.ranks)]
    return ratio(math.fsum(terms), math.fsum(gamma**place for place in range(one.count)))


def ncu_gu(one: Listed) -> float:
    terms = [(one.worths[rank - 1] or 0.0) * blended(one, rank) for rank in one.ranks]
    return ratio(math.fsum(terms), math.fsum(one.ideal))


def kendall_tau(one: Listed) -> float:
    gains = [worth for worth in one.cut if worth is not None]
    pairs = [(a > b) - (a < b) for a, b in itertools.combinations(gains, 2) if a != b]
    return ratio(sum(pairs), len(pairs))


def sdcg(one: Listed) -> float:
    most = one.of("max", 1)
    return dcg([min(1.0, (worth or 0.0) / most) for worth in one.cut]) / dcg([1.0] * int(one.k))


VALUES: dict[str, Callable[[Listed], float]] = {
    "fbeta": fbeta,
    "fallout": fallout,
    "mcc": mcc,
    "gauc": lambda one: auc(one) if 0 < len(one.ranks) < len(one.cut) else 0.0,
    "yaap": yaap,
    "compat": lambda one: compatibility(one, lambda d: min(d, one.count) / d),
    "rbo": lambda one: compatibility(one, lambda d: 1.0),
    "nerr8": lambda one: nearly(one, lambda rank: 1.0),
    "nerr9": lambda one: nearly(one, lambda rank: rank / (rank + 1)),
    "nerr10": lambda one: nearly(one, lambda rank: one.of("p", 0.9)),
    "nerr11": lambda one: nearly(
        one, lambda rank: ((rank + 2 * one.of("t", 1) - 1) / (rank + 2 * one.of("t", 1))) ** 2
    ),
    "sdcg": sdcg,
    "kendall_tau": kendall_tau,
    "o_measure": lambda one: blended(one, one.ranks[0]) if one.ranks else 0.0,
    "p_measure": lambda one: blended(one, best_rank(one)) if one.ranks else 0.0,
    "p_plus": p_plus,
    "ncu_rb": ncu_rb,
    "ncu_gu": ncu_gu,
    "num_ret": lambda one: float(len(one.worths)),
    "user_coverage": lambda one: float(len(one.worths) >= (1 if one.k == math.inf else one.k)),
    "num_rel": lambda one: float(one.count),
    "num_rel_ret": lambda one: float(len(one.ranks)),
    "num_nonrel_judged_ret": lambda one: float(sum(worth == 0 for worth in one.worths)),
    "set_p": lambda one: ratio(len(one.ranks), len(one.worths)),
    "set_f": set_f,
    "set_map": lambda one: ratio(len(one.ranks) ** 2, one.count * len(one.worths)),
    "set_relative_p": lambda one: ratio(len(one.ranks), min(one.count, len(one.worths))),
    "utility": utility,
    "relative_p": lambda one: ratio(len(one.ranks), min(one.k, one.count)),
    "rprec_mult": precision_at_multiple,
    "iprec": lambda one: precision_at_recall(one, one.given["recall"]),
    "iprec_avg": lambda one: math.fsum(precision_at_recall(one, i / 10) for i in range(11)) / 11,
    "first_rank": lambda one: float(one.ranks[0] if one.ranks else len(one.cut) + 1),
    "mean_rank": mean_rank,
    "auc": auc,
    "bing": bing,
    "lrap": lrap,
    "err": err,
    "nerr": nerr,
    "q_measure": q_measure,
    "g": g,
    "ndcg_rel": ndcg_rel,
    "dcg_jk": lambda one: late_dcg(one.cut),
    "ndcg_jk": lambda one: ratio(late_dcg(one.cut), late_dcg(one.ideal, one.k)),
    "rndcg": rndcg,
    "bpm": bpm,
    "insq": insq,
    "inst": inst,
    "graded_rbp": graded_rbp,
    "rbp_resid": rbp_resid,
    "rbp_residual": rbp_residual,
    "unj": lambda one: len(unjudged_ranks(one)) / one.k,
    "unjudged": lambda one: ratio(len(one.cut) - len(one.ranks), len(one.cut)),
    "infap": infap,
    "pair_accuracy": pair_accuracy,
}
BLENDED = {"o_measure", "p_measure", "p_plus", "ncu_rb", "ncu_gu"}
NEARLY = {"nerr8", "nerr9", "nerr10", "nerr11"}
GRADED = {"g", "graded_rbp", "ndcg_rel", "rndcg", "q_measure", "bpm", "insq", "inst"}
GRADED |= BLENDED | NEARLY | {"sdcg", "dcg_jk", "ndcg_jk", "compat", "rbo", "kendall_tau"}
POWERS = {"err", "nerr"}
# Of all judged items: with their gains, or as levels.
JUDGED_GAINS = {"unjudged", "rbp_residual", "pair_accuracy"}
LEVELS = {"infap", "num_nonrel_judged_ret", "rbp_resid", "unj"}
LOWER_IS_BETTER = {"first_rank", "mean_rank", "rbp_residual", "unjudged", "rbp_resid", "unj"}
LOWER_IS_BETTER |= {"fallout", "num_nonrel_judged_ret"}
COUNTS = {"num_ret", "num_rel"}
# Without predictions nothing is as bad as it can be; the first two have no value without labels.
NO_WORST = {"first_rank", "mean_rank", "num_nonrel_judged_ret", "utility", "yaap"}
RANKS = {"first_rank", "mean_rank"}
# Their definitions here take the square of the length of a list.
SLOW = {"auc", "err", "nerr", "q_measure", "g", "ndcg_rel", "infap", "pair_accuracy"}
SLOW |= BLENDED | {"gauc", "compat", "rbo", "kendall_tau"}
# What has no expected value over ties, and what has no known worst and best order of them.
NOT_EXPECTED = {
    *("iprec", "iprec_avg", "mean_rank", "bing", "err", "nerr", "q_measure", "g", "ndcg_rel"),
    *("rndcg", "bpm", "insq", "inst", "infap", "pair_accuracy", "graded_rbp", "rbp_resid", "unj"),
    *("yaap", "compat", "rbo", "sdcg", "dcg_jk", "ndcg_jk", "kendall_tau"),
    *BLENDED,
    *NEARLY,
}
NO_ENDS = {"g", "ndcg_rel", "inst", "infap", "rbp_resid", "unj"}
NO_ENDS |= BLENDED | NEARLY | {"compat", "rbo", "kendall_tau"}


def is_defined(name: str, k: int | None, semantics: dict[str, str]) -> bool:
    """Whether a metric has a value under these semantics."""
    order = semantics["order"]
    if order == "expected" and (
        name in NOT_EXPECTED or (name in ("auc", "gauc") and k is not None)
    ):
        return False
    if name == "lrap" and order != "expected":
        return False
    if order in ("worst", "best") and name in NO_ENDS:
        return False
    if semantics["unpredicted"] == "zero" and name in NO_WORST:
        return False
    if semantics["no_relevant"] == "scored" and name in RANKS:
        return False
    fields = ["unlabelled", "no_relevant"] if name in LOWER_IS_BETTER else []
    return not any(semantics[one] in ("zero", "one") for one in fields)


def value(name: str, *listed: Any) -> float:
    """Without predictions the worst there is: NaN where there is none."""
    one = Listed(*listed)
    if (name in NO_WORST and not one.worths) or (name in RANKS and not one.count):
        return math.nan
    if one.worths or name in COUNTS:
        return VALUES[name](one)
    return 1.0 if name in LOWER_IS_BETTER else -1.0 if name in ("mcc", "kendall_tau") else 0.0
