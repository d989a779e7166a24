"""Files that contradict themselves or change: an error, and never the rows of other queries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill import InputError
from rankmill.sources.parquet import open_parquet

ROW_GROUP = 40


def dump(rows: int, seed: int = 0) -> pa.Table:
    """Lists of 0 to 6 items, some null, and a query id that has few values."""
    draw = np.random.default_rng(seed)
    lists = [
        None if length == 7 else draw.integers(0, 50, length).tolist()
        for length in draw.integers(0, 8, rows)
    ]
    few = pa.array(draw.integers(0, 30, rows))
    return pa.table({"query_id": range(rows), "items": pa.array(lists), "few": few})


def read(path: Path, columns: list[str]) -> pa.Table:
    """All rows, as an evaluation reads them."""
    source = open_parquet([str(path)], "p")
    return pa.Table.from_batches(
        [batch.data for piece in source.pieces(columns) for batch in piece]
    )


def flips(raw: bytes, places: range, seed: int = 0) -> Iterator[tuple[int, bytes]]:
    """The file with one bit flipped, for each of these bytes."""
    draw = np.random.default_rng(seed)
    for place in places:
        flipped = bytearray(raw)
        flipped[place] ^= 1 << int(draw.integers(8))
        yield place, bytes(flipped)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_no_flipped_bit_moves_rows_of_other_row_groups(tmp_path: Path, version: str) -> None:
    """Row groups that are read as one: what one of them lacks is not taken from the next."""
    table = dump(5 * ROW_GROUP)
    path = tmp_path / "p.parquet"
    options = {"row_group_size": ROW_GROUP, "data_page_version": version}
    pq.write_table(table, path, compression="none", **options)
    raw = path.read_bytes()
    chunk = pq.read_metadata(path).row_group(1).column(0)
    others = np.delete(np.arange(len(table)), slice(0, ROW_GROUP))
    refused: list[str] = []
    changed = 0
    for place, flipped in flips(raw, range(4, chunk.dictionary_page_offset, 4)):
        path.write_bytes(flipped)
        try:
            found = read(path, table.column_names)
        except InputError as error:
            refused.append(str(error))
        else:
            changed += not found.equals(table)
            assert found.take(others).equals(table.take(others)), f"byte {place}"
    assert len(refused) > 20
    assert all("p.parquet is broken: row group 0" in message for message in refused)
    assert changed > 10


def test_values_beyond_those_of_the_footer_are_not_read(tmp_path: Path) -> None:
    """A page that says to hold some values more, which its last bytes have room for."""
    rows = 50
    schema = pa.schema([pa.field("few", pa.int64(), nullable=False)])
    table = pa.table({"few": np.arange(2 * rows) % 4}, schema=schema)
    path = tmp_path / "p.parquet"
    pq.write_table(table, path, row_group_size=rows, compression="none")
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    raw = path.read_bytes()
    # In the header of a page numbers are written twice as large.
    page = raw[start:].replace(bytes([2 * rows]), bytes([2 * (rows + 4)]), 1)
    path.write_bytes(raw[:start] + page)
    assert pq.ParquetFile(path).read() != table, "without harm there is nothing to test"
    assert read(path, ["few"]).to_pydict() == table.to_pydict()


def test_a_footer_whose_row_groups_do_not_add_up(tmp_path: Path) -> None:
    table = dump(9 * ROW_GROUP)
    path = tmp_path / "p.parquet"
    pq.write_table(table, path, row_group_size=ROW_GROUP)
    raw = path.read_bytes()
    size = int.from_bytes(raw[-8:-4], "little")
    seen = set()
    for _, flipped in flips(raw, range(len(raw) - 8 - size, len(raw) - 8), seed=2):
        path.write_bytes(flipped)
        try:
            metadata = pq.read_metadata(path)
        except (pa.ArrowException, OSError, ValueError):
            continue
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if sum(groups) == metadata.num_rows and min(groups, default=0) >= 0:
            continue
        with pytest.raises(InputError, match=r"p\.parquet") as caught:
            rankmill.evaluate(path, path, ["map"])
        numbers = set(map(int, re.findall(r"-?\d+", str(caught.value))))
        assert {metadata.num_rows, sum(groups)} <= numbers, caught.value
        seen.add(min(groups) < 0)
    assert seen == {False, True}, "too few flips hit a number of rows"


# ------------------------------------------------------------------ files that change


def replaced(path: Path, new: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(new)
    os.replace(other, path)


def overwritten(path: Path, new: bytes) -> None:
    path.write_bytes(new)


def removed(path: Path, new: bytes) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [replaced, overwritten, removed])
@pytest.mark.parametrize("batches", [0, 1, 5])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, change: Any, batches: int) -> None:
    """What was read before is of the old file; nothing of the new one is given out."""
    old, new = dump(400), dump(400, seed=1)
    paths = tmp_path / "p.parquet", tmp_path / "new"
    for table, path in zip((old, new), paths, strict=True):
        pq.write_table(table, path, row_group_size=ROW_GROUP, compression="none")
    path = paths[0]
    source = open_parquet([str(path)], "p")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankmill.sources.parquet.BATCH_ROWS", ROW_GROUP)
        pieces = source.pieces(["items"])
    assert len(pieces) == 10
    given = [next(piece) for piece in pieces[:batches]]
    change(path, paths[1].read_bytes())
    with pytest.raises(InputError, match=r"p\.parquet changed while it was read"):
        next(pieces[batches])
    if batches > 1:  # another look, as for gap
        with pytest.raises(InputError, match=r"p\.parquet changed while it was read"):
            next(source.pieces(["items"])[0])
    for piece in pieces:
        piece.close()
    found = pa.Table.from_batches(
        [batch.data for batch in given], pa.schema({"items": pa.list_(pa.int64())})
    )
    assert found["items"].to_pylist() == old["items"].to_pylist()[: batches * ROW_GROUP]


def test_the_second_look_of_gap_is_at_the_same_file(tmp_path: Path) -> None:
    """Confidences that do not fit are read once more: as long as they are the same."""
    table = pa.table({"query_id": range(200), "items": [[1]] * 200, "score": [[0.5]] * 200})
    labels, path, other = (tmp_path / name for name in ("labels", "predictions", "other"))
    for one in (labels, path, other):
        pq.write_table(table, one)

    def replace(done: int, rows: int | None) -> None:
        if done == rows and other.exists():
            os.replace(other, path)

    with pytest.raises(InputError, match="predictions changed while it was read"):
        rankmill.evaluate(labels, path, ["gap"], memory=100, progress=replace)
    assert not other.exists()
