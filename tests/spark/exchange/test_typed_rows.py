"""What tasks of Spark return, as rows of Arrow, without a Spark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rankmill.errors import InputError
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.registry import parse
from rankmill.spark.exchange.returned_rows import (
    Returned,
    batch_of,
    merged_rows,
    packed,
    read_returned,
    unpacked,
)

KINDS = ["i8", "i4", "u1", "u8", "f8", "f4"]

pytestmark = pytest.mark.small


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_arrays_keep_their_bits(kind: str, data: st.DataObject) -> None:
    array = data.draw(arrays.arrays(kind, st.integers(0, 80)))
    back = unpacked(packed(array))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()
    assert back.flags.aligned  # kernels are compiled for such arrays
    assert back.flags.writeable


@pytest.mark.parametrize(
    ("values", "each"),
    [
        (np.full(1000, 127), 1),
        (np.full(1000, -129), 2),
        (np.full(1000, 1 << 15), 2),
        (np.full(1000, 1 << 31), 4),
        (np.append(np.full(999, 1 << 31), -1), 8),
        (np.full(1000, 0.5), 4),
        (np.full(1000, 0.1), 8),
        (np.full(1000, np.inf), 4),
        (np.full(1000, 1e300), 8),
    ],
)
def test_numbers_take_as_few_bytes_as_hold_them(values: np.ndarray, each: int) -> None:
    data = packed(values)
    np.testing.assert_array_equal(unpacked(data), values)
    assert each * 1000 <= len(data) < each * 1000 + 200


def there_and_back(*returned: Returned) -> list[Returned]:
    return [*read_returned(batch_of(returned))]


def test_what_a_task_returns_is_a_row() -> None:
    one = Returned(3, "new", {"map": Mean(), "metric": parse("map(rel=2)@12")}, None, 5, 7)
    assert there_and_back(one) == [one]
    (failed,) = there_and_back(Returned(2, error=InputError("a NaN")))
    assert isinstance(failed.error, InputError)
    assert (str(failed.error), failed.value) == ("a NaN", None)


def test_rows_merge_by_system_and_an_error_stands_alone() -> None:
    rows = [Returned(n, name, Mean(), None, n, 1) for n in range(3) for name in ("a", "b")]
    found = merged_rows(rows, 9)
    assert [(one.partition, one.system, one.label_rows, one.rows) for one in found] == [
        (9, "a", 3, 3),
        (9, "b", 3, 3),
    ]
    errors = [Returned(n, error=InputError(f"of {n}")) for n in (7, 5, 6)]
    (failed,) = merged_rows([*rows[:2], *errors, *rows[2:]], 9)
    assert (failed.partition, str(failed.error)) == (5, "of 5")


def test_a_partition_that_is_there_twice_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="twice"):
        merged_rows([Returned(1, "a", Mean()), Returned(1, "a", Mean())], 0)
