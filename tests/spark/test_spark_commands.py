"""`rankmill spark` with a rankmill.toml: what the commands of one machine say, and their codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data import tables

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

TEXT = """
labels = "labels.parquet"
metrics = ["map@3", "novelty@3"]
train = ["train/0.parquet", "train/1.parquet"]
drop_seen = true
by = "weight"
history = "runs"
rules = ["map@3 drop <= 1%", "novelty@3 >= 0.1"]
tags = { model = "a7" }
baseline = "old"
[systems]
old = "old.parquet"
new = "new.parquet"
"""


NAMES = "labels.parquet", "old.parquet", "new.parquet", "values"


@pytest.fixture
def shop(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of a nightly run; commands take the session of this process."""
    labels, old = tables("strings", "wide", "wide")
    new = tables("strings", "wide", "long", seed=3)[1]
    for name, table in {"labels": labels, "old": old, "new": new}.items():
        pq.write_table(table, tmp_path / f"{name}.parquet")
    (tmp_path / "train").mkdir()
    for part in range(2):
        queries = [f"id {number}" for number in range(part, 90, 2)]
        had = pa.table({"query": queries, "item": [f"id {len(one) % 12}" for one in queries]})
        pq.write_table(had, tmp_path / "train" / f"{part}.parquet")
    (tmp_path / "runs").mkdir()
    (tmp_path / "x.toml").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(text: str) -> Any:
    """What JSON tells, but for what files and DataFrames differ in."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            own = ("seconds", "run", "checksum", "source", "format", "files", "values_checksum")
            return {name: plain(one) for name, one in value.items() if name not in own}
        return [plain(one) for one in value] if isinstance(value, list) else value

    return plain(json.loads(text))


@pytest.mark.rows(1)
@pytest.mark.parametrize("part", ["evaluate", "compare", "gate"])
def test_a_file_says_the_same_to_spark(part: str, shop: Path, run: Any) -> None:
    file = shop / "x.toml"  # Java stays in the working folder that it began in
    # A file with rules names a history of gates, in which others record only if it is typed.
    more = [] if part == "gate" else ["--history", shop / "runs"]
    here = run(part, file, "--format", "json", *more)
    there = run("spark", part, file, "--format", "json", *more)
    assert there[0] == here[0] == 0, there[2]
    assert told(there[1]) == told(here[1])
    assert f'"source": "{shop / "new.parquet"}"' in there[1]
    runs = sorted((shop / "runs").iterdir())
    one, other = (pq.read_table(path).to_pylist()[0] for path in runs)
    assert len(runs) == 2
    assert one["tags"] == other["tags"]
    if part == "gate":
        assert there[2] == here[2]


@pytest.mark.parametrize("part", ["evaluate", "gate"])
def test_the_driver_logs_to_mlflow(part: str, shop: Path, run: Any) -> None:
    mlflow = pytest.importorskip("mlflow", reason="the extra mlflow is not installed")
    pytest.importorskip("alembic", reason="stores of MLflow are in the extra test-mlflow")
    store = f"sqlite:///{shop}/runs.db"
    for words in (["spark", part], [part]):
        code, _, error = run(*words, shop / "x.toml", "-o", shop / "x.json", f"--mlflow={store}")
        assert code == 0, error
    here, there = mlflow.MlflowClient(tracking_uri=store).search_runs(["0"])
    assert here.info.status == there.info.status == "FINISHED"
    assert any(name.endswith("map_at_3") for name in here.data.metrics)
    for name in ("metrics", "params"):
        one, other = (
            {
                key: value
                for key, value in getattr(of.data, name).items()
                if not key.endswith(("seconds", "source", "format", "files", "checksum"))
            }
            for of in (here, there)
        )
        assert one == other
    assert here.data.tags["model"] == there.data.tags["model"] == "a7"


@pytest.mark.long
@pytest.mark.parametrize("part", ["evaluate", "compare", "gate"])
def test_a_page_is_written_from_what_the_driver_has(part: str, shop: Path, run: Any) -> None:
    labels, old, new, _ = (shop / one for one in NAMES)
    plot = [] if part == "gate" else ["--plot", "x.svg"]
    given: list[Any] = [shop / "x.toml"]
    if part == "evaluate":
        given = [labels, new, "-m", "map@1..3", "--curve", "x.csv"]
    code, _, error = run("spark", part, *given, "--report", "x.html", *plot)
    assert code == 0, error
    assert "map@3" in (shop / "x.html").read_text()
    assert not plot or "<svg" in (shop / "x.svg").read_text()
    if part == "evaluate":
        assert (shop / "x.csv").read_text().count("map,") == 3
        three = [labels, old, new, "-m", "map@3", "--leaderboard", "y.html"]
        assert run("spark", part, *three)[0] == 0
        assert "new" in (shop / "y.html").read_text()


def test_a_gate_fails_by_its_exit_code_and_writes_all_outputs(shop: Path, run: Any) -> None:
    labels, old, new, values = (shop / f"{one}" for one in NAMES)
    both = [labels, new]
    files = ["--json", "x.json", "--junit", "x.xml", "--markdown", "x.md", "--summary", "x.txt"]
    code, _, error = run("spark", "gate", *both, "--rule", "map@3 >= 0.9", *files)
    assert (code, error.startswith("regressed: map@3")) == (1, True), error
    assert told((shop / "x.json").read_text())["word"] == "regressed"
    assert all((shop / f"x.{end}").stat().st_size for end in ("xml", "md", "txt"))
    # The folder of values by query is a baseline of the next night.
    kept = ["--per-query", values, "-o", "x.json"]
    assert run("spark", "evaluate", *both, "-m", "map@3", *kept)[0] == 0
    for baseline in (values, old):
        rule = ["--rule", "map@3 drop <= 1% confidence none", "--baseline", baseline]
        code, _, error = run("spark", "gate", labels, old, *rule)
        assert code in (0, 1), error
        assert (code == 0) == (baseline == old), error
    assert run("spark", "gate", *both, "--rule", "mapp >= 1")[0] == 2
    assert run("spark", "gate", labels, shop / "nowhere", "--rule", "map >= 0.5")[0] == 3


def test_values_of_a_comparison_are_a_folder(shop: Path, run: Any) -> None:
    labels, old, new, values = (shop / f"{one}" for one in NAMES)
    three = [labels, old, new, "-m", "map@3"]
    assert run("spark", "compare", *three, "--per-query", values)[0] == 0
    assert run("compare", *three, "--per-query", "values.parquet")[0] == 0
    found, wanted = (pq.read_table(one) for one in ("values", "values.parquet"))
    assert found.column_names == wanted.column_names
    assert len(found) == len(wanted)
    code, _, error = run("spark", "compare", *three[:2], "-m", "map@3")
    assert (code, "the PREDICTIONS of two systems" in error) == (2, True)
