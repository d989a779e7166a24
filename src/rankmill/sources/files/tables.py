"""Folders of tables: their own metadata tell which of their files hold rows."""

import os
from collections.abc import Iterable
from pathlib import Path

from rankmill.errors import InputError

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
