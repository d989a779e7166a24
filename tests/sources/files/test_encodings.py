"""Text in any encoding is read as it was meant, or its first wrong byte is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import tells

import rankmill
import text_files as text
from flat import flat
from portions import in_blocks
from rankmill.errors import InputError, UsageError

LABELS = {f"q{i}": ["a"] for i in range(1000)}


def scored(labels: Any, predictions: Any, **options: Any) -> rankmill.Result:
    return flat(rankmill.evaluate, labels, predictions, ["map@5"], **options)


ROW = {
    "p.csv": ("query,item,score\n", "q{0},{1},0.5\n"),
    "p.tsv": ("query\titem\tscore\n", "q{0}\t{1}\t0.5\n"),
    "p.run": ("", "q{0} Q0 {1} 1 0.5 t\n"),
    "p.qrels": ("", "q{0} 0 {1} 1\n"),
    "p.jsonl": ("", '{{"query": "q{0}", "item": "{1}", "score": 0.5}}\n'),
    "p.json": ("", '{{"q{0}":\n{{"{1}": 1}}}}\n'),
}


def rows_of(name: str, items: list[str]) -> str:
    header, row = ROW[name]
    if name == "p.json":
        items = items[-1:]
    return header + "".join(row.format(i, item) for i, item in enumerate(items))


@pytest.mark.parametrize("kind", ["", "gz"])
@pytest.mark.parametrize("block", [40, 1 << 22])
@pytest.mark.parametrize("name", ROW)
def test_text_that_is_not_utf_8(tmp_path: Path, name: str, block: int, kind: str) -> None:
    content = rows_of(name, ["a", "b", "ü", "é"])
    path = text.write(tmp_path, name, content.encode("latin-1"), kind)
    wanted = {f"q{i}": [item] for i, item in enumerate(["a", "b", "ü", "é"])}
    wanted = {"q0": ["é"]} if name == "p.json" else wanted
    line = content[: content.index("é" if name == "p.json" else "ü")].count("\n") + 1
    place = len(content.splitlines()[line - 1].partition("é" if name == "p.json" else "ü")[0]) + 1

    def run(encoding: str | None = None, **how: Any) -> Any:
        role = "labels" if name == "p.qrels" else "predictions"
        source = in_blocks(path, block, role, encoding=encoding)
        return scored(*((source, wanted) if role == "labels" else (wanted, source)), **how)

    with pytest.raises(InputError) as caught:
        run()
    byte = "0xe9" if name == "p.json" else "0xfc"
    tells(caught.value, [f"{Path(path).name}: line {line}: byte {place} is {byte}", "--encoding"])
    assert run("latin-1")["map@5"] == 1
    assert run("ISO-8859-1", threads=3)["map@5"] == 1
    for encoding in ("utf-16", "utf-8-sig", "utf-16-le", "cp437", "utf-32"):
        text.write(tmp_path, name, content.encode(encoding), kind)
        assert run(encoding)["map@5"] == 1


@pytest.mark.small
def test_each_side_has_its_encoding(tmp_path: Path) -> None:
    labels = text.write(tmp_path, "l.csv", "query,item\nq,é\n".encode())
    run = text.write(tmp_path, "p.csv", "query,item\nq,é\n".encode("utf-16"))
    with pytest.raises(InputError, match=r"p.csv is text in UTF-16; .* Predictions\(encoding="):
        scored(labels, run)
    with pytest.raises(InputError, match=r"l.csv: line 1 holds bytes that are not text in utf-16"):
        scored(labels, run, encoding="utf-16")
    assert scored(labels, run, encoding="utf-16", label_encoding="utf-8")["map@5"] == 1
    assert scored(run, labels, label_encoding="utf-16")["map@5"] == 1


@pytest.mark.small
@pytest.mark.parametrize(
    ("option", "metric"),
    [("train", "novelty@5"), ("items", "coverage@5"), ("features", "ild_cosine@5"), ("by", "map")],
)
def test_the_encoding_is_that_of_labels_and_predictions(
    tmp_path: Path, option: str, metric: str
) -> None:
    """Other files are UTF-8: nobody is sent to an option that does not reach them."""
    sides = [text.write(tmp_path, name, "query,item\nq,é\n".encode("latin-1")) for name in "lp"]
    other = text.write(tmp_path, "o.csv", "query,item,x\nq,é,1\n".encode("latin-1"))
    more: dict[str, Any] = {"encoding": "latin-1", "labels_as": "csv-long"}
    more |= {"predictions_as": "csv-long", option: other}
    systems = {"a": sides[1], "b": {"q": ["é"]}}
    of: Any = (rankmill.compare, systems) if option == "by" else (rankmill.evaluate, sides[1])
    with pytest.raises(InputError) as caught:
        flat(of[0], sides[0], of[1], metric, **more)
    told = "save the file as UTF-8, or name its encoding, such as latin-1 or cp1252, with "
    tells(caught.value, ["o.csv: line 2: byte 3 is 0xe9", told])


@pytest.mark.small
def test_lines_of_text_that_cannot_be_decoded(tmp_path: Path) -> None:
    good = "query,item\n" + "".join(f"q{i},日本\n" for i in range(9))
    path = text.write(tmp_path, "p.csv", good.encode("shift_jis") + b"q,\x81")
    with pytest.raises(
        InputError, match=r"p.csv: line 11 holds bytes that are not text in shift_j"
    ):
        scored(LABELS, path, encoding="shift_jis")
    text.write(tmp_path, "p.csv", good.encode("utf-16") + "q,\n".encode("utf-16-le") + b"\0\xd8x")
    with pytest.raises(InputError, match=r"p.csv: line 12 holds bytes that are not text in utf-16"):
        scored(LABELS, path, encoding="utf-16")
    text.write(tmp_path, "p.csv", b"query,item\n\nq,\\ud800\n")
    with pytest.raises(
        InputError, match=r"p.csv: line . holds bytes that are not text in unicode_"
    ):
        scored(LABELS, path, encoding="unicode_escape")


@pytest.mark.small
@pytest.mark.parametrize("name", ["klingon", "hex", "rot13", "", "a\0b", "undefined"])
def test_encodings_that_python_does_not_have(tmp_path: Path, name: str) -> None:
    path = text.write(tmp_path, "p.csv", b"query,item\nq,a\n")
    with pytest.raises((UsageError, InputError), match=r"no encoding|not text in undefined"):
        scored({"q": ["a"]}, path, encoding=name)


@pytest.mark.small
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"query,item\nq1,a\nq\0 2,b\n", "p.csv: line 3: byte 2 is 0"),
        (b"query,item\nq1,a\n\xef\xbb\xbfquery,item\nq2,b\n", "line 3: byte 1 begins a byte order"),
        (b"\xef\xbb\xbfquery,item\n\xef\xbb\xbfq2,b\n", "line 2: byte 1 begins a byte order"),
    ],
)
def test_bytes_that_no_text_holds(tmp_path: Path, content: bytes, message: str) -> None:
    path = text.write(tmp_path, "p.csv", content)
    with pytest.raises(InputError, match=message):
        scored(LABELS, path)


@pytest.mark.small
def test_a_mark_of_utf_8_contradicts_another_encoding(tmp_path: Path) -> None:
    path = text.write(tmp_path, "p.csv", b"\xef\xbb\xbfquery,item\nq,a\n")
    with pytest.raises(InputError, match="begins with the byte order mark of UTF-8"):
        scored(LABELS, path, encoding="latin-1")


def test_commands_read_other_encodings(tmp_path: Path, run: Any) -> None:
    """What is converted holds strings that every reader takes."""
    content = "query_id,item_id,score\nq1,a,0.5\nqé,ié,0.5\n"
    path = text.write(tmp_path, "p.csv", content.encode("latin-1"))
    out = tmp_path / "p.parquet"
    code, _, err = run("convert", path, out)
    assert (code, out.exists()) == (3, False)
    tells(err, ["p.csv: line 3: byte 2 is 0xe9", "--encoding"])
    assert run("convert", path, out, "--encoding", "latin-1")[0] == 0
    table = pq.read_table(out)
    table.validate(full=True)
    assert table["items"].to_pylist() == [["a"], ["ié"]]
    assert run("head", path)[0] == 3
    assert "ié (0.5)" in run("head", path, "--encoding", "latin-1")[1]
    code, shown, _ = run(
        "evaluate", out, path, "--encoding", "latin-1", "-m", "map", "--format", "json"
    )
    assert (code, json.loads(shown)["metrics"]["map"]) == (0, 1)
    settings = tmp_path / "r.toml"
    settings.write_text(
        'labels = "p.parquet"\npredictions = "p.csv"\nmetrics = ["map"]\n'
        '[columns]\nencoding = "latin-1"\n'
    )
    assert run("evaluate", settings)[0] == 0
