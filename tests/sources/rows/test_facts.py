"""Facts of queries: one value a query, read apart from the items, from every kind of labels."""

import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill.columns.ids import id_value
from rankmill.errors import InputError
from rankmill.sources.inputs.inputs import open_input
from rankmill.sources.rows.facts import read_facts
from rankmill.threads import Workers


def facts_of(value, wanted, **told):
    """Return {query: (value of each column)} as the reader finds it."""
    chosen = {"query": told.pop("query", None), "item": None}
    one = open_input(rankmill.Labels(value, binary=True, **chosen), facts=wanted, **told)
    try:
        with Workers(2) as workers:
            found = read_facts(one.source, one.columns, list(wanted), workers)
    finally:
        one.source.close()
    assert "unread" not in one.described() or not {*wanted} & {*one.described()["unread"]}
    columns = [column.to_pylist() for column in found.columns.values()]
    rows = zip(*columns, strict=True)
    ids = (id_value(found.queries, i) for i in range(len(found.queries.keys)))
    return dict(zip(ids, rows, strict=True))


def wide(count=100):
    draw = random.Random(4)
    return pa.table(
        {
            "query": [f"q{i}" for i in range(count)],
            "items": [[i] for i in range(count)],
            "country": [draw.choice(["de", "fr", None]) for _ in range(count)],
            "weight": [draw.random() for _ in range(count)],
        }
    )


def expected(table):
    columns = zip(table["country"].to_pylist(), table["weight"].to_pylist(), strict=True)
    return dict(zip(table["query"].to_pylist(), columns, strict=True))


WANTED = {"country": "segment", "weight": "number"}


def test_wide_labels_have_a_value_a_row():
    table = wide()
    assert facts_of(table, WANTED) == expected(table)


def test_the_query_is_a_fact_too(tmp_path):
    """As in --by user; pyarrow knows no column of this name twice."""
    table = pa.table({"user": [3, 3, 1], "item": [4, 5, 4]})
    pq.write_table(table, tmp_path / "labels.parquet")
    for value in (table, str(tmp_path / "labels.parquet")):
        assert facts_of(value, {"user": "segment"}) == {3: (3,), 1: (1,)}


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("encoded", [False, True])
def test_the_rows_of_a_query_of_long_labels_agree(scattered, encoded):
    table = wide()
    rows = np.repeat(np.arange(100), 3)
    if scattered:
        np.random.default_rng(0).shuffle(rows)
    long = table.set_column(1, "item", pa.array(range(100))).take(pa.array(rows))
    if encoded:
        long = long.set_column(2, "country", long["country"].dictionary_encode())
    assert facts_of(long, WANTED) == expected(table)
    broken = long["country"].to_pylist()
    at = max(i for i, row in enumerate(rows) if row == rows[0])
    was, broken[at] = broken[at], "it"
    long = long.set_column(2, "country", pa.array(broken))
    with pytest.raises(InputError, match=f"query 'q{rows[0]}' has {was!r} and 'it' in column"):
        facts_of(long, WANTED)


def test_files_and_streams_are_read_again(tmp_path):
    table = wide()
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    assert facts_of(str(tmp_path / "a.parquet"), WANTED) == expected(table)
    assert facts_of(table.to_reader(max_chunksize=7), WANTED) == expected(table)


def test_text_holds_segments_as_they_are_written(tmp_path):
    lines = ["user_id,item_id,zip,w"] + [f"{i},{i},{'007' if i % 2 else '8'},{i}" for i in range(9)]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found = facts_of(str(tmp_path / "a.csv"), {"zip": "segment", "w": "number"})
    assert found == {str(i): ("007" if i % 2 else "8", float(i)) for i in range(9)}


def test_a_column_that_cannot_be_a_fact_is_refused(tmp_path):
    table = wide()
    with pytest.raises(InputError, match=r"no column 'contry' for the slices; .* such as country"):
        facts_of(table, {"contry": "segment"})
    with pytest.raises(InputError, match=r"column 'country'\): found 'de'; expected a number"):
        facts_of(table, {"country": "number"})
    with pytest.raises(InputError, match=r"column 'items' holds list<.*expected a single value"):
        facts_of(table, {"items": "segment"})
    for name, one in {"a": table, "b": table.drop_columns("country")}.items():
        pq.write_table(one, tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: no column 'country' for the slices"):
        facts_of(str(tmp_path), WANTED)


def test_files_may_have_other_types_of_a_fact(tmp_path):
    for name, kind in {"a": pa.int32(), "b": pa.int64()}.items():
        part = pa.table({"query": [name], "items": [[1]], "age": pa.array([30], kind)})
        pq.write_table(part, tmp_path / f"{name}.parquet")
    assert facts_of(str(tmp_path), {"age": "segment"}) == {"a": (30,), "b": (30,)}
