"""Folders of tables are read as their own metadata say, and never by their files alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rankmill.errors import InputError, UsageError
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.roles.source import InputOptions, batch_of

OLD = pa.table({"user": [1, 1, 2], "item": [70, 71, 80]})
NEW = pa.table({"user": [1, 2], "item": [7, 8]})


def rows_of(path: Any, columns: list[str]) -> list[dict[str, Any]]:
    source = open_source(path, InputOptions())
    pieces = source.pieces(columns)
    return [row for piece in pieces for block in piece for row in batch_of(block).data.to_pylist()]


def table_by_hand(folder: Path, log: str) -> None:
    """The files of a table, and what shows its format."""
    (folder / log).parent.mkdir(parents=True)
    (folder / log).write_text("{}")
    (folder / "data").mkdir()
    pq.write_table(OLD, folder / "data" / "old.parquet")


LOGS = {"Delta": "_delta_log/0.json", "Iceberg": "metadata/00001-a.metadata.json"}


@pytest.mark.small
@pytest.mark.parametrize("kind", LOGS)
def test_parts_of_a_table_are_refused(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "labels"
    table_by_hand(folder, LOGS[kind])
    for part in ("data", "data/*.parquet", "data/old.parquet", "*"):
        with pytest.raises(InputError, match=rf"is a part of the {kind} table {folder}, .* give"):
            open_source(folder / part, InputOptions())
    pq.write_table(NEW, tmp_path / "beside.parquet")
    with pytest.raises(InputError, match=r"several formats: .*labels is (delta|iceberg), .*beside"):
        open_source(tmp_path, InputOptions())


@pytest.mark.small
@pytest.mark.parametrize("kind", LOGS)
def test_what_reads_a_table_is_named(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_by_hand(tmp_path / "labels", LOGS[kind])
    monkeypatch.setitem(sys.modules, "deltalake", None)
    monkeypatch.setitem(sys.modules, "pyiceberg.table", None)
    for path in (tmp_path / "labels", tmp_path):
        with pytest.raises(UsageError, match=rf"is a table of {kind}, .*{kind.lower()}\]'"):
            open_source(path, InputOptions())


def test_folders_of_other_metadata_are_read(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "notes.json").write_text("{}")
    pq.write_table(NEW, tmp_path / "a.parquet")
    assert rows_of(tmp_path, ["user", "item"]) == NEW.to_pylist()


def test_rows_that_delta_removed_are_not_read(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "labels")
    deltalake.write_deltalake(folder, OLD)
    deltalake.write_deltalake(folder, NEW, mode="overwrite")
    for path in (folder, tmp_path, f"file://{folder}", [folder]):
        assert rows_of(path, ["item", "user"]) == NEW.select(["item", "user"]).to_pylist()
    two = str(tmp_path / "more")
    deltalake.write_deltalake(two, OLD, partition_by=["user"])
    assert sorted(row["item"] for row in rows_of([folder, two], ["item"])) == [7, 8, 70, 71, 80]
    assert {row["user"] for row in rows_of(two, ["user"])} == {1, 2}


def test_rows_that_iceberg_removed_are_not_read(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy")  # of the catalogue, which only writing needs
    catalogs = pytest.importorskip("pyiceberg.catalog.memory")
    catalog = catalogs.InMemoryCatalog("a", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=OLD.schema)
    table.append(OLD)
    table.overwrite(NEW)
    assert rows_of(tmp_path, ["item", "user"]) == NEW.select(["item", "user"]).to_pylist()
    (newest,) = (one for one in tmp_path.rglob("*.metadata.json") if one.name[:5] == "00002")
    os.link(newest, newest.with_name("00002-other.metadata.json"))
    with pytest.raises(InputError, match="with 2 metadata of its newest version; expected one"):
        open_source(tmp_path, InputOptions())
