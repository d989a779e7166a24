"""Metrics of retrieval beside trec_eval, SciPy and scikit-learn, and worked examples."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import pytrec_eval
import scipy.stats
import sklearn.metrics

import rankmill
from conftest import tells
from rankmill import UsageError
from rankmill.metrics.registry import parse, parse_all
from test_registry import long_table, random_run

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
            judged |= {name: -1 for name in list(judged)[::3]}
    asked = TREC_EVAL | (GRADED if level == 1 and not seed % 2 else {})
    measures = {measure for measure, _ in asked.values()}
    expected = pytrec_eval.RelevanceEvaluator(qrels, measures, relevance_level=level).evaluate(run)
    tables = long_table(qrels, "gain"), long_table(run, "score")
    rel = None if level == 1 else level
    names = list(asked)
    result = rankmill.evaluate(*tables, names, semantics="trec_eval", rel=rel)
    table = result.per_query
    for text, (_, there) in asked.items():
        for query, found in zip(
            table["qid"].to_pylist(), table[result.aliases[text.lower()]].to_pylist(), strict=True
        ):
            if all(gain < level for gain in qrels[query].values()):
                continue  # such a query scores 0 here in all metrics, but the counts there
            wanted = expected[query][there]
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12), (text, query)
