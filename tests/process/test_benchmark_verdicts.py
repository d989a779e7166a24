"""The simulation of verdicts keeps its promises at a small size, and can break them."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[1].parent / "benchmarks"


@pytest.mark.long
def test_every_promise_is_kept():
    finished = subprocess.run(
        [sys.executable, str(FOLDER / "verdicts.py"), "--repetitions=10"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.stderr == ""
    rows = [line.split(" | ") for line in finished.stdout.splitlines()[2:]]
    points = {row[0].removeprefix("| ").partition(":")[0] for row in rows}
    assert points == {str(point) for point in range(1, 21)}
    assert [row for row in rows if row[-1] != "yes |"] == []
    assert finished.returncode == 0


@pytest.mark.small
def test_a_rate_that_is_off_is_seen(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from verdicts import Row
    from verdicts_of_cases import wrong

    assert Row(*wrong("", True, 1)).kept
    assert not Row(*wrong("", *[True] * 99, "")).kept
    assert Row("", 90, 2000, most=0.04).kept
    assert not Row("", 110, 2000, most=0.04).kept
    assert not Row("", 1, 2000, most=0.0).kept
    assert Row("", 1993, 2000, least=0.998).kept
    assert not Row("", 1900, 2000, least=0.998).kept
