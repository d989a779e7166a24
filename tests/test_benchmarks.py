"""The comparison and the scaling at a tiny size: they run to the end, and the rivals agree."""

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from xml.etree import ElementTree

import pyarrow.parquet as pq
import pytest

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import peers  # noqa: E402


def run_script(name: str, cache: Path, *arguments: object) -> tuple[str, dict]:
    """Run a benchmark in its own process; return what it printed, and its JSON."""
    found = cache / "found.json"
    drawing = cache / "drawing.svg"
    outputs = ("--json", found, "--svg", drawing)
    finished = subprocess.run(
        [sys.executable, str(BENCHMARKS / name), *map(str, (*arguments, *outputs))],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert ElementTree.parse(drawing).getroot().tag.endswith("svg")
    return finished.stdout, json.loads(found.read_text())


def installed(package: str) -> bool:
    try:
        return bool(metadata.version(package))
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module", params=[False, True], ids=["ints", "strings"])
def comparison(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, dict[str, dict]]:
    """One comparison of all programs: what it printed, and the rows by program."""
    arguments = ["--users=500", "--rounds=1", *["--strings"] * request.param]
    printed, found = run_script("peers.py", tmp_path_factory.mktemp("cache"), *arguments)
    return printed, {row["rival"]["name"]: row for row in found["rows"]}


@pytest.mark.parametrize("rival", peers.RIVALS, ids=lambda rival: rival.name)
def test_a_rival_agrees(rival: peers.Rival, comparison: tuple[str, dict[str, dict]]) -> None:
    printed, rows = comparison
    row = rows[rival.name]
    if not installed(rival.package):
        assert row["problem"] == f"{rival.package} is not installed"
        pytest.skip(f"{rival.package} (extra bench) is not installed")
    assert row["problem"] == ""
    assert row["users"] == 500
    assert row["seconds"] > 0
    # The peak is the program's own: Python and pyarrow or duckdb, not this process.
    assert 20e6 < row["peak_bytes"] < 2e9
    assert f"| {rival.label} (" in printed
    if rival is peers.FLOOR:
        assert row["value"] is None
    else:
        assert 0 < row["value"] < 1
        assert row["value"] == pytest.approx(rows["rankmill"]["value"], rel=1e-9)


def test_a_smaller_sample_is_named_and_compared_with_rankmill_at_its_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    small = peers.Rival("plain_python", "plain Python", "pyarrow", most=300)
    absent = peers.Rival("absent", "absent", "no-such-package-of-rankmill")
    monkeypatch.setattr(peers, "RIVALS", (peers.OURS, peers.FLOOR, small, absent))
    found = tmp_path / "found.json"
    assert peers.main(["--users=600", "--rounds=1", "--json", str(found)]) == 0
    rows = json.loads(found.read_text())["rows"]
    assert [(row["rival"]["name"], row["users"]) for row in rows] == [
        ("rankmill", 600),
        ("read_only", 600),
        ("absent", 600),
        ("rankmill", 300),
        ("plain_python", 300),
    ]
    assert rows[2]["problem"] == "no-such-package-of-rankmill is not installed"
    assert rows[4]["value"] == pytest.approx(rows[3]["value"], rel=1e-9)
    assert "| plain Python (" in capsys.readouterr().out


def test_scaling_of_shifted_copies(tmp_path: Path) -> None:
    arguments = ["--users=500,1000,3000", "--base=1000", "--rounds=1"]
    printed, found = run_script("scaling.py", tmp_path, *arguments)
    points = found["points"]
    assert [point["users"] for point in points] == [500, 1000, 3000]
    assert points[2]["value"] == pytest.approx(points[1]["value"], rel=1e-12)
    assert all(point["seconds"] > 0 and point["peak_bytes"] > 20e6 for point in points)
    assert "| 3,000 (3 copies) |" in printed
    copies = tmp_path / "rankmill" / "bench" / "3-copies-of-1000"
    parts = sorted(copies.rglob("*.parquet"))
    assert [part.relative_to(copies).parts[0] for part in parts] == (
        ["labels"] * 3 + ["predictions"] * 3
    )
    users = pq.read_table(copies / "labels", columns=["user_id"])["user_id"]
    assert len(users.unique()) == len(users)
    run_script("scaling.py", tmp_path, "--users=3000", "--base=1000", "--rounds=1", "--clean")
    assert not copies.exists()
