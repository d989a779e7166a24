"""Which files a run read: enough to tell later whether they were the same."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import NamedTuple

from rankmill.errors import InputError
from rankmill.io.stores.urls import is_url, shown
from rankmill.sources.files.files import File, find_files, is_pipe
from rankmill.sources.files.footers import read_footer

REQUESTS = 16


class Fingerprint(NamedTuple):
    """What is known of an input; all but the source are None where it was no file.

    Attributes
    ----------
    source : str
        As the output of the run names it.
    paths : list of str or None
        The files that were read, without credentials.
    bytes : int or None
        Their size.
    rows : int or None
    modified : datetime or None
        When the newest of them was written, in UTC.
    checksum : str or None
        A hash of the footers of all files, if all are Parquet: other rows give other footers.
    """

    source: str
    paths: list[str] | None = None
    bytes: int | None = None
    rows: int | None = None
    modified: datetime | None = None
    checksum: str | None = None


def fingerprint(
    details: Mapping[str, object], source: str | Sequence[str] | None = None
) -> Fingerprint:
    """Return the fingerprint of an input.

    Parameters
    ----------
    details : mapping
        What a result says of the input, as ``result.inputs["labels"]``.
    source : str or sequence of str, optional
        The paths that the input was opened by; without them, its name if that is a path.
    """
    name = str(details.get("source", ""))
    rows = details.get("rows")
    rows = rows if isinstance(rows, int) else None
    try:
        files = _files(name if source is None else source)
        sizes = [(file.listed or file.identity())[2:] for file in files]
    except (InputError, OSError):  # gone by now, or never a file
        files = []
    if not files:
        return Fingerprint(name, rows=rows)
    return Fingerprint(
        name,
        [shown(file.name) for file in files],
        sum(size for size, _ in sizes),
        rows,
        datetime.fromtimestamp(max(written for _, written in sizes) // 1000 / 1e6, UTC),
        _checksum(files),
    )


def _files(source: object) -> list[File]:
    """The files that a source stands for; none for what is no path."""
    paths = [source] if isinstance(source, str) else source
    if not isinstance(paths, Sequence) or not all(isinstance(path, str) for path in paths):
        return []
    if not paths or not all(path and not is_pipe(path) for path in paths):
        return []
    return [file for file in find_files(paths) if is_url(file.name) or os.path.isfile(file.path)]


def _checksum(files: Sequence[File]) -> str | None:
    from hashlib import blake2b

    hashed = blake2b(digest_size=16)
    try:
        with ThreadPoolExecutor(REQUESTS) as pool:  # of stores, several objects at a time
            for footer in pool.map(read_footer, files):
                hashed.update(footer.raw.tobytes())
    except InputError:  # no Parquet
        return None
    return hashed.hexdigest()
