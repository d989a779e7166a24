"""CONTRIBUTING and JOURNEY: links lead to what they name, and the example of a metric works."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import rankmill
from pages import FENCE
from repository import ROOT, SOURCE

CONTRIBUTING, JOURNEY = ROOT / "CONTRIBUTING.md", ROOT / "JOURNEY.md"
LINK = re.compile(r"\[`([\w.]+)`\]\((src/[\w/]+\.py)\)")

# ------------------------------------------------------------------ links to what is defined


@cache
def definitions(path: str) -> dict[str, type[ast.AST]]:
    """What a file defines: functions, classes, and methods as ``Class.method``."""
    found: dict[str, type[ast.AST]] = {}
    for node in ast.parse((ROOT / path).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = type(node)
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, ast.FunctionDef):
                found[f"{node.name}.{each.name}"] = type(each)
    return found


def broken(text: str) -> Iterator[str]:
    """The links of a page to Python files in which there is no such name, or that name nothing."""
    for name, path in LINK.findall(text):
        if not (ROOT / path).is_file() or name not in definitions(path):
            yield f"{name} in {path}"
    yield from re.findall(r"\]\([^)]*\.py[^)]*\)", LINK.sub("", text))


@pytest.mark.parametrize("path", [CONTRIBUTING, JOURNEY], ids=lambda path: path.stem)
def test_links_lead_to_what_they_name(path: Path) -> None:
    text = path.read_text("utf-8")
    assert len(LINK.findall(text)) > 12
    assert [*broken(text)] == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("[`Hits`](src/rankmill/matching/hits.py), [`match`](src/rankmill/matching/hits.py)", 0),
        ("[`Tally.add`](src/rankmill/engine/tally.py)", 0),
        ("[`Hit`](src/rankmill/matching/hits.py)", 1),
        ("[`Tally.substract`](src/rankmill/engine/tally.py)", 1),
        ("[`Hits`](src/rankmill/matching/hit.py)", 1),
        ("[hits](src/rankmill/matching/hits.py)", 1),
        ("[`Hits`](rankmill/matching/hits.py)", 1),
    ],
)
def test_broken_links_are_found(text: str, count: int) -> None:
    assert len([*broken(text)]) == count


def test_names_stand_in_the_files_that_are_named() -> None:
    """Such as `SETS` of `metrics/texts.py`."""
    text = " ".join(FENCE.sub("", CONTRIBUTING.read_text("utf-8")).split())
    named = re.findall(r"`@?([\w.]+)` (?:of|in|\() ?`([\w./]+\.py)`", text)
    assert len(named) > 15
    for name, path in named:
        (file,) = (base / path for base in (ROOT, SOURCE) if (base / path).is_file())
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", file.read_text("utf-8")), (name, path)


def test_links_to_headings_lead_to_headings() -> None:
    text = CONTRIBUTING.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.M)
    anchors = {one.lower().replace(" ", "-") for one in headings}
    assert {*re.findall(r"\]\(#([\w-]+)\)", text)} <= anchors


def test_the_glossary_has_each_noun_once_and_is_of_classes() -> None:
    text = CONTRIBUTING.read_text("utf-8").partition("\n## Glossary\n")[2].partition("\n## ")[0]
    rows = re.findall(rf"^\| {LINK.pattern} \| \S.* \|$", text, re.M)
    assert len(rows) == len(LINK.findall(text))  # one line each
    names = [name for name, _ in rows]
    assert len({*names}) == len(names)
    assert [name for name, path in rows if definitions(path)[name] is not ast.ClassDef] == []
    design = {"Job", "Input", "LabelIndex", "Block", "Tally", "State", "Aggregate", "Result"}
    assert design | {"Ragged", "Hits", "Metric", "Need", "Record"} <= {*names}


# ------------------------------------------------------------------ the example of a metric

K = 3
SCORED = """
import json, sys
import rankmill
labels, predictions, k = json.load(sys.stdin)
asked = f"fowlkes_mallows@{k}"
result = rankmill.evaluate(labels, predictions, asked)
traces = [rankmill.explain(labels, predictions, asked, query).value for query in labels]
print(json.dumps([rankmill.__file__, result[asked], result.per_query[asked].to_pylist(), traces]))
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_example_of_a_metric_works(tmp_path: Path) -> None:
    with pytest.raises(rankmill.UsageError, match="fowlkes_mallows"):  # else it is no example
        rankmill.metrics.parse("fowlkes_mallows@3")
    (diff,) = (
        body for kind, body in FENCE.findall(CONTRIBUTING.read_text("utf-8")) if kind == "diff"
    )
    assert diff.count("\n+++ ") == 1, "a metric is a diff of one file"
    ignored = shutil.ignore_patterns("__pycache__", "docs")
    shutil.copytree(SOURCE, tmp_path / "src" / "rankmill", ignore=ignored)
    alone = os.environ | {"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "NUMBA_DISABLE_JIT": "1"}
    applied = _run(["git", "apply", "-"], diff, tmp_path, alone)
    assert (applied.returncode, applied.stderr) == (0, "")

    draw = random.Random(25)
    labels = {f"q{q}": draw.sample("abcdefgh", draw.randint(1, 6)) for q in range(30)}
    predictions = {query: draw.sample("abcdefgh", draw.randint(1, 8)) for query in labels}
    alone |= {"PYTHONPATH": str(tmp_path / "src")}
    data = json.dumps([labels, predictions, K])
    scored = _run([sys.executable, "-c", SCORED], data, tmp_path, alone)
    assert scored.returncode == 0, scored.stderr
    imported, mean, values, traces = json.loads(scored.stdout)
    assert Path(imported).is_relative_to(tmp_path)
    wanted = [
        len({*predictions[query][:K]} & {*right}) / math.sqrt(K * len(right))
        for query, right in labels.items()
    ]
    assert 0 < min(one for one in wanted if one) < max(wanted)
    assert values == traces == pytest.approx(wanted, rel=1e-15)
    assert mean == pytest.approx(math.fsum(wanted) / len(wanted), rel=1e-15)


def _run(
    command: list[str], given: str, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        input=given,
        text=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
    )


# ------------------------------------------------------------------ other versions


@pytest.fixture(scope="module")
def versions() -> ModuleType:
    path = ROOT / "scripts" / "test_versions.py"
    spec = importlib.util.spec_from_file_location("versions_script", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = """[project]
dependencies = ["numpy>=2.0"]
optional-dependencies.test = [
    "moto[server]>=5.0", "torch==2.13.0", "torchmetrics>=1.9", "mypy>=1.14",
]
"""


def test_the_lowest_versions_are_the_bounds(versions: Any) -> None:
    assert versions.requirements("lowest", TABLE) == ["numpy==2.0", "moto[server]==5.0"]
    assert versions.requirements("newest", TABLE) == ["numpy>=2.0", "moto[server]>=5.0"]
    assert len(versions.requirements("lowest")) > 20
    with pytest.raises(SystemExit, match="has 'numpy'; expected a name"):
        versions.requirements("lowest", TABLE.replace(">=2.0", ""))


def test_a_run_ends_at_the_first_failure_and_in_time(versions: Any, tmp_path: Path) -> None:
    def python(code: str) -> list[str]:
        return [sys.executable, "-c", code]

    touched = python(f"open({str(tmp_path / 'touched')!r}, 'w')")
    assert not versions.done([python("raise SystemExit(1)"), touched], tmp_path)
    assert not versions.done([python("import time; time.sleep(60)"), touched], tmp_path, 0.2)
    assert not (tmp_path / "touched").exists()
    assert versions.done([touched], tmp_path)
    assert (tmp_path / "touched").exists()


def test_pythons_are_found_by_version(versions: Any) -> None:
    own = "{}.{}".format(*sys.version_info)
    assert versions.python_of("2.0") is None
    found = versions.python_of(own)
    if found is not None:  # else this one cannot make an environment
        told = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
        assert told.stdout.startswith(f"Python {own}.")
