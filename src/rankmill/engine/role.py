"""Open a single input as labels or predictions: what it is told to be, or what its columns tell."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from rankmill.errors import InputError, RankmillError, UsageError
from rankmill.semantics.choices import DEFAULT
from rankmill.sources.asked import Query, Role
from rankmill.sources.base import Source
from rankmill.sources.inputs import Input, check_options, open_input


class Named(NamedTuple):
    """What the caller told of the columns: their names or None, and how they are used."""

    query: Query = None
    item: str | None = None
    score: Any = None
    rank: str | None = None
    gain: Any = None
    in_order: bool = False
    binary: bool = False
    padding: Any = None

    @property
    def role(self) -> Role | None:
        """The role of which these are the columns."""
        if self.gain is not None or self.binary:
            return "labels"
        ordered = self.score is not None or self.rank is not None or self.in_order
        return "predictions" if ordered else None


NOTHING = Named()


def open_as(
    source: Any,
    role: Role | None,
    named: Named,
    told_format: str | None,
    columns: Sequence[str] | str | None,
    encoding: str | None,
    memory: int,
) -> tuple[Role, Input]:
    """Open an input as what it is. Without a role, it is labels if only then it has all columns.

    Parameters
    ----------
    source, role, named
        The input, its role if it is known, and its columns.
    told_format, columns, encoding, memory
        As for `open_input`.

    Raises
    ------
    InputError, UsageError
        If the input cannot be opened, or if columns that it must have are missing.
    """
    check_options(
        DEFAULT, rank=named.rank, in_order=named.in_order, gain=named.gain, binary=named.binary
    )
    if role is not None and named.role not in (None, role):
        theirs = "a score, rank or in_order" if role == "labels" else "a gain or binary"
        raise UsageError(f"{role} have no use for {theirs}: leave it out, or change the role")
    options = {
        "memory": memory,
        "told_format": told_format,
        "columns": columns,
        "encoding": encoding,
        "padding": named.padding,
    }
    role = role or named.role
    if role == "labels":
        return role, _as_labels(source, named, options)
    if role == "predictions":
        return role, _as_predictions(source, named, options)
    try:
        predictions = _as_predictions(source, named, options)
    except InputError:
        # A column of gains is one that predictions do not have.
        with suppress(RankmillError), _quiet():
            labels = _as_labels(source, named, options)
            if labels.columns.gain is not None:
                return "labels", labels
            labels.source.close()
        raise
    if predictions.columns.score is None and predictions.columns.rank is None:
        with suppress(InputError), _quiet():
            labels = _as_labels(_held(predictions), named, options)
            if labels.columns.gain is not None:
                return "labels", _ending(labels, predictions)
    return "predictions", predictions


def _as_labels(source: Any, named: Named, options: dict[str, Any]) -> Input:
    chosen = {"query": named.query, "item": named.item}
    return open_input(source, "labels", named.gain, chosen, binary=named.binary, **options)


def _as_predictions(source: Any, named: Named, options: dict[str, Any]) -> Input:
    chosen = {"query": named.query, "item": named.item, "rank": named.rank}
    more = options | {"in_order": named.in_order}
    told = named.in_order and named.score is not None
    found = open_input(source, "predictions", named.score, chosen, need_score=told, **more)
    if found.columns.score is None:  # confidences that do not order the lists are kept, too
        with suppress(InputError):
            again = open_input(_held(found), "predictions", None, chosen, need_score=True, **more)
            return _ending(again, found)
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
