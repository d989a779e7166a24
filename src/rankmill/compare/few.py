"""What a reader has to know where queries are too few for what a test promises."""

from rankmill.compare.differences import Settings
from rankmill.compare.judging import first_test
from rankmill.compare.significance import LEAST_EFFECTIVE
from rankmill.compare.state import ComparisonState

# With fewer queries, equal systems have p <= 0.05 in more than 7 % of comparisons
# (benchmarks/verdicts.py): with 10, bootstrap in up to 11 %, and bca in up to 17 %.
LEAST_RESAMPLED = {"bootstrap": 40, "bca": 150}
ROUGH_EFFECTIVE = 30
"""With weights that leave fewer effective queries, a t test is told to be rough."""


def few_notes(state: ComparisonState, settings: Settings) -> list[str]:
    """Return a line for each promise that the number of queries does not let a test keep."""
    every = [one for by, way in state.slices.items() if len(by) == 1 for one in way.values()]
    notes = []
    for name in settings.tests:
        least = LEAST_RESAMPLED.get(name, 0)
        few = [f"{state.whole.queries:,} queries"] if 0 < state.whole.queries < least else []
        slices = sum(one.queries < least for one in every)
        if slices and name == first_test(settings).tests[0]:
            few.append(f"{slices:,} slices of fewer")
        if few:
            notes.append(
                f"with fewer than {least} queries {name} finds differences that are none too "
                f"often, and here are {' and '.join(few)}: take t or randomization"
            )
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
    return notes
