"""Gain maps, such as "1=3,2=7": what each gain of a label is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import pytrec_eval
from conftest import tells
from hypothesis import given

import rankmill
import strategies
from flat import flat
from random_runs import long_table, random_run
from rankmill import InputError, UsageError

WORTHS = {0.5: 0.25, 1.0: 3.0, 2.0: 7.0, 3.0: 7.5}
MAP = ",".join(f"{gain}={worth}" for gain, worth in WORTHS.items())
GRADED = ["ndcg", "ndcg@2", "dcg", "q_measure", "G", "bpm@3", "ndcg_rel", "Rndcg", "inst", "insq"]
OTHERS = ["map", "recall@2", "judged@3", "bpref", "infap", "pair_accuracy", "map(rel=2)@3"]


@given(strategies.cases(graded=True, nulls=False))
def test_the_same_as_with_the_worths_themselves(case: Any) -> None:
    """What stands in the labels: worths where gains count, gains elsewhere."""
    predictions = strategies.wide_predictions(case)
    labels = strategies.wide_labels(case)
    gains = labels["gain"].combine_chunks()
    worths = [WORTHS.get(gain.as_py(), gain.as_py()) for gain in gains.flatten()]
    mapped = pa.ListArray.from_arrays(gains.offsets, pa.array(worths, pa.float64()))
    other = labels.set_column(labels.column_names.index("gain"), "gain", mapped)
    found = rankmill.evaluate(
        labels, predictions, [*GRADED, *OTHERS], semantics=rankmill.Semantics(gain_function=MAP)
    )
    assert found.gain_function == "0.5=0.25,1=3,2=7,3=7.5"
    wanted = rankmill.evaluate(other, predictions, GRADED).metrics
    wanted |= rankmill.evaluate(labels, predictions, OTHERS).metrics
    assert found.metrics == wanted


@pytest.mark.small
@pytest.mark.parametrize(
    ("worths", "accuracy", "tau"),
    [
        ("exp", 3 / 6, -1),
        ("1=3,2=3,3=9", 3 / 5, -1),
        ("1=5,2=3,3=1", 1, 1),
        ("1=1,2=3,3=2", 4 / 6, -1 / 3),
    ],
)
def test_pairs_are_of_what_gains_are_worth(worths: str, accuracy: float, tau: float) -> None:
    labels = {1: {"a": 1, "b": 2, "c": 3, "d": 0}}
    run = {1: {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}}
    semantics = rankmill.Semantics(gain_function=worths)
    found = rankmill.evaluate(labels, run, "pair_accuracy,kendall_tau", semantics=semantics)
    assert [*found.metrics.values()] == pytest.approx([accuracy, tau], rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_trec_eval(seed: int) -> None:
    """Its parameter of ndcg, by the qrels with the worths in place of the levels, and by "exp"."""
    qrels, run = random_run(seed)
    worths = {0: 0, 1: 3, 2: 7, 3: 20}
    mapped = {
        query: {item: worths[level] for item, level in judged.items()}
        for query, judged in qrels.items()
    }
    names = {"ndcg": "ndcg", "ndcg@5": "ndcg_cut_5"}
    evaluator = pytrec_eval.RelevanceEvaluator(mapped, {"ndcg", "ndcg_cut.5"})
    expected = evaluator.evaluate(run)
    tables = long_table(qrels, "gain"), long_table(run, "score")
    result = flat(
        rankmill.evaluate, *tables, list(names), semantics="trec_eval", gain_function="1=3,2=7,3=20"
    )
    for name, there in names.items():
        values = [expected[query][there] for query in result.per_query["qid"].to_pylist()]
        assert result.per_query[name].to_pylist() == pytest.approx(values, rel=1e-12, abs=1e-15)
    metrics = ["ndcg", "dcg@3", "err@5", "nerr", "q_measure"]
    powers, exp = (
        flat(rankmill.evaluate, *tables, metrics, gain_function=one).metrics
        for one in ("1=1,2=3,3=7", "exp")
    )
    assert powers == exp


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1:3", ["'1:3'", "linear", "exp", "1=3,2=7"]),
        ("1=3,1=4", ["once each"]),
        ("1=x", ["what each gain is worth"]),
        ("0=1", ["above 0"]),
        ("1=nan", ["above 0"]),
        ("1=1e101", ["at most 1e+100"]),
    ],
)
def test_what_is_no_map(text: str, wanted: list[str]) -> None:
    table = pa.table({"query": [1], "items": [["a"]]})
    with pytest.raises(UsageError) as caught:
        rankmill.evaluate(table, table, "ndcg", semantics=rankmill.Semantics(gain_function=text))
    tells(caught.value, ["gain_function", *wanted])


@pytest.mark.small
def test_a_gain_that_is_not_named(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, predictions = tmp_path / "l.csv", tmp_path / "p.csv"
    labels.write_text("query,item,gain\n1,a,1\n1,b,3\n1,c,0\n1,d,-1\n")
    predictions.write_text("query,item,rank\n1,a,1\n1,b,2\n")
    with pytest.raises(InputError, match=r"l\.csv: a gain is 3, .* does not name: add 3="):
        rankmill.evaluate(
            str(labels),
            str(predictions),
            "ndcg",
            semantics=rankmill.Semantics(gain_function="1=3,2=7"),
        )
    asked = ["evaluate", str(labels), str(predictions), "-m", "dcg@1"]
    for option in ("--gain-function", "--gain-map"):
        code, out, _ = run(*asked, option, "3=7, 1=2", "--format", "json")
        assert code == 0
        assert '"dcg@1": 2.0' in out
    code, _, err = run(*asked, "--gain-function", "1=2,3=x")
    assert code == 2
    assert "what each gain is worth" in err
    inputs = 'labels = "l.csv"\npredictions = "p.csv"\nmetrics = ["dcg@1"]\n'
    (tmp_path / "rankmill.toml").write_text(f'{inputs}[columns]\ngain_function = "1=2,3=4"\n')
    monkeypatch.chdir(tmp_path)
    _, out, err = run("evaluate", "rankmill.toml", "--format", "json")
    assert '"dcg@1": 2.0' in out, err


@pytest.mark.small
@pytest.mark.parametrize("gains", [(0, 2), (1, 0), (0, 0), (-1, 1), (1, 2)])
@pytest.mark.parametrize("metric", ["map", "bpref", "map,num_rel:sum"])
def test_a_label_judged_twice_is_an_error_whatever_the_metric(
    gains: tuple[int, int], metric: str
) -> None:
    twice = pa.table({"query": ["q"] * 3, "item": ["a", "b", "a"], "gain": [gains[0], 1, gains[1]]})
    run = pa.table({"query": ["q"], "item": ["a"], "score": [1.0]})
    with pytest.raises(InputError, match="has label 'a' a second time"):
        rankmill.evaluate(twice, run, metric, semantics="trec_eval")
