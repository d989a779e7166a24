"""Text in blocks of whole lines: its encoding, its blocks, and what separates its fields."""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.ranked_lists import Place
from rankmill.errors import InputError, UsageError, is_shortage, plural
from rankmill.kernels.text import (
    BLANK_BEFORE_QUOTE,
    KINDS,
    NEWLINE,
    NON_ASCII,
    QUOTES,
    RETURN,
    TEXT_BEHIND_QUOTE,
    UNCLOSED,
    ZEROS,
    find_rows,
    has_runs,
    part_by_tabs,
    survey,
)
from rankmill.sources.files.files import File, check_unchanged, first_line
from rankmill.sources.files.formats import FIRST_BYTES, binary_kind

# ------------------------------------------------------------------ text of any encoding

READ_BYTES = 1 << 20
BYTE_ORDER_MARK = codecs.BOM_UTF8
# How to name an encoding; other files, such as those of slices and of training, are UTF-8.
HOW = (
    "with --encoding NAME (--label-encoding NAME for labels alone) on "
    "the command line, Labels(encoding=...) and Predictions(encoding=...) in Python"
)
# The first bytes of compressed files -> the compression.
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bz2",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
    b"PK\x03\x04": "zip",
}
# macOS puts what only it needs beside each file of an archive.
BESIDE = "__MACOSX/"


def decompressed(raw: Any, name: str) -> Any:
    """The stream of a file without its compression; of a zip, the only file in it."""
    start = bytes(raw.read(max(map(len, MAGIC))))
    raw.seek(0)
    kind = next((kind for magic, kind in MAGIC.items() if start.startswith(magic)), None)
    if kind == "xz":
        import lzma

        return lzma.open(raw)
    if kind == "zip":
        return _only_file(raw, name)
    return raw if kind is None else pa.CompressedInputStream(raw, kind)


def _only_file(raw: Any, name: str) -> Any:
    import zipfile

    archive = zipfile.ZipFile(raw)
    held = [one for one in archive.namelist() if not one.endswith("/") and BESIDE not in one]
    if len(held) != 1 or held[0].endswith(".npy"):
        if any(one.startswith("xl/") for one in held):
            raise InputError(
                f"{name} is a workbook of Excel: save it as CSV, or give pandas.read_excel(path)"
            )
        if held and all(one.endswith(".npy") for one in held):
            raise InputError(
                f"{name} holds arrays of NumPy: load it, and give one: numpy.load(path)[name]"
            )
        listed = ", ".join([*held[:3], *(["..."] if held[3:] else [])]) or "none"
        raise InputError(
            f"{name} is a zip of {len(held)} files: {listed}; expected one: unpack it, and name "
            "the files to read"
        )
    return archive.open(held[0])


def broken_stream() -> tuple[type[Exception], ...]:
    """The errors of a stream that breaks off, or breaks the rules of its compression."""
    import lzma
    import zipfile
    import zlib

    of_python = (lzma.LZMAError, zipfile.BadZipFile, zlib.error, RuntimeError)
    return (pa.ArrowException, OSError, EOFError, *of_python)


class NulError(InputError):
    """A byte of 0 in what was taken for text: it may be a binary file."""


def check_encoding(name: str) -> None:
    """Raise UsageError if Python has no encoding of text of this name."""
    try:
        codecs.getincrementaldecoder(name)
        known = codecs.lookup(name)._is_text_encoding
    except (LookupError, TypeError, ValueError):
        known = False
    if not known:
        raise UsageError(
            f"there is no encoding {name!r}; expected one that Python knows, such as latin-1, "
            "cp1252, utf-16 or shift_jis"
        )


def check_text(data: np.ndarray, held: np.ndarray, file: str, line: int) -> None:
    """Raise InputError unless whole lines are text in UTF-8; `line` is the number of the first one.

    `held` is what `survey` found in the data, or in more than these.
    """
    if not (held[ZEROS] or held[NON_ASCII]):
        return
    text = data.tobytes()
    zero = text.find(0)
    if zero >= 0:
        raise NulError(
            f"{_spot(text, zero, file, line)} is 0, which no text holds: write the file again, or "
            f"name its encoding, such as utf-16-le, {HOW}"
        )
    offsets = pa.py_buffer(np.array([0, len(text)], np.int64))
    try:
        # This takes half the time of decoding.
        pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(text)).validate(full=True)
    except pa.ArrowInvalid:
        bad = _first_wrong(text)
        raise InputError(
            f"{_spot(text, bad, file, line)} is {text[bad]:#x}, which is not UTF-8; save the file "
            f"as UTF-8, or name its encoding, such as latin-1 or cp1252, {HOW}"
        ) from None
    mark = 0 if text.startswith(BYTE_ORDER_MARK) else -1
    if mark < 0 and text.find(BYTE_ORDER_MARK[:1]) >= 0:  # one byte is found much sooner
        mark = text.find(b"\n" + BYTE_ORDER_MARK)
        mark += mark >= 0
    if mark >= 0:
        raise InputError(
            f"{_spot(text, mark, file, line)} begins a byte order mark, as where files were joined "
            "to one: remove the mark, and the second header if there is one"
        )


def _first_wrong(text: bytes) -> int:
    """The first byte that is no UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.start
    return 0


def _spot(text: bytes, place: int, file: str, line: int) -> str:
    start = text.rfind(b"\n", 0, place) + 1
    line += text.count(b"\n", 0, start)
    return f"{file}: line {line}: byte {place - start + 1}"


class Recoded:
    """A stream of bytes, which are text in some encoding, as a stream in UTF-8."""

    def __init__(self, stream: Any, encoding: str, name: str) -> None:
        self._stream, self._name = stream, name
        self._encoding = encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready = memoryview(b"")
        self._line = 1
        self._first = True

    def readinto(self, out: memoryview) -> int:
        """Fill a buffer with text; return the number of bytes, 0 at the end."""
        while not self._ready:
            raw = bytes(self._stream.read(READ_BYTES))
            if self._first and raw.startswith(BYTE_ORDER_MARK) and not self._is_utf8():
                raise InputError(
                    f"{self._name} begins with the byte order mark of UTF-8, but is said to be "
                    f"{self._encoding}: leave the encoding out"
                )
            text = self._decoded(raw)
            if self._first and text.startswith("\ufeff"):
                text = text[1:]
            self._first = self._first and not text
            self._line += text.count("\n")
            self._ready = memoryview(text.encode())
            if not raw:
                break
        count = min(len(out), len(self._ready))
        out[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _is_utf8(self) -> bool:
        return codecs.lookup(self._encoding).name in ("utf-8", "utf-8-sig")

    def _decoded(self, raw: bytes) -> str:
        try:
            text = self._decoder.decode(raw, final=not raw)
            text.encode()  # some encodings write half a character
        except UnicodeError as error:
            line = self._line
            if isinstance(error, UnicodeDecodeError):
                before = error.object[: error.start].decode(error.encoding, "ignore")
                line += before.count("\n")
            raise InputError(
                f"{self._name}: line {line} holds bytes that are not text in {self._encoding}; "
                f"expected that encoding throughout: name another, {HOW}"
            ) from None
        return text


BLOCK_BYTES = 1 << 22
HEAD_BYTES = 1 << 20
# A longer line is refused: it is read whole, and may be the rest of a file after an open quote.
LONGEST_LINE = 1 << 26
# The end of most lines is in so many bytes.
LAST_BYTES = 1 << 12
# Bytes below this are in no text.
CONTROL = ord("\t")
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
    start = chunk[:FIRST_BYTES].tobytes()
    no_text = start[:1] >= b"\x80" or (chunk[:LAST_BYTES] < CONTROL).any()
    if no_text and (what := binary_kind(start)):
        raise InputError(f"{name} is {what}")
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


# ------------------------------------------------------------------ separators

# Runs of blanks separate the fields of TREC's formats; `::` those of MovieLens' first files.
BLANKS, COLONS = " ", "::"
SEPARATORS = (",", "\t", ";", "|", COLONS, BLANKS)
# What stands between fields where one byte has to, and no text of a file holds.
UNIT = b"\x1f"
ALL = 1 << 62
NO_ROWS = np.empty(0, np.int64)
# What comes before the header of a file: empty lines, and what tells Excel the separator.
_BEGIN = re.compile(rb'(?:[ \t]*\r?\n)*(?:"?sep=(.)"?[ \t]*\r?\n(?:[ \t]*\r?\n)*)?')
WRONG = {
    UNCLOSED: "a quoted text that starts here is not closed; expected a quote at its end",
    TEXT_BEHIND_QUOTE: "a quoted text is followed by more text; expected the end of the field "
    'after its quote: write a quote within the text as ""',
    BLANK_BEFORE_QUOTE: "spaces precede a quote, which quotes nothing then: write no spaces "
    "between a separator and a quote",
}


class Rows(NamedTuple):
    """The rows of a block: the line of each, counted from 0, and the number of its fields."""

    lines: np.ndarray
    fields: np.ndarray
    wrong: str = ""  # what is wrong with the quotes of the row behind them
    line: int = 0  # that of the wrong row


def one_byte(data: np.ndarray, separator: str, most: int = ALL) -> tuple[np.ndarray, str]:
    """The data with one byte between fields, and that byte.

    Of rows between whose fields are blanks, `most` fields are kept.
    """
    if separator == BLANKS and most == ALL and not has_runs(data):
        return data, BLANKS
    if separator == BLANKS:
        out = np.empty(len(data), np.uint8)
        return out[: part_by_tabs(data, most, out)], "\t"
    if separator == COLONS:
        parted = data.tobytes().replace(COLONS.encode(), UNIT)
        return np.frombuffer(parted, np.uint8), UNIT.decode()
    return data, separator


def has_quotes(separator: str) -> bool:
    """Whether a field may be quoted."""
    return separator not in (BLANKS, COLONS)


def rows_of(data: np.ndarray, separator: str, most: int = ALL, quotes: bool = True) -> Rows:
    """The rows of some data, as far as their quotes are right."""
    data, delimiter = one_byte(data, separator, most)
    length = int(np.count_nonzero((data == NEWLINE) | (data == RETURN))) + 1
    lines, fields = np.empty((2, length), np.int64)
    found = np.zeros(3, np.int64)
    quotes = quotes and has_quotes(separator)
    wrong = find_rows(data, ord(delimiter), quotes, lines, fields, found)
    count = int(found[0])
    return Rows(lines[:count], fields[:count], WRONG.get(wrong, ""), int(found[2]))


def cut_rows(separator: str, quotes: bool = True) -> Cut:
    """The function that tells where the last whole row ends; quotes matter where there are some."""

    def cut(data: np.ndarray, held: bool) -> int:
        if not (held and quotes and has_quotes(separator)):
            return last_line_end(data)
        found = np.zeros(3, np.int64)
        wrong = find_rows(data, ord(separator), True, NO_ROWS, NO_ROWS, found)
        # What is behind a wrong row is not read.
        return int(found[1]) if wrong in (0, UNCLOSED) else len(data)

    return cut


def begin_of(head: TextBlock) -> tuple[int, str]:
    """How many bytes stand before the first row of a file, and the separator that they tell."""
    found = _BEGIN.match(head.data.tobytes())
    assert found is not None  # it matches nothing, too
    return found.end(), (found[1] or b"").decode(errors="replace")


def separator_of(data: np.ndarray, usual: str, width: int = 0) -> str:
    """What separates the fields of most of the first rows as it does those of the first one.

    The `usual` one is taken where others do so as well. `width` is how many fields there are, if
    that is told.
    """
    best, most = usual, 0.0
    for separator in dict.fromkeys((usual, *SEPARATORS)):
        fields = rows_of(data, separator).fields
        if len(fields) == 0 or fields[0] < 2 or (width and fields[0] != width):
            continue
        agree = float(np.mean(fields == fields[0]))
        if agree > most and (separator != BLANKS or agree == 1):
            best, most = separator, agree
    return best


def check_widths(block: TextBlock, rows: Rows, width: int, expected: str) -> None:
    """Raise InputError for the first row of a block that is not as wide, or has wrong quotes."""
    bad = np.flatnonzero(rows.fields != width)
    if len(bad):
        line, found = int(rows.lines[bad[0]]), int(rows.fields[bad[0]])
        last = line == block.lines  # which has no end
        end = "; it is the last line and has no end, so the file may be cut off" if last else ""
        raise block.error(
            line, f"{plural(found, 'column')}; expected {expected}, as in the first line{end}"
        )
    if rows.wrong:
        raise block.error(rows.line, rows.wrong)


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
