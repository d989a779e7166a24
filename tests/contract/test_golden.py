"""All values are the same to the bit as in November 2026 (golden.json), on dumps and MovieLens.

``python tests/contract/test_golden.py FOLDER`` writes the file again, in case a value was wrong;
the dumps go to FOLDER.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankmill
from flat import flat
from movielens_paths import BESIDE_CHECKOUT, ROOT, SCRIPT
from rankmill.semantics.presets import PRESETS
from strategies import some

GOLDEN = Path(__file__).parents[1] / "golden.json"
METRICS = [
    *("map", "map@12", "map@3", "first_hit", "first_hit@5", "precision@12", "recall", "recall@5"),
    *("hit@3", "f1@12", "rprec", "ndcg", "ndcg@5", "dcg", "dcg@5", "gap", "gap@5"),
]
DUMPS = {"dump": [], "dump-strings": ["--strings", "--shuffle"]}
MOVIELENS = {
    f"movielens-{recommender}-{gains}": (recommender, gains)
    for recommender in ("popularity", "itemcosine")
    for gains in ("binary", "linear", "exp")
}


def make_dump(name: str, folder: Path) -> Path:
    generate = [sys.executable, str(ROOT / "benchmarks" / "generate.py"), str(folder / name)]
    subprocess.run([*generate, "--users", "3000", *DUMPS[name]], check=True, capture_output=True)
    return folder / name


def make_movielens(folder: Path) -> Path:
    command = [sys.executable, str(SCRIPT), str(BESIDE_CHECKOUT), str(folder / "movielens")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "movielens"


def bits(labels: Path, predictions: Path, **options: Any) -> dict[str, Any]:
    """Return the numbers of every metric by default, and a hash of all values of every preset."""
    found: dict[str, Any] = {}
    for preset in PRESETS:
        each = {}
        try:
            whole = flat(
                rankmill.evaluate, labels, predictions, METRICS, semantics=preset, **options
            )
        except rankmill.RankmillError:  # some of them are refused: one by one
            whole = None
        for metric in METRICS:
            try:
                one = whole or flat(
                    rankmill.evaluate, labels, predictions, metric, semantics=preset, **options
                )
            except rankmill.RankmillError as error:
                each[metric] = type(error).__name__
                continue
            table = one.per_query
            values = table.column(metric).to_numpy() if metric in table.column_names else []
            numbers = [one[metric], one.standard_errors[metric], *one.bounds.get(metric, ())]
            shown = [number if number is None else float.hex(number) for number in numbers]
            each[metric] = [*shown, one.queries, digest(np.asarray(values, "<f8").tobytes())]
        found[preset] = digest(json.dumps(each).encode())
        if preset == "default":
            found |= each
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def bits_of_dump(name: str, folder: Path) -> dict[str, Any]:
    return bits(folder / "labels.parquet", folder / "predictions.parquet")


def bits_of_movielens(name: str, folder: Path) -> dict[str, Any]:
    recommender, gains = MOVIELENS[name]
    graded = {"gain": "rating", "gain_function": gains}
    options = {"binary": True} if gains == "binary" else graded
    predictions = folder / f"predictions_{recommender}.parquet"
    return bits(folder / "labels.parquet", predictions, **options)


@pytest.mark.rows(1)
@pytest.mark.parametrize("name", DUMPS)
def test_values_of_the_dump_are_those_of_before(name: str, tmp_path: Path) -> None:
    assert bits_of_dump(name, make_dump(name, tmp_path)) == json.loads(GOLDEN.read_text())[name]


@pytest.fixture(scope="module")
def movielens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not BESIDE_CHECKOUT.exists():
        pytest.skip("no MovieLens ratings beside the checkout")
    return make_movielens(tmp_path_factory.mktemp("movielens"))


@pytest.mark.rows(1)
@pytest.mark.parametrize("name", some(MOVIELENS, 4))
def test_values_of_movielens_are_those_of_before(name: str, movielens: Path) -> None:
    assert bits_of_movielens(name, movielens) == json.loads(GOLDEN.read_text())[name]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    golden = {name: bits_of_dump(name, make_dump(name, folder)) for name in DUMPS}
    made = make_movielens(folder)
    golden |= {name: bits_of_movielens(name, made) for name in MOVIELENS}
    GOLDEN.write_text(json.dumps(golden, indent=0) + "\n")
