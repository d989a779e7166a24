"""The provider for ir_measures has the values of the providers of ir_measures."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import ir_measures
import pytest

from rankmill.errors import UsageError
from rankmill.ir_measures import RankmillProvider, name_of, provider

SAME = (
    *("AP", "AP(rel=2)@5", "AP(judged_only=True)@5", "P@5", "P(rel=2,judged_only=True)@5", "RR"),
    *("RR(judged_only=True)", "RR(rel=2)@5", "Rprec", "Rprec(rel=2,judged_only=True)", "R@5"),
    *("R(rel=2,judged_only=True)@5", "nDCG", "nDCG@5", "nDCG(judged_only=True)@5"),
    *("nDCG(gains={0:1,1:3,2:9})@5", "nDCG(gains={1:2},judged_only=True)", "Bpref", "Bpref(rel=2)"),
    *("NumRet", "NumRet(rel=2)", "NumRel", "SetAP", "SetAP(rel=2)", "SetF", "SetF(beta=2.0)"),
    *(
        "SetP",
        "SetP(relative=True)",
        "SetP(relative=True,rel=2)",
        "SetR",
        "SetR(rel=2)",
        "Judged@5",
    ),
    *("Success@5", "Success(rel=2,judged_only=True)@5", "IPrec@0.5", "IPrec(judged_only=True)@0.1"),
    *("infAP", "infAP(rel=2)", "RBP(rel=1)", "RBP(rel=2,p=0.5)", "BPM(max_rel=3)@10"),
    *("BPM(T=2.0,max_rel=3)@10", "INST(max_rel=3)", "INST(T=2.0,max_rel=3)", "INSQ(max_rel=3)"),
    *("alpha_nDCG@5", "alpha_nDCG(alpha=0.2)@5", "ERR_IA@5", "StRecall@5", "StRecall@20"),
    *("alpha_DCG@5", "alpha_DCG(alpha=0.2)@5", "nERR_IA@5", "P_IA@5", "AP_IA", "NRBP", "nNRBP"),
    *(
        "NRBP(beta=0.7)",
        "nNRBP(alpha=0.3,beta=0.7)",
        "SDCG(max_rel=3)@5",
        "Compat",
        "Compat(p=0.8)",
    ),
    *("NERR8(max_rel=3)@5", "NERR9(max_rel=3)@5", "NERR10(p=0.5,max_rel=3)"),
    "NERR11(T=2.0,max_rel=3)",
)


def sides(seed: int) -> tuple[list[Any], list[Any]]:
    """Qrels with subtopics and a run without ties, with queries on one side."""
    rng = Random(seed)
    documents = [f"d{number}" for number in range(40)]
    qrels, run = [], []
    for query in (f"q{number}" for number in range(7)):
        if query != "q5":
            for document in rng.sample(documents, rng.randint(2, 25)):
                topic = rng.choice("123")
                qrels.append(ir_measures.Qrel(query, document, rng.choice([0, 1, 2, 3]), topic))
            qrels.append(ir_measures.Qrel(query, "sure", 2, "1"))
        if query != "q6":
            listed = [*rng.sample(documents, rng.randint(5, 30)), "sure"]
            rng.shuffle(listed)
            run += [
                ir_measures.ScoredDoc(query, document, 99.0 - rank)  # of Compat: above 0
                for rank, document in enumerate(listed)
            ]
    return qrels, run


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_ir_measures(seed: int) -> None:
    qrels, run = sides(seed)
    measures = [ir_measures.parse_measure(name) for name in SAME]
    assert [one for one in measures if not provider.supports(one)] == []
    ours = {
        (one.query_id, one.measure): one.value for one in provider.iter_calc(measures, qrels, run)
    }
    # One at a time: its provider of subtopics reads the run only for the first alpha.
    theirs = (found for one in measures for found in ir_measures.iter_calc([one], qrels, run))
    expected = {(one.query_id, one.measure): one.value for one in theirs}
    assert ours.keys() == expected.keys()
    for key, value in expected.items():
        assert math.isclose(ours[key], value, rel_tol=1e-9, abs_tol=1e-12), key
    whole = provider.calc_aggregate(measures, qrels, run)
    for one in measures:
        value = ir_measures.calc_aggregate([one], qrels, run)[one]
        assert math.isclose(whole[one], value, rel_tol=1e-9, abs_tol=1e-12), one


@pytest.mark.small
def test_an_evaluator_takes_several_runs_and_any_form() -> None:
    qrels = {"q": {"a": 1}, "p": {"b": 2}}
    one = provider.evaluator([ir_measures.AP, ir_measures.nDCG @ 5], qrels)
    assert one.calc_aggregate({"q": {"a": 1.0}})[ir_measures.AP] == 0.5
    assert one.calc_aggregate({"z": {"a": 1.0}})[ir_measures.AP] == 0
    assert one.calc_aggregate({})[ir_measures.AP] == 0
    found = ir_measures.providers.registry["rankmill"]
    assert isinstance(found, RankmillProvider)
    assert "ir_measures" in found.install_instructions()


@pytest.mark.small
@pytest.mark.parametrize(
    ("measure", "told"),
    [
        ("RBP", "graded gains"),
        ("NumQ", "number of queries"),
        ("Judged", "needs a cutoff"),
        ("Accuracy", "type auc"),
        ("Compat(normalize=False)", "normalize=False"),
        ("infAP(rel=2)", ""),
    ],
)
def test_what_is_not_computed_is_told(measure: str, told: str) -> None:
    parsed = ir_measures.parse_measure(measure)
    assert provider.supports(parsed) == (not told)
    if told:
        with pytest.raises(UsageError, match=told):
            name_of(parsed)
