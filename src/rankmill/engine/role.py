"""Open a single input as labels or predictions: what it is told to be, or what its columns tell."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from rankmill.errors import InputError, RankmillError
from rankmill.sources.input_options import Role
from rankmill.sources.inputs.inputs import Input, check_told, open_input
from rankmill.sources.nouns import Given, Labels, Predictions
from rankmill.sources.roles.source import Source


def open_as(source: Any, memory: int) -> tuple[Role, Input]:
    """Open an input as what it is given as. Given bare, its columns tell what it is.

    It is labels then if only so it has all columns. If columns are missing, that is an InputError.
    """
    given = Given.of(source)
    check_told(given)
    if isinstance(given, Labels):
        return "labels", open_input(given, memory=memory)
    if isinstance(given, Predictions):
        return "predictions", _as_predictions(given, memory)
    told = vars(given)
    try:
        predictions = _as_predictions(Predictions(**told), memory)
    except InputError:
        # A column of gains is one that predictions do not have.
        with suppress(RankmillError), _quiet():
            labels = open_input(Labels(**told), memory=memory)
            if labels.columns.gain is not None:
                return "labels", labels
            labels.source.close()
        raise
    if predictions.columns.score is None and predictions.columns.rank is None:
        with suppress(InputError), _quiet():
            labels = open_input(Labels(**told | {"data": _held(predictions)}), memory=memory)
            if labels.columns.gain is not None:
                return "labels", _ending(labels, predictions)
    return "predictions", predictions


def _as_predictions(given: Predictions, memory: int) -> Input:
    told = given.in_order and given.score is not None
    found = open_input(given, need_score=told, memory=memory)
    if found.columns.score is None:  # confidences that do not order the lists are kept, too
        with suppress(InputError):
            held = replace(given, data=_held(found), score=None)
            return _ending(open_input(held, need_score=True, memory=memory), found)
    return found


def _held(one: Input) -> Source:
    """The source of an input, which stays open if it is opened again without success."""
    return replace(one.source, end=None)


def _ending(one: Input, first: Input) -> Input:
    """An input whose source was opened again; it ends what the source holds open."""
    return replace(one, source=replace(one.source, end=one.source.end or first.source.end))


@contextmanager
def _quiet() -> Iterator[None]:
    """Drop the warnings of what is only tried."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
