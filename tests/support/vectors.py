"""What other tests share with those of features."""

from __future__ import annotations

from hypothesis import strategies as st

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 0.5, -3.25, 0.1, 1e-300, 2e300])


VECTORS = st.integers(1, 4).flatmap(
    lambda size: st.dictionaries(
        st.integers(0, 11), st.lists(NUMBERS, min_size=size, max_size=size), min_size=2
    )
)


def scaled(vector: list[float]) -> list[float]:
    """The same direction, at a size that the plain formula of the oracle can square."""
    largest = max(map(abs, vector)) or 1.0
    return [number / largest for number in vector]
