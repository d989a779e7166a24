"""Folders: which of their files are read, and what is said of the others."""

import gzip
import json
from pathlib import Path

import pytest

import rankmill
from rankmill import InputError, Labels

FIRST = "user_id,item_id\n1,10\n"
PREDICTIONS = {1: [10]}


def notes(folder: Path, told: str | None = None) -> tuple[str, ...]:
    """The notes on labels in a folder, and nothing is refused."""
    result = rankmill.evaluate(Labels(str(folder), format=told), PREDICTIONS, "map@5")
    assert result.metrics["map@5"] == 1
    return tuple(result.notes)


@pytest.mark.parametrize(
    "name",
    ["b.json", "b.txt", "a.csv.1", "b.gz", "b.csv.snappy", "a.csv.bak", "part-00001", "x/b.txt"],
)
@pytest.mark.parametrize("told", [None, "csv"])
def test_files_that_are_not_read_are_named(tmp_path: Path, name: str, told: str | None) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "a.csv").write_text(FIRST)
    (tmp_path / name).write_bytes(gzip.compress(FIRST.encode()))
    (note,) = notes(tmp_path, told)
    assert f"not read, as they do not end in .csv: {name}; if these are data, rename" in note


def test_many_files_that_are_not_read_make_one_note(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FIRST)
    for place in range(5):
        (tmp_path / f"b.{place}").write_text(FIRST)
    (note,) = notes(tmp_path)
    assert ": b.0, b.1, b.2, and 2 more; " in note


def test_files_of_another_format_than_the_told_one_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(FIRST)
    (tmp_path / "b.tsv").write_text(FIRST)
    assert "b.tsv" in notes(tmp_path, "csv")[0]


@pytest.mark.parametrize(
    "name",
    [
        *("_SUCCESS", ".a.csv.crc", "README", "README.txt", "notes.md", "schema.json", "LICENSE"),
        *("manifest", "dataset_info.json", "state.json", "SHA256SUMS", "a.csv.md5", "_x/b.txt"),
        *("part-0.metadata.json", "plot.png", "load.sql", ".x/b.txt"),
    ],
)
def test_files_that_tell_of_the_data_are_no_data(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text(FIRST)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("about it")
    assert notes(tmp_path) == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("part-0000.csv", "part-0001"),
        ("part-00000-c7d1f3a2-0a1b-4c2d-8e3f-0123456789ab-c000.csv.gz", None),
    ],
)
@pytest.mark.parametrize("told", [None, "csv"])
def test_a_part_without_its_suffix_is_refused(
    tmp_path: Path, first: str, second: str | None, told: str | None
) -> None:
    second = second or first.partition(".")[0].replace("00000", "00001").replace("c7d1", "beef")
    content = FIRST.encode()
    (tmp_path / first).write_bytes(gzip.compress(content) if first.endswith("gz") else content)
    (tmp_path / second).write_text(FIRST)
    with pytest.raises(InputError, match=f"holds {second}, which has no suffix .* add .csv to"):
        notes(tmp_path, told)
    (tmp_path / second).rename(tmp_path / f"{second}.csv")
    assert notes(tmp_path, told) == ()


def test_links_that_are_not_followed_are_named_or_refused(tmp_path: Path) -> None:
    folder, other = tmp_path / "labels", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "a.csv").write_text(FIRST)
    (other / "b.csv").write_text("user_id,item_id\n2,12\n")
    (folder / "more").symlink_to(other)
    assert ": more; " in notes(folder)[0]
    (folder / "b.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(InputError, match="No such file"):
        notes(folder)


def test_head_names_them_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"user_id": 1, "item_id": 10}))
    (tmp_path / "b.json").write_text(json.dumps({"user_id": 2, "item_id": 10}))
    assert "b.json" in str(Labels(str(tmp_path)).head())


def test_folders_of_stores_are_read_alike() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe({f"/left/{name}": FIRST.encode() for name in ("a-1.csv", "b.txt", "README")})
    labels = Labels("memory://left")
    (note,) = rankmill.evaluate(labels, PREDICTIONS, "map@5").notes
    assert note.startswith("memory://left/: not read, as they do not end in .csv: b.txt; ")
    memory.pipe("/left/a-2", FIRST.encode())
    with pytest.raises(InputError, match="a-2, which has no suffix"):
        rankmill.evaluate(labels, PREDICTIONS, "map@5")
