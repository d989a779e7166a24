"""What a reader has to know where queries are too few for what a test promises."""

from statistics import median

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.differences import Settings
from rankmill.analysis.compare.differences.judgement import first_test
from rankmill.analysis.compare.differences.sums import Sums
from rankmill.analysis.statistics.significance import LEAST_EFFECTIVE

# With fewer queries, equal systems have p <= 0.05 in more than 7 % of comparisons
# (benchmarks/verdicts.py): with 10, bootstrap in up to 11 %, and bca in up to 17 %.
LEAST_RESAMPLED = {"bootstrap": 40, "bca": 150}
ROUGH_EFFECTIVE = 30
"""With weights or clusters that leave fewer effective ones, a t test is told to be rough."""

MANY_SLICES = 50
"""A note tells of more of one way to cut: they fill more than a screen, and corrected over all of
them the smallest p has to be below 0.001."""


def few_notes(state: ComparisonState, settings: Settings) -> list[str]:
    """Return a line for each promise that the number of queries does not let a test keep."""
    every = _slices(state)
    notes = []
    for name in settings.tests:
        least = LEAST_RESAMPLED.get(name, 0)
        count, what = _independent(state.whole)
        few = [f"{count:,} {what}"] if 0 < count < least else []
        slices = sum(_independent(one)[0] < least for one in every)
        if slices and name == first_test(settings).tests[0]:
            few.append(f"{slices:,} slices of fewer")
        if few:
            notes.append(
                f"with fewer than {least} {what} {name} finds differences that are none too "
                f"often, and here are {' and '.join(few)}: take t or randomization"
            )
    notes += cluster_notes(state, settings)
    effective = state.whole.effective
    if effective is not None and effective < LEAST_EFFECTIVE:
        notes.append(
            f"the weights leave {effective:.3g} effective queries: with fewer than "
            f"{LEAST_EFFECTIVE} there is no t test and no interval"
        )
    elif effective is not None and effective < ROUGH_EFFECTIVE:
        notes.append(
            f"the weights leave {effective:.3g} effective queries: with fewer than "
            f"{ROUGH_EFFECTIVE} intervals and the t test are rough, as a few queries decide"
        )
    slices = sum((one.effective or 0.0) < LEAST_EFFECTIVE for one in every)
    if effective is not None and slices:
        notes.append(
            f"{slices:,} slices have fewer than {LEAST_EFFECTIVE} effective queries, and so no t "
            "test and no interval"
        )
    for by, way in state.slices.items():
        if len(by) == 1 and len(way) > MANY_SLICES:
            middle = median(one.queries for one in way.values())
            notes.append(
                f"by {by[0]} there are {len(way):,} slices, with a median of {middle:,g} queries: "
                "among so many only large differences are shown, or chance ones if p is not "
                "corrected; cut by classes of its values, such as the most frequent and the rest"
            )
    return notes


def _slices(state: ComparisonState) -> list[Sums]:
    return [one for by, way in state.slices.items() if len(by) == 1 for one in way.values()]


def _independent(sums: Sums) -> tuple[int, str]:
    """Return how many independent draws there are, and what they are called."""
    if sums.clusters is None:
        return sums.queries, "queries"
    return sums.clusters.positive, "clusters"


def cluster_notes(state: ComparisonState, settings: Settings) -> list[str]:
    """Return a line where clusters are too few, by their effective number (Kish)."""
    mean = state.whole.clusters
    if mean is None or not mean.positive:
        return []
    counts = f"{mean.positive:,} clusters by {settings.cluster}"
    effective, notes = mean.effective or 0.0, []
    if mean.positive - effective >= 1:
        counts += f" of unequal size count as {effective:.3g} equal ones"
    if mean.positive < LEAST_EFFECTIVE:
        notes.append(f"{counts}: with fewer than {LEAST_EFFECTIVE} there is no test")
    elif effective < LEAST_EFFECTIVE:
        notes.append(
            f"{counts}: with fewer than {LEAST_EFFECTIVE} there is no interval and no test but "
            "randomization"
        )
    elif effective < ROUGH_EFFECTIVE:
        notes.append(
            f"{counts}: with fewer than {ROUGH_EFFECTIVE} intervals and tests are rough; take "
            "randomization"
        )
    pairs = [one.clusters for one in _slices(state)]
    few = sum(one is not None and (one.effective or 0.0) < LEAST_EFFECTIVE for one in pairs)
    if few:
        notes.append(
            f"{few:,} slices have fewer than {LEAST_EFFECTIVE} effective clusters, and so no "
            "interval and no test but randomization"
        )
    return notes
