"""Compression is told by the bytes of a file, whatever its name; a zip holds one file."""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
from pathlib import Path

import pytest

import text_files as text
from rankmill.errors import InputError
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import read_blocks

CONTENT = b"user,item\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(500))


def zipped(*files: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return out.getvalue()


PACKED = {
    **{kind: text.compress(CONTENT, kind) for kind in ("", "gz", "bz2", "zst", "lz4")},
    "gz of two parts": gzip.compress(CONTENT[:99]) + gzip.compress(CONTENT[99:]),
    "xz": lzma.compress(CONTENT),
    "zip": zipped(("x/solution.csv", CONTENT)),
    "zip of macOS": zipped(("x/", b""), ("x/a.csv", CONTENT), ("__MACOSX/x/._a.csv", b"\0")),
}


def content_of(path: Path, size: int = 1000) -> bytes:
    return b"".join(
        block.data.tobytes() for block in read_blocks(File(path.name, str(path)), size=size)
    )


@pytest.mark.small
@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.zip"])
def test_the_bytes_tell_the_compression(tmp_path: Path, kind: str, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(PACKED[kind])
    assert content_of(path) == CONTENT
    if kind:
        path.write_bytes(PACKED[kind][: len(PACKED[kind]) // 2])
        with pytest.raises(InputError, match=rf"^{name} cannot be read after line \d+: .*whole"):
            content_of(path)


@pytest.mark.small
@pytest.mark.parametrize(
    ("files", "told"),
    [
        ((("x/", b""),), "a zip of 0 files: none; expected one"),
        ((("a.csv", b"1"), ("b.csv", b"2")), "a zip of 2 files: a.csv, b.csv; expected one"),
        ([(f"{i}.csv", b"1") for i in range(5)], "5 files: 0.csv, 1.csv, 2.csv, ...; expected"),
    ],
)
def test_a_zip_of_another_number_of_files(
    tmp_path: Path, files: list[tuple[str, bytes]], told: str
) -> None:
    path = tmp_path / "a.zip"
    path.write_bytes(zipped(*files))
    with pytest.raises(InputError, match=told):
        content_of(path)
