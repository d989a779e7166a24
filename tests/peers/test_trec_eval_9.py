"""The presets trec_eval (9.0.8) and trec_eval-10: values by hand, which both programs print.

pytrec_eval, which has 9.0.8, is the peer of the first on random qrels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import pytrec_eval

import rankmill
from closeness import CLOSE
from flat import flat
from level_tables import random_run, tables
from rankmill.errors import UsageError

BOTH = ("trec_eval", "trec_eval-10")


def evaluate(qrels: Any, run: Any, metrics: Any, preset: Any, **options: Any) -> rankmill.Result:
    return flat(
        rankmill.evaluate,
        *tables(qrels, run),
        metrics,
        gain="relevance",
        semantics=preset,
        **options,
    )


def ranked(*documents: str) -> dict[str, float]:
    return {document: float(-rank) for rank, document in enumerate(documents)}


@pytest.mark.small
def test_recall_is_rounded_up_by_9_and_to_the_nearest_by_10() -> None:
    """Of 4 labels recall 0.3 is 1.2 documents: 2 of them by 1.2 + 0.9, else 1."""
    qrels, run = {"q": dict.fromkeys("abcd", 1)}, {"q": ranked("a", "x", "b")}
    nine, ten = (evaluate(qrels, run, ["iprec@0.3", "11pt_avg"], one) for one in BOTH)
    assert nine["iprec@0.3"] == pytest.approx(2 / 3, **CLOSE)
    assert ten["iprec@0.3"] == 1.0
    # 0, 1, 1, 2, 2, 2, 3, ... documents in 9; 0, 0, 1, 1, 2, 2, 2, 3, ... in 10
    assert nine["11pt_avg"] == pytest.approx((3 + 3 * 2 / 3) / 11, **CLOSE)
    assert ten["11pt_avg"] == pytest.approx((4 + 3 * 2 / 3) / 11, **CLOSE)
    changed = {"preset": "trec_eval", "recall_rounding": "nearest"}
    assert evaluate(qrels, run, "iprec@0.3", changed)["iprec@0.3"] == 1.0


# Query 2 has nothing relevant; n is judged, u is not.
QRELS = {"1": {"a": 2, "b": 1, "n": 0, "p": -1}, "2": {"n": 0}}
RUN = {"1": ranked("a", "u", "n", "p"), "2": ranked("n", "u", "v")}


@pytest.mark.small
@pytest.mark.parametrize("preset", BOTH)
def test_a_query_without_a_relevant_document_counts_its_list(preset: str) -> None:
    metrics = ["num_ret:sum", "num_nonrel_judged_ret:sum", "num_rel:sum", "utility", "map"]
    found = evaluate(QRELS, RUN, [*metrics, "num_ret"], preset)
    assert [found[one] for one in metrics] == [7, 2, 2, ((1 - 3) - 3) / 2, 1 / 2 / 2]
    assert found.per_query["num_ret"].to_pylist() == [4, 3]
    zero = evaluate(QRELS, RUN, metrics, {"preset": preset, "no_relevant": "zero"})
    assert [zero[one] for one in metrics] == [4, 1, 2, (1 - 3) / 2, 1 / 2 / 2]
    # A query of the run alone counts nothing.
    others = evaluate(QRELS, RUN | {"3": ranked("a", "b")}, metrics, preset)
    assert others.metrics == {one: found[one] for one in metrics}


@pytest.mark.small
@pytest.mark.parametrize("preset", [*BOTH, "default"])
def test_labels_count_where_all_predictions_are_dropped(preset: str) -> None:
    qrels, run = {"1": {"a": 1}, "2": {"b": 1}}, {"1": ranked("a"), "2": ranked("u", "v")}
    found = evaluate(qrels, run, ["num_rel", "num_rel:sum"], preset, judged_only=True)
    assert (found["num_rel:sum"], found["num_rel"]) == (2, 1)
    assert found.per_query["num_rel"].to_pylist() == [1, 1]


@pytest.mark.small
@pytest.mark.parametrize("preset", [*BOTH, "default"])
def test_num_rel_counts_queries_without_predictions(preset: str) -> None:
    """As with -c."""
    qrels, run = {"1": {"a": 1}, "2": {"b": 2, "c": 1}, "3": {"a": 0}}, {"1": ranked("a")}
    chosen = {"preset": preset, "unpredicted": "zero"}
    found = evaluate(qrels, run, ["num_rel:sum", "num_ret:sum", "map"], chosen)
    assert (found["num_rel:sum"], found["num_ret:sum"]) == (3, 1)
    table = evaluate(qrels, run, ["num_rel"], chosen, rel=2).per_query
    assert table["num_rel(rel=2)"].to_pylist() == ([0, 1] if preset == "default" else [0, 1, 0])


@pytest.mark.small
def test_rndcg_is_0_without_a_relevant_document() -> None:
    """-l only says which are relevant; all gains count."""
    qrels, run = {"1": {"a": 1}, "2": {"a": 2, "b": 1}}, dict.fromkeys("12", ranked("a", "b"))
    found = evaluate(qrels, run, ["Rndcg"], "trec_eval", rel=2)
    assert found.per_query[1].to_pylist() == [0, 1]
    assert evaluate(qrels, run, ["Rndcg"], "trec_eval")["Rndcg"] == 1


@pytest.mark.small
def test_what_only_10_has() -> None:
    metrics = ["graded_rbp(p=0.5)", "rbp_resid(p=0.5)", "unj@5", "unj_2"]
    found = evaluate(QRELS, RUN, [*metrics, "dcg"], "trec_eval-10")
    # query 1: a of gain 2 of 2 at rank 1; u and p, of a gain below 0, are not judged, at 2 and 4
    # query 2: u and v at 2 and 3; the ranks behind a list weigh p^n
    values = {name: found.per_query[name].to_pylist() for name in metrics}
    assert values == {
        "graded_rbp(p=0.5)": [0.5, 0],
        "rbp_resid(p=0.5)": [1 / 4 + 1 / 16 + 1 / 16, 1 / 4 + 1 / 8 + 1 / 8],
        "unj@5": [2 / 5, 2 / 5],
        "unj_2": [1 / 2, 1 / 2],
    }
    assert found["dcg"] == 2 / 2
    second = evaluate({"q": {"a": 1, "b": 3}}, {"q": ranked("a", "b")}, metrics, "trec_eval-10")
    assert second["graded_rbp(p=0.5)"] == pytest.approx(0.5 / 3 + 0.25, **CLOSE)
    assert (second["rbp_resid(p=0.5)"], second["unj@5"]) == (0, 0)
    default = evaluate({"q": {"a": 1}}, {"q": ranked("a")}, ["graded_rbp"], "trec_eval-10")
    assert default["graded_rbp"] == pytest.approx(0.1, **CLOSE)


def rbp_of_10(levels: list[int | None], most: int, p: float) -> tuple[float, float]:
    """What m_rbp.c and m_rbp_resid.c of trec_eval 10 print with all digits: gcc on x86-64."""
    gains, unjudged, power = 0.0, 0.0, 1.0
    for level in levels:
        if level is None or level < 0:
            unjudged += power
        else:
            gains += level / most * power
        power *= p
    return (1 - p) * gains, power + (1 - p) * unjudged if unjudged else 0.0


@pytest.mark.small
@pytest.mark.parametrize("p", [0.9, 0.8, 0.95])
def test_rbp_and_its_residual_have_the_bits_of_10(p: float) -> None:
    draw = np.random.default_rng(5)
    qrels = {
        str(q): {f"d{i}": int(draw.integers(-1, 4)) for i in range(5 + q)} | {"top": 3}
        for q in range(60)
    }
    run = {q: ranked(*(f"d{i}" for i in draw.permutation(60)[:40])) for q in qrels}
    metrics = [f"graded_rbp(p={p})", f"rbp_resid(p={p})"]
    found = evaluate(qrels, run, metrics, "trec_eval-10").per_query
    for row in found.to_pylist():
        judged = qrels[row["qid"]]
        expected = rbp_of_10([judged.get(one) for one in run[row["qid"]]], 3, p)
        assert (row[metrics[0]], row[metrics[1]]) == expected


@pytest.mark.small
@pytest.mark.parametrize(
    ("metric", "preset", "message"),
    [
        ("rbp", "trec_eval-10", "rbp under the preset trec_eval-10: in trec_eval 10 it is graded"),
        *(
            (name, "trec_eval", f"{name} under the preset trec_eval: it is of trec_eval 10: choose")
            for name in ("rbp(p=0.5)", "graded_rbp", "rbp_resid", "unj@5", "unj_5", "dcg")
        ),
        ("unj@5", {"preset": "trec_eval", "unpredicted": "zero"}, "is of trec_eval 10"),
    ],
)
def test_a_name_of_the_other_program_is_refused(metric: str, preset: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        evaluate(QRELS, RUN, metric, preset)
    assert message in str(caught.value)


@pytest.mark.small
@pytest.mark.parametrize("preset", BOTH)
def test_num_q_and_runid_are_left_out_with_a_note(preset: str, run: Any, tmp_path: Any) -> None:
    found = evaluate(QRELS, RUN, ["runid", "num_q", "map"], preset)
    assert list(found.metrics) == ["map"]
    told = [
        "runid is left out: it is the name of a run, and not a number",
        "num_q is left out: every result has its number of queries, as queries",
    ]
    assert found.notes == told
    for other in (preset, "default"):  # alone, or elsewhere, they are no metrics
        with pytest.raises(UsageError, match="num_q is not a metric here"):
            evaluate(QRELS, RUN, ["num_q"] if other == preset else ["map", "num_q"], other)
    qrels, *runs = (tmp_path / name for name in ("a.qrels", "a.run", "b.run"))
    qrels.write_text("1 0 a 1\n")
    for one in runs:
        one.write_text("1 Q0 a 1 0.5 tag\n")
    for command, inputs in (("evaluate", runs[:1]), ("compare", runs)):
        paths = [str(one) for one in (qrels, *inputs)]
        asked = [command, *paths, "-m", "num_q,map,runid", "--preset", preset]
        code, out, err = run(*asked, "--format", "json")
        assert code == 0, err
        assert '"map"' in out


@pytest.mark.small
@pytest.mark.parametrize("preset", BOTH)
def test_a_map_may_turn_the_order_of_gains(preset: str) -> None:
    """ndcg.1=3,2=9,4=4.5 of trec_eval's own test."""
    qrels, run = {"q": {"a": 4, "b": 2, "c": 1}}, {"q": ranked("a", "x", "b")}
    found = evaluate(qrels, run, ["ndcg", "ndcg@2"], preset, gain_function="1=3,2=9,4=4.5")
    log3 = np.log2(3)
    assert found["ndcg"] == pytest.approx((4.5 + 9 / 2) / (9 + 4.5 / log3 + 3 / 2), **CLOSE)
    assert found["ndcg@2"] == pytest.approx(4.5 / (9 + 4.5 / log3), **CLOSE)
    both = evaluate(qrels, run, "map", preset, gain_function="1=3,2=9,4=4.5", rel=2)
    assert both["map"] == (1 + 2 / 3) / 2  # a and b, as without the map
    with pytest.raises(UsageError, match="rel 4 has no meaning under gain_function '1=3,2=9,4=4"):
        evaluate(qrels, run, "map", preset, gain_function="1=3,2=9,4=4.5", rel=4)


@pytest.mark.small
@pytest.mark.parametrize("rel", [1, 2])
def test_infap_has_the_bits_of_trec_eval(rel: int) -> None:
    qrels, run = random_run(4)
    name = f"infap(rel={rel})"
    found = evaluate(qrels, run, name, "trec_eval").per_query
    peer = pytrec_eval.RelevanceEvaluator(qrels, {"infAP"}, relevance_level=rel).evaluate(run)
    told = {row["qid"]: row[name] for row in found.to_pylist()}
    assert told == {query: values["infAP"] for query, values in peer.items()}


MEASURES = {
    **{"num_ret": "num_ret", "num_rel": "num_rel", "num_rel_ret": "num_rel_ret", "map": "map"},
    **{"num_nonrel_judged_ret": "num_nonrel_judged_ret", "utility": "utility", "bpref": "bpref"},
    **{"infap": "infAP", "11pt_avg": "11pt_avg", "g": "G", "bing": "binG", "rndcg": "Rndcg"},
    **{"ndcg_rel": "ndcg_rel", "set_p": "set_P", "set_recall": "set_recall", "set_f": "set_F"},
    **{"set_map": "set_map", "set_relative_p": "set_relative_P", "ndcg": "ndcg"},
    **{f"iprec@{one}": f"iprec_at_recall_{one:.2f}" for one in (0.1, 0.5, 0.7)},
    **{f"rprec_mult@{one}": f"Rprec_mult_{one:.2f}" for one in (0.2, 1.8)},
}


@pytest.mark.parametrize("rel", [1, 2, 3])
def test_pytrec_eval(rel: int) -> None:
    """With queries without a relevant document, ties, and scores that float32 does not tell."""
    for seed in range(3):
        qrels, run = random_run(seed)
        draw = np.random.default_rng(seed)
        run = {
            query: {one: score + draw.integers(0, 3) * 1e-9 for one, score in listed.items()}
            for query, listed in run.items()
        }
        asked = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES.values()), relevance_level=rel)
        expected = asked.evaluate(run)
        found = evaluate(qrels, run, list(MEASURES), "trec_eval", rel=rel)
        assert found.queries == len(qrels)
        for name, there in MEASURES.items():
            values = [expected[query][there] for query in found.per_query["qid"].to_pylist()]
            column = found.per_query[found.aliases.get(name, name)].to_pylist()
            assert column == pytest.approx(values, **CLOSE), (seed, name)
