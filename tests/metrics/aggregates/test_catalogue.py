"""Metrics over a catalogue: against the oracle, whatever the batches, parts, threads and order."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import tells
from hypothesis import given, settings
from hypothesis import strategies as st

import catalogue_oracle
import rankmill
from catalogues import CLOSE, KINDS, LISTS, METRICS, assert_values, table
from flat import flat
from rankmill import Catalogue, UsageError
from rankmill.columns.ids import ids_to_arrow, to_ids
from rankmill.kernels.identity import SIGNED, Ids
from rankmill.metrics.exposure import Entropy, Exposure, ExposureCounters, Gini
from rankmill.metrics.records import item_counts
from rankmill.metrics.records.item_counts import (
    NO_RANKS,
    NO_REPEATS,
    ItemCounter,
    ItemCounts,
    Total,
)
from sealed_rows import resealed
from strategies import examples, some


@pytest.mark.small
@settings(max_examples=examples(60))
@given(LISTS, LISTS, st.sampled_from([*KINDS]), st.randoms(use_true_random=False))
def test_the_oracle(
    labels: dict[int, list[int]], predictions: dict[int, list[int]], kind: str, draw: random.Random
) -> None:
    """Also in two parts, in other orders, and through rows of Arrow: the same to the last bit."""
    if not any(labels.values()):
        return
    name, arrow = KINDS[kind]
    sides = [
        {query: [name(item) for item in listed] for query, listed in one.items()}
        for one in (labels, predictions)
    ]
    tables = [table(one, arrow) for one in sides]
    expected = {text: catalogue_oracle.value(text, *sides) for text in METRICS}
    part = rankmill.parts.evaluate_part(*tables, METRICS)
    assert_values(part.result().metrics, expected)
    if len(tables[1]):
        assert rankmill.evaluate(*tables, METRICS).metrics == part.result().metrics
    states = []
    for half in (0, 1):
        cut = [
            one.filter(pa.array([q % 2 == half for q in one["query"].to_pylist()], pa.bool_()))
            for one in tables
        ]
        cut = [one.take(np.array(draw.sample(range(len(one)), len(one)), np.int64)) for one in cut]
        state = rankmill.parts.evaluate_part(*cut, METRICS)
        row = pa.Table.from_pylist([state.to_row()]).to_pylist()[0]
        states.append(rankmill.parts.State.from_row(row))
    first, second = states
    for merged in (first.merge(second), second.merge(first)):
        assert merged.result().metrics == part.result().metrics


@pytest.mark.small
@pytest.mark.parametrize("kind", ["near", "far", "text"])
def test_by_hand(kind: str) -> None:
    """Three lists show a, b, b, c, b at two places each; of b a repeat does not count."""
    (name, arrow), lists = KINDS[kind], [["a", "b", "b"], ["b", "c", "d"], ["b"], []]
    shown = [[name("abcdz".index(one)) for one in listed] for listed in lists]
    labels = table({q: [name(n)] for q, n in ((1, 0), (2, 1), (3, 4))}, arrow)
    predictions = table(dict(zip((1, 2, 4, 5), shown, strict=True)), arrow)
    result = rankmill.evaluate(labels, predictions, [*METRICS, "user_coverage@2", "user_coverage"])
    assert result["coverage@1"] == 2 / 5
    assert result["coverage"] == 4 / 5
    assert result["coverage_of_labels@1"] == 2 / 3
    assert result["hhi@3"] == (9 + 1 + 1 + 1) / 36
    assert result["personalization@3"] == 2 / 3
    # Counts 0, 1, 1, 1, 3 of five items: (-2 + 0 + 2 + 4 * 3) / (4 * 6).
    assert result["gini@3"] == 12 / 24
    assert result["entropy@1"] == pytest.approx(1 / 3 * np.log2(3) + 2 / 3 * np.log2(3 / 2))
    assert result["user_coverage@2"] == result["user_coverage"] == 2 / 3
    assert result.standard_errors["gini@3"] is None
    assert result.queries == 3
    assert "gini@3" not in result.per_query.column_names


@pytest.mark.small
def test_bounds() -> None:
    """All items shown as often as the others; one item in all lists; lists that share nothing."""
    labels = table({n: [n] for n in range(4)}, pa.int64())
    same = table({n: [7] for n in range(4)}, pa.int64())
    metrics = ["gini", "entropy", "hhi", "personalization@1", "coverage", "coverage_of_labels"]
    assert [*rankmill.evaluate(labels, labels, metrics).metrics.values()] == [0, 2, 0.25, 1, 1, 1]
    assert [*rankmill.evaluate(labels, same, metrics).metrics.values()] == [1, 0, 1, 0, 0.2, 0]


# ------------------------------------------------------------------ other evaluators


@pytest.mark.parametrize("seed", range(20))
def test_gini_as_elliot_and_recmetrics_have_them(seed: int) -> None:
    """Elliot has 1 - gini; recmetrics the mean cosine of lists, which are of one length here."""
    draw = np.random.default_rng(seed)
    users, items, k = 30, 40, 5
    lists = {u: draw.choice(items, k, replace=False).tolist() for u in range(users)}
    labels = table({u: [u] for u in range(items)}, pa.int64())
    found = rankmill.evaluate(labels, table(lists, pa.int64()), f"gini@{k},personalization@{k}")
    counts = sorted(np.bincount(np.array([*lists.values()]).ravel(), minlength=items))
    shares = np.array(counts) / (users * k)
    weights = 2 * np.arange(1, items + 1) - items - 1
    assert found[f"gini@{k}"] == pytest.approx((weights * shares).sum() / (items - 1), rel=1e-12)
    shown = np.zeros((users, items))
    for user, listed in lists.items():
        shown[user, listed] = 1
    cosines = shown @ shown.T / k
    personal = 1 - (cosines.sum() - users) / (users * (users - 1))
    assert found[f"personalization@{k}"] == pytest.approx(personal, rel=1e-12)


# ------------------------------------------------------------------ many blocks


def large(kind: str, seed: int = 3) -> tuple[pa.Table, pa.Table]:
    draw = np.random.default_rng(seed)
    name, arrow = KINDS[kind]
    lists = {q: [name(int(n)) for n in draw.integers(0, 900, 4)] for q in range(2000)}
    labels = {q: [name(int(n)) for n in draw.integers(500, 1500, 2)] for q in range(0, 2500, 2)}
    return table(labels, arrow), table(lists, arrow)


@pytest.mark.parametrize("kind", some(["text", "near"], 2))
@pytest.mark.long
def test_blocks_threads_ranges_and_shapes_change_no_bit(tmp_path: Path, kind: str) -> None:
    labels, predictions = large(kind)
    first = rankmill.evaluate(labels, predictions, METRICS)
    sides = [
        dict(zip(one["query"].to_pylist(), one["items"].to_pylist(), strict=True))
        for one in (labels, predictions)
    ]
    unique = {q: [*dict.fromkeys(listed)] for q, listed in sides[1].items()}
    for text in ("coverage", "gini", "entropy", "hhi", "coverage_of_labels"):
        assert first[text] == pytest.approx(catalogue_oracle.value(text, sides[0], unique), **CLOSE)
    paths = tmp_path / "l.parquet", tmp_path / "p.parquet"
    for one, path in zip((labels, predictions), paths, strict=True):
        pq.write_table(one, path, row_group_size=300)
    how: list[dict[str, Any]] = [{"threads": 1}, {"threads": 3}]
    how += [{"threads": 2, "memory": 1 << 14, "per_query": False}]
    for options in how:
        assert flat(rankmill.evaluate, *paths, METRICS, **options).metrics == first.metrics
    mixed = predictions.take(np.random.default_rng(0).permutation(len(predictions)))
    assert rankmill.evaluate(labels, mixed, METRICS).metrics == first.metrics
    long = pa.table(
        {
            "query": np.repeat(np.arange(2000), 4),
            "item": pa.chunked_array(predictions["items"]).combine_chunks().flatten(),
            "rank": np.tile(np.arange(4), 2000),
        }
    )
    scattered = long.take(np.random.default_rng(1).permutation(len(long)))
    for rows in (long, scattered):
        assert rankmill.evaluate(labels, rows, METRICS).metrics == first.metrics


@pytest.mark.small
@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 70), max_size=5), max_size=6), min_size=1, max_size=5
    ),
    st.sampled_from([*KINDS]),
    st.sampled_from([(1,), (2, 4), (1, 2, 1 << 62)]),
)
def test_counters(blocks: list[list[list[int]]], kind: str, cutoffs: tuple[int, ...]) -> None:
    """One counter over all blocks, and one for each whose counts are merged."""
    name, arrow = KINDS[kind]
    whole, merged = ItemCounter(cutoffs), ItemCounts(len(cutoffs))
    expected: dict[Any, list[int]] = {}
    for block in blocks:
        offsets = np.append(0, np.cumsum([len(one) for one in block])).astype(np.int64)
        items = [name(n) for one in block for n in one]
        ids = to_ids(pa.array(items, arrow), "items")
        own = ItemCounter(cutoffs)
        for counter in (whole, own):
            counter.add(offsets, ids)
        merged = merged.merge(own.counts())
        for one in block:
            for rank, n in enumerate(one, 1):
                column = next((c for c, k in enumerate(cutoffs) if rank <= k), None)
                if column is not None:
                    expected.setdefault(name(n), [0] * len(cutoffs))[column] += 1
    for found in (whole.counts(), merged):
        ids, counts = found.joined()
        pairs = zip(ids_to_arrow(ids, set()).to_pylist(), counts.tolist(), strict=True)
        assert dict(pairs) == expected
        again = ItemCounts.from_row(found.to_row(), "", len(cutoffs))
        assert again.to_row().keys() == found.to_row().keys()
        assert len(again.joined()[1]) == len(expected)


def test_a_table_that_grows_and_numbers_that_move_apart() -> None:
    """The first block lies close together, the second far away, the third has many new items."""
    counter = ItemCounter([2])
    blocks = [np.arange(100), np.arange(100) * 10**15, np.arange(50_000) * 7 - 10**12]
    for block in blocks:
        counter.add(np.arange(len(block) + 1), to_ids(block, "items"), NO_RANKS, NO_REPEATS)
    ids, counts = counter.counts().joined()
    items, times = np.unique(np.concatenate(blocks), return_counts=True)
    found = dict(zip(ids.keys.view(np.int64).tolist(), counts[:, 0].tolist(), strict=True))
    assert found == dict(zip(items.tolist(), times.tolist(), strict=True))


def test_inequality_of_many_counts_is_exact() -> None:
    """Counts beyond what a float holds; the order of the items does not matter."""
    counts = np.array([1 << 40, 3, (1 << 40) + 1, 3, 7])
    keys = np.arange(5, dtype=np.uint64)
    none = np.empty(0, np.int64)
    values = set()
    for order in (slice(None), slice(None, None, -1)):
        shown = np.column_stack([counts[order], np.ones(5, np.int64)])
        exposure = Exposure.of(ExposureCounters((9,)))
        ids = Ids(keys, none, none, np.empty(0, np.uint8), SIGNED)
        exposure = replace(exposure, shown=exposure.shown.with_counts(ids, shown))
        values.add((Gini(9).value(exposure), Entropy(9).value(exposure)))
    ((gini, entropy),) = values
    share = np.sort(counts) / counts.sum()
    assert gini == pytest.approx((share * [-4, -2, 0, 2, 4]).sum() / 4, rel=1e-14)
    assert entropy == pytest.approx(-(share * np.log2(share)).sum(), rel=1e-12)


# ------------------------------------------------------------------ refused, and elsewhere

LABELS = table({1: ["a"], 2: ["b"]}, pa.string())


@pytest.mark.small
@pytest.mark.parametrize("order", ["expected", "worst", "best"])
def test_orders_that_leave_open_what_is_shown(order: str) -> None:
    scored = LABELS.append_column("score", pa.array([[1.0], [1.0]]))
    with pytest.raises(UsageError) as caught:
        rankmill.evaluate(LABELS, scored, "gini@3", semantics={"order": order})
    tells(caught.value, ["gini@3", "first 3", order, "item_descending"])
    assert (
        rankmill.evaluate(LABELS, scored, "coverage", semantics={"order": order})["coverage"] == 1
    )


@pytest.mark.small
@pytest.mark.parametrize("order", ["expected", "worst", "best"])
@pytest.mark.parametrize("name", ["coverage_of_labels", "serendipity", "impact_parity"])
def test_orders_that_leave_open_which_item_is_hit(order: str, name: str) -> None:
    """These orders move hits among equal confidences, and not the items."""
    for metric in (name, f"{name}@3"):
        with pytest.raises(UsageError, match=f"{metric} depends on .* than '{order}'"):
            rankmill.evaluate(LABELS, LABELS, metric, semantics={"order": order})


@pytest.mark.small
def test_refused() -> None:
    with pytest.raises(UsageError, match="personalization needs a cutoff"):
        rankmill.evaluate(LABELS, LABELS, "personalization")
    with pytest.raises(
        UsageError, match="explain does not support gini: it is of all lists together"
    ) as why:
        rankmill.explain(LABELS, LABELS, "gini", 1)
    tells(why.value, ["explain takes map,", "gap, auprc,", "subtopic_recall"])
    with pytest.raises(UsageError, match="gini has no value for each query: leave out :gm"):
        rankmill.evaluate(LABELS, LABELS, "gini:gm")
    weighted = LABELS.append_column("weight", pa.array([1.0, 2.0]))
    with pytest.raises(UsageError, match="gini is not a mean over queries"):
        rankmill.evaluate(rankmill.Labels(weighted, weight="weight"), LABELS, "gini")
    with pytest.raises(UsageError, match="gini is not a mean over queries, and cannot be part"):
        rankmill.parts.compare_part(LABELS, {"a": LABELS, "b": LABELS}, ["gini"])
    parts = [rankmill.parts.evaluate_part(LABELS, LABELS, one) for one in ("gini@2", "gini@3")]
    with pytest.raises(UsageError, match="other metrics"):
        parts[0].merge(parts[1])


@pytest.mark.small
def test_a_comparison_has_the_values_and_a_test() -> None:
    labels = table({query: [item] for query, item in enumerate("abcdefgh")}, pa.string())
    other = table({query: [item] for query, item in enumerate("aabbbccd")}, pa.string())
    found = rankmill.compare(labels, {"a": labels, "b": other}, ["map", "coverage@1"])
    assert found.values["coverage@1"]["b"].value == 0.5
    assert found.differences["coverage@1"]["b"].value == -0.5
    assert found.differences["coverage@1"]["b"].tests["t"].p is not None
    assert "more lists show more items" in str(found)


@pytest.mark.small
def test_a_gate_has_absolute_rules() -> None:
    verdict = rankmill.gate(LABELS, LABELS, ["coverage@1 >= 0.9", "gini@1 <= 0.1"])
    assert [one.word for one in verdict.outcomes] == ["held", "held"]


@pytest.mark.small
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("shown.counts", [1, 2, 3], ["shown.counts", "3 numbers", "items"]),
        ("shown.kind", 7, ["shown.kind", "7"]),
        ("shown.ends", [2, 1], ["shown.ends"]),
        ("shown.data", [300, 1], ["shown.data", "256"]),
        ("cutoffs", [5], ["cutoffs"]),
        ("cutoffs", [], ["cutoffs"]),
        ("lists", -1, ["lists", "-1"]),
    ],
)
def test_damaged_rows(field: str, value: Any, words: list[str]) -> None:
    row = rankmill.parts.evaluate_part(LABELS, LABELS, "gini@3").to_row()
    with pytest.raises(UsageError) as caught:
        rankmill.parts.State.from_row(resealed(row | {f"exposure.{field}": value}))
    tells(caught.value, ["damaged", *words])


# ------------------------------------------------------------------ beyond memory


@pytest.mark.small
@pytest.mark.lengthy
@pytest.mark.parametrize("kind", [*KINDS])
@pytest.mark.parametrize("listed", [False, True])
def test_tables_without_room_are_added_up(
    kind: str, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All values keep their bits, or an error says that all items take more than is allowed."""
    added: list[int] = []
    add = Total.add
    monkeypatch.setattr(
        Total, "add", lambda total, *some: added.append(len(some[1])) or add(total, *some)
    )
    name, arrow = KINDS[kind]
    numbers = np.random.default_rng(3).integers(0, 5000, 15_000)
    lists = [[name(n) for n in some.tolist()] for some in numbers.reshape(-1, 3)]
    queries = np.arange(len(lists))
    shown = pa.table({"user_id": queries, "items": pa.array(lists, pa.list_(arrow))})
    shown = pa.Table.from_batches(shown.to_batches(max_chunksize=900))
    labels = pa.table({"user_id": queries, "items": pa.array(lists[::-1], pa.list_(arrow))})
    every = sorted({item for some in lists for item in some})[::2]
    catalogue = Catalogue(items=pa.table({"item": pa.array(every, arrow)})) if listed else None
    metrics = ["coverage@1", "coverage@2", "coverage", "coverage_of_labels@2", "gini@2"]
    metrics += ["entropy@2", "hhi@2", "personalization@2"]
    options: dict[str, Any] = {"catalogue": catalogue, "per_query": False}
    whole = rankmill.evaluate(labels, shown, metrics, threads=1, **options)
    tables = len(added)
    assert rankmill.evaluate(labels, shown, metrics, memory=1, **options).metrics == whole.metrics
    monkeypatch.setattr(item_counts, "SPARED", 0)
    monkeypatch.setattr(item_counts, "AT_ONCE", 1000)  # so that partitions are joined
    memory = {"near": 800_000, "text": 1_600_000}.get(kind, 1_400_000)
    for threads in (1, 3):
        added.clear()
        options |= {"memory": memory, "threads": threads}
        assert rankmill.evaluate(labels, shown, metrics, **options).metrics == whole.metrics
        assert len(added) > tables
    options["memory"] = 100_000
    with pytest.raises(rankmill.ResourceError, match=r"more than 0MB .* for [0-9,]+ items so far"):
        rankmill.evaluate(labels, shown, metrics, **options)
    part = partial(rankmill.parts.evaluate_part, labels, shown, metrics, catalogue=catalogue)
    state = rankmill.parts.State.from_row(part(memory=memory).to_row())
    assert state.result().metrics == whole.metrics
