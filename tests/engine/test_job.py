"""The job: its catalogue is not lost, and a request made again is not parsed again."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill.engine.cuts import job_of
from rankmill.engine.evaluate import score_systems
from rankmill.engine.job import Job, parse_job

pytestmark = pytest.mark.small


def test_a_job_is_not_done_without_its_catalogue() -> None:
    labels = rankmill.Labels({"a": [1]})
    items = rankmill.Catalogue(items=pa.table({"item_id": [1, 2]}))
    job = parse_job("coverage@1", labels, "default", items)
    runs = {"": rankmill.Predictions({"a": [1]})}
    with closing(score_systems(job, labels, runs, catalogue=items)) as systems:
        assert next(systems).result["coverage@1"] == 0.5
    with closing(score_systems(job, labels, runs)) as systems, pytest.raises(AssertionError):
        next(systems)


def test_a_request_made_again_is_the_same_job() -> None:
    """Each step of a training asks for the same; what may change in between is read again."""

    def job(metrics: Any = "map@12,mrr", semantics: Any = "trec_eval", **more: Any) -> Job:
        labels = rankmill.Labels(None, weight=more.pop("weight", None))
        options = {"by": (), "sums": (), "memory": 1 << 31, "keep_values": True, **more}
        by, sums = options.pop("by"), options.pop("sums")
        return job_of(metrics, labels, semantics, None, by, sums, **options)

    assert job() is job()
    assert job(["map@12", "mrr"]) is job(("map@12", "mrr"))
    assert job(weight="w") is job(weight="w")
    others = [job(weight="w"), job(semantics="default"), job(memory=1 << 30), job(by="a")]
    others += [job(keep_values=False), job(sums="x = map@12"), job("map@12")]
    assert len({id(one) for one in (job(), *others)}) == 8
    assert job(semantics={"rel": 2}).scope.rel == 2
    for wrong in ({"memory": True}, {"memory": "1"}, {"metrics": ["map@12", 1]}, {"metrics": []}):
        for _ in range(2):
            with pytest.raises(rankmill.UsageError):
                job(**wrong)


def test_a_file_of_metrics_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "metrics.txt"
    for name in ("map@12", "mrr"):
        path.write_text(name)
        assert [*rankmill.evaluate({1: [1]}, {1: [1]}, f"@{path}").metrics] == [name]
