"""`rankmill warmup`: what it expects is right, and it sees what is wrong."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import oracle
from rankmill.cli import compilation, warmup
from rankmill.package import __version__
from repository import ROOT


def lists(name: str) -> dict[str, list[str]]:
    with open(warmup.DUMP / f"{name}.csv", newline="") as file:
        return {row["user"]: row["items"].split() for row in csv.DictReader(file)}


def test_the_expected_values_are_those_of_the_oracle() -> None:
    labels = lists("labels")
    predictions = {
        user: [*zip(cells[::2], map(float, cells[1::2]), strict=True)]
        for user, cells in lists("predictions").items()
    }
    found = oracle.evaluate(labels, predictions, [*warmup.GOLDEN])
    for metric, wanted in warmup.GOLDEN.items():
        assert found.metrics[metric] == pytest.approx(float.fromhex(wanted), rel=1e-14)
    assert {name: found.audit[name] for name in warmup.COUNTS} == warmup.COUNTS


@pytest.fixture(autouse=True)
def only_what_checks_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave compiling the rest to tests/process/test_warmup.py."""
    monkeypatch.setattr(compilation, "warmup", lambda: None)


def test_all_is_well_here(run: Any) -> None:
    code, shown, error = run("warmup")
    lines = shown.splitlines()
    assert (code, error) == (0, "")
    assert [line.split()[:2] for line in lines] == [["ok", name] for name in warmup.CHECKS]


def test_another_value_fails(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(warmup.GOLDEN, "map@12", "0x1p-1")
    code, shown, _ = run("warmup")
    words = [line.split()[0] for line in shown.splitlines()]
    assert (code, words) == (1, ["ok", "FAILED", "FAILED", "FAILED", "ok"])
    assert "map@12 is 0.19" in shown
    assert "expected 0.5: reinstall rankmill" in shown


def test_what_nobody_expects_is_a_line_and_others_follow(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(warmup.CHECKS, "kernels", lambda: {}["lost"])
    code, shown, error = run("warmup")
    words = [line.split()[0] for line in shown.splitlines()]
    assert (code, words, error) == (1, ["ok", "ok", "FAILED", "ok", "ok"], "")
    assert "KeyError('lost')" in shown


def test_another_count_fails(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(warmup.COUNTS, "queries_in_both", 29)
    code, shown, _ = run("warmup")
    assert code == 1
    assert "'queries_in_both': 28}, expected" in shown


@pytest.mark.skipif(os.geteuid() == 0 or os.name == "nt", reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_fails(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    told = warmup_of(sys.executable, NUMBA_CACHE_DIR=str(tmp_path))
    assert told.returncode == 1
    assert "set NUMBA_CACHE_DIR" in told.stdout


def test_no_cache_folder_fails(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from rankmill.kernels import jit

    monkeypatch.setattr(jit, "compiled_so_far", lambda: jit.Compiled(0, 0, []))
    code, shown, _ = run("warmup")
    assert code == 1
    assert "FAILED  cache     no folder can be written to" in shown
    assert "set NUMBA_CACHE_DIR to a folder" in shown


# ------------------------------------------------------------------ what is built

# Without a checkout in PYTHONPATH, which would hide that an installation lacks a file.
AWAY = {name: one for name, one in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `python -m build` makes of this checkout."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    python = environment(folder / "tools", "build")
    command = [python, "-m", "build", "--outdir", folder / "dist", source]
    subprocess.run(command, check=True, env=AWAY)
    return folder / "dist"


@pytest.mark.long
@pytest.mark.parametrize("name", ["{}-py3-none-any.whl", "{}.tar.gz"])
def test_what_is_built_installs_and_passes(name: str, built: Path, tmp_path: Path) -> None:
    installed = environment(tmp_path / "empty", str(built / name.format(f"rankmill-{__version__}")))
    told = warmup_of(installed, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert (told.returncode, told.stderr) == (0, "")
    assert len(re.findall("^ok ", told.stdout, re.M)) == len(warmup.CHECKS)
    command = [installed, "-m", "rankmill", "docs", "start"]
    shown = subprocess.run(command, check=True, capture_output=True, cwd=tmp_path, env=AWAY)
    assert shown.stdout.startswith(b"# ")


def environment(folder: Path, package: str) -> Path:
    """Make a virtual environment with a package, and return its Python."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    # Bytecode is left to what is imported: most of what numba and others bring never is.
    command = [python, "-m", "pip", "install", "--no-compile", *quiet, package]
    subprocess.run(command, check=True, env=AWAY)
    return python


def warmup_of(python: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the warm-up of an installation, away from the checkout."""
    return subprocess.run(
        [python, "-m", "rankmill", "warmup"],
        capture_output=True,
        text=True,
        cwd=Path(python).parent,
        env=AWAY | environment,
        check=False,
    )
