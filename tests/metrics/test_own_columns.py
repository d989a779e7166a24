"""Metrics of somebody's own that see columns: the bits of plain Python in every layout."""

from __future__ import annotations

import datetime
import json
import math
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import rankmill
from own_columns_oracle import SeenList, labels_of, values_of
from rankmill import Catalogue, Labels, metric
from rankmill.engine import first_pass
from rankmill.errors import InputError, UsageError
from rankmill.metrics import registry
from rankmill.parts import State, evaluate_part

pytestmark = pytest.mark.small
POSITIVE = (0, math.inf)


def revenue(ranks: Any, item_price: Any, k: int) -> float:
    """the prices of the hits within k"""
    total = 0.0
    for rank in ranks:
        if item_price[rank - 1] == item_price[rank - 1]:
            total += item_price[rank - 1]
    return total


def shelf(item_price: Any, predictions: int, scale: float = 1.0) -> float:
    """the mean price of what is shown, where it is known"""
    total, count = 0.0, 0
    for price in item_price:
        if price == price:
            total += price
            count += 1
    return scale * total / max(1, count) + 0.001 * len(item_price)


def lag(gains: Any, hit_seconds: Any, labels: int) -> float:
    """the gains of the hits by their times, over R"""
    total = 0.0
    for hit in range(len(gains)):
        if hit_seconds[hit] == hit_seconds[hit]:
            total += 0.1 * gains[hit] * hit_seconds[hit]
    return total / labels


def both(ranks: Any, hit_seconds: Any, item_price: Any) -> float:
    """what hits cost by their time"""
    total = 0.0
    for hit in range(len(ranks)):
        worth = 0.3 * hit_seconds[hit] * item_price[ranks[hit] - 1]
        if worth == worth:
            total += worth
    return total


def of(price: Any) -> Callable[[SeenList], float]:
    """The formula of an oracle, whose function is given what it takes."""
    taken = price.__code__.co_varnames[: price.__code__.co_argcount]
    known = {"ranks": "ranks", "gains": "gains", "labels": "labels"}
    known |= {"hit_seconds": "at_hits", "item_price": "of_items"}
    return lambda one: price(
        **{
            name: getattr(one, known[name], None) if name in known else 9
            for name in taken
            if name != "scale"
        }
    )


FUNCTIONS = {one.__name__: one for one in (revenue, shelf, lag, both)}


@pytest.fixture(scope="module")
def rows() -> list[Any]:
    """The rows of the metrics, compiled and plain, made once: each is compiled but once."""
    for name, function in FUNCTIONS.items():
        metric(f"{name}[@k]", range=POSITIVE, better="higher")(function)
        metric(f"plain_{name}[@k]", range=POSITIVE, better="higher", compile=False)(function)
    return registry.own_metrics()


@pytest.fixture(autouse=True)
def metrics(rows: list[Any]) -> Iterator[None]:
    """Define the metrics, and forget them and those of a test."""
    for spec in rows:
        registry.register(spec)
    yield
    for spec in registry.own_metrics():
        for table in (registry.REGISTRY, registry.NAMES, registry._BY_NAME):
            table.pop(spec.name.lower(), None)


class Case:
    """Labels, predictions and items: as plain Python, and as tables."""

    def __init__(self, seed: int = 5, queries: int = 60) -> None:
        draw = random.Random(seed)
        items = [*range(30)]
        self.prices = {i: draw.choice([None, 0.1 * draw.randrange(1, 99)]) for i in items[:25]}
        gains, times = [0.0, 1.0, 1.0, 2.0], [None, *(0.1 * one for one in range(9))]
        self.rows = [
            (query, draw.choice([*items, None]), draw.choice(gains), draw.choice(times))
            for query in range(queries)
            for _ in range(draw.randrange(1, 7))
        ]
        self.lists = {
            query: [draw.choice([*items, None]) for _ in range(draw.randrange(0, 9))]
            for query in range(3, queries + 3)
        }

    @property
    def labels(self) -> pa.Table:
        columns = zip(*self.rows, strict=True)
        return pa.table(dict(zip(("user_id", "item_id", "gain", "seconds"), columns, strict=True)))

    @property
    def wide(self) -> pa.Table:
        lists: dict[Any, list[Any]] = {}
        for query, *cells in self.rows:
            lists.setdefault(query, []).append(cells)
        items, gains, seconds = (
            pa.array([[cells[i] for cells in of] for of in lists.values()]) for i in range(3)
        )
        return pa.table({"user_id": [*lists], "items": items, "gain": gains, "seconds": seconds})

    @property
    def predictions(self) -> pa.Table:
        lists = pa.array(self.lists.values(), pa.list_(pa.int64()))
        return pa.table({"user_id": [*self.lists], "items": lists})

    @property
    def long_predictions(self) -> pa.Table:
        rows = [(q, item, n) for q, of in self.lists.items() for n, item in enumerate(of, 1)]
        columns = map(pa.array, zip(*rows, strict=True))
        return pa.table(dict(zip(("user_id", "item_id", "rank"), columns, strict=True)))

    @property
    def items(self) -> pa.Table:
        prices = pa.array([*self.prices.values()], pa.float64())
        return pa.table({"item_id": [*self.prices], "price": prices})

    @property
    def catalogue(self) -> Catalogue:
        return Catalogue(items=self.items)

    def expected(self, name: str, **how: Any) -> dict[Any, float]:
        name, _, k = name.removeprefix("plain_").partition("@")
        formula = of(FUNCTIONS[name])
        return values_of(
            labels_of(self.rows), self.lists, self.prices, int(k or 99), formula, **how
        )


CASE = Case()
NAMES = [
    f"{plain}{name}{at}" for plain in ("", "plain_") for name in FUNCTIONS for at in ("", "@3")
]
OTHERS = ["map@3", "recall@5", "ndcg", "first_hit", "hit@2"]


def by_query(result: Any, name: str) -> dict[Any, float]:
    table = result.per_query
    return dict(
        zip(*(table[one].to_pylist() for one in (table.column_names[0], name)), strict=True)
    )


@pytest.mark.parametrize("seed", range(12))
def test_values_are_those_of_plain_python(seed: int) -> None:
    """Whatever the semantics, and what stands beside."""
    case, draw = Case(seed, 40), random.Random(seed)
    how: dict[str, Any] = {
        "repeated_predictions": draw.choice(["once", "drop", "each"]),
        "repeated_labels": draw.choice(["set", "count"]),
        "judged_only": draw.random() < 0.5,
        "depth": draw.choice([None, 2, 4]),
    }
    semantics = rankmill.Semantics(**how)
    result = rankmill.evaluate(
        case.labels,
        case.predictions,
        [*NAMES, *OTHERS],
        semantics=semantics,
        catalogue=case.catalogue,
    )
    for name in NAMES:
        assert by_query(result, name) == case.expected(name, **how), name
    beside = rankmill.evaluate(case.labels, case.predictions, OTHERS, semantics=semantics)
    assert {name: result[name] for name in OTHERS} == beside.metrics
    alone = rankmill.evaluate(case.labels, case.predictions, "lag@3", semantics=semantics)
    assert by_query(alone, "lag@3") == case.expected("lag@3", **how)


def test_rel_cuts_the_labels() -> None:
    result = rankmill.evaluate(
        CASE.labels, CASE.predictions, ["lag(rel=2)@3", "both(rel=2)"], catalogue=CASE.catalogue
    )
    assert by_query(result, "lag(rel=2)@3") == CASE.expected("lag@3", rel=2)
    assert by_query(result, "both(rel=2)") == CASE.expected("both", rel=2)


def test_what_items_were_seen_is_dropped() -> None:
    train = {query: items[:2] for query, items in CASE.lists.items()}
    catalogue = Catalogue(train=train, items=CASE.items, drop_seen=True)
    result = rankmill.evaluate(CASE.labels, CASE.predictions, NAMES, catalogue=catalogue)
    case = Case()
    case.lists = {q: [i for i in of if i not in of[:2]] for q, of in CASE.lists.items()}
    for name in NAMES:
        assert by_query(result, name) == case.expected(name)


# ------------------------------------------------------------------ layouts


def shuffled(table: pa.Table, seed: int = 3) -> pa.Table:
    order = [*range(len(table))]
    random.Random(seed).shuffle(order)
    return table.take(order)


def written(table: pa.Table, path: Path, rows: int = 7) -> str:
    path.mkdir()
    for number, start in enumerate(range(0, len(table), 50)):
        pq.write_table(table.slice(start, 50), path / f"{number}.parquet", row_group_size=rows)
    return str(path)


def text(table: pa.Table, path: Path) -> str:
    pyarrow.csv.write_csv(table, path)
    return str(path)


LAYOUTS: dict[str, Callable[[Path], tuple[Any, Any, Any]]] = {
    "wide": lambda at: (CASE.wide, CASE.predictions, CASE.items),
    "scattered": lambda at: (shuffled(CASE.labels), CASE.predictions, shuffled(CASE.items)),
    "files": lambda at: (
        written(CASE.labels, at / "labels"),
        written(CASE.predictions, at / "lists"),
        written(CASE.items, at / "items"),
    ),
    "other files": lambda at: (
        [written(shuffled(CASE.labels.slice(n * 99, 99)), at / f"{n}") for n in (2, 0, 1)],
        written(shuffled(CASE.predictions), at / "lists"),
        written(shuffled(CASE.items), at / "items"),
    ),
    "wide files": lambda at: (
        written(shuffled(CASE.wide), at / "labels", 3),
        written(CASE.predictions, at / "lists"),
        CASE.items,
    ),
    "long predictions": lambda at: (
        CASE.labels,
        written(shuffled(CASE.long_predictions), at / "lists"),
        CASE.items,
    ),
    "text": lambda at: (
        text(CASE.labels, at / "labels.csv"),
        CASE.predictions,
        text(CASE.items, at / "items.csv"),
    ),
    "one pass": lambda at: (
        pa.RecordBatchReader.from_batches(
            CASE.labels.schema, shuffled(CASE.labels).to_batches(max_chunksize=11)
        ),
        CASE.predictions,
        CASE.items,
    ),
    "dicts": lambda at: (CASE.labels.to_pylist(), CASE.lists, CASE.items.to_pylist()),
    "labels that are prepared": lambda at: (
        Labels(CASE.labels).prepare(),
        CASE.predictions,
        CASE.items,
    ),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_does_not_matter(tmp_path: Path, layout: str, threads: int) -> None:
    labels, predictions, items = LAYOUTS[layout](tmp_path)
    result = rankmill.evaluate(
        labels, predictions, [*NAMES, *OTHERS], catalogue=Catalogue(items=items), threads=threads
    )
    for name in NAMES:
        assert {int(q): value for q, value in by_query(result, name).items()} == CASE.expected(name)
    plain = rankmill.evaluate(CASE.labels, CASE.predictions, OTHERS)
    assert {name: result[name] for name in OTHERS} == plain.metrics


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_frames_are_seen_alike(package: str) -> None:
    pytest.importorskip(package)
    table = CASE.labels
    frame: Any = table.to_pandas() if package == "pandas" else table
    if package == "polars":
        import polars

        frame = polars.from_arrow(table)
    if package == "duckdb":
        import duckdb

        frame = duckdb.connect().from_arrow(table)
    result = rankmill.evaluate(frame, CASE.predictions, "lag@3,plain_lag")
    assert by_query(result, "lag@3") == CASE.expected("lag@3")
    assert by_query(result, "plain_lag") == CASE.expected("lag")


def test_prepared_labels_are_read_for_each_column() -> None:
    labels = Labels(CASE.labels).prepare()
    for name in ("map@3", "lag@3", "map@3", "plain_lag@3"):
        result = rankmill.evaluate(labels, CASE.predictions, name)
        assert result[name] == rankmill.evaluate(CASE.labels, CASE.predictions, name)[name]


def test_labels_beyond_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    shares = first_pass.shares_of
    monkeypatch.setattr(first_pass, "shares_of", lambda *of: found.append(shares(*of)) or found[-1])
    paths = [written(CASE.labels, tmp_path / "labels"), written(CASE.predictions, tmp_path / "run")]
    how: Any = {"catalogue": CASE.catalogue, "per_query": False}
    parts = rankmill.evaluate(*paths, [*NAMES, *OTHERS], memory=9000, **how)
    assert len(found[0]) > 2
    assert parts.metrics == rankmill.evaluate(*paths, [*NAMES, *OTHERS], **how).metrics


@pytest.mark.parametrize("by", [(), "label_count"])
def test_parts_merge(by: Any) -> None:
    how: Any = {"catalogue": CASE.catalogue, "by": by}
    both = shuffled(CASE.labels), CASE.predictions
    states = [evaluate_part(*both, NAMES, part=f"{n}/3", **how) for n in (2, 3, 1)]
    first, *others = (State.from_row(one.to_row()) for one in states)
    for one in others:
        first = first.merge(one)
    whole = rankmill.evaluate(CASE.labels, CASE.predictions, NAMES, **how)
    assert first.result().metrics == whole.metrics
    assert first.result().by == whole.by


def test_parts_of_other_items_do_not_merge() -> None:
    cheap = CASE.items.set_column(1, "price", pa.array([0.5] * len(CASE.prices)))
    one, other = (
        evaluate_part(
            CASE.labels, CASE.predictions, "revenue@3", part=f"{n}/2", catalogue=Catalogue(items=of)
        )
        for n, of in ((1, CASE.items), (2, cheap))
    )
    with pytest.raises(UsageError, match="catalogue"):
        one.merge(other)


def test_slices_have_the_values_of_their_queries() -> None:
    cells = {"country": [str(query % 3) for query, *_ in CASE.rows]}
    labels = CASE.labels.append_column("country", pa.array(cells["country"]))
    result = rankmill.evaluate(
        labels, CASE.predictions, NAMES, by="country", catalogue=CASE.catalogue
    )
    for row in result.by.to_pylist():
        case = Case()
        case.rows = [one for one in CASE.rows if str(one[0] % 3) == row["slice"]]
        alone = rankmill.evaluate(
            case.labels,
            case.predictions,
            row["metric"],
            catalogue=case.catalogue,
            semantics={"unlabelled": "skip"},
        )
        assert row["value"] == alone[row["metric"]]


def test_weights_medians_and_sums() -> None:
    weights = pa.array([1.0 + query % 3 for query, *_ in CASE.rows])
    labels = Labels(CASE.labels.append_column("w", weights), weight="w")
    names = ["lag@3", "plain_revenue@3"]
    result = rankmill.evaluate(labels, CASE.predictions, names, catalogue=CASE.catalogue)
    for name in names:
        of_query = CASE.expected(name)
        total = math.fsum((1 + query % 3) * value for query, value in of_query.items())
        whole = math.fsum(1 + query % 3 for query in of_query)
        assert result[name] == pytest.approx(total / whole, rel=1e-14)
    median = rankmill.evaluate(CASE.labels, CASE.predictions, ["lag@3:median"], sums="x = 2*lag@3")
    values = sorted(CASE.expected("lag@3").values())
    assert median["lag@3:median"] == pytest.approx(values[(len(values) - 1) // 2], abs=0.05)


def test_compare_and_gate_take_them() -> None:
    other = Case(9)
    runs = {"old": CASE.predictions, "new": other.predictions}
    found = rankmill.compare(CASE.labels, runs, ["lag@3", "revenue@3"], catalogue=CASE.catalogue)
    for name in ("lag@3", "revenue@3"):
        sides = found.to_dict()["metrics"][name]
        values = CASE.expected(name)
        assert sides["old"]["value"] == pytest.approx(sum(values.values()) / len(values))
    rule = "revenue@3 drop <= 1% confidence none"
    word = rankmill.gate(
        CASE.labels, CASE.predictions, rule, baseline=CASE.predictions, catalogue=CASE.catalogue
    ).word
    assert word == "held"


def test_lists_without_predictions_are_seen_empty() -> None:
    metric("count_shown", range=(0, 9), compile=False)(
        lambda item_price, hit_seconds: len(item_price) + len(hit_seconds)
    )
    labels = pa.table({"query": [1, 2], "item": ["a", "b"], "seconds": [1, 2]})
    items = pa.table({"item": ["a"], "price": [1.0]})
    result = rankmill.evaluate(
        labels, {1: ["x", "a"]}, "count_shown", catalogue=Catalogue(items=items)
    )
    assert result.per_query["count_shown"].to_pylist() == [3.0, 0.0]


# ------------------------------------------------------------------ what a column may hold

NOON = datetime.datetime(2024, 5, 1, 12, 30, 0, 250_000)
SECONDS = (NOON - datetime.datetime(1970, 1, 1)).total_seconds()
KINDS: dict[str, tuple[Any, float]] = {
    "integers": (pa.array([7, None], pa.int16()), 7.0),
    "halves": (pa.array([0.1, None], pa.float32()), float(pa.scalar(0.1, pa.float32()).as_py())),
    "booleans": (pa.array([True, None]), 1.0),
    "decimals": (pa.array(["0.10", None]).cast(pa.decimal128(5, 2)), 0.1),
    "digits": (pa.array([" 0.5", ""]), 0.5),
    "categories": (pa.array([7, None]).dictionary_encode(), 7.0),
    "days": (pa.array([NOON.date(), None]), SECONDS // 86400 * 86400),
    "days in milliseconds": (pa.array([NOON.date(), None], pa.date64()), SECONDS // 86400 * 86400),
    "seconds": (pa.array([NOON.replace(microsecond=0), None], pa.timestamp("s")), SECONDS - 0.25),
    "milliseconds": (pa.array([NOON, None], pa.timestamp("ms")), SECONDS),
    "microseconds": (pa.array([NOON, None], pa.timestamp("us")), SECONDS),
    "nanoseconds": (pa.array([NOON, None], pa.timestamp("ns")), SECONDS),
    "before 1970": (pa.array([datetime.datetime(1969, 12, 31, 23, 59, 58, 500_000), None]), -1.5),
    "a time zone": (
        pa.array([NOON, None], pa.timestamp("us")).cast(pa.timestamp("us", "Europe/Berlin")),
        SECONDS,
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wide", [False, True])
def test_a_column_may_hold(kind: str, wide: bool) -> None:
    values, expected = KINDS[kind]
    seen: list[list[float]] = []

    @metric("noted", compile=False)
    def noted(hit_when: Any, item_when: Any) -> float:
        seen.append([*hit_when, *item_when])
        return 1.0

    items = pa.array(["a", "b"])
    labels = pa.table({"query": [1, 1], "item": items, "gain": [1, 1], "when": values})
    if wide:
        plain = values.dictionary_decode() if hasattr(values, "dictionary_decode") else values
        lists = [
            pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), one)
            for one in (items, pa.array([1, 1]), plain)
        ]
        labels = pa.table([pa.array([1]), *lists], ["query", "items", "gain", "when"])
    catalogue = Catalogue(items=pa.table({"item": items, "when": values}))
    rankmill.evaluate(labels, {1: ["b", "x", "a"]}, "noted", catalogue=catalogue)
    told = [f"{one:.6f}" for one in seen[0]]
    assert told == [f"{one:.6f}" for one in (math.nan, expected, math.nan, math.nan, expected)]
    assert seen[0][1] == seen[0][4] == expected


def test_the_gain_stays_the_gain_if_a_metric_sees_it() -> None:
    """Also where only a weak name or an event tells that it is one."""
    metric("seen_gain", compile=False)(lambda hit_clicked, gains: sum(hit_clicked) - sum(gains))
    labels = pa.table({"query": [1, 1], "item": ["a", "b"], "clicked": [1, 0]})
    how = labels, {1: ["b", "a"]}
    found = rankmill.evaluate(*how, "seen_gain,map")
    assert (found["seen_gain"], found["map"]) == (0.0, rankmill.evaluate(*how, "map")["map"])
    assert found["map"] == 0.5


def test_a_column_that_a_metric_sees_is_no_doubt() -> None:
    metric("strong", compile=False)(lambda hit_strength: sum(hit_strength))
    labels = pa.table({"query": [1, 1], "item": ["a", "b"], "strength": [1.5, 2.5]})
    found, plain = (rankmill.evaluate(labels, {1: ["b", "a"]}, one) for one in ("strong", "map"))
    assert (found["strong"], found.notes) == (4.0, [])
    assert "column 'strength' is not read" in plain.notes[0]


def test_columns_of_qrels_and_of_queries_of_several_columns(tmp_path: Path) -> None:
    metric("iterations", compile=False)(lambda hit_iteration: sum(hit_iteration))
    (tmp_path / "qrels.txt").write_text("q 7 a 1\nq 8 b 2\n")
    (tmp_path / "run.txt").write_text("q Q0 b 1 0.5 x\nq Q0 c 2 0.4 x\n")
    qrels = Labels(tmp_path / "qrels.txt", format="trec")
    run = rankmill.Predictions(tmp_path / "run.txt", format="trec")
    found = rankmill.evaluate(qrels, run, "iterations,map")
    assert (found["iterations"], found["map"]) == (8.0, 0.5)
    keys = {"session": ["s", "s", "t"], "type": [1, 1, 2]}
    labels = pa.table({**keys, "item": ["a", "b", "a"], "seconds": [1.0, 2.0, 4.0]})
    lists = pa.table({"session": ["s", "t"], "type": [1, 2], "items": [["b", "a"], ["a"]]})
    of_both = Labels(labels, query=["session", "type"])
    run = rankmill.Predictions(lists, query=["session", "type"])
    result = rankmill.evaluate(of_both, run, "lag,map")
    assert result.per_query["lag"].to_pylist() == [(0.1 * 2 + 0.1) / 2, 0.1 * 4]


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import rankmill\n"
        "@rankmill.metric('worth@k', range=(0, 99), better='higher')\n"
        "def worth(ranks, item_price, hit_when):\n"
        "    return (item_price[ranks - 1] * hit_when).sum()\n"
    )
    (tmp_path / "labels.csv").write_text("user_id,item_id,when\n1,a,2\n1,b,0.5\n")
    (tmp_path / "run.csv").write_text("user_id,item_id,rank\n1,b,1\n1,a,2\n")
    (tmp_path / "items.csv").write_text("item_id,price\na,4\nb,3\n")
    command = [sys.executable, "-m", "rankmill", "evaluate", "labels.csv", "run.csv"]
    command += ["--define", "mine.py", "--items", "items.csv", "-m", "worth@2,worth@1"]
    done, planned, refused = (
        subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)
        for more in (["--format", "json"], ["--plan"], ["--define", "mine.py", "--by", "nothing"])
    )
    assert json.loads(done.stdout)["metrics"] == {"worth@2": 9.5, "worth@1": 1.5}, done.stderr
    assert (planned.returncode, refused.returncode) == (0, 3), planned.stderr


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"item_id": [1], "cost": [2.0]},
            "revenue@3 sees a column 'price', which is not there; the columns other",
        ),
        ({"item_id": [1], "price": [[2.0]]}, "column 'price', which revenue@3 sees, holds list"),
        ({"item_id": [1], "price": [{"a": 2.0}]}, r"holds struct.*expected numbers, booleans"),
        ({"item_id": [1], "price": [datetime.time(1)]}, r"holds time64.*expected numbers, bool"),
        ({"item_id": [1], "price": ["dear"]}, "found 'dear'; expected a number for the column of"),
        ({"item_id": [1, 1], "price": [1.0, 2.0]}, "item 1 has 1 and 2 in column 'price'; expec"),
        ({"item_id": [[1]], "price": [2.0]}, "the items are in lists, so price cannot be of each"),
        ({"item_id": [1], "price": [2**53 + 1]}, "column 'price': the number 9007199254740993 has"),
    ],
)
def test_columns_of_items_that_are_refused(table: dict[str, Any], message: str) -> None:
    catalogue = Catalogue(items=pa.table(table))
    with pytest.raises(InputError, match=message):
        rankmill.evaluate(CASE.labels, CASE.predictions, "revenue@3", catalogue=catalogue)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            {"query": [1], "item": [1]},
            "lag@3 sees a column 'seconds', which is not there; the columns other",
        ),
        ({"query": [1], "item": [1], "seconds": [[2.0]]}, r"holds list.*booleans, dates or time"),
        ({"query": [1], "items": [[1]], "seconds": [2.0]}, r"holds double.*lists of them, as long"),
        ({"query": [1], "items": [[1]], "seconds": [[2, 3]]}, r"1 items in 'items' and 2 numbers"),
        ({"query": [1], "item": [1], "seconds": ["soon"]}, "found 'soon'; expected a number for"),
        (
            {"seconds": [1], "item": [1]},
            "lag@3 sees a column 'seconds', which is not there; the columns other",
        ),
        ([[1], [2]], "lag@3 sees a column 'seconds', which is not there; the columns other"),
        (
            {1: {2: 3.0}},
            "lag@3 sees a column 'seconds', which is not there; the columns other",
        ),
    ],
)
def test_columns_of_labels_that_are_refused(labels: Any, message: str) -> None:
    runs: Any = [[1], [2]] if isinstance(labels, list) else {1: [1, 2]}
    if "item" in labels or "items" in labels:
        labels = Labels(pa.table(labels), query="seconds" if "query" not in labels else "query")
    with pytest.raises(InputError, match=message):
        rankmill.evaluate(labels, runs, "lag@3")


def test_without_a_table_of_items_it_says_how_to_give_one() -> None:
    with pytest.raises(UsageError, match=r"revenue@3 sees columns of the items.*Catalogue\(items="):
        rankmill.evaluate(CASE.labels, CASE.predictions, "revenue@3")
    with pytest.raises(UsageError, match="give items as a table"):
        rankmill.evaluate(
            CASE.labels, CASE.predictions, "revenue@3", catalogue=Catalogue(items=[1, 2])
        )


def test_what_has_no_order_or_no_row_of_its_own_is_refused() -> None:
    for order in ("worst", "best", "expected"):
        with pytest.raises(UsageError, match=rf"lag@3 .*{order}.*choose another"):
            rankmill.evaluate(CASE.labels, CASE.predictions, "lag@3", semantics={"order": order})
    labels = Labels(CASE.labels, subtopic="gain")
    with pytest.raises(
        UsageError, match=r"lag@3 sees columns of the labels.*leave out Labels\(subtopic"
    ):
        rankmill.evaluate(labels, CASE.predictions, "lag@3")
    with pytest.raises(UsageError, match="revenue@3 sees columns, which are not read here"):
        rankmill.compare(
            CASE.labels,
            {"old": CASE.lists, "new": CASE.lists},
            ["map", "revenue@3:baseline"],
            catalogue=CASE.catalogue,
        )
    for name in ("lag@3", "revenue@3"):
        with pytest.raises(UsageError, match=f"explain does not support {name}"):
            rankmill.explain(CASE.labels, CASE.predictions, name, 3, catalogue=CASE.catalogue)


def test_what_a_function_may_take() -> None:
    with pytest.raises(UsageError, match="hit_COLUMN, item_COLUMN, or a parameter"):
        metric("odd")(lambda price: 1.0)
    with pytest.raises(UsageError, match="expected any of hits, k, out, or a parameter"):
        metric("odd")(lambda hits, k, hit_when, out: None)
    metric("set", compile=False)(lambda labels, hit_when=2.0: hit_when)
    assert registry.REGISTRY["set"].columns == ()  # a number is a parameter
    one, other = (
        metric("same", compile=False)(function) and registry.REGISTRY["same"].fingerprint
        for function in (lambda hit_a: 1.0, lambda hit_b: 1.0)
    )
    assert one != other


def test_plan_tells_nothing_but_the_truth() -> None:
    told = rankmill.plan(CASE.labels, CASE.predictions, NAMES, catalogue=CASE.catalogue)
    for name in ("labels", "items"):
        assert "unread" not in told[name]
    assert (
        told["labels"]["bytes"]
        > rankmill.plan(CASE.labels, CASE.predictions, "map")["labels"]["bytes"]
    )
