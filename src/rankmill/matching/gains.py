"""What a gain of a label is worth: as it is, 2**g - 1, or what a map such as "1=3,2=7" says."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from rankmill.columns.elementary import exp2, expm1
from rankmill.errors import InputError, UsageError

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
