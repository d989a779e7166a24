"""Dropping the predictions that a scope leaves out: those beyond a depth, and unjudged ones."""

import numpy as np

from rankmill.columns.ranked_lists import Lists
from rankmill.matching.hits import match
from rankmill.matching.label_lists import LabelLists
from rankmill.semantics.scope import Scope


def within(
    lists: Lists, labels: LabelLists, rows: np.ndarray, scope: Scope
) -> tuple[Lists, dict[str, int]]:
    """The lists with only the predictions in a scope, and the audit of those that were dropped.

    As in trec_eval, the lists are cut at the depth before unjudged predictions are dropped.
    """
    first = lists if scope.depth is None else lists.keep(ranks_of(lists.offsets) <= scope.depth)
    left = only_judged(first, labels, rows) if scope.judged_only else first
    counts = [len(one.items.keys) for one in (lists, first, left)]
    return left, {
        "items_beyond_depth": counts[0] - counts[1],
        "unjudged_items": counts[1] - counts[2],
    }


def only_judged(lists: Lists, labels: LabelLists, rows: np.ndarray) -> Lists:
    """The lists without the items that are not judged; list q belongs to the labels at rows[q]."""
    judged = labels if labels.judged is None else labels.judged
    every = len(lists.items.keys)
    found = match(judged, lists.offsets, lists.items, every, rows=rows, repeats_count=True)
    places = np.repeat(lists.offsets[:-1], np.diff(found.offsets)) + found.ranks - 1
    keep = np.zeros(every, np.bool_)
    keep[places[found.gains >= 0]] = True
    return lists.keep(keep)


def ranks_of(offsets: np.ndarray) -> np.ndarray:
    """The rank of each item in its list, from 1."""
    ranks: np.ndarray = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    return ranks
