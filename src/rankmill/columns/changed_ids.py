"""Ids that spreadsheets and pandas change: they take leading zeros, and add .0."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

KEEP_TEXT = "read with dtype=str, and save with no spreadsheet"
"""How ids stay as they are."""
_MOST_ZEROS = 20


def plain_ids(ids: Any) -> Any:
    """Return text without leading zeros, and without .0 at the end."""
    import pyarrow.compute as pc

    return pc.ascii_ltrim(pc.replace_substring_regex(ids, r"\.0+$", ""), characters="0")


def other_forms(ids: Any) -> Iterator[Any]:
    """Yield all ids with other zeros in front, and with or without .0 at the end."""
    import pyarrow.compute as pc

    plain = plain_ids(ids)
    empty = pa.scalar("", plain.type)
    for ending in (empty, pa.scalar(".0", plain.type)):
        for count in range(_MOST_ZEROS + 1):
            zeros = pa.scalar("0" * count, plain.type)
            yield pc.binary_join_element_wise(zeros, plain, ending, empty)
