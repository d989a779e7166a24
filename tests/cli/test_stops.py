"""What stopped first readers of the pages: each message, note or option that gets them on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rankmill

QRELS = "1 0 a 1\n1 0 b 1\n2 0 a 1\n"


def lines(path: Path, text: str) -> str:
    """The path of a file with a text; each line ends at a slash or a line break."""
    path.write_text(text.replace("/", "\n") + "\n")
    return str(path)


# ------------------------------------------------------------------ repeats


@pytest.mark.small
def test_a_repeat_is_named_with_what_to_type(run: Any, tmp_path: Path) -> None:
    qrels = lines(tmp_path / "qrels", QRELS)
    ranked = lines(tmp_path / "bm25.run", "1 Q0 a 1 3 t/1 Q0 c 2 2 t/1 Q0 a 3 1 t/2 Q0 a 1 1 t")
    asked = ["evaluate", qrels, ranked, "-m", "map", "--preset", "trec_eval"]
    code, _, err = run(*asked)
    assert code == 3
    assert "query '1' predicts item 'a' a second time" in err
    typed = "--semantics repeated_predictions=drop"
    assert f"use {typed}, or" in err
    assert run(*asked, *typed.split())[0] == 0
    with pytest.raises(rankmill.InputError, match=r'Semantics\(repeated_predictions="drop"\)'):
        rankmill.evaluate(qrels, ranked, "map", semantics="trec_eval")
    twice = lines(tmp_path / "twice", QRELS + "1 0 a 1")
    code, _, err = run("evaluate", twice, ranked, "-m", "map", "--semantics=repeated_labels=error")
    assert (code, "--semantics repeated_labels=set" in err) == (3, True)


# ------------------------------------------------------------------ ids of two kinds


@pytest.mark.small
@pytest.mark.parametrize("side", ["labels", "predictions"])
def test_dicts_with_integers_on_one_side_name_the_dict_to_cast(side: str) -> None:
    texts = {"7": [1]}
    both = {"labels": texts, "predictions": texts, side: {7: [1]}}
    with pytest.raises(rankmill.InputError) as told:
        rankmill.evaluate(both["labels"], both["predictions"], "map")
    line = f"{{str(query): items for query, items in {side}.items()}}"
    assert f"({line} makes strings of integers)" in str(told.value)
    both[side] = eval(line, {side: both[side]})
    assert rankmill.evaluate(both["labels"], both["predictions"], "map")["map"] == 1
