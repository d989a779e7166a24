"""Read Apache ORC files."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rankmill.columns.place import Place
from rankmill.errors import InputError
from rankmill.sources.asked import Asked
from rankmill.sources.base import Batch, Source
from rankmill.sources.files import File, check_unchanged
from rankmill.sources.folders import folder_columns, whole_schema, with_folders
from rankmill.sources.reading import Identity, blamed, broken, check_room, native
from rankmill.sources.stream import joined, sliced, unknown_sizes


@dataclass(frozen=True)
class OrcPart:
    """A file, its schema, rows and stripes by its footer, and the columns that its folders give."""

    file: File
    identity: Identity
    stored: Any
    rows: int
    stripes: int
    folders: dict[str, Any]
    memory: int

    @property
    def schema(self) -> Any:
        """The schema with the columns of the folders."""
        return whole_schema(self.stored, self.folders)


def open_files(files: Sequence[File], name: str, asked: Asked) -> Source:
    """Open ORC files; only their footers are read at this point.

    Raises
    ------
    InputError
        If a file cannot be read as ORC.
    """
    opened = [_opened(file) for file in files]
    folders = folder_columns(files, [part.stored for part in opened])
    parts = [
        replace(part, folders=of_file, memory=asked.memory)
        for part, of_file in zip(opened, folders, strict=True)
    ]
    return Source(
        name=name,
        schemas={part.file.name: part.schema for part in parts},
        rows=sum(part.rows for part in parts),
        sizes=unknown_sizes,
        pieces=lambda columns: [piece for part in parts for piece in _pieces(part, columns)],
        format="ORC",
    )


def _opened(file: File) -> OrcPart:
    from pyarrow import orc

    try:
        identity = file.identity()
    except OSError as error:
        raise InputError(f"{file.name} cannot be opened: {error.strerror or error}") from None
    with blamed(file, identity, "its footer"), native(file) as raw:
        found = orc.ORCFile(raw)
        if found.nrows and not found.nstripes:
            raise ValueError(f"it says {found.nrows} rows, but names no stripe")
        return OrcPart(file, identity, found.schema, found.nrows, found.nstripes, {}, 0)


@dataclass
class _Count:
    """How many rows the stripes of a file gave, which threads read at once."""

    stripes: int
    rows: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def add(self, rows: int) -> int | None:
        """Count the rows of a stripe; returns the rows of all if it is the last one."""
        with self.lock:
            self.rows += rows
            self.stripes -= 1
            return None if self.stripes else self.rows


def _pieces(part: OrcPart, columns: list[str]) -> list[Iterator[Batch]]:
    count = _Count(part.stripes)
    return [_read(part, stripe, columns, count) for stripe in range(part.stripes)]


def _read(part: OrcPart, stripe: int, columns: list[str], count: _Count) -> Iterator[Batch]:
    """Yield the batches of a stripe; pyarrow does not tell which row is its first."""
    stored = [name for name in columns if name not in part.folders]
    data = _stripe(part, stripe, stored or part.stored.names[:1])
    total = count.add(data.num_rows)
    if total is not None and total != part.rows:
        raise broken(
            part.file, f"its stripes hold {total} rows together, but its footer says {part.rows}"
        )
    place = Place(part.file.name, 0 if stripe == 0 else -1)
    for each in joined(sliced([data])):
        yield Batch(with_folders(each, part.folders, columns), place)
        place = place.onwards(each.num_rows)


def _stripe(part: OrcPart, stripe: int, columns: list[str]) -> Any:
    from pyarrow import orc

    # pyarrow tells the rows of all stripes, and those of one only when it has read them.
    rows = part.rows // part.stripes
    width = sum(map(_least_width, map(part.stored.field, columns)))
    with blamed(part.file, part.identity, f"stripe {stripe}"), native(part.file) as raw:
        check_room(part.file, f"a stripe of {rows:,} rows", rows * width, part.memory)
        data = orc.ORCFile(raw).read_stripe(stripe, columns=columns)
        check_unchanged(part.file, part.identity)
        data.validate(full=True)
    return data


def _least_width(field: Any) -> int:
    """The bytes that a row of a column takes at least; a text or list has an offset."""
    try:
        return max(1, int(field.type.bit_width) // 8)
    except ValueError:
        return 4
