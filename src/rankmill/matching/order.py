"""Putting lists of predictions in order, removing repeats, and what is out of scope."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import id_text, ids_to_arrow, take_ids
from rankmill.columns.lists import sort_values
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import InputError
from rankmill.kernels.hits import mark_repeats
from rankmill.kernels.identity import SEED, Ids
from rankmill.kernels.order import count_runs, move_hits
from rankmill.matching.hits import Hits, match
from rankmill.matching.label_lists import LabelLists
from rankmill.semantics.choices import Choices, Scope


def changes_lists(semantics: Choices) -> bool:
    """Return whether `arrange` may change any list."""
    return semantics.order != "given" or semantics.repeated_predictions in ("drop", "error")


def arrange(lists: Lists, semantics: Choices) -> Lists:
    """Return the lists of predictions in the order of the semantics, without repeats if so asked.

    Lists without confidences keep their order. InputError if a prediction repeats an earlier one,
    and the semantics make this an error or do not say in which order equal confidences come.
    """
    by_confidence = semantics.order != "given" and lists.numbers is not None
    if by_confidence:
        lists = _by_confidence(lists, semantics.order)
    refused = semantics.repeated_predictions == "error" or (
        semantics.repeated_predictions == "once" and by_confidence and semantics.ties_open
    )
    if refused or semantics.repeated_predictions == "drop":
        repeat = np.empty(len(lists.items.keys), np.bool_)
        if mark_repeats(lists.offsets, lists.items, SEED, repeat):
            if refused:
                raise _repeated(lists, int(repeat.argmax()), semantics)
            lists = replace(lists.keep(~repeat), repeats=int(repeat.sum()))
    return lists


def _by_confidence(lists: Lists, order: str) -> Lists:
    confidences = keys = lists.confidences
    if order == "item_descending_float32":
        with np.errstate(over="ignore"):
            keys = keys.astype(np.float32).astype(np.float64)
    places, tied = sort_values(lists.offsets, -keys)
    if tied and order.startswith("item_"):
        places = np.arange(len(lists.items.keys)) if places is None else places
        _sort_ties(lists, places, keys[places], order.split("_")[1])
        tied = 0
    if places is None:
        return replace(lists, tied=tied if order == "confidence" else 0)
    return replace(
        lists,
        items=take_ids(lists.items, places),
        numbers=confidences[places],
        tied=tied if order == "confidence" else 0,
    )


def _sort_ties(lists: Lists, places: np.ndarray, confidences: np.ndarray, direction: str) -> None:
    """Sort the items of equal confidence by their text; equal confidences are adjacent."""
    new = np.ones(len(places) + 1, np.bool_)
    np.not_equal(confidences[1:], confidences[:-1], out=new[1:-1])
    new[lists.offsets] = True
    members = np.flatnonzero(~(new[:-1] & new[1:]))  # only those with an equal neighbour
    run = np.cumsum(new[members])
    text = text_of(take_ids(lists.items, places[members]))
    table = pa.table([arrow_of(run), text], names=["run", "text"])
    import pyarrow.compute as pc

    order = pc.sort_indices(table, sort_keys=[("run", "ascending"), ("text", direction)])
    places[members] = places[members][numbers_of(order)]


def text_of(ids: Ids) -> Any:
    """Return ids as an Arrow array of text, which Arrow compares byte by byte."""
    return ids_to_arrow(ids, set()).cast(pa.large_string())


def _repeated(lists: Lists, place: int, semantics: Choices) -> InputError:
    row = int(np.searchsorted(lists.offsets, place, side="right")) - 1
    at = lists.place.at(row)
    where = at.of(0)
    where += ", " if where else ""
    why = (
        "repeated_predictions is 'error'"
        if semantics.repeated_predictions == "error"
        else f"a repeat leaves open what order {semantics.order!r} means"
    )
    return InputError(
        f"{at.source}: {where}query {id_text(lists.queries, row)} predicts item "
        f"{id_text(lists.items, place)} a second time, but {why}: drop the repeats, or use "
        "--semantics repeated_predictions=drop, or --semantics repeated_predictions=each to count "
        "every repeat"
    )


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
    keep = np.zeros(every, np.bool_)
    keep[found.places(lists.offsets)[found.gains >= 0]] = True
    return lists.keep(keep)


def ranks_of(offsets: np.ndarray) -> np.ndarray:
    """The rank of each item in its list, from 1."""
    ranks: np.ndarray = np.arange(1, offsets[-1] + 1) - np.repeat(offsets[:-1], np.diff(offsets))
    return ranks


# ------------------------------------------------------------------ ties of confidences


class Runs(NamedTuple):
    """The runs of equal confidence that hold a hit, by rank within each query."""

    # int64[n + 1]: query q has the runs from ``offsets[q]`` to ``offsets[q + 1]``.
    offsets: np.ndarray
    # int64: for each run the number of predictions before it, of its predictions, and of its hits.
    before: np.ndarray
    sizes: np.ndarray
    hits: np.ndarray
    gains: np.ndarray  # float64: for each run the sum of the gains of its hits


def runs_of(hits: Hits, offsets: np.ndarray, confidences: np.ndarray) -> Runs:
    """Return the runs of lists sorted by falling confidence; `hits` must have hits of all ranks."""
    room = len(hits.ranks)
    run_offsets = np.empty_like(offsets)
    runs, gains = np.empty((3, room), np.int64), np.empty(room)
    of_hits = hits.offsets, hits.ranks, hits.gains
    count = count_runs(offsets, confidences, *of_hits, run_offsets, runs, gains)
    before, sizes, counts = runs[:, :count]
    return Runs(run_offsets, before, sizes, counts, gains[:count])


def with_hits_at_ends(
    hits: Hits, offsets: np.ndarray, confidences: np.ndarray, *, first: bool
) -> Hits:
    """Return the hits moved to the start of their run, highest gain first, or to its end."""
    ranks, gains = np.empty_like(hits.ranks), np.empty_like(hits.gains)
    move_hits(offsets, confidences, hits.offsets, hits.ranks, hits.gains, first, ranks, gains)
    return hits._replace(ranks=ranks, gains=gains)
