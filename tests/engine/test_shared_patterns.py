"""Means from patterns that blocks share have the bits of those from each block, and of queries."""

import random

import numpy as np
import pyarrow as pa
import pytest

import rankmill
from rankmill.columns.elementary import discounts
from rankmill.engine import score
from rankmill.matching import hits as hits_of
from rankmill.matching.hits import Hits, group_hits, join_patterns, without_labels
from rankmill.metrics.aggregates.mean import Mean
from rankmill.metrics.registry import REGISTRY, is_defined, parse
from rankmill.metrics.values import Matched
from rankmill.semantics.choices import DEFAULT

METRICS = "map@5,ndcg@5,recall@3,judged@4,bpref,err@5,rbp@5,first_hit,dcg,pair_accuracy@4,infap"
# Lists without predictions count in it, so that each query stands for itself where gains differ.
COUNTS_EMPTY = ",user_coverage@2"


def sides(gains, seed=28, queries=300):
    """Labels and predictions of a few items, so that most queries share a pattern."""
    draw = random.Random(seed)
    labels = {"query": [], "item": [], "gain": []}
    for query in range(queries):
        for item in draw.sample(range(8), draw.randrange(4)):
            labels["query"].append(query)
            labels["item"].append(item)
            labels["gain"].append(draw.choice(gains))
    lists = [draw.sample(range(8), draw.randrange(6)) for _ in range(queries)]
    return pa.table(labels), pa.table({"query": range(queries), "items": lists})


def random_hits(draw, queries, graded):
    lengths, labels = draw.integers(0, 3, (2, queries))
    offsets, label_offsets = (np.append(0, np.cumsum(one)) for one in (lengths, labels))
    ranks = np.concatenate(
        [np.sort(draw.choice(4, one, replace=False)) + 1 for one in lengths.tolist()]
    ).astype(np.int64)
    return Hits(
        offsets=offsets,
        ranks=ranks,
        gains=draw.integers(1, 3, len(ranks)).astype(float) if graded else np.ones(len(ranks)),
        label_counts=labels,
        prediction_counts=draw.integers(4, 6, queries),
        label_offsets=label_offsets,
        label_gains=draw.integers(1, 3, label_offsets[-1]).astype(float) if graded else np.empty(0),
        discounts=discounts(queries - 1),
        repeats=0,
    )


def batches(table, rows):
    return pa.Table.from_batches(table.to_batches(max_chunksize=rows))


def told(labels, predictions, metrics=METRICS, **how):
    result = rankmill.evaluate(labels, predictions, metrics, per_query=False, **how).to_dict()
    return {key: value for key, value in result.items() if key != "seconds"}


@pytest.mark.small
@pytest.mark.parametrize("gains", [[1.0], [1.0, 2.0], [0.0, 1.0, 3.0], list(np.linspace(0, 3, 99))])
@pytest.mark.parametrize("most", [1, 20, 1 << 14])
def test_bits_do_not_depend_on_sharing(monkeypatch, gains, most):
    labels, predictions = sides(gains)
    monkeypatch.setattr(score, "WORTH_GROUPING", 100)
    metrics = METRICS + COUNTS_EMPTY
    expected = told(labels, predictions, metrics)
    monkeypatch.setattr(score, "WORTH_GROUPING", 4)
    monkeypatch.setattr(score, "MOST", most)
    for rows in (7, 300):
        for threads in (1, 3):
            assert told(labels, batches(predictions, rows), metrics, threads=threads) == expected


@pytest.mark.small
@pytest.mark.parametrize("place", [0, 1])
def test_parts_without_any_label_join_those_with_gains(place):
    hits = random_hits(np.random.default_rng(5), 40, graded=True)
    none = hits.take(np.flatnonzero((hits.label_counts == 0) & (np.diff(hits.offsets) == 0)))
    assert len(none.label_counts) > 0
    assert not len(none.label_gains)
    parts = [group_hits(hits)]
    parts.insert(place, group_hits(none))
    joined = join_patterns(parts).hits
    assert np.diff(joined.label_offsets).tolist() == joined.label_counts.tolist()
    assert joined.label_offsets[-1] == len(joined.label_gains)


@pytest.mark.small
def test_blocks_without_any_label_do_not_change_a_bit():
    labels = pa.table({"query": [1, 1, 2], "item": [8, 9, 8], "gain": [3.0, 1.0, 2.0]})
    rows = {"query": [1, 1, 2, 2, 3, 3, 3], "item": [8, 9, 9, 8, 8, 7, 6]}
    predictions = pa.table(rows | {"rank": [1, 2, 1, 2, 1, 2, 3]})
    metrics = "map,ndcg@3,recall,precision@2"
    expected = told(labels, predictions, metrics)
    for count in (2, 3):
        for _ in range(5):  # which thread has which rows differs
            blocks = batches(predictions, count)
            assert told(labels, blocks, metrics, threads=2, memory=1) == expected


@pytest.mark.parametrize("order", ["worst", "best"])
def test_labels_are_found_among_judged_items_whatever_the_order_of_ties(monkeypatch, order):
    labels, predictions = sides([0.0, 1.0, 3.0])
    lists = predictions["items"].to_pylist()
    scores = [[len(one) - rank // 2 for rank in range(len(one))] for one in lists]
    predictions = predictions.append_column("scores", pa.array(scores, pa.list_(pa.float64())))
    metrics = "map@5,ndcg@5,judged@4,bpref,precision@2"
    semantics = {"order": order}
    shared = told(labels, predictions, metrics, semantics=semantics)
    monkeypatch.setattr(score, "WORTH_GROUPING", 100)
    assert told(labels, predictions, metrics, semantics=semantics) == shared


def test_each_pattern_is_computed_once(monkeypatch):
    labels, predictions = sides([1.0])
    added = []
    monkeypatch.setattr(
        Mean,
        "add",
        lambda mean, values, counts, add=Mean.add: added.append(1) or add(mean, values, counts),
    )
    told(labels, batches(predictions, 7), threads=1)
    assert len(added) == len(METRICS.split(","))  # and not for each of 43 blocks


def test_gains_do_not_matter_to_metrics_that_see_none():
    defined = [parse(one.example) for one in REGISTRY.values() if one.kernel]
    defined = [one for one in defined if is_defined(one, DEFAULT) and one.spec.gains != "subtopics"]
    blind = [one.text for one in defined if one.sees == "ranks"]
    assert {"map", "precision@10", "recall", "first_hit", "rbp", "num_rel_ret"} <= {*blind}
    labels, predictions = sides([1.0, 2.0, 3.5])
    lists = predictions.set_column(1, "items", pa.array([[*range(q % 7 + 1)] for q in range(300)]))
    every = labels.append_column("one", pa.array(np.ones(len(labels))))
    given, plain = (
        every.drop(["one"]),
        every.drop(["gain"]).rename_columns(["query", "item", "gain"]),
    )
    semantics = {"unpredicted": "skip", "unlabelled": "skip", "no_relevant": "skip"}
    for side in ([{}], [{"per_query": True}]):
        found, expected = (
            rankmill.evaluate(one, lists, blind, semantics=semantics, **side[0]).to_dict()
            for one in (given, plain)
        )
        assert found["metrics"] == expected["metrics"]


def test_labels_that_are_no_hits_do_not_matter_to_metrics_that_see_none():
    defined = [parse(one.example) for one in REGISTRY.values() if one.kernel]
    some = [one for one in defined if one.sees == "gains"]
    names = {one.text for one in some}
    assert {"dcg", "err", "bpm@10", "insq", "inst", "judged@10", "pair_accuracy"} <= names
    hits = random_hits(np.random.default_rng(1), 200, graded=True)
    full, narrow = Matched(hits), Matched(without_labels(hits))
    for one in some:
        assert np.array_equal(full.values(one), narrow.values(one)), one.text


@pytest.mark.parametrize("graded", [False, True])
def test_joined_patterns_are_those_of_all_queries(graded):
    draw = np.random.default_rng(28)

    def shapes(patterns):
        found = {}
        one = patterns.hits
        for q, count in enumerate(patterns.counts.tolist()):
            hits = slice(*one.offsets[q : q + 2])
            key = (*one.ranks[hits], *one.gains[hits], one.prediction_counts[q])
            if graded and len(one.ranks[hits]):
                key += (*one.label_gains[slice(*one.label_offsets[q : q + 2])],)
            elif not graded:
                key += (one.label_counts[q],)
            else:
                key = ()
            assert key not in found
            found[key] = count
        return found

    blocks = [random_hits(draw, queries, graded) for queries in (40, 1, 70)]
    joined = join_patterns([group_hits(one) for one in blocks])
    every = blocks[0]._replace(
        **{
            name: np.concatenate([getattr(one, name) for one in blocks])
            for name in ("ranks", "gains", "label_counts", "prediction_counts", "label_gains")
        },
        offsets=np.append(0, np.cumsum(np.concatenate([np.diff(one.offsets) for one in blocks]))),
        label_offsets=np.append(
            0, np.cumsum(np.concatenate([np.diff(one.label_offsets) for one in blocks]))
        ),
    )
    assert shapes(joined) == shapes(group_hits(every))
    assert joined.counts.sum() == 111
    assert len(joined.hits.discounts) == 70


def test_one_part_is_joined_already():
    assert hits_of.join_patterns(["as it is"]) == "as it is"
