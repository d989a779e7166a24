"""Footers: they are read as pyarrow reads them, and a broken one does no harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import strategies
from rankmill import InputError
from rankmill.kernels import footers as fields
from rankmill.kernels.footers import CHUNK_FIELDS, ENCRYPTED, VALUES, parse_footer
from rankmill.sources.files.files import File
from rankmill.sources.files.footers import chunks_of, read_footer
from rankmill.sources.inputs.any_source import open_paths
from rankmill.sources.roles.source import InputOptions


@pytest.mark.parametrize("kind", [*strategies.INTEGER_TYPES, *strategies.STRING_TYPES], ids=str)
def test_footers_are_read_as_pyarrow_reads_them(tmp_path: Path, kind: pa.DataType) -> None:
    integers = pa.types.is_integer(kind)
    ids = [one for one in strategies.INTEGERS if strategies.fits(one, kind)]
    ids = sorted(ids) if integers else sorted(strategies.STRINGS, key=str.encode)
    lists = pa.array([[1, None]] * len(ids) * 20)
    path = tmp_path / "labels.parquet"
    table = pa.table({"other": lists, "q": strategies.array(ids * 20, kind), "items": lists})
    pq.write_table(table, path, row_group_size=7)
    metadata = pq.read_metadata(path)
    footer = read_footer(File(str(path), str(path)))
    chunks = [chunks_of(footer, name) for name in ("q", "items")]
    assert len(footer.groups) == metadata.num_row_groups
    for number, group in enumerate(footer.groups):
        of_group = metadata.row_group(number)
        assert group == [of_group.num_rows, of_group.total_byte_size]
        for place, found in zip((1, 2), chunks, strict=True):
            column = of_group.column(place)
            assert found[number][ENCRYPTED] == -1
            assert found[number][VALUES:] == [
                column.num_values,
                column.total_uncompressed_size,
                column.total_compressed_size,
            ]


def nested(length: int) -> dict[str, Any]:
    """Columns of every shape, each with a value or none in each row."""
    rows = range(length)
    place = pa.struct([("x", pa.int64()), ("y", pa.list_(pa.struct([("z", pa.string())])))])
    return {
        "place": pa.array([{"x": row, "y": [{"z": "a"}] * (row % 3)} for row in rows], place),
        "name.with.dots": pa.array(rows),
        "map": pa.array([[("k", row)] for row in rows], pa.map_(pa.string(), pa.int64())),
        "q": pa.array(rows),
        "list": pa.array([[row] * (row % 4) or None for row in rows]),
        "list.element": pa.array(rows),
        "nothing": pa.nulls(length),
        "flags": pa.array([[True, None]] * length),
        "pairs": pa.array([[row, row] for row in rows], pa.list_(pa.int32(), 2)),
        "dictionary": pa.array(["a"] * length).dictionary_encode(),
        "views": pa.array([["a"]] * length, pa.list_(pa.string_view())),
        "double": pa.array([[0.5] * 3] * length),
    }


@pytest.mark.parametrize("more", [{}, {"write_page_index": True, "data_page_version": "2.0"}])
def test_chunks_of_columns_of_every_shape(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table(nested(100)), path, row_group_size=30, **more)
    footer = read_footer(File(str(path), str(path)))
    metadata = pq.read_metadata(path)
    leaves = [metadata.schema.column(i).path for i in range(metadata.num_columns)]
    assert footer.groups == [
        [metadata.row_group(group).num_rows, metadata.row_group(group).total_byte_size]
        for group in range(4)
    ]
    for column in ("q", "name.with.dots", "list", "list.element", "nothing", "flags", "pairs",
                   "dictionary", "views", "double"):  # fmt: skip
        (leaf,) = (i for i, one in enumerate(leaves) if one in (column, f"{column}.list.element"))
        for group, said in enumerate(chunks_of(footer, column)):
            chunk = metadata.row_group(group).column(leaf)
            assert said[fields.VALUES] == chunk.num_values
            assert said[fields.COMPRESSED] == chunk.total_compressed_size
            assert said[fields.UNCOMPRESSED] == chunk.total_uncompressed_size


LISTS = {
    "list": pa.list_(pa.int64()),
    "large_list": pa.large_list(pa.int16()),
    "fixed_size_list": pa.list_(pa.int64(), 2),
    "list_view": pa.list_view(pa.int64()),
    "large_list_view": pa.large_list_view(pa.string()),
    "list of dictionary": pa.list_(pa.dictionary(pa.int16(), pa.string())),
}


@pytest.mark.parametrize("compliant", [True, False])
@pytest.mark.parametrize("name", LISTS)
def test_lists_of_every_type_are_counted_as_footers_count_them(
    tmp_path: Path, name: str, compliant: bool
) -> None:
    """With null lists, empty lists and null items, an error reports a wrong count."""
    kind = LISTS[name]
    one: Any = "a" if kind.value_type not in (pa.int64(), pa.int16()) else 1
    lists = [[[one] * 2, None, [None, one]], [[one], [], None, [None] * 3]][
        0 if name == "fixed_size_list" else 1
    ] * 50
    table = pa.table({"items": pa.array(lists, kind), "query_id": range(len(lists))})
    path = tmp_path / "p.parquet"
    for row_group in (7, 60, 1000):
        for version in ("1.0", "2.0"):
            options = {"row_group_size": row_group, "data_page_version": version}
            pq.write_table(table, path, use_compliant_nested_type=compliant, **options)
            source = open_paths([str(path)], InputOptions())
            batches = [batch.data for piece in source.pieces(["items"]) for batch in piece]
            assert [row for data in batches for row in data["items"].to_pylist()] == lists


@pytest.mark.long
def test_broken_footers_tell_nothing_or_something(tmp_path: Path) -> None:
    """No byte in a footer may end the process or keep it busy."""
    path = tmp_path / "labels.parquet"
    table = pa.table({"q": np.arange(30), "items": pa.array([[1, 2]] * 30)})
    pq.write_table(table, path, row_group_size=7)
    raw = path.read_bytes()
    size = int.from_bytes(raw[-8:-4], "little")
    draw = np.random.default_rng(0)
    refused: list[str] = []
    for place in range(len(raw) - 8 - size, len(raw)):
        broken = bytearray(raw)
        broken[place] = draw.integers(256)
        path.write_bytes(broken)
        try:
            footer = read_footer(File(str(path), str(path)))
            chunks_of(footer, "q"), chunks_of(footer, "items")
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > size // 5
    assert all("labels.parquet" in message for message in refused)
    for end in range(0, 200, 7):
        path.write_bytes(raw[:end])
        with pytest.raises(InputError, match="whole Parquet file"):
            read_footer(File(str(path), str(path)))


def parse(data: bytes) -> bool:
    shape = 3, 2, CHUNK_FIELDS
    chunks = np.full(shape, -1, np.int64)
    return parse_footer(
        np.frombuffer(data, np.uint8), np.full(3, -1, np.int64), chunks[0, :, :2].copy(), chunks
    )


def test_no_bytes_are_more_than_the_parser_can_bear() -> None:
    """Yield random bytes, footers that are cut off, and footers made deep, long or far away."""
    draw = np.random.default_rng(0)
    assert parse(b"\0")
    assert not parse(b"")
    for length in (1, 3, 10, 100, 1000):
        for _ in range(300):
            data = draw.integers(0, 256, length).astype(np.uint8)
            data[draw.random(length) < 0.5] &= 0x3F  # makes valid kinds more frequent
            parse(data.tobytes())
    far = b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
    for hostile in (
        b"\x1c" * 100_000,  # nested structures
        b"\x19" * 100_000,  # nested lists
        b"\x19\xfc" + far,  # a list of more structures than there are bytes
        b"\x1b\x01\x55\x00\x00\x00",  # a map
        b"\x18" + far,  # a string with as many bytes
        b"\x06" + far + b"\x00",  # a field with a huge number
        b"\x49\x4c" + b"\x16\x02\x00" * 4 + b"\x00",  # four row groups, with room for three
        b"\x4c\x0c\x09\x36\x02\x00\x00\x00",  # a structure instead of row groups, with a field -5
        b"\x16" + b"\x80" * 20,  # a number that does not end
        b"\x1e\x00",  # an unknown kind
        b"\x16\x80",  # a number, a structure, a double, and bytes that the end cuts off
        b"\x1c\x16\x02",
        b"\x17\x00\x00",
        b"\x18\x03ab",
    ):
        assert not parse(hostile)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (b"\xf7", bytes(8)),
        (b"\xf3", b"\x09"),
        (b"\xf9", b"\x31\x01\x02\x01"),  # a list of booleans
        (b"\xfa", b"\x26\x02\x80\x01"),  # a set of integers
        (b"\xf9", b"\xf5" + b"\x10" + bytes(16)),  # a list of 16, whose length is written in full
    ],
    ids=["double", "byte", "booleans", "set", "long list"],
)
def test_fields_that_no_footer_has_yet_are_passed_over(kind: bytes, value: bytes) -> None:
    """In a footer of a later version of the format, the known fields are read."""
    rows = np.full(3, -1, np.int64)
    chunks = np.full((1, 1, CHUNK_FIELDS), -1, np.int64)
    number_of_rows = b"\x06\x06\x0e"  # field 3, with its number written in full
    data = np.frombuffer(kind + value + number_of_rows + b"\x00", np.uint8)
    assert parse_footer(data, rows, chunks[0], chunks)
    assert rows.tolist() == [7, len(data) - 4, len(data)]
    assert not parse_footer(data[:-1], rows, chunks[0], chunks)
