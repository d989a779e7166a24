"""Programs that users write, one file each: they run as they stand."""

from __future__ import annotations

import random
import runpy
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the programs name, in the working folder."""
    monkeypatch.chdir(tmp_path)
    draw = random.Random(3)
    users = list(range(200))
    right = [draw.sample(range(40), 3) for _ in users]
    labels = {"user_id": users, "items": right, "country": [draw.choice("abc") for _ in users]}
    labels["visits"] = [draw.randint(1, 9) for _ in users]
    pq.write_table(pa.table(labels), "labels.parquet")
    for name, kept in (("old", 1), ("new", 2)):
        lists = [own[:kept] + draw.sample([*{*range(40)} - {*own}], 10) for own in right]
        scores = [sorted((draw.random() for _ in one), reverse=True) for one in lists]
        run = {"user_id": users, "items": lists, "scores": scores}
        pq.write_table(pa.table(run), f"{name}.parquet")
    seen = [draw.sample(range(40), 4) for _ in users]
    pq.write_table(pa.table({"user_id": users, "items": seen}), "seen.parquet")
    genres = {"item_id": list(range(40)), "genre": [f"g{i % 5}" for i in range(40)]}
    pq.write_table(pa.table(genres), "items.parquet")
    Path("users.csv").write_text("user_id,age\n" + "".join(f"{u},{u % 3}0s\n" for u in users))
    topics = [(t, d) for t in range(1, 9) for d in range(6)]
    Path("qrels.txt").write_text("".join(f"{t} 0 d{d} {(t + d) % 4}\n" for t, d in topics))
    rows = [(t, d, 1 / (1 + (5 * d + t) % 7)) for t, d in topics]
    Path("bm25.run").write_text(
        "".join(f"{t} Q0 d{d} {(d + 1)} {1 / (d + 1):.4f} bm25\n" for t, d in topics)
    )
    Path("dense.csv").write_text(
        "topic,passage,cosine\n" + "".join(f"{t},d{d},{c:.4f}\n" for t, d, c in rows)
    )
    Path("stars.csv").write_text(
        "topic,passage,stars\n" + "".join(f"{t},d{d},{(t + d) % 4}\n" for t, d in topics)
    )
    Path("solution.csv").write_text("image_id,labels\n1,a b\n2,c\n")
    Path("submission.csv").write_text("image_id,labels\n1,a x b\n2,y c\n")
    Path("rankmill.toml").write_text(
        'labels = "labels.parquet"\nbaseline = "old"\nrules = ["map@12 drop <= 5%"]\n'
        '[systems]\nnew = "new.parquet"\nold = "old.parquet"\n'
    )


@pytest.mark.filterwarnings("ignore")  # those of Spark are not ours
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_program(program: Path, files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    if program.stem == "spark":
        pytest.importorskip("pyspark")
        if shutil.which("java") is None:
            pytest.skip("there is no Java")
    if program.stem == "frames":
        pytest.importorskip("pandas")
    runpy.run_path(str(program))


def test_there_are_twenty_and_they_are_short() -> None:
    assert len(PROGRAMS) >= 20
    for program in PROGRAMS:
        lines = program.read_text().splitlines()
        told = [line for line in lines if line and not line.startswith(("import", "from", '"""'))]
        assert 2 <= len(told) <= 10, program.name
