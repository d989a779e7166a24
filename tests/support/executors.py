"""The same question put to every executor, with inputs of every format; see test_executors.py.

A row has a level of each of `FACTORS`. Its answer is a dict, without what tells of this run: it is
that of one thread with tables, to the last bit.
"""

from __future__ import annotations

import functools
import json
import random
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyarrow import ipc

import rankmill
import rankmill.spark
from covering import Row, product
from rankmill import Catalogue, Labels, parts

FACTORS = {
    "asked": ["evaluate", "compare", "gate"],
    "executor": ["one thread", "two threads", "parts", "command line", "command line in parts"],
    "format": [
        *("table", "pandas", "polars", "duckdb", "dict"),
        *("csv", "jsonl", "trec", "parquet", "arrow"),
    ],
    "memory": ["ample", "tiny"],
    "by": ["none", "column", "table", "derived"],
    "weights": ["none", "some"],
    "catalogue": ["none", "train and items"],
}
HELD = FACTORS["format"][:5]  # in memory: the command line cannot be given it
WITHOUT_COLUMNS = ("dict", "trec")
PARTS = 3
# What tells of this run, and not of the question.
WORKED = {"seconds", "checksum", "inputs", "source", "run", "explain"}


def legal(row: Row) -> bool:
    """Weights and columns need a format with columns; a gate has no parts."""
    line = row["executor"].startswith("command line")
    if row["executor"] == "command line in parts" and row["asked"] != "evaluate":
        return False
    if row["format"] in WITHOUT_COLUMNS and (row["by"] == "column" or row["weights"] == "some"):
        return False
    return not (
        (row["executor"] == "parts" and row["asked"] == "gate")
        or (line and row["format"] in HELD)
        or (row["weights"] == "some" and row["catalogue"] != "none")
    )


ALL = product(FACTORS, legal)
random.Random(1).shuffle(ALL)

# ------------------------------------------------------------------ inputs

ITEMS = [f"i{number}" for number in range(16)]


def sides(row: Row) -> dict[str, pa.Table]:
    """Labels, with weights where the row has some, and two systems, as lists."""
    tables = dict(made())
    if row["weights"] == "none":
        tables["labels"] = tables["labels"].drop_columns("w")
    return tables


@functools.cache
def made() -> dict[str, pa.Table]:
    """Labels and two systems as lists; some queries are on one side only, and many scores tie."""
    draw = random.Random(7)
    labels, old, new = [], [], []
    for number in range(60):
        query = f"q{number:02}"
        if number % 9:
            weight = [0.0, 0.5, 1.0, 3.0][number % 4]
            country = ["se", "dk", "no"][number % 3]
            items = draw.sample(ITEMS, draw.randint(1, 5))
            row = {"query": query, "item": items, "w": weight, "country": country}
            labels.append(row)
        for system, left in ((old, 7), (new, 5)):
            if number % left:
                items = draw.sample(ITEMS, draw.randint(1, 8))
                scores = sorted(draw.sample(range(32), len(items)), reverse=True)
                row = {"query": query, "item": items, "score": [one / 32 for one in scores]}
                system.append(row)
    draw.shuffle(old)
    each = zip(NAMES, (labels, old, new), strict=True)
    return {name: pa.Table.from_pylist(rows) for name, rows in each}


NAMES = ("labels", "old", "new")
CLASSES = pa.table({"query": [f"q{i:02}" for i in range(0, 60, 2)], "class": ["x", "y", "y"] * 10})
TRAIN = pa.table({"query": [f"q{i % 60:02}" for i in range(150)], "item": ITEMS[:15] * 10})
CATALOGUE = pa.table({"item": [*ITEMS, "never", "shown"]})
BY: dict[str, Any] = {"none": (), "column": "country", "table": CLASSES, "derived": "label_count"}


def long(table: pa.Table) -> pa.Table:
    rows = [
        row | dict(zip(lists, values, strict=True))
        for row in table.to_pylist()
        for lists in [[name for name in row if isinstance(row[name], list)]]
        for values in zip(*(row[name] for name in lists), strict=True)
    ]
    return pa.Table.from_pylist(rows)


def as_dict(table: pa.Table) -> dict[str, dict[str, float]]:
    """Query to items with gains or scores, as pytrec_eval takes it."""
    scores = table["score"].to_pylist() if "score" in table.column_names else None
    lists = zip(table["query"].to_pylist(), table["item"].to_pylist(), strict=True)
    return {
        query: dict(zip(items, scores[n] if scores else [1] * len(items), strict=True))
        for n, (query, items) in enumerate(lists)
    }


def as_trec(table: pa.Table, path: Path) -> Path:
    told = as_dict(table).items()
    if "score" in table.column_names:
        lines = [
            f"{query} Q0 {item} {rank} {score} run\n"
            for query, items in told
            for rank, (item, score) in enumerate(items.items(), 1)
        ]
    else:
        lines = [f"{query} 0 {item} 1\n" for query, items in told for item in items]
    path.with_suffix(".trec").write_text("".join(lines))
    return path.with_suffix(".trec")


def as_file(table: pa.Table, path: Path) -> Path:
    match path.suffix:
        case ".csv":
            pa_csv.write_csv(long(table), path)
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
        case ".parquet":
            pq.write_table(table, path, row_group_size=9)
        case ".arrow":
            rows = long(table)
            with ipc.new_file(path, rows.schema) as sink:
                sink.write_table(rows, max_chunksize=20)
    return path


def as_duckdb(table: pa.Table) -> Any:
    import duckdb

    rows = long(table)  # noqa: F841 (DuckDB finds it by its name)
    return duckdb.sql("SELECT * FROM rows")


def given(table: pa.Table, how: str, folder: Path, name: str) -> Any:
    """The table in one of the formats."""
    match how:
        case "table":
            return table
        case "pandas":
            return long(table).to_pandas()
        case "polars":
            import polars

            return polars.from_arrow(long(table))
        case "duckdb":
            return as_duckdb(table)
        case "dict":
            return as_dict(table)
        case "trec":
            return as_trec(table, folder / name)
    return as_file(table, folder / f"{name}.{how}")


def part_of(table: pa.Table, number: int) -> pa.Table:
    """The rows of the queries of a part."""
    mine = [zlib.crc32(one.encode()) % PARTS == number for one in table["query"].to_pylist()]
    return table.filter(pa.array(mine))


# ------------------------------------------------------------------ the question

RULES = [
    "map@3 drop <= 2% confidence 0.9",
    "map@3 >= 0.2",
    "ndcg@5 drop <= 0.3",
    "labels >= 50",
    "queries change <= 20%",
]


def metrics_of(row: Row) -> list[str]:
    """Metrics of each kind that such a row can have.

    Parts of a comparison hold values of queries; parts have no slices of gap, and little memory no
    interval of it.
    """
    means = ["map@3", "ndcg@5", "first_hit"]
    evaluates, in_parts = row["asked"] == "evaluate", "parts" in row["executor"]
    if row["weights"] == "some" or (in_parts and not evaluates):
        return means
    no_gap = row["by"] != "none" if in_parts else row["memory"] == "tiny" and not evaluates
    beside = ["novelty@3", *(["coverage@3", "gini@3"] if evaluates else [])]
    return [
        *means,
        *(["recall@4:median", "recall@4:micro"] if evaluates else []),
        *([] if no_gap else ["gap", "gap@2"]),
        *(beside if row["catalogue"] != "none" else []),
    ]


def rules_of(row: Row) -> list[str]:
    of_slices = {"column": "country", "table": "class"}
    if row["by"] not in of_slices:
        return RULES
    return [*RULES, f"map@3[{of_slices[row['by']]}=*] drop <= 9%"]


def options_of(row: Row) -> dict[str, Any]:
    options: dict[str, Any] = {"by": BY[row["by"]]}
    if row["asked"] == "gate":
        options["metrics"] = metrics_of(row)
    if row["catalogue"] != "none":
        options["catalogue"] = Catalogue(train=TRAIN, items=CATALOGUE)
    return options


def told(answer: Any) -> Any:
    """An answer without what tells of this run; numbers are those of its JSON."""

    def cut(one: Any) -> Any:
        if isinstance(one, dict):
            return {name: cut(value) for name, value in one.items() if name not in WORKED}
        return list(map(cut, one)) if isinstance(one, list) else one

    content = answer if isinstance(answer, dict) else answer.to_dict()
    found = cut(json.loads(json.dumps(content)))
    # Notes tell how an input was read, too.
    for one in (found, found.get("result"), found.get("comparison")):
        if one:
            one.pop("notes", None)
    return found


def asked_here(
    row: Row, inputs: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]], **more: Any
) -> Any:
    """Ask functions with the face of the package, and give what they answer."""
    labels, old, new = (inputs[name] for name in NAMES)
    if row["weights"] == "some":
        labels = Labels(labels, weight="w")
    more = options_of(row) | more
    function = functions[row["asked"]]
    if row["asked"] == "evaluate":
        return function(labels, new, metrics_of(row), **more)
    if row["asked"] == "compare":
        return function(labels, {"old": old, "new": new}, metrics_of(row), moved=2, **more)
    return function(labels, new, rules_of(row), baseline=old, **more)


HERE = {"evaluate": rankmill.evaluate, "compare": rankmill.compare, "gate": rankmill.gate}
SPARK = {name: getattr(rankmill.spark, name) for name in HERE}


@functools.cache
def _plain(title: str) -> Any:
    return asked_here(json.loads(title), sides(json.loads(title)), HERE, threads=1)


def plain(row: Row) -> Any:
    """The answer of one thread, with tables and much memory, to the metrics of the row."""
    some = {name: one for name, one in row.items() if name != "format"}
    for other in ({"memory": "ample"}, {"executor": "one thread"}):
        some |= other if metrics_of(some | other) == metrics_of(row) else {}
    return _plain(json.dumps(some))


def in_parts(row: Row, folder: Path, **more: Any) -> Any:
    """Answer from states of parts, which travelled as rows and were merged."""
    each = []
    for number in range(PARTS):
        tables = {name: part_of(one, number) for name, one in sides(row).items()}
        each.append(
            {
                name: given(one, row["format"], folder, f"{name}{number}")
                for name, one in tables.items()
            }
        )
    if row["asked"] == "compare":
        states = [
            asked_here(row, one, {"compare": _compare_part}, **more).to_table() for one in each
        ]
        read = [parts.ComparisonState.from_table(one) for one in states]
        return parts.compare_state(functools.reduce(parts.ComparisonState.merge, read[::-1]))
    rows = [
        asked_here(row, one, {"evaluate": parts.evaluate_part}, **more).to_row() for one in each
    ]
    state = functools.reduce(parts.State.merge, map(parts.State.from_row, rows[::-1]))
    if not state.two_passes:
        return state.result()
    again = [parts.second_pass(state, one["new"]) for one in each]
    among = {
        name: functools.reduce(lambda a, b: a.merge(b), [one[name] for one in again])
        for name in again[0]
    }
    return state.result(among)


def _compare_part(*given: Any, moved: int, **options: Any) -> Any:
    return parts.compare_part(*given, **options)


# ------------------------------------------------------------------ the command line


def words_of(row: Row, folder: Path, files: Mapping[str, Any]) -> list[str]:
    """What is typed after the name of the command."""
    if row["asked"] == "compare":
        words = [str(files[name]) for name in NAMES] + ["--moved", "2"]
    else:
        words = [str(files["labels"]), str(files["new"])]
    for one in metrics_of(row):
        words += ["-m", one]
    if row["asked"] == "gate":
        words += ["--baseline", str(files["old"])]
        for rule in rules_of(row):
            words += ["--rule", rule]
    words += ["--weight", "w"] if row["weights"] == "some" else []
    if row["by"] == "table":
        words += ["--by", str(as_file(CLASSES, folder / "classes.parquet"))]
    elif row["by"] != "none":
        words += ["--by", BY[row["by"]]]
    if row["catalogue"] != "none":
        for name, table in (("train", TRAIN), ("items", CATALOGUE)):
            words += [f"--{name}", str(as_file(table, folder / f"{name}.parquet"))]
    return words


def on_the_command_line(row: Row, folder: Path, run: Callable[..., Any]) -> Any:
    files = {name: given(one, row["format"], folder, name) for name, one in sides(row).items()}
    words = words_of(row, folder, files)
    if row["memory"] == "tiny":
        words += ["--memory", "1B"]

    def done(*typed: str) -> str:
        code, shown, error = run(*typed, "--quiet")
        assert code in ((0, 1) if row["asked"] == "gate" else (0,)), error
        return str(shown)

    if row["executor"] == "command line in parts":
        numbers = [(f"{i + 1}/{PARTS}", str(folder / f"state{i}.arrow")) for i in range(PARTS)]
        for part, state in numbers:
            done("evaluate", *words, "--part", part, "--state", state)
        states = [state for _, state in numbers]
        if "gap" in metrics_of(row):  # it takes a second pass
            merged = str(folder / "merged.arrow")
            done("merge", *states, "--state", merged)
            for part, state in numbers:
                done("evaluate", *words, "--part", part, "--second", merged, "--state", state)
            states = [merged, *states]
        return json.loads(done("merge", *states, "--format", "json"))
    if row["asked"] == "gate":
        done("gate", *words, "--json", str(folder / "verdict.json"))
        return json.loads((folder / "verdict.json").read_text())
    return json.loads(done(row["asked"], *words, "--format", "json"))


def answer(row: Row, folder: Path, run: Callable[..., Any]) -> Any:
    """What an executor answers."""
    if row["executor"].startswith("command line"):
        return on_the_command_line(row, folder, run)
    more: dict[str, Any] = {"threads": 2 if row["executor"] == "two threads" else 1}
    if row["memory"] == "tiny":
        more["memory"] = 1
    if row["executor"] == "parts":
        return in_parts(row, folder, **more)
    inputs = {name: given(one, row["format"], folder, name) for name, one in sides(row).items()}
    if row["asked"] == "evaluate":
        more["per_query"] = False
    return asked_here(row, inputs, HERE, **more)
