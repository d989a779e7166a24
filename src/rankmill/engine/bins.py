"""Bins of a column of numbers or dates, so that it cuts queries into few slices."""

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from rankmill.columns.buffers import numbers_of, pc
from rankmill.errors import InputError

# What dates are cut by -> how many characters of a date as text tell it.
PERIODS = {"year": 4, "month": 7, "day": 10}
MOST_BINS = 100
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def bins_of(text: str) -> tuple[str, str]:
    """Return the column, and its bins or "", that a text such as "age:4" names.

    Examples
    --------
    >>> bins_of("age:4"), bins_of("signup:month"), bins_of("country"), bins_of("a:b")
    (('age', '4'), ('signup', 'month'), ('country', ''), ('a:b', ''))
    """
    name, _, bins = text.rpartition(":")
    wanted = bins in PERIODS or (bins.isdecimal() and 2 <= int(bins) <= MOST_BINS)
    return (name, bins) if name and wanted else (text, "")


def binned(column: Any, bins: str, where: str = "by") -> Any:
    """Return the bin of each value of an Arrow array as text: a period of dates, or a range.

    Ranges hold about equally many of the values, and equal values are in one range.

    Raises InputError, which says `where`, if the values are no dates or no numbers.

    Examples
    --------
    >>> binned(pa.array([3, 1, None, 2, 9]), "2").to_pylist()
    ['3..9', '1..2', None, '1..2', '3..9']
    """
    column = column.dictionary_decode() if kinds.is_dictionary(column.type) else column
    if bins in PERIODS:
        texts = column.cast(pa.string())
        strange = next((one for one in texts.to_pylist() if one and not _DATE.match(one)), None)
        if strange is not None:
            raise InputError(
                f"{where}: {strange!r} is not a date such as 2026-01-31, to be cut by {bins}"
            )
        return pc.utf8_slice_codeunits(texts, 0, PERIODS[bins])
    try:
        numbers = numbers_of(column.cast(pa.float64()), null=np.nan)
    except pa.ArrowException:
        kind = "dates: cut them by year, month or day" if pa.types.is_temporal(column.type) else ""
        raise InputError(
            f"{where} holds {kind or 'no numbers, to be cut into ' + bins + ' groups'}"
        ) from None
    known = np.flatnonzero(~np.isnan(numbers))
    if not len(known):
        return pa.nulls(len(column), pa.string())
    shares = np.arange(1, int(bins)) / int(bins)
    starts = np.unique(np.quantile(numbers[known], shares, method="inverted_cdf"))
    codes = np.searchsorted(starts, numbers, side="left")
    texts = np.full(len(column), None, object)
    for code in np.unique(codes[known]):
        of_bin = known[codes[known] == code]
        low, high = (f"{end(numbers[of_bin]):.15g}" for end in (np.min, np.max))
        texts[of_bin] = low if low == high else f"{low}..{high}"
    return pa.array(texts, pa.string())
