"""Arrow IPC files and streams, Feather: the same bits as Parquet, and errors that tell."""

from __future__ import annotations

import itertools
import os
import resource
import select
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
import rankmill.sources.readers.arrow_files
from rankmill import InputError
from rankmill.sources.files.files import File
from rankmill.sources.inputs.any_source import open_paths
from rankmill.sources.readers.arrow_files import read_blocks
from rankmill.sources.roles.source import InputOptions
from strategies import examples, some

METRICS = ["map@5", "ndcg", "first_hit", "gap"]
Write = Callable[[pa.Table, Path], None]


def ipc_file(table: pa.Table, path: Path, compression: str | None = None, rows: int = 7) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def ipc_stream(table: pa.Table, path: Path, compression: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=7)


def gzipped_stream(table: pa.Table, path: Path) -> None:
    with (
        pa.CompressedOutputStream(path, "gzip") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        writer.write_table(table, max_chunksize=7)


WRITERS: dict[str, Write] = {
    "a.arrow": ipc_file,
    "a.ipc": lambda table, path: ipc_file(table, path, "zstd"),
    "a.feather": lambda table, path: pyarrow.feather.write_feather(table, path, "lz4"),
    "b.feather": lambda table, path: pyarrow.feather.write_feather(table, path, "zstd", 3, 20),
    "c.feather": lambda table, path: ipc_file(table, path, rows=1000),
    "a.arrows": ipc_stream,
    "b.arrows": lambda table, path: ipc_stream(table, path, "lz4"),
    "a.arrows.gz": gzipped_stream,
    "file": ipc_file,  # the content tells the format
    "stream": ipc_stream,
}
IDS: dict[str, Callable[[int], Any]] = {
    "int": lambda i: i * 3,
    "string": "query {}".format,
    "bytes": lambda i: b"\xff%d" % i,
}


def tables(shape: str, ids: str) -> tuple[pa.Table, pa.Table]:
    """Labels with gains, and predictions with confidences; some lists empty, some items null."""
    draw = np.random.default_rng(0)
    made = IDS[ids]
    sides = []
    for number, queries in (("gain", 50), ("score", 60)):
        rows = [(q, made(int(i))) for q in range(queries) for i in draw.permutation(9)[: q % 7]]
        values = draw.integers(0, 40, len(rows)) / 4
        if shape == "long":
            columns = {"query_id": [made(q) for q, _ in rows], "item_id": [i for _, i in rows]}
            sides.append(pa.table({"more": values, **columns, number: values}))
            continue
        lists: dict[int, list[Any]] = {q: [] for q in range(queries)}
        numbers: dict[int, list[float]] = {q: [] for q in range(queries)}
        for (q, item), value in zip(rows, values.tolist(), strict=True):
            lists[q].append(item if value > 0.5 else None)
            numbers[q].append(value)
        sides.append(
            pa.table(
                {
                    "query_id": [made(q) for q in lists],
                    "more": [None] * queries,
                    "items": list(lists.values()),
                    number: list(numbers.values()),
                }
            ).set_column(1, "more", pa.array(["x"] * queries))
        )
    return sides[0], sides[1]


def content(result: Any) -> tuple[Any, ...]:
    return result.metrics, result.standard_errors, result.audit, result.per_query.to_pydict()


# This step takes each writer, shape and kind of ids at least once.
@pytest.mark.parametrize(
    ("name", "shape", "ids"), some(itertools.product(WRITERS, ["wide", "long"], IDS), 5)
)
def test_the_same_bits_as_parquet(tmp_path: Path, shape: str, ids: str, name: str) -> None:
    sides = tables(shape, ids)
    twins, paths = [], []
    for side, table in zip(("labels", "predictions"), sides, strict=True):
        (tmp_path / side).mkdir()
        twins.append(tmp_path / f"{side}.parquet")
        paths.append(tmp_path / side / name)
        pq.write_table(table, twins[-1])
        WRITERS[name](table, paths[-1])
    for memory in (1 << 30, 100):
        result = rankmill.evaluate(*paths, METRICS, memory=memory)
        assert content(result) == content(rankmill.evaluate(*twins, METRICS, memory=memory))
    assert result.inputs["predictions"]["shape"] == shape


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows"])
def test_folders_give_columns(tmp_path: Path, name: str) -> None:
    _, table = tables("wide", "int")
    for day, rows in (("day=1", table.slice(0, 20)), ("day=2", table.slice(20))):
        (tmp_path / "run" / day).mkdir(parents=True)
        WRITERS[name](rows, tmp_path / "run" / day / name)
    source = open_paths([str(tmp_path / "run")], InputOptions())
    for columns in (["day", "items"], ["day"]):
        batches = [batch.data for piece in source.pieces(columns) for batch in piece]
        found = pa.Table.from_batches(batches)
        assert found.column_names == columns
        assert found["day"].to_pylist() == [1] * 20 + [2] * 40


def dictionaries(table: pa.Table, path: Path) -> None:
    ipc_file(table.set_column(0, "query_id", table["query_id"].dictionary_encode()), path)


def test_dictionaries_and_views(tmp_path: Path) -> None:
    labels, predictions = tables("wide", "string")
    dictionaries(labels, tmp_path / "labels.arrow")
    column = predictions["query_id"].cast(pa.string_view())
    ipc_stream(predictions.set_column(0, "query_id", column), tmp_path / "run.arrows")
    result = rankmill.evaluate(tmp_path / "labels.arrow", tmp_path / "run.arrows", METRICS)
    twin = rankmill.evaluate(labels, predictions, METRICS)
    assert content(result) == content(twin)


def test_only_the_needed_columns_are_read(tmp_path: Path) -> None:
    """A column that is broken does no harm if it is not needed."""
    big = pa.array(["long text" * 20] * 60)
    table = tables("wide", "int")[1].set_column(1, "more", big)
    path = tmp_path / "a.arrow"
    ipc_file(table, path, "zstd", 60)
    raw = bytearray(path.read_bytes())
    at = raw.index(pa.compress(big.buffers()[2], "zstd", asbytes=True)[:40])
    raw[at : at + 4] = b"ruin"
    path.write_bytes(raw)
    rankmill.evaluate(path, path, ["map"])
    source = open_paths([str(path)], InputOptions())
    with pytest.raises(InputError, match=r"a\.arrow is broken: record batch 0"):
        list(source.pieces(["more"])[0])


def test_large_batches_are_cut_and_small_ones_joined(tmp_path: Path) -> None:
    table = pa.table({"query_id": np.arange(150_000)})
    for name in ("a.arrow", "a.arrows"):
        for rows in (1000, 150_000):
            with (pa.ipc.new_file if name == "a.arrow" else pa.ipc.new_stream)(
                tmp_path / name, table.schema
            ) as writer:
                writer.write_table(table, max_chunksize=rows)
            source = open_paths([str(tmp_path / name)], InputOptions())
            assert source.rows == (150_000 if name == "a.arrow" else None)
            for _ in range(2):  # a stream, too, is read as often as asked
                batches = [batch for piece in source.pieces(["query_id"]) for batch in piece]
                sizes = [batch.data.num_rows for batch in batches]
                assert min(sizes[:-1]) >= 1 << 13
                assert max(sizes) <= 1 << 16
                starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
                assert [batch.place.first for batch in batches] == starts.tolist()


# ------------------------------------------------------------------ bad files


def bad_files(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Files that cannot be read, and what the message has to tell."""
    table = tables("wide", "int")[1]
    (folder / "old.feather").write_bytes(b"FEA1" + bytes(100))
    yield folder / "old.feather", ["old.feather", "version 1", "write it again as version 2"]
    pq.write_table(table, folder / "wrong.arrow")
    yield folder / "wrong.arrow", ["wrong.arrow", "PAR1", "is it a whole arrow file"]
    (folder / "empty.arrow").write_bytes(b"")
    yield folder / "empty.arrow", ["empty.arrow", "cannot be read"]
    for name in ("a.orc", "orc", "runs/part-0.orc"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"ORC" + bytes(100))
        yield folder / name, [name, "convert it to Parquet", "pyarrow.orc.read_table"]
    yield folder / "runs", ["part-0.orc", "convert it to Parquet"]
    pq.write_table(table, folder / "runs" / "part-1.parquet")
    yield folder / "runs", ["several formats", "1 of orc", "1 of parquet"]
    ipc_stream(table, folder / "good")
    good = (folder / "good").read_bytes()
    (folder / "unended.arrows").write_bytes(good[:-8])
    yield folder / "unended.arrows", ["no end marker", "record batch 8"]
    (folder / "twice.arrows").write_bytes(good * 2)
    yield folder / "twice.arrows", ["more bytes follow the end marker", "one stream in a file"]
    ipc_file(table, folder / "a.arrow")
    with pa.CompressedOutputStream(folder / "file.arrow.gz", "gzip") as file:
        file.write((folder / "a.arrow").read_bytes())
    yield folder / "file.arrow.gz", ["file.arrow.gz", "decompress it first"]


def test_bad_files(tmp_path: Path) -> None:
    for path, wanted in bad_files(tmp_path):
        with pytest.raises(InputError) as caught:
            rankmill.evaluate(path, path, ["map"])
        assert "\n" not in tells(caught.value, wanted)


def test_the_format_orc_is_told_how_to_convert() -> None:
    with pytest.raises(rankmill.UsageError, match=r"ORC is not read: convert .*; expected one of"):
        rankmill.evaluate(rankmill.Labels("labels", format="orc"), "run.orc", "map")


@pytest.mark.parametrize("name", ["a.arrow", "a.ipc", "a.arrows", "b.arrows", "a.arrows.gz"])
def test_no_file_that_lacks_its_last_bytes_is_read(tmp_path: Path, name: str) -> None:
    """Numbers may have the bytes of the marker that ends a stream, wherever the file is cut."""
    like_the_end = np.frombuffer(b"\xff\xff\xff\xff\0\0\0\0" * 15, np.int64)
    table = pa.table({"query_id": range(15), "item_id": like_the_end})
    path = tmp_path / name
    WRITERS[name](table, path)
    assert rankmill.evaluate(path, path, "map")["map"] == 1.0
    whole = path.read_bytes()
    # What is in a stream begins at multiples of 8 bytes.
    for size in {*range(8, len(whole), 8), *range(len(whole) - 12, len(whole))}:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=path.name):
            rankmill.evaluate({0: [1]}, path, "map")


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows"])
@pytest.mark.parametrize("how", ["replaced", "cut", "removed"])
def test_a_file_that_changes_while_it_is_read(tmp_path: Path, name: str, how: str) -> None:
    _, table = tables("wide", "int")
    path = tmp_path / name
    WRITERS[name](table, path)
    source = open_paths([str(path)], InputOptions())
    if how == "replaced":
        WRITERS[name](table.slice(10), tmp_path / "other")
        os.replace(tmp_path / "other", path)
    elif how == "cut":
        os.truncate(path, 100)
    else:
        path.unlink()
    for _ in range(2):
        with pytest.raises(InputError, match=f"{name} changed while it was read"):
            next(source.pieces(["items"])[0])


def test_a_footer_that_leaves_out_a_record_batch(tmp_path: Path) -> None:
    """pyarrow would read fewer rows, or the rows of a batch twice."""
    _, table = tables("wide", "int")
    path = tmp_path / "a.arrow"
    ipc_file(table, path, rows=20)
    raw = path.read_bytes()
    with pa.OSFile(str(path)) as file:
        starts = read_blocks(file).starts
    last = raw.rindex(starts[2].to_bytes(8, "little"))
    for changed in (
        raw[:last] + starts[1].to_bytes(8, "little") + raw[last + 8 :],
        raw[: last - 52] + (2).to_bytes(4, "little") + raw[last - 48 :],
        raw[: last - 52] + (0).to_bytes(4, "little") + raw[last - 48 :],
    ):
        path.write_bytes(changed)
        assert pa.ipc.open_file(path).num_record_batches in (0, 2, 3)
        with pytest.raises(InputError, match=r"a\.arrow is broken: .*footer says"):
            rankmill.evaluate(path, path, ["map"])


@pytest.mark.parametrize("size", [1 << 44, 1 << 62, (1 << 63) - 1, -5])
def test_a_broken_length_is_no_lack_of_memory(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.arrow"
    ipc_file(pa.table({"query_id": np.arange(5000), "items": [[1]] * 5000}), path, "lz4", 5000)
    raw = path.read_bytes()
    length = (40_000).to_bytes(8, "little")  # of the query ids, before they are compressed
    path.write_bytes(raw.replace(length, size.to_bytes(8, "little", signed=True), 1))
    with pytest.raises(InputError, match=r"a\.arrow is broken: record batch 0 cannot be read"):
        rankmill.evaluate(path, path, ["map"])


class Remote(File):
    """A file that only `opened` reads, as in an object store."""

    @contextmanager
    def opened(self) -> Iterator[Any]:
        with pa.OSFile(self.path.removeprefix("far:")) as file:
            yield file

    def identity(self) -> tuple[int, int, int, int]:
        return 0, 0, os.stat(self.path.removeprefix("far:")).st_size, 0


@pytest.mark.parametrize("name", ["a.arrow", "a.arrows", "a.arrows.gz"])
def test_files_that_are_not_on_the_disk(tmp_path: Path, name: str) -> None:
    table = tables("wide", "int")[1].select(["query_id", "items"])
    WRITERS[name](table, tmp_path / name)
    source = rankmill.sources.readers.arrow_files.open_files(
        [Remote(f"far:{name}", f"far:{tmp_path / name}")], "it", InputOptions()
    )
    batches = [batch.data for piece in source.pieces(table.column_names) for batch in piece]
    assert pa.Table.from_batches(batches) == table


# ------------------------------------------------------------------ damaged files

SECONDS = 20


def ending(path: Path, table: pa.Table) -> str:
    """How reading a file ends in a child: "same", "values" if others, or why not."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            source = open_paths([str(path)], InputOptions())
            pieces = source.pieces(table.column_names)
            found = pa.Table.from_batches([batch.data for piece in pieces for batch in piece])
            end = "same" if found.equals(table) else "values"
            if len(found) != len(table):
                end = f"{len(found)} rows"
        except InputError as error:
            end = "refused" if path.name in str(error) else f"no name: {error}"
        except BaseException as error:
            end = repr(error)
        os.write(writer, end.encode())
        os._exit(0)
    os.close(writer)
    descriptor = os.pidfd_open(child)
    if not select.select([descriptor], [], [], SECONDS)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(descriptor)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as told:
        return told.read().decode() or f"exit {os.waitstatus_to_exitcode(status)}"


@pytest.mark.parametrize("name", some(["a.arrow", "a.ipc", "b.arrows", "a.arrows"], 2))
@pytest.mark.long
def test_damaged_files_are_refused_or_differ_in_values(tmp_path: Path, name: str) -> None:
    """No cut is read; a flipped bit may change values, which no checksum protects, but no rows."""
    table = tables("wide", "string")[1].select(["query_id", "items"])
    path = tmp_path / name
    WRITERS[name](table, path)
    raw = path.read_bytes()
    assert ending(path, table) == "same"
    draw = np.random.default_rng(0)
    ends: Counter[str] = Counter()
    step = 293 * 40 // examples(40)
    for size in {*range(0, len(raw), step), *range(len(raw) - 12, len(raw))}:
        path.write_bytes(raw[:size])
        ends[ending(path, table)] += 1
    assert ends.keys() == {"refused"}
    for place in draw.integers(0, len(raw), examples(25)).tolist():
        path.write_bytes(
            raw[:place] + bytes([raw[place] ^ 1 << draw.integers(8)]) + raw[place + 1 :]
        )
        ends[ending(path, table)] += 1
    assert ends.keys() <= {"refused", "same", "values"}
