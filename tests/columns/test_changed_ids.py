"""Ids that spreadsheets and pandas change: both ways to undo it agree."""

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankmill.columns.ids import other_forms, plain_ids

pytestmark = pytest.mark.small


@example(["1.0\n", "001.00", ".0", "0", ""])
@given(st.lists(st.one_of(st.text("0.1a\n"), st.text())))
def test_the_first_of_other_forms_is_the_plain_one(ids: list[str]) -> None:
    first, *others = other_forms([one.encode() for one in ids])
    assert first == [one.encode() for one in plain_ids(pa.array(ids, pa.string())).to_pylist()]
    assert len(others) == 41
