"""Compare rankmill with rivals on inputs that are no Parquet: TREC, CSV, frames and dicts.

    python benchmarks/inputs.py [--rounds 5] [--only trec,csv,long,shuffled,frames,dicts]
                                [--slow] [--trec-eval PROGRAM] [--folder FOLDER]

`trec`, `csv`, `long` and `shuffled` time whole processes, in turn: a run of 6,980 queries x 1,000
documents, the size of MS MARCO's development set; a CSV file of the size of H&M's, 1,371,980
customers x 12 articles; and 10 million rows of a user, an item and a score, adjacent or shuffled.
`frames` and `dicts` time calls in one warm process: a million users x 12 items in frames, and
100,000 queries x 100 items in dicts. The files are made on the first run. The script prints
medians, ratios and promises, and fails if a rival computes another value. Rivals that take half a
minute, ranx and ir_measures, need --slow; trec_eval needs the path of the program, built by its
Makefile.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

FOLDER = Path.home() / ".cache" / "rankmill" / "bench"
QUERIES, DEPTH = 6_980, 1_000
CUSTOMERS, ARTICLES = 1_371_980, 105_542
USERS = 1_000_000
DICT_QUERIES, DICT_DEPTH = 100_000, 100
LONG_USERS, LONG_DEPTH = 835_000, 12
ARROW = "pandas, Arrow columns"
TREC_METRICS = ["map", "recip_rank@10", "ndcg@10"]
CLOSE = 1e-9

# (race, rival) -> the largest allowed ratio of rankmill's seconds to those of the rival; of frames,
# the largest ratio of their seconds to those of the same frame in Arrow's columns.
TARGETS = {
    ("trec", "pytrec_eval"): 0.15,
    ("trec", "trec_eval 10"): 0.15,
    ("trec", "ranx"): 0.1,
    ("trec", "ir_measures"): 0.1,
    **{(race, "DuckDB"): 1.0 for race in ("csv", "long", "shuffled")},
    **{(race, "pandas.read_csv alone"): 1.5 for race in ("csv", "long", "shuffled")},
    ("frames", "pandas, NumPy cells"): 1.5,
    ("frames", "pandas, list cells"): 1.5,
    ("dicts", "pytrec_eval"): 0.2,
}
SLOW = ("ranx", "ir_measures")


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


def make_long(folder: Path, shuffled: bool = False) -> None:
    """Write predictions.csv, a row for each item of a user, and labels.csv."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    draw = np.random.default_rng(0)

    def rows(width: int) -> dict[str, Any]:
        users = np.repeat(draw.permutation(LONG_USERS), width)
        items = np.sort((draw.random((LONG_USERS, width)) ** 3 * 100_000).astype(int), axis=1)
        items += np.arange(width)  # no item twice
        return {"user_id": users, "item_id": draw.permuted(items, axis=1).ravel()}

    predictions, labels = rows(LONG_DEPTH), rows(3)
    predictions["score"] = draw.permutation(len(predictions["user_id"])) / 1e8
    order = draw.permutation(len(predictions["user_id"]))
    if shuffled:
        predictions = {name: one[order] for name, one in predictions.items()}
    for name, columns in (("predictions", predictions), ("labels", labels)):
        pyarrow.csv.write_csv(pa.table(columns), folder / f"{name}.csv")


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


def trec_trec_eval(folder: Path) -> list[float]:
    """Run trec_eval, which prints four digits; it has no recip_rank with a cutoff."""
    asked = [word for name in ("map", "ndcg_cut.10") for word in ("-m", name)]
    files = str(folder / "qrels.txt"), str(folder / "run.trec")
    subprocess.run([TREC_EVAL, *asked, "-m", "recip_rank", *files], check=True, capture_output=True)
    return []


def csv_rankmill(folder: Path) -> list[float]:
    """Score the CSV files with rankmill."""
    import rankmill

    files = str(folder / "labels.csv"), str(folder / "predictions.csv")
    return [float(rankmill.evaluate(*files, ["map@12"], per_query=False)["map@12"] or 0)]


def csv_pandas(folder: Path) -> list[float]:
    """Only read the predictions."""
    import pandas as pd

    pd.read_csv(folder / "predictions.csv")
    return []


def csv_pyarrow(folder: Path) -> list[float]:
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


def long_duckdb(folder: Path) -> list[float]:
    """Score the CSV files of long rows with DuckDB's SQL."""
    import duckdb

    sql = f"""
    with labels as (select distinct user_id, item_id from read_csv('{folder / "labels.csv"}')),
    totals as (select user_id, count(*) as total from labels group by 1),
    ranked as (
      select user_id, item_id, row_number() over (partition by user_id order by score desc) as rank
      from read_csv('{folder / "predictions.csv"}')),
    hits as (
      select user_id, rank, row_number() over (partition by user_id order by rank) as place
      from ranked join labels using (user_id, item_id) where rank <= 12),
    scored as (
      select user_id, sum(place * 1.0 / rank) / least(12, any_value(total)) as ap
      from hits join totals using (user_id) group by 1)
    select (select sum(ap) from scored) / (select count(*) from totals)
    """
    return [float(duckdb.sql(sql).fetchall()[0][0])]


TREC_EVAL = os.environ.get("TREC_EVAL", "")
ROWS: dict[str, Callable[[Path], list[float]]] = {
    "rankmill": csv_rankmill,
    "DuckDB": long_duckdb,
    "pandas.read_csv alone": csv_pandas,
    "pyarrow.csv.read_csv alone": csv_pyarrow,
}
PROCESSES: dict[str, dict[str, Callable[[Path], list[float]]]] = {
    "trec": {
        "rankmill": trec_rankmill,
        "pytrec_eval": trec_pytrec_eval,
        "trec_eval 10": trec_trec_eval,
        "ranx": trec_ranx,
        "ir_measures": trec_ir_measures,
    },
    "csv": {**ROWS, "DuckDB": csv_duckdb},
    "long": ROWS,
    "shuffled": ROWS,
}
MAKERS: dict[str, Callable[[Path], None]] = {
    "trec": make_trec,
    "csv": make_csv,
    "long": make_long,
    "shuffled": partial(make_long, shuffled=True),
}


def made(race: str, folder: Path) -> Path:
    """The folder of a race, with its files."""
    folder = folder / race
    if not folder.exists():
        folder.mkdir(parents=True)
        MAKERS[race](folder)
    return folder


def time_processes(
    race: str, folder: Path, rounds: int, slow: bool = False
) -> dict[str, list[float]]:
    """Seconds of each contender, round by round; the first round does not count."""
    folder = made(race, folder)
    left_out = (() if slow else SLOW) + (() if TREC_EVAL else ("trec_eval 10",))
    seconds: dict[str, list[float]] = {n: [] for n in PROCESSES[race] if n not in left_out}
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
        ARROW: lambda one: one.to_pandas(types_mapper=wrapped["dtype"]),
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
    what = "ratio to Arrow columns" if race == "frames" else f"{ours} / this"
    print(f"\n| {race} | seconds | {what} | target | reached |\n|---|---:|---:|---:|---|")
    for name, median in medians.items():
        ratio = median / medians[ARROW] if race == "frames" else medians[ours] / median
        target = TARGETS.get((race, name))
        cells = ["", ""] if target is None else [f"{target:g}", "yes" if ratio <= target else "no"]
        print(f"| {name} | {median:.3f} | {ratio:.3f} | {' | '.join(cells)} |")


def main() -> None:
    """Run the races that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="trec,csv,long,shuffled,frames,dicts")
    parser.add_argument("--slow", action="store_true")
    parser.add_argument("--trec-eval")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        race, name, folder = options.run
        print(json.dumps(PROCESSES[race][name](Path(folder))))
        return
    if options.trec_eval:
        global TREC_EVAL
        TREC_EVAL = os.environ["TREC_EVAL"] = options.trec_eval
    for race in options.only.split(","):
        if race in CALLS:
            report(race, CALLS[race](options.rounds))
        else:
            report(race, time_processes(race, options.folder, options.rounds, options.slow))


if __name__ == "__main__":
    main()
