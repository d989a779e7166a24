"""Convert numbers of any Arrow type to floats."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import numbers_of, validity_of
from rankmill.errors import InputError


def floats_of(numbers: Any) -> np.ndarray:
    """Numbers of any Arrow type as float32 or float64; a null becomes NaN."""
    kind = numbers.type
    if kinds.is_decimal(kind):  # through text, because Arrow rounds other casts more than once
        numbers = numbers.cast(pa.string()).cast(pa.float64())
        kind = numbers.type
    if kinds.is_float16(kind):
        numbers = numbers.cast(pa.float32())
    if kinds.is_null(kind):
        return np.full(len(numbers), math.nan)
    if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
        raise InputError(f"it holds {kind}; expected numbers")
    if not kinds.is_integer(kind):
        return numbers_of(numbers, null=math.nan)
    integers = numbers_of(numbers, null=0)
    floats = integers.astype(np.float64)
    # For 64-bit integers the limit rounds to 2**63 or 2**64, which is beyond the integer type.
    limit = float(np.iinfo(integers.dtype).max)
    inexact = (floats >= limit) if limit > 2**53 else np.zeros(len(floats), np.bool_)
    inexact |= np.where(inexact, 0, floats).astype(integers.dtype) != np.where(inexact, 0, integers)
    if inexact.any():
        raise InputError(
            f"the number {integers[int(inexact.argmax())]} has no float64 of the same value; cast "
            "the column to double first if rounding does no harm"
        )
    if numbers.null_count:
        floats[~validity_of(numbers)] = math.nan
    return floats
