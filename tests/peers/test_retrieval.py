"""Metrics of retrieval beside trec_eval, SciPy and scikit-learn, and worked examples."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
import scipy.stats
import sklearn.metrics
from conftest import tells

import rankmill
from flat import flat
from random_runs import long_table, random_run
from rankmill import InputError, UsageError
from rankmill.metrics.elsewhere import names_elsewhere
from rankmill.metrics.registry import parse

# Metric here -> measure asked for there -> name of its value.
TREC_EVAL = {
    "num_ret": ("num_ret", "num_ret"),
    "num_rel": ("num_rel", "num_rel"),
    "num_rel_ret": ("num_rel_ret", "num_rel_ret"),
    "num_nonrel_judged_ret": ("num_nonrel_judged_ret", "num_nonrel_judged_ret"),
    "set_p": ("set_P", "set_P"),
    "set_recall": ("set_recall", "set_recall"),
    "set_f": ("set_F", "set_F"),
    "set_map": ("set_map", "set_map"),
    "set_relative_p": ("set_relative_P", "set_relative_P"),
    "utility": ("utility", "utility"),
    "relative_P_5": ("relative_P.5", "relative_P_5"),
    "Rprec_mult_0.20": ("Rprec_mult", "Rprec_mult_0.20"),
    "rprec_mult@1.8": ("Rprec_mult", "Rprec_mult_1.80"),
    "iprec_at_recall_0.00": ("iprec_at_recall", "iprec_at_recall_0.00"),
    "iprec@0.3": ("iprec_at_recall", "iprec_at_recall_0.30"),
    "iprec@1": ("iprec_at_recall", "iprec_at_recall_1.00"),
    "11pt_avg": ("11pt_avg", "11pt_avg"),
    "binG": ("binG", "binG"),
    "infAP": ("infAP", "infAP"),
}
GRADED = {name: (name, name) for name in ("G", "ndcg_rel", "Rndcg")}
SKIP = {"unpredicted": "skip"}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("level", [1, 2])
def test_trec_eval(seed: int, level: int) -> None:
    qrels, run = random_run(seed)
    for query, judged in qrels.items():
        if seed % 2 and int(query[1:]) % 3 == 0:  # pooled and not judged
            judged |= dict.fromkeys(list(judged)[::3], -1)
    asked = TREC_EVAL | (GRADED if level == 1 and not seed % 2 else {})
    measures = {measure for measure, _ in asked.values()}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=level).evaluate(run)
    tables = long_table(qrels, "gain"), long_table(run, "score")
    rel = None if level == 1 else level
    names = list(asked)
    result = flat(rankmill.evaluate, *tables, names, semantics="trec_eval", rel=rel)
    table = result.per_query
    for text, (_, there) in asked.items():
        for query, found in zip(
            table["qid"].to_pylist(), table[result.aliases[text.lower()]].to_pylist(), strict=True
        ):
            if all(gain < level for gain in qrels[query].values()):
                continue  # such a query scores 0 here in all metrics, but the counts there
            wanted = expected[query][there]
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12), (text, query)


def lists_of(
    seed: int,
) -> tuple[pa.Table, pa.Table, dict[int, list[float]], dict[int, list[float]]]:
    """Graded labels, lists with ties, and of each query its gains and scores by prediction."""
    draw = random.Random(seed)
    items = [f"item {number}" for number in range(15)]
    gains = {q: {item: float(draw.randrange(4)) for item in items[:11]} for q in range(9)}
    lists = {q: draw.sample(items, 12) for q in gains}
    scores = {q: sorted((draw.randrange(8) / 4 for _ in range(12)), reverse=True) for q in gains}
    labels = pa.table(
        {
            "query": list(gains),
            "items": [list(one) for one in gains.values()],
            "gain": [list(one.values()) for one in gains.values()],
        }
    )
    table = pa.table(
        {"query": list(lists), "items": list(lists.values()), "score": list(scores.values())}
    )
    found = {q: [gains[q].get(item, -1.0) for item in listed] for q, listed in lists.items()}
    return labels, table, found, scores


@pytest.mark.parametrize("seed", range(5))
def test_scikit_learn_and_scipy(seed: int) -> None:
    labels, predictions, gains, scores = lists_of(seed)
    result = rankmill.evaluate(labels, predictions, ["auc", "pair_accuracy"])
    tied = rankmill.evaluate(labels, predictions, "auc", semantics={"order": "expected"})
    for place, q in enumerate(result.per_query["query"].to_pylist()):
        right = [gain > 0 for gain in gains[q]]
        descending = -np.arange(len(right))
        wanted = sklearn.metrics.roc_auc_score(right, descending)
        assert result.per_query["auc"][place].as_py() == pytest.approx(wanted, rel=1e-12)
        wanted = sklearn.metrics.roc_auc_score(right, scores[q])
        assert tied.per_query["auc"][place].as_py() == pytest.approx(wanted, rel=1e-12)
        judged = [(gain, rank) for rank, gain in enumerate(gains[q]) if gain >= 0]
        d = scipy.stats.somersd(*zip(*[(gain, -rank) for gain, rank in judged], strict=True))
        wanted = (1 + d.statistic) / 2
        assert result.per_query["pair_accuracy"][place].as_py() == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_label_ranking_of_sklearn(seed: int) -> None:
    """Every item has a score, many of them equal ones."""
    draw = np.random.default_rng(seed)
    right = draw.random((30, 12)) < 0.3
    right[:, 0] |= ~right.any(axis=1)
    scores = draw.integers(0, 6, right.shape) / 4
    labels = pa.table(
        {"query": range(30), "items": [np.flatnonzero(one).tolist() for one in right]}
    )
    predictions = pa.table(
        {"query": range(30), "items": [list(range(12))] * 30, "score": scores.tolist()}
    )
    result = rankmill.evaluate(labels, predictions, "lrap", semantics="sklearn")
    wanted = sklearn.metrics.label_ranking_average_precision_score(right, scores)
    assert result["lrap"] == pytest.approx(wanted, rel=1e-12)
    singly = [
        sklearn.metrics.label_ranking_average_precision_score(one, score)
        for one, score in zip(right[:, None], scores[:, None], strict=True)
    ]
    assert result.per_query["lrap"].to_pylist() == pytest.approx(singly, rel=1e-12)


@pytest.mark.small
def test_by_hand() -> None:
    """Gains 3, 0, 1 of at most 3: stop with 7/8, 0 and 1/8. Two labels, and a third not found."""
    labels = pa.table({"query": [1], "items": [["a", "c", "z"]], "gain": [[3.0, 1.0, 1.0]]})
    predictions = pa.table({"query": [1], "items": [["a", "b", "c"]]})
    wanted = {
        "err(max=3)@2": 7 / 8,
        "err(max=3)": 7 / 8 + 1 / 8 * 1 / 8 / 3,
        "nerr(max=3)@1": 1.0,
        "q_measure": ((1 + 3) / (1 + 3) + (2 + 4) / (3 + 5)) / 3,
        "bpm(max=4,t=0.9)@3": 1 / 3,
        "first_rank": 1.0,
        "mean_rank": (1 + 3 + 4) / 3,
        "rbp_residual(p=0.5)": 1 - 1 / 2 - 1 / 8,
        "unjudged@3": 1 / 3,
        "utility(a=2,b=-1,c=-3)": 2 * 2 - 1 - 3,
        "set_f": 2 / 3,
    }
    result = rankmill.evaluate(labels, predictions, list(wanted), semantics=SKIP)
    assert [*result.metrics.values()] == pytest.approx([*wanted.values()], rel=1e-12)
    state = rankmill.parts.evaluate_part(labels, predictions, "utility(c=-9)", semantics=SKIP)
    assert rankmill.parts.State.from_row(state.to_row()).result()["utility(c=-9)"] == -8


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "semantics", "wanted"),
    [
        ("relstring", {}, ["relstring", "is a text", "explain"]),
        ("num_q", {}, ["num_q", "queries"]),
        ("iprec", {}, ["iprec needs recall", "iprec@0.5"]),
        ("iprec@1.5", {}, ["recall", "'1.5'", "from 0 to 1"]),
        ("iprec(recall=0.1)@0.1", {}, ["recall twice"]),
        ("lrap", {}, ["lrap", "share the last of their ranks", "order=expected"]),
        ("G", {"order": "worst"}, ["G", "no known worst order"]),
        ("err", {"order": "expected"}, ["err", "no closed form"]),
        ("auc@3", {"order": "expected"}, ["auc@3", "within 3", "leave out"]),
    ],
)
def test_refused(text: str, semantics: dict[str, str], wanted: list[str]) -> None:
    table = pa.table({"query": [1], "items": [["a"]], "score": [[1.0]]})
    with pytest.raises(UsageError) as caught:
        rankmill.evaluate(table.drop_columns("score"), table, text, semantics=semantics)
    tells(caught.value, wanted)


@pytest.mark.small
@pytest.mark.parametrize(
    ("text", "semantics", "wanted"),
    [
        ("mean_rank", {}, ["query 2", "labels but no predictions", "unpredicted="]),
        ("unjudged@5", {"no_relevant": "zero"}, ["query 3", "no label", "no_relevant="]),
        ("first_rank", {"unlabelled": "one"}, ["query 4", "not among the labels", "leave out"]),
    ],
)
def test_what_would_score_0_is_refused(
    text: str, semantics: dict[str, str], wanted: list[str]
) -> None:
    """Only where such a query is there, by the name of the metric."""
    labels = {1: ["a"], 2: ["b"], 3: [], 4: ["c"]}
    every = {query: ["a", "x"] for query in (1, 2, 3)}
    tables = [
        pa.table({"query": list(side), "items": pa.array(side.values(), pa.list_(pa.string()))})
        for side in (labels, every | {4: ["y"]})
    ]
    last = {"unlabelled": tables[0].slice(0, 3)}
    metrics = ["map", text]
    assert rankmill.evaluate(*tables, metrics)[text] > 0
    field = next(iter(semantics), "unpredicted")
    sides = [last.get(field, tables[0]), tables[1]]
    if field == "unpredicted":
        sides[1] = pa.concat_tables([tables[1].slice(0, 1), tables[1].slice(2)])
    for run in ({"p": sides[1]}, {"p": sides[1], "q": tables[1]}):
        with pytest.raises(InputError) as caught:
            rankmill.evaluate_runs(sides[0], run, metrics, semantics=semantics)
        tells(caught.value, [text, *wanted])
    skipped = rankmill.evaluate(*sides, metrics, semantics={field: "skip"})
    assert skipped[text] > 0


@pytest.mark.small
def test_all_names_of_trec_eval() -> None:
    """What it is asked for and what it prints parses, or is refused by name with a reason."""
    measures = pytrec_eval.supported_measures
    printed = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, measures).evaluate({"q": {"a": 1.0}})
    refused = {}
    for name in {*measures, *printed["q"]}:
        try:
            parse(name)
        except UsageError as error:
            refused[name] = str(error)
    told = [
        f"{name} needs " in why or f"{name} is not a metric" in why for name, why in refused.items()
    ]
    assert all(told), refused
    assert refused.keys() & printed["q"].keys() == {"num_q", "relstring", "runid"}
    assert len(printed["q"]) > 90


@pytest.mark.parametrize("text", ["iprec_avg", "iprec@0.1"])
def test_walks_over_levels_of_recall_end_at_the_value(text: str) -> None:
    table = pa.table({"query": [1], "items": [["a", "b", "c"]]})
    run = pa.table({"query": [1], "items": [["a", "x", "b"]]})
    walk = rankmill.explain(table, run, text, 1)
    assert (
        walk.value == walk.total / (walk.divisor or 1) == rankmill.evaluate(table, run, text)[text]
    )


@pytest.mark.small
def test_the_page_of_metrics_is_that_of_the_registry(run: Any, update: bool) -> None:
    """Its end is what `rankmill metrics --format markdown` prints, but for sources; --update."""
    path = Path(rankmill.__file__).parent / "docs" / "metrics.md"
    head, line, end = path.read_text(encoding="utf-8").partition("| metric | definition | range")
    listed = run("metrics", "--format", "markdown")[1].partition("\n\n")[0].splitlines()
    now = "".join(f"{one.rsplit(' | ', 1)[0]} |\n" for one in listed)
    if update:
        path.write_text(head + now, encoding="utf-8")
    elif line + end != now:
        pytest.fail("docs/metrics.md is not current: pytest tests/peers/test_retrieval.py --update")


@pytest.mark.small
def test_names_elsewhere_are_names_here() -> None:
    """Of trec_eval, ir_measures, ranx and RecTools, but where parameters are written otherwise."""
    written_otherwise = {"rbp.p", "F1Beta(k)", "CoveredUsers"}
    for metric, there in names_elsewhere().items():
        for library in ("trec_eval", "ir_measures", "ranx", "rectools"):
            for name in filter(None, re.split(", (?![^(]*[)])", there[library])):
                if name in written_otherwise or "=" in name.replace("p=p", ""):
                    continue
                name = re.sub(r"\bk\b|_k$", lambda found: found[0].replace("k", "5"), name)
                name = re.sub(r"([@_])x$", r"\g<1>0.5", name).replace("p=p", "p=0.5")
                name = re.sub(r"\(5\)$", "@5", name)
                assert parse(name).name == metric, name
