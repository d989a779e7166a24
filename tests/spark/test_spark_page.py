"""The programs and commands of docs/spark.md are run, and give what one machine gives."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankmill
from pages import FENCE
from repository import SOURCE

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

BLOCKS = [
    body
    for kind, body in FENCE.findall((SOURCE / "docs" / "spark.md").read_text("utf-8"))
    if kind == "text"
]
PROGRAMS = [body for body in BLOCKS if re.search(r"\bspark\.(?:read|table)\b", body)]
# What test_spark_processes.py runs: the script, its spark-submit, and an archive.
ELSEWHERE = ("# run.py", "spark-submit ", "python -m venv packed")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page names."""
    draw = random.Random(7)
    users, films = list(range(60)), [f"f{n}" for n in range(20)]

    def table(column: str = "items", count: int = 12, **more: Any) -> pa.Table:
        lists = [draw.sample(films, count) for _ in users]
        return pa.table({"user_id": users, column: lists, **more})

    falling = [sorted((draw.random() for _ in range(12)), reverse=True) for _ in users]
    country = [draw.choice(["de", "it"]) for _ in users]
    pairs = [(user, film) for user in users for film in draw.sample(films, 3)]
    written = {"labels": table(count=3, country=country)}
    written |= {name: table(scores=falling) for name in ("predictions", "old", "new")}
    had = {"user_id": [user for user, _ in pairs], "item_id": [film for _, film in pairs]}
    written["history"] = pa.table(had)
    for name, one in written.items():
        (tmp_path / name).mkdir()
        pq.write_table(one, tmp_path / name / "0.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_block_of_the_page_is_run_or_named() -> None:
    commands = [body for body in BLOCKS if body.startswith("rankmill spark ")]
    assert len(PROGRAMS) == 4
    assert len(commands) == 1
    rest = [body for body in BLOCKS if body not in (*PROGRAMS, *commands)]
    assert all(body.startswith(ELSEWHERE) for body in rest)


@pytest.mark.long
def test_the_programs_of_the_page_are_true(spark: Any, files: Path) -> None:
    films = pa.table({"item_id": [f"f{n}" for n in range(20)], "genre": ["a", "b"] * 10})
    spark.createDataFrame(films.to_pandas()).createOrReplaceTempView("films")
    users = pa.table({"user_id": list(range(60)), "age": ["old", "young"] * 30})
    names: dict[str, Any] = {"spark": spark, "users": users}
    for program in PROGRAMS:
        # The working folder of Spark is that of its Java.
        exec(program.replace('parquet("', f'parquet("{files}/'), names)
    whole = rankmill.evaluate("labels", "predictions", ["map@12", "gap"])
    assert names["result"].metrics == whole.metrics
    runs = {"old": "old", "new": "new"}
    asked = {"by": ["country", users], "moved": 10}
    assert names["found"] == rankmill.compare("labels", runs, ["map@12", "gap"], **asked)
    rule = "map@12 drop <= 1% confidence 0.95"
    local = rankmill.gate("labels", "new", rule, baseline="predictions")
    assert names["verdict"].exit_code == local.exit_code
    assert names["verdict"].result.metrics == local.result.metrics


def test_the_commands_of_the_page_run(spark: Any, files: Path, run_cli: Any) -> None:
    (text,) = (body for body in BLOCKS if body.startswith("rankmill spark "))
    sides = (f'{name} = "{files}/{name}"\n' for name in ("labels", "predictions"))
    (files / "rankmill.toml").write_text("".join(sides) + 'rules = ["map@12 >= 0.01"]\n')
    for command in text.replace("s3a://bucket/", f"{files}/").splitlines():
        outcome = run_cli(*command.split()[1:])
        assert outcome.exit_code == 0, outcome.stderr
    found = rankmill.Result.from_json((files / "result.json").read_text())
    assert found.metrics == rankmill.evaluate("labels", "predictions", "map@12").metrics
