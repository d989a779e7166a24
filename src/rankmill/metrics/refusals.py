"""Names of other evaluators that stand for something else there: why, and what to type here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rankmill.metrics.base import REL, Metric
from rankmill.metrics.libraries import computed_elsewhere
from rankmill.semantics.presets import PRESETS, preset_named

_QUERIES = "every result has its number of queries, as queries"

# Under every preset, in small letters: measures of trec_eval and ir_measures that are not computed,
# and names that mean one thing in one library and another thing in the next.
EVERYWHERE = {
    "relstring": "it is a text, a digit a prediction; explain shows what stands at each rank",
    "runid": "it is the name of a run, and not a number",
    "num_q": _QUERIES,
    "numq": _QUERIES,
    "accuracy": "in ir_measures it is the mean of auc over the queries with a hit: type auc, or "
    "auc@10, which is 0 without a hit; in RecTools it is the share of the catalogue that is "
    "rightly shown or not shown, and elsewhere that of right classes, which are not computed; the "
    "accuracy in the first k that Sentence Transformers prints is hit@k",
    "hits": "in ranx it is a number of hits, and elsewhere the share of queries with a hit: type "
    "num_rel_ret or hit@10",
    "giniindex": "in RecBole it is gini(of=N)@10 with its padding among the N items, and in "
    "Elliot 1 - gini@10: type one of these",
    "listgini": "in LensKit it is gini(of=N)@10: type that",
    "surprisal": "in RePlay it is novelty@10 over log2 of the number of queries in training: type "
    "MeanInvUserFreq@10",
    "shannonentropy": "in RecBole it is entropy@10 in nats, over the number of distinct items "
    "shown; in Elliot it is entropy@10 where all lists are of one length: type entropy@10, in bits",
    "catalogcoverage": "in RecTools it is a number of items, unless normalize is set, which is "
    "coverage@k",
    "usercoverage": "in Elliot it is a number of users; user_coverage@k is their share",
}

_OVER_QUERIES = "without the preset, auc is the mean over queries"
_AMONG_PREDICTED = "in torchmetrics it knows only the labels that are among the predictions"
_LATE_DISCOUNT = "in LensKit the first two ranks have the same discount"
_ONLY_TREC_10 = "it is of trec_eval 10: choose the preset trec_eval-10"
# Preset -> name in small letters.
_UNDER = {
    "trec_eval": dict.fromkeys(("rbp", "graded_rbp", "rbp_resid", "unj", "dcg"), _ONLY_TREC_10),
    "trec_eval-10": {
        "rbp": "in trec_eval 10 it is graded: type graded_rbp"
        " for that; it is binary without the preset"
    },
    "replay": {
        "novelty": "in RePlay it is the share of the first k that a query did not have in "
        "training, which is not computed; type MeanInvUserFreq@10 for novelty@10 as it is here"
    },
    "torchmetrics": {
        "recall": f"{_AMONG_PREDICTED}; type R@10 for recall@10 of all labels",
        "ndcg": f"{_AMONG_PREDICTED}; type ndcg_cut_10 for ndcg@10 of all labels",
        "fallout": "in torchmetrics a query without a hit has a fallout as well: add --semantics "
        "no_relevant=scored on the command line, Semantics('torchmetrics', no_relevant='scored') "
        "in Python, which is RetrievalFallOut with the empty_target_action 'neg'",
        "auc": "in torchmetrics it is 0 where all of the first k are hits: type pair_accuracy@10",
        **dict.fromkeys(
            ("rprec", "r-precision", "r_precision"),
            f"{_AMONG_PREDICTED}; type Rprec_mult_1 for that of all labels",
        ),
    },
    "ranx": {
        "rbp": "in ranx it multiplies by the gain, which is not computed; type rbp(rel=1,p=0.95) "
        "for that of hits, which is the same where all gains are 1"
    },
    "recommenders": {
        "map": "in recommenders, map_at_k divides by min(k, R) and map by R: type map@10 for the "
        "first one; for the second one, add --semantics ap_divisor=labels on the command line, "
        "Semantics('recommenders', ap_divisor='labels') in Python",
        "ndcg": "in recommenders it counts queries without predictions as 0, which are left out of "
        "its other metrics: add --semantics unpredicted=zero on the command line, "
        "Semantics('recommenders', unpredicted='zero') in Python",
        "auc": f"in recommenders it is of all predictions in one list, which is not computed; "
        f"{_OVER_QUERIES}",
        "novelty": "in recommenders it takes the share of interactions that are of an item, which "
        "is not computed; type MeanInvUserFreq@10, which takes the share of queries that had it",
        "serendipity": "in recommenders it is how unlike a hit is to what its query had in "
        "training, which is not computed; epd_cosine@10 measures that for all items",
    },
    "implicit": {
        "auc": "in implicit it takes all items that are not predicted as one tie behind the "
        f"list, which is not computed; {_OVER_QUERIES}",
        "precision": "in implicit it is one ratio over all queries, of hits to min(k, R), which is "
        "not computed; type P@10 for hits / k, or relative_p@10 for the mean of each query's ratio",
    },
    "lenskit": {
        "entropy": "in LensKit it is that of the categories of a list, which is not computed; "
        "without the preset, entropy is that of how often items are shown",
        "rbp": "in LensKit its p is 0.85 unless given: type rbp(p=0.85), or rbp(p=0.8) for what "
        "it is here",
        "ndcg": f"{_LATE_DISCOUNT}: type ndcg_jk@10, or ndcg_cut_10 for ndcg@10 as it is here",
        "dcg": f"{_LATE_DISCOUNT}: type dcg_jk@10; without the preset, dcg is that of log2(rank + "
        "1)",
    },
}


def told_under(semantics: Any, metric: Metric) -> str:
    """What a name means in the library of a preset, if it means something else there, or "".

    `semantics` are as given: the name of a preset, or a mapping or `Semantics` with one.
    """
    preset = preset_named(semantics)
    told = semantics if isinstance(semantics, Mapping) else getattr(semantics, "__dict__", {})
    unpredicted = told.get("unpredicted")
    name = re.split(r"[(@:]|_\d", metric.text)[0].strip().lower()
    given = dict(metric.given).keys()
    says_which = {
        ("lenskit", "rbp"): given - {REL.name},
        ("ranx", "rbp"): given & {REL.name},
        ("torchmetrics", "fallout"): told.get("no_relevant"),
        ("recommenders", "map"): metric.k,
        ("recommenders", "ndcg"): (unpredicted or "skip") != "skip",
    }
    return "" if says_which.get((preset, name)) else _UNDER.get(preset, {}).get(name, "")


def here_for(name: str) -> str:
    """What to type for a name of the libraries of presets, as "map@k for that of spark", or ""."""
    found: dict[str, list[str]] = {}
    for library, preset in PRESETS.items():
        for metric, there in preset.metrics.items():
            uncut = f"{metric}@k" in preset.metrics
            if re.split(r"[(@]", there)[0].lower() == name.lower() and not uncut:
                found.setdefault(metric, []).append(library)
    if not found:
        found = computed_elsewhere(name)
    return " or ".join(f"{metric} for that of {' and '.join(of)}" for metric, of in found.items())


def parameter_elsewhere(text: str, name: str, value: str) -> str:
    """What to type for a parameter that other libraries have and metrics here do not, else ""."""
    bare, level = re.sub(r"\([^()]*\)", "", text).strip(), value.strip("'\"")
    if name.isdigit() or name in ("k", "top_k", "n", "cutoff"):
        return f"type {bare}@{level or name}"
    if name == "dcg" and level != "exp-log2":
        return f"type {bare}"
    if name == "rel":
        return f"type NumRelRet(rel={level})" if bare.lower() == "numret" else ""
    if name in ("dcg", "gains"):
        found = re.search(r"{([^{}]*)}", text)
        worth = "exp" if found is None else re.sub(r"\s", "", found[1]).replace(":", "=")
        return (
            f"type {bare} with --gain-function {worth} on the command line, "
            f"Semantics(gain_function={worth!r}) in Python"
        )
    said = {
        "judged_only": f"type {bare} with --judged-only",
        "relative": "type set_relative_p",
        "max_rel": f"type max={level} in its place",
        "min_rel": "the least gain is 0: leave it out",
    }
    return said.get(name, "")
