"""What the first rows of text seem to be is held against all rows: counted, told, or refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given
from hypothesis import strategies as st

import rankmill
import text_files as text
from flat import flat
from portions import in_blocks
from rankmill.columns.place import Place
from rankmill.engine.head import head
from rankmill.errors import InputError, UsageError
from rankmill.kernels.text import has_stray_return, lines_with_return
from rankmill.sources.files.doubts import Doubts, doubt_lists
from rankmill.sources.files.text_blocks import Texts
from rankmill.sources.files.text_lists import split
from rankmill.sources.readers.separated_values import SAMPLED_ROWS

ROWS = 1000
LABELS = {f"q{i}": ["a"] for i in range(ROWS)}


def wide(odd: dict[int, str], cell: str = "a b c", rows: int = ROWS) -> bytes:
    """A wide file with other cells in some of its rows."""
    lines = [f"q{i},{odd.get(i, cell)}\n" for i in range(rows)]
    return ("query_id,items\n" + "".join(lines)).encode()


def scored(labels: Any, predictions: Any, **options: Any) -> rankmill.Result:
    return flat(rankmill.evaluate, labels, predictions, ["map@5"], **options)


# --------------------------------------------------------------------------- what parts items


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize("told", [None, "csv-wide"])
@pytest.mark.parametrize(
    ("cell", "odd"),
    [
        ("a b c", "a b x;y"),
        ("a b c", "x|y"),
        ('"a,b,c"', "a b"),
        ('"a, b, c"', '"a, b|c"'),
        ("a|b|c", "a b"),
        ("a;b;c", '"a,b"'),
    ],
)
def test_a_separator_that_some_lists_hold(
    tmp_path: Path, told: str | None, cell: str, odd: str
) -> None:
    """Three in a thousand are told, four are refused; wherever in the file they stand."""
    some = {ROWS - 1 - i: odd for i in range(3)}
    path = text.write(tmp_path, "p.csv", wide(some, cell))
    result = scored(LABELS, path, predictions_as=told)
    assert result.audit["doubtful_rows"] == 3
    (note,) = result.notes
    tells(note, ["p.csv: line 999:", "may part items", "3 of 1,000 rows", "csv-commas"])
    assert result.inputs["predictions"]["doubts"] == [
        {"guess": "separator", "file": path, "line": 999, "rows": 3, "of": 1000}
    ]
    text.write(tmp_path, "p.csv", wide({**some, 5: odd}, cell))
    with pytest.raises(InputError, match=r"p.csv: line 7: .* \(4 of 1,000 rows are like this\)"):
        scored(LABELS, path, predictions_as=told)


@pytest.mark.small
@pytest.mark.parametrize(
    ("told", "lists"),
    [
        ("blanks", {"q1": ["a", "x;y"], "q2": ["b,c"], "q3": ["d|e"]}),
        ("semicolons", {"q1": ["a x", "y"], "q2": ["b,c"], "q3": ["d|e"]}),
        ("commas", {"q1": ["a x;y"], "q2": ["b", "c"], "q3": ["d|e"]}),
        ("bars", {"q1": ["a x;y"], "q2": ["b,c"], "q3": ["d", "e"]}),
    ],
)
def test_what_parts_items_can_be_said(tmp_path: Path, told: str, lists: Any) -> None:
    path = text.write(tmp_path, "p.csv", b'query,items\nq1,a x;y\nq2,"b,c"\nq3,d|e\n')
    with pytest.raises(InputError, match="may part items"):
        scored(lists, path)
    result = scored(lists, path, predictions_as=f"csv-{told}")
    assert (result["map@5"], result.audit["doubtful_rows"], result.notes) == (1, 0, [])
    tabs = text.write(tmp_path, "p.tsv", b"query\titems\nq1\ta x;y\nq2\tb,c\nq3\td|e\n")
    assert scored(lists, tabs, predictions_as=f"tsv-{told}")["map@5"] == 1


@pytest.mark.small
@pytest.mark.parametrize("cell", ['"a, b ,c"', " a b  c ", "a | b|c ", '"a;b;;"', '"a,b,"'])
def test_blanks_around_items_are_no_doubt(tmp_path: Path, cell: str) -> None:
    path = text.write(tmp_path, "p.csv", wide({}, cell, 3))
    result = scored({f"q{i}": ["a"] for i in range(3)}, path)
    assert (result["map@5"], result.audit["doubtful_rows"]) == (1, 0)


@pytest.mark.small
def test_a_semicolon_behind_the_first_rows_of_single_items(tmp_path: Path) -> None:
    rows = "".join(f"q{i},a\n" for i in range(SAMPLED_ROWS))
    path = text.write(tmp_path, "p.csv", f"query,item\n{rows}q,a;b\n".encode())
    with pytest.raises(
        InputError, match=rf"line {SAMPLED_ROWS + 2}: the item 'a;b' may be one item or a list"
    ):
        scored(LABELS, path)


def test_rows_that_are_read_twice_are_counted_once(tmp_path: Path) -> None:
    """The rows of a query are scattered, so that the rows are read again and grouped."""
    rows = "".join(f'q{i % 500}, "a"\n' if i == 7 else f"q{i % 500},b{i}\n" for i in range(ROWS))
    path = text.write(tmp_path, "p.csv", f"query,item\n{rows}".encode())
    result = scored(LABELS, path, predictions_as="csv-long")
    assert result.audit["doubtful_rows"] == 1
    as_labels = scored(path, LABELS, labels_as="csv-long")
    assert as_labels.audit["doubtful_rows"] == 1
    assert as_labels.notes == result.notes


@pytest.mark.small
def test_each_file_is_held_to_its_own_rows(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    text.write(folder, "1.csv", wide({}))
    text.write(folder, "2.csv", b"query_id,items\nz1,a b\nz2,a;b\nz3,a b\n", "gz")
    with pytest.raises(InputError, match=r"2.csv.gz: line 3: .* \(1 of 3 rows is like this\)"):
        scored(LABELS, str(folder))


def test_few_of_many_files_are_named(tmp_path: Path) -> None:
    for i in range(6):
        rows = "".join(f"q{1000 * i + j},{'a;b' if j == 9 else 'a b'}\n" for j in range(400))
        text.write(tmp_path, f"{i}.csv", f"query,items\n{rows}".encode())
    result = scored(LABELS, str(tmp_path))
    assert [note.partition(": ")[0][-5:] for note in result.notes[:3]] == [
        "0.csv",
        "1.csv",
        "2.csv",
    ]
    assert result.notes[3:] == ["3 more are like these: the JSON of the result has them"]
    assert len(result.to_dict()["inputs"]["predictions"]["doubts"]) == 6


# ------------------------------------------------------------------------------ ends of lines

ENDS = ["\n", "\r\n", "\r\r\n"]


@pytest.mark.small
@pytest.mark.parametrize("kind", ["", "gz"])
@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.run", "p.jsonl", "quoted.csv"])
def test_lines_may_end_in_several_carriage_returns(tmp_path: Path, name: str, kind: str) -> None:
    """As csv.writer leaves them on Windows; also where lines of one file end in different ways."""
    header, row = {
        "p.csv": ("query,score,item", "q{0},.9,a"),
        "p.tsv": ("query\tscore\titem", "q{0}\t.9\ta"),
        "p.run": (None, "q{0} Q0 a 1 .9 t"),
        "p.jsonl": (None, '{{"query": "q{0}", "item": "a", "score": 0.9}}'),
        "quoted.csv": ('"query","score","item"', '"q{0}",".9","a"'),
    }[name]
    lines = [row.format(i) for i in range(6)]
    for ends in ([end] * 3 for end in ENDS):
        content = "".join(
            f"{line}{ends[i % 3]}" for i, line in enumerate(filter(None, [header, *lines]))
        )
        path = text.write(tmp_path, name, content.encode(), kind)
        result = scored({f"q{i}": ["a"] for i in range(6)}, path)
        assert (result["map@5"], result.audit["doubtful_rows"]) == (1, 0)
    mixed = "".join(f"{line}{ENDS[i % 3]}" for i, line in enumerate(filter(None, [header, *lines])))
    path = text.write(tmp_path, name, (mixed + "\r\r\n" + mixed[-1:]).encode(), kind)
    assert scored({f"q{i}": ["a"] for i in range(6)}, path)["map@5"] == 1


@pytest.mark.small
def test_an_empty_last_field_before_carriage_returns(tmp_path: Path) -> None:
    path = text.write(tmp_path, "p.csv", b"query,item\r\r\nq1,\r\r\nq2,a\r\r\n")
    result = scored({"q1": ["a"], "q2": ["a"]}, path)
    assert (result["map@5"], result.audit["null_items"]) == (0.5, 1)


@pytest.mark.small
def test_one_file_of_a_folder_ends_its_lines_otherwise(tmp_path: Path) -> None:
    text.write(tmp_path, "1.csv", b"query,item\nq0,a\n")
    text.write(tmp_path, "2.csv", b"query,item\r\r\nq1,a\r\r\n")
    text.write(tmp_path, "3.csv", b"\xef\xbb\xbfquery,item\r\nq2,a\r\n")
    assert scored({f"q{i}": ["a"] for i in range(3)}, str(tmp_path))["map@5"] == 1


@pytest.mark.small
@pytest.mark.parametrize("count", [3, 4])
def test_carriage_returns_within_lines(tmp_path: Path, count: int) -> None:
    """A line of a run may have more fields, which may be the next row behind its own line end."""
    rows = [f"q{i} Q0 a 1 .9 t" for i in range(ROWS)]
    rows[5 : 5 + count] = [f"{one}\rq Q0 a 1 .9 t" for one in rows[5 : 5 + count]]
    path = text.write(tmp_path, "p.run", "\n".join(rows).encode())
    if count == 4:
        with pytest.raises(InputError, match=r"p.run: line 6: a carriage return .* \(4 of 1,000"):
            scored(LABELS, path)
    else:
        assert scored(LABELS, path).audit["doubtful_rows"] == 3


@pytest.mark.small
def test_carriage_returns_within_a_header(tmp_path: Path) -> None:
    path = text.write(tmp_path, "p.csv", b"query,item\rq1,a\rq2,b\r\n")
    with pytest.raises(InputError, match=r"p.csv: line 1: a carriage return within the line"):
        scored(LABELS, path)


@pytest.mark.small
def test_carriage_returns_in_quotes_are_text(tmp_path: Path) -> None:
    path = text.write(tmp_path, "p.csv", b'query,item\nq1,"a\rb"\nq2,"a\r\nb""\r"\nq3,a""\n')
    lists = {"q1": ["a\rb"], "q2": ['a\r\nb"\r'], "q3": ['a""']}
    result = scored(lists, path, predictions_as="csv-long")
    assert (result["map@5"], result.audit["doubtful_rows"]) == (1, 0)


returning = st.text(st.sampled_from("ab\r"), max_size=3)


@pytest.mark.small
@given(
    rows=st.lists(
        st.lists(st.tuples(st.booleans(), returning), min_size=2, max_size=2), max_size=6
    ),
    end=st.sampled_from(ENDS),
)
def test_returns_are_those_outside_quotes(rows: list[list[tuple[bool, str]]], end: str) -> None:
    """The oracle leaves quoted fields out, and the end of each line."""
    lines = [",".join(f'"{one}"' if quoted else one for quoted, one in row) for row in rows]
    bare = [",".join("" if quoted else one for quoted, one in row) for row in rows]
    odd = [i for i, line in enumerate(bare) if "\r" in line.rstrip("\r")]
    data: np.ndarray = np.frombuffer("".join(line + end for line in lines).encode(), np.uint8)
    first = np.full(1, -1)
    assert lines_with_return(data, ord(","), first) == len(odd)
    assert first[0] == (odd or [-1])[0]
    assert has_stray_return(data) >= bool(odd)


@pytest.mark.small
@given(
    cells=st.lists(st.text(st.sampled_from("ab ,;|"), max_size=9), max_size=6),
    separator=st.sampled_from(" ,;|"),
)
def test_lists_with_another_separator_are_counted(cells: list[str], separator: str) -> None:
    others = set(" ,;|") - {separator}
    items = [cell.split(None if separator == " " else separator) for cell in cells]
    odd = [
        i for i, each in enumerate(items) if any(o in one.strip() for one in each for o in others)
    ]
    raw = [cell.encode() for cell in cells]
    ends = np.cumsum([len(one) for one in raw], dtype=np.int64)
    starts = ends - np.array([len(one) for one in raw], np.int64)
    data: np.ndarray = np.frombuffer(b"".join(raw), np.uint8)
    texts = Texts("items", Place("p.csv", 5, "line"), data, starts, ends)
    doubts = Doubts()
    doubts.read("p.csv", 5, len(cells), 0)
    doubt_lists(split(texts, separator), separator, doubts)
    found = [(one.line, one.rows, one.of) for one in doubts.all()]
    assert found == ([(5 + odd[0], len(odd), len(cells))] if odd else [])


# ------------------------------------------------------------------------------------- quotes


@pytest.mark.small
def test_blanks_before_a_quote(tmp_path: Path) -> None:
    path = text.write(tmp_path, "p.csv", b'query,item\nq1, "a"\nq2, "b"\n')
    with pytest.raises(InputError, match=r"line 2: item is ' .a.', whose quotes .* [(]2 of 2 rows"):
        scored({"q1": ["a"]}, path, predictions_as="csv-long")
    path = text.write(tmp_path, "p.csv", b'query,item\nq1," ""a"""\nq2,5" b"\n')
    result = scored({"q1": [' "a"'], "q2": ['5" b"']}, path, predictions_as="csv-long")
    assert (result["map@5"], result.audit["doubtful_rows"]) == (1, 0)


# ----------------------------------------------------------------------------- what is not text

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
    told = "save the file as UTF-8, or name its encoding, such as latin-1 or cp1252, that of labels"
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


# --------------------------------------------------------------------------- head and convert


@pytest.mark.small
def test_head_and_convert_tell_doubts(tmp_path: Path, run: Any) -> None:
    path = text.write(tmp_path, "p.csv", wide({7: "a;b"}))
    told = head(path)
    assert told["doubts"] == [
        {"guess": "separator", "file": path, "line": 9, "rows": 1, "of": 1000}
    ]
    assert told["problem"] is None
    wanted = ["doubtful separator", "1 of 1,000 rows, first in line 9"]
    tells(run("head", path)[1], wanted)
    tells(run("convert", path, tmp_path / "p.parquet")[1], wanted)
    text.write(tmp_path, "p.csv", wide({7: "a;b"}, rows=90))
    code, out, err = run("head", path)
    assert code == 3
    tells(out, ["1 of 90 rows"])
    tells(err, ["p.csv: line 9: 'a;b' in 'items' holds ';', which may part items"])
    code, _, err = run("convert", path, tmp_path / "q.parquet")
    assert (code, (tmp_path / "q.parquet").exists()) == (3, False)


# --------------------------------------------------------------------------------------- TREC


@pytest.mark.small
@pytest.mark.parametrize("suffix", ["txt", "trec"])
def test_comments_of_trec_are_skipped_and_counted(tmp_path: Path, suffix: str) -> None:
    qrels = "# TREC track 2024\n# 1 0 z 1\n1 0 a 1\n  # with blanks before\n#\n1 0 d#1 1\n2 0 b 1\n"
    run = "# one two three four five six seven\n1 Q0 a 1 2 t\n#2 Q0 x 1 9 t\n1 Q0 d#1 2 1 #t\n"
    run += "2 Q0 b 1 2 t\n"
    labels = text.write(tmp_path, f"q.{suffix}", qrels.encode())
    predictions = text.write(tmp_path, f"r.{suffix}", run.encode())
    result = rankmill.evaluate(labels, predictions, ["map"])
    assert result["map"] == 1
    assert result.audit["comment_lines"] == 6
    assert result.audit["queries_labelled"] == 2
    assert "comment_lines" in str(result)
    told = head(predictions)
    assert (told["comment_lines"], told["format"]) == (2, "TREC run")
    bad = text.write(tmp_path, "bad.run", (run + "\n# more\n2 Q0 c high 0.x t\n").encode())
    with pytest.raises(InputError, match=r"bad.run: line 8: score is '0.x'"):
        rankmill.evaluate(labels, bad, ["map"])


@pytest.mark.small
def test_what_stands_behind_the_tag_of_a_run(tmp_path: Path) -> None:
    lines = "1 Q0 a 1 .5 tag and more\n1 Q0 b 2 .4 tag\n2 Q0 b 1 .5 tag # more\n"
    labels = {"1": ["a"], "2": ["b"]}
    for name in ("p.run", "p.txt"):
        assert scored(labels, text.write(tmp_path, name, lines.encode()))["map@5"] == 1
    qrels = text.write(tmp_path, "q.qrels", b"1 0 a 1\n2 0 b 1 more\n")
    with pytest.raises(InputError, match=r"q.qrels: line 2: 5 columns; expected 4"):
        scored(qrels, labels)


@pytest.mark.small
@pytest.mark.parametrize("size", [22, 26, 29, 34, 35])
def test_runs_that_are_cut_off(tmp_path: Path, size: int) -> None:
    content = b"1 Q0 a 1 0.5 tag\n1 Q0 doc 2 0.25 tag\n"
    assert content[size : size + 1] != b"\n"
    path = text.write(tmp_path, "p.run", content[:size])
    if size > 33:  # a part of the tag cannot be told from a tag
        assert scored({"1": ["a"]}, path)["map@5"] == 1
        return
    with pytest.raises(InputError, match=r"p.run: line 2: . columns; .* 6 or more.* cut off"):
        scored({"1": ["a"]}, path)
    path = text.write(tmp_path, "p.txt", content[17:size])
    with pytest.raises(InputError, match=r"p.txt: its name and its first line, '1 Q0"):
        scored({"1": ["a"]}, path)
