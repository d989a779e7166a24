"""What tasks of Spark return, as rows of Arrow, without a Spark."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rankmill.errors import InputError
from rankmill.spark.exchange.typed_rows import Returned, RowFormat

KINDS = ["i8", "i4", "u1", "u8", "f8", "f4"]

pytestmark = pytest.mark.small


def there_and_back(row: dict[str, Any], like: dict[str, Any]) -> tuple[Returned, int]:
    form = RowFormat.of(like)
    batch = form.batch([Returned(3, "new", row, None, 5, 7)])
    (found,) = form.read(pa.Table.from_batches([batch]))
    return found, batch.nbytes


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_arrays_keep_their_bits(kind: str, data: st.DataObject) -> None:
    array = data.draw(arrays.arrays(kind, st.integers(0, 20)))
    found, _ = there_and_back({"x": array, "name": "a"}, {"x": np.zeros(0, kind), "name": ""})
    assert found.fields is not None
    back = found.fields["x"]
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.flags.aligned  # kernels are compiled for such arrays
    assert (found.partition, found.system, found.label_rows, found.rows) == (3, "new", 5, 7)
    assert found.fields["name"] == "a"


@pytest.mark.parametrize(
    ("values", "each"),
    [
        (np.full(1000, 127), 1),
        (np.full(1000, -129), 2),
        (np.full(1000, 1 << 15), 4),
        (np.full(1000, 1 << 31), 8),
        (np.full(1000, 0.5), 4),
        (np.full(1000, 0.1), 8),
        (np.full(1000, np.inf), 4),
        (np.full(1000, 1e300), 8),
    ],
)
def test_numbers_take_as_few_bytes_as_hold_them(values: np.ndarray, each: int) -> None:
    found, size = there_and_back({"x": values}, {"x": values[:0]})
    assert found.fields is not None
    np.testing.assert_array_equal(found.fields["x"], values)
    assert each * 1000 <= size < each * 1000 + 200


def test_an_error_is_a_row() -> None:
    form = RowFormat.of({"x": np.zeros(0)})
    batch = form.batch([Returned(2, error=InputError("a NaN"))])
    (found,) = form.read(pa.Table.from_batches([batch]))
    assert isinstance(found.error, InputError)
    assert (str(found.error), found.fields) == ("a NaN", None)
