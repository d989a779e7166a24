"""scripts/movielens.py: the split and the recommenders by hand, and the files by the oracle."""

from __future__ import annotations

import doctest
import itertools
import json
import math
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import oracle
import rankmill
from flat import flat
from movielens_paths import BESIDE_CHECKOUT, SCRIPT
from repository import SOURCE
from strategies import metric_names, some

METRICS = [
    *("map", "map@12", "map@5", "first_hit", "mrr@5", "precision@12", "precision@20"),
    *("recall", "recall@5", "hit", "hit@1", "f1@12", "rprec", "ndcg", "ndcg@5", "dcg", "dcg@5"),
    *("rbp", "rbp(p=0.5)@5", "map(rel=4)@12", "judged@12", "bpref", "bpref(rel=4)"),
    *("num_ret", "num_rel_ret", "set_p", "set_f", "set_map", "set_relative_p"),
    *("relative_p@5", "rprec_mult@0.5", "iprec@0.1", "iprec_avg", "auc", "bing", "err@5", "nerr"),
    *("q_measure", "g", "ndcg_rel", "rndcg", "bpm@5", "insq", "inst", "infap", "pair_accuracy"),
    *("unjudged@5", "rbp_residual", "num_rel", "graded_rbp", "rbp_resid", "unj@5"),
    *("user_coverage", "user_coverage@20"),
    *(
        "fbeta(beta=2)@5",
        "fallout@5",
        "mcc(items=9000)@5",
        "compat",
        "rbo@5",
        "kendall_tau",
        "sdcg(max=5)@5",
    ),
    *("nerr8(max=5)@5", "nerr9(max=5)@5", "nerr10(max=5)", "nerr11(max=5)"),
    *("dcg_jk@5", "ndcg_jk"),
    *("o_measure", "p_measure", "p_plus", "ncu_rb", "ncu_gu", "roc_auc"),
    *("gap", "gap@5", "auprc", "auprc_step@5", "recall_at_precision@0.1", "best_f1"),
    *("precision_at_recall@0.1", "best_f1_threshold@5"),
]
# A metric that is not among them comes with all that strategies give it.
_NAMED = {oracle.parse(metric)[0] for metric in METRICS}
METRICS += [name for name in metric_names((5,)) if oracle.parse(name)[0] not in _NAMED]

# User 1: the last of five is a label. User 2: of two ratings at the same time, the later row is the
# later one. User 3: the only rating is the label. User 7: the last two of ten, not in file order.
RATINGS = """userId,movieId,rating,timestamp
7,74,4.5,200
1,50,3.0,105
1,10,4.0,101
1,20,2.0,102
1,40,1.0,104
1,30,5.0,103
2,10,3.0,150
2,20,2.5,150
3,60,0.5,999
7,10,1.0,90
7,20,1.0,91
7,30,1.0,92
7,40,1.0,93
7,50,1.0,94
7,70,1.0,95
7,72,1.0,96
7,71,1.0,97
7,73,2.0,100
"""


def run_script(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def split(ratings: str, folder: Path) -> Path:
    path = folder / "ratings.csv"
    path.write_text(ratings)
    finished = run_script(path, folder / "out")
    assert finished.returncode == 0, finished.stderr
    return folder / "out"


def rows(path: Path) -> dict[int, dict[str, Any]]:
    return {row.pop("user_id"): row for row in pq.read_table(path).to_pylist()}


class TestByHand:
    @pytest.fixture
    def out(self, tmp_path: Path) -> Path:
        return split(RATINGS, tmp_path)

    def test_latest_fifth_are_labels(self, out: Path) -> None:
        assert rows(out / "labels.parquet") == {
            1: {"items": [50], "rating": [3.0]},
            2: {"items": [20], "rating": [2.5]},
            3: {"items": [60], "rating": [0.5]},
            7: {"items": [73, 74], "rating": [2.0, 4.5]},
        }

    def test_popularity_leaves_out_seen_items(self, out: Path) -> None:
        assert rows(out / "predictions_popularity.parquet") == {
            1: {"items": [50, 70, 71, 72], "scores": [1, 1, 1, 1]},
            2: {"items": [20, 30, 40, 50, 70, 71, 72], "scores": [2, 2, 2, 1, 1, 1, 1]},
            3: {"items": [10, 20, 30, 40, 50, 70, 71, 72], "scores": [3, 2, 2, 2, 1, 1, 1, 1]},
            7: {"items": [], "scores": []},
        }

    def test_item_cosine(self, out: Path) -> None:
        # Training columns over users (1, 2, 7): item 10 is (1, 1, 1), items 20 to 40 are (1, 0, 1),
        # the rest of user 7's are (0, 0, 1).
        to_10 = 1 / math.sqrt(3)
        to_20 = 1 / math.sqrt(2)
        between = 2 / math.sqrt(6)
        predictions = rows(out / "predictions_itemcosine.parquet")
        assert {user: row["items"] for user, row in predictions.items()} == {
            1: [50, 70, 71, 72],
            2: [20, 30, 40, 50, 70, 71, 72],
            3: [],
            7: [],
        }
        # The script rounds to 9 decimals.
        assert predictions[1]["scores"] == pytest.approx([to_10 + 3 * to_20] * 4, abs=6e-10, rel=0)
        assert predictions[2]["scores"] == pytest.approx(
            [between] * 3 + [to_10] * 4, abs=6e-10, rel=0
        )

    def test_ratings_are_no_gain_unless_asked_for(self, out: Path) -> None:
        # User 2's label is first among 7; user 1's too among 4; users 3 and 7 have no hit.
        paths = out / "labels.parquet", out / "predictions_popularity.parquet"
        found = rankmill.evaluate(*paths, metrics=["dcg"])
        assert found["dcg"] == (1 + 1) / 4
        assert "'rating' is not read" in found.notes[0]
        graded = flat(rankmill.evaluate, *paths, metrics=["dcg"], gain="rating")
        assert graded["dcg"] == (3.0 + 2.5) / 4


def test_twelve_at_most(tmp_path: Path) -> None:
    # User 9 has no training part. Of user 5's 25 ratings, the first 20 are for training.
    lines = [f"5,{100 + n},3.0,{n}" for n in range(25)]
    ratings = "\n".join(["userId,movieId,rating,timestamp", *lines, "9,1,3.0,0", ""])
    out = split(ratings, tmp_path)
    predicted = rows(out / "predictions_popularity.parquet")
    assert predicted[9]["items"] == list(range(100, 112))
    assert predicted[5]["items"] == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot read"),
        ("userId,movieId,rating\n1,2,3.0\n", "timestamp"),
        ("userId,movieId,rating,timestamp\n1,two,3.0,4\n", "two"),
        ("userId,movieId,rating,timestamp\n", "no ratings"),
    ],
    ids=["missing", "column missing", "no number", "empty"],
)
def test_bad_ratings(content: str | None, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    if content is not None:
        path.write_text(content)
    finished = run_script(path, tmp_path / "out")
    assert finished.returncode == 1
    assert finished.stderr.startswith("error: ")
    assert reason in finished.stderr
    assert "Traceback" not in finished.stderr
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chosen = os.environ.get("RANKMILL_MOVIELENS")
    ratings = Path(chosen) if chosen else BESIDE_CHECKOUT
    if not chosen and not ratings.exists():
        pytest.skip("no MovieLens ratings beside the checkout; RANKMILL_MOVIELENS can name a file")
    out = tmp_path_factory.mktemp("movielens")
    finished = run_script(ratings, out)
    assert finished.returncode == 0, finished.stderr
    return out


@pytest.mark.long
@pytest.mark.parametrize(
    ("recommender", "gains"),
    some(itertools.product(["popularity", "itemcosine"], [None, "linear", "exp"]), 4),
)
def test_real_ratings_equal_the_oracle(
    real: Path, recommender: str, gains: str | None, run_cli: Callable[..., Any]
) -> None:
    labels = {
        user: list(zip(row["items"], row["rating"], strict=True)) if gains else row["items"]
        for user, row in rows(real / "labels.parquet").items()
    }
    predictions_path = real / f"predictions_{recommender}.parquet"
    predictions = {
        user: list(zip(row["items"], row["scores"], strict=True))
        for user, row in rows(predictions_path).items()
    }
    expected = oracle.evaluate(labels, predictions, METRICS, gains or "linear")

    read: dict[str, Any] = {"gain": "rating", "gain_function": gains} if gains else {"binary": True}
    result = flat(
        rankmill.evaluate, real / "labels.parquet", predictions_path, metrics=METRICS, **read
    )
    assert result.queries == expected.queries == len(labels)
    assert result.audit == expected.audit
    assert result.metrics == pytest.approx(expected.metrics, rel=1e-12, abs=1e-12)
    for name, bounds in expected.bounds.items():
        assert result.bounds[name] == pytest.approx(bounds, rel=1e-12, abs=1e-12)
    assert result.standard_errors.keys() == expected.standard_errors.keys()
    for name, error in expected.standard_errors.items():
        wanted = None if error is None else pytest.approx(error, rel=1e-12, abs=1e-12)
        assert result.standard_errors[name] == wanted
    for name, values in expected.per_query.items():
        by_user = zip(
            result.per_query["user_id"].to_pylist(),
            result.per_query[name].to_pylist(),
            strict=True,
        )
        assert dict(by_user) == pytest.approx(values, rel=1e-12, abs=1e-12)

    options = [text for metric in METRICS for text in ("-m", metric)]
    for name, value in read.items():
        options += [f"--{name.replace('_', '-')}"] + ([] if value is True else [value])
    outcome = run_cli(
        "evaluate", real / "labels.parquet", predictions_path, *options, "--format", "json"
    )
    assert outcome.exit_code == 0, outcome.stderr
    assert json.loads(outcome.stdout)["metrics"] == result.metrics


@pytest.mark.long
def test_the_comparison_on_the_page_of_benchmarks_is_true(
    real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_cli: Callable[..., Any]
) -> None:
    if len(rows(real / "labels.parquet")) != 671:
        pytest.skip("other ratings than those of the page")
    page = (SOURCE / "docs" / "speed.md").read_text("utf-8")
    (found,) = re.findall(r"rankmill (compare ml/.*)\n```\n\n```text\n(.*?)```\n", page, re.S)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ml").symlink_to(real)
    outcome = run_cli(*shlex.split(found[0]))
    assert outcome.exit_code == 0, outcome.stderr
    shown = "".join(f"{line.rstrip()}\n" for line in outcome.stdout.splitlines())
    assert doctest.OutputChecker().check_output(found[1], shown, doctest.ELLIPSIS), shown
