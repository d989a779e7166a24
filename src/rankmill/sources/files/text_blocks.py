"""Read text a block of whole lines at a time, and turn places in a block into Arrow arrays."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.place import Place
from rankmill.errors import InputError, is_shortage
from rankmill.kernels.cells import MOST_SIGNED, parse_floats, parse_integers
from rankmill.kernels.lists import pack_strings
from rankmill.kernels.text import KINDS, NEWLINE, QUOTES, RETURN, survey
from rankmill.sources.files.encodings import BYTE_ORDER_MARK, HOW, Recoded, check_text
from rankmill.sources.files.files import File, check_unchanged
from rankmill.sources.files.footers import first_line
from rankmill.sources.files.formats import compression_of

BLOCK_BYTES = 1 << 22
HEAD_BYTES = 1 << 20
# A longer line is refused: it is read whole, and may be the rest of a file after an open quote.
LONGEST_LINE = 1 << 26
# The end of most lines is in so many bytes.
LAST_BYTES = 1 << 12
INT64 = pa.int64()
# The first bytes of text in UTF-16 and UTF-32, longest first.
OTHER_ENCODINGS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}

# The first bytes of compressed files -> the compression.
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
}

# The powers of ten that float64 holds exactly.
POWERS = 10.0 ** np.arange(23)

# The lines before the first one that holds anything.
BLANK_START = re.compile(rb"(?:[ \r]*\n)*+")

NO_BYTES = np.empty(0, np.uint8)

Cut = Callable[[np.ndarray, bool], int]


class TextBlock(NamedTuple):
    """Whole lines of a file, the number of the first one, counted from 1, and of line ends."""

    data: np.ndarray
    file: str
    first_line: int
    lines: int

    def place(self, lines: np.ndarray) -> Place:
        """The place of rows; `lines` are their lines, counted from 0 in this block."""
        if len(lines) and lines[-1] - lines[0] == len(lines) - 1:
            return Place(self.file, self.first_line + int(lines[0]), "line")
        return Place(self.file, self.first_line, "line", lines + self.first_line)

    def error(self, line: int, what: str) -> InputError:
        """The error for a line of this block, counted from 0."""
        return InputError(f"{self.file}: line {self.first_line + line}: {what}")


class Texts(NamedTuple):
    """The texts of a column: one a row, or those in the rows' lists."""

    name: str  # the column
    place: Place  # where the rows stand
    data: np.ndarray
    starts: np.ndarray  # where each text starts and ends in the data
    ends: np.ndarray
    offsets: np.ndarray | None = None  # int64[rows + 1]: the texts of each row's list

    def shown(self, i: int) -> str:
        """Text i for a message."""
        return shown(self.data, self.starts[i], self.ends[i])

    def error(self, i: int, what: str) -> InputError:
        """The error for text i."""
        offsets = self.offsets
        row = i if offsets is None else int(np.searchsorted(offsets, i, side="right")) - 1
        return InputError(f"{self.place.source}: {self.place.of(row)}: {what}")


def last_line_end(data: np.ndarray, quotes: bool = False) -> int:
    """Where the last whole line ends; 0 if there is none."""
    for start in (max(0, len(data) - LAST_BYTES), 0):
        found = data[start:].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
    return 0


def read_blocks(
    file: File, cut: Cut = last_line_end, size: int | None = None, header: int | None = None
) -> Iterator[TextBlock]:
    """Yield the lines of a file, which may be compressed, in blocks of about `size` bytes.

    `cut` takes some bytes and whether there is a quote among them; it returns where the last row
    ends, or 0. By default a line is a row. With `header`, blank lines at the start are passed over,
    and so many bytes behind them, which end in a line end.
    """
    identity = file.identity()
    size = size or file.block or BLOCK_BYTES
    line, first = 1, True
    pending = NO_BYTES
    held = np.zeros(KINDS, np.bool_)
    try:
        with file.opened() as raw:
            stream = _decompressed(raw, file.name)
            if file.encoding:
                stream = Recoded(stream, file.encoding, file.name)
            while len(more := _read_more(stream, pending, max(size, len(pending)))) > len(pending):
                pending = more
                if first:
                    first = False
                    pending = _without_mark(pending, file.name)
                    if header is not None:
                        start = header + BLANK_START.match(pending.data).end()  # type: ignore[union-attr]
                        line += count_lines(pending[:start])
                        pending = pending[start:]
                lines = survey(pending, held)
                end = cut(pending, bool(held[QUOTES]))
                if end:
                    whole, pending = pending[:end], pending[end:]
                    check_text(whole, held, file.name, line)
                    lines -= count_lines(pending)
                    yield TextBlock(whole, file.name, line, lines)
                    line += lines
                elif len(pending) > LONGEST_LINE:
                    raise InputError(
                        f"{file.name}: line {line} or a quoted text in it does not end within "
                        f"{LONGEST_LINE} bytes; expected shorter rows: close the quotes"
                    )
    except (pa.ArrowException, OSError, EOFError) as error:
        if is_shortage(error, f"reading {file.name}"):
            raise
        raise InputError(
            f"{file.name} cannot be read after line {line}: {first_line(error)}. Is it whole?"
        ) from None
    if len(pending):
        lines = survey(pending, held)
        check_text(pending, held, file.name, line)
        yield TextBlock(pending, file.name, line, lines)
    check_unchanged(file, identity)


def count_lines(data: np.ndarray) -> int:
    """The number of line ends."""
    return int(np.count_nonzero(data == NEWLINE))


def sizes_of(
    files: Sequence[File], densities: Sequence[float]
) -> Callable[[list[str]], dict[str, tuple[int, int]]]:
    """The `sizes` of a source of text, estimated by the number of rows a byte of each file."""

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        bytes_of = [file.identity()[2] for file in files]
        rows = sum(int(size * rate) for size, rate in zip(bytes_of, densities, strict=True))
        return dict.fromkeys(columns, (rows, sum(bytes_of) // max(1, len(columns))))

    return sizes


def read_head(file: File, cut: Cut = last_line_end) -> TextBlock:
    """The first lines of a file that are not blank; no line if the file is empty."""
    blocks = read_blocks(file, cut, HEAD_BYTES, header=0)
    empty = TextBlock(np.empty(0, np.uint8), file.name, 1, 0)
    try:
        return next(blocks, empty)
    finally:
        blocks.close()  # type: ignore[attr-defined]


def _decompressed(raw: Any, name: str) -> Any:
    """The stream without its compression, which the suffix tells, or else the first bytes."""
    start = bytes(raw.read(4))
    raw.seek(0)
    kinds = (kind for magic, kind in COMPRESSED.items() if start.startswith(magic))
    kind = compression_of(name) or next(kinds, None)
    return raw if kind is None else pa.CompressedInputStream(raw, kind)


def _read_more(stream: Any, pending: np.ndarray, size: int) -> np.ndarray:
    """What is pending, and up to `size` more bytes of a stream."""
    end = len(pending)
    data = np.empty(end + size, np.uint8)
    data[:end] = pending
    with data.data as whole:
        while end < len(whole) and (count := stream.readinto(whole[end:])):
            end += count
    return data[:end]


def _without_mark(chunk: np.ndarray, name: str) -> np.ndarray:
    """The start of a text without a byte order mark; an InputError if no text begins like this."""
    start = chunk[:4].tobytes()
    for mark, encoding in OTHER_ENCODINGS.items():
        if start.startswith(mark):
            raise InputError(
                f"{name} is text in {encoding.upper()}; expected UTF-8: save it as UTF-8, or "
                f"name its encoding, {encoding}, {HOW}"
            )
    if RETURN in chunk and NEWLINE not in chunk:
        raise InputError(
            f"{name}: line 1: lines end in a carriage return alone; expected line feeds"
        )
    return chunk[len(BYTE_ORDER_MARK) :] if start.startswith(BYTE_ORDER_MARK) else chunk


def strings(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> Any:
    """Strings at places of a block as an Arrow array; an empty one is null."""
    count = len(starts)
    offsets = np.zeros(count + 1, np.int64)
    packed = np.empty(int(ends.sum() - starts.sum()), np.uint8)
    pack_strings(starts, ends, data, 0, offsets[1:], packed)
    valid = ends > starts
    validity = None
    if not valid.all():
        validity = pa.py_buffer(np.packbits(valid, bitorder="little"))
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(packed)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers)


def integers(
    data: np.ndarray, starts: np.ndarray, ends: np.ndarray, kind: Any = INT64
) -> tuple[Any, int]:
    """Integers at places of a block as an Arrow array, and the first place without one, or -1.

    An empty string is null. A number with leading zeros or a plus is no integer, because it may
    be a text that was meant as it is.
    """
    values = np.empty(len(starts), np.int64)
    most = MOST_SIGNED if kind == INT64 else np.uint64(2**64 - 1)
    bad = parse_integers(data, starts, ends, most, values)
    if kind != INT64:
        values = values.view(np.uint64)
    return _with_nulls(values, ends > starts), bad


def numbers(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[Any, int]:
    """Floats at places of a block as an Arrow array, and the first place without one, or -1.

    An empty string is null.
    """
    values, slow = np.zeros(len(starts)), np.empty(len(starts), np.bool_)
    valid = ends > starts
    if parse_floats(data, starts, ends, POWERS, values, slow):
        rows = np.flatnonzero(slow & valid)
        try:
            values[rows] = numbers_of(strings(data, starts[rows], ends[rows]).cast(pa.float64()))
        except pa.ArrowInvalid:  # one is not a number, or is written as only Python reads it
            for i in rows.tolist():
                value = _float_of(data[starts[i] : ends[i]].tobytes())
                if value is None:
                    return None, i
                values[i] = value
    return _with_nulls(values, valid), -1


def _with_nulls(values: np.ndarray, valid: np.ndarray) -> Any:
    """Numbers as an Arrow array, with nulls where they are not valid."""
    if valid.all():
        return arrow_of(values)
    buffers = [pa.py_buffer(np.packbits(valid, bitorder="little")), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), buffers)


def _float_of(text: bytes) -> float | None:
    """The number that a text stands for, as C's strtod reads decimals; None if it is not one."""
    try:
        return None if b"_" in text else float(text)
    except ValueError:
        return None


def shown(data: np.ndarray, start: int, end: int) -> str:
    """A text of a block for a message."""
    text = data[start : min(end, start + 60)].tobytes().decode(errors="backslashreplace")
    return repr(text) + ("..." if end > start + 60 else "")
