"""The formats of files: their names and suffixes, and folders that are tables."""

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rankmill.errors import InputError, UsageError
from rankmill.io.stores.urls import is_url


class Format(NamedTuple):
    """A format of files."""

    module: str  # of `rankmill.sources`, whose `open_files` opens files of this format
    suffixes: tuple[str, ...]  # of the names of such files, in lower case
    meaning: str  # what the files hold, in a line
    files: str = ""  # the format whose suffixes this one shares; empty if it has its own


# What the name of a format adds to csv or tsv -> what the files hold.
_SHAPES = {
    "": "-separated text, its shape found by its first rows",
    "long": " with one item per row",
    "wide": " with a list of items in a cell",
    "pairs": " with items and confidences in a cell",
    **{
        one: f" with items separated by {one} in a cell"
        for one in ("spaces", "commas", "semicolons", "bars", "tabs")
    },
}


def _text(kind: str, separator: str, suffixes: tuple[str, ...]) -> dict[str, Format]:
    """The format of text with a separator, and those that also say what a cell holds."""
    return {
        f"{kind}-{shape}" if shape else kind: Format(
            "readers.separated_values",
            suffixes,
            (kind.upper() if shape else separator) + meaning,
            kind if shape else "",
        )
        for shape, meaning in _SHAPES.items()
    }


FORMATS = {
    "parquet": Format("readers.parquet", (".parquet", ".parq", ".pq"), "Apache Parquet"),
    "arrow": Format(
        "readers.arrow_files",
        (".arrow", ".arrows", ".ipc", ".feather"),
        "Arrow IPC files and streams",
    ),
    **_text("csv", "comma", (".csv",)),
    **_text("tsv", "tab", (".tsv", ".tab")),
    "trec": Format(
        "readers.trec",
        (".trec", ".run", ".qrels", ".qrel", ".res"),
        "qrels and runs as trec_eval has them",
    ),
    "json": Format(
        "memory.json_file", (), "one JSON object or list: by query, by column, or records"
    ),
    "jsonl": Format("readers.jsonl", (".jsonl", ".ndjson"), "JSON Lines: an object a line"),
}
"""Name of a format -> the format."""

# Told from the formats that are read, so that files of it are refused and not passed over.
ORC = "orc"
NO_ORC = (
    "ORC is not read: convert it to Parquet, in Python by "
    "pyarrow.parquet.write_table(pyarrow.orc.read_table('old.orc'), 'new.parquet')"
)
_SUFFIXES = {kind: one.suffixes for kind, one in FORMATS.items()} | {ORC: (".orc",)}

_LOADED = "load it in Python, and give what it holds"
# Where and with which bytes a binary file begins -> what it is, and how to give it.
_BINARY: dict[tuple[int, bytes | tuple[bytes, ...]], str] = {
    (0, b"PAR1"): "Parquet: name the format parquet with --labels-as or --predictions-as",
    (0, b"ARROW1"): "an Arrow file: name the format arrow with --labels-as or --predictions-as",
    (0, b"\x93NUMPY"): f"an array of NumPy: {_LOADED}: numpy.load(path)",
    (
        0,
        (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5"),
    ): f"a pickle of Python: {_LOADED}: pickle.load(file)",
    (0, b"SQLite format 3"): "a database of SQLite: give the table of a query, as pandas.read_sql "
    "or duckdb.sql gives it, or a CSV file of it",
    (8, b"DUCK"): "a database of DuckDB: give the relation of a query, as "
    "duckdb.connect(path).sql(query), or a Parquet file of it",
    (0, b"\x89HDF"): f"HDF5: {_LOADED}, such as by pandas.read_hdf(path)",
    (0, b"\xd0\xcf\x11\xe0"): "an old file of Excel: save it as CSV",
    (0, b"Obj\x01"): "Avro: convert it to Parquet",
}
FIRST_BYTES = 16
"""So many bytes tell what a binary file is."""


def binary_kind(start: bytes) -> str:
    r"""What a binary file is by its first bytes, and how to give it; empty if they do not tell.

    Examples
    --------
    >>> binary_kind(b"Obj\x01\x04"), binary_kind(b"user_id,item_id")
    ('Avro: convert it to Parquet', '')
    """
    found = (what for (place, magic), what in _BINARY.items() if start.startswith(magic, place))
    return next(found, "")


COMPRESSIONS = {
    **{".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".lz4": "lz4"},
    **{".xz": "xz", ".zip": "zip"},
}
"""Suffix of a compressed file -> the name that Arrow has for all but the last two compressions."""

# A TSV file may hold TREC's columns without a header, and one line of JSON Lines be all rows.
UNSURE = {"tsv", "jsonl"}
"""Formats of which the suffix may stand for another one."""


def format_of_name(name: str) -> str | None:
    """The format that the suffix of a file's name stands for, compressed or not; else None.

    Examples
    --------
    >>> format_of_name("labels.csv.gz"), format_of_name("labels.txt")
    ('csv', None)
    """
    return _format_of_suffixes(".".join(["", *name.lower().rsplit(".", 2)[1:]]))


@lru_cache(1 << 8)  # thousands of files have the same
def _format_of_suffixes(end: str) -> str | None:
    for suffix in COMPRESSIONS:
        end = end.removesuffix(suffix)
    for kind, suffixes in _SUFFIXES.items():
        if end.endswith(suffixes):
            return kind
    return None


def is_path(text: str) -> bool:
    """Whether a text is a path, and not the name of a column.

    Examples
    --------
    >>> [is_path(text) for text in ("users.csv", "./users", "country", "users.csv:country")]
    [True, True, False, True]
    """
    path = with_columns(text)[0]
    known = os.sep in path or is_url(path) or format_of_name(path) is not None
    return known or (":" in text and os.path.exists(text))


def with_columns(text: str) -> tuple[str, tuple[str, ...]]:
    """The path, and the columns that a text such as "users.csv:country,age" chooses of it.

    A text with a colon is a path if it exists, or names a format. A column may have a colon of its
    own, as in "users.csv:age:4".

    Examples
    --------
    >>> with_columns("users.csv:country,age"), with_columns("users:30.csv")
    (('users.csv', ('country', 'age')), ('users:30.csv', ()))
    """
    if format_of_name(text) or os.path.exists(text):
        return text, ()
    colons = (place for place, one in enumerate(text) if one == ":")
    split = [(text[:at], text[at + 1 :]) for at in colons if "/" not in text[at:]]
    tables = [
        (path, tuple(name.strip() for name in names.split(",")))
        for path, names in split
        if format_of_name(path) or (os.sep in path and not is_url(path))
    ]
    there = (one for one in tables if os.path.exists(one[0]))
    return next(there, tables[0] if tables else (text, ()))


def without_suffix(name: str) -> str:
    """The name of a file without the suffixes of its format and its compression.

    Examples
    --------
    >>> [without_suffix(name) for name in ("bm25.run", "new.csv.gz", "v1.2", "notes.txt")]
    ['bm25', 'new', 'v1.2', 'notes.txt']
    """
    base = name
    for suffix in COMPRESSIONS:
        if base.lower().endswith(suffix):
            base = base[: -len(suffix)]
    for one in (*(suffix for known in _SUFFIXES.values() for suffix in known), ".json"):
        if base.lower().endswith(one):
            return base[: -len(one)] or name
    return name


def compression_of(name: str) -> str | None:
    """The compression that the last suffix of a file's name stands for, or None."""
    return next(
        (kind for suffix, kind in COMPRESSIONS.items() if name.lower().endswith(suffix)), None
    )


def check_format(told: str | None) -> None:
    """Raise UsageError if there is no such format."""
    if told is not None and told not in FORMATS:
        why = NO_ORC if told == ORC else f"there is no format {told!r}"
        raise UsageError(f"{why}; expected one of {', '.join(FORMATS)}")


def files_of_one_format(
    directory: str, found: Sequence[tuple[str, Sequence[str]]], told: str | None
) -> list[str]:
    """The files of a directory that have the format `told`, or else the one format that they have.

    `found` are the path of each file, and its parts below the directory: hidden ones do not count.
    """
    by_format: dict[str, list[str]] = {}
    for path, parts in found:
        kind = format_of_name(parts[-1])
        if kind is not None and not any(part[0] in "._" for part in parts):
            by_format.setdefault(kind, []).append(path)
    if told is not None:
        by_format = {told: by_format.get(FORMATS[told].files or told, [])}
    if len(by_format) > 1:
        counts = ", ".join(f"{len(files)} of {kind}" for kind, files in by_format.items())
        raise InputError(
            f"the folder {directory} holds files of several formats: {counts}; choose one with "
            "--labels-as or --predictions-as"
        )
    files = [file for of_format in by_format.values() for file in of_format]
    if not files:
        expected = FORMATS[told] if told is not None else FORMATS["parquet"]
        more = "" if told is not None else ", or those of another format"
        raise InputError(
            f"the folder {directory} holds no file of {told or 'a known format'}; expected "
            f"names that end in {', '.join(expected.suffixes)}{more} (those that start with . or "
            "_ are ignored)"
        )
    return files


# What stands beside data and holds none, by a word in its name or by its suffix.
_ABOUT = re.compile(
    r"(readme|licen[cs]e|notice|citation|changelog|schema|manifest|metadata|checksum|dataset_info"
    r"|success)|^(state|config)[.]json$|(md5|sha[0-9]+)(sums?)?([.]txt)?$"
    r"|[.](md|rst|html?|pdf|png|jpe?g|svg|py|ipynb|sh|sql|ya?ml|toml|ini|cfg|log|crc|sig|asc)$"
)
# What differs between the names of the parts of one output.
_NUMBERS = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+")
_FEW = 3


def left_out(
    directory: str, found: Iterable[tuple[str, Sequence[str]]], chosen: Sequence[str]
) -> str:
    """The note on files of a directory that are not read, as their names are not those of data.

    `found` is as in `files_of_one_format`. Empty if there is nothing to tell; InputError for a part
    of the same output as one of the `chosen` files, of which only the suffix is missing.

    Examples
    --------
    >>> found = [(f"lab/{name}", [name]) for name in ("a.csv", "b.txt", "README.txt")]
    >>> left_out("lab", found, ["lab/a.csv"]).partition(":")[0]
    'lab'
    >>> left_out("lab", [found[0], found[2]], ["lab/a.csv"])
    ''
    """
    read = {*chosen}
    others = [
        parts
        for path, parts in found
        if path not in read
        and not any(part[0] in "._" for part in parts)
        and not _ABOUT.search(parts[-1].lower())
    ]
    if not others:
        return ""
    suffixes = _SUFFIXES[format_of_name(chosen[0]) or "csv"]
    outputs = {_NUMBERS.sub("#", os.path.basename(one).partition(".")[0]): one for one in chosen}
    for parts in others:
        pattern = _NUMBERS.sub("#", parts[-1])
        like = outputs.get(pattern, "")
        if "#" in pattern and like:
            raise InputError(
                f"the folder {directory} holds {'/'.join(parts)}, which has no suffix and would be "
                f"left out, unlike {os.path.basename(like)}: add {suffixes[0]} to its name, or "
                "move it away"
            )
    names = ", ".join("/".join(parts) for parts in others[:_FEW])
    more = f", and {len(others) - _FEW:,} more" if others[_FEW:] else ""
    return (
        f"{directory}: not read, as they do not end in {' or '.join(suffixes)}: {names}{more}; "
        "if these are data, rename them by their format"
    )


# ------------------------------------------------------------------ folders of tables

# What shows the format of a table: a folder of Delta's log, and a file of Iceberg's metadata.
LOG, METADATA, SUFFIX = "_delta_log", "metadata", ".metadata.json"


def table_kind(folder: str) -> str:
    """The format of the table whose folder on the disk this is; an empty text if it is none."""
    if os.path.isdir(os.path.join(folder, LOG)):
        return "delta"
    return "iceberg" if any(Path(folder, METADATA).glob(f"*{SUFFIX}")) else ""


def tables_among(paths: Iterable[str]) -> dict[str, str]:
    """The folder of each table that some paths of a store show, and its format.

    Examples
    --------
    >>> tables_among(["a/x.parquet", "a/_delta_log/0.json", "b/metadata/1.metadata.json"])
    {'a': 'delta', 'b': 'iceberg'}
    """
    found = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        above, _, last = folder.rpartition("/")
        if last == LOG or (last == METADATA and name.endswith(SUFFIX)):
            found[above] = "delta" if last == LOG else "iceberg"
    return found


def is_below(path: str, folders: Iterable[str]) -> bool:
    """Whether a path is in one of some folders, at any depth."""
    return any(path.startswith(f"{folder}/") for folder in folders)


def check_no_parts(paths: Iterable[str]) -> None:
    """Raise InputError if a file or a folder on the disk is in the folder of a table."""
    within = {os.path.dirname(os.path.abspath(path)): path for path in paths}
    above = {str(one): path for folder, path in within.items() for one in Path(folder, "_").parents}
    for folder, path in above.items():
        if kind := table_kind(folder):
            raise part_of_table(path, folder, kind)


def part_of_table(path: str, folder: str, kind: str) -> InputError:
    """The error for a part of a table that was given by itself."""
    return InputError(
        f"{path} is a part of the {kind.capitalize()} table {folder}, and may hold rows that were "
        "removed from it; expected the folder of the table: give that"
    )
