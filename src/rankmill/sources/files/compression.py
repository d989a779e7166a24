"""Compressed text, told by its first bytes, whatever its name says."""

from typing import Any

import pyarrow as pa

from rankmill.errors import InputError

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
