"""Files that contradict themselves or change give an error, never the rows of other queries."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from rankmill import InputError
from rankmill.sources.inputs.any_source import open_paths
from rankmill.sources.roles.source import BATCH_BYTES, BATCH_VALUES, InputOptions

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
    source = open_paths([str(path)], InputOptions())
    return pa.Table.from_batches(
        [batch.data for piece in source.pieces(columns) for batch in piece]
    )


def flips(raw: bytes, places: range, seed: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield the file with one bit flipped, for each of these bytes."""
    draw = np.random.default_rng(seed)
    for place in places:
        flipped = bytearray(raw)
        flipped[place] ^= 1 << int(draw.integers(8))
        yield place, bytes(flipped)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.long
def test_no_flipped_bit_moves_rows_of_other_row_groups(tmp_path: Path, version: str) -> None:
    """Row groups are read as one; values missing in one must not be taken from the next."""
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
    """The header of a page claims more values than the footer, and its last bytes have room."""
    rows = 50
    schema = pa.schema([pa.field("few", pa.int64(), nullable=False)])
    table = pa.table({"few": np.arange(2 * rows) % 4}, schema=schema)
    path = tmp_path / "p.parquet"
    pq.write_table(table, path, row_group_size=rows, compression="none")
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    raw = path.read_bytes()
    # In the header of a page, numbers are stored doubled (zigzag).
    page = raw[start:].replace(bytes([2 * rows]), bytes([2 * (rows + 4)]), 1)
    path.write_bytes(raw[:start] + page)
    assert pq.ParquetFile(path).read() != table, "without harm there is nothing to test"
    assert read(path, ["few"]).to_pydict() == table.to_pydict()


def test_a_footer_whose_row_groups_do_not_add_up(tmp_path: Path) -> None:
    table = dump(3 * ROW_GROUP).select(["query_id", "items"])
    path = tmp_path / "p.parquet"
    pq.write_table(table, path, row_group_size=ROW_GROUP, store_schema=False)
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
    """Batches read before the change are of the old file, and nothing of the new one is read."""
    old, new = dump(400), dump(400, seed=1)
    paths = tmp_path / "p.parquet", tmp_path / "new"
    for table, path in zip((old, new), paths, strict=True):
        pq.write_table(table, path, row_group_size=ROW_GROUP, compression="none")
    path = paths[0]
    source = open_paths([str(path)], InputOptions(batch=(ROW_GROUP, BATCH_VALUES, BATCH_BYTES)))
    pieces = source.pieces(["items"])
    assert len(pieces) == 10
    given = [next(piece) for piece in pieces[:batches]]
    change(path, paths[1].read_bytes())
    with pytest.raises(InputError, match=r"p\.parquet changed while it was read"):
        next(pieces[batches])
    if batches > 1:  # a second pass, as for gap
        with pytest.raises(InputError, match=r"p\.parquet changed while it was read"):
            next(source.pieces(["items"])[0])
    for piece in pieces:
        piece.close()
    found = pa.Table.from_batches(
        [batch.data for batch in given], pa.schema({"items": pa.list_(pa.int64())})
    )
    assert found["items"].to_pylist() == old["items"].to_pylist()[: batches * ROW_GROUP]


def test_the_second_look_of_gap_is_at_the_same_file(tmp_path: Path) -> None:
    """Confidences that do not fit are read again, and this fails if the file was replaced."""
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


# ------------------------------------------------------------------ lists beyond memory


def write_constant(path: Path, lengths: list[int]) -> None:
    """Write lists that repeat a single item, which take almost no bytes."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    items = pa.array(np.zeros(offsets[-1], np.int8))
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), items)
    pq.write_table(pa.table({"query_id": range(len(lengths)), "items": lists}), path)


def test_few_bytes_that_decode_to_many_items(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.parquet"
    monkeypatch.setattr("rankmill.sources.files.footers.LONGEST_LIST", 1 << 18)
    for lengths in ([1 << 20], [3 << 18] * 4, [0] * 500 + [1 << 23]):
        write_constant(path, lengths)
        assert path.stat().st_size < 5000
        for call in (rankmill.evaluate, rankmill.plan):
            with pytest.raises(InputError, match=r"p\.parquet: .* may hold 262144 values") as told:
                call(path, path)
            assert f"{sum(lengths) + lengths.count(0)} values of" in str(told.value)
    write_constant(path, [1 << 18] * 8)  # long, but one can be read at a time
    batches = [
        batch
        for piece in open_paths([str(path)], InputOptions()).pieces(["items"])
        for batch in piece
    ]
    assert [batch.data.num_rows for batch in batches] == [4] * 2


def test_batches_are_bounded_in_values(tmp_path: Path) -> None:
    """The same holds for files whose first lists are short, and for joined row groups."""
    path = tmp_path / "p.parquet"
    lengths = [1] * 200 + [50_000] * 200
    write_constant(path, lengths)
    table = pq.read_table(path)
    for row_group in (400, 200, 10):
        pq.write_table(table, path, row_group_size=row_group)
        batches = [
            batch.data
            for piece in open_paths([str(path)], InputOptions()).pieces(["items"])
            for batch in piece
        ]
        assert max(len(batch["items"].flatten()) for batch in batches) <= 2 << 20
        assert (
            pa.Table.from_batches(batches)["items"]
            .combine_chunks()
            .equals(table["items"].combine_chunks())
        )


# ------------------------------------------------------------------ files that crash pyarrow


@pytest.fixture
def encrypted(tmp_path: Path) -> Callable[[dict[str, list[str]]], Path]:
    """A file with a plain footer and some columns encrypted."""
    encryption = pytest.importorskip("pyarrow.parquet.encryption")

    class Keys(encryption.KmsClient):
        def __init__(self, _: Any) -> None:
            super().__init__()

        def wrap_key(self, key: bytes, name: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, wrapped: bytes, name: str) -> bytes:
            return base64.b64decode(wrapped)

    def write(column_keys: dict[str, list[str]]) -> Path:
        factory = encryption.CryptoFactory(Keys)
        properties = factory.file_encryption_properties(
            encryption.KmsConnectionConfig(),
            encryption.EncryptionConfiguration(
                footer_key="footer", column_keys=column_keys, plaintext_footer=True
            ),
        )
        table = pa.table({"query_id": [1, 2], "items": [[5], [6]], "secret": [0.5, 0.6]})
        path = tmp_path / "encrypted.parquet"
        with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)
        return path

    return write


def test_an_encrypted_column_that_is_not_needed(encrypted: Any, run_cli: Any) -> None:
    path = encrypted({"column": ["secret"]})
    assert rankmill.evaluate(path, path, ["map"])["map"] == 1.0
    assert run_cli("evaluate", path, path, "--plan").exit_code == 0


@pytest.mark.parametrize(
    ("encrypted_column", "named"), [("query_id", "query_id"), ("items.list.element", "items")]
)
def test_an_encrypted_column_that_is_needed(
    encrypted: Any, run_cli: Any, encrypted_column: str, named: str
) -> None:
    path = encrypted({"column": [encrypted_column]})
    for more in ([], ["--plan"]):
        outcome = run_cli("evaluate", path, path, "-m", "map", *more)
        assert outcome.exit_code == 3
        assert f"encrypted.parquet: column '{named}' is encrypted" in outcome.stderr


FLIPPED = """
import sys, rankmill
path, labels = sys.argv[1:]
raw = open(path, "rb").read()
start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
told = 0
for place in range(start, len(raw)):
    flipped = bytearray(raw)
    flipped[place] ^= 1 << place % 8
    with open(path, "wb") as file:
        file.write(flipped)
    try:
        rankmill.plan(labels, path, ["map"])
    except rankmill.InputError:
        told += 1
print(told)
"""


@pytest.mark.long
def test_a_plan_of_any_footer(tmp_path: Path) -> None:
    """In a process of its own, which pyarrow might end."""
    labels, path = tmp_path / "labels.parquet", tmp_path / "p.parquet"
    for one in (labels, path):
        pq.write_table(dump(9), one, row_group_size=3, store_schema=False)
    done = subprocess.run(
        [sys.executable, "-c", FLIPPED, str(path), str(labels)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 100


MANY_FILES = """
import resource, sys, rankmill
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
print(rankmill.evaluate(sys.argv[1], sys.argv[1], ["map"], threads=2)["map"])
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of open files")
def test_more_files_than_may_be_open(tmp_path: Path) -> None:
    for part in range(100):
        pq.write_table(pa.table({"query_id": [part], "items": [[1]]}), tmp_path / f"{part}.parquet")
    command = [sys.executable, "-c", MANY_FILES, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "1.0\n")
