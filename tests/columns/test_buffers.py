"""Arrow arrays of NumPy arrays and of Python values: the same as pyarrow makes."""

import numpy as np
import pyarrow as pa
import pytest

from rankmill.columns.buffers import array_of_values, arrow_of

pytestmark = pytest.mark.small

DTYPES = [*"bhilqBHILQefd?", ">i4", ">f8", ">u2"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [0, 1, 8, 9, 70])
def test_numbers_become_the_array_that_pyarrow_makes(dtype: str, count: int) -> None:
    generator = np.random.default_rng(count)
    numbers = generator.integers(0, 2, 2 * count).astype(dtype)
    native = np.dtype(dtype).newbyteorder("=")
    for given in (numbers, numbers[::2], numbers[::-1]):
        for missing in (None, generator.random(len(given)) < 0.5, np.ones(len(given), np.bool_)):
            found = arrow_of(given, missing)
            found.validate(full=True)
            wanted = pa.array(given.astype(native), mask=missing)
            assert found.equals(wanted)
            assert found.null_count == wanted.null_count


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", None, "", "é"], pa.string()),
        ([b"a", None, b"", b"\xff"], pa.binary()),
        ([1, None, -1], pa.int64()),
        ([[], None, ["a", None]], pa.list_(pa.string())),
        ([], pa.string()),
    ],
)
def test_values_become_the_array_that_pyarrow_makes(
    values: list[object], kind: pa.DataType
) -> None:
    found = array_of_values(values, kind)
    found.validate(full=True)
    assert found.equals(pa.array(values, kind))
