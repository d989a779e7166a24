"""What a comparison is asked: its systems, tests and slices, checked before anything is read."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY
from numbers import Integral, Real
from typing import Any

from rankmill.analysis.compare.differences.differences import Settings
from rankmill.analysis.compare.queries.alignment import check_names
from rankmill.analysis.statistics.paired_differences import LARGEST
from rankmill.analysis.statistics.significance import (
    CORRECTIONS,
    TESTS,
    check_clustered,
    check_weighted,
)
from rankmill.engine.cuts import Cuts, checked, cuts_of
from rankmill.engine.job import check_run_of_each
from rankmill.engine.segments import DERIVED
from rankmill.errors import UsageError, positive, share
from rankmill.io.stores.urls import redacted
from rankmill.metrics.registry import spec_named
from rankmill.metrics.texts import at_cutoff, split_names
from rankmill.package import GONE
from rankmill.records import record


@record(frozen=True)
class Tests:
    """The tests of a comparison.

    Parameters
    ----------
    tests : str or iterable of str
        The names of tests; the first one decides the verdict.

        - "t": the paired t-test of the mean difference.
        - "randomization": the same question, by random signs of the differences; it assumes less.
        - "wilcoxon": signed ranks, which do not ask about the mean.

        ``rankmill docs comparing`` says which to take.
    correction : str
        How p-values are corrected over all metrics and systems: "holm", "bh" (Benjamini and
        Hochberg) or "none".
    seed : int
        That of the random replicates of "randomization", which are 10,000.

    Examples
    --------
    >>> import rankmill
    >>> rankmill.Tests("randomization", seed=7)
    Tests(tests='randomization', correction='holm', seed=7)
    """

    __test__ = False  # pytest takes classes of this name for its own

    tests: str | Iterable[str] = ("t",)
    _: KW_ONLY
    correction: str = "holm"
    seed: int = 0


def check_systems(runs: Any) -> None:
    """Raise UsageError if these are not two systems or more."""
    if not isinstance(runs, Mapping) or len(runs) < 2:
        found = f"has {len(runs)}" if isinstance(runs, Mapping) else f"is a {type(runs).__name__}"
        raise UsageError(
            f"runs {found}; expected a mapping of two systems or more to their predictions, "
            'such as {"old": ..., "new": ...}'
        )
    check_run_of_each(runs)
    check_names(runs)


def metrics_at(metrics: Any, cutoffs: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the metrics, each at the cutoffs instead of its own, and the cutoffs, ascending.

    `cutoffs` are integers or a text such as "1,5,10"; without any, all is as it was given.
    """
    if cutoffs is None:
        return metrics, ()
    given = cutoffs.split(",") if isinstance(cutoffs, str) else cutoffs
    words = [str(one).strip() for one in given] if isinstance(given, Iterable) else []
    if not words or not all(re.fullmatch(r"[1-9][0-9]{0,17}", one) for one in words):
        raise UsageError(f"cutoffs is {cutoffs!r}; expected positive integers, such as [1, 5, 10]")
    asked = tuple(sorted({*map(int, words)}))
    names, found = split_names(metrics), list[str]()
    for name in names:
        spec = spec_named(name)
        at_all = spec.cutoff != "none" and spec.at is None
        found += [at_cutoff(name, k) for k in asked] if at_all else [name]
    if found == names:
        raise UsageError(f"none of {', '.join(names)} takes a cutoff: leave out cutoffs")
    return list(dict.fromkeys(found)), asked


def settings_of(
    tests: Any,
    confidence: float,
    margin: float | None,
    moved: int,
    cluster: str | None = None,
    adjust: Any = None,
    all_pairs: bool = False,
    cutoffs: tuple[int, ...] = (),
) -> Settings:
    """Return the options of a comparison, checked."""
    one = tests if isinstance(tests, Tests) else Tests(tests)
    settings = Settings(
        _names(one.tests),
        one.correction,
        confidence,
        margin,
        moved,
        one.seed,
        cluster,
        covariate_name(adjust),
        all_pairs,
        cutoffs,
    )
    _check(settings)
    return settings


def cuts_asked(by: Any, settings: Settings, adjust: Any, weight: str | None) -> Cuts:
    """Return how to cut the queries of a comparison; `weight` is the column of their weights."""
    for name in settings.tests if weight is not None else ():
        check_weighted(name)
    return with_dependence(cuts_of(by), settings, adjust, weight)


def baseline_of(runs: Any, baseline: str | None) -> str:
    """Return the name of the system, of two or more, that others are compared with."""
    check_systems(runs)
    if baseline is not None and (not isinstance(baseline, str) or baseline not in runs):
        told = f"there is no system {baseline!r}"
        if not isinstance(baseline, str | list | tuple):
            told = f"baseline is a {type(baseline).__name__}"
        raise UsageError(f"{told}; expected one of {', '.join(runs)}")
    return next(iter(runs)) if baseline is None else baseline


def _names(tests: Any) -> tuple[str, ...]:
    if not isinstance(tests, Iterable):
        raise UsageError(f"tests is {tests!r}; expected names of tests: {', '.join(TESTS)}")
    several = [tests] if isinstance(tests, str) else list(tests)
    for test in several:
        _check_name("test", test, TESTS)
    return tuple(dict.fromkeys(several))


def _check(settings: Settings) -> None:
    """Raise UsageError if an option is wrong, before anything is read."""
    _check_name("correction", settings.correction, CORRECTIONS)
    if not settings.tests:
        raise UsageError(f"tests is empty; expected one or more of {', '.join(TESTS)}")
    share(settings.confidence, "confidence", 0.95)
    margin = settings.margin
    if margin is not None and not (isinstance(margin, Real) and 0 < margin <= LARGEST):
        raise UsageError(f"margin is {margin!r}; expected a positive number, such as 0.01")
    moved = settings.moved
    if isinstance(moved, bool) or not isinstance(moved, Integral):
        raise UsageError(
            f"moved is {moved!r}; expected an integer, such as 5, or -5 for losses alone"
        )
    if settings.seed != 0:
        positive(settings.seed, "seed")


def _check_name(what: str, chosen: object, known: Iterable[str]) -> None:
    if not isinstance(chosen, str) or chosen not in known:
        told = f"there is no {what} {chosen!r}; expected one of {', '.join(known)}"
        raise UsageError(GONE.get(str(chosen), told))


def covariate_name(adjust: Any) -> str | None:
    """Return what settings call the covariate."""
    if adjust is None:
        return None
    return redacted(os.fspath(adjust)) if isinstance(adjust, str | os.PathLike) else "a table"


def with_dependence(cuts: Cuts, settings: Settings, adjust: Any, weight: str | None) -> Cuts:
    """Return how queries are cut, with the column of their clusters and the covariate.

    Raises UsageError if these do not go with other settings.
    """
    name = settings.cluster
    if adjust is not None:
        wrong = next((one for one in settings.tests if one != "t"), None)
        if wrong is not None:
            raise UsageError(f"test {wrong!r} cannot be combined with adjust; expected t")
        if adjust == "":
            raise UsageError("adjust is empty; expected a column of the labels or a table")
        cuts = cuts._replace(adjust=checked(adjust, "adjust"))
    if name is None:
        return cuts
    if not isinstance(name, str) or not name or name in DERIVED:
        raise UsageError(
            f"cluster is {name!r}; expected a column of the labels or of a table of by"
        )
    if weight is not None:
        raise UsageError("cluster cannot be combined with weight: give one of them")
    for test in settings.tests:
        check_clustered(test)
    return cuts._replace(cluster=name)
