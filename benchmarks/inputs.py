"""Compare rankmill with rivals on inputs that are no Parquet: TREC, CSV, frames and dicts.

    python benchmarks/inputs.py [--rounds 5] [--only trec,csv,frames,dicts] [--folder FOLDER]

`trec` and `csv` time whole processes, in turn: a run of 6,980 queries x 1,000 documents, the size
of MS MARCO's development set, and a CSV file of the size of H&M's, 1,371,980 customers x 12
articles. `frames` and `dicts` time calls in one warm process: a million users x 12 items in frames,
and 100,000 queries x 100 items in dicts. The files are made on the first run. The script prints the
medians, their ratios and the promises, and fails if a rival computes another value.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path.home() / ".cache" / "rankmill" / "bench"
QUERIES, DEPTH = 6_980, 1_000
CUSTOMERS, ARTICLES = 1_371_980, 105_542
USERS = 1_000_000
DICT_QUERIES, DICT_DEPTH = 100_000, 100
TREC_METRICS = ["map", "recip_rank@10", "ndcg@10"]
CLOSE = 1e-9

# (race, rival) -> the largest allowed ratio of rankmill's seconds to those of the rival.
TARGETS = {
    ("trec", "pytrec_eval"): 0.15,
    ("trec", "ranx"): 0.1,
    ("trec", "ir_measures"): 0.1,
    ("csv", "pyarrow read_csv alone"): 1.5,
    ("csv", "DuckDB"): 0.5,
    ("frames", "pyarrow.Table"): 1.3,
    ("dicts", "pytrec_eval"): 0.1,
}


# ------------------------------------------------------------------ data


def make_trec(folder: Path) -> None:
    """Write run.trec and qrels.txt."""
    import numpy as np

    draw = np.random.default_rng(0)
    with (folder / "run.trec").open("w") as run, (folder / "qrels.txt").open("w") as qrels:
        for number in range(QUERIES):
            query = 1_048_578 - 7 * number
            documents = draw.choice(8_841_823, DEPTH, replace=False).tolist()
            scores = np.sort(draw.random(DEPTH) * 30)[::-1].tolist()
            run.writelines(
                f"{query} Q0 {document} {rank} {score:.6f} bm25\n"
                for rank, (document, score) in enumerate(zip(documents, scores, strict=True), 1)
            )
            relevant = {documents[int(draw.exponential(60)) % DEPTH], documents[number % 7 * 9]}
            qrels.writelines(f"{query} 0 {document} 1\n" for document in sorted(relevant))


def make_csv(folder: Path) -> None:
    """Write predictions.csv and labels.csv."""
    import numpy as np

    draw = np.random.default_rng(0)
    customers = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(CUSTOMERS)]
    numbers = draw.choice(900_000_000, ARTICLES, replace=False) + 100_000_000
    articles = np.array([f"0{number}" for number in numbers])
    order = draw.permutation(CUSTOMERS).tolist()
    with (folder / "predictions.csv").open("w") as file:
        file.write("customer_id,prediction\n")
        for start in range(0, CUSTOMERS, 100_000):
            some = order[start : start + 100_000]
            lists = articles[(draw.random((len(some), 12)) ** 3 * ARTICLES).astype(int)].tolist()
            file.writelines(
                f"{customers[customer]},{' '.join(items)}\n"
                for customer, items in zip(some, lists, strict=True)
            )
    with (folder / "labels.csv").open("w") as file:
        file.write("customer_id,article_id\n")
        for customer in draw.choice(CUSTOMERS, 69_000, replace=False).tolist():
            bought = articles[(draw.random(draw.integers(1, 6)) ** 3 * ARTICLES).astype(int)]
            file.writelines(f"{customers[customer]},{item}\n" for item in sorted(set(bought)))


# ------------------------------------------------------------------ whole processes


def trec_rankmill(folder: Path) -> list[float]:
    """Score the run with rankmill."""
    import rankmill

    files = str(folder / "qrels.txt"), str(folder / "run.trec")
    result = rankmill.evaluate(*files, TREC_METRICS, semantics="trec_eval", per_query=False)
    return [float(result[name] or 0) for name in TREC_METRICS]


def trec_pytrec_eval(folder: Path) -> list[float]:
    """Parse the files and score them with pytrec_eval; it has no recip_rank with a cutoff."""
    import pytrec_eval

    with (folder / "qrels.txt").open() as file:
        qrels = pytrec_eval.parse_qrel(file)
    with (folder / "run.trec").open() as file:
        run = pytrec_eval.parse_run(file)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"map", "recip_rank", "ndcg_cut.10"})
    scored = evaluator.evaluate(run).values()
    first = [one["recip_rank"] if one["recip_rank"] >= 0.1 else 0.0 for one in scored]
    others = [statistics.fmean(one[name] for one in scored) for name in ("map", "ndcg_cut_10")]
    return [others[0], statistics.fmean(first), others[1]]


def trec_ranx(folder: Path) -> list[float]:
    """Parse the files and score them with ranx."""
    from ranx import Qrels, Run, evaluate

    qrels = Qrels.from_file(str(folder / "qrels.txt"), kind="trec")
    run = Run.from_file(str(folder / "run.trec"), kind="trec")
    found = evaluate(qrels, run, ["map", "mrr@10", "ndcg@10"], make_comparable=True)
    return [float(found[name]) for name in ("map", "mrr@10", "ndcg@10")]


def trec_ir_measures(folder: Path) -> list[float]:
    """Parse the files and score them with ir_measures."""
    import ir_measures
    from ir_measures import AP, RR, nDCG

    qrels = ir_measures.read_trec_qrels(str(folder / "qrels.txt"))
    run = ir_measures.read_trec_run(str(folder / "run.trec"))
    measures = [AP, RR @ 10, nDCG @ 10]
    found = ir_measures.calc_aggregate(measures, qrels, run)
    return [float(found[measure]) for measure in measures]


def csv_rankmill(folder: Path) -> list[float]:
    """Score the CSV files with rankmill."""
    import rankmill

    files = str(folder / "labels.csv"), str(folder / "predictions.csv")
    return [float(rankmill.evaluate(*files, ["map@12"], per_query=False)["map@12"] or 0)]


def csv_read(folder: Path) -> list[float]:
    """Only read the predictions."""
    import pyarrow.csv

    pyarrow.csv.read_csv(str(folder / "predictions.csv"))
    return []


def csv_duckdb(folder: Path) -> list[float]:
    """Score the CSV files with DuckDB's SQL."""
    import duckdb

    sql = f"""
    with labels as (
      select customer_id, list(distinct article_id) as relevant
      from read_csv('{folder / "labels.csv"}', all_varchar = true) group by 1),
    ranked as (
      select customer_id, unnest(string_split(prediction, ' ')[:12]) as item,
             generate_subscripts(string_split(prediction, ' ')[:12], 1) as rank
      from read_csv('{folder / "predictions.csv"}', all_varchar = true)),
    hits as (
      select r.customer_id, min(r.rank) as rank, any_value(len(l.relevant)) as total
      from ranked r join labels l using (customer_id)
      where list_contains(l.relevant, r.item) group by r.customer_id, r.item),
    scored as (
      select customer_id, sum(place * 1.0 / rank) / least(12, any_value(total)) as ap
      from (select *, row_number() over (partition by customer_id order by rank) as place
            from hits) group by customer_id)
    select (select coalesce(sum(ap), 0) from scored) / (select count(*) from labels)
    """
    return [float(duckdb.sql(sql).fetchall()[0][0])]


PROCESSES: dict[str, dict[str, Callable[[Path], list[float]]]] = {
    "trec": {
        "rankmill": trec_rankmill,
        "pytrec_eval": trec_pytrec_eval,
        "ranx": trec_ranx,
        "ir_measures": trec_ir_measures,
    },
    "csv": {
        "rankmill": csv_rankmill,
        "pyarrow read_csv alone": csv_read,
        "DuckDB": csv_duckdb,
    },
}
MAKERS = {"trec": make_trec, "csv": make_csv}


def time_processes(race: str, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds of each contender, round by round; the first round does not count."""
    folder = folder / race
    if not folder.exists():
        folder.mkdir(parents=True)
        MAKERS[race](folder)
    seconds: dict[str, list[float]] = {name: [] for name in PROCESSES[race]}
    values: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        for name in list(seconds):
            command = [sys.executable, __file__, "--run", race, name, str(folder)]
            began = time.perf_counter()
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
            took = time.perf_counter() - began
            if ended.returncode:
                print(f"{race}: {name} is left out: {ended.stderr.strip().splitlines()[-1]}")
                del seconds[name]
                continue
            values[name] = json.loads(ended.stdout.splitlines()[-1])
            if number:
                seconds[name].append(took)
    check(race, values)
    return seconds


# ------------------------------------------------------------------ calls in one process


def race_frames(rounds: int) -> dict[str, list[float]]:
    """A million users in frames of several kinds."""
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    import rankmill

    draw = np.random.default_rng(0)

    def table(width: int) -> Any:
        items = pa.array(draw.integers(0, 100_000, USERS * width))
        offsets = pa.array(np.arange(0, USERS * width + 1, width, dtype=np.int32))
        lists = pa.ListArray.from_arrays(offsets, items)
        return pa.table({"user_id": draw.permutation(USERS), "items": lists})

    labels, predictions = table(3), table(12)
    wrapped = {"dtype": lambda kind: pd.ArrowDtype(kind)}
    makers: dict[str, Callable[[Any], Any]] = {
        "pyarrow.Table": lambda one: one,
        "Polars": pl.from_arrow,
        "pandas, Arrow columns": lambda one: one.to_pandas(types_mapper=wrapped["dtype"]),
        "pandas, NumPy cells": lambda one: one.to_pandas(),
        "pandas, list cells": lambda one: pd.DataFrame(one.to_pydict()),
    }
    sides = {name: (make(labels), make(predictions)) for name, make in makers.items()}
    return time_calls(
        "frames",
        {
            name: lambda both=both: [rankmill.evaluate(*both, ["map@12"])["map@12"]]
            for name, both in sides.items()
        },
        rounds,
    )


def race_dicts(rounds: int) -> dict[str, list[float]]:
    """100,000 queries of 100 documents in dicts of dicts."""
    import numpy as np
    import pytrec_eval

    import rankmill

    draw = np.random.default_rng(0)
    names = [f"d{number}" for number in range(100_000)]
    run, qrels = {}, {}
    for number in range(DICT_QUERIES):
        chosen = draw.integers(0, len(names), 2 * DICT_DEPTH)
        documents = list(dict.fromkeys(names[i] for i in chosen.tolist()))[:DICT_DEPTH]
        scores = draw.random(DICT_DEPTH, np.float32).tolist()  # pytrec_eval holds them as float32
        run[f"q{number}"] = dict(zip(documents, scores, strict=False))
        qrels[f"q{number}"] = dict.fromkeys(documents[:40:7], 1)
    asked = {"map", "recip_rank", "ndcg_cut.10"}

    def ours() -> list[float]:
        metrics = ["map", "recip_rank", "ndcg@10"]
        result = rankmill.evaluate(qrels, run, metrics, semantics="trec_eval")
        return [float(result[name] or 0) for name in metrics]

    def theirs() -> list[float]:
        scored = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run).values()
        names = ("map", "recip_rank", "ndcg_cut_10")
        return [statistics.fmean(one[name] for one in scored) for name in names]

    return time_calls("dicts", {"rankmill": ours, "pytrec_eval": theirs}, rounds)


def time_calls(
    race: str, calls: dict[str, Callable[[], list[float]]], rounds: int
) -> dict[str, list[float]]:
    """Seconds of each call, in turn; the first round does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    values = {}
    for number in range(rounds + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            values[name] = call()
            if number:
                seconds[name].append(time.perf_counter() - began)
    check(race, values)
    return seconds


CALLS = {"frames": race_frames, "dicts": race_dicts}


# ------------------------------------------------------------------ report


def check(race: str, values: dict[str, list[float]]) -> None:
    """End the script if two contenders computed other values."""
    first, *others = [one for one in values.values() if one]
    if any(abs(a - b) > CLOSE for one in others for a, b in zip(first, one, strict=True)):
        raise SystemExit(f"{race}: the values differ: {values}")


def report(race: str, seconds: dict[str, list[float]]) -> None:
    """Print the medians of a race, and their ratios."""
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    ours = next(iter(medians))
    print(f"\n| {race} | seconds | {ours} / this | promise |\n|---|---:|---:|---:|")
    for name, median in medians.items():
        target = TARGETS.get((race, name), TARGETS.get((race, ours)))
        ratio = medians[ours] / median
        if race == "frames":  # the frames are compared with the table
            ratio = median / medians[ours]
        shown = "" if name == ours or target is None else f"{target:g}"
        print(f"| {name} | {median:.3f} | {'' if name == ours else f'{ratio:.3f}'} | {shown} |")


def main() -> None:
    """Run the races that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="trec,csv,frames,dicts")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        race, name, folder = options.run
        print(json.dumps(PROCESSES[race][name](Path(folder))))
        return
    for race in options.only.split(","):
        if race in CALLS:
            report(race, CALLS[race](options.rounds))
        else:
            report(race, time_processes(race, options.folder, options.rounds))


if __name__ == "__main__":
    main()
