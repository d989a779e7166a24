"""Ids of every type as integers or texts."""

import pyarrow as pa
import pytest

import rankmill
from rankmill import InputError

NO_BREAK = "\N{NO-BREAK SPACE}"
LABELS = pa.table({"query_id": ["a"], "item_id": ["x"]})


@pytest.mark.small
@pytest.mark.parametrize("beside", ["y", " y", "nan"])
def test_what_is_trimmed_does_not_depend_on_the_rows_beside(beside: str) -> None:
    rows = pa.table({"query_id": ["a", "a"], "item_id": [beside, f"x{NO_BREAK}"], "rank": [1, 2]})
    assert rankmill.evaluate(LABELS, rows, "map")["map"] == 0


@pytest.mark.small
def test_nothing_is_told_of_what_was_not_found() -> None:
    rows = pa.table({"query_id": ["a"], "item_id": [" x"], "rank": [1]})
    result = rankmill.evaluate(LABELS, rows, "map")
    assert result["map"] == 1
    assert len(result.notes) == 1
    assert "1 ids of 'item_id' have blanks around them, such as ' x'" in result.notes[0]


@pytest.mark.small
@pytest.mark.parametrize("exact", [False, True])
def test_a_query_is_named_as_its_id_is_read(exact: bool) -> None:
    padded = pa.table({"query_id": [" a\n"], "items": [["x"]]})
    labels = rankmill.Labels(padded, exact_ids=exact)
    predictions = rankmill.Predictions(padded, exact_ids=exact)
    found = rankmill.explain(labels, predictions, "map", " a\n")
    assert (found.query, found.value) == (" a\n" if exact else "a", 1)


@pytest.mark.small
def test_a_name_may_hold_braces() -> None:
    rows = pa.table({"query_id": ["a"], "{item}": [" x"], "rank": [1]})
    result = rankmill.evaluate(LABELS, rankmill.Predictions(rows, item="{item}"), "map")
    assert "1 ids of '{item}' have blanks around them, such as ' x'" in result.notes[0]


@pytest.mark.parametrize("name", ["query_id", "item_id"])
def test_intervals_are_no_ids(name: str) -> None:
    rows = {"query_id": [1], "item_id": [1]}
    intervals = pa.array([pa.MonthDayNano([1, 2, 3])])
    with pytest.raises(InputError, match=f"{name}.* holds month_day_nano_interval; ids are int"):
        rankmill.evaluate(pa.table(rows), pa.table(rows | {name: intervals}), "map")
