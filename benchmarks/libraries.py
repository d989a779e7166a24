"""Hold metrics to the libraries that have them, on random dumps.

    python benchmarks/libraries.py                         # 200 dumps, the libraries installed
    python benchmarks/libraries.py --library ndeval --dumps 1000
    python benchmarks/libraries.py --all                   # one that is missing is an error

`LIBRARIES` says which metric here is which function there. The exit code is 1 if any value differs.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

import rankmill
from rankmill.config.face import face_of

sys.path.insert(0, str(Path(__file__).resolve().parent))
import library_answers as answers
import recommender_answers as recommenders
from library_answers import Dump, Names, Values
from rankmill.metrics.registry import parse
from rankmill.semantics.presets import PRESETS

ITEMS = [f"d{number:02}" for number in range(25)]


@dataclass(frozen=True)
class Library:
    """One library, or one way to call it.

    Attributes
    ----------
    module : str
        What is imported if it is installed.
    says : callable
        What it says of a dump: for each metric here a value of each query, or one of all.
    names : dict
        Metric here -> function there.
    options : dict
        The options of `rankmill.evaluate`.
    gains : tuple of int
        Of the judged items of a query.
    listed : bool
        Whether all judged items are predicted, and one prediction or more is no label.
    catalogue : bool
        Whether `train` and `items` are given.
    full : bool
        Whether all lists have eight predictions.
    close : float
        The largest difference allowed: libraries add in another order, and some in float32.
    """

    module: str
    says: Callable[[Dump, Names], dict[str, Values]]
    names: Names
    options: dict[str, Any] = field(default_factory=dict)
    gains: tuple[int, ...] = (0, 0, 1, 2, 3)
    listed: bool = False
    catalogue: bool = False
    full: bool = False
    close: float = 1e-9


def trec_names() -> Names:
    """Return the names of trec_eval; a cutoff stands behind a point there."""
    names = {name: name for name in ("num_ret", "num_rel", "num_rel_ret", "set_map", "utility")}
    names |= {"num_nonrel_judged_ret": "num_nonrel_judged_ret", "set_recall": "set_recall"}
    names |= {"map": "map", "first_hit": "recip_rank", "rprec": "Rprec", "ndcg": "ndcg"}
    names |= {"set_p": "set_P", "set_f": "set_F", "set_relative_p": "set_relative_P"}
    names |= {"iprec_avg": "11pt_avg", "bing": "binG", "g": "G", "rndcg": "Rndcg"}
    names |= {"ndcg_rel": "ndcg_rel", "bpref": "bpref", "infap": "infAP"}
    names |= {"map:gm": "gm_map", "bpref:gm": "gm_bpref"}
    names |= {f"iprec@{at}": f"iprec_at_recall_{at:.2f}" for at in (0, 0.1, 0.3, 0.5, 0.9, 1)}
    names |= {f"rprec_mult@{at}": f"Rprec_mult_{at:.2f}" for at in (0.2, 0.8, 1.2, 2)}
    cut = {"map": "map_cut", "precision": "P", "recall": "recall", "hit": "success"}
    cut |= {"ndcg": "ndcg_cut", "relative_p": "relative_P"}
    return names | {f"{one}@{k}": f"{there}_{k}" for one, there in cut.items() for k in (1, 5, 10)}


TREC = {"semantics": "trec_eval"}
# In its order; its preset refuses rbp, which means another metric in trec_eval 10.
AS_THERE = PRESETS["trec_eval"].semantics.to_dict()
IN_ITS_ORDER = {"semantics": AS_THERE | {"order": "item_descending"}}
RANX = {name: name for name in ("map", "precision", "recall", "f1", "ndcg", "dcg")}
RANX |= {"first_hit": "mrr", "hit": "hit_rate"}
BINARY = {"binary": True}
AS_LENSKIT = {"precision_divisor": "min_k_predictions", "recall_divisor": "min_k_labels"}
POOLED = {"semantics": {"gap_total": "hits", "gap_ties": "threshold"}}
TRAINED = {"coverage@3": "CatalogCoverage(normalize=True)", "popularity@3": "AvgRecPopularity"}
TRAINED |= {"novelty@3": "MeanInvUserFreq", "serendipity@3": "Serendipity"}
TRAINED |= {"user_coverage": "CoveredUsers"}
TRAINED |= {"mcc(items=20)@3": "MCC", "fbeta(beta=2)@3": "F1Beta(beta=2)"}

LIBRARIES: dict[str, Library] = {
    "trec_eval": Library("pytrec_eval", answers.trec_eval, trec_names(), TREC),
    "trec_eval, pooled": Library(
        "pytrec_eval",
        answers.trec_eval,
        {"bpref": "bpref", "infap": "infAP", "map": "map", "num_rel": "num_rel"},
        TREC,
        gains=(-1, 0, 1, 2),
    ),
    "cwl_eval": Library(
        "cwl",
        answers.cwl_eval,
        {"rbp@1000": "RBP(p=0.8)", "bpm(max=3)@5": "BPM(T=1)@5", "insq(max=3)": "INSQ(T=1)"}
        | {"inst(max=3)": "INST(T=1)", "rbp_residual@1000": "residual of RBP(p=0.8)"}
        | {"bpm(t=2,max=3)@5": "BPM(T=2)@5", "inst(t=2,max=3)": "INST(T=2)"},
        IN_ITS_ORDER,
    ),
    "ir_measures": Library(
        "ir_measures",
        answers.ir_measures,
        {
            "judged@5": "Judged@5",
            "unjudged@5": "1 - Judged@5",
            "set_f(beta=1.4142135623730951)": "SetF(beta=2.0)",
        }
        | {"precision(rel=2)@5": "P(rel=2)@5", "map(rel=2)": "AP(rel=2)"}
        | {"compat": "Compat", "compat(p=0.8)": "Compat(p=0.8)", "rbo": "Compat(normalize=False)"}
        | {"sdcg(max=3)@5": "SDCG(max_rel=3)@5", "nerr8(max=3)@5": "NERR8(max_rel=3)@5"}
        | {"nerr9(max=3)@5": "NERR9(max_rel=3)@5", "nerr10(max=3)": "NERR10(max_rel=3)"}
        | {"nerr10(p=0.5,max=3)": "NERR10(p=0.5,max_rel=3)", "nerr11(max=3)": "NERR11(max_rel=3)"}
        | {"nerr11(t=2,max=3)": "NERR11(T=2.0,max_rel=3)"},
        IN_ITS_ORDER,
    ),
    "ir_measures, Accuracy": Library(
        "ir_measures", answers.ir_measures, {"auc": "Accuracy"}, TREC, listed=True
    ),
    "gdeval": Library(
        "ir_measures",
        answers.gdeval,
        {"err@5": "ERR@5", "err@20": "ERR@20", "ndcg@5": "nDCG(dcg='exp-log2')@5"},
        {"semantics": "trec_eval", "gain_function": "exp"},
        # It prints five digits.
        close=5.01e-6,
    ),
    "ndeval": Library(
        "pyndeval",
        answers.ndeval,
        {f"alpha_ndcg@{k}": f"alpha-nDCG@{k}" for k in (5, 10, 20)}
        | {f"err_ia@{k}": f"ERR-IA@{k}" for k in (5, 10, 20)}
        | {f"subtopic_recall@{k}": f"strec@{k}" for k in (5, 10, 20)}
        | {f"alpha_dcg@{k}": f"alpha-DCG@{k}" for k in (5, 20)}
        | {f"nerr_ia@{k}": f"nERR-IA@{k}" for k in (5, 20)}
        | {f"p_ia@{k}": f"P-IA@{k}" for k in (5, 20)}
        | {"nrbp": "NRBP", "nnrbp": "nNRBP", "map_ia": "MAP-IA"},
        {"subtopic": "subtopic"},
        gains=(0, 1, 2, 3, 5, 7, 8, 12, 15),
    ),
    "pyNTCIREVAL": Library(
        "pyNTCIREVAL",
        answers.ntcireval,
        {"err(max=3)": "ERR", "nerr(max=3)": "nERR", "nerr(max=3)@3": "nERR@3", "map": "AP"}
        | {"q_measure": "QMeasure", "q_measure(beta=2)@3": "QMeasure(beta=2)@3"}
        | {"ndcg@5": "MSnDCG@5", "first_hit": "RR", "precision@5": "Precision@5"}
        | {"o_measure": "OMeasure", "p_measure": "PMeasure", "p_plus": "PPlusMeasure"}
        | {"ncu_rb(beta=0)": "NCUrbP", "ncu_rb(gamma=0.5,beta=1)": "NCUrbBR", "ncu_gu": "NCUguBR"}
        | {"ncu_gu(beta=0)": "NCUguP"},
    ),
    "ranx": Library(
        "ranx",
        answers.ranx,
        {f"{one}@{k}": f"{there}@{k}" for one, there in RANX.items() for k in (1, 5)}
        | {"rprec": "r-precision", "bpref": "bpref", "num_rel_ret": "hits"},
        {"semantics": "ranx"},
    ),
    # It multiplies by the gain, which makes no rbp of gains above 1.
    "ranx, no gains": Library(
        "ranx",
        answers.ranx,
        {"rbp(rel=1,p=0.8)": "rbp.80", "rbp(rel=1,p=0.95)": "rbp.95"},
        {"semantics": "ranx"},
        gains=(1,),
    ),
    "ranx, exponential gains": Library(
        "ranx",
        answers.ranx,
        {"ndcg@5": "ndcg_burges@5", "dcg@5": "dcg_burges@5", "ndcg": "ndcg_burges"},
        {"semantics": "ranx", "gain_function": "exp"},
    ),
    "scikit-learn": Library(
        "sklearn",
        answers.sklearn_lists,
        {"auc": "roc_auc_score", "map": "average_precision_score"}
        | {"lrap": "label_ranking_average_precision_score"}
        | {"ndcg": "ndcg_score", "ndcg@5": "ndcg_score(k=5)", "dcg@5": "dcg_score(k=5)"},
        {"semantics": "sklearn"},
        listed=True,
    ),
    "scikit-learn, pooled": Library(
        "sklearn",
        answers.sklearn_pooled,
        {"auprc": "auc(precision_recall_curve)", "auprc_step": "average_precision_score"}
        | {
            "gap": "average_precision_score",
            "brier": "brier_score_loss",
            "roc_auc": "roc_auc_score",
            "log_loss": "log_loss",
            "best_f1": "max F1 of precision_recall_curve",
        }
        | {"best_f1_threshold": "its threshold", "recall_at_precision@0.5": "its recall"}
        | {"precision_at_recall@0.9": "its precision"},
        POOLED,
    ),
    "torchmetrics, lists": Library(
        "torchmetrics",
        answers.torchmetrics_lists,
        {"fallout@3": "RetrievalFallOut(top_k=3)", "fallout": "RetrievalFallOut"}
        | {"auc": "RetrievalAUROC"},
        listed=True,
        close=1e-6,
    ),
    "torchmetrics, pooled": Library(
        "torchmetrics",
        answers.torchmetrics_pooled,
        {"ece": "BinaryCalibrationError(n_bins=15)", "ece(bins=7)": "the same of 7"}
        | {"recall_at_precision@0.5": "BinaryRecallAtFixedPrecision"}
        | {"precision_at_recall@0.9": "BinaryPrecisionAtFixedRecall"},
        POOLED,
        close=1e-6,
    ),
    "RecTools": Library("rectools", answers.rectools, TRAINED, catalogue=True),
    "RecTools, ranks": Library(
        "rectools",
        answers.rectools,
        {"precision@3": "Precision", "recall@3": "Recall", "hit@3": "HitRate"}
        | {"map@3": "MAP", "ndcg@3": "NDCG", "first_hit@3": "MRR"},
        {"semantics": {"ap_divisor": "labels", "ideal_dcg": "k"}},
        gains=(0, 1),
    ),
    "RePlay": Library(
        "replay",
        answers.replay,
        {"coverage@3": "Coverage", "novelty@3": "Surprisal * log2(users)"},
        catalogue=True,
        full=True,
    ),
    "recommenders": Library(
        "recommenders",
        answers.recommenders,
        {"coverage@3": "catalog_coverage", "entropy@3": "distributional_coverage"},
        catalogue=True,
    ),
    "RePlay, lists": Library(
        "replay",
        recommenders.lists_replay,
        {"hit@5": "HitRate", "map@5": "MAP", "first_hit@5": "MRR", "ndcg@5": "NDCG"}
        | {"precision@5": "Precision", "recall@5": "Recall", "auc@5": "RocAuc"}
        | {"map@5:median": "MAP, Median"},
        BINARY,
    ),
    "LensKit": Library("lenskit", answers.lenskit, {"gini(of=N)@3": "ListGini"}, catalogue=True),
    "LensKit, lists": Library(
        "lenskit",
        recommenders.lists_lenskit,
        {"hit@5": "Hit@5", "precision@5": "Precision@5", "recall@5": "Recall@5"}
        | {"first_hit": "RecipRank", "rbp(p=0.85)": "RBP", "num_ret": "ListLength"}
        | {"num_rel": "TestItemCount", "ndcg_jk@5": "NDCG@5", "dcg_jk@5": "DCG@5"},
        BINARY | {"semantics": AS_LENSKIT},
    ),
    "LensKit, two lists": Library(
        "lenskit", recommenders.overlap_lenskit, {"rbo(p=0.85)@3": "rank_biased_overlap(n=3)"}
    ),
    "Cornac": Library(
        "cornac",
        recommenders.cornac,
        {"hit@5": "HitRatio@5", "ndcg@5": "NDCG@5", "precision@5": "Precision@5"}
        | {"recall@5": "Recall@5", "f1@5": "FMeasure@5"},
        BINARY,
    ),
    "Cornac, all items": Library(
        "cornac",
        recommenders.cornac,
        {"map": "MAP", "auc": "AUC", "first_hit": "MRR"},
        BINARY,
        listed=True,
    ),
    "RecBole": Library(
        "recbole",
        recommenders.recbole,
        {"hit@3": "Hit", "first_hit@3": "MRR", "map@3": "MAP", "recall@3": "Recall"}
        | {"ndcg@3": "NDCG", "precision@3": "Precision"},
        BINARY,
    ),
    "RecBole, pooled": Library(
        "recbole",
        recommenders.pooled_recbole,
        {"gauc(by=hits)": "GAUC", "roc_auc": "AUC", "log_loss": "LogLoss"},
        listed=True,
    ),
    "RecBole, catalogue": Library(
        "recbole",
        recommenders.catalogue_recbole,
        {"coverage@3": "ItemCoverage", "gini(of=N)@3": "GiniIndex"}
        | {"popularity@3": "AveragePopularity"},
        {"items": pa.table({"item_id": recommenders.WITH_PADDING})},
        catalogue=True,
    ),
    "Elliot": Library(
        "elliot",
        recommenders.elliot,
        {"ndcg@3": "nDCGRendle2020", "precision@3": "Precision", "hit@3": "HR"}
        | {"recall@3": "Recall", "first_hit@3": "MRR", "f1@3": "F1", "fbeta(beta=2)@3": "DSC"}
        | {"num_ret": "NumRetrieved"},
        BINARY | {"depth": 3},
    ),
    "Elliot, catalogue": Library(
        "elliot",
        recommenders.elliot,
        {"entropy@3": "SEntropy", "popularity@3": "ARP", "efd@3": "EFD", "epc@3": "EPC"},
        catalogue=True,
    ),
    "recmetrics": Library(
        "recmetrics", answers.recmetrics, {"personalization@3": "personalization"}, full=True
    ),
}

# What no library here has, and the tests that hold it to an oracle and to known answers.
UNHELD = {
    **dict.fromkeys(("first_rank", "mean_rank"), "peers/test_retrieval.py"),
    **dict.fromkeys(("graded_rbp", "rbp_resid", "unj"), "peers/test_trec_eval_9.py"),
    "pair_accuracy": "peers/test_retrieval.py, to SciPy's somersd",
    "dprime": "metrics/families/test_confidence.py",
    "yaap": "metrics/families/test_ranks.py",
    "kendall_tau": "metrics/families/test_ranks.py, to SciPy's kendalltau",
    **dict.fromkeys(("psp", "psndcg"), "metrics/aggregates/test_training.py, to pyxclib's formula"),
    **dict.fromkeys(("aplt", "aclt"), "metrics/aggregates/test_training.py"),
    **dict.fromkeys(("coverage_of_labels", "hhi"), "metrics/aggregates/test_catalogue.py"),
    **dict.fromkeys(("popularity_lift", "head_share"), "metrics/aggregates/test_training.py"),
    **dict.fromkeys(("middle_share", "tail_share"), "metrics/aggregates/test_training.py"),
    **dict.fromkeys(("miscalibration", "ild", "epd"), "metrics/aggregates/test_item_groups.py"),
    **dict.fromkeys(
        ("exposure_parity", "treatment_parity"), "metrics/aggregates/test_item_groups.py"
    ),
    **dict.fromkeys(("impact_parity", "recall_parity"), "metrics/aggregates/test_item_groups.py"),
    **dict.fromkeys(
        ("ild_cosine", "epd_cosine"),
        "metrics/aggregates/test_distances.py, to scikit-learn's cosines",
    ),
}


def dump(seed: int, one: Library) -> Dump:
    """Make six queries; no confidence stands twice in a list, and many in two lists."""
    draw = Random(seed)
    labels, run, train = {}, {}, {}
    for number in range(6):
        query = str(number)  # gdeval takes no other
        listed = draw.sample(ITEMS, 8 if one.full else draw.randint(3, 15))
        judged = draw.sample(listed[1:] if one.listed else ITEMS, min(12, len(listed) - 1))
        labels[query] = {item: draw.choice(one.gains) for item in judged}
        labels[query] |= {judged[-1]: min(one.gains), judged[0]: max(one.gains)}
        scores = sorted(draw.sample(range(1, 64), len(listed)), reverse=True)
        fresh = [item for item in ITEMS[:20] if item not in listed]
        train[query] = draw.sample(fresh, draw.randint(1, len(fresh)))
        if one.catalogue and number and draw.random() < 0.2:
            continue
        run[query] = {item: score / 64 for item, score in zip(listed, scores, strict=True)}
    train["9"] = ITEMS[:20]
    return Dump(labels, run, train, ITEMS[:20])


def ours(found: Dump, one: Library) -> dict[str, Values]:
    """What rankmill says, by the names of its metrics."""
    options = dict(one.options)
    if one.catalogue:
        pairs = [(query, item) for query, items in found.train.items() for item in items]
        options["train"] = table(pairs, "query_id", "item_id")
        options.setdefault("items", pa.table({"item_id": found.items}))
    rows = answers.topic_rows(found) if "subtopic" in options else answers.rows(found.labels)
    columns = ("query_id", "item_id", "subtopic", "gain") if "subtopic" in options else LABELS
    predictions = table(answers.rows(found.run), "query_id", "item_id", "score")
    options["metrics"] = list(one.names)
    given = face_of(rankmill.evaluate, table(rows, *columns), predictions, options)
    result = rankmill.evaluate(**given)
    every = result.per_query
    assert every is not None
    queries = every["query_id"].to_pylist()
    return {
        name: dict(zip(queries, every[parse(name).text].to_pylist(), strict=True))
        if parse(name).text in every.column_names and ":" not in name and "gauc" not in name
        else result[name]
        for name in one.names
    }


LABELS = ("query_id", "item_id", "gain")


def table(rows: list[Any], *names: str) -> pa.Table:
    return pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))


def differences(one: Library, seed: int) -> Iterator[tuple[str, str, float]]:
    """Yield each value of a dump: the metric, the query ("" if of all), how far off it is."""
    found = dump(seed, one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = one.says(found, one.names)
    here = ours(found, one)
    for metric in one.names:
        pairs = [here[metric], there[metric]]
        mine, theirs = (pair if isinstance(pair, dict) else {"": pair} for pair in pairs)
        if mine.keys() != theirs.keys():
            raise SystemExit(f"{metric}: values of {sorted(mine)} here, {sorted(theirs)} there")
        for query, value in mine.items():
            yield metric, query, abs(value - theirs[query]) / max(1.0, abs(theirs[query]))


def hold(name: str, dumps: int) -> list[str]:
    """Hold the metrics of a library on so many dumps; print a line each, return what is off."""
    one, worst, wrong = LIBRARIES[name], dict.fromkeys(LIBRARIES[name].names, 0.0), {}
    count = 0
    for seed in range(dumps):
        for metric, query, off in differences(one, seed):
            worst[metric] = max(worst[metric], off)
            count += 1
            if not off <= one.close or math.isnan(off):
                wrong.setdefault(metric, f"{name}: {metric}, dump {seed}, query {query!r}: {off:g}")
    for metric, off in worst.items():
        print(f"{name:24} {metric:24} {one.names[metric]:36} {off:8.1e}")
    print(f"{name}: {count:,} values on {dumps} dumps, {len(wrong)} metrics are off", flush=True)
    return list(wrong.values())


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    reader.add_argument("--dumps", type=int, default=200)
    reader.add_argument("--library", choices=LIBRARIES, action="append")
    reader.add_argument("--all", action="store_true", help="a library that is missing is an error")
    asked = reader.parse_args()
    wrong, missing = [], []
    for name in asked.library or LIBRARIES:
        if importlib.util.find_spec(LIBRARIES[name].module) is None:
            missing.append(name)
        else:
            wrong += hold(name, asked.dumps)
    print(*wrong, *(f"not installed: {name}" for name in missing), sep="\n")
    raise SystemExit(1 if wrong or (missing and (asked.all or asked.library)) else 0)


if __name__ == "__main__":
    main()
