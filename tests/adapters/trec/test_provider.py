"""The provider for ir_measures has the values of the providers of ir_measures."""

from __future__ import annotations

import math
import subprocess
from itertools import product
from random import Random
from typing import Any

import ir_measures
import pytest

from rankmill.errors import UsageError
from rankmill.ir_measures import RankmillProvider, name_of, provider
from strategies import some

# What each parameter is given; a measure is asked for with every combination of its own.
GIVEN: dict[str, tuple[Any, ...]] = {
    **{"cutoff": (1, 5, 20), "recall": (0.0, 0.1, 0.55, 1.0), "rel": (1, 2, 3)},
    **{"p": (0.5, 0.9), "T": (1.0, 2.5), "alpha": (0.2, 0.5), "beta": (0.3, 0.5, 2.0)},
    **{"min_rel": (-1, 0, 1), "max_rel": (3, 4), "dcg": ("log2", "exp-log2")},
    "gains": ({0: 1, 1: 3, 2: 9, 3: 4},),
    **dict.fromkeys(("judged_only", "normalize", "relative"), (False, True)),
}
# What is refused, by a word of the reason.
REFUSED = {
    **{"Accuracy": "type auc", "NumQ": "number of queries"},
    **dict.fromkeys(("ERR_IA@1", "alpha_DCG@1"), "does not divide"),
    **dict.fromkeys(("NRBP", "nNRBP"), "'2.0'; expected a number above 0 and below 1"),
    "RBP": "give a rel",
}
# What rankmill computes and no provider of ir_measures does, or only with a tool that fails.
ALONE = {
    *("RR", "NumRel", "RBP", "nDCG", "ERR"),
    *("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "AP_IA", "P_IA", "StRecall"),
}
MEASURES = {one.NAME: type(one) for one in ir_measures.measures.registry.values()}


def asked(name: str) -> list[Any]:
    """A measure with all combinations of its parameters, and without those that may be left out."""
    known = MEASURES[name].SUPPORTED_PARAMS
    every = [
        [None][one.required :]
        + [of for of in GIVEN[name] if not isinstance(one.choices, list) or of in one.choices]
        for name, one in known.items()
    ]
    rows = (zip(known, values, strict=True) for values in product(*every))
    found = (
        MEASURES[name](**{one: value for one, value in row if value is not None}) for row in rows
    )
    return list({str(one): one for one in found}.values())


def theirs(measure: Any, qrels: list[Any], run: list[Any]) -> dict[str, float] | None:
    """The values of ir_measures, None if it has none."""
    # One at a time: its provider of subtopics reads the run only for the first alpha.
    try:
        found = [*ir_measures.iter_calc([measure], qrels, run)]
    except (ValueError, TypeError, subprocess.CalledProcessError):
        return None
    return {one.query_id: one.value for one in found}


def sides(seed: int) -> tuple[list[Any], list[Any]]:
    """Qrels with subtopics and a run without ties, with queries on one side."""
    rng = Random(seed)
    documents = [f"d{number}" for number in range(40)]
    qrels, run = [], []
    for query in (str(number) for number in range(7)):
        if query != "5":
            for document in rng.sample(documents, rng.randint(2, 25)):
                topic = rng.choice("123")
                qrels.append(ir_measures.Qrel(query, document, rng.choice([0, 1, 2, 3]), topic))
            qrels.append(ir_measures.Qrel(query, "sure", 2, "1"))
        if query != "6":
            listed = [*rng.sample(documents, rng.randint(5, 30)), "sure"]
            rng.shuffle(listed)
            run += [
                ir_measures.ScoredDoc(query, document, 99.0 - rank)  # of Compat: above 0
                for rank, document in enumerate(listed)
            ]
    return qrels, run


@pytest.mark.rows(12)
@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("seed", some(range(3), 3))
def test_every_parameter_of_a_measure_has_the_values_of_ir_measures(name: str, seed: int) -> None:
    qrels, run = sides(seed)
    of_topics = MEASURES[name].__module__.endswith("diversity")
    if not of_topics:
        qrels = [one._replace(iteration="0") for one in qrels]
    there = [one for one in asked(name) if provider.supports(one)]
    for one in asked(name):
        if one not in there:
            with pytest.raises(UsageError) as error:
                name_of(one)
            at = f"{name}@{one.params.get('cutoff')}"
            assert REFUSED.get(at, REFUSED.get(name, "needs a cutoff")) in str(error.value), one
    ours: dict[Any, dict[str, float]] = {one: {} for one in there}
    for value in provider.iter_calc(there, qrels, run):
        ours[value.measure][value.query_id] = value.value
    for one in there:
        expected = theirs(one, qrels, run)
        # gdeval prints five digits.
        places = 1e-5 if name == "ERR" or one.params.get("dcg") == "exp-log2" else 1e-12
        if expected is None:
            assert name in ALONE, one
            continue
        assert ours[one].keys() == expected.keys()
        for query, value in expected.items():
            if math.isnan(value):  # nNRBP of a query without a relevant document
                value = 0.0
            assert math.isclose(ours[one][query], value, rel_tol=1e-9, abs_tol=places), (one, query)


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
def test_ids_are_what_is_written() -> None:
    """Words for a missing value are ids, and 7.0 is not 7."""
    qrels = {"nan": {"null": 1, "7": 1, " a": 0}}
    run = {"nan": {"null": 3.0, "7.0": 2.0, "7": 1.0, " a": 0.5}}
    measure = ir_measures.AP
    (found,) = provider.iter_calc([measure], qrels, run)
    (theirs,) = ir_measures.iter_calc([measure], qrels, run)
    assert (found.query_id, found.value) == (theirs.query_id, pytest.approx(theirs.value))


@pytest.mark.small
def test_judged_only_drops_what_qrels_lack() -> None:
    """Of subtopics, too, where ir_measures fails; without a document left, a query has 0."""
    qrels = [ir_measures.Qrel("q", "a", 1, "1"), ir_measures.Qrel("p", "b", 0, "2")]
    run = [ir_measures.ScoredDoc("q", name, -place) for place, name in enumerate("xyazb")]
    measures = [ir_measures.P_IA @ 2, ir_measures.P_IA(judged_only=True) @ 2]
    found = [one.value for one in provider.iter_calc(measures, qrels, run) if one.query_id == "q"]
    assert found == [0.0, 0.5]
    without = provider.calc_aggregate(measures, qrels, run[:2])
    assert [*without.values()] == [0.0, 0.0]


@pytest.mark.small
@pytest.mark.parametrize(
    ("measure", "told"),
    [
        (ir_measures.RBP, "graded gains"),
        (ir_measures.NumQ, "number of queries"),
        (ir_measures.P_IA, "needs a cutoff"),
        (ir_measures.Accuracy, "type auc"),
        (ir_measures.Compat(normalize=False), ""),
        (ir_measures.infAP(rel=2), ""),
    ],
    ids=str,
)
def test_what_is_not_computed_is_told(measure: Any, told: str) -> None:
    assert provider.supports(measure) == (not told)
    if told:
        with pytest.raises(UsageError, match=told):
            name_of(measure)
