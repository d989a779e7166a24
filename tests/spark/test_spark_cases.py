"""Some of the cases of `benchmarks/spark_cases.py`, in one session."""

from __future__ import annotations

from typing import Any

import pytest

from cases import CASES, Case

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

# Those that kill executors are in test_spark_cluster.py.
USUAL = [case for case in CASES if not case.harms]


def test_every_case_is_there_once() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 155


@pytest.mark.rows(6)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.long][: number % 10])
        for number, case in enumerate(USUAL)
    ],
)
def test_a_case_has_the_same_bits(spark: Any, case: Case) -> None:
    case.run(spark)
