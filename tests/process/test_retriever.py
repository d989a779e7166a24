"""The workflow on the page `rag`: it stops a retriever that is worse than the committed values."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from pages import FENCE, shell
from repository import SOURCE

PAGE = (SOURCE / "docs" / "rag.md").read_text("utf-8")


def write_lists(name: str, worse: int) -> None:
    """Write 200 queries, of which some miss their only document."""
    rows = ({"query_id": n, "items": [9] if n < worse else [1]} for n in range(200))
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


@pytest.mark.long
def test_the_workflow_stops_a_worse_retriever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml = pytest.importorskip("yaml")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    write_lists("qrels.jsonl", 0)
    write_lists("run.jsonl", 20)
    (baseline,) = (one for one in PAGE.split("`") if one.endswith("--per-query baseline.parquet"))
    assert "recall@20" in shell(baseline)
    (text,) = (body for _, body in FENCE.findall(PAGE) if body.startswith("# .github/"))
    (job,) = yaml.safe_load(text)["jobs"].values()
    install, retrieve, gate = (step["run"] for step in job["steps"] if "run" in step)
    assert (install, retrieve) == ("pip install ./rankmill", "python retrieve.py")
    for worse, word in ((20, "held"), (80, "regressed")):
        write_lists("run.jsonl", worse)
        shown = shell(
            f"{gate} --summary line.txt || echo code $?", GITHUB_STEP_SUMMARY=shlex.quote("s")
        )
        assert word in Path("line.txt").read_text()
        assert shown.rstrip().endswith("code 1") == (word == "regressed"), shown
