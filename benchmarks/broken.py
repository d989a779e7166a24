"""The cases of ``hostile.py``: random pairs of small files, one of which is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

QUERIES = 60
ITEMS = 25
LONGEST = 8
SIDES = ("labels", "predictions")

#: How often each kind of damage is drawn. Files without damage must be scored, which shows that the
#: other files would be scored without their damage. A truncated file is usually refused at once.
DAMAGES = {
    "none": 1,
    "flip": 4,
    "flip in footer": 5,
    "cut": 1,
    "splice bytes": 3,
    "splice page": 5,
    "splice footer": 2,
}
COMMANDS = {"evaluate": 2, "plan": 1, "explain": 1}


@dataclass(frozen=True)
class Layout:
    """How a file is written."""

    long: bool
    codec: str
    page_version: str
    checksums: bool
    dictionaries: bool
    statistics: bool
    arrow_schema: bool
    group_rows: int
    page_bytes: int

    def write(self, table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(
            table,
            sink,
            compression=self.codec,
            data_page_version=self.page_version,
            write_page_checksum=self.checksums,
            use_dictionary=self.dictionaries,
            write_statistics=self.statistics,
            store_schema=self.arrow_schema,
            row_group_size=self.group_rows,
            data_page_size=self.page_bytes,
            write_batch_size=16,  # a page can end only at the end of a batch
        )
        return sink.getvalue().to_pybytes()


CHOICES: dict[str, tuple[Any, ...]] = {
    "long": (False, True),
    "codec": ("none", "snappy", "gzip", "zstd", "brotli", "lz4"),
    "page_version": ("1.0", "2.0"),
    "checksums": (False, True),
    "dictionaries": (False, True),
    "statistics": (False, True),
    "arrow_schema": (False, True),
    "group_rows": (7, 20, 64, 1000),
    "page_bytes": (64, 1 << 20),
}


class Case(NamedTuple):
    """Two files, one of them damaged, and what is done with them."""

    command: str
    damage: str
    side: str
    layouts: dict[str, Layout]
    columns: dict[str, list[str]]
    files: dict[str, bytes]
    options: list[str]
    query: int | str


def made(seed: int, number: int) -> Case:
    """One case of a campaign; the same numbers give the same case."""
    draw = np.random.default_rng([seed, number])
    strings, in_order = draw.random(2) < 0.5
    layouts = {side: some_layout(draw) for side in SIDES}
    tables = {side: some_table(draw, layouts[side].long, side, strings, in_order) for side in SIDES}
    files = {side: layouts[side].write(tables[side]) for side in SIDES}
    damage, side = one_of(draw, DAMAGES), SIDES[draw.integers(2)]
    # The donor has other rows but usually the same layout. Its pages then fit the damaged file.
    layout = layouts[side] if draw.random() < 0.75 else some_layout(draw)
    donor = layout.write(some_table(draw, layout.long, side, strings, in_order))
    files[side] = damaged(draw, damage, files[side], donor)
    options = ["--threads", str(draw.integers(1, 3))]
    # Little memory: gap makes two passes, scattered rows go to disk, labels are read by ranges.
    if draw.random() < 0.3:
        options += ["--memory", "1kB"]
    return Case(
        one_of(draw, COMMANDS),
        damage,
        side,
        layouts,
        {side: tables[side].column_names for side in SIDES},
        files,
        options,
        draw.choice(tables["predictions"]["user_id"].to_pylist()).item(),
    )


def one_of(draw: np.random.Generator, weights: dict[str, int]) -> str:
    shares = np.array(list(weights.values())) / sum(weights.values())
    return list(weights)[draw.choice(len(weights), p=shares)]


def some_layout(draw: np.random.Generator) -> Layout:
    chosen = {name: values[draw.integers(len(values))] for name, values in CHOICES.items()}
    return Layout(**chosen)


def query_id(number: int, strings: bool) -> int | str:
    return f"user {number:03}" if strings else number * 3 + 1000


def some_table(
    draw: np.random.Generator, long: bool, side: str, strings: bool, in_order: bool
) -> pa.Table:
    """Lists of most queries, some empty, some items null; long rows with or without ranks."""
    queries = np.delete(np.arange(QUERIES), draw.integers(0, QUERIES, 3))
    if not in_order:
        draw.shuffle(queries)
    shape = (len(queries), LONGEST)
    items = draw.integers(0, ITEMS, shape).astype(object)
    if strings:
        items = np.array([f"item-{item}" for item in items.flat], object).reshape(shape)
    items[draw.random(shape) < 0.02] = None
    numbers = np.sort(draw.integers(1, 1000, shape) / 8)[:, ::-1]  # multiples of 1 / 8 are exact
    counts = draw.integers(0, LONGEST, len(queries)).tolist()
    ids = [query_id(query, strings) for query in queries.tolist()]
    name = "gain" if side == "labels" else "score"
    if not long:
        lists = {
            column: [row[:count] for row, count in zip(values.tolist(), counts, strict=True)]
            for column, values in (("items", items), (name, numbers))
        }
        return pa.table({"user_id": ids, **lists})
    rows = [
        (query, item, number, rank)
        for query, count, *values in zip(ids, counts, items.tolist(), numbers.tolist(), strict=True)
        for rank, item, number in zip(range(1, count + 1), *values, strict=False)
    ]
    if not in_order and draw.random() < 0.5:
        rows = [rows[place] for place in draw.permutation(len(rows))]
    columns = dict(zip(("user_id", "item_id", name, "rank"), zip(*rows, strict=True), strict=True))
    if side == "labels" or draw.random() < 0.5:
        del columns["rank"]
    return pa.table(columns)


# ------------------------------------------------------------------ damage


def damaged(draw: np.random.Generator, kind: str, whole: bytes, donor: bytes) -> bytes:
    found = bytearray(whole)
    if kind.startswith("flip"):
        start = footer_start(whole) if kind == "flip in footer" else 0
        found[draw.integers(start, len(found))] ^= 1 << int(draw.integers(8))
    elif kind == "cut":
        del found[draw.integers(len(found)) :]
    elif kind == "splice bytes":
        length = int(draw.integers(1, 200))
        source, target = draw.integers(len(donor)), draw.integers(len(found))
        replaced = length if draw.random() < 0.8 else int(draw.integers(200))
        found[target : target + replaced] = donor[source : source + length]
    elif kind == "splice page":
        # The page usually comes from the same column. A longer page overwrites the bytes after it.
        here, there = pages(whole), pages(donor)
        target = here[draw.integers(len(here))]
        others = [page for page in (here if draw.random() < 0.5 else there) if page != target]
        others = [page for page in others if page.column == target.column] or there
        content = others[draw.integers(len(others))].content
        found[target.start : target.start + len(content)] = content
    elif kind == "splice footer":
        found[footer_start(whole) :] = donor[footer_start(donor) :]
    return bytes(found)


def footer_start(whole: bytes) -> int:
    return len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")


class Page(NamedTuple):
    """The bytes of one column of a row group: mostly a page, or a dictionary and a page."""

    column: str
    start: int
    content: bytes


def pages(whole: bytes) -> list[Page]:
    footer = pq.read_metadata(pa.BufferReader(whole))
    found = []
    for group in range(footer.num_row_groups):
        for place in range(footer.num_columns):
            chunk = footer.row_group(group).column(place)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            content = whole[start : start + chunk.total_compressed_size]
            found.append(Page(chunk.path_in_schema, start, content))
    return found
