"""Columns that the names of folders give: Hive partitions, such as day=2026-01-31."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rankmill.errors import InputError
from rankmill.sources.files.files import File

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"


def folder_columns(files: Sequence[File], schemas: Sequence[Any]) -> list[dict[str, Any]]:
    """The columns that each file's folders give and the file does not hold, as Arrow scalars.

    A column is int64 if all its values are plain integers, else it is a string.
    """
    held = [
        {key: text for key, text in file.folders.items() if key not in schema.names}
        for file, schema in zip(files, schemas, strict=True)
    ]
    values: dict[str, set[str]] = {}
    for file, texts in zip(files, held, strict=True):
        for key, text in texts.items():
            if not f"{key}{text}".isascii():
                _check_text(f"{key}={text}", file)
            values.setdefault(key, set()).add(text)
    whole = {
        key: all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", one) for one in texts - {HIVE_NULL})
        for key, texts in values.items()
    }
    return [
        {
            key: pa.scalar(
                None if text == HIVE_NULL else int(text) if whole[key] else text,
                pa.int64() if whole[key] else pa.string(),
            )
            for key, text in texts.items()
        }
        for texts in held
    ]


def _check_text(folder: str, file: File) -> None:
    """Raise InputError if the name of a folder, which makes a column, is not UTF-8."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{file.name}: the name of its folder {folder!r} is not UTF-8; rename it"
        ) from None


def whole_schema(schema: Any, folders: Mapping[str, Any]) -> Any:
    """The schema of a file with the columns of its folders."""
    for key, scalar in folders.items():
        schema = schema.append(pa.field(key, scalar.type))
    return schema


def with_folders(data: Any, folders: Mapping[str, Any], columns: list[str]) -> Any:
    """A record batch with all columns, including those of the folders."""
    arrays = [
        pa.repeat(folders[name], data.num_rows) if name in folders else data.column(name)
        for name in columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=columns)
