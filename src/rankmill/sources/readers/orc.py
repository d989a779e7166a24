"""Read Apache ORC files, in another process (`orc_process.py`)."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.sources.files.file_errors import SMALL, Identity, blamed, check_room, native
from rankmill.sources.files.files import File, check_unchanged
from rankmill.sources.files.folders import folder_columns, whole_schema, with_folders
from rankmill.sources.input_options import InputOptions
from rankmill.sources.readers.orc_process import LimitError, Readers
from rankmill.sources.roles.source import Batch, Source
from rankmill.sources.roles.streams import joined


@dataclass(frozen=True)
class OrcPart:
    """A file, its schema, rows and stripes by its footer, and the columns that its folders give."""

    file: File
    identity: Identity
    stored: Any
    rows: int
    stripes: int
    folders: dict[str, Any]
    memory: int  # the most that a stripe may take


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open ORC files; only their footers are read at this point."""
    readers = Readers(max(asked.memory, SMALL))
    opened = [_opened(file, readers) for file in files]
    folders = folder_columns(files, [part.stored for part in opened])
    parts = [
        replace(part, folders=of_file, memory=asked.memory)
        for part, of_file in zip(opened, folders, strict=True)
    ]
    return Source(
        name=name,
        schemas={part.file.name: whole_schema(part.stored, part.folders) for part in parts},
        rows=sum(part.rows for part in parts),
        pieces=lambda columns: [one for part in parts for one in _pieces(part, columns, readers)],
        end=readers.close,
        format="ORC",
    )


def _opened(file: File, readers: Readers) -> OrcPart:
    try:
        identity = file.identity()
    except OSError as error:
        raise InputError(f"{file.name} cannot be opened: {error.strerror or error}") from None
    with _blamed(file, identity, "its footer"), native(file) as raw, readers.reader() as reader:
        schema, rows, stripes = reader.footer(raw)
        if rows and not stripes:
            raise ValueError(f"it says {rows} rows, but names no stripe")
        return OrcPart(file, identity, schema, rows, stripes, {}, 0)


def _pieces(part: OrcPart, columns: list[str], readers: Readers) -> list[Iterator[Batch]]:
    found: list[int] = []  # the rows of each stripe, which threads read at once
    return [_read(part, stripe, columns, found, readers) for stripe in range(part.stripes)]


def _read(
    part: OrcPart, stripe: int, columns: list[str], found: list[int], readers: Readers
) -> Iterator[Batch]:
    """Yield the batches of a stripe; pyarrow does not tell which row is its first."""
    stored = [name for name in columns if name not in part.folders] or part.stored.names[:1]
    place = Place(part.file.name, 0 if stripe == 0 else -1)
    for each in joined(_batches(part, stripe, stored, found, readers)):
        yield Batch(with_folders(each, part.folders, columns), place)
        place = place.onwards(each.num_rows)


def _batches(
    part: OrcPart, stripe: int, columns: list[str], found: list[int], readers: Readers
) -> Iterator[Any]:
    """Yield the record batches of a stripe, which are valid, because kernels trust them."""
    # pyarrow tells the rows of all stripes, and those of one only when it has read them.
    expected = part.rows // part.stripes
    width = sum(map(_least_width, map(part.stored.field, columns)))
    with _blamed(part.file, part.identity, f"stripe {stripe}"), readers.reader() as reader:
        with native(part.file) as raw:
            check_room(part.file, f"a stripe of {expected:,} rows", expected * width, part.memory)
            rows, size, batches = reader.stripe(raw, stripe, columns)
        check_unchanged(part.file, part.identity)
        check_room(part.file, f"stripe {stripe} of {rows:,} rows", size, part.memory)
        found.append(rows)
        if len(found) == part.stripes and sum(found) != part.rows:
            raise ValueError(f"all stripes hold {sum(found)} rows, but the footer says {part.rows}")
        for data in batches:
            data.validate(full=True)
            rows -= data.num_rows
            yield data
        if rows:
            raise ValueError(f"{rows} of its rows are missing")


@contextmanager
def _blamed(file: File, identity: Identity, what: str) -> Iterator[None]:
    """Raise InputError for an error of pyarrow, or for a file that needs too much memory."""
    with blamed(file, identity, what):
        try:
            yield
        except LimitError as error:
            check_unchanged(file, identity)
            raise InputError(
                f"{file.name}: {what} takes several times the memory that --memory allows "
                f"for it ({error}): allow more, or write smaller parts"
            ) from None


def _least_width(field: Any) -> int:
    """The bytes that a row of a column takes at least; a text or list has an offset."""
    try:
        return max(1, int(field.type.bit_width) // 8)
    except ValueError:
        return 4
