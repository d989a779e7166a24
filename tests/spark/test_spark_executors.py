"""Spark gives the bits of one thread: what is asked x slices x weights x catalogue."""

from __future__ import annotations

from typing import Any

import pytest

from covering import Row, covering
from data import frame_of
from executors import ALL, BY, CATALOGUE, SPARK, TRAIN, asked_here, plain, sides, told
from rankmill import Catalogue

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

ROWS = [
    row
    for row in ALL
    if (row["executor"], row["format"], row["memory"]) == ("one thread", "table", "ample")
    # Evaluated with a table of slices, metrics of a catalogue are refused by name.
    and (row["asked"], row["by"]) != ("evaluate", "table" if row["catalogue"] != "none" else "")
]
FEW = covering(ROWS)


@pytest.mark.rows(4)
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=", ".join(row.values()), marks=[pytest.mark.long][: row not in FEW])
        for row in ROWS
    ],
)
def test_spark_gives_the_same_bits(spark: Any, row: Row) -> None:
    row = row | {"executor": "Spark in parts"} if row["asked"] == "evaluate" else row
    frames = {name: frame_of(spark, one) for name, one in sides(row).items()}
    more: dict[str, Any] = {"partitions": 3}
    if row["by"] == "table" and row["asked"] != "evaluate":  # else the driver reads it
        more["by"] = frame_of(spark, BY["table"])
    if row["catalogue"] != "none":
        train, items = (frame_of(spark, one) for one in (TRAIN, CATALOGUE))
        more["catalogue"] = Catalogue(train=train, items=items)
    found, wanted = told(asked_here(row, frames, SPARK, **more)), told(plain(row))
    assert found == wanted
