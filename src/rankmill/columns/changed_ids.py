"""Ids that spreadsheets and pandas change: they take leading zeros, and add .0."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

KEEP_TEXT = "read with dtype=str, and don't save it from a spreadsheet"
"""How ids stay as they are."""
_MOST_ZEROS = 20


def plain_ids(ids: Any) -> Any:
    """Return text without leading zeros, and without .0 at the end."""
    import pyarrow.compute as pc

    return pc.ascii_ltrim(pc.replace_substring_regex(ids, r"\.0+$", ""), characters="0")


def other_forms(ids: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield all ids with other zeros in front, with or without .0 at the end; the plain ones first.

    A run of a million queries should not wait for the import of the functions of `plain_ids`.
    """
    plain = [re.sub(rb"\.0+\Z", b"", one).lstrip(b"0") for one in ids]
    for ending in (b"", b".0"):
        for count in range(_MOST_ZEROS + 1):
            yield [b"0" * count + one + ending for one in plain]
