"""Read tables of Delta and Iceberg, by the libraries that know which of their files hold rows."""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from pyarrow.fs import FileSelector

from rankmill.errors import InputError, UsageError, install
from rankmill.sources.files.files import File
from rankmill.sources.files.formats import METADATA, SUFFIX
from rankmill.sources.memory.producers import open_dataset
from rankmill.sources.roles.source import InputOptions, Source
from rankmill.sources.roles.streams import open_batches


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open the folders of tables as their newest version has them."""
    parts = [_OPENERS[str(asked.format)](file, asked) for file in files]
    return replace(
        parts[0],
        name=name,
        schemas={file: schema for part in parts for file, schema in part.schemas.items()},
        pieces=lambda columns: [piece for part in parts for piece in part.pieces(columns)],
        format=str(asked.format).capitalize(),
    )


def _open_delta(file: File, asked: InputOptions) -> Source:
    library = _library("deltalake", "delta", file)
    try:
        dataset = library.DeltaTable(file.path if file.filesystem is None else file.name)
        dataset = dataset.to_pyarrow_dataset()
    except library.exceptions.DeltaProtocolError as error:
        raise InputError(
            f"{file.name} is a Delta table that is not read: {error}; give its rows as a table, "
            "such as DeltaTable(...).scan().read_all()"
        ) from None

    return open_dataset(dataset, asked, file.name)


def _open_iceberg(file: File, asked: InputOptions) -> Source:
    table = _library("pyiceberg.table", "iceberg", file).StaticTable.from_metadata(_newest(file))

    def batches(columns: list[str]) -> Iterator[Any]:
        reader = table.scan(selected_fields=(*columns,)).to_arrow_batch_reader()
        for batch in reader:
            yield batch.select(columns)

    return open_batches(file.name, table.schema().as_arrow(), batches)


_OPENERS: dict[str, Callable[[File, InputOptions], Source]] = {
    "delta": _open_delta,
    "iceberg": _open_iceberg,
}


def _library(module: str, extra: str, file: File) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise UsageError(
            f"{file.name} is a table of {extra.capitalize()}, whose metadata lists the files that "
            f"hold rows; expected {module.partition('.')[0]} to read them: {install(extra)}"
        ) from None


def _newest(file: File) -> str:
    """The newest metadata of an Iceberg table, whose names begin with the number of the version."""
    folder = f"{file.path}/{METADATA}"
    if file.filesystem is None:
        names = os.listdir(folder)
    else:
        names = [info.base_name for info in file.filesystem.get_file_info(FileSelector(folder))]
    versions: dict[int, list[str]] = {}
    for name in names:
        found = re.fullmatch(rf"v?(\d+).*{re.escape(SUFFIX)}", name)
        if found:
            versions.setdefault(int(found[1]), []).append(name)
    newest = versions.get(max(versions, default=0), [])
    if len(newest) != 1:
        raise InputError(
            f"{file.name} is a table of Iceberg with {len(newest)} metadata of its newest version; "
            "expected one: read it with its catalogue, and give the rows as a table"
        )
    return f"{file.path if file.filesystem is None else file.name}/{METADATA}/{newest[0]}"
