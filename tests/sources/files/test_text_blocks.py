"""Broken text ends in one clear error or in a result, never in a crash; and its kernels."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankmill
import text_files as text
from flat import flat
from portions import in_blocks
from rankmill.errors import RankmillError
from rankmill.kernels.text import scan_delimited
from rankmill.sources.files.text_blocks import integers, numbers
from strategies import examples
from text_sides import PREDICTIONS, side

# Bytes that mean something in one of the formats.
MEANINGFUL = b"\n\r\t ,;|\"'[]{}:\\0.eE-+_\x00\xff\xef\xbb\xbf"
MUTATIONS = examples(60)


def mutated(content: bytes, draw: random.Random) -> bytes:
    """The content with a byte changed, left out, doubled or put in; or cut somewhere."""
    raw = bytearray(content)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(len(raw) or 1)
        new = draw.choice(MEANINGFUL) if draw.random() < 0.7 else draw.randrange(256)
        kind = draw.randrange(5)
        if kind == 0 and raw:
            raw[place] = new
        elif kind == 1:
            raw[place : place + draw.randint(1, 9)] = b""
        elif kind == 2:
            raw.insert(place, new)
        elif kind == 3:
            raw[place:place] = raw[place : place + draw.randint(1, 30)]
        else:
            del raw[place:]
    return bytes(raw)


@pytest.mark.small
@pytest.mark.parametrize("kind", ["int", "str"])
@pytest.mark.parametrize("form", PREDICTIONS)
def test_broken_text_is_an_error_or_a_result(tmp_path: Path, form: str, kind: str) -> None:
    name, writer, _, options = PREDICTIONS[form]
    lists = dict(list(side(kind, "predictions").items())[:8])
    labels = text.twin(side(kind, "labels"), "gain", wide=True)
    content = writer(lists)
    draw = random.Random(f"{form} {kind}")
    messages = set()
    for _ in range(MUTATIONS):
        path = text.write(tmp_path, name, mutated(content, draw))
        try:
            result = flat(rankmill.evaluate, labels, path, ["map", "gap"], threads=1, **options)
        except RankmillError as error:
            messages.add(str(error))
        else:
            assert 0 <= (result["map"] or 0) <= 1
    assert messages
    assert all(name in message for message in messages)
    # A name of a column may hold a line end, which the command line shows escaped.
    assert not any("\n" in message.split("; the columns are")[0] for message in messages)


fields = st.text(st.sampled_from('ab,"\n\r ;'), max_size=5)


@pytest.mark.small
@given(rows=st.lists(st.lists(fields, min_size=2, max_size=2), min_size=1, max_size=6))
def test_fields_are_those_of_the_csv_module(rows: list[list[str]]) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(rows)
    data: np.ndarray = np.frombuffer(written.getvalue().encode(), np.uint8)
    starts, ends = np.empty((2, 2, len(data) + 1), np.int64)
    marks, bad = np.zeros((2, 2), np.bool_), np.zeros(2, np.int64)
    lines = np.empty(len(data) + 1, np.int64)
    count = scan_delimited(data, ord(","), np.arange(2), starts, ends, marks, lines, bad)
    assert count == len(rows)
    found = [
        [data[starts[c, row] : ends[c, row]].tobytes().decode() for c in range(2)]
        for row in range(count)
    ]
    assert [[field.replace('""', '"') for field in row] for row in found] == rows
    before = ["".join(f"{','.join(row)}\n" for row in rows[:i]).count("\n") for i in range(count)]
    assert lines[:count].tolist() == before


def places(texts: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Texts in one block, and where they start and end."""
    encoded = [one.encode() for one in texts]
    ends = np.cumsum([len(one) for one in encoded], dtype=np.int64)
    data: np.ndarray = np.frombuffer(b"".join(encoded), np.uint8)
    return data, ends - np.array([len(one) for one in encoded], np.int64), ends


decimals = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.floats(-1e6, 1e6).map("{:.6f}".format),
    st.floats(-1e30, 1e30).map("{:.3E}".format),
    st.integers(-(2**70), 2**70).map(str),
    st.from_regex(r"-?[0-9]{1,22}(\.[0-9]{0,22})?(e[-+]?[0-9]{1,3})?", fullmatch=True),
)


@pytest.mark.small
@given(texts=st.lists(decimals, min_size=1, max_size=9))
def test_numbers_have_all_their_bits(texts: list[str]) -> None:
    array, bad = numbers(*places(texts))
    assert bad == -1
    expected = np.array([float(one) for one in texts])
    assert array.to_numpy().tobytes() == expected.tobytes()


@pytest.mark.small
@pytest.mark.parametrize(
    "wrong",
    ["-", ".", "e5", "1e", "1e+", "1.2.3", "--1", "1 2", "1e5.5", "+", "1_0", "0x1f", "1,5"],
)
def test_what_is_no_number(wrong: str) -> None:
    assert numbers(*places(["1", wrong, "2"])) == (None, 1)


@pytest.mark.small
@given(texts=st.lists(st.integers(-(2**63), 2**63 - 1).map(str), min_size=1, max_size=9))
def test_integers_have_all_their_bits(texts: list[str]) -> None:
    lowest = str(-(2**63))  # the only one that is not taken
    array, bad = integers(*places([one for one in texts if one != lowest]))
    assert bad == -1
    assert array.to_pylist() == [int(one) for one in texts if one != lowest]


@pytest.mark.small
@pytest.mark.parametrize(
    "wrong",
    ["007", "-0", "-", "+1", "1.0", "1e3", " 1", "9223372036854775808", "1" * 20, "x", "00"],
)
def test_what_is_no_integer(wrong: str) -> None:
    assert integers(*places(["1", wrong, "2"]))[1] == 1


def test_empty_texts_are_null() -> None:
    assert integers(*places(["1", "", "2"]))[0].to_pylist() == [1, None, 2]
    assert numbers(*places(["1", "", "2"]))[0].to_pylist() == [1.0, None, 2.0]
    assert pa.types.is_int64(integers(*places(["1"]))[0].type)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    lists = side("int", "predictions")
    path = Path(text.write(tmp_path, "p.csv", text.long_text(lists, "score")))
    labels = text.twin(side("int", "labels"), "gain", wide=True)
    import rankmill.sources.rows.long as long

    rows, calls = long.long_rows, []

    def changing(batch: Any, columns: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            path.write_bytes(path.read_bytes() + b"1,2,3\n")
        return rows(batch, columns)

    monkeypatch.setattr(long, "long_rows", changing)
    with pytest.raises(RankmillError, match="changed while it was read"):
        rankmill.evaluate(labels, in_blocks(path, 100), ["map"])


# Bytes next to a comma and a line end, and beyond ASCII: what looks at eight at once may take them.
near = st.text(st.sampled_from("+-a\x0b\x0c\x08é\xac \t"), max_size=20)


@pytest.mark.small
@given(rows=st.lists(st.lists(near, min_size=2, max_size=2), min_size=1, max_size=6))
def test_fields_without_quotes_are_those_between_delimiters(rows: list[list[str]]) -> None:
    data = np.frombuffer("".join(f"{a},{b}\n" for a, b in rows).encode(), np.uint8)
    starts, ends = np.empty((2, 2, len(rows)), np.int64)
    marks, bad = np.zeros((2, 2), np.bool_), np.zeros(2, np.int64)
    lines = np.empty(len(rows), np.int64)
    count = scan_delimited(data, ord(","), np.arange(2), starts, ends, marks, lines, bad)
    assert count == len(rows)
    for column in range(2):
        spans = zip(starts[column].tolist(), ends[column].tolist(), strict=True)
        found = [data[start:end].tobytes().decode() for start, end in spans]
        assert found == [row[column] for row in rows]
        assert marks[1, column] == any(one[:1] in (" ", "\t") and one for one in found)
    assert not marks[0].any()
