"""Spark refuses what one machine refuses, by the same rows: tests/support/refusals.py."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import tells

import rankmill.spark
from data import frame_of
from flat import flat
from refusals import LABELS, REFUSALS, SCORED, Refusal

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours


@pytest.fixture(scope="module")
def frames(spark: Any) -> tuple[Any, Any]:
    return frame_of(spark, LABELS.slice(0, 9)), frame_of(spark, SCORED.slice(0, 9))


@pytest.mark.parametrize(
    "row", [one for one in REFUSALS if "spark" in one.ways], ids=lambda row: row.id
)
def test_by_spark(frames: tuple[Any, Any], row: Refusal) -> None:
    with pytest.raises(rankmill.RankmillError) as caught:
        flat(rankmill.spark.evaluate, *frames, row.metrics, partitions=1, **row.options)
    assert isinstance(caught.value, row.kind)
    message = tells(caught.value, [])
    for side in ("labels", "predictions"):
        message = message.replace(f"the DataFrame of {side}", side.upper())
    assert re.search(row.says, message, re.DOTALL), message
