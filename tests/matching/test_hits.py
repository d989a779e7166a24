"""Short lists, which are compared all at once, have the hits of items compared one by one."""

import numpy as np
import pyarrow as pa
import pytest

from rankmill.columns.ids import to_ids
from rankmill.columns.lists import offsets_of
from rankmill.matching.hits import match
from rankmill.matching.label_lists import LabelLists

QUERIES = 60
LONGEST = 18  # two more than are compared at once
EVERY = 1 << 62


def naive(labels, lists, limit, repeats_count):
    """The ranks and the places of the labels of all hits, and the number of repeats."""
    ranks, places, repeats, before = [], [], 0, 0
    for wanted, items in zip(labels, lists, strict=True):
        seen = set()
        for rank, item in enumerate(items, 1):
            again = item in seen
            repeats += again
            seen.add(item)
            if item in wanted and rank <= limit and (repeats_count or not again):
                ranks.append(rank)
                places.append(float(before + wanted.index(item)))
        before += len(wanted)
    return ranks, places, repeats


def matched(labels, lists, kind, limit, **how):
    offsets = [offsets_of(np.array([*map(len, some)])) for some in (labels, lists)]
    ids = [
        to_ids(pa.array([one for row in some for one in row], kind), "") for some in (labels, lists)
    ]
    gains = np.arange(len(ids[0].keys), dtype=np.float64)
    return match(LabelLists(offsets[0], ids[0], gains), offsets[1], ids[1], limit, **how)


def drawn(draw, text):
    labels = [draw.choice(30, draw.integers(0, LONGEST), replace=False) for _ in range(QUERIES)]
    lists = [draw.integers(0, 30, draw.integers(0, LONGEST)) for _ in range(QUERIES)]
    name = (lambda one: f"item {one}") if text else int
    return [[[name(one) for one in row] for row in some] for some in (labels, lists)]


@pytest.mark.small
@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
@pytest.mark.parametrize("limit", [1, 5, EVERY])
def test_hits_are_those_of_items_compared_one_by_one(kind, limit):
    draw = np.random.default_rng(limit % 97)
    for _ in range(4):
        labels, lists = drawn(draw, pa.types.is_string(kind))
        for each in (False, True):
            ranks, places, repeats = naive(labels, lists, limit, each)
            found = matched(labels, lists, kind, limit, repeats_count=each)
            assert (found.ranks.tolist(), found.gains.tolist()) == (ranks, places)
            assert found.repeats == repeats > 0
            quick = matched(labels, lists, kind, limit, repeats_count=each, needs_repeats=False)
            assert (quick.ranks.tolist(), quick.gains.tolist()) == (ranks, places)


@pytest.mark.small
def test_strings_with_one_key_are_compared_in_full(monkeypatch):
    """The product with a seed of 0 is 0, so all strings get the same key."""
    monkeypatch.setattr("rankmill.columns.ids.SEED", np.uint64(0))
    draw = np.random.default_rng(0)
    labels, lists = drawn(draw, text=True)
    labels += [["item 1"], ["item 2", "item 1"], ["item 1"]] * 6
    lists += [["item 2"], ["item 1"], ["item 2", "item 1", "item 1"]] * 6
    labels += [["item 1", "item 2"]] * 18
    lists += [["item 1", "item 2"]] * 18
    for needed in (True, False):
        found = matched(labels, lists, pa.string(), EVERY, needs_repeats=needed)
        ranks, places, repeats = naive(labels, lists, EVERY, False)
        assert (found.ranks.tolist(), found.gains.tolist()) == (ranks, places)
        assert found.repeats == repeats or not needed
