"""What libraries say of a dump: for each metric asked for, a value of each query, or one of all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Dump(NamedTuple):
    """Labels with gains, lists with falling confidences, interactions of training, a catalogue."""

    labels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]
    train: dict[str, list[str]]
    items: list[str]


Values = dict[str, float] | float
# Metric here -> function there.
Names = dict[str, str]


def rows(sides: dict[str, dict[str, Any]]) -> list[tuple[str, str, Any]]:
    return [(query, *pair) for query, side in sides.items() for pair in side.items()]


def topic_rows(dump: Dump) -> list[tuple[str, str, str, int]]:
    """The bits of a gain are the subtopics of the item."""
    return [
        (query, item, str(bit), gain >> bit & 1)
        for query, item, gain in rows(dump.labels)
        for bit in range(4)
    ]


def of_lists(dump: Dump, names: Names, value: Callable[[str, str], float]) -> dict[str, Values]:
    """The value of each metric for each query, from a function of the query and the name there."""
    return {
        metric: {query: float(value(query, name)) for query in dump.run}
        for metric, name in names.items()
    }


def first(dump: Dump, k: int) -> dict[str, list[str]]:
    return {query: list(listed)[:k] for query, listed in dump.run.items()}


# ------------------------------------------------------------------ retrieval


def trec_eval(dump: Dump, names: Names) -> dict[str, Values]:
    """The geometric means are of the queries' logarithms."""
    import pytrec_eval

    asked = {name.rpartition("_")[0] if name[-1].isdigit() else name for name in names.values()}
    cut = {one for one in asked if not one.startswith(("iprec", "Rprec_"))}
    cut = {one for one in cut if f"{one}_5" in names.values()}
    measures = {*(asked - cut), *(f"{one}.1,5,10" for one in cut)}
    found = pytrec_eval.RelevanceEvaluator(dump.labels, measures).evaluate(dump.run)
    values = of_lists(dump, names, lambda query, name: found[query][name])
    for metric, name in names.items():
        if name.startswith("gm_"):
            logs = [found[query][name] for query in dump.run]
            values[metric] = math.exp(math.fsum(logs) / len(logs))
    return values


def measured(dump: Dump, provider: Any, names: Names) -> dict[str, Values]:
    import ir_measures as there

    measures = {there.parse_measure(name): metric for metric, name in names.items()}
    found: dict[str, dict[str, float]] = {metric: {} for metric in names}
    qrels = [there.Qrel(*row) for row in rows(dump.labels)]
    run = [there.ScoredDoc(*row) for row in rows(dump.run)]
    for one in provider.iter_calc(list(measures), qrels, run):
        found[measures[one.measure]][one.query_id] = one.value
    return dict(found)


def ir_measures(dump: Dump, names: Names) -> dict[str, Values]:
    import ir_measures as there

    plain = {metric: name for metric, name in names.items() if not name.startswith("1 - ")}
    values = measured(dump, there, plain)
    for metric in names.keys() - plain.keys():
        judged = values[metric.removeprefix("un")]
        assert isinstance(judged, dict)
        values[metric] = {query: 1 - value for query, value in judged.items()}
    return values


def gdeval(dump: Dump, names: Names) -> dict[str, Values]:
    """It runs Perl."""
    import ir_measures as there

    return measured(dump, there.gdeval, names)


def cwl_eval(dump: Dump, names: Names) -> dict[str, Values]:
    """Judged items beyond the list are no matter; unjudged ones have no gain, or the largest."""
    from cwl.cwl_eval import RankingMaker, TrecQrelHandler
    from cwl.ruler.measures.cwl_bpm import BPMCWLMetric
    from cwl.ruler.measures.cwl_insq import INSQCWLMetric
    from cwl.ruler.measures.cwl_inst import INSTCWLMetric
    from cwl.ruler.measures.cwl_rbp import RBPCWLMetric

    kinds = {"BPM": BPMCWLMetric, "INSQ": INSQCWLMetric, "INST": INSTCWLMetric}

    def value(query: str, name: str) -> float:
        handler = TrecQrelHandler(None)
        binary = "RBP" in name
        for item, gain in dump.labels[query].items():
            handler.put_value(query, item, float(gain > 0) if binary else gain / 3)
        maker = RankingMaker(query, handler, max_gain=1.0, max_n=1000)
        for item in dump.run[query]:
            maker.add(item, "_")
        if binary:
            measure = RBPCWLMetric(0.8)
            measure.residuals = name.startswith("residual")
        else:
            kind, _, wanted = name.partition("(T=")
            arguments = [float(wanted.partition(")")[0])]
            cutoff = [5] if kind == "BPM" else []
            measure = kinds[kind](*arguments, *cutoff)
        whole = measure.measure(maker.get_ranking())
        return measure.residual_expected_utility if measure.residuals else whole

    return of_lists(dump, names, value)


def ndeval(dump: Dump, names: Names) -> dict[str, Values]:
    import pyndeval

    found = pyndeval.ndeval(topic_rows_there(dump), rows(dump.run), measures=list(names.values()))
    return of_lists(dump, names, lambda query, name: found[query][name])


def topic_rows_there(dump: Dump) -> list[tuple[str, str, str, int]]:
    return [(query, topic, item, gain) for query, item, topic, gain in topic_rows(dump)]


def ntcireval(dump: Dump, names: Names) -> dict[str, Values]:
    """Its gains are 2^level - 1 for ERR, and the levels for the others."""
    from pyNTCIREVAL import Labeler, metrics

    def value(query: str, name: str) -> float:
        kind, _, cutoff = name.partition("@")
        labeler = Labeler(dump.labels[query])
        counts = labeler.compute_per_level_doc_num(4)
        listed, k = labeler.label(list(dump.run[query])), int(cutoff) if cutoff else None
        gains = [1, 3, 7] if "ERR" in kind else [1, 2, 3]
        if kind == "RR":
            measure = metrics.RR()
        elif kind == "Precision":
            measure = metrics.Precision(k)
        elif kind == "ERR":
            measure = metrics.ERR(counts, gains)
        elif kind == "AP":
            measure = metrics.AP(counts, gains)
        elif kind in ("OMeasure", "PMeasure", "PPlusMeasure"):
            measure = getattr(metrics, kind)(counts, gains, 1)
        elif kind.startswith("NCU"):
            given = ([0.95] if kind == "NCUrbP" else [0.5]) if "rb" in kind else [gains]
            measure = getattr(metrics, kind)(counts, gains, *given, *[1] * kind.endswith("BR"))
        elif kind.startswith("QMeasure"):
            measure = metrics.QMeasure(counts, gains, 2 if "=2" in kind else 1, k)
        else:
            measure = getattr(metrics, kind)(counts, gains, k)
        return float(measure.compute(listed))

    return of_lists(dump, names, value)


def ranx(dump: Dump, names: Names) -> dict[str, Values]:
    import ranx as there

    qrels, run = there.Qrels(dump.labels), there.Run(dump.run)
    found = there.evaluate(qrels, run, list(names.values()), return_mean=False)
    if not isinstance(found, dict):
        found = {next(iter(names.values())): found}
    queries = sorted(dump.labels)
    return {
        metric: dict(zip(queries, map(float, found[name]), strict=True))
        for metric, name in names.items()
    }


# ------------------------------------------------------------------ scikit-learn, torchmetrics


def sklearn_lists(dump: Dump, names: Names) -> dict[str, Values]:
    from sklearn import metrics

    def value(query: str, name: str) -> float:
        gains = np.array([max(0, dump.labels[query].get(item, 0)) for item in dump.run[query]])
        scores, right = np.array([*dump.run[query].values()]), gains > 0
        if name.startswith(("ndcg", "dcg")):
            kind, _, cutoff = name.partition("(k=")
            k = int(cutoff[:-1]) if cutoff else None
            return float(getattr(metrics, kind)([gains], [scores], k=k))
        one = ([right], [scores]) if name.startswith("label") else (right, scores)
        return float(getattr(metrics, name)(*one))

    return of_lists(dump, names, value)


def pooled(dump: Dump) -> tuple[np.ndarray, np.ndarray]:
    """Whether each prediction is right, and its confidence."""
    right = [dump.labels[query].get(item, 0) > 0 for query, item, _ in rows(dump.run)]
    return np.array(right), np.array([score for *_, score in rows(dump.run)])


def sklearn_pooled(dump: Dump, names: Names) -> dict[str, Values]:
    from sklearn import metrics

    right, scores = pooled(dump)
    precision, recall, thresholds = metrics.precision_recall_curve(right, scores)
    f1 = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    best = np.flatnonzero(np.isclose(f1[:-1], f1.max(), rtol=1e-14, atol=0))[-1]
    return {
        "auprc": float(metrics.auc(recall, precision)),
        "auprc_step": float(metrics.average_precision_score(right, scores)),
        "gap": float(metrics.average_precision_score(right, scores)),
        "brier": float(metrics.brier_score_loss(right, scores)),
        "roc_auc": float(metrics.roc_auc_score(right, scores)),
        "log_loss": float(metrics.log_loss(right, scores)),
        "best_f1": float(f1.max()),
        "best_f1_threshold": float(thresholds[best]),
        "recall_at_precision@0.5": float(recall[precision >= 0.5].max()),
        "precision_at_recall@0.9": float(precision[recall >= 0.9].max()),
    }


def torchmetrics_lists(dump: Dump, names: Names) -> dict[str, Values]:
    import torch
    from torchmetrics.functional import retrieval as there

    def value(query: str, name: str) -> float:
        run, labels = dump.run[query], dump.labels[query]
        scores = torch.tensor(list(run.values()))
        right = torch.tensor([labels.get(item, 0) > 0 for item in run])
        if name == "RetrievalAUROC":
            return float(there.retrieval_auroc(scores, right))
        return float(there.retrieval_fall_out(scores, right, top_k=3 if "3" in name else None))

    return of_lists(dump, names, value)


def torchmetrics_pooled(dump: Dump, names: Names) -> dict[str, Values]:
    """Its bins hold their lower end, which no confidence is here."""
    import torch
    from torchmetrics.functional import classification as there

    right, scores = (torch.tensor(one) for one in pooled(dump))
    right = right.long()
    recall = there.binary_recall_at_fixed_precision(scores, right, 0.5)[0]
    precision = there.binary_precision_at_fixed_recall(scores, right, 0.9)[0]
    return {
        "ece": float(there.binary_calibration_error(scores, right, n_bins=15)),
        "ece(bins=7)": float(there.binary_calibration_error(scores, right, n_bins=7)),
        "recall_at_precision@0.5": float(recall),
        "precision_at_recall@0.9": float(precision),
    }


# ------------------------------------------------------------------ over a catalogue


def frames(dump: Dump, user: str, item: str) -> tuple[Any, Any, Any]:
    """The right items, the first three predictions with rank and score, and training."""
    import pandas as pd

    right = [(query, one) for query, one, gain in rows(dump.labels) if gain > 0]
    listed = [
        (query, one, rank, -float(rank))
        for query, few in first(dump, 3).items()
        for rank, one in enumerate(few, 1)
    ]
    train = [(query, one) for query, items in dump.train.items() for one in items]
    return (
        pd.DataFrame(right, columns=[user, item]),
        pd.DataFrame(listed, columns=[user, item, "rank", "rating"]),
        pd.DataFrame(train, columns=[user, item]),
    )


def rectools(dump: Dump, names: Names) -> dict[str, Values]:
    from rectools import metrics

    right, listed, train = frames(dump, "user_id", "item_id")
    some = right[right["user_id"].isin(dump.run)]
    mcc = metrics.MCC(k=3).calc_per_user(listed, right, dump.items).to_dict()
    fbeta = metrics.F1Beta(k=3, beta=2).calc_per_user(listed, some).to_dict()
    zeros = dict.fromkeys(set(dump.labels) - set(fbeta), 0.0)
    of_ranks = {
        one: getattr(metrics, name)(k=3).calc_per_user(listed, right).to_dict()
        for one, name in names.items()
        if name in ("Precision", "Recall", "HitRate", "MAP", "NDCG", "MRR")
    }
    return of_ranks | {
        "mcc(items=20)@3": {query: mcc.get(query, 0.0) for query in dump.labels}
        | dict.fromkeys(dump.labels.keys() - dump.run.keys(), -1.0),
        "fbeta(beta=2)@3": fbeta | zeros,
        "coverage@3": metrics.CatalogCoverage(k=3, normalize=True).calc(
            listed[listed["item_id"].isin(dump.items)], dump.items
        ),
        "popularity@3": metrics.AvgRecPopularity(k=3).calc(listed, train),
        "novelty@3": metrics.MeanInvUserFreq(k=3).calc(listed, train),
        "user_coverage": metrics.CoveredUsers(k=3).calc_per_user(listed, right).to_dict(),
        "serendipity@3": metrics.Serendipity(k=3).calc(listed, right, train, dump.items),
    }


def replay(dump: Dump, names: Names) -> dict[str, Values]:
    """Its surprisal is divided by the logarithm of the number of users in training."""
    from replay import metrics

    _, listed, train = frames(dump, "query_id", "item_id")
    surprisal = metrics.Surprisal(3)(listed, train)["Surprisal@3"]
    return {
        "coverage@3": metrics.Coverage(3)(listed, train)["Coverage@3"],
        "novelty@3": surprisal * math.log2(len(dump.train)),
    }


def recommenders(dump: Dump, names: Names) -> dict[str, Values]:
    """It takes items that are not in training as part of the catalogue, so they are left out."""
    from recommenders.evaluation import python_evaluation as there

    _, listed, train = frames(dump, "userID", "itemID")
    listed = listed[["userID", "itemID"]]
    known = listed[listed["itemID"].isin(dump.items)]
    return {
        "coverage@3": there.catalog_coverage(train, known),
        "entropy@3": there.distributional_coverage(train, listed),
    }


def lenskit(dump: Dump, names: Names) -> dict[str, Values]:
    from lenskit.data import ItemList
    from lenskit.metrics import ListGini

    measure = ListGini(3, items=len(dump.items))
    known = [[item for item in few if item in dump.items] for few in first(dump, 3).values()]
    lists = [ItemList(item_ids=np.array(few, dtype=object), ordered=True) for few in known]
    data = [measure.compute_list_data(one, None) for one in lists if len(one)]
    return {"gini(of=N)@3": float(measure.global_aggregate(data))}


def recmetrics(dump: Dump, names: Names) -> dict[str, Values]:
    from recmetrics.metrics import personalization

    return {"personalization@3": float(personalization(list(first(dump, 3).values())))}
