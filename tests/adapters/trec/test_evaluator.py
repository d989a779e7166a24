"""`rankmill.pytrec_eval` returns what pytrec_eval does, to the last bit, and raises the same."""

from __future__ import annotations

import sys
from random import Random
from typing import Any

import numpy as np
import pytest
import pytrec_eval

from rankmill import pytrec_eval as ours
from rankmill.errors import UsageError
from trec_files import random_sides

ASKED = (
    pytrec_eval.supported_measures,
    {"map", "P_5", "P_3", "ndcg_cut.2,7"},
    ["official", "success.3"],
    {"all_trec"},
    {"set", "ndcg", "utility.1,2,3,4", "set_F_2", "iprec_at_recall_0.25", "relstring.2"},
)


def check_same(seeds: range) -> None:
    """Check that both return the same text: values, their types and the order of keys."""
    for seed in seeds:
        rng = Random(seed)
        qrels, run = random_sides(rng)
        how = rng.choice(ASKED), rng.choice([1, 1, 2, 3]), rng.random() < 0.3
        theirs, found = (
            repr(one.RelevanceEvaluator(qrels, *how).evaluate(run)) for one in (pytrec_eval, ours)
        )
        assert found == theirs, seed


@pytest.mark.small
def test_the_bits_of_pytrec_eval() -> None:
    check_same(range(20))


@pytest.mark.long
def test_the_bits_of_pytrec_eval_on_more_files() -> None:
    check_same(range(20, 220))


@pytest.mark.small
def test_names() -> None:
    assert ours.supported_measures == pytrec_eval.supported_measures
    assert ours.supported_nicknames == pytrec_eval.supported_nicknames
    assert list(ours.supported_nicknames) == list(pytrec_eval.supported_nicknames)


Q: Any = {"q": {"a": 1, "b": 0}}
R: Any = {"q": {"a": 1, "c": 2.5}, "z": {"a": 1.0}}


def outcome(library: Any, q: Any, measures: Any, r: Any, **more: Any) -> str:
    """What is returned or raised, as a text."""
    try:
        return repr(library.RelevanceEvaluator(q, measures, **more).evaluate(r))
    except (TypeError, ValueError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.small
@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="errors of pytrec_eval 0.5 end Python 3.14 itself"
)
@pytest.mark.parametrize(
    ("q", "measures", "r"),
    [
        ({1: {"a": 1}}, {"map"}, R),
        ({"q": {"a": 1.0}}, {"map"}, R),
        ({"q": {"a": np.int64(1)}}, {"map"}, R),
        ({"q": {"a": True}}, {"map"}, {"q": {"a": np.float64(1)}}),
        ({"q": {2: 1}}, {"map"}, R),
        ({"q": ["a"]}, {"map"}, R),
        (["q"], {"map"}, R),
        ({}, {"map"}, R),
        ({"q": {}}, {"map"}, R),
        (Q, {"nope"}, R),
        (Q, "m", R),
        (Q, {"yaap"}, R),
        (Q, {"prefs_simp"}, R),
        (Q, {"P.a"}, R),
        (Q, set(), R),
        (Q, {"P", "P.5"}, R),
        (Q, {"P.5x", "map.3"}, R),
        (Q, {"map"}, {}),
        (Q, {"map"}, []),
        (Q, {"map"}, ["q"]),
        (Q, {"map"}, {1: {"a": 1.0}}),
        (Q, {"map"}, {"q": ["a"]}),
        (Q, {"map"}, {"q": {1: 1.0}}),
        (Q, {"map"}, {"q": {"a": "1"}}),
        (Q, {"map"}, {"q": {"a": np.float32(1)}}),
        (Q, {"map"}, {"q": {}}),
        ({"q": {"a\0b": 1}, "é": {"ü": 1}}, {"map"}, {"é": {"ü": 1}}),
    ],
)
def test_errors_are_alike(q: Any, measures: Any, r: Any) -> None:
    assert outcome(ours, q, measures, r) == outcome(pytrec_eval, q, measures, r)


@pytest.mark.small
def test_levels_are_whole_and_above_0() -> None:
    for level in (0, 1.5):
        told = outcome(ours, Q, {"map"}, R, relevance_level=level)
        assert told == outcome(pytrec_eval, Q, {"map"}, R, relevance_level=level)
    # pytrec_eval ends the process
    with pytest.raises(UsageError, match="distinct numbers"):
        ours.RelevanceEvaluator(Q, {"P.5,05"})


@pytest.mark.small
def test_an_evaluator_evaluates_several_runs() -> None:
    one = ours.RelevanceEvaluator(Q, {"recip_rank"})
    assert one.evaluate(R) == {"q": {"recip_rank": 0.5}}
    assert one.evaluate({"q": {"a": 1.0}}) == {"q": {"recip_rank": 1.0}}


@pytest.mark.small
@pytest.mark.parametrize("name", ["num_ret", "gm_map", "P_5", "gm_bpref"])
def test_aggregates(name: str) -> None:
    values = [0.5, -1.25, 0.1, 3.0]
    theirs = pytrec_eval.compute_aggregated_measure(name, values)
    assert ours.compute_aggregated_measure(name, values) == theirs


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("parse_run", ["q Q0 d 1 2.5 t\n", "q Q0 e 2 1 t"]),
        ("parse_run", ["q Q0 d 1 2.5 t", "q Q0 d 2 1 t"]),
        ("parse_run", ["q Q0 d 1 x t"]),
        ("parse_qrel", ["q 0 d 1\n", "p 0 d -1"]),
        ("parse_qrel", ["q 0 d 1", "q 0 d 1"]),
        ("parse_qrel", ["q 0 d 1.0"]),
        ("parse_qrel", ["q 0 d"]),
    ],
)
def test_parsers(name: str, lines: list[str]) -> None:
    def told(library: Any) -> str:
        try:
            return repr(getattr(library, name)(lines))
        except (AssertionError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    assert told(ours) == told(pytrec_eval)
