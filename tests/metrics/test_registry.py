"""Names of metrics: spellings, parameters, and what is refused; parameters against trec_eval."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
from conftest import tells

import rankmill
from random_runs import long_table, random_run
from rankmill import InputError, UsageError
from rankmill.metrics.base import REL, Metric, MetricSpec, Parameter
from rankmill.metrics.quantities import QUANTITIES, kernel_of
from rankmill.metrics.registry import REGISTRY, examples, parse, parse_all
from rankmill.metrics.texts import spellings
from rankmill.semantics.metric_names import canonical

LABELS = pa.table({"query": [1], "items": [["a", "b", "c", "d"]], "gain": [[2.0, 0.0, 1.0, 0.0]]})
PREDICTIONS = pa.table({"query": [1], "items": [["b", "x", "a", "d", "c"]]})


@pytest.mark.parametrize(
    ("text", "name", "k"),
    [
        ("MAP", "map", None),
        ("AP@5", "map", 5),
        ("mrr", "first_hit", None),
        ("RR@3", "first_hit", 3),
        ("recip_rank", "first_hit", None),
        ("Reciprocal_Rank@7", "first_hit", 7),
        ("P@5", "precision", 5),
        ("p@5", "precision", 5),
        ("R@100", "recall", 100),
        ("nDCG@10", "ndcg", 10),
        ("hit_rate@3", "hit", 3),
        ("Success@1", "hit", 1),
        ("Rprec", "rprec", None),
        ("map_cut_10", "map", 10),
        ("ndcg_cut_10", "ndcg", 10),
        ("P_10", "precision", 10),
        ("recall_100", "recall", 100),
        ("success_5", "hit", 5),
        (" map @ 12 ", "map", 12),
    ],
)
def test_names_of_the_field(text: str, name: str, k: int | None) -> None:
    metric = parse(text)
    assert (metric.name, metric.k) == (name, k)
    assert metric.text == text.replace(" ", "")
    assert parse(metric.text) == metric


@pytest.mark.parametrize(
    ("text", "canonical", "given"),
    [
        ("rbp", "rbp", {}),
        ("rbp(p=0.8)", "rbp(p=0.8)", {"p": 0.8}),
        ("RBP( P = .50 )@10", "RBP(p=0.5)@10", {"p": 0.5}),
        ("rbp(rel=2.0,p=0.25)", "rbp(p=0.25,rel=2)", {"p": 0.25, "rel": 2}),
        ("P(rel=2)@10", "P(rel=2)@10", {"rel": 2}),
        ("P_10(rel=1.5)", "P_10(rel=1.5)", {"rel": 1.5}),
        ("map(rel=1e-3)@12", "map(rel=0.001)@12", {"rel": 0.001}),
    ],
)
def test_parameters(text: str, canonical: str, given: dict[str, float]) -> None:
    metric = parse(text)
    assert metric.text == canonical
    assert dict(metric.given) == given
    assert parse(canonical) == metric


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("map(p=2)", ["map(p=2)", "p=2", "rel"]),
        ("map(rel=two)", ["map(rel=two)", "'two'", "a number above 0", "least gain"]),
        ("map(rel=0)", ["'0'", "above 0"]),
        ("map(rel=inf)", ["'inf'", "above 0"]),
        ("map(rel=nan)", ["'nan'", "above 0"]),
        ("map(rel=)", ["rel", "''"]),
        ("rbp(p=1)", ["'1'", "above 0 and below 1"]),
        ("rbp(0.8)", ["'0.8'", "p=", "above 0 and below 1", "rel"]),
        ("dcg(rel=1)@3", ["rel=1", "dcg has none"]),
        ("gap(rel=1)", ["rel=1", "gap has none"]),
        ("map(rel=1,rel=2)", ["rel", "twice"]),
        ("map()", ["map()", "rel"]),
        ("map(rel=2", ["map(rel=2", "map(rel=2)@12"]),
        ("map)@2", ["map)@2"]),
        ("map(rel=2)(rel=2)", ["map(rel=2)(rel=2)"]),
        ("P_10@3", ["two cutoffs", "10", "3"]),
        ("mapp(rel=2)@3", ["did you mean map(rel=2)@3"]),
        ("precision_10", ["precision_10", "did you mean precision@10?"]),
        ("average_precision@10", ["did you mean map@10?"]),
        ("mean reciprocal rank", ["did you mean mrr?"]),
        ("global-average-precision", ["did you mean gap?"]),
        ("judged", ["judged needs a cutoff"]),
        ("bpref@5", ["bpref takes no cutoff"]),
        ("map,,gap", ["map,,gap", "comma"]),
        ("map,", ["map,", "comma"]),
    ],
)
def test_refused(text: str, wanted: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parse_all(text)
    tells(caught.value, wanted)


# What other tools print, in their order of cutoff and name, and with their words before it.
ELSEWHERE = {
    "map@12": "map_at_12 MAP_at_12 map_12 map-12 map12 mapAt12 cosine_map@12 eval_map_at_12",
    "map@10": "average_precision_at_10 meanAveragePrecisionAtK mean_avg_precision@10",
    "recall@20": "recall_at_20 recall20 recall.20 val_recall_20 recal_at_20",
    "precision@10": "precisionAtK precision-at-k precision_k",
    "p@10": "p10 p_at_10",
    "ndcg@10": "nDCG-10 ndcg10 ndcg_at_10 normalized_discounted_cumulative_gain_at_10",
    "ndcg(gain=exp)@5": "ndcg_5(gain=exp) nDCG_at_5(gain=exp)",
    "mrr@10": "mrr_10 MRR_at_10 mean_reciprocal_rank_mrr_at_10",
    "hit@5": "hr_5 hit_ratio@5 hits_at_5 acc@5 top_5_accuracy top_k_accuracy@5 topk_accuracy@5 "
    "top5_acc top_5_categorical_accuracy cosine_accuracy@5",
    "hit@10": "top_k_accuracy",
    "f1@10": "f1_at_10 f1_score_at_10",
    "gap": "microAP micro_ap micro-AP global_ap",
    "bpref": "bpref_10",
    "iprec@0.5": "iprec_at_0.5",
    "graded_rbp": "grade_rbp",
}


@pytest.mark.parametrize("meant", ELSEWHERE)
def test_names_that_other_tools_print(meant: str) -> None:
    parse(meant)
    for name in ELSEWHERE[meant].split():
        with pytest.raises(UsageError) as caught:
            parse(name)
        assert f"did you mean {meant}?" in str(caught.value), name


def test_hits_mean_a_number_or_a_share() -> None:
    with pytest.raises(UsageError, match=r"hits is not a metric here: .* num_rel_ret or hit@10"):
        parse("hits@10")


def test_arguments_are_of_the_kind_declared() -> None:
    """Numba compiles a kernel anew for an integer."""
    spec = MetricSpec("some", "k", "", "", "", parameters=(Parameter("half", "", 5), REL))
    assert [type(one) for one in Metric(spec, None, "some").arguments] == [float]
    assert Metric(spec, None, "some(half=2)", (("half", 2), ("rel", 3))).arguments == [2.0]


def test_a_whole_parameter() -> None:
    depth = Parameter("depth", "how far", low=0, kind=int)
    assert depth.read("3", "some(depth=3)") == 3
    with pytest.raises(UsageError, match=r"depth of 'some' is '3\.0'; expected an integer above 0"):
        depth.read("3.0", "some")


def test_several_in_a_text() -> None:
    assert [one.text for one in parse_all("map@3,mrr, gap")] == ["map@3", "mrr", "gap"]
    assert [one.text for one in parse_all(["rbp(p=0.5,rel=2),P@3", "map"])] == [
        "rbp(p=0.5,rel=2)",
        "P@3",
        "map",
    ]
    assert [one.text for one in parse_all("map,MAP,map")] == ["map", "MAP"]


def test_results_carry_what_was_asked_for_and_are_found_by_every_name() -> None:
    asked = "MAP@12,mrr@5,P_3,rbp,map(rel=2)@12,first_hit@5"
    result = rankmill.evaluate(LABELS, PREDICTIONS, asked)
    assert list(result.metrics) == asked.split(",")
    assert result.per_query.column_names[1:] == asked.split(",")
    for names in (
        ["MAP@12", "map@12", "ap@12", "map_cut_12", " Map @12"],
        ["mrr@5", "first_hit@5", "RR@5", "Recip_Rank@5"],
        ["P_3", "p@3", "precision@3", "Precision@3"],
        ["rbp", "RBP(p=0.8)", "rbp(p=.80)"],
        ["map(rel=2)@12", "MAP( rel = 2.0 )@12", "map_cut_12(rel=2)"],
    ):
        assert len({result[name] for name in names}) == 1
    assert result["MAP@12"] != result["map(rel=2)@12"]
    with pytest.raises(KeyError, match=r"no metric 'map\(rel=3\)@12' in this result"):
        result["map(rel=3)@12"]


def test_canonical_names_are_their_own() -> None:
    for name in ("map", "map@12", "rbp(p=0.5,rel=2)@3", "map(rel=x)", "anything(at,all"):
        assert canonical(name) == name
    found = spellings(parse_all("rbp(rel=2,p=0.8)@3"))
    assert found["rbp(p=0.8,rel=2)@3"] == found["rbp(rel=2)@3"] == "rbp(p=0.8,rel=2)@3"
    found = spellings(parse_all("gm_map,num_ret:sum", 2), 2)
    assert found["gm_map"] == found["map(rel=2):gm"] == "gm_map(rel=2)"
    assert found["numret"] == "num_ret:sum"


def test_the_rows_are_whole() -> None:
    """What a row names is there, and nothing is left to a default that is wrong."""
    from rankmill.kernels import expectation

    names: set[str] = set()
    for spec in REGISTRY.values():
        assert isinstance(spec, MetricSpec)
        for name in (spec.name, *spec.aliases):
            assert name.lower() not in names
            names.add(name.lower())
        if spec.kernel:
            assert spec.kernel in QUANTITIES or callable(kernel_of(spec.kernel))
            twin = spec.expected is None or hasattr(expectation, spec.expected)
            assert twin or spec.expected == spec.kernel
            told = spec.divisor is not None and spec.chosen is None
            assert not told or spec.divisor.meaning.count("{}") == len(spec.fields)


def test_a_metric_without_a_closed_form_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from rankmill.metrics import registry

    closed = replace(REGISTRY["map"], expected=None)
    monkeypatch.setitem(registry._BY_NAME, "map", closed)
    with pytest.raises(UsageError, match="map has no closed form of its expected value"):
        rankmill.evaluate(LABELS, PREDICTIONS, "map", semantics={"order": "expected"})


# ------------------------------------------------------------------ judged items


@pytest.mark.small
def test_judged_and_bpref_by_hand() -> None:
    """R is 2, N is 2: one of two stands above "a", both above "c"."""
    metrics = ["judged@1", "judged@2", "judged@9", "bpref", "bpref(rel=2)", "map"]
    result = rankmill.evaluate(LABELS, PREDICTIONS, metrics)
    assert list(result.metrics.values())[:-1] == [1, 1 / 2, 4 / 5, 1 / 4, 0]
    assert result.audit["nonpositive_gains"] == 2
    alone = rankmill.evaluate(LABELS, PREDICTIONS, "map")
    assert alone.metrics["map"] == result.metrics["map"]
    assert alone.audit == rankmill.evaluate(LABELS, PREDICTIONS, ["map", "bpref"]).audit


@pytest.mark.small
def test_a_query_judged_without_a_label_has_no_value() -> None:
    labels = pa.table({"query": [1, 2], "items": [["a"], ["b"]], "gain": [[1.0], [0.0]]})
    predictions = pa.table({"query": [1, 2], "items": [["x", "a"], ["b"]]})
    result = rankmill.evaluate(labels, predictions, ["judged@2", "bpref"])
    assert (result.queries, list(result.metrics.values())) == (1, [0.5, 1.0])
    zero = rankmill.evaluate(
        labels, predictions, ["judged@2", "bpref"], semantics={"no_relevant": "zero"}
    )
    assert (zero.queries, list(zero.metrics.values())) == (2, [0.25, 0.5])


@pytest.mark.small
def test_without_gains_all_judged_are_relevant() -> None:
    labels = LABELS.drop_columns("gain")
    result = rankmill.evaluate(
        labels, PREDICTIONS, ["bpref", "judged@3", "map(rel=2)", "bpref(rel=2)"]
    )
    assert list(result.metrics.values()) == [1.0, 2 / 3, 0.0, 0.0]


@pytest.mark.small
@pytest.mark.parametrize("gain_function", ["linear", "exp"])
def test_rel_is_in_units_of_the_gain_given(gain_function: str) -> None:
    """Also where 2**g - 1 of a gain is no whole number, or all gains are 1 that way."""
    for gain in (1e-5, 0.1, 0.7, 1.0, 1.5, 2.0, 3.0, 33.3, 300.0):
        labels = pa.table({"query": [1, 2], "items": [["a"], ["a"]], "gain": [[gain], [1.0]]})
        predictions = pa.table({"query": [1, 2], "items": [["a"], ["a"]]})
        for factor, found in ((1, 1.0), (0.99, 1.0), (1.01, 0.0), (1e3, 0.0)):
            metrics = [f"map(rel={gain * factor!r})", f"bpref(rel={gain * factor!r})"]
            result = rankmill.evaluate(
                labels,
                predictions,
                metrics,
                semantics=rankmill.Semantics(gain_function=gain_function),
            )
            for name in metrics:
                assert result.per_query[parse(name).text][0].as_py() == found


@pytest.mark.small
def test_judged_twice() -> None:
    """The larger gain counts; as an error, all that is judged is looked at, for any metric."""
    labels = pa.table({"query": [1], "items": [["a", "b", "b"]], "gain": [[1.0, 0.0, 0.0]]})
    predictions = pa.table({"query": [1], "items": [["b", "a"]]})
    assert rankmill.evaluate(labels, predictions, "bpref")["bpref"] == 0
    error = {"repeated_labels": "error"}
    for metric in ("map", "bpref"):
        with pytest.raises(InputError, match="has label 'b' a second time"):
            rankmill.evaluate(labels, predictions, metric, semantics=error)


# ------------------------------------------------------------------ trec_eval

LEVELS = {
    "map": "map",
    "first_hit": "recip_rank",
    "rprec": "Rprec",
    "bpref": "bpref",
    "precision@5": "P_5",
    "recall@5": "recall_5",
    "hit@5": "success_5",
    "map@5": "map_cut_5",
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("gain_function", ["linear", "exp"])
def test_relevance_levels_equal_trec_eval(seed: int, level: int, gain_function: str) -> None:
    qrels, run = random_run(seed)
    names = {}
    for name, there in LEVELS.items():
        head, at, k = name.partition("@")
        names[f"{head}(rel={level}){at}{k}"] = there
        if level == 1:
            names[name] = there
    evaluator = pytrec_eval.RelevanceEvaluator(
        qrels, {there.replace("_5", ".5") for there in names.values()}, relevance_level=level
    )
    expected = evaluator.evaluate(run)
    result = rankmill.evaluate(
        long_table(qrels, "gain"),
        long_table(run, "score"),
        list(names),
        semantics=rankmill.Semantics("trec_eval", gain_function=gain_function),
    )
    queries = result.per_query["qid"].to_pylist()
    assert queries == list(expected)
    for name, there in names.items():
        values = [expected[query][there] for query in queries]
        assert result.per_query[name].to_pylist() == pytest.approx(values, rel=1e-12, abs=1e-15)
        assert result[name] == pytest.approx(np.mean(values), rel=1e-12)
        assert level == 4 or 0 < result[name] < 1


def test_memory_threads_and_shape_change_no_bit() -> None:
    qrels, run = random_run(1)
    labels, predictions = long_table(qrels, "gain"), long_table(run, "score")
    metrics = "bpref,judged@5,bpref(rel=2),rbp(p=0.9),map(rel=2)"
    first = rankmill.evaluate(labels, predictions, metrics)
    mixed = np.random.default_rng(0).permutation(len(predictions))
    again = rankmill.evaluate(
        labels, predictions.take(np.sort(mixed)), metrics, threads=2, memory=1 << 10
    )
    assert again.metrics == first.metrics
    parts = [
        rankmill.parts.evaluate_part(
            *(
                table.filter(pa.array([hash_of(q) == part for q in table["qid"].to_pylist()]))
                for table in (labels, predictions)
            ),
            metrics,
        )
        for part in (0, 1)
    ]
    state = rankmill.parts.State.from_row(parts[0].merge(parts[1]).to_row())
    assert state.result().metrics == first.metrics


def hash_of(query: str) -> int:
    return int(query[1:]) % 2


@pytest.mark.parametrize("name", ["GiniIndex@5", "CatalogCoverage@5", "UserCoverage@5"])
def test_names_that_mean_another_number_elsewhere(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name[:-2]} is not a metric here: in [ER]"):
        parse(name)


@pytest.mark.small
@pytest.mark.parametrize("name", examples())
def test_a_metric_says_if_it_is_not_0_without_a_hit(name: str) -> None:
    """Queries without predictions are counted as 0, and never scored, unless its row says so."""
    spec = parse(name).spec
    if not spec.kernel or spec.counts_empty or spec.home or spec.columns:
        return
    if spec.gains == "subtopics" or spec.name == "gauc":  # which is a mean over lists with a hit
        return
    labels = rankmill.Labels({1: {1: 1.0, 2: 2.0, 9: 0.0}, 2: {3: 1.0}})
    found = rankmill.evaluate(labels, {1: {8: 0.5}, 2: {9: 0.5}}, name)[name]
    assert found == 0, f"add counts_empty=True to the row of {spec.name}, {found} without a hit"
