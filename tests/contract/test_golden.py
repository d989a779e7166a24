"""All values are the same to the bit as in November 2026 (golden.json), on dumps and MovieLens.

``pytest tests/contract/test_golden.py -m "" --update`` writes the file again, in case a value was
wrong or a preset is new. Without the ratings of MovieLens, their numbers stay.
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


def assert_golden(name: str, found: dict[str, Any], update: bool) -> None:
    """Each number and preset of the file is the same; test_presets.py misses those it lacks."""
    golden = json.loads(GOLDEN.read_text())
    if update:
        GOLDEN.write_text(json.dumps(golden | {name: found}, indent=0) + "\n")
        return
    of_name = golden[name]
    other = [one for one in of_name if found.get(one) != of_name[one]]
    todo = 'if it should change: pytest tests/contract/test_golden.py -m "" --update'
    assert not other, f"{todo}\n{ {one: (found.get(one), of_name[one]) for one in other} }"


@pytest.mark.rows(1)
@pytest.mark.parametrize("name", DUMPS)
def test_values_of_the_dump_are_those_of_before(name: str, tmp_path: Path, update: bool) -> None:
    assert_golden(name, bits_of_dump(name, make_dump(name, tmp_path)), update)


@pytest.fixture(scope="module")
def movielens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not BESIDE_CHECKOUT.exists():
        pytest.skip("no MovieLens ratings beside the checkout")
    return make_movielens(tmp_path_factory.mktemp("movielens"))


@pytest.mark.rows(1)
@pytest.mark.parametrize("name", some(MOVIELENS, 4))
def test_values_of_movielens_are_those_of_before(name: str, movielens: Path, update: bool) -> None:
    assert_golden(name, bits_of_movielens(name, movielens), update)
