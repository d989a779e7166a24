"""gate() on Spark: the verdict of one machine, whatever the baseline is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import rankmill
import rankmill.spark
from data import as_frames, frame_of, tables
from flat import flat

pytest.importorskip("pyspark", reason="pyspark is missing: scripts/test-spark installs it")
pytest_plugins = ["spark_sessions"]
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Spark are not ours

RULES = [
    *("map@3 drop <= 1% confidence 0.95", "map@3 >= 0.1", "queries change <= 10%"),
    *("map@3[weight=*] drop <= 3%", "repeated_items == 0"),
]


@pytest.fixture(scope="module")
def data() -> Any:
    labels, old = tables("integers", "long", "wide")
    return labels, old, tables("integers", "long", "long", seed=5)[1]


def same_verdict(one: Any, other: Any) -> None:
    assert one.word == other.word
    assert one.outcomes == other.outcomes
    for field in ("metrics", "standard_errors", "queries", "audit"):
        assert getattr(one.result, field) == getattr(other.result, field)
    assert (one.comparison is None) == (other.comparison is None)
    for field in ("differences", "moved", "left_out", "unpredicted", "slices", "notes"):
        if one.comparison is not None:
            theirs = getattr(other.comparison, field)
            theirs = as_frames(theirs) if field == "notes" else theirs
            assert getattr(one.comparison, field) == theirs, field


def test_an_earlier_run_is_a_baseline(spark: Any, data: Any) -> None:
    labels, old, new = data
    frames = [frame_of(spark, one) for one in (labels, new, old)]
    whole = rankmill.evaluate(labels, old, ["map@3"])
    numbers = replace(whole, per_query=None)
    before = rankmill.spark.gate(frames[0], frames[2], ["map@3 > 0"], partitions=2)
    run = before.result
    assert type(run.per_query).__name__ == "DataFrame"
    values = whole.per_query.replace_schema_metadata(None)  # Spark keeps none
    unsliced = [*RULES[:3], RULES[4]]
    for rules, on_spark, here in [
        (RULES, run, whole),  # paired by query
        ([RULES[0], RULES[3]], run.per_query, values),
        (unsliced, numbers, numbers),
    ]:
        found = rankmill.spark.gate(*frames[:2], rules, baseline=on_spark, moved=1, partitions=3)
        same_verdict(found, rankmill.gate(labels, new, rules, baseline=here, moved=1))
    # A result of Spark is a baseline on one machine, by its numbers.
    same_verdict(
        rankmill.gate(labels, new, unsliced, baseline=run),
        rankmill.gate(labels, new, unsliced, baseline=numbers),
    )


@pytest.mark.parametrize("unpredicted", ["zero", "skip"])
def test_queries_of_one_side_are_counted_as_here(spark: Any, data: Any, unpredicted: str) -> None:
    labels, old, new = data
    options: dict[str, Any] = {"semantics": {"unpredicted": unpredicted}}
    values = flat(rankmill.evaluate, labels, old, ["map@3"], **options).per_query
    values = values.replace_schema_metadata(None).slice(0, len(values) * 2 // 3)
    frames = [frame_of(spark, one) for one in (labels, new)]
    for before in (values, old.slice(0, len(old) // 2)):
        asked = {"rules": [RULES[0], RULES[1], RULES[3]], **options}
        on_spark = frame_of(spark, before)
        found = flat(rankmill.spark.gate, *frames, baseline=on_spark, partitions=3, **asked)
        here = flat(rankmill.gate, labels, new, baseline=before, **asked)
        same_verdict(found, here)
        assert found.notes == as_frames(here.notes)
        few = here.outcomes[0]
        assert few.paired == (0 if few.queries * 0.9 > here.comparison.queries else few.queries)


@pytest.mark.parametrize(
    ("rules", "options", "message"),
    [
        ("map@3 > 0", {"undecided": "x"}, "undecided is 'x'"),
        ("map@3 drop <= 1%", {}, "needs a baseline"),
        ("labels_age <= 1d", {}, "a DataFrame has no age"),
        ("map@3 drop <= 1%", {"baseline": "no/such/file"}, "expected a DataFrame of predictions"),
        ("map@3 drop <= 1%", {"baseline": {"query": [1], "map@2": [0.5]}}, "map@3|no column looks"),
        (
            "map@3 drop <= 1%",
            {"baseline": {"query": ["a"], "map@3": [0.5]}},
            "query ids are string, but those of the labels are int64",
        ),
        (
            "map@3 drop <= 1%",
            {"baseline": {"query": [1], "map@3": [1]}},
            "holds int64 with 0 nulls",
        ),
        (
            "map@3 drop <= 1%",
            {"baseline": {"query": [-5], "map@3": [0.5]}},
            "none of its 1 queries is among the",
        ),
        ("map@3 drop <= 1%", {"baseline": "last"}, "give history="),
    ],
)
def test_wrong_gates_are_refused(
    spark: Any, data: Any, rules: str, options: dict[str, Any], message: str
) -> None:
    labels, _, new = data
    frames = [frame_of(spark, one) for one in (labels, new)]
    if isinstance(options.get("baseline"), dict):
        options = {"baseline": frame_of(spark, pa.table(options["baseline"]))}
    with pytest.raises(rankmill.RankmillError, match=message):
        flat(rankmill.spark.gate, *frames, rules, partitions=1, **options)
