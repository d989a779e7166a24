"""Open labels or predictions of any kind as a source."""

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Any

import pyarrow as pa

from rankmill.columns.matrix import Matrix
from rankmill.columns.objects import is_sparse, numpy_of
from rankmill.columns.ragged_lists import Ragged
from rankmill.errors import InputError, UsageError, outside
from rankmill.io.stores.urls import shown
from rankmill.sources.files.content import format_of
from rankmill.sources.files.files import File, find_files, is_pipe, spool
from rankmill.sources.files.formats import FORMATS, format_of_name
from rankmill.sources.memory.matrices import open_matrix, open_ragged, open_sparse
from rankmill.sources.roles.source import InputOptions, Prepared, Source
from rankmill.sources.roles.streams import open_table


def open_source(value: Any, asked: InputOptions, *, may_be_empty: bool = False) -> Source:
    """Open labels or predictions of any kind in `_KINDS` or `_OBJECTS`."""
    if isinstance(value, Source):  # opened before
        return value
    if type(value) is dict:  # which is of no other kind
        source = _open_object(value, asked)
    else:
        value = value if is_sparse(value) else numpy_of(value)
        opener = next((opener for fits, opener in _KINDS if fits(value)), _open_object)
        source = opener(value, asked)
    if source.rows == 0 and not may_be_empty:
        expected = "what queries had in training" if asked.role == "train" else asked.role
        raise InputError(f"{source.name} holds no rows; expected {expected}")
    return source


def _open_object(value: Any, asked: InputOptions) -> Source:
    """Open what a Python program holds: the first kind that fits is taken."""
    kind = type(value)
    # Each step of a training asks for the same: an empty dict or list tells it of all.
    opener = _opener_of_empty(kind) if kind in (dict, list) else _opener_of(value)
    if opener is not None:
        source: Source = opener(value, asked)
        return source
    from rankmill.sources.memory.python_objects import VECTORS

    role = asked.role
    objects = VECTORS if role == "features" else "a dict by query, or a list of lists"
    raise UsageError(
        f"{role} cannot be a {type(value).__name__}; expected a path, a list of paths, a frame or "
        f"table, {objects} ('rankmill docs notebooks' shows each)"
    )


def _opener_of(value: Any) -> Callable[[Any, InputOptions], Source] | None:
    """The function that opens a value, or None."""
    for fits, opener in _OBJECTS:
        if fits(value):
            module, _, name = opener.partition(".")
            found: Callable[[Any, InputOptions], Source]
            found = getattr(importlib.import_module(f"rankmill.sources.memory.{module}"), name)
            return found
    return None


@cache
def _opener_of_empty(kind: type) -> Callable[[Any, InputOptions], Source] | None:
    return _opener_of(kind())


def _open_prepared(prepared: Prepared, asked: InputOptions) -> Source:
    return prepared.opened(lambda data: open_source(data, asked, may_be_empty=True))


def _is_of(package: str, *names: str) -> Callable[[Any], bool]:
    """Whether a value has one of these classes of a package, which need not be installed."""
    return lambda value: any(
        one.__name__ in names and one.__module__.lstrip("_").split(".")[0] == package
        for one in type(value).__mro__
    )


def _is_a(*classes: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, classes)


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: any(hasattr(value, name) for name in names)


def _is_row_numbered(value: Any) -> bool:
    """Whether it is a Series of pandas with lists whose index has no name, and numbers its rows."""
    index: Any = getattr(value, "index", None)
    if not _is_of("pandas", "Series")(value) or type(index).__name__ != "RangeIndex":
        return False
    from rankmill.sources.memory.cells import first_cells, is_list_like

    numbered = index.name is None and (index.start, index.step) == (0, 1)
    return numbered and any(map(is_list_like, first_cells(value.array)[:1]))


def _are_paths(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, str | os.PathLike) for v in value)


# What a value is -> the function of `sources.memory` that opens it, whose module is loaded then.
_OBJECTS: list[tuple[Callable[[Any], bool], str]] = [
    (_is_row_numbered, "python_objects.open_series_of_lists"),
    (_is_of("pandas", "DataFrame", "Series"), "frames.open_pandas"),
    (_is_of("polars", "DataFrame", "LazyFrame"), "producers.open_polars"),
    (_is_of("duckdb", "DuckDBPyRelation"), "producers.open_duckdb"),
    (_has("mapInArrow"), "python_objects.refuse_spark"),
    (_is_of("pyarrow", "Dataset"), "producers.open_dataset"),
    (_is_of("pyarrow", "Scanner"), "producers.open_scanner"),
    (_is_of("datasets", "Dataset", "IterableDataset"), "producers.open_hugging_face"),
    (_is_of("ranx", "Qrels", "Run"), "python_objects.open_ranx"),
    (_has("qrels_iter", "scoreddocs_iter"), "python_objects.open_ir_dataset"),
    (_is_a(pa.ChunkedArray), "producers.open_arrays"),
    (_has("__arrow_c_array__"), "producers.open_arrays"),
    (_has("__arrow_c_stream__"), "producers.open_reader"),
    (
        lambda value: isinstance(value, Iterable) and not isinstance(value, bytes),
        "json_file.open_document",
    ),
]


_KINDS: list[tuple[Callable[[Any], bool], Callable[[Any, InputOptions], Source]]] = [
    (_is_a(Ragged), open_ragged),
    (_is_a(Prepared), _open_prepared),
    (_is_a(Matrix), open_matrix),
    (lambda value: hasattr(value, "tocsr") or is_sparse(value), open_sparse),
    (_is_a(str, os.PathLike), lambda path, asked: open_paths([path], asked)),
    (_are_paths, lambda paths, asked: open_paths(paths, asked)),
    (_is_a(pa.Table), lambda table, asked: open_table(table, f"the table of {asked.role}")),
]


def reusable(source: Source, memory: int) -> Source:
    """An opened source that several readers take one after the other; the caller closes it."""
    return source if source.kept is None else source.kept(memory, None)


def open_paths(given: Sequence[str | os.PathLike[str]], asked: InputOptions) -> Source:
    """Open files by their paths; the format is told, or found by their names or their content."""
    if not given:
        raise UsageError(f"the list of files of {asked.role} is empty; expected one path or more")
    paths = [os.fspath(one) for one in given]
    pipes = [path for path in paths if is_pipe(path)]
    if pipes:
        if len(paths) > 1:
            raise UsageError(f"{pipes[0]} is a pipe, and can only be given alone, without others")
        file, spooled = spool(pipes[0])
        with ExitStack() as stack:
            stack.callback(spooled.close)
            source = _open_files([file], file.name, asked)
            stack.callback(source.close)
            return replace(source, end=stack.pop_all().close)
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return _open_files(find_files(paths, asked.format), shown(paths[0]) + more, asked)


def _open_files(files: list[File], name: str, asked: InputOptions) -> Source:
    if asked.encoding or asked.block:
        told: Any = {"encoding": asked.encoding or "", "block": asked.block}
        files = [replace(file, **told) for file in files]
    with outside(name):
        alone = len(files) == 1
        kinds = {one.name: one.table or _told_format(one, asked) for one in files}
        kinds |= {
            one.name: format_of(one, asked, alone=alone) for one in files if not kinds[one.name]
        }
    held = {file: kind for file, kind in kinds.items() if kind}  # others are empty
    if len(set(held.values())) > 1:
        listed = ", ".join(f"{name} is {kind}" for name, kind in list(held.items())[:3])
        raise InputError(
            f"the files of {asked.role} have several formats: {listed}; expected one format for "
            "all: convert them, or say which it is"
        )
    kind = next(iter(held.values()), "csv")  # whose error is that it is empty
    place = "readers.table_formats" if files[0].table else FORMATS[kind].module
    module = importlib.import_module(f"rankmill.sources.{place}")
    with outside(name):
        source: Source = module.open_files(files, name, replace(asked, format=kind))
    for note in filter(None, (file.note for file in files)):
        source.findings.say(note)
    for file, schema in source.kinds().items():
        _check_names(file, schema)
    return _bounded(source)


def _told_format(file: File, asked: InputOptions) -> str | None:
    """The format that is told; a format of cells, such as csv-long, is told of any file."""
    told = asked.format
    named = format_of_name(file.name) if told and told.startswith("csv-") else None
    return told if named in (None, "csv", "tsv", "trec", "json") else named


def _check_names(file: str, schema: Any) -> None:
    """Raise InputError if a column of a file has a name that is not UTF-8."""
    for place in range(len(schema)):
        try:
            _ = schema.field(place).name
        except UnicodeDecodeError as error:
            raise InputError(
                f"{file}: the name of column {place + 1} is not UTF-8 ({error.object!r}); rename it"
            ) from None


def _bounded(source: Source) -> Source:
    """The source of files, in which every error of reading is one of the data."""

    @outside(source.name)
    def pieces(columns: list[str]) -> list[Iterator[Any]]:
        return [_blocks(piece, source.name) for piece in source.pieces(columns)]

    return replace(source, pieces=pieces)


def _blocks(piece: Iterator[Any], name: str) -> Iterator[Any]:
    """The blocks of a piece; one that is a function makes its batch within the boundary too."""
    with outside(name):
        for block in piece:
            yield outside(name)(block) if callable(block) else block
