"""What a comparison is asked: its systems, tests and slices, checked before anything is read."""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, NamedTuple

from rankmill.analysis.compare.cuts.cuts import Cuts, cuts_of
from rankmill.analysis.compare.differences.dependence import covariate_name, with_dependence
from rankmill.analysis.compare.differences.differences import Settings
from rankmill.analysis.compare.queries.alignment import check_names
from rankmill.analysis.statistics.corrections import CORRECTIONS
from rankmill.analysis.statistics.paired_differences import LARGEST
from rankmill.analysis.statistics.significance import TESTS, TUKEY, check_weighted
from rankmill.engine.evaluate import runs_of
from rankmill.engine.progress import Progress
from rankmill.engine.results import Results
from rankmill.errors import UsageError, positive, share
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.semantics.semantics import Counting
from rankmill.sources.input_options import MEMORY
from rankmill.sources.nouns import Catalogue, Labels, Predictions


@dataclass(frozen=True)
class Tests:
    """The tests of a comparison.

    Parameters
    ----------
    tests : str or iterable of str
        The names of tests; the first one decides the verdict.

        - "t": the paired t-test of the mean difference.
        - "randomization": the same question, by random signs of the differences; it assumes less.
        - "bootstrap", "bca": queries drawn with replacement; "bca" corrects its interval for bias
          and skewness.
        - "wilcoxon", "sign": signed ranks, and queries won and lost; neither asks about the mean.
        - "tukey": all pairs of three systems or more at once, by random permutations.

        ``rankmill docs comparing`` says which to take.
    correction : str
        How p-values are corrected over all metrics and systems: "holm", "bonferroni", "bh"
        (Benjamini and Hochberg) or "none".
    replicates, seed : int
        The number of random replicates of the tests that use them, and their seed.

    Examples
    --------
    >>> Tests("randomization", seed=7)
    Tests(tests='randomization', correction='holm', replicates=10000, seed=7)
    """

    __test__ = False  # pytest takes classes of this name for its own

    tests: str | Iterable[str] = ("t",)
    _: KW_ONLY
    correction: str = "holm"
    replicates: int = 10_000
    seed: int = 0


class CompareRequest(NamedTuple):
    """The arguments of `compare`, as they are given."""

    labels: Any
    runs: Any
    metrics: str | Iterable[str] = DEFAULT_METRICS
    baseline: str | None = None
    tests: str | Iterable[str] | Tests = ("t",)
    confidence: float = 0.95
    margin: float | None = None
    by: Any = ()
    worst_slices: int = 0
    moved: int = 0
    cluster: str | None = None
    adjust: Any = None
    all_pairs: bool = False
    semantics: Counting = "default"
    catalogue: Catalogue | None = None
    threads: int | None = None
    memory: int = MEMORY
    progress: Progress | bool | None = None


class CheckedComparison(NamedTuple):
    """How to compare: the checked options of `compare`."""

    runs: dict[str, Predictions]
    settings: Settings
    baseline: str
    cuts: Cuts

    @property
    def crossed(self) -> bool:
        """Whether slices of two ways to cut are needed."""
        return self.settings.worst_slices > 0

    @property
    def rows(self) -> bool:
        """Whether the values of all systems are needed, query by query."""
        return TUKEY in self.settings.tests


def check_systems(runs: Any) -> None:
    """Raise UsageError if these are not two systems or more."""
    if not isinstance(runs, Mapping) or len(runs) < 2:
        found = f"{len(runs)} of them" if isinstance(runs, Mapping) else f"a {type(runs).__name__}"
        raise UsageError(
            f"runs is {found}; expected a mapping of two systems or more to their predictions, "
            'such as {"old": ..., "new": ...}'
        )
    check_names(runs)


def settings_of(
    tests: Any,
    confidence: float,
    margin: float | None,
    moved: int,
    worst_slices: int,
    cluster: str | None = None,
    adjust: Any = None,
    all_pairs: bool = False,
) -> Settings:
    """Return the options of a comparison, checked."""
    one = tests if isinstance(tests, Tests) else Tests(tests)
    settings = Settings(
        _names(one.tests),
        one.correction,
        confidence,
        margin,
        moved,
        one.replicates,
        one.seed,
        worst_slices,
        cluster,
        covariate_name(adjust),
        all_pairs,
    )
    _check(settings)
    return settings


def asked_of(request: CompareRequest) -> CheckedComparison:
    """Check how to compare before anything is read."""
    if isinstance(request.labels, Results):
        systems: Mapping[str, Any] = request.labels
        weight = next((one.scope.weight for one in systems.values()), None)
    else:
        systems, weight = request.runs, Labels.of(request.labels).weight
    check_systems(systems)
    settings = settings_of(
        request.tests,
        request.confidence,
        request.margin,
        request.moved,
        request.worst_slices,
        request.cluster,
        request.adjust,
        request.all_pairs,
    )
    for name in settings.tests if weight is not None else ():
        check_weighted(name)
    base = baseline_of(systems, request.baseline)
    cuts = with_dependence(cuts_of(request.by), settings, request.adjust, weight)
    if settings.worst_slices and cuts == Cuts(cluster=cuts.cluster, adjust=cuts.adjust):
        raise UsageError("worst_slices needs a way to cut queries into slices: give by")
    runs = {} if request.runs is None else runs_of(request.runs)
    return CheckedComparison(runs, settings, base, cuts)


def baseline_of(runs: Mapping[str, Any], baseline: str | None) -> str:
    """Return the name of the system that others are compared with."""
    if baseline is not None and (not isinstance(baseline, str) or baseline not in runs):
        raise UsageError(f"there is no system {baseline!r}; expected one of {', '.join(runs)}")
    return next(iter(runs)) if baseline is None else baseline


def _names(tests: Any) -> tuple[str, ...]:
    if not isinstance(tests, Iterable):
        raise UsageError(f"tests is {tests!r}; expected names of tests: {', '.join(TESTS)}")
    several = [tests] if isinstance(tests, str) else list(tests)
    for test in several:
        _check_name("test", test, {**TESTS, TUKEY: None})
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
    for name in ("moved", "worst_slices"):
        if getattr(settings, name) != 0:
            positive(getattr(settings, name), name)
    positive(settings.replicates, "replicates")
    if settings.seed != 0:
        positive(settings.seed, "seed")


def _check_name(what: str, chosen: object, known: Mapping[str, object]) -> None:
    if not isinstance(chosen, str) or chosen not in known:
        raise UsageError(f"there is no {what} {chosen!r}; expected one of {', '.join(known)}")
