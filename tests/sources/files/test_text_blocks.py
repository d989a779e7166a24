"""Broken text ends in one clear error or in a result, never in a crash."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import rankmill
import text_files as text
from flat import flat
from portions import in_blocks
from rankmill.errors import RankmillError
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
