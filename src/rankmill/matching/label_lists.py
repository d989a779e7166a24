"""Label lists, cleaned: no repeats, no gain of 0 or less but among all judged items."""

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rankmill.columns.elementary import exp2, expm1
from rankmill.columns.ids import id_text, take_ids
from rankmill.columns.lists import count_true, drop_values
from rankmill.errors import InputError, UsageError
from rankmill.kernels.hits import mark_repeats
from rankmill.kernels.identity import SEED, Ids
from rankmill.kernels.jit import read_only
from rankmill.kernels.lists import sort_lists

# ------------------------------------------------------------------ what a gain is worth

LARGEST_GAIN = 1e100


def canonical_gain_function(text: str) -> str:
    """Return "linear", "exp", or a map in canonical form; UsageError if it is none of these.

    Examples
    --------
    >>> canonical_gain_function("2 = 7.0, 1=3")
    '1=3,2=7'
    """
    if text in ("linear", "exp"):
        return text
    worths = gain_map(text)
    return ",".join(f"{_text(gain)}={_text(worths[gain])}" for gain in worths)


def _text(number: float) -> str:
    return repr(number).removesuffix(".0")


def gain_map(text: str) -> Mapping[float, float]:
    """What each gain is worth, by rising gain; empty for "linear" and "exp".

    UsageError if the text is no map.
    """
    if text in ("linear", "exp"):
        return {}
    pairs = [pair.split("=") for pair in text.split(",")] if isinstance(text, str) else []
    try:
        worths = {float(gain): float(worth) for gain, worth in pairs}
    except ValueError:
        worths = {}
    if not worths or len(worths) < len(pairs):
        raise UsageError(
            f"unknown gain_function {text!r}; expected 'linear', 'exp', or what each gain is "
            "worth, once each, such as '1=3,2=7'"
        )
    gains = sorted(worths)
    if not all(0 < one <= LARGEST_GAIN for one in (*gains, *worths.values())):
        raise UsageError(
            f"gain_function {text!r}: expected gains, and what they are worth, above 0 and at most "
            f"{LARGEST_GAIN:g}"
        )
    return {gain: worths[gain] for gain in gains}


def worth(gains: np.ndarray, gain_function: str) -> np.ndarray:
    """What gains are worth; of those below 0, which judged items may have, the sign is kept.

    InputError if a map does not name a gain above 0.
    """
    if gain_function == "linear":
        return gains
    if gain_function == "exp":
        return powers(gains)
    named = gain_map(gain_function)
    keys, values = np.array(list(named)), np.array(list(named.values()))
    place = np.minimum(np.searchsorted(keys, gains), len(keys) - 1)
    unknown = (gains > 0) & (keys[place] != gains)
    if unknown.any():
        gain = _text(float(gains[unknown.argmax()]))
        raise InputError(
            f"a gain is {gain}, which gain_function {gain_function!r} does not name: add "
            f"{gain}=..., and likewise all other gains above 0"
        )
    return np.where(gains > 0, values[place], np.sign(gains))


def keeps_order(gain_function: str) -> bool:
    """Whether a larger gain is always worth more."""
    return all(one < other for one, other in itertools.pairwise(gain_map(gain_function).values()))


def least_gain(rel: float, gain_function: str) -> float:
    """What a least gain is worth: no gain below it is worth as much.

    UsageError if a gain below it is worth as much, as a map may have it.
    """
    if gain_function == "linear":
        return rel
    if gain_function == "exp":
        return math.inf if rel > math.log2(LARGEST_GAIN) else float(powers(np.array([rel]))[0])
    worths = gain_map(gain_function)
    least = min((worth for gain, worth in worths.items() if gain >= rel), default=math.inf)
    below = [gain for gain, worth in worths.items() if gain < rel and worth >= least]
    if below:
        raise UsageError(
            f"rel {rel:g} has no meaning under gain_function {gain_function!r}, where gain "
            f"{below[0]:g} is worth as much as a relevant one: evaluate metrics with rel "
            "separately, without the map"
        )
    return least


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


NO_GAINS = read_only(np.empty(0, np.float64))
NO_OFFSETS = read_only(np.empty(0, np.int64))


class LabelLists(NamedTuple):
    """Label lists without repeats; gains, if there are any, fall within each list.

    ``items`` are the ids of all lists, ``offsets`` int64[n + 1]. ``gains`` is float64, one a
    label, or empty where every label counts the same. Where repeats count, ``all_offsets`` and
    ``all_gains`` are those of the lists before repeats were dropped; else both are empty.
    ``judged`` are lists of the same queries that also hold items of gain 0 or less, if asked for;
    None where there are none.
    """

    offsets: np.ndarray
    items: Ids
    gains: np.ndarray
    all_offsets: np.ndarray = NO_OFFSETS
    all_gains: np.ndarray = NO_GAINS
    judged: "LabelLists | None" = None


def clean_labels(
    offsets: np.ndarray,
    items: Ids,
    gains: np.ndarray | None,
    *,
    repeats: str = "set",
    queries: Ids | None = None,
    judged: bool = False,
) -> tuple[LabelLists, dict[str, int]]:
    """Label lists as sets: no repeats, no gain of 0 or less, gains falling within each list.

    Of a repeated label the largest gain counts. Where `repeats` is "count", offsets and gains are
    also kept as they were with them. With `judged`, the lists with all gains are kept beside them.
    Also returns how many of each were dropped. InputError if there is a repeat and `repeats` is
    "error"; `queries` name the lists then.
    """
    every = LabelLists(offsets, items, NO_GAINS if gains is None else gains.astype(np.float64))
    nonpositive = len(every.gains) - count_true(every.gains > 0)
    if nonpositive and not judged and not _marked(every)[1]:
        labels, _ = _distinct(_positive(every), repeats, queries)  # fewer to sort
        return labels, {"repeated_labels": 0, "nonpositive_gains": nonpositive}
    among, repeated = _distinct(every, repeats, queries)
    labels = among
    if nonpositive:  # an item that one judge calls 0 may be a label of another
        labels = _positive(among)
        nonpositive = len(among.gains) - len(labels.gains)
    if judged and gains is not None:
        labels = labels._replace(judged=among)
    return labels, {"repeated_labels": repeated, "nonpositive_gains": nonpositive}


def _distinct(labels: LabelLists, repeats: str, queries: Ids | None) -> tuple[LabelLists, int]:
    """The lists by falling gain and without repeats, and how many of these there were."""
    if len(labels.gains):
        labels = _by_gain(labels)
    repeat, repeated = _marked(labels)
    before = labels
    if repeated and repeats == "error" and queries is not None:
        place = int(repeat.argmax())
        row = int(np.searchsorted(labels.offsets, place, side="right")) - 1
        raise InputError(
            f"query {id_text(queries, row)} has label {id_text(labels.items, place)} a second "
            "time, but repeated_labels is 'error': drop the repeats, or use --semantics "
            "repeated_labels=set, or --semantics repeated_labels=count to count every repeat in R"
        )
    if repeated:
        labels = _keep(labels, ~repeat)
    if repeats == "count":
        labels = labels._replace(all_offsets=before.offsets, all_gains=before.gains)
    return labels, repeated


def _marked(labels: LabelLists) -> tuple[np.ndarray, int]:
    """Which labels repeat one of their list, and how many do."""
    repeat = np.empty(len(labels.items.keys), np.bool_)
    return repeat, mark_repeats(labels.offsets, labels.items, SEED, repeat)


def with_worths(labels: LabelLists, gain_function: str) -> LabelLists:
    """The labels with what their gains are `worth`.

    InputError if a gain is too large, as sums and squares of gains must stay finite, or is not in a
    map.
    """
    largest = labels.gains.max(initial=0)
    limit = math.log2(LARGEST_GAIN) if gain_function == "exp" else LARGEST_GAIN
    if largest > limit:
        raise InputError(
            f"a gain is {largest:g}; expected {limit:g} at most for {gain_function} gains: "
            "rescale them"
        )
    if gain_function == "linear":
        return labels
    gains, all_gains = (worth(one, gain_function) for one in (labels.gains, labels.all_gains))
    judged = labels.judged and with_worths(labels.judged, gain_function)
    found = labels._replace(gains=gains, all_gains=all_gains, judged=judged)
    return found if keeps_order(gain_function) or not len(gains) else _by_gain(found)


def _by_gain(labels: LabelLists) -> LabelLists:
    """The labels by falling gain."""
    order = np.arange(len(labels.gains))
    sort_lists(labels.offsets, -labels.gains, order)
    every = np.arange(len(labels.all_gains))
    if len(every):
        sort_lists(labels.all_offsets, -labels.all_gains, every)
    return labels._replace(
        items=take_ids(labels.items, order),
        gains=labels.gains[order],
        all_gains=labels.all_gains[every],
    )


def _positive(labels: LabelLists) -> LabelLists:
    """The labels of a gain above 0."""
    found = _keep(labels, labels.gains > 0)
    if not len(labels.all_offsets):
        return found
    keep = labels.all_gains > 0
    all_offsets = drop_values(labels.all_offsets, keep)
    return found._replace(all_offsets=all_offsets, all_gains=labels.all_gains[keep])


def _keep(labels: LabelLists, keep: np.ndarray) -> LabelLists:
    kept = np.flatnonzero(keep)
    gains = labels.gains[kept] if len(labels.gains) else NO_GAINS
    return LabelLists(drop_values(labels.offsets, keep), take_ids(labels.items, kept), gains)
