"""DataFrames are understood as all other inputs are: the same value as on one machine."""

from __future__ import annotations

import dataclasses
import datetime
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankmill
import rankmill.spark
from data import frame_of, same_queries
from flat import flat
from rankmill import Labels, Predictions
from rankmill.spark.exchange import layout
from rankmill.spark.exchange.spark_request import read

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

QUERIES = [1, 2, 3, 14]
RELEVANT, RANKED = [[1, 2], [3], [4], [7]], [[2, 5], [4, 3], [4], [1, 70]]
SCORES = [[1 - place / 8 for place in range(len(some))] for some in RANKED]
KINDS = ["a", "b", "a", "b"]


def wide(lists: list[Any], **more: Any) -> pa.Table:
    return pa.table({"query": QUERIES, "item": lists, **more})


def long(lists: list[Any], **more: Any) -> pa.Table:
    queries = [query for query, some in zip(QUERIES, lists, strict=True) for _ in some]
    return pa.table({"query": queries, "item": [*chain.from_iterable(lists)], **more})


def each(change: Callable[[Any], Any], lists: list[Any]) -> list[Any]:
    return [[change(one) for one in some] for some in lists]


def queries(table: pa.Table, change: Callable[[Any], Any], kind: Any = None) -> pa.Table:
    made = pa.array([change(one) for one in table["query"].to_pylist()], kind)
    return table.set_column(0, "query", made)


def day(number: int) -> datetime.date:
    return datetime.date(2026, 1, number)


def structs(lists: list[Any]) -> pa.Table:
    """As recommendForAllUsers gives them."""
    both = zip(lists, SCORES, strict=True)
    rows = [
        [{"movieId": item, "rating": score} for item, score in zip(*some, strict=True)]
        for some in both
    ]
    return pa.table({"query": QUERIES, "recommendations": rows})


LISTS, ROWS = wide(RELEVANT), long(RELEVANT)
RANKS = {"rank": [place for some in RANKED for place in range(1, 1 + len(some))]}
RUN, LONG_RUN = wide(RANKED), long(RANKED, **RANKS)
MEANINGS: dict[str, tuple[Any, Any]] = {
    "text beside integers": (queries(wide(each(str, RELEVANT)), str), LONG_RUN),
    "text with points": (queries(LISTS, "{}.0".format), queries(RUN, str)),
    "other text beside integers": (queries(LISTS, lambda one: "x" if one == 2 else str(one)), RUN),
    "blanks": (
        queries(wide(each(str, RELEVANT)), "\t{} ".format),
        queries(long(each("{} ".format, RANKED), **RANKS), str),
    ),
    "words for missing": (
        long([["1", "NULL"], ["3"], ["\\N"], ["7"]]),
        long(each(str, RANKED), **RANKS),
    ),
    "exact": (
        Labels(long([["1", "NULL"], ["3 "], ["4"], ["7"]]), exact_ids=True),
        Predictions(wide([["NULL"], ["3"], ["4"], ["7"]]), exact_ids=True),
    ),
    "structs": (LISTS, structs(RANKED)),
    "maps": (
        LISTS,
        wide(
            pa.array(
                [list(zip(*both, strict=True)) for both in zip(RANKED, SCORES, strict=True)],
                pa.map_(pa.int64(), pa.float64()),
            )
        ),
    ),
    "a struct around ids": (queries(LISTS, lambda one: {"id": one}), LONG_RUN),
    "booleans as gains": (ROWS.append_column("clicked", [[True, False, True, True, True]]), RUN),
    "text as gains": (ROWS.append_column("gain", [["2", "0", "1", "1", "3"]]), RUN),
    "text as scores": (
        LISTS,
        long(RANKED, score=[str(one) for one in chain.from_iterable(SCORES)]),
    ),
    "text as ranks": (LISTS, long(RANKED, rank=[str(one) for one in RANKS["rank"]])),
    "printed lists": (LISTS, wide([str(one) for one in RANKED])),
    "lists by blanks": (wide([" ".join(map(str, one)) for one in RELEVANT]), RUN),
    "UUIDs": (
        long(each(lambda one: str(uuid.UUID(int=one)), RELEVANT)),
        long(each(lambda one: str(uuid.UUID(int=one)), RANKED), **RANKS),
    ),
    "whole doubles": (queries(LISTS, float), wide(each(float, RANKED))),
    "decimals": (queries(LISTS, Decimal, pa.decimal128(12, 2)), queries(RUN, str)),
    "dates": (queries(LISTS, day), queries(RUN, lambda one: f"{day(one)} ")),
    "a column per rank": (
        LISTS,
        pa.table({"query": QUERIES, "rec_1": [2, 4, 4, 1], "rec_2": [5, 3, None, 70]}),
    ),
    "keys": (
        Labels(wide(RELEVANT, kind=KINDS), query=["query", "kind"]),
        Predictions(queries(wide(RANKED, kind=[" a", *KINDS[1:]]), str), query=["query", "kind"]),
    ),
    "a template": (
        Labels(wide(RELEVANT, kind=KINDS), query="{query}_{kind}"),
        pa.table({"query": ["1_a", "2_b", "3_a ", "14_b"], "item": RANKED}),
    ),
}


def there(session: Any, one: Any) -> Any:
    """The same as DataFrames."""
    if isinstance(one, pa.Table):
        return frame_of(session, one.combine_chunks())
    return dataclasses.replace(one, data=there(session, one.data))


def told(result: Any) -> list[str]:
    return [one.replace("the DataFrame of", "the table of") for one in result.notes]


@pytest.mark.rows(8)
@pytest.mark.parametrize("meaning", MEANINGS)
def test_it_means_the_same(spark: Any, meaning: str) -> None:
    both = MEANINGS[meaning]
    partitions = [3, None][[*MEANINGS].index(meaning) % 2]
    whole = rankmill.evaluate(*both, ["map", "hit@1"])
    frames = [there(spark, one) for one in both]
    found = rankmill.spark.evaluate(*frames, ["map", "hit@1"], partitions=partitions)
    assert found.metrics == whole.metrics
    assert 0 < found["map"] < 1
    assert found.audit == whole.audit
    assert told(found) == told(whole)


@pytest.mark.parametrize("partitions", [3, None])
def test_later_text_is_read_as_text(
    spark: Any, partitions: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "ROWS", 2)
    both = MEANINGS["other text beside integers"]
    labels, run = (there(spark, one.take([0, 2, 3, 1])) for one in both)
    found = rankmill.spark.evaluate(labels, run, "map", partitions=partitions)
    assert found["map"] == rankmill.evaluate(*both, "map")["map"]
    late = wide(["1", "3", "4", "7 2"])
    found = rankmill.spark.evaluate(there(spark, late), run, "map", partitions=partitions)
    assert found["map"] == rankmill.evaluate(late, both[1], "map")["map"]


def test_every_pass_reads_the_same(spark: Any) -> None:
    """Second passes, the values of queries, slices by tables, and what is given beside."""
    labels, run = queries(LISTS, float), structs(RANKED)
    table = pa.table({"query": list(map(str, QUERIES)), "kind": KINDS})
    train = pa.table({"query": ["1 ", "3"], "item": ["5", "3.0"]})
    asked = ["map", "gap", "novelty@2"]
    frames = [there(spark, one) for one in (labels, run)]
    of_spark = rankmill.Catalogue(train=there(spark, train))
    how: dict[str, Any] = {"catalogue": rankmill.Catalogue(train=train)}
    whole = flat(rankmill.evaluate, labels, run, asked, **how)
    found = flat(
        rankmill.spark.evaluate, *frames, asked, catalogue=of_spark, partitions=2, per_query=True
    )
    assert found.metrics == whole.metrics
    same_queries(found.per_query, whole.per_query)
    found = rankmill.spark.evaluate(*frames, "map", by=table)
    assert found.by.equals(rankmill.evaluate(labels, run, "map", by=table).by)
    new = structs(each(lambda one: one % 5, RANKED))
    runs, other = {"a": run, "b": new}, {"a": frames[1], "b": there(spark, new)}
    ways: list[Any] = [table, "label_popularity"]
    compared = rankmill.compare(labels, runs, ["map", "gap@1"], by=ways)
    ways[0] = there(spark, table)
    found = rankmill.spark.compare(frames[0], other, ["map", "gap@1"], by=ways, partitions=2)
    assert found.values == compared.values
    assert found.slices == compared.slices


def test_text_of_files_stays_as_it_is_written(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("query,item\n007,1\n8,2\n")
    (tmp_path / "run.csv").write_text("query,item,rank\n7,1,1\n8,2,1\n")
    paths = [str(tmp_path / name) for name in ("labels.csv", "run.csv")]
    found = rankmill.spark.evaluate(*(read(spark, one, None) for one in paths), "map")
    assert found["map"] == rankmill.evaluate(*paths, "map")["map"] == 0.5


def test_a_format_tells_what_a_cell_holds(spark: Any) -> None:
    both = long([["A 1"], ["B 2"], ["A 3"], ["B 1"]]), wide(["A 1", "B 2", "A 1", "B 2"])
    told = Labels(both[0], format="csv-long"), Predictions(both[1], format="csv-long", rank="query")
    whole = rankmill.evaluate(*told, "map")
    found = rankmill.spark.evaluate(*(there(spark, one) for one in told), "map")
    assert found.metrics == whole.metrics == {"map": 0.5}


def test_subtopics_of_text(spark: Any) -> None:
    labels = ROWS.append_column("topic", [["a", "b", "a", "a", "b"]])
    labels, run = queries(labels, "{} ".format), queries(RUN, str)
    told: dict[str, Any] = {"subtopic": "topic", "binary": True}
    found = rankmill.spark.evaluate(
        Labels(there(spark, labels), **told), there(spark, run), "alpha_ndcg@2", partitions=2
    )
    assert found.metrics == rankmill.evaluate(Labels(labels, **told), run, "alpha_ndcg@2").metrics


@pytest.mark.parametrize("kind", ["typed", "text"])
def test_times_in_two_spellings_are_in_one_partition(spark: Any, kind: str) -> None:
    hours = [datetime.timedelta(hours=one) for one in range(40)]
    utc = [datetime.datetime(2026, 1, 1, 23, 30, tzinfo=datetime.UTC) + one for one in hours]
    zone = datetime.timezone(datetime.timedelta(hours=-5))
    rows = {"user": [f"u{one}" for one in range(40)], "item": [f"i{one}" for one in range(40)]}
    typed = pa.array(utc, pa.timestamp("us", "UTC"))
    # Of text on both sides, times are read as such where they are a part of a key.
    query = ["session"] if kind == "typed" else ["user", "session"]
    session = typed if kind == "typed" else [one.isoformat() for one in utc]
    labels = pa.table({**rows, "session": session})
    spelled = [str(one.astimezone(zone)) for one in utc]
    run = pa.table({**rows, "session": spelled, "score": [0.5] * 40})
    for one, evaluate in ((lambda data: data, rankmill.evaluate), (partial(there, spark), on_8)):
        both = Labels(one(labels), query=query), Predictions(one(run), query=query)
        assert evaluate(*both, "map")["map"] == 1


on_8 = partial(rankmill.spark.evaluate, partitions=8)
