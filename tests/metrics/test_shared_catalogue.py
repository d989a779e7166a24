"""Without a catalogue, coverage and gini of several systems are over the items of all of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rankmill
from rankmill import Catalogue, InputError, UsageError

METRICS = ["coverage@3", "coverage", "gini@3", "map@3"]


def lists(draw: random.Random, items: list[str], most: int) -> dict[str, list[str]]:
    return {f"q{n}": draw.sample(items, draw.randint(0, most)) for n in range(40)}


@pytest.fixture
def given() -> tuple[dict[str, list[str]], dict[str, dict[str, list[str]]]]:
    draw = random.Random(4)
    items = [f"i{n}" for n in range(60)]
    labels = {query: one or ["i0"] for query, one in lists(draw, items[:20], 4).items()}
    runs = {"few": lists(draw, items[10:30], 3), "many": lists(draw, items[15:], 9)}
    # What only a query without labels is shown counts, too.
    runs["few"]["stranger"] = ["only here"]
    return labels, runs


def items_of(labels: Any, runs: Any) -> Any:
    every = {one for side in (labels, *runs.values()) for some in side.values() for one in some}
    return pa.table({"item_id": sorted(every)})


@pytest.mark.small
def test_values_are_those_over_all_items(given: Any) -> None:
    labels, runs = given
    found = rankmill.evaluate_runs(labels, runs, METRICS, by="label_count")
    catalogue = Catalogue(items=items_of(labels, runs))
    for name, run in runs.items():
        whole = rankmill.evaluate(labels, run, METRICS, catalogue=catalogue, by="label_count")
        assert found[name].metrics == whole.metrics
        assert found[name].by == whole.by
        # Alone, a system has a catalogue of its own.
        alone = rankmill.evaluate(labels, run, METRICS)
        assert alone["coverage"] > whole["coverage"]
        assert alone["map@3"] == whole["map@3"]


@pytest.mark.small
def test_differences_are_those_over_all_items(given: Any) -> None:
    labels, runs = given
    catalogue = Catalogue(items=items_of(labels, runs))
    found = rankmill.compare(labels, runs, METRICS)
    whole = rankmill.compare(labels, runs, METRICS, catalogue=catalogue)
    assert found.values == whole.values
    assert found.differences == whole.differences
    rule = "coverage@3 drop <= 5%"
    for catalogue_of in ({}, {"catalogue": catalogue}):
        one = rankmill.gate(labels, runs["many"], rule, baseline=runs["few"], **catalogue_of)
        assert one.word == "not enough data"  # of 40 queries
        assert one.outcomes[0].value == whole.values["coverage@3"]["many"].value


@pytest.mark.small
def test_why_a_coverage_that_never_changes_is_not_tested() -> None:
    queries = [f"q{n}" for n in range(60)]
    labels, old, new = ({query: [*some] for query in queries} for some in ("a", "ab", "abc"))
    found = rankmill.compare(labels, {"old": old, "new": new}, "coverage")
    assert found.differences["coverage"]["new"].tests["t"].p is None
    told = "it is the same without any one of "
    assert any(told in note for note in found.notes)


@pytest.mark.small
def test_what_cannot_have_one_catalogue_is_refused(given: Any, tmp_path: Path) -> None:
    labels, runs = given
    rows = [{"query": query, "items": some} for query, some in runs["few"].items()]
    stream = pa.RecordBatchReader.from_batches(
        (table := pa.Table.from_pylist(rows)).schema, table.to_batches()
    )
    with pytest.raises(UsageError, match=r"of several systems .* can be read only once: give the"):
        rankmill.evaluate_runs(labels, {"a": stream, "b": runs["many"]}, "coverage@3")
    # Two nights have two catalogues.
    history = rankmill.History(tmp_path / "nights")
    history.record(rankmill.gate(labels, runs["few"], "coverage@3 > 0"))
    for rule in ("coverage@3 drop <= 5%", "coverage@3 drop <= 5% confidence none"):
        asked: Any = {"baseline": "last", "history": tmp_path / "nights"}
        with pytest.raises(UsageError, match=r"different catalogues.*Catalogue\(items=\.\.\.\)"):
            rankmill.gate(labels, runs["many"], rule, **asked)


@pytest.mark.small
def test_slices_of_one_system_are_told_to_have_their_own(given: Any) -> None:
    labels, runs = given
    told = "coverage@3: each slice has a catalogue of its own"
    found = rankmill.evaluate(labels, runs["many"], "coverage@3", by="label_count")
    assert any(note.startswith(told) for note in found.notes)
    more = {"catalogue": Catalogue(items=items_of(labels, runs))}
    for by, options in (((), {}), ("label_count", more)):
        one = rankmill.evaluate(labels, runs["many"], "coverage@3", by=by, **options)
        assert not any(note.startswith(told) for note in one.notes)
    both = rankmill.evaluate_runs(labels, runs, "coverage@3", by="label_count")
    assert not any(note.startswith(told) for one in both.values() for note in one.notes)


def test_wrong_data_are_told_as_ever(given: Any) -> None:
    labels, runs = given
    twice = pa.table({"query": ["q1", "q1"], "items": [["i1"], ["i2"]]})
    with pytest.raises(InputError, match="q1"):
        rankmill.evaluate_runs(labels, {"a": twice, "b": runs["many"]}, "coverage@3")
