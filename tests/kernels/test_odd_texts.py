"""Texts that may not be meant as they stand are found, and no others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rankmill.columns.ids import text_places
from rankmill.kernels.odd_texts import first_odd
from rankmill.sources.meaning.looks import MISSING

pytestmark = pytest.mark.small

PLAIN = [
    "a",
    "a b",
    "a\xa0b",
    "northern",
    "007",
    "é",
    "あ",
    "Ἀ",
    "、。",
    "e\u0301",
    "\u2013",
    "\xa1",
]
BLANKS = ["\xa0", "\u2000", "\u200b", "\u202f", "\u3000", "\ufeff"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()])
@pytest.mark.parametrize(
    "odd", [*MISSING, " a", "a\t", "a\n", "\0", *BLANKS, *(f"é{one}" for one in BLANKS), "\xa0a"]
)
def test_the_first_odd_text_is_found(odd: str, kind: pa.DataType) -> None:
    for place in (0, 3, len(PLAIN)):
        texts = [*PLAIN[:place], odd, *PLAIN[place:], odd]
        array = pa.array(["x", *texts], pa.string()).cast(kind).slice(1)
        assert first_odd(*text_places(array)) == place
    assert first_odd(*text_places(pa.array(PLAIN, pa.string()).cast(kind))) == -1


def test_nothing_is_read_outside_of_the_data() -> None:
    """Such offsets are an error of the code that reads all ids."""
    data = np.frombuffer(b"ab", np.uint8)
    for start, end in ((0, 3), (-1, 1), (2, 1), (3, 3)):
        assert first_odd(np.array([start]), np.array([end]), data) == -1
