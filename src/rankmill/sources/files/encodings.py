"""Text of any compression and encoding, read as UTF-8; and what is none, told by line and byte."""

import codecs
from typing import Any

import numpy as np
import pyarrow as pa

from rankmill.errors import InputError, UsageError
from rankmill.kernels.text import NON_ASCII, ZEROS

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
    if len(held) != 1:
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
