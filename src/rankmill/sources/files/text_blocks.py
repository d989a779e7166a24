"""Read text a block of whole lines at a time."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankmill.columns.place import Place
from rankmill.errors import InputError, is_shortage
from rankmill.kernels.text import KINDS, NEWLINE, QUOTES, RETURN, survey
from rankmill.sources.files.encodings import (
    BYTE_ORDER_MARK,
    HOW,
    Recoded,
    broken_stream,
    check_text,
    decompressed,
)
from rankmill.sources.files.file_errors import first_line
from rankmill.sources.files.files import File, check_unchanged

BLOCK_BYTES = 1 << 22
HEAD_BYTES = 1 << 20
# A longer line is refused: it is read whole, and may be the rest of a file after an open quote.
LONGEST_LINE = 1 << 26
# The end of most lines is in so many bytes.
LAST_BYTES = 1 << 12
# The first bytes of text in UTF-16 and UTF-32, longest first.
OTHER_ENCODINGS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}

NO_BYTES = np.empty(0, np.uint8)

Cut = Callable[[np.ndarray, bool], int]


class TextBlock(NamedTuple):
    """Whole lines of a file, the number of the first one, counted from 1, and of line ends."""

    data: np.ndarray
    file: str
    first_line: int
    lines: int
    quotes: bool = True  # whether there may be some

    def place(self, lines: np.ndarray) -> Place:
        """The place of rows; `lines` are their lines, counted from 0 in this block."""
        if len(lines) and lines[-1] - lines[0] == len(lines) - 1:
            return Place(self.file, self.first_line + int(lines[0]), "line")
        return Place(self.file, self.first_line, "line", lines + self.first_line)

    def error(self, line: int, what: str) -> InputError:
        """The error for a line of this block, counted from 0."""
        return InputError(f"{self.file}: line {self.first_line + line}: {what}")


def last_line_end(data: np.ndarray, quotes: bool = False) -> int:
    """Where the last whole line ends; 0 if there is none."""
    for start in (max(0, len(data) - LAST_BYTES), 0):
        found = data[start:].tobytes().rfind(b"\n")
        if found >= 0:
            return start + found + 1
    return 0


def last_character(data: np.ndarray, quotes: bool) -> int:
    """Where the last character of one byte ends, for text that may be one line."""
    end = len(data)
    while end and data[end - 1] >= 0x80:
        end -= 1
    return end


def read_blocks(
    file: File, cut: Cut = last_line_end, size: int | None = None, header: int = 0
) -> Iterator[TextBlock]:
    """Yield the lines of a file, which may be compressed, in blocks of about `size` bytes.

    `cut` takes some bytes and whether there is a quote among them; it returns where the last row
    ends, or 0. By default a line is a row. The first `header` lines are passed over.
    """
    identity = file.identity()
    size = size or file.block or BLOCK_BYTES
    line, first = 1, True
    pending = NO_BYTES
    held = np.zeros(KINDS, np.bool_)
    try:
        with file.opened() as raw:
            stream = decompressed(raw, file.name)
            if file.encoding:
                stream = Recoded(stream, file.encoding, file.name)
            while len(more := _read_more(stream, pending, max(size, len(pending)))) > len(pending):
                pending = more
                if first:
                    first = False
                    pending = _without_mark(pending, file.name)
                if line <= header:
                    ends = np.flatnonzero(pending == NEWLINE)[: header - line + 1]
                    line += len(ends)
                    pending = pending[ends[-1] + 1 :] if len(ends) else pending
                    if line <= header:
                        continue
                lines = survey(pending, held)
                end = cut(pending, bool(held[QUOTES]))
                if end:
                    whole, pending = pending[:end], pending[end:]
                    check_text(whole, held, file.name, line)
                    lines -= count_lines(pending)
                    yield TextBlock(whole, file.name, line, lines, bool(held[QUOTES]))
                    line += lines
                elif len(pending) > LONGEST_LINE:
                    raise InputError(
                        f"{file.name}: line {line} or a quoted text in it does not end within "
                        f"{LONGEST_LINE} bytes; expected shorter rows: close the quotes"
                    )
    except broken_stream() as error:
        if is_shortage(error, f"reading {file.name}"):
            raise
        raise InputError(
            f"{file.name} cannot be read after line {line}: {first_line(error)}. Is it whole?"
        ) from None
    if len(pending) and line > header:
        lines = survey(pending, held)
        check_text(pending, held, file.name, line)
        yield TextBlock(pending, file.name, line, lines, bool(held[QUOTES]))
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
    blocks = read_blocks(file, cut, HEAD_BYTES)
    empty = TextBlock(np.empty(0, np.uint8), file.name, 1, 0)
    try:
        return next((one for one in blocks if one.data.tobytes().strip()), empty)
    finally:
        blocks.close()  # type: ignore[attr-defined]


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


def shown(data: np.ndarray, start: int, end: int) -> str:
    """A text of a block for a message."""
    text = data[start : min(end, start + 60)].tobytes().decode(errors="backslashreplace")
    return repr(text) + ("..." if end > start + 60 else "")
