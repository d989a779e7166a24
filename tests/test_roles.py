"""No column is silently misread: what is found, what is asked about, what is told as not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from cli_runs import process
from rankmill import InputError

LABELS = pa.table({"qid": ["a", "a", "b"], "docno": ["d3", "d2", "d1"]})
RUN = pa.table({"qid": ["a", "a", "a", "b"], "docno": ["d1", "d2", "d3", "d1"]})
WIDE = pa.table({"qid": ["a", "b"], "items": [["d1", "d2", "d3"], ["d1"]]})
NUMBERS = [0.1, 0.2, 0.9, 0.3]
LISTS = [[0.1, 0.2, 0.9], [0.3]]
AS_READ, BY_NUMBERS = (1 / 2 + 2 / 3) / 2, 1.0  # AP of query "a" in either order; that of "b" is 1


def plus(table: pa.Table, **columns: Any) -> pa.Table:
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def ap(labels: pa.Table, predictions: Any, **options: Any) -> float:
    """The average precision of query "a"."""
    table = rankmill.evaluate(labels, predictions, ["map"], **options).per_query
    assert table is not None
    return dict(zip(table["qid"].to_pylist(), table["map"].to_pylist(), strict=True))["a"]


def columns_of(labels: pa.Table, predictions: pa.Table, **options: Any) -> dict[str, Any]:
    inputs = rankmill.evaluate(labels, predictions, ["map"], **options).inputs
    return {side: inputs[side]["columns"] for side in inputs}


# ------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "names",
    [
        *(["qid", "docno", gain] for gain in ("judgment", "Judgement", "relevance_score")),
        *(["qid", "docno", gain] for gain in ("label", "labels", "score")),
        ["q_id", "doc_id", "score"],  # qrels.parquet of ranx
        ["query-id", "corpus-id", "score"],  # qrels of BEIR
        ["query_id", "ref_id", "label"],
    ],
    ids=lambda names: names[-1] + " of " + names[-2],
)
def test_names_of_gains(names: list[str]) -> None:
    labels = plus(LABELS, gain=[2, -1, 1]).rename_columns(names)
    result = rankmill.evaluate(labels, RUN, ["dcg"])
    assert result["dcg"] == pytest.approx((2 / 2 + 1) / 2)
    assert result.audit["nonpositive_gains"] == 1
    expected = dict(zip(("query", "item", "gain"), names, strict=True))
    assert result.inputs["labels"]["columns"] == expected
    assert "unread" not in result.inputs["labels"]


def test_a_better_name_of_gains_comes_first() -> None:
    numbers = {"score": [1, 1, 1], "label": [1, 1, 0]}
    assert columns_of(plus(LABELS, **numbers), RUN)["labels"]["gain"] == "label"
    graded = plus(LABELS, **numbers, rel=[2, 0, 1])
    result = rankmill.evaluate(graded, RUN, ["map"])
    assert result.inputs["labels"]["columns"]["gain"] == "rel"
    assert result.inputs["labels"]["unread"] == ["score", "label"]
    with pytest.raises(InputError, match=r"several columns could be the gain: rel, grade.*--gain"):
        columns_of(plus(graded, grade=[1, 1, 1]), RUN)


@pytest.mark.parametrize("values", [["d1", "d2", "d1"], [True, False, True], [["d1"]] * 3])
def test_a_label_that_is_no_number_may_be_the_item(values: list[Any]) -> None:
    labels = plus(LABELS, label=values)
    with pytest.raises(InputError, match="several columns could be the item: docno, label"):
        columns_of(labels, RUN)
    assert "gain" not in columns_of(labels, RUN, label_item="docno")["labels"]


def test_a_label_without_another_item_column_is_the_item() -> None:
    labels = pa.table({"qid": ["a", "b"], "label": ["d2", "d1"]})
    assert columns_of(labels, RUN)["labels"] == {"query": "qid", "item": "label"}
    numbers = pa.table({"qid": [1, 2], "label": [1, 2]})
    assert columns_of(numbers, numbers)["labels"] == {"query": "qid", "item": "label"}
    for values in ([1, 0], 1):  # whatever it holds beside lists of items
        lists = pa.table({"qid": ["a"], "items": [["d1", "d2"]], "labels": [values]})
        with pytest.raises(InputError, match="several columns could be the item: items, labels"):
            columns_of(lists, RUN)


SCORES = ["sim", "logit", "logits", "yhat", "y_hat", "pred", "prob", "Sim"]


@pytest.mark.parametrize("name", SCORES)
def test_names_of_scores(name: str) -> None:
    run = plus(RUN, **{name: NUMBERS})
    assert ap(LABELS, run) == BY_NUMBERS
    assert rankmill.evaluate(LABELS, run, ["gap"])["gap"] == pytest.approx(3 / 2)
    assert columns_of(LABELS, plus(run, score=[4, 3, 2, 1]))["predictions"]["score"] == "score"
    assert "score" not in columns_of(LABELS, plus(run, rank=[1, 2, 3, 1]))["predictions"]
    assert ap(LABELS, plus(RUN, **{name: ["x"] * 4})) == pytest.approx(AS_READ)


def test_a_prediction_that_is_no_number_is_no_score() -> None:
    for values in (["x", "y", "z", "x"], [[0.1]] * 4, [True] * 4):
        assert ap(LABELS, plus(RUN, pred=values)) == pytest.approx(AS_READ)
    with pytest.raises(InputError, match="no column looks like the score"):
        rankmill.evaluate(LABELS, plus(WIDE, pred=LISTS), ["gap"])


# ------------------------------------------------------------------ what was not read


def test_columns_that_are_not_read_are_told(files: Any, run_cli: Any) -> None:
    more = {"tag": ["x"] * 4, "rank": [1, 2, 3, 1], "score": NUMBERS}
    paths = files(LABELS, plus(RUN, **more))
    result = rankmill.evaluate(*paths, ["map"])
    assert result.inputs["predictions"]["unread"] == ["tag", "score"]
    assert "unread" not in result.inputs["labels"]
    assert result.to_dict()["inputs"] == result.inputs
    lines = run_cli("evaluate", *paths, "-m", "map").stdout.splitlines()
    (told,) = [line for line in lines if line.startswith("predictions ")]
    assert told.endswith("query = qid, item = docno, rank = rank; not read: tag, score)")
    (told,) = [line for line in lines if line.startswith("labels ")]
    assert "not read" not in told
    result = rankmill.evaluate(*paths, ["gap"])
    assert result.inputs["predictions"]["unread"] == ["tag"]


def test_the_first_of_several_files_tells_and_long_lists_are_cut(tmp_path: Path) -> None:
    names = [f"feature_{number}" for number in range(12)]
    first = plus(RUN, score=NUMBERS, **dict.fromkeys(names, NUMBERS))
    pq.write_table(first.slice(0, 3), tmp_path / "a.parquet")
    pq.write_table(plus(RUN, score=NUMBERS, other=NUMBERS).slice(3), tmp_path / "b.parquet")
    pq.write_table(LABELS, tmp_path / "labels.parquet")
    runs = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    result = rankmill.evaluate(LABELS, runs, ["map"])
    assert result.inputs["predictions"]["unread"] == names
    with process("evaluate", tmp_path / "labels.parquet", ",".join(runs)) as done:
        out, _ = done.communicate()
    assert f"not read: {', '.join(names[:10])}, and 2 more)" in out
