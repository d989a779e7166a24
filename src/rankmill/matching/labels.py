"""Label lists, cleaned: no repeats, no gain of 0 or less but among all judged items."""

import math
from typing import NamedTuple

import numpy as np

from rankmill.columns.elementary import exp2, expm1
from rankmill.columns.ids import id_text, take_ids
from rankmill.columns.lists import drop_values
from rankmill.errors import InputError, UsageError
from rankmill.kernels.identity import SEED, Ids
from rankmill.kernels.lists import sort_lists
from rankmill.kernels.matching import mark_repeats

NO_GAINS = np.empty(0, np.float64)

NO_OFFSETS = np.empty(0, np.int64)

LARGEST_GAIN = 1e100


class Labels(NamedTuple):
    """Label lists without repeats; gains, if there are any, fall within each list.

    ``items`` are the ids of all lists, ``offsets`` int64[n + 1]. ``gains`` is float64, one a
    label, or empty where every label counts the same. Where repeats count, ``all_offsets`` and
    ``all_gains`` are those of the lists before repeats were dropped; else both are empty.
    ``judged`` are lists of the same queries that also hold items of gain 0 or less, if asked for;
    None where there are none, as without gains.
    """

    offsets: np.ndarray
    items: Ids
    gains: np.ndarray
    all_offsets: np.ndarray = NO_OFFSETS
    all_gains: np.ndarray = NO_GAINS
    judged: "Labels | None" = None


def clean_labels(
    offsets: np.ndarray,
    items: Ids,
    gains: np.ndarray | None,
    *,
    repeats: str = "set",
    queries: Ids | None = None,
    judged: bool = False,
) -> tuple[Labels, dict[str, int]]:
    """Label lists as sets: no repeats, no gain of 0 or less, gains falling within each list.

    Of a repeated label the largest gain counts. Where `repeats` is "count", offsets and gains are
    also kept as they were with them. With `judged`, the lists with all gains are kept beside them.
    Also returns how many of each were dropped.

    Raises
    ------
    InputError
        If there is a repeat and `repeats` is "error"; `queries` name the lists then.
    """
    labels = Labels(offsets, items, NO_GAINS if gains is None else gains.astype(np.float64))
    every = labels
    nonpositive = 0
    if len(labels.gains):
        keep = labels.gains > 0
        nonpositive = len(keep) - int(keep.sum())
        if nonpositive:
            labels = _keep(labels, keep)
    labels, repeated = _distinct(labels, repeats, queries)
    if judged and gains is not None:
        labels = labels._replace(judged=_distinct(every, repeats, queries)[0])
    return labels, {"repeated_labels": repeated, "nonpositive_gains": nonpositive}


def _distinct(labels: Labels, repeats: str, queries: Ids | None) -> tuple[Labels, int]:
    """The lists by falling gain and without repeats, and how many of these there were."""
    if len(labels.gains):
        order = np.arange(len(labels.gains))
        sort_lists(labels.offsets, -labels.gains, order)
        labels = Labels(labels.offsets, take_ids(labels.items, order), labels.gains[order])
    repeat = np.empty(len(labels.items.keys), np.bool_)
    repeated = mark_repeats(labels.offsets, labels.items, SEED, repeat)
    before = labels
    if repeated and repeats == "error" and queries is not None:
        place = int(repeat.argmax())
        row = int(np.searchsorted(labels.offsets, place, side="right")) - 1
        raise InputError(
            f"query {id_text(queries, row)} has label {id_text(labels.items, place)} a second "
            "time, but repeated_labels is 'error': drop the repeats, or choose 'set' or 'count'"
        )
    if repeated:
        labels = _keep(labels, ~repeat)
    if repeats == "count":
        labels = labels._replace(all_offsets=before.offsets, all_gains=before.gains)
    return labels, repeated


def check_gain_function(gain_function: str) -> None:
    """Raise UsageError if there is no such gain function."""
    if gain_function not in ("linear", "exp"):
        raise UsageError(f"unknown gain_function {gain_function!r}; expected 'linear' or 'exp'")


def exponential(labels: Labels, gain_function: str) -> Labels:
    """The labels with gains 2**g - 1 where `gain_function` is "exp"; a gain of 1 stays 1.

    Raises
    ------
    InputError
        If a gain is too large: sums and squares of gains must stay finite.
    """
    largest = labels.gains.max(initial=0)
    limit = LARGEST_GAIN if gain_function == "linear" else math.log2(LARGEST_GAIN)
    if largest > limit:
        raise InputError(
            f"a gain is {largest:g}; expected {limit:g} at most for {gain_function} gains"
        )
    if gain_function == "exp":
        labels = labels._replace(gains=powers(labels.gains), all_gains=powers(labels.all_gains))
        if labels.judged is not None:
            labels = labels._replace(judged=exponential(labels.judged, gain_function))
    return labels


def least_gain(rel: float, gain_function: str) -> float:
    """What `exponential` makes of a least gain."""
    if gain_function == "linear":
        return rel
    return math.inf if rel > math.log2(LARGEST_GAIN) else float(powers(np.array([rel]))[0])


def powers(gains: np.ndarray) -> np.ndarray:
    """2**g - 1, exact for whole gains, and for tiny ones not rounded to 0.

    Of gains below 0, which judged items may have, only the sign is kept.
    """
    gains = np.maximum(gains, -1)
    powers = exp2(gains) - 1
    tiny = np.abs(gains) < 1e-3
    if tiny.any():
        powers[tiny] = expm1(gains[tiny] * math.log(2))
    return powers


def _keep(labels: Labels, keep: np.ndarray) -> Labels:
    kept = np.flatnonzero(keep)
    gains = labels.gains[kept] if len(labels.gains) else NO_GAINS
    return Labels(drop_values(labels.offsets, keep), take_ids(labels.items, kept), gains)
