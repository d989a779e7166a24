"""What other tests share with those of item groups."""

from __future__ import annotations

from hypothesis import strategies as st

GROUPS = st.dictionaries(
    st.integers(0, 11), st.sets(st.sampled_from(["x", "y", "z", "w"])), min_size=2
)
