"""Files that are no text and no format that is read: the error says what they are."""

from __future__ import annotations

import io
import pickle
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
from rankmill import InputError, Labels

ROWS = {"user_id": [1, 2], "item_id": [10, 12]}
PREDICTIONS = {1: [10], 2: [12]}


def saved(save: Any, *given: Any, **named: Any) -> bytes:
    file = io.BytesIO()
    save(file, *given, **named)
    return file.getvalue()


def sqlite(folder: Path) -> bytes:
    path = folder / "made"
    with sqlite3.connect(path) as database:
        database.execute("create table l(user_id, item_id)")
    database.close()
    return path.read_bytes()


def duckdb(folder: Path) -> bytes:
    path = folder / "made"
    pytest.importorskip("duckdb").connect(str(path)).close()
    return path.read_bytes()


def excel(folder: Path) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("[Content_Types].xml", "xl/worksheets/sheet1.xml"):
            archive.writestr(name, "<a/>")
    return file.getvalue()


# A suffix, what the file holds, and what is told.
KINDS: dict[str, tuple[str, Any, list[str]]] = {
    "an array": ("npy", saved(np.save, np.array([[1, 10]])), ["NumPy", "numpy.load(path)"]),
    "arrays": ("npz", saved(np.savez, a=np.array([1])), ["NumPy", "numpy.load(path)[name]"]),
    "a pickle": ("pkl", pickle.dumps(PREDICTIONS), ["pickle of Python", "pickle.load(file)"]),
    "SQLite": ("db", sqlite, ["SQLite", "pandas.read_sql"]),
    "DuckDB": ("duckdb", duckdb, ["DuckDB", "duckdb.connect(path).sql(query)"]),
    "Excel": ("xlsx", excel, ["Excel", "save it as CSV", "pandas.read_excel(path)"]),
    "old Excel": ("xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(8), ["old file of Excel"]),
    "Avro": ("avro", b"Obj\x01\x04\x14avro.codec\0", ["Avro", "Parquet"]),
    "HDF5": ("h5", b"\x89HDF\r\n\x1a\n" + bytes(8), ["HDF5", "pandas.read_hdf"]),
}


@pytest.mark.parametrize("suffix", ["its own", "csv", "tsv", "jsonl", "parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_binary_file_is_told_by_its_first_bytes(kind: str, suffix: str, tmp_path: Path) -> None:
    own, content, wanted = KINDS[kind]
    path = tmp_path / f"labels.{own if suffix == 'its own' else suffix}"
    path.write_bytes(content(tmp_path) if callable(content) else content)
    if suffix == "parquet" and own in ("npz", "xlsx"):
        pytest.skip("an archive is looked into where it is read as text")
    with pytest.raises(InputError) as caught:
        rankmill.evaluate(path, PREDICTIONS, "hit")
    tells(caught.value, [path.name, *wanted])


def test_parquet_and_json_of_another_suffix(tmp_path: Path) -> None:
    paths = {kind: tmp_path / f"{kind}.csv" for kind in ("parquet", "jsonl", "json")}
    pq.write_table(pa.table(ROWS), paths["parquet"])
    paths["jsonl"].write_text(
        '{"user_id": 1, "item_id": 10}\n{"user_id": 2, "item_id": 12}\n', encoding="utf-8"
    )
    paths["json"].write_text('{"1": ["10"], "2": ["12"]}', encoding="utf-8")
    for kind, path in paths.items():
        with pytest.raises(InputError, match=f"name the format {kind} with Labels"):
            rankmill.evaluate(path, PREDICTIONS, "hit")
        told = rankmill.evaluate(Labels(path, format=kind), PREDICTIONS, "hit")
        assert told["hit"] == 1


def test_names_of_columns_that_look_like_first_bytes_are_text(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("PAR1,item,DUCK\n1,10,1\n2,12,1\n", encoding="utf-8")
    assert rankmill.evaluate(Labels(path, query="PAR1"), PREDICTIONS, "hit")["hit"] == 1


def test_an_integer_beyond_decimals_of_duckdb() -> None:
    duckdb = pytest.importorskip("duckdb")
    most = f"{2**127 - 1}::hugeint"
    labels = duckdb.sql(f"select 1 as user_id, {most} as item_id")
    with pytest.raises(InputError, match=r"more than 38 digits.*cast the column to text"):
        rankmill.evaluate(labels, labels, "hit")
    texts = duckdb.sql(f"select 1 as user_id, cast({most} as varchar) as item_id")
    assert rankmill.evaluate(texts, texts, "hit")["hit"] == 1
