"""Ids that spreadsheets and pandas change: they take leading zeros, and add .0."""

import re
from collections.abc import Iterable, Iterator
from typing import Any

KEEP_TEXT = "read with dtype=str, and save with no spreadsheet"
"""How ids stay as they are."""
_MOST_ZEROS = 20


def plain_ids(ids: Any) -> Any:
    """Return text without leading zeros, and without .0 at the end."""
    import pyarrow.compute as pc

    return pc.ascii_ltrim(pc.replace_substring_regex(ids, r"\.0+$", ""), characters="0")


def other_forms(ids: Iterable[str]) -> Iterator[list[str]]:
    """Yield all ids with other zeros in front, and with or without .0 at the end.

    Arrow would do this with functions whose import takes longer than a run of a million queries.
    """
    plain = [re.sub(r"\.0+$", "", one).lstrip("0") for one in ids]
    for ending in ("", ".0"):
        for count in range(_MOST_ZEROS + 1):
            yield ["0" * count + one + ending for one in plain]
