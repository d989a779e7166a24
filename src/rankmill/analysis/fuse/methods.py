"""How lists are fused: the methods, the normalisations, and the options checked together."""

import math
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from rankmill.errors import UsageError, positive
from rankmill.kernels import fusion

METHODS = {
    "rrf": fusion.SUM,
    "combsum": fusion.SUM,
    "combmnz": fusion.TIMES_COUNT,
    "combanz": fusion.MEAN,
    "combmin": fusion.LEAST,
    "combmax": fusion.MOST,
    "combmed": fusion.MEDIAN,
}
"""Name of a method -> what becomes of the numbers that an item gets from the lists it is in."""

NORMS = {
    "min-max": fusion.MIN_MAX,
    "z-score": fusion.Z_SCORE,
    "rank": fusion.RANK,
    "none": fusion.AS_IS,
}
"""Name of a normalisation -> what an item gets from a list."""

DEFAULT_NORM = "min-max"
DEFAULT_K = 60
# Beyond it, k + rank is no longer exact.
LARGEST_K = 1 << 52
# So many items of a list are kept where `top` says nothing.
ALL_ITEMS = 1 << 62


class Fusion(NamedTuple):
    """How lists are fused.

    Attributes
    ----------
    method, norm : str
        Their names; a method of ranks alone has no normalisation, and then the name is empty.
    k : int
        The constant of reciprocal rank fusion.
    weights : float64, one a run
    top : int
        The number of items that are kept of a fused list.
    """

    method: str
    norm: str
    k: int
    weights: np.ndarray
    top: int

    @property
    def how(self) -> tuple[int, int]:
        """The normalisation and the method, as the kernel takes them."""
        norm = fusion.RECIPROCAL if self.method == "rrf" else NORMS[self.norm]
        return norm, METHODS[self.method]

    @property
    def needs_scores(self) -> bool:
        """Whether it looks at confidences, and not only at ranks."""
        return self.how[0] not in (fusion.RECIPROCAL, fusion.RANK)


def fusion_of(
    runs: int,
    method: str,
    norm: str | None,
    k: int | None,
    weights: Sequence[float] | None,
    top: int | None,
) -> Fusion:
    """Return how so many runs are fused; raises UsageError if the options do not fit together."""
    if runs < 2:
        raise UsageError(f"found {runs} run to fuse; expected two or more")
    if method not in METHODS:
        raise UsageError(f"there is no method {method!r}; expected one of {', '.join(METHODS)}")
    if norm is not None and norm not in NORMS:
        raise UsageError(f"there is no norm {norm!r}; expected one of {', '.join(NORMS)}")
    if method == "rrf" and norm is not None:
        raise UsageError(
            "rrf fuses ranks, which have no norm: leave out the norm, or choose another method"
        )
    if method != "rrf" and k is not None:
        raise UsageError(f"k is a constant of rrf, and {method} has none: leave k out")
    return Fusion(
        method,
        "" if method == "rrf" else norm or DEFAULT_NORM,
        DEFAULT_K if k is None else _constant(k),
        _weights(weights, runs),
        ALL_ITEMS if top is None else min(positive(top, "top"), ALL_ITEMS),
    )


def _constant(k: int) -> int:
    if positive(k, "k") > LARGEST_K:
        raise UsageError(f"k is {k}; expected at most {LARGEST_K}")
    return int(k)


def _weights(weights: Sequence[float] | None, runs: int) -> np.ndarray:
    if weights is None:
        return np.ones(runs)
    if not isinstance(weights, Iterable):
        raise UsageError(f"weights is {weights!r}; expected a list with a number for each run")
    found = list(weights)
    if len(found) != runs:
        raise UsageError(f"found {len(found)} weights for {runs} runs; expected one for each run")
    for one in found:
        if not _is_weight(one):
            raise UsageError(f"a weight is {one!r}; expected positive numbers")
    return np.array(found, np.float64)


def _is_weight(number: Any) -> bool:
    real = isinstance(number, Real) and not isinstance(number, bool)
    return real and 0 < number < math.inf
