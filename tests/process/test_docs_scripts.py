"""The scripts that pages name are run at a small size, or have a reason why not."""

from __future__ import annotations

import ast
import os
import random
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pages import FENCE
from repository import ROOT, SOURCE

PAGES = [ROOT / "README.md", ROOT / "JOURNEY.md", *sorted((SOURCE / "docs").glob("*.md"))]
NAMED = re.compile(r"(?:scripts|benchmarks)/\w+\.py|scripts/(?:demo|test-python|test-spark|test)\b")
# Script -> the test that runs it, as a process or function by function.
RUN_BY = {
    "scripts/demo": ("process/test_docs_scripts.py", "test_the_demo"),
    "scripts/messages.py": (
        "process/test_messages.py",
        "test_the_table_has_the_messages_with_all_words",
    ),
    "scripts/movielens.py": ("process/test_docs_scripts.py", "test_the_comparison_of_ratings"),
    "scripts/gallery_pictures.py": (
        "process/test_gallery.py",
        "test_the_pictures_are_those_of_today",
    ),
    "benchmarks/history.py": ("process/test_benchmarks.py", "test_a_history_is_timed"),
    "benchmarks/kaggle.py": (
        "adapters/kaggle/test_kaggle.py",
        "test_the_benchmark_agrees_with_its_rivals",
    ),
    "benchmarks/libraries.py": ("peers/test_libraries.py", "test_a_library_says_the_same"),
    "benchmarks/listwise.py": (
        "adapters/torch/test_loss.py",
        "test_the_benchmark_runs_and_both_sides_agree",
    ),
    "benchmarks/peers.py": ("process/test_benchmarks.py", "comparison"),
    "benchmarks/scaling.py": ("process/test_benchmarks.py", "test_scaling_of_shifted_copies"),
    "benchmarks/spark.py": ("process/test_docs_scripts.py", "test_the_benchmark_of_spark"),
    "benchmarks/stores.py": ("process/test_docs_scripts.py", "test_the_benchmark_of_stores"),
    "benchmarks/targets.py": (
        "process/test_benchmarks.py",
        "test_a_row_of_the_targets_is_measured_alone",
    ),
    "benchmarks/verdicts.py": ("process/test_benchmark_verdicts.py", "test_every_promise_is_kept"),
}
NOT_RUN = {
    "scripts/test": "it runs all of these tests",
    "scripts/test-spark": "it runs some of these tests",
    "scripts/test-python": "it runs some of these tests in an environment of its own",
    "scripts/test_versions.py": "it makes environments, and ./scripts/test --all runs it",
    "scripts/report_pictures.py": "it writes pictures of docs/report.md into the repository",
    "benchmarks/mutations.py": "it breaks the sources, and runs their tests for minutes",
    "benchmarks/bench_kernels.py": "it times a million lists of items",
}


def test_every_script_of_the_pages_is_run_or_has_a_reason() -> None:
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    named = {one for path in pages for one in NAMED.findall(path.read_text("utf-8"))}
    assert named <= {*RUN_BY, *NOT_RUN}
    assert [one for one in (*RUN_BY, *NOT_RUN) if not (ROOT / one).is_file()] == []
    assert not {*RUN_BY} & {*NOT_RUN}


@pytest.mark.parametrize("script", RUN_BY)
def test_the_test_of_a_script_is_there(script: str) -> None:
    path, name = RUN_BY[script]
    text = (ROOT / "tests" / path).read_text("utf-8")
    made = [one.name for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef)]
    assert name in made
    assert re.search(rf"\b{Path(script).stem}\b", text)


def ended(command: list[Any], **more: str) -> str:
    """What a process prints that ends well."""
    ran = subprocess.run(
        list(map(str, command)),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **more},
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.long
def test_the_demo(tmp_path: Path) -> None:
    """The first command of the README, in an environment that is there, and so needs no network."""
    for folder in ("scripts", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("benchmarks", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    script = tmp_path / "scripts" / "demo"
    script.write_text((ROOT / "scripts" / "demo").read_text("utf-8"))
    project = (ROOT / "pyproject.toml").read_text("utf-8").rstrip("\n")
    (tmp_path / ".venv" / ".rankmill").write_text(f"{tmp_path}\n{project}\n")
    for name, module in (("python", ""), ("rankmill", " -m rankmill")):
        program = tmp_path / ".venv" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{module} "$@"\n')
        program.chmod(0o755)
    shown = ended(["bash", script], XDG_CACHE_HOME=str(tmp_path))
    assert "Installing" not in shown
    assert [line.split()[0] for line in shown.splitlines() if re.match(r"(map|first|gap)", line)]
    assert shown.endswith("Next: source .venv/bin/activate; rankmill docs start\n")


def test_the_comparison_of_ratings(tmp_path: Path, monkeypatch: Any, run_cli: Any) -> None:
    """The commands of docs/speed.md about ratings, on ratings that are made up."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(1)
    rows = [
        (user, film, draw.randint(1, 5), draw.randrange(10**6))
        for user in range(60)
        for film in draw.sample(range(40), 20)
    ]
    lines = ["userId,movieId,rating,timestamp", *(",".join(map(str, row)) for row in rows)]
    Path("ratings.csv").write_text("\n".join(lines) + "\n")
    text = (SOURCE / "docs" / "speed.md").read_text("utf-8")
    (split,) = re.findall(r"`(scripts/movielens\.py \S+ \S+)`", text)
    script, *words = split.split()
    ended([sys.executable, ROOT / script, *words])
    blocks = (body for kind, body in FENCE.findall(text) if kind == "sh")
    (command,) = (body for body in blocks if "rankmill compare" in body)
    outcome = run_cli(*command.split()[1:])
    assert outcome.exit_code == 0, outcome.stderr
    heads = outcome.stdout.splitlines()[0]
    assert re.split(r" {2,}", heads)[3] == "from predictions_popularity"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    ended([sys.executable, ROOT / "benchmarks" / "generate.py", folder, "--users", "300"])
    return folder


@pytest.mark.long
def test_the_benchmark_of_stores(dump: Path) -> None:
    pytest.importorskip("aiohttp", reason="https:// needs the extra remote")
    script = [sys.executable, ROOT / "benchmarks" / "stores.py"]
    shown = ended([*script, "--folder", dump, "--delay", "0", "--repeat", "1"])
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == ["local", "s3", "http"]


@pytest.mark.long
def test_the_benchmark_of_spark(dump: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
    script = [sys.executable, ROOT / "benchmarks" / "spark.py"]
    shown = ended([*script, dump, "--rounds", "1", "--only", "first_hit@5"])
    assert "| map@12 and first_hit@5 | " in shown
