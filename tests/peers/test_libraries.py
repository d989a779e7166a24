"""benchmarks/libraries.py on a few dumps; every metric has a library, or a test that is told."""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

import pytest

from rankmill.metrics.libraries import table
from rankmill.metrics.registry import REGISTRY, parse

sys.path.insert(0, str(Path(__file__).resolve().parents[1].parent / "benchmarks"))

import libraries
from lines import expect_lines
from oracle_lists import VALUES

# Of other releases: cornac 3 has HitRatio in its place.
BESIDE = {"cornac": {"PHR"}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", libraries.LIBRARIES)
def test_a_library_says_the_same(name: str) -> None:
    pytest.importorskip(libraries.LIBRARIES[name].module, exc_type=ImportError)
    assert libraries.hold(name, 3) == []


def test_every_metric_has_a_library_or_is_told_without_one() -> None:
    """Those of one list without either are held to the oracle, on random dumps."""
    held = {parse(text).name for one in libraries.LIBRARIES.values() for text in one.names}
    line = """UNHELD: "{name}": "the test that holds it to an answer found otherwise",
    or the names of LIBRARIES of a library that has it: "{name}": "its function there\""""
    told = held | libraries.UNHELD.keys()
    expect_lines("benchmarks/libraries.py", line, REGISTRY.keys() - VALUES.keys() | told, told)
    assert not held & libraries.UNHELD.keys()
    tests = {told.partition(",")[0] for told in libraries.UNHELD.values()}
    assert [name for name in tests if not (Path(__file__).parents[1] / name).exists()] == []


@pytest.mark.parametrize(
    "library", ["ranx", "recbole", "replay", "lenskit", "elliot", "cornac", "rectools"]
)
def test_each_name_that_is_told_is_run_in_its_library(library: str) -> None:
    rows = [one for one in libraries.LIBRARIES.values() if one.module == library]
    run = {re.split(r"[@.(]", name)[0] for one in rows for name in one.names.values()}
    run = {part for name in run for part in name.split(", ")}
    assert table("computed")[library].keys() - BESIDE.get(library, set()) <= run


def test_a_difference_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    one = libraries.LIBRARIES["trec_eval"]
    other = {"map@5": "P_5", "precision@5": "P_5"}
    monkeypatch.setitem(libraries.LIBRARIES, "wrong", dataclasses.replace(one, names=other))
    (told,) = libraries.hold("wrong", 1)
    assert told.startswith("wrong: map@5, dump 0, query '0'")
