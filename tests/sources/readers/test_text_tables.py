"""Separated text and TREC's formats: every value as it stands in its line, or one clear error."""

from __future__ import annotations

import csv
import io
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
import text_files as text
from rankmill.errors import InputError, RankmillError, UsageError
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.roles.source import InputOptions, Role, Source, batch_of
from strategies import examples

Rows = list[tuple[int, tuple[str | None, ...]]]
PREDICTIONS: Role = "predictions"


def opened(path: str | os.PathLike[str], role: Role = "labels", **told: Any) -> Source:
    return open_source(path, InputOptions(role, **told))


def rows_of(source: Source, columns: list[str] | None = None) -> Rows:
    """The line of each row, and its values."""
    names = columns or next(iter(source.schemas.values())).names
    found: Rows = []
    for piece in source.pieces(names):
        for batch in map(batch_of, piece):
            assert batch.data.schema.names == names
            batch.data.validate(full=True)
            values = zip(*(one.to_pylist() for one in batch.data.columns), strict=True)
            found += [(batch.place.number(i), row) for i, row in enumerate(values)]
    return found


def lines(*rows: str, first: int = 2) -> Rows:
    """Rows of fields with commas between them, from a line on; a dash is no value."""
    return [
        (first + i, tuple(None if one == "-" else one for one in row.split(",")))
        for i, row in enumerate(rows)
    ]


# What a file is called and holds, and what is told -> its columns, its rows, and its separator.
READ: dict[str, tuple[str, bytes, dict[str, Any], str, Rows, str]] = {
    "as it stands": (
        "l.csv",
        b"u,i\n007,1.50\n+1, x \n",
        {},
        "u,i",
        lines("007,1.50", "+1, x "),
        ",",
    ),
    "nothing": ("l.csv", b'u,i\n1,\n2,""\n', {}, "u,i", lines("1,-", "2,-"), ","),
    "empty lines": (
        "l.csv",
        b"\n \nu,i\n\n1,a\n\r\n2,b",
        {},
        "u,i",
        [(5, ("1", "a")), (7, ("2", "b"))],
        ",",
    ),
    "quotes": (
        "l.csv",
        b'"u","i"\r\n1,"a,""b"""\r\n2,"two\nlines"\r\n3,5" c\r\n4,"d" \r\n',
        {},
        "u,i",
        [(2, ("1", 'a,"b"')), (3, ("2", "two\nlines")), (5, ("3", '5" c')), (6, ("4", "d "))],
        ",",
    ),
    "mixed line ends": (
        "l.csv",
        b"u,i\r\r\n1,a\r\n2,b\n3,c\r\r\n",
        {},
        "u,i",
        lines("1,a", "2,b", "3,c"),
        ",",
    ),
    "byte order mark": ("l.csv", b"\xef\xbb\xbfu,i\n1,a\n", {}, "u,i", lines("1,a"), ","),
    "blanks in the header": ("l.csv", b"u, i\n1, a\n", {}, "u,i", lines("1, a"), ","),
    "no last line end": (
        "l.csv",
        b"u,i\n1,a\n\n2,b",
        {},
        "u,i",
        [(2, ("1", "a")), (4, ("2", "b"))],
        ",",
    ),
    "index of pandas": ("l.csv", b",u,i\n0,1,a\n", {}, ",u,i", lines("0,1,a"), ","),
    # Separators.
    "sep=": ("l.csv", b"sep=;\nu;i\n1;a,b\n", {}, "u;i", [(3, ("1", "a,b"))], ";"),
    "quoted sep=": ("l.csv", b'"sep=|"\r\n\r\nu|i\r\n1|a\r\n', {}, "u|i", [(4, ("1", "a"))], "|"),
    "semicolons": (
        "l.csv",
        b"u;i\n1;0,5\n2;1\n",
        {},
        "u;i",
        [(2, ("1", "0,5")), (3, ("2", "1"))],
        ";",
    ),
    "bars": ("l.csv", b"u|i\n1|a b\n", {}, "u|i", lines("1,a b"), "|"),
    "tabs in csv": ("l.csv", b"u\ti\n1\ta b\n", {}, "u\ti", lines("1,a b"), "\t"),
    "commas in tsv": ("l.tsv", b"u,i\n1,a b\n", {}, "u,i", lines("1,a b"), ","),
    "commas in txt": ("l.txt", b"u,i\n1,a\n", {}, "u,i", lines("1,a"), ","),
    "blanks in txt": ("l.txt", b"u  i\n1 a\n 2\t b \n", {}, "u i", lines("1,a", "2,b"), " "),
    "colons": (
        "ratings.dat",
        b"1::10::5\n1::11::4\n",
        {"columns": ("u", "i", "r")},
        "u::i::r",
        lines("1,10,5", "1,11,4", first=1),
        "::",
    ),
    "semicolons beside decimal commas, without a header": (
        "p.csv",
        b"1;7;0,5\n2;8;0,25\n",
        {"columns": ("u", "i", "s")},
        "u;i;s",
        [(1, ("1", "7", "0,5")), (2, ("2", "8", "0,25"))],
        ";",
    ),
    "lists of items": ("l.csv", b"u,i\n1,a;b\n2,c;d\n", {}, "u,i", lines("1,a;b", "2,c;d"), ","),
    "quoted lines behind semicolons": (
        "l.csv",
        b'u;i\n1;"a\nb,"\n2;c\n',
        {},
        "u;i",
        [(2, ("1", "a\nb,")), (4, ("2", "c"))],
        ";",
    ),
    # Ratings, and lists of items, are no qrels and no run.
    "ratings": (
        "u1.test",
        b"1\t6\t5\t887431973\n1\t10\t3\t875693118\n",
        {"columns": ("u", "i", "r", "t")},
        "u\ti\tr\tt",
        lines("1,6,5,887431973", "1,10,3,875693118", first=1),
        "\t",
    ),
}


@pytest.mark.small
@pytest.mark.parametrize("case", READ)
def test_values_are_as_they_stand(tmp_path: Path, case: str) -> None:
    name, content, told, header, rows, separator = READ[case]
    for suffix in ("", "gz"):
        path = text.write(tmp_path, name, content, suffix)
        for block in (None, 1, 7):
            source = opened(path, **told, block=block)
            names = header.split(separator)
            assert next(iter(source.schemas.values())).names == names
            assert rows_of(source) == rows
            assert source.delimiter == separator
            assert source.findings.notes() == []
            last = [(line, row[-1:]) for line, row in rows]
            assert rows_of(source, names[-1:]) == last


REFUSED: dict[str, tuple[str, bytes, str]] = {
    "too few": (
        "l.csv",
        b"u,i\n0,0\n\n1,2\n3\n4,5\n",
        "line 5: 1 column; expected 2, as in the fi",
    ),
    "too many": ("l.csv", b'u,i\n"0\n",0\n1,2,3\n', "line 4: 3 columns; expected 2"),
    "cut off": ("l.csv", b"u,i\n1,2\n3", "line 3: 1 column; .* the file may be cut off"),
    "text behind quotes": ("l.csv", b'u,i\n1,"a"b\n', "line 2: a quoted text is followed by more"),
    "two texts": ("l.csv", b'u,i\n1,"a" "b"\n', "line 2: a quoted text is followed by more"),
    "open": ("l.csv", b'u,i\n1,a\n2,"b\n3,c\n', "line 3: a quoted text that starts here is not"),
    "blanks before quotes": ("l.csv", b'u,i\n1,a\n2, "b"\n', "line 3: spaces precede a quote"),
    "a name twice": ("l.csv", b"u,i,i\n1,a,b\n", "line 1: two columns are called 'i'; rename one"),
    "empty": ("l.csv", b"", "l.csv is empty; expected a header"),
    "empty lines": ("l.csv", b"\n \n", "l.csv is empty; expected a header"),
    "empty, without a format": ("l.txt", b"", "l.txt is empty; expected"),
    "a carriage return in the header": ("l.csv", b"u,i\r1,a\n", "line 1: a carriage return within"),
    "a carriage return in a row": ("l.csv", b"u,i\n1,a\rb\n", "line 2: 1 column; expected 2"),
    "lists without a header": ("l.txt", b"0 12 45 7\n1 31 33 4 5\n", "do not show the format"),
    "lists of one length": ("l.txt", b"0 9 4 7 8 5\n1 9 3 4 5 6\n", "do not show the format"),
    "no run of ten items": ("l.txt", b"0 9 4 7 8 5 3\n1 8 3 4 5 6 2\n", "do not show the format"),
}


@pytest.mark.small
@pytest.mark.parametrize("case", REFUSED)
def test_wrong_rows_are_refused_with_their_line(tmp_path: Path, case: str) -> None:
    name, content, message = REFUSED[case]
    path = text.write(tmp_path, name, content)
    for block in (None, 5):
        with pytest.raises(InputError, match=message):
            rows_of(opened(path, PREDICTIONS, block=block))


fields = st.text(st.sampled_from('ab,"\n\r ;\t\xe9'), max_size=5)


@pytest.mark.small
@given(
    rows=st.lists(st.lists(fields, min_size=2, max_size=2), min_size=1, max_size=6),
    end=st.sampled_from(["\n", "\r\n", "\r\r\n"]),
    block=st.sampled_from([20, 30, None]),
)
def test_fields_are_those_of_the_csv_module(
    tmp_path_factory: Any, rows: list[list[str]], end: str, block: int | None
) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator=end).writerows([["u", "i"], *rows])
    path = tmp_path_factory.mktemp("csv") / "l.csv"
    path.write_text(written.getvalue(), newline="")
    before = [
        2 + sum(f"{','.join(row)}\n".count("\n") for row in rows[:i]) for i in range(len(rows))
    ]
    expected = [
        (line, tuple(one or None for one in row)) for line, row in zip(before, rows, strict=True)
    ]
    assert rows_of(opened(path, block=block)) == expected


bare = st.text(st.sampled_from('+-a"\x0b\x0c\x08é\xac \t;'), max_size=9)


@pytest.mark.small
@given(rows=st.lists(st.lists(bare, min_size=2, max_size=2), min_size=1, max_size=6))
def test_fields_without_quotes_are_those_between_delimiters(
    tmp_path_factory: Any, rows: list[list[str]]
) -> None:
    rows = [[one.lstrip('" \t') for one in row] for row in rows]
    path = tmp_path_factory.mktemp("bare") / "l.csv"
    path.write_text("user,item\n" + "".join(f"{a},{b}\n" for a, b in rows))
    expected = [(2 + i, tuple(one or None for one in row)) for i, row in enumerate(rows)]
    assert rows_of(opened(path)) == expected


MEANINGFUL = b'\n\r\t ,;|"ab:0.#\xef\xbb\xbf'


@pytest.mark.small
@pytest.mark.parametrize("name", ["l.csv", "l.tsv", "l.dat", "l.run", "l.qrels"])
def test_broken_text_is_an_error_or_rows(tmp_path: Path, name: str) -> None:
    """Lines are true: each row stands in its line, as far as no quoted text holds line ends."""
    sign = {"l.csv": ",", "l.tsv": "\t", "l.dat": "::"}.get(name, " ")
    row = {"l.run": "q Q0 a 1 9 t", "l.qrels": "q 0 a 1"}.get(name, 'q,"a",1')
    content = "\n".join([row.replace(",", sign)] * 9).encode()
    draw = random.Random(name)
    refused: list[str] = []
    for _ in range(examples(60)):
        raw = bytearray(content)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(raw))
            raw[place : place + draw.randint(0, 2)] = bytes([draw.choice(MEANINGFUL)])
        path = text.write(tmp_path, name, bytes(raw))
        try:
            found = rows_of(opened(path, PREDICTIONS if name == "l.run" else "labels"))
        except RankmillError as error:
            refused.append(str(error))
            continue
        texts = raw.split(b"\n")
        for line, values in found:
            shown = [one.encode() for one in values if one and "\n" not in one and '"' not in one]
            assert all(one in texts[line - 1] for one in shown) or b'"' in raw
    assert refused
    assert all(name in one for one in refused)


# --------------------------------------------------------------------------- several files


def folder_of(tmp_path: Path, *contents: bytes, name: str = "csv") -> Path:
    folder = tmp_path / "parts"
    folder.mkdir()
    for i, content in enumerate(contents):
        text.write(folder, f"{i}.{name}", content)
    return folder


def test_columns_of_parts_are_those_of_their_names(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, b"u,i\n1,a\n", b"i;x;u\nb;9;2\n", b"u\ti\n3\tc\n")
    assert rows_of(opened(folder), ["u", "i"]) == lines("1,a") + lines("2,b") + lines("3,c")


def test_a_part_without_the_header_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, b"u,i\n1,a\n", b"2,b\n3,c\n")
    with pytest.raises(InputError, match=r"1\.csv: its first row is '2, b', but that of .*0\.csv"):
        opened(folder)


@pytest.mark.parametrize("name", ["csv", "tsv"])
def test_parts_without_a_row_are_left_out_and_told(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path, b"", b"u\ti\n1\ta\n", b"\n\n", name=name)
    source = opened(folder)
    assert rows_of(source) == lines("1,a")
    assert [note.partition(" is empty")[0][-5:] for note in source.findings.notes()] == [
        f"0.{name}",
        f"2.{name}",
    ]
    empty = folder_of(tmp_path / "parts", b"", b"")
    with pytest.raises(InputError, match=r"0\.csv is empty; expected a header"):
        opened(empty)


def test_few_notes_tell_of_many_files(tmp_path: Path) -> None:
    source = opened(folder_of(tmp_path, b"u,i\n1,a\n", *[b""] * 6))
    assert source.findings.notes()[3:] == ["3 more files are like these"]


# ------------------------------------------------------------------------ names that are told


@pytest.mark.small
@pytest.mark.parametrize(
    ("first", "is_header"),
    [
        (b"user_id,item_id", True),  # usual names
        (b"query,item", True),  # the names that are told
        (b"user_id,item_id,weight", True),
        (b"uid2,movie,stars", True),  # all others of the last column are numbers
        (b"u1,a,1", False),
        (b"user,b,1", False),
        (b"u7,image,x", False),  # one usual name alone
    ],
)
def test_a_header_beside_names_that_are_told(tmp_path: Path, first: bytes, is_header: bool) -> None:
    width = first.count(b",") + 1
    names = ("query", "item", "gain")[:width]
    rest = b"u8,b,y\nu9,c,x" if first.endswith(b"x") else b"u8,b,2\nu9,c,3"
    rows = [first, *(b",".join(row.split(b",")[:width]) for row in rest.split(b"\n"))]
    path = text.write(tmp_path, "l.csv", b"\n".join(rows))
    source = opened(path, columns=names)
    assert next(iter(source.schemas.values())).names == [*names]
    assert len(rows_of(source)) == 3 - is_header
    assert (
        source.findings.notes()
        == [f"{path}: its first row holds names of columns, and is no row"] * is_header
    )


@pytest.mark.small
def test_names_of_another_number_of_columns(tmp_path: Path) -> None:
    path = text.write(tmp_path, "l.csv", b"1,7,0.5\n1,8,0.75\n")
    with pytest.raises(UsageError, match=r"^columns names 2 columns, but .*line 1 has 3 columns"):
        opened(path, columns=("query", "item"))


# --------------------------------------------------------------------------------------- TREC

RUN, QRELS = ["query_id", "doc_id", "score", "tag"], ["query_id", "doc_id", "relevance"]
# What a file holds -> its rows, without the columns that are not read; runs have six fields.
TREC: dict[str, tuple[bytes, Rows]] = {
    "qrels": (b"1 0 a 1\n2 0 b 0.5\n", lines("1,a,1", "2,b,0.5", first=1)),
    "qrels of three": (b"1 a 1\n2 b 0\n", lines("1,a,1", "2,b,0", first=1)),
    "tabs": (b"1\t0\ta\t1\n", lines("1,a,1", first=1)),
    "blanks within tabs": (b"1\t0\ta  b\t1\n2\t0\tc\t1\n", lines("1,a  b,1", "2,c,1", first=1)),
    "tabs and blanks": (b"1 \t 0\t a \t1 \n", lines("1,a,1", first=1)),
    "run": (b"1 Q0 a 1 9.5 t\n1 Q0 b 2 -1e3 t", lines("1,a,9.5,t", "1,b,-1e3,t", first=1)),
    "runs of blanks": (
        b"  1  Q0 a 1 9 t \n\n 1 Q0 b 2 8 t",
        [(1, ("1", "a", "9", "t")), (3, ("1", "b", "8", "t"))],
    ),
    "behind the tag": (
        b"1 Q0 a 1 9 t\n1 Q0 b 2 8 t and more\n",
        lines("1,a,9,t", "1,b,8,t", first=1),
    ),
    "a run of one blank behind": (b"1 Q0 a 1 9 t ", lines("1,a,9,t", first=1)),
    "documents with blanks": (
        b"1\tQ0\tPage 3\t1\t9\tt\n1\tQ0\tPage 12\t2\t8\tt\n",
        lines("1,Page 3,9,t", "1,Page 12,8,t", first=1),
    ),
    "comments": (
        b"# 1 Q0 x 1 9 t\n1 Q0 d#1 1 9 #t\n  # more\n#\n1 Q0 b 2 8 t",
        [(2, ("1", "d#1", "9", "#t")), (5, ("1", "b", "8", "t"))],
    ),
    "quotes": (b'1 Q0 "a 1 9 t\n', lines('1,"a,9,t', first=1)),
    "CR": (b"1 Q0 a 1 9 t\r\r\n1 Q0 b 2 8 t\r\n", lines("1,a,9,t", "1,b,8,t", first=1)),
}


@pytest.mark.small
@pytest.mark.parametrize("suffix", ["txt", "trec"])
@pytest.mark.parametrize("case", TREC)
def test_runs_and_qrels(tmp_path: Path, case: str, suffix: str) -> None:
    content, rows = TREC[case]
    names = RUN if len(rows[0][1]) == 4 else QRELS
    role: Role = PREDICTIONS if names == RUN else "labels"
    path = text.write(tmp_path, f"x.{suffix}", content)
    for block in (None, 3):
        source = opened(path, role, block=block)
        assert source.format == ("TREC run" if names == RUN else "TREC qrels")
        assert next(iter(source.schemas.values())).names == names
        assert rows_of(source) == rows
        assert source.comments is not None
        assert sum(source.comments.values()) == (3 if case == "comments" else 0)


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.qrels", b"1 0 a 1\n2 b 0\n", "line 2: 3 columns; expected 4"),
        ("q.qrels", b"1 0 a 1\n2 0 b 1 more\n", "line 2: 5 columns; expected 4"),
        ("q.qrels", b"\n1 Q0 a 1 9 t\n", "line 2: 6 columns; .*swapped, swap them"),
        ("p.run", b"1 Q0 a 1 9 t\n1 Q0 b 2 8\n", "line 2: 5 columns; expected 6 or more"),
        ("p.run", b"1\tQ0\ta b\t1\t9\tt\n1\tQ0\tc d\t2\t8\n", "line 2: 5 columns; expected 6 or"),
        ("p.run", b"7 13 1\n", "line 1: 3 columns; .*MS MARCO"),
    ],
)
def test_rows_that_are_not_those_of_trec(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = text.write(tmp_path, name, content)
    with pytest.raises(InputError, match=message):
        rows_of(opened(path, PREDICTIONS if name == "p.run" else "labels"))


def test_a_header_within_the_rows_is_refused_and_no_row_that_only_has_a_name(
    tmp_path: Path,
) -> None:
    (tmp_path / "labels.csv").write_text("query,item\na,x\nquery,x\n")
    run = {"a": ["x"], "query": ["x"]}
    assert rankmill.evaluate(str(tmp_path / "labels.csv"), run, "map")["map"] == 1
    (tmp_path / "labels.csv").write_text("query,item\na,x\n\nquery,item\nb,x\n")
    with pytest.raises(InputError, match="line 4: it holds the names of the columns again"):
        rankmill.evaluate(str(tmp_path / "labels.csv"), run, "map")
