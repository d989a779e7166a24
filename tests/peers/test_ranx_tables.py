"""The letters of a table of all pairs are those of ranx, under Student's t without a correction."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import rankmill

pytestmark = pytest.mark.filterwarnings("ignore:unsafe cast")  # within ranx

# Ours, as the preset counts it -> ranx's.
METRICS = {"map": "map", "mrr": "mrr", "precision@5": "precision@5", "ndcg@10": "ndcg@10"}
SAME = str.maketrans("ᵃᵇᶜᵈᵉᶠ", "abcdef")


def random_runs(seed: int) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Labels, and three to six systems, each of a quality of its own."""
    draw = np.random.default_rng(seed)
    documents = [f"d{number}" for number in range(40)]
    qrels = {
        f"q{number}": dict.fromkeys(draw.choice(documents, draw.integers(1, 6), False).tolist(), 1)
        for number in range(30)
    }
    runs = {}
    for system in range(draw.integers(3, 7)):
        better = draw.random() * 0.3
        runs[f"s{system}"] = {
            query: {d: float(better * (d in right) + draw.random()) for d in documents}
            for query, right in qrels.items()
        }
    return qrels, runs


@pytest.mark.parametrize("seed", range(20))
def test_the_same_letters(seed: int) -> None:
    ranx = pytest.importorskip("ranx", reason="ranx is in the extra peers")
    qrels, runs = random_runs(seed)
    given = [ranx.Run(run, name=name) for name, run in runs.items()]
    report = ranx.compare(ranx.Qrels(qrels), given, [*METRICS.values()], stat_test="student",
                          max_p=0.05)  # fmt: skip
    labels = {query: list(right) for query, right in qrels.items()}
    lists = {
        name: {query: sorted(scores, key=scores.get)[::-1] for query, scores in run.items()}
        for name, run in runs.items()
    }
    found = rankmill.compare(labels, lists, [*METRICS], semantics="ranx", all_pairs=True,
                             tests=rankmill.Tests("t", correction="none"))  # fmt: skip
    rows = [line.split(" & ") for line in found.to_latex().splitlines() if " & " in line][1:]
    names = {row[0]: row[1] for row in rows}
    shown = 0
    for row in rows:
        for metric, cell in zip(METRICS, row[2:], strict=True):
            mark = re.search(r"\\textsuperscript\{(\w+)\}", cell)
            ours = {names[letter] for letter in (mark[1] if mark else "")}
            theirs = report.get_superscript_for_table(row[1], METRICS[metric]).translate(SAME)
            assert ours == {f"s{'abcdef'.index(letter)}" for letter in theirs}, (metric, row[1])
            value = found.values[metric][row[1]].value
            assert value == pytest.approx(report.results[row[1]][METRICS[metric]], rel=1e-6)
            shown += len(ours)
    assert shown
