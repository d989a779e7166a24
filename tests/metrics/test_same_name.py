"""A name that another evaluator has means the same here, or is refused with what to type."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from typing import Any

import ir_measures
import pyarrow as pa
import pytest
from conftest import tells

import rankmill
from flat import flat
from rankmill import UsageError
from rankmill.metrics.defaults import DEFAULT_METRICS
from rankmill.metrics.elsewhere import names_elsewhere
from rankmill.metrics.libraries import told_under
from rankmill.metrics.registry import parse, parse_under
from rankmill.semantics.presets import PRESETS
from strategies import examples

# Measures of ir_measures that are taken as they are; those of subtopics stand apart.
COMPUTED = [
    *("AP", "AP@5", "AP(rel=2)@5", "MAP", "MAP@5", "Bpref", "BPref", "Bpref(rel=2)", "infAP"),
    *("infAP(rel=2)", "IPrec@0.5", "IPrec(rel=2)@0.1", "Judged@5", "nDCG", "nDCG@5", "NDCG@5"),
    *("NumRet", "NumRel", "NumRelRet", "P@5", "P(rel=2)@5", "Precision@5", "R@5", "R(rel=2)@5"),
    *("Recall@5", "RBP(rel=1)", "RBP(rel=2,p=0.5)", "Rprec", "RPrec", "Rprec(rel=2)", "RR", "MRR"),
    *("RR@5", "RR(rel=2)@5", "MRR@5", "SetP", "SetP(rel=2)", "SetRelP", "SetR", "SetR(rel=2)"),
    *("SetF", "SetF(beta=1.0)", "SetF(rel=2)", "SetAP", "SetAP(rel=2)", "Success@5"),
    *("Success(rel=2)@5", "Compat", "Compat(p=0.8)"),
]
OF_SUBTOPICS = [
    *("alpha_nDCG@5", "α_nDCG@5", "alpha_nDCG(alpha=0.2)@5", "ERR_IA@5", "StRecall@5"),
    *("alpha_DCG@5", "α_DCG@5", "alpha_DCG(alpha=0.2)@5", "nERR_IA@5", "NRBP", "nNRBP", "AP_IA"),
    *("NRBP(alpha=0.2,beta=0.8)", "nNRBP(beta=0.9)", "MAP_IA", "P_IA@5"),
]
# gdeval has these, which is in Perl and prints five digits: benchmarks/libraries.py.
OF_GDEVAL = ["ERR@5"]
# What is refused -> what the message names. Where that has the same value, it stands in TYPED.
REFUSED = {
    "Accuracy": ["ir_measures", "RecTools", "type auc"],
    "Accuracy(rel=2)@5": ["auc@10"],
    **{f"NERR{number}(max_rel=3)@5": ["type max=3"] for number in (8, 9)},
    **{f"NERR{number}(max_rel=3)": ["type max=3"] for number in (10, 11)},
    "SDCG(max_rel=3)@5": ["type max=3"],
    "NumQ": ["queries"],
    "Judged": ["needs a cutoff"],
    "nDCG(gains={1: 3, 2:7, 3:9})@5": ["type nDCG@5", "--gain-function 1=3,2=7,3=9"],
    "infAP(judged_only=True)": ["type infAP", "--judged-only", "judged_only=True"],
    "SetP(relative=True)": ["type set_relative_p"],
    "BPM(max_rel=3)@5": ["type max=3"],
    "INST(T=2.0,max_rel=3)": ["type max=3"],
    "INSQ(min_rel=0,max_rel=3)": ["leave it out"],
    "AP(cutoff=5)": ["type AP@5"],
    "NumRet(rel=2)": ["type NumRelRet(rel=2)"],
    "SetF(beta=0.5)": ["squared", "type set_f(beta=0.7071067811865476)"],
    "SetF(beta=4.0,rel=2)": ["squared", "type set_f(beta=2,rel=2)"],
    # Of libraries without such a name here, or without a preset.
    "ListGini@3": ["LensKit", "gini(of=N)@10"],
    "Surprisal@3": ["RePlay", "log2", "MeanInvUserFreq@10"],
    "ShannonEntropy@3": ["RecBole", "nats", "Elliot", "type entropy@10"],
    "GiniIndex@3": ["RecBole", "gini(of=N)@10", "Elliot", "1 - gini@10"],
}
# Refused -> typed in its place, with these options.
TYPED: dict[str, tuple[str, dict[str, Any]]] = {
    "nDCG(gains={1: 3, 2:7, 3:9})@5": ("nDCG@5", {"gain_function": "1=3,2=7,3=9"}),
    "SetP(relative=True)": ("set_relative_p", {}),
    "BPM(max_rel=3)@5": ("BPM(max=3)@5", {}),
    "INST(T=2.0,max_rel=3)": ("INST(T=2.0,max=3)", {}),
    "INSQ(min_rel=0,max_rel=3)": ("INSQ(max=3)", {}),
    **{f"NERR{number}(max_rel=3)@5": (f"NERR{number}(max=3)@5", {}) for number in (8, 9)},
    **{f"NERR{number}(max_rel=3)": (f"NERR{number}(max=3)", {}) for number in (10, 11)},
    "SDCG(max_rel=3)@5": ("SDCG(max=3)@5", {}),
    "NumRet(rel=2)": ("NumRelRet(rel=2)", {}),
    "SetF(beta=0.5)": ("set_f(beta=0.7071067811865476)", {}),
    "SetF(beta=4.0,rel=2)": ("set_f(beta=2,rel=2)", {}),
}
# It counts as trec_eval does, and a query without predictions as 0. The preset by name refuses RBP.
RULES = replace(PRESETS["trec_eval"].semantics, unpredicted="zero")

Rows = list[tuple[Any, ...]]


def dump(seed: int, subtopics: bool = False) -> tuple[Rows, Rows]:
    """Rows of qrels and of a run without ties; one query has no labels, one may have no list."""
    draw, qrels, run = random.Random(seed), [], []
    items = [f"d{number}" for number in range(30)]
    for query in (f"q{number}" for number in range(8)):
        first, *judged = draw.sample(items, draw.randint(3, 15))
        for topic in "abc" if subtopics else "0":
            gains = {item: draw.choice([0, 1] if subtopics else [0, 0, 1, 2, 3]) for item in judged}
            qrels += [(query, item, gain, topic) for item, gain in ({first: 3} | gains).items()]
        if query != "q7" or seed % 2 == 0:
            listed = draw.sample(items, draw.randint(4, 20))
            # Above 0: Compat takes unlisted labels for items of score 0.
            run += [(query, item, float(99 - rank)) for rank, item in enumerate(listed)]
    return qrels, [*run, ("unlabelled", "d1", 1.0)]


def both_say(
    seed: int, there: str, here: str, options: dict[str, Any], subtopics: bool = False
) -> tuple[float, float]:
    qrels, run = dump(seed, subtopics)
    measure = ir_measures.parse_measure(there)
    expected = ir_measures.calc_aggregate(
        [measure],
        [ir_measures.Qrel(*row) for row in qrels],
        [ir_measures.ScoredDoc(*r) for r in run],
    )
    names = ("query", "item", "gain", "topic")
    labels = pa.table(dict(zip(names, zip(*qrels, strict=True), strict=True)))
    predictions = pa.table(
        dict(zip(("query", "item", "score"), zip(*run, strict=True), strict=True))
    )
    if subtopics:
        options = options | {"subtopic": "topic"}
    else:
        labels = labels.drop_columns("topic")
    asked = {"query": "query", "semantics": RULES} | options
    result = flat(rankmill.evaluate, labels, predictions, here, **asked)
    (value,) = result.metrics.values()
    return value, expected[measure]


@pytest.mark.parametrize("name", [*COMPUTED, *OF_SUBTOPICS])
def test_what_is_taken_from_ir_measures_is_what_it_computes(name: str) -> None:
    # num_rel is refused where a query has no predictions, which every other seed has.
    for seed in range(0, examples(20), 2 if name == "NumRel" else 1):
        found, expected = both_say(seed, name, name, {}, name in OF_SUBTOPICS)
        assert math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12), seed


@pytest.mark.small
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_another_thing_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(name)
    tells(caught.value, [name.partition("(")[0].partition("@")[0], *REFUSED[name]])
    assert "unknown" not in str(caught.value)


@pytest.mark.parametrize("name", TYPED)
def test_what_a_refusal_names_has_the_value(name: str) -> None:
    here, options = TYPED[name]
    for seed in range(4):
        found, expected = both_say(seed, name, here, options)
        assert math.isclose(found, expected, rel_tol=1e-9), seed


@pytest.mark.small
def test_all_measures_of_ir_measures_are_told_of() -> None:
    every = [*COMPUTED, *OF_SUBTOPICS, *OF_GDEVAL, *REFUSED, "RBP"]
    named = {name.partition("(")[0].partition("@")[0] for name in every}
    assert ir_measures.measures.registry.keys() <= named
    for name in (*COMPUTED, *OF_SUBTOPICS, *OF_GDEVAL):
        parse(name)


@pytest.mark.small
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("map_at_k", "type map@k for that of recommenders;"),
        ("RecipRank@5", "type first_hit@k for that of lenskit;"),
        ("meanAveragePrecisionAt(5)", "type map@k for that of spark;"),
        ("ndcg_at_k(k=5)", "type ndcg@k for that of recommenders and implicit;"),
        ("average_precision_score", "type gap for that of sklearn;"),
        ("MAP(10)", "type MAP@10"),
        ("NDCG(k=10)", "type NDCG@10"),
    ],
)
def test_what_a_metric_of_a_library_is_here(name: str, wanted: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(name)
    tells(caught.value, [name, wanted])


# ------------------------------------------------------------------ under a preset

# The names of a library's metrics, but for those of trec_eval, and without "RetrievalMAP" and the
# like, which no name here resembles.
NAMES_THERE = {
    "rectools": "PAP PartialAUC CatalogCoverage MCC Accuracy F1Beta HitRate Precision Recall "
    "IntraListDiversity CoveredUsers SufficientReco UnrepeatedReco Intersection MeanInvUserFreq "
    "AvgRecPopularity MAP MRR NDCG Serendipity",
    "replay": "CategoricalDiversity Coverage HitRate MAP MRR NDCG Novelty Precision Recall RocAuc "
    "Surprisal Unexpectedness",
    "recommenders": "rmse mae rsquared exp_var auc logloss diversity user_diversity novelty "
    "historical_item_novelty serendipity user_serendipity catalog_coverage distributional_coverage "
    "map_at_k ndcg_at_k precision_at_k recall_at_k r_precision_at_k",
    "lenskit": "Hit Precision Recall RecipRank NDCG DCG RBP MeanPopRank AveragePrecision ListGini "
    "ExposureGini ILS entropy rank_biased_entropy RMSE MAE LeastItemPromoted",
    "implicit": "precision map ndcg auc",
    "torchmetrics": "precision recall map mrr ndcg hit_rate r-precision fall_out auroc",
    "ranx": "hits hit_rate precision recall f1 r-precision bpref rbp.95 mrr map dcg dcg_burges "
    "ndcg ndcg_burges",
    "spark": "meanAveragePrecision precisionAt recallAt ndcgAt meanAveragePrecisionAt",
    "sklearn": "average_precision_score ndcg_score dcg_score roc_auc_score brier_score_loss "
    "label_ranking_average_precision_score coverage_error accuracy_score",
    "ml_metrics": "apk mapk",
    "google_landmarks_v2": "MeanAveragePrecision MeanPrecisions GlobalAveragePrecision",
}
# The keys of what its ranking_metrics_at_k returns.
ALIKE = {("implicit", "map"), ("implicit", "ndcg")}
# Those of its functions, as retrieval_reciprocal_rank.
ALIKE |= {("torchmetrics", name) for name in ("precision", "map", "mrr", "hit_rate")}
UNDER = {
    ("replay", "Novelty@3"): ["RePlay", "did not have in training", "MeanInvUserFreq@10"],
    ("recommenders", "auc"): ["one list", "without the preset"],
    ("recommenders", "novelty@3"): ["share of interactions", "MeanInvUserFreq@10"],
    ("recommenders", "serendipity@3"): ["unlike", "epd_cosine@10"],
    ("implicit", "AUC@3"): ["one tie", "without the preset"],
    ("lenskit", "entropy@3"): ["categories", "without the preset"],
    ("lenskit", "rbp(rel=1)@3"): ["0.85", "rbp(p=0.85)"],
    ("lenskit", "ndcg@3"): ["first two ranks", "ndcg_cut_10"],
    ("lenskit", "NDCG"): ["first two ranks", "ndcg_cut_10"],
    ("lenskit", "dcg@3"): ["first two ranks", "without the preset"],
    ("implicit", "precision@3"): ["one ratio", "P@10", "relative_p@10"],
    ("torchmetrics", "recall@3"): ["among the predictions", "R@10"],
    ("torchmetrics", "ndcg@3"): ["among the predictions", "ndcg_cut_10"],
    ("torchmetrics", "rprec"): ["among the predictions", "Rprec_mult_1"],
    ("torchmetrics", "r-precision"): ["among the predictions", "Rprec_mult_1"],
    ("recommenders", "map"): ["min(k, R)", "map@10", "ap_divisor"],
    ("recommenders", "ndcg@3"): ["without predictions as 0", "unpredicted"],
    ("ranx", "rbp(p=0.95)@3"): ["multiplies by the gain", "rbp(rel=1,p=0.95)"],
    ("rectools", "accuracy@3"): ["RecTools", "auc"],
}
LABELS = pa.table({"query": [1], "items": [["a"]]})
LISTS = pa.table({"query": [1], "items": [["b", "a"]]})


@pytest.mark.small
@pytest.mark.parametrize(("preset", "name"), UNDER)
def test_under_a_preset_a_name_is_not_that_of_another_metric(preset: str, name: str) -> None:
    """Neither with one choice changed, nor from the command line."""
    for semantics in (preset, {"preset": preset, "unlabelled": "skip"}):
        with pytest.raises(UsageError) as caught:
            rankmill.evaluate(
                LABELS, LISTS, name, semantics=semantics, catalogue=rankmill.Catalogue(train=LABELS)
            )
        tells(caught.value, [name.partition("@")[0], *UNDER[preset, name]])


@pytest.mark.small
@pytest.mark.parametrize("preset", NAMES_THERE)
def test_names_of_a_library_are_its_metrics_or_refused(preset: str) -> None:
    """What is taken is the metric that a table says has this name there."""
    for name in NAMES_THERE[preset].split():
        try:
            (metric,), _ = parse_under(f"{name}@3", preset)
        except UsageError:
            continue
        there = [
            one
            for here, one in PRESETS[preset].metrics.items()
            if here.partition("@")[0] == metric.name
        ]
        there += names_elsewhere().get(metric.name, {}).get(preset, "").split(", ")
        assert (preset, name) in ALIKE or name in [re.split("[(@]", one)[0] for one in there]


@pytest.mark.small
def test_a_name_that_says_which_is_taken_under_a_preset() -> None:
    rbp = rankmill.evaluate(LABELS, LISTS, "rbp(p=0.85)@3", semantics="lenskit")
    assert rbp["rbp(p=0.85)@3"] == pytest.approx(0.15 * 0.85)
    for name in ("MeanInvUserFreq@3", "miuf@3"):
        rankmill.evaluate(
            LABELS, LISTS, name, semantics="replay", catalogue=rankmill.Catalogue(train=LABELS)
        )
    chosen = PRESETS["replay"].semantics
    rankmill.evaluate(
        LABELS, LISTS, "novelty@3", semantics=chosen, catalogue=rankmill.Catalogue(train=LABELS)
    )


@pytest.mark.small
def test_what_a_refusal_under_a_preset_names_is_taken() -> None:
    """Each as another library has it, and with the number that it promises."""
    two = pa.table({"query": [1, 1, 2], "item": ["a", "z", "a"]})
    one = pa.table({"query": [1, 1], "item": ["b", "a"], "score": [2.0, 1.0]})
    zero = {"preset": "recommenders", "unpredicted": "zero"}
    former = {"preset": "recommenders", "ap_divisor": "labels"}
    for preset, name, wanted in [
        ("lenskit", "ndcg_cut_10", (1 / math.log2(3)) / (1 + 1 / math.log2(3)) / 2),
        ("implicit", "P@10", 0.05),
        ("implicit", "relative_p@10", 0.25),
        ("torchmetrics", "R@10", 0.5),
        ("torchmetrics", "ndcg_cut_10", (1 / math.log2(3)) / (1 + 1 / math.log2(3))),
        ("torchmetrics", "Rprec_mult_1", 0.5),
        ("recommenders", "map@1", 0.0),
        (former, "map@10", 0.25),
        (zero, "ndcg@10", (1 / math.log2(3)) / (1 + 1 / math.log2(3)) / 2),
        ("ranx", "rbp(rel=1,p=0.95)", 0.05 * 0.95 / 2),
    ]:
        result = rankmill.evaluate(
            rankmill.Labels(two, query="query", item="item"),
            rankmill.Predictions(one, query="query", item="item"),
            name,
            semantics=preset,
        )
        assert next(iter(result.metrics.values())) == pytest.approx(wanted), (preset, name)


@pytest.mark.small
@pytest.mark.parametrize(
    ("choice", "values"),
    [("zero", [0.5, 0.0]), ("one", [0.5, 1.0]), ("scored", [0.5, 1.0]), ("skip", [0.5])],
)
def test_fallout_under_torchmetrics_takes_what_is_said_of_queries_without_a_label(
    choice: str, values: list[float]
) -> None:
    """Of the misses of the first list, one is among the first two; all of the second are."""
    labels = rankmill.Labels({"q": {"a": 1}, "r": {"b": 0}})
    lists = {"q": ["x", "a", "y"], "r": ["b", "z"]}
    how = rankmill.Semantics("torchmetrics", no_relevant=choice)
    found = rankmill.evaluate(labels, lists, "fallout@2", semantics=how)
    assert found.per_query["fallout@2"].to_pylist() == values


@pytest.mark.small
@pytest.mark.parametrize("preset", [one for one in PRESETS if PRESETS[one].own_metric])
def test_a_competition_has_a_metric_of_its_own(preset: str) -> None:
    scored = {1: {"b": 0.5, "a": 0.25}}
    found = rankmill.evaluate(LABELS, scored, semantics=preset)
    assert list(found.metrics) == [PRESETS[preset].own_metric]
    typed = rankmill.evaluate(LABELS, scored, "map@10", semantics=preset)
    assert list(typed.metrics) == ["map@10"]


@pytest.mark.small
@pytest.mark.parametrize("preset", [one for one in PRESETS if not PRESETS[one].own_metric])
def test_of_metrics_that_nobody_typed_those_are_left_out(preset: str) -> None:
    result = rankmill.evaluate(LABELS, LISTS, semantics=preset)
    there = [one for one in DEFAULT_METRICS if not told_under(preset, parse(one))]
    assert "map@10" in there
    assert list(result.metrics) == there
    notes = [note for note in result.notes if "is left out: in " in note]
    assert [one.partition(" ")[0] for one in notes] == [
        one for one in DEFAULT_METRICS if one not in there
    ]
    if len(there) < len(DEFAULT_METRICS):
        with pytest.raises(UsageError, match=f"ndcg@10 under the preset {preset}"):
            rankmill.evaluate(LABELS, LISTS, "ndcg@10", semantics=preset)


@pytest.mark.small
def test_evaluators_are_compared_in_what_they_have_unless_they_are_named() -> None:
    compared = rankmill.explain_evaluators(LABELS, LISTS, "ndcg@3").semantics.keys()
    assert "spark" in compared
    assert "recommenders" not in compared
    named = rankmill.explain_evaluators(LABELS, LISTS, "ndcg@3", ["default", "lenskit"])
    assert "in LensKit the first two ranks have the same discount" in repr(named)


@pytest.mark.small
def test_the_command_line_refuses_too(run: Any, tmp_path: Any) -> None:
    paths = [tmp_path / "labels.csv", tmp_path / "predictions.csv"]
    for path in paths:
        path.write_text("query,item\n1,a\n", encoding="utf-8")
    asked = ["evaluate", *paths, "--preset", "implicit", "-m"]
    code, _, err = run(*asked, "auc", "--semantics", "unlabelled=skip")
    assert code == 2
    tells(err, ["auc under the preset implicit"])
    assert run(*asked, "map@3")[0] == 0


# ------------------------------------------------------------------ gini


@pytest.mark.parametrize("seed", range(5))
def test_gini_of_all_items_is_that_of_recbole_and_lenskit(seed: int) -> None:
    """RecBole 1.2.1: sum of (2 i - N - 1) count(i) of the items shown, ranked last, / all / N."""
    draw = random.Random(seed)
    catalogue, k = [f"i{number}" for number in range(30)], 4
    lists = {query: draw.sample(catalogue[:20], k) for query in range(12)}
    sides = [pa.table({"query": [*lists], "items": [*lists.values()]}) for _ in range(2)]
    items = pa.table({"item": catalogue})
    names = ["gini(of=N)@4", "gini(of=N-1)@4", "gini@4"]
    part = flat(rankmill.parts.evaluate_part, *sides, names, items=items)
    row = part.to_row()
    found = rankmill.parts.State.from_row(row).result()
    shown = [item for listed in lists.values() for item in listed]
    counts = sorted(shown.count(item) for item in set(shown))
    ranks = range(len(catalogue) - len(counts) + 1, len(catalogue) + 1)
    terms = ((2 * i - 31) * count for i, count in zip(ranks, counts, strict=True))
    whole = sum(terms) / len(shown)
    assert found["gini(of=N)@4"] == pytest.approx(whole / 30, rel=1e-12)
    assert found["gini(of=N-1)@4"] == found["gini@4"] == pytest.approx(whole / 29, rel=1e-12)
    assert found["gini( OF = n )@4"] == found["gini(of=N)@4"]


@pytest.mark.small
def test_gini_is_of_the_items_or_one_less() -> None:
    for wrong in ("2", "", "N-2"):
        with pytest.raises(UsageError, match="expected N-1 or N"):
            parse(f"gini(of={wrong})@3")
