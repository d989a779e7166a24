"""The other cases of ``hostile.py``: inputs of every kind but pairs of Parquet files."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import feather, ipc

import rankmill
from broken import ITEMS, one_of
from rankmill.nightly.record import run_table
from rankmill.nightly.runs import runs as gate_runs

QUERIES = 40
LONGEST = 6
STATE_METRICS = ("map@3", "gap", "recall@5", "err@5")
TEXT_METRICS = ("map@3", "ndcg@5", "recall")
LABELS, PREDICTIONS = "labels.parquet", "predictions.parquet"
STATE = "state"
"""Stands for a command that reads the row of a state: it has none, programs read it."""
RULES = ["map@3 drop <= 50%", "map@3 drop <= 0.5 confidence 0.9", "queries change <= 90%"]
RULES += ["queries_only_labelled change <= 50%", "gap drop <= 50%"]

Lists = dict[str, list[tuple[str, float]]]
Content = bytes | str | None
"""What stands at a path: a file, a symbolic link (str), or a folder (None)."""


class Input(NamedTuple):
    """Files, one of which is damaged, a command, and how it may end.

    ``sides`` are the files that a judge may read, with their kinds; None where nobody tells a wrong
    number.
    """

    kind: str
    damage: str
    files: dict[bytes, Content]
    damaged: bytes
    arguments: list[str]
    codes: tuple[int, ...] = (0, 3)
    sides: dict[str, tuple[str, str]] | None = None


# ------------------------------------------------------------------ files as they should be


def some_lists(draw: np.random.Generator, strings: bool, gains: bool) -> Lists:
    found: Lists = {}
    for query in range(QUERIES):
        items = draw.permutation(ITEMS)[: draw.integers(1, LONGEST + 1)].tolist()
        numbers = np.sort(draw.integers(1, 4 if gains else 1000, len(items)) / (1 if gains else 8))
        name = f"q{query:02}" if strings else str(query + 1000)
        prefix = "item-" if strings else ""
        found[name] = [
            (f"{prefix}{item}", one)
            for item, one in zip(items, numbers[::-1].tolist(), strict=True)
        ]
    return found


def rows_of(lists: Lists) -> list[tuple[str, str, float]]:
    return [(query, item, number) for query, pairs in lists.items() for item, number in pairs]


def delimited(delimiter: str) -> Callable[[Lists, str], bytes]:
    def written(lists: Lists, number: str) -> bytes:
        lines = [delimiter.join(("query_id", "item_id", number))]
        lines += [delimiter.join((q, i, repr(n))) for q, i, n in rows_of(lists)]
        return ("\n".join(lines) + "\n").encode()

    return written


def wide_cells(lists: Lists, number: str) -> bytes:
    lines = [f"query_id,items,{number}s"]
    for query, pairs in lists.items():
        cells = json.dumps([i for i, _ in pairs]), json.dumps([n for _, n in pairs])
        lines.append(",".join([query, *('"' + one.replace('"', '""') + '"' for one in cells)]))
    return ("\n".join(lines) + "\n").encode()


def trec(lists: Lists, number: str) -> bytes:
    if number == "gain":
        lines = [f"{q} 0 {i} {n:g}" for q, i, n in rows_of(lists)]
    else:
        lines = [f"{q} Q0 {i} 1 {n!r} tag" for q, i, n in rows_of(lists)]
    return ("\n".join(lines) + "\n").encode()


def json_lines(lists: Lists, number: str) -> bytes:
    rows = [
        {"query_id": q, "items": [i for i, _ in pairs], f"{number}s": [n for _, n in pairs]}
        for q, pairs in lists.items()
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def json_by_query(lists: Lists, number: str) -> bytes:
    whole = int if number == "gain" else float
    return json.dumps({q: {i: whole(n) for i, n in pairs} for q, pairs in lists.items()}).encode()


def table_of(lists: Lists, number: str, wide: bool = True) -> pa.Table:
    if wide:
        return pa.table(
            {
                "query_id": list(lists),
                "items": [[i for i, _ in pairs] for pairs in lists.values()],
                f"{number}s": [[n for _, n in pairs] for pairs in lists.values()],
            }
        )
    queries, items, numbers = zip(*rows_of(lists), strict=True)
    return pa.table({"query_id": queries, "item_id": items, number: numbers})


def stored(write: Callable[[pa.Table, Any], None]) -> Callable[[Lists, str], bytes]:
    def written(lists: Lists, number: str) -> bytes:
        sink = io.BytesIO()
        # The number of queries chooses nothing: half of the files are long by their first item.
        write(table_of(lists, number, wide=len(next(iter(lists.values()))) % 2 == 0), sink)
        return sink.getvalue()

    return written


def write_ipc(kind: Any) -> Callable[[pa.Table, Any], None]:
    def write(table: pa.Table, sink: Any) -> None:
        with kind(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=16)

    return write


def write_feather(table: pa.Table, sink: Any) -> None:
    feather.write_feather(table, sink, compression="zstd", chunksize=16)


FORMATS: dict[str, tuple[str, Callable[[Lists, str], bytes]]] = {
    "Arrow file": ("arrow", stored(write_ipc(ipc.new_file))),
    "Arrow stream": ("arrows", stored(write_ipc(ipc.new_stream))),
    "Feather": ("feather", stored(write_feather)),
    "CSV": ("csv", delimited(",")),
    "CSV, wide": ("csv", wide_cells),
    "TSV": ("tsv", delimited("\t")),
    "TREC": ("trec", trec),
    "JSON Lines": ("jsonl", json_lines),
    "JSON by query": ("json", json_by_query),
}
"""Kind of file -> its suffix, and what writes lists with their numbers as its bytes."""
BINARY = ("Arrow file", "Arrow stream", "Feather")
NUMBERS = {"labels": "gain", "predictions": "score"}
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda raw: gzip.compress(raw, mtime=0),
    "zst": lambda raw: pa.compress(raw, "zstd", asbytes=True),
}


def parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


class Usual(NamedTuple):
    """Inputs without damage that many cases share."""

    labels: bytes
    predictions: bytes
    result: bytes
    per_query: bytes
    runs: dict[str, bytes]
    state: bytes


@cache
def usual() -> Usual:
    """Make them once; the same in each process, so that a case can be repeated."""
    draw = np.random.default_rng(0)
    labels = table_of(some_lists(draw, True, True), "gain")
    predictions = table_of(some_lists(draw, True, False), "score")
    found = rankmill.evaluate(labels, predictions, ["map@3", "gap"], per_query=True)
    found = replace(found, seconds=0.5)
    runs = {}
    for day in (1, 2, 3):
        with mock.patch.object(gate_runs.secrets, "token_hex", lambda size: "ab" * size):
            run = run_table(found, time=datetime(2026, 1, day, tzinfo=UTC))
        runs[f"{run['run'][0]}.parquet"] = parquet(run)
    state = rankmill.parts.evaluate_part(labels, predictions, STATE_METRICS)
    row = parquet(pa.Table.from_pylist([state.to_row()]))
    result = json.dumps(found.to_dict()).encode()
    return Usual(parquet(labels), parquet(predictions), result, parquet(found.per_query), runs, row)


# ------------------------------------------------------------------ damage

TOKENS = [
    *(b"\\ud800", b"1e-320", b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 25, b"9" * 5000),
    *(b"-1", b"0", b"18446744073709551616", b"9223372036854775807", b"null", b"true", b"{}"),
    *(b"[]", b"[" * 100_000, b'{"a":' * 3000, b"[" * 500 + b"]" * 500, b'"', b'""', b"'", b"\0"),
    *(b"\xff", b"\xed\xa0\x80", b"\r", b"\r\n\r\n", b"\n" * 3000, b"," * 60_000, b"\t", b" "),
    *(b"\xef\xbb\xbf", b"\xff\xfe", "é\u202e".encode(), b"# a comment\n", b"{", b"]", b"\\"),
    *(b"\x1b[31m", b"${HOME}", b"{date}", b"1_000", b"0x10", b"1.5.2", b"-", b"\n[a]\n[a]\n"),
]
TEXT_DAMAGES = {"none": 1, "flip": 3, "cut": 1, "splice": 3, "token": 6, "value": 6, "name": 1}
BINARY_DAMAGES = {"none": 1, "flip": 8, "cut": 2, "splice": 3, "token": 1, "name": 2}
NAMES = (b"query_id", b"item_id", b"items", b"user_id", b"score", b"gain", b"map@3", b"metrics")
VALUES: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        1e-320,
        1e308,
        10**25,
        10**400,
        2**63,
        "",
        "\ud800",
        "x",
        [],
        [[]],
        {},
        {"a": 1},
    ),
    *([None], [1, "a"], float("nan"), float("inf"), 2**53 + 1, "9" * 5000, "NaN", "1e999"),
]


def damaged(draw: np.random.Generator, damage: str, whole: bytes) -> bytes:
    found = bytearray(whole)
    if damage == "none":
        return whole
    place = int(draw.integers(len(found))) if found else 0
    length = min(len(found) - place, int(draw.integers(1, 40)))
    if damage == "flip":
        found[place] ^= 1 << int(draw.integers(8))
    elif damage == "cut":
        del found[place:]
    elif damage == "splice":
        source = int(draw.integers(len(found)))
        found[place : place + length * int(draw.integers(2))] = whole[source : source + length]
    elif damage == "token":
        found[place:place] = TOKENS[draw.integers(len(TOKENS))]
    elif damage == "name":
        # A name that is not UTF-8, or that another column has, of the same length.
        there = [name for name in NAMES if name in whole]
        if there:
            name = there[draw.integers(len(there))]
            other = name[:-1] + b"\xff" if draw.random() < 0.7 else there[0]
            number = int(draw.integers(1, 4))
            return whole.replace(name, other, number if draw.random() < 0.5 else -1)
    elif damage == "value":
        return with_value(draw, whole)
    return bytes(found)


def with_value(draw: np.random.Generator, whole: bytes) -> bytes:
    """The text with one value replaced: of a JSON document, else a field of a line."""
    try:
        told = json.loads(whole)
    except ValueError:
        lines = whole.splitlines(keepends=True)
        number = int(draw.integers(len(lines)))
        try:
            lines[number] = replaced(draw, json.loads(lines[number])) + b"\n"
        except ValueError:
            lines[number] = with_field(draw, lines[number])
        return b"".join(lines)
    return replaced(draw, told)


def with_field(draw: np.random.Generator, line: bytes) -> bytes:
    blanks = [one for one in (b",", b"\t", b" ", b"=") if one in line]
    blank = blanks[0] if blanks else b"\n"
    fields = line.split(blank)
    fields[draw.integers(len(fields))] = TOKENS[draw.integers(len(TOKENS))]
    return blank.join(fields)


def replaced(draw: np.random.Generator, told: Any) -> bytes:
    """JSON with one of its values replaced by a hostile one."""
    places: list[tuple[Any, Any]] = []

    def walk(one: Any) -> None:
        for key in one if isinstance(one, dict) else range(len(one)):
            places.append((one, key))
            if isinstance(one[key], dict | list):
                walk(one[key])

    if not isinstance(told, dict | list) or not told:
        return json.dumps(VALUES[draw.integers(len(VALUES))]).encode()
    walk(told)
    # A place of the top is drawn as often as one below: there are few of them.
    if draw.random() < 0.3:
        places = [place for place in places if place[0] is told]
    parent, key = places[draw.integers(len(places))]
    parent[key] = VALUES[draw.integers(len(VALUES))]
    found = json.dumps(told)
    if draw.random() < 0.05:
        deep = "[" * 2000 + "]" * 2000
        return found.replace(json.dumps(parent[key]), deep, 1).encode()
    return found.encode("utf-8", "surrogatepass")


# ------------------------------------------------------------------ the kinds


def of_format(draw: np.random.Generator, kind: str) -> Input:
    """Labels and predictions in a format, perhaps compressed, and a command that reads them."""
    suffix, write = FORMATS[kind]
    strings = bool(draw.random() < 0.5)
    lists = {side: some_lists(draw, strings, side == "labels") for side in NUMBERS}
    written = {side: write(lists[side], number) for side, number in NUMBERS.items()}
    side = ("labels", "predictions")[draw.integers(2)]
    damage = one_of(draw, BINARY_DAMAGES if kind in BINARY else TEXT_DAMAGES)
    packed = "" if kind in BINARY or draw.random() < 0.7 else ("gz", "zst")[draw.integers(2)]
    inner = not packed or draw.random() < 0.5
    if inner:
        written[side] = damaged(draw, damage, written[side])
    if packed:
        written = {one: COMPRESSED[packed](raw) for one, raw in written.items()}
        kind = f"{kind}, {packed}" if kind == "CSV" else kind
    if not inner:
        damage = damage if damage in ("none", "flip", "cut", "splice") else "flip"
        written[side] = damaged(draw, damage, written[side])
    names = {one: f"{one}.{suffix}{packed and '.'}{packed}" for one in NUMBERS}
    files: dict[bytes, Content] = {names[one].encode(): raw for one, raw in written.items()}
    threads = ["--threads", str(draw.integers(1, 3))]
    scored = [*names.values(), *(word for m in TEXT_METRICS for word in ("-m", m))]
    command = one_of(draw, {"evaluate": 14, "plan": 1, "head": 2, "convert": 2, "explain": 1})
    sides = {one: (kind.removesuffix(f", {packed}"), names[one]) for one in NUMBERS}
    arguments = {
        "evaluate": ["evaluate", *scored, *threads, "--format", "json"],
        "plan": ["evaluate", *scored, "--plan", "--format", "json"],
        "head": ["head", names[side], f"--{side}", "--format", "json"],
        "convert": ["convert", names[side], "converted.parquet", f"--{side}"],
        "explain": [
            "explain",
            *names.values(),
            "-m",
            "map@3",
            "--query-id",
            *[*lists[side]][:1],
        ],
    }[command]
    judged = sides if command == "evaluate" else None
    return Input(kind, damage, files, names[side].encode(), arguments, sides=judged)


def with_usual() -> dict[bytes, Content]:
    found = usual()
    return {LABELS.encode(): found.labels, PREDICTIONS.encode(): found.predictions}


def json_baseline(draw: np.random.Generator, kind: str) -> Input:
    damage = one_of(draw, TEXT_DAMAGES)
    name = b"baseline.json"
    files = with_usual() | {name: damaged(draw, damage, usual().result)}
    arguments = [
        "gate",
        LABELS,
        PREDICTIONS,
        "--baseline",
        name.decode(),
        *(f"--rule={one}" for one in RULES),
    ]
    return Input(kind, damage, files, name, [*arguments, "--format", "json"], (0, 1, 2, 3))


def table_baseline(draw: np.random.Generator, kind: str) -> Input:
    damage = one_of(draw, BINARY_DAMAGES)
    name = b"baseline.parquet"
    files = with_usual() | {name: damaged(draw, damage, usual().per_query)}
    arguments = [
        "gate",
        LABELS,
        PREDICTIONS,
        "--baseline",
        name.decode(),
        *(f"--rule={one}" for one in RULES),
    ]
    return Input(kind, damage, files, name, [*arguments, "--format", "json"], (0, 1, 2, 3))


def history(draw: np.random.Generator, kind: str) -> Input:
    """Three runs; one is damaged, or a folder or a link that leads nowhere stands among them."""
    damage = one_of(draw, BINARY_DAMAGES | {"folder": 1, "loop": 1, "text": 1})
    files: dict[bytes, Content] = with_usual()
    runs = {f"runs/{name}".encode(): raw for name, raw in usual().runs.items()}
    name = list(runs)[draw.integers(len(runs))]
    whole = runs[name]
    if damage in ("folder", "loop", "text"):
        name = name if draw.random() < 0.5 else b"runs/other.parquet"
        link = name.decode().removeprefix("runs/")
        runs[name] = {"folder": None, "loop": link, "text": b"no Parquet"}[damage]
    else:
        if draw.random() < 0.3:  # as another program would write it, without the summary
            table = pq.read_table(pa.BufferReader(whole))
            whole = parquet(table.replace_schema_metadata(None))
        runs[name] = damaged(draw, damage, whole)
    command = ["history", "runs", "--format", "json"]
    codes: tuple[int, ...] = (0, 3)
    if draw.random() < 0.4:
        how = ("last", "ago:1d", "median:3")[draw.integers(3)]
        command = [
            "gate",
            LABELS,
            PREDICTIONS,
            "--baseline",
            how,
            "--history",
            "runs",
            *(f"--rule={one}" for one in RULES),
        ]
        codes = (0, 1, 2, 3)
    return Input(kind, damage, files | runs, name, command, codes)


def state_row(draw: np.random.Generator, kind: str) -> Input:
    damage = one_of(draw, BINARY_DAMAGES | {"cell": 10})
    raw = usual().state
    if damage == "cell":
        row = pq.read_table(pa.BufferReader(raw)).to_pylist()[0]
        key = list(row)[draw.integers(len(row))]
        value = VALUES[draw.integers(len(VALUES))]
        if isinstance(row[key], list) and row[key] and draw.random() < 0.7:
            row[key][int(draw.integers(len(row[key])))] = value
        else:
            row[key] = value
        name, raw = b"state.row", repr(row).encode("utf-8", "backslashreplace")
    else:
        name, raw = b"state.parquet", damaged(draw, damage, raw)
    files = with_usual() | {name: raw}
    return Input(kind, damage, files, name, [STATE, name.decode()], (0, 2, 3))


def read_state(path: str) -> None:
    """Read the row of a state as a program would, and print the result as JSON."""
    try:
        if path.endswith(".row"):
            row = eval(Path(path).read_text(), {"inf": float("inf"), "nan": float("nan")})
        else:
            try:
                row = pq.read_table(path).to_pylist()[0]
            except (pa.ArrowException, OSError, IndexError, ValueError) as error:
                raise rankmill.InputError(f"{path}: {error}") from None  # no matter of rankmill
        state = rankmill.parts.State.from_row(row)
        counts = rankmill.parts.second_pass(state, PREDICTIONS) if state.two_passes else {}
        print(json.dumps({"metrics": state.result(counts).metrics}))
    except rankmill.RankmillError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        os._exit(3 if isinstance(error, rankmill.InputError) else 2)


TOML = """\
labels = "labels.parquet"
baseline = "old"
metrics = ["map@3", "first_hit@12"]
by = ["by.csv"]
rules = [
  "map@3 >= 0.08",
  "map@3 drop <= 50% confidence 0.95",
]
threads = 1

[systems]
new = "predictions.parquet"
old = ["other.parquet"]

[columns]
query = "query_id"
"""


def toml(draw: np.random.Generator, kind: str) -> Input:
    damage = one_of(draw, TEXT_DAMAGES)
    files = with_usual()
    files[b"other.parquet"] = files[PREDICTIONS.encode()]
    files[b"by.csv"] = by_text()
    files[b"run.toml"] = damaged(draw, damage, TOML.encode())
    command = ("evaluate", "compare", "gate")[draw.integers(3)]
    codes = (0, 1, 2, 3) if command == "gate" else (0, 2, 3)
    return Input(kind, damage, files, b"run.toml", [command, "run.toml"], codes)


def by_text() -> bytes:
    lines = [f"q{query:02},{'de' if query % 2 else 'fr'},{query % 3}" for query in range(QUERIES)]
    return ("\n".join(["query_id,country,age", *lines]) + "\n").encode()


def by(draw: np.random.Generator, kind: str) -> Input:
    """A file of classes of queries, as text or as Parquet."""
    files = with_usual()
    files[b"other.parquet"] = files[PREDICTIONS.encode()]
    rows = [line.split(",") for line in by_text().decode().splitlines()]
    records = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    suffix = ("csv", "jsonl", "parquet")[draw.integers(3)]
    raw = {
        "csv": by_text(),
        "jsonl": "".join(json.dumps(one) + "\n" for one in records).encode(),
        "parquet": parquet(pa.Table.from_pylist(records)),
    }[suffix]
    damage = one_of(draw, BINARY_DAMAGES if suffix == "parquet" else TEXT_DAMAGES)
    name = f"by.{suffix}"
    files[name.encode()] = damaged(draw, damage, raw)
    arguments = ["compare", LABELS, PREDICTIONS, "other.parquet", "-m", "map@3", "--by", name]
    # As many values as a --by may have is a matter of usage.
    return Input(kind, damage, files, name.encode(), [*arguments, "--format", "json"], (0, 2, 3))


def folders(draw: np.random.Generator, kind: str) -> Input:
    """Predictions in folders called key=value, one of which is called something odd."""
    files = {LABELS.encode(): usual().labels}
    table = pq.read_table(pa.BufferReader(usual().predictions))
    odd = [b"day=\xff", b"day\xff=2", b"day=%ff", b"day=", b"=2", b"day=2=3", b"query_id=2"]
    odd += [b"items=1", b"day=" + b"9" * 25, b"day=1e999", b"day=%00", b"day=a\nb", b"x=2"]
    name = odd[draw.integers(len(odd))]
    suffix, write = (("parquet", None), *(FORMATS[one] for one in ("CSV", "Feather")))[
        draw.integers(3)
    ]
    for place, rows in ((b"day=1", table[:20]), (name, table[20:])):
        if write is None:
            raw = parquet(rows)
        else:
            lists = {
                row["query_id"]: list(zip(row["items"], row["scores"], strict=True))
                for row in rows.to_pylist()
            }
            raw = write(lists, "score")
        files[b"run/" + place + b"/part." + suffix.encode()] = raw
    if draw.random() < 0.3:
        files[b"run/day=1/other." + suffix.encode()] = "other." + suffix  # a looping link
    scored = ["evaluate", LABELS, "run", "-m", "map@3", "--format", "json"]
    # As a part of the folder is missing, or a column is there twice, nobody says what is right.
    return Input(kind, "name", files, b"run", scored)


KINDS: dict[str, tuple[int, Callable[[np.random.Generator, str], Input]]] = {
    **dict.fromkeys(FORMATS, (5, of_format)),
    "JSON baseline": (6, json_baseline),
    "per-query baseline": (3, table_baseline),
    "history": (5, history),
    "State row": (5, state_row),
    "TOML": (5, toml),
    "--by": (5, by),
    "folders": (2, folders),
}
"""Kind of input -> how often it is drawn, and what makes a case of it."""


def made(draw: np.random.Generator, kind: str) -> Input:
    """One case of a kind."""
    return KINDS[kind][1](draw, kind)
