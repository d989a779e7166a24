"""Open labels or predictions of any kind as a source."""

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from rankmill.columns.ragged import Ragged
from rankmill.errors import InputError, UsageError
from rankmill.sources.base import Source
from rankmill.sources.files import File, find_files
from rankmill.sources.formats import FORMATS, check_format, format_of_name, is_sure
from rankmill.sources.ragged import open_ragged
from rankmill.sources.roles import Role
from rankmill.sources.spool import is_pipe, spool
from rankmill.sources.stream import open_once
from rankmill.sources.table import open_table
from rankmill.stores.urls import shown


@dataclass(frozen=True)
class Told:
    """What the caller told of files: their format, and the names of columns without a header."""

    format: str | None = None
    columns: tuple[str, ...] = ()


def open_source(
    value: Any, role: Role, numbers: Any, told: Told = Told(), *, may_be_empty: bool = False
) -> Source:
    """Open labels or predictions of any kind.

    Parameters
    ----------
    value : str, path, list of them, pyarrow.Table or Ragged
        The input.
    role : {"labels", "predictions"}
        The role of the input, for messages.
    numbers : Ragged or other
        The confidences or gains beside a Ragged; ignored for other inputs.
    told : Told
        What the caller told of the files.
    may_be_empty : bool
        Whether an input without rows is accepted.

    Raises
    ------
    InputError
        If the input cannot be opened, or has no rows although it must have some.
    UsageError
        If inputs of this type are not supported.
    """
    check_format(told.format)
    if isinstance(value, Source):  # opened before, by a caller that reads it several times
        source = value
    elif isinstance(value, Ragged):
        number_column = "score" if role == "predictions" else "gain"
        source = open_ragged(value, numbers, number_column, f"the Ragged of {role}")
    elif isinstance(value, pa.RecordBatchReader):
        source = open_once(f"the stream of {role}", value)
    elif isinstance(value, pa.Table):
        source = open_table(value, f"the table of {role}")
    elif isinstance(value, str | os.PathLike):
        source = open_paths([os.fspath(value)], role, told)
    elif isinstance(value, list | tuple) and all(isinstance(v, str | os.PathLike) for v in value):
        if not value:
            raise UsageError(f"the list of files of {role} is empty")
        source = open_paths([os.fspath(one) for one in value], role, told)
    else:
        raise UsageError(
            f"{role} cannot be a {type(value).__name__}; expected a path, a list of paths, a "
            f"pyarrow.Table or a Ragged{_hint(value)}"
        )
    if source.rows == 0 and not may_be_empty:
        raise InputError(f"{source.name} holds no rows; expected {role}")
    return source


def _hint(value: Any) -> str:
    """What to do with an input of another kind; an empty text if that is not known."""
    if isinstance(value, Mapping):
        return ": give several systems to evaluate_runs"
    if hasattr(value, "__arrow_c_stream__"):
        return ": make a table of it with pyarrow.table(...)"
    return ""


def reusable(source: Source, memory: int) -> Source:
    """An opened source that several readers take one after the other; the caller closes it."""
    return source if source.kept is None else source.kept(memory, None)


def open_paths(paths: list[str], role: Role, told: Told) -> Source:
    """Open files by their paths; the format is told, or found by their names or their content."""
    pipes = [path for path in paths if is_pipe(path)]
    if pipes:
        if len(paths) > 1:
            raise UsageError(f"{pipes[0]} is a pipe, and can only be given alone, without others")
        file, spooled = spool(pipes[0])
        return replace(_open_files([file], role, told, paths), end=spooled.close)
    return _open_files(find_files(paths, told.format), role, told, paths)


def _open_files(files: list[File], role: Role, told: Told, paths: list[str]) -> Source:
    kinds = {file.name: told.format or _format_of(file) for file in files}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is {kind}" for name, kind in list(kinds.items())[:3])
        raise InputError(
            f"the files of {role} have several formats: {listed}; expected one format for all: "
            "convert them, or say which it is"
        )
    kind = kinds[files[0].name]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    module = importlib.import_module(f"rankmill.sources.{FORMATS[kind].module}")
    name = files[0].name if paths[0] == "-" else shown(paths[0]) + more
    source: Source = module.open_files(files, name)
    return source


def _format_of(file: File) -> str:
    kind = format_of_name(file.name)
    if kind is None or not is_sure(kind):
        return "parquet"
    return kind
