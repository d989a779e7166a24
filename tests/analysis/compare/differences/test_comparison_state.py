"""Tables of comparisons that travelled: damaged ones are refused, and nothing else is."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from flat import flat
from rankmill.analysis.compare.differences.comparison_state import _seal
from rankmill.metrics.records.state_rows import SEAL

QUERIES = 20
KEY = b"rankmill comparison"


def table(weighted: bool = False) -> pa.Table:
    """Return the table of a state of two systems, with slices."""
    rows = [(query, 1, 1.0 + query % 3) for query in range(QUERIES)]
    labels = pa.table(
        dict(zip(("query", "item", "w"), map(list, zip(*rows, strict=True)), strict=True))
    )
    runs = {
        name: {query: [1] if query % every else [9, 1] for query in range(QUERIES)}
        for name, every in (("a", 2), ("b", 3))
    }
    options: dict[str, Any] = {"weight": "w"} if weighted else {"binary": True}
    state = flat(
        rankmill.parts.compare_part,
        labels,
        runs,
        ["map@3"],
        by="label_count",
        **options,
    )
    return state.to_table()


def told(of: pa.Table) -> dict[str, Any]:
    return json.loads(of.schema.metadata[KEY])


def written(of: pa.Table, rows: list[dict[str, Any]] | None = None, text: Any = None) -> pa.Table:
    """Return a table with other rows or another text in its metadata, with its checksum anew."""
    text = told(of) if text is None else text
    if isinstance(text, dict) and SEAL in text:
        read = {name: one for name, one in text.items() if name != SEAL}
        text[SEAL] = _seal(read, of.to_pylist() if rows is None else rows)
    text = text if isinstance(text, bytes) else json.dumps(text)
    schema = of.schema.with_metadata({KEY: text})
    return pa.Table.from_pylist(of.to_pylist() if rows is None else rows, schema)


def refused(damaged: Any) -> None:
    with pytest.raises(rankmill.UsageError, match=r"damaged|to_table made|format"):
        rankmill.parts.ComparisonState.from_table(damaged)


@pytest.mark.small
@pytest.mark.parametrize("weighted", [False, True])
def test_a_table_comes_back_as_it_was(weighted):
    given = table(weighted)
    for way in (given, written(given), written(given, given.to_pylist()[::-1])):
        state = rankmill.parts.ComparisonState.from_table(way)
        assert state.whole.queries == QUERIES
        assert sorted(map(str, state.to_table().to_pylist())) == sorted(map(str, given.to_pylist()))


@pytest.mark.small
def test_what_a_table_tells_of_its_job_is_checked():
    given = table()
    for text in (b"{", b"\xff", b"[]", b"3"):
        refused(written(given, text=text))
    refused(3)
    for place in ("job", "counts"):
        for name in told(given)[place]:
            for other in (None, 3, "x", [], {}, {"z": 1}, ["a", "b", "b"]):
                text = told(given)
                text[place][name] = other
                if (place, name) in {("counts", "differing")} and other == 3:
                    continue  # another count, which nothing contradicts
                if name in ("gain_function", "catalogue") and other == "x":
                    continue
                refused(written(given, text=text))
            text = told(given)
            if name == "catalogue":
                continue  # which states of format 6 lack
            del text[place][name]
            refused(written(given, text=text))
    text = told(given)
    text["counts"]["more"] = 1
    refused(written(given, text=text))


@pytest.mark.small
def test_a_state_with_the_rows_of_a_test_that_is_gone_says_what_to_use():
    text = told(table())
    text["job"]["tests"] = []  # as 0.9 wrote without them
    assert rankmill.parts.ComparisonState.from_table(written(table(), text=text)).metrics
    text["job"]["tests"] = ["map@3"]
    with pytest.raises(rankmill.UsageError, match=r"Tukey's test is gone: take .*; make it again"):
        rankmill.parts.ComparisonState.from_table(written(table(), text=text))


@pytest.mark.small
@pytest.mark.parametrize("weighted", [False, True])
def test_each_field_of_a_row_is_checked(weighted):
    given = table(weighted)
    for i, row in enumerate(given.to_pylist()):
        read = {"by", "slice", "queries", "metric", "system"}
        read |= {"differences"} if row["differences"] or row["system"] == "a" else set()
        read |= {"counts"} if row["counts"] else set()
        read |= {name for name in ("mean", "weighted") if row[name]}
        for name in sorted(read):
            for other in (None, "x", -5, 3, [], [None], [float("nan")], [1.0, 0.5], ["q"], "{}"):
                rows = given.to_pylist()
                rows[i][name] = other
                try:
                    damaged = written(given, rows)
                except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
                    continue  # a column cannot hold it
                if damaged.to_pylist() != given.to_pylist():
                    refused(damaged)


@pytest.mark.small
@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows[1:],
        lambda rows: rows[:-1],
        lambda rows: rows + rows[:1],
        lambda rows: rows + rows,
        lambda rows: [],
        lambda rows: [rows[0], rows[1] | {"counts": [n + 5 for n in rows[1]["counts"]]}, *rows[2:]],
        lambda rows: [one | {"queries": 2 * QUERIES} for one in rows],
        lambda rows: [one for one in rows if one["slice"] == []],
    ],
)
def test_rows_that_do_not_go_together_are_refused(change: Callable[[Any], Any]):
    given = table()
    refused(written(given, change(given.to_pylist())))
