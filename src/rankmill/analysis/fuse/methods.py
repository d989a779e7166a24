"""How lists are fused: the methods, the normalisations, and the options checked together."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from rankmill.analysis.fuse.hit_rates import RARE, HitRates
from rankmill.errors import UsageError, positive
from rankmill.kernels import fusion

TENTHS = tuple(n / 10 for n in range(1, 11))


class MethodParameter(NamedTuple):
    """The number that a method takes: its name, its bounds, its default, and what is tried."""

    name: str
    least: float
    most: float
    default: float | None = None
    tried: Sequence[float] = ()


class Method(NamedTuple):
    """A way to fuse lists."""

    combination: int  # what becomes of the numbers that an item gets from the lists it is in
    part: int | None = None  # the function of its rank for such a number; None: its confidence
    # How many numbers there are, and the parameter -> what their sum is multiplied by.
    factor: Callable[[int, float], float] = lambda count, parameter: 1.0
    parameter: MethodParameter | None = None
    trained: int = fusion.UNTRAINED  # what becomes of a number with the rates of training queries
    # Gives the rates of each run, float64[runs, rates]; None if nothing is trained.
    rates: Callable[[HitRates], np.ndarray] | None = None
    absent: float = math.nan  # what a list gives an item that it lacks; NaN if that is nothing


METHODS = {
    "rrf": Method(fusion.SUM, fusion.RECIPROCAL),
    "combsum": Method(fusion.SUM),
    "combmnz": Method(fusion.TIMES_FACTOR, None, lambda n, _: n),
    "combanz": Method(fusion.MEAN),
    "combmin": Method(fusion.LEAST),
    "combmax": Method(fusion.MOST),
    "combmed": Method(fusion.MEDIAN),
    "combgmnz": Method(
        fusion.TIMES_FACTOR,
        None,
        lambda n, gamma: math.pow(n, gamma),
        MethodParameter("gamma", -1000.0, 1000.0, tried=TENTHS),
    ),
    "mixed": Method(fusion.TIMES_FACTOR, None, lambda n, _: math.sqrt(n)),
    "wmnz": Method(fusion.TIMES_WEIGHTS),
    "isr": Method(fusion.TIMES_FACTOR, fusion.SQUARE, lambda n, _: n),
    "log-isr": Method(fusion.TIMES_FACTOR, fusion.SQUARE, lambda n, _: math.log(n)),
    "logn-isr": Method(
        fusion.TIMES_FACTOR,
        fusion.SQUARE,
        lambda n, sigma: math.log(n + sigma),
        MethodParameter("sigma", 0.0, 1.0, 0.01, (0.01, *TENTHS)),
    ),
    "bordafuse": Method(fusion.SUM, fusion.POINTS),
    "condorcet": Method(fusion.VOTES, fusion.PLACE),
    "rbc": Method(
        fusion.SUM,
        fusion.GEOMETRIC,
        parameter=MethodParameter("phi", 0.0, 1.0, tried=(*TENTHS[:-1], 0.95, 0.98)),
    ),
    # Trained rates take the place of what an item gets by rank.
    "mapfuse": Method(fusion.SUM, fusion.RECIPROCAL, rates=HitRates.average_precisions),
    "posfuse": Method(fusion.SUM, fusion.RANK, trained=fusion.BY_RANK, rates=HitRates.by_rank),
    "slidefuse": Method(
        fusion.SUM,
        fusion.RANK,
        parameter=MethodParameter("window", 0, 1 << 20, 5),
        trained=fusion.BY_WINDOW,
        rates=HitRates.by_rank,
    ),
    "probfuse": Method(
        fusion.SUM,
        fusion.RANK,
        parameter=MethodParameter("segments", 1, 1 << 20, 25),
        trained=fusion.BY_SEGMENT,
        rates=HitRates.by_segment,
    ),
    "segfuse": Method(fusion.SUM, trained=fusion.TIMES_SCORE, rates=HitRates.by_growing_segment),
    "bayesfuse": Method(
        fusion.SUM,
        fusion.RANK,
        trained=fusion.BY_RANK,
        rates=HitRates.odds,
        absent=math.log(RARE / (1 - RARE)),
    ),
}
"""Name of a method -> its row."""

NORMS = {
    "min-max": fusion.MIN_MAX,
    "min-max-inverted": fusion.INVERTED,
    "max": fusion.MAX,
    "sum": fusion.TOTAL,
    "z-score": fusion.Z_SCORE,
    "rank": fusion.RANK,
    "borda": fusion.BORDA,
    "none": fusion.AS_IS,
}
"""Name of a normalisation -> what an item gets from a list."""

ELSEWHERE = {
    **{one: f"comb{one}" for one in ("sum", "mnz", "anz", "min", "max", "med", "gmnz")},
    **{f"w_{one}": f"{one} with weights" for one in ("bordafuse", "condorcet")},
    **{"wsum": "combsum with weights", "zmuv": "z-score", "borda": "bordafuse"},
}
"""What a method or a normalization is called elsewhere -> what to type here."""

OF_RANKS = [fusion.RANK, fusion.BORDA]

DEFAULT_NORM = "min-max"
DEFAULT_K = 60
# Beyond it, k + rank is no longer exact.
LARGEST_K = 1 << 52
# So many items of a list are kept where `top` says nothing.
ALL_ITEMS = 1 << 62


class Fusion(NamedTuple):
    """How lists are fused."""

    method: str
    norm: str  # empty for a method of ranks alone
    k: int  # the constant of reciprocal rank fusion
    parameter: float  # 0 if the method has none
    weights: np.ndarray  # float64, one a run
    top: int  # the number of items that are kept of a fused list
    rates: np.ndarray = np.empty((0, 0))  # float64[runs, rates]
    trained_on: int | None = None  # the number of training queries

    @property
    def row(self) -> Method:
        """The row of its method."""
        return METHODS[self.method]

    @property
    def segments(self) -> int:
        """How many segments a list has whose shares of hits are trained."""
        return int(self.parameter) if self.row.trained == fusion.BY_SEGMENT else 0

    def trained(self, found: HitRates) -> "Fusion":
        """Return it with the rates of training queries."""
        assert self.row.rates is not None
        rates = np.ascontiguousarray(self.row.rates(found))
        one = self._replace(trained_on=found.queries)
        if self.row.trained == fusion.UNTRAINED:  # the rate of a run is a weight
            return one._replace(weights=self.weights * rates[:, 0], k=0)
        return one._replace(rates=rates)

    @property
    def how(self) -> tuple[int, int, int]:
        """The normalisation, the method and what is trained, as the kernel takes them."""
        row = self.row
        return NORMS[self.norm] if row.part is None else row.part, row.combination, row.trained

    @property
    def factors(self) -> np.ndarray:
        """What a sum of so many numbers is multiplied by, float64[runs + 1]."""
        factor = self.row.factor
        counts = range(1, len(self.weights) + 1)
        return np.array([0.0, *(factor(one, self.parameter) for one in counts)])

    @property
    def needs_scores(self) -> bool:
        """Whether it looks at confidences, and not only at ranks."""
        return self.row.part is None and self.how[0] not in OF_RANKS


def name_in(known: Collection[str], name: str, what: str = "method") -> str:
    """The name of a method or norm as it is here, given in any case, and with - or _."""
    small = str(name).lower()
    if (found := small.replace("_", "-")) in known:
        return found
    hint = f": type {ELSEWHERE[small]}" if small in ELSEWHERE else ""
    raise UsageError(f"there is no {what} {name!r}{hint}; expected one of {', '.join(known)}")


def fusion_of(
    runs: int,
    method: str,
    norm: str | None,
    k: int | None,
    parameter: float | None,
    weights: Sequence[float] | None,
    top: int | None,
    labelled: bool = False,
) -> Fusion:
    """Return how so many runs are fused; raises UsageError if the options do not fit together."""
    if runs < 2:
        raise UsageError(f"found {runs} run to fuse; expected two or more: give another one")
    method = name_in(METHODS, method)
    row, norm = METHODS[method], norm and name_in(NORMS, norm, "norm")
    if row.part is not None and norm is not None:
        raise UsageError(
            f"{method} fuses ranks, which have no norm: leave out the norm, or choose another "
            "method"
        )
    if labelled != (row.rates is not None):
        raise UsageError(
            f"{method} is not trained: leave out --train-labels, or name a metric by --optimise"
            if labelled
            else f"{method} is trained: give labels of training queries with --train-labels"
        )
    if method != "rrf" and k is not None:
        raise UsageError(f"k is a constant of rrf, and {method} has none: leave k out")
    if k is not None and positive(k, "k") > LARGEST_K:
        raise UsageError(f"k is {k}; expected at most {LARGEST_K}")
    return Fusion(
        method,
        "" if row.part is not None else norm or DEFAULT_NORM,
        DEFAULT_K if k is None else positive(k, "k"),
        _parameter(method, parameter),
        _weights(weights, runs),
        ALL_ITEMS if top is None else min(positive(top, "top"), ALL_ITEMS),
    )


def _parameter(method: str, given: float | None) -> float:
    asked = METHODS[method].parameter
    if asked is None:
        if given is not None:
            raise UsageError(f"{method} has no parameter: leave it out")
        return 0.0
    number = asked.default if given is None else given
    bounds = f"a number from {asked.least:g} to {asked.most:g}"
    if number is None:
        raise UsageError(
            f"{method} has a parameter, {asked.name}: give it with --parameter, {bounds}"
        )
    if not _is_real(number) or not asked.least <= number <= asked.most:
        raise UsageError(f"{asked.name} of {method} is {number!r}; expected {bounds}")
    if isinstance(asked.least, int) and int(number) != number:
        raise UsageError(f"{asked.name} of {method} is {number!r}; expected an integer")
    return float(number)


def _weights(weights: Sequence[float] | None, runs: int) -> np.ndarray:
    if weights is None:
        return np.ones(runs)
    if not isinstance(weights, Iterable):
        raise UsageError(f"weights is {weights!r}; expected a list with a number for each run")
    found = list(weights)
    if len(found) != runs:
        raise UsageError(f"found {len(found)} weights for {runs} runs; expected one for each run")
    for one in found:
        if not _is_real(one) or not 0 <= one < math.inf:
            raise UsageError(f"a weight is {one!r}; expected numbers of 0 or more")
    if not any(found):
        raise UsageError("all weights are 0; expected a positive one")
    return np.array(found, np.float64)


def _is_real(number: Any) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool)
