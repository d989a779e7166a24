"""Records: classes whose fields say how they merge, and how they stand in a row.

A record is a frozen dataclass. The type of a field is annotated by its `Kind`: how two values of it
merge, what it is in a row, and how it is read from one and checked, as in ``count: Count = 0``.
`merge`, `to_row` and `from_row` follow from these; fields of a bare type stay in the process. What
fields have to have in common, a record says in `check`.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Self, get_type_hints

import numpy as np

from rankmill.metrics.records import state_rows

# An exact sum has no more digits.
MOST_DIGITS = 3000

Merge = Callable[[Any, Any], Any]
Read = Callable[[state_rows.Row, str], Any]
Write = Callable[[Any], Any]


class Kind(NamedTuple):
    """How a field merges, what it is in a row under a name, and how it is read behind a prefix."""

    merge: Merge
    to_row: Callable[[str, Any], dict[str, Any]]
    read: Callable[[state_rows.Row, str, str], Any]


def kind(merge: Merge, read: Read, write: Write = lambda value: value) -> Kind:
    """Return the kind of a field that is one field of a row, too."""
    return Kind(
        merge, lambda name, value: {name: write(value)}, lambda row, at, name: read(row, at + name)
    )


def same(read: Read, write: Write = lambda value: value) -> Kind:
    """Return the kind of what is the same in all that merge."""
    return kind(lambda one, other: one, read, write)


def exact(sign: str = "") -> Kind:
    """Return the kind of an integer of any size, which is text in a row, `sign` before it."""

    def read(row: state_rows.Row, name: str) -> int:
        digits = state_rows.text(row, name)
        if not re.fullmatch(f"{sign}[0-9]{{1,{MOST_DIGITS}}}", digits):
            raise state_rows.damaged(f"{name} is {digits[:40]!r}, not a sum")
        return int(digits)

    return kind(operator.add, read, str)


def nested(record: Any) -> Kind:
    """Return the kind of a record in a record, whose fields stand behind its name and a dot."""

    def to_row(name: str, value: Any) -> dict[str, Any]:
        return {f"{name}.{key}": one for key, one in value.to_row().items()}

    def read(row: state_rows.Row, prefix: str, name: str) -> Any:
        return record.from_row(row, f"{prefix}{name}.")

    return Kind(lambda one, other: one.merge(other), to_row, read)


def _counts(row: state_rows.Row, name: str) -> np.ndarray:
    return state_rows.counts(row, name, least=0)


def _added(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _later_count(row: state_rows.Row, name: str) -> int | None:
    return None if row.get(name) is None else state_rows.count(row, name)


Count = Annotated[int, kind(operator.add, state_rows.count)]
Counts = Annotated[np.ndarray, kind(operator.add, _counts)]
# A count that rows of earlier versions do not have.
LaterCount = Annotated[int | None, kind(_added, _later_count)]
Sum = Annotated[int, exact()]
SignedSum = Annotated[int, exact("-?")]
Fixed = Annotated[int, same(state_rows.count)]
FixedCounts = Annotated[np.ndarray, same(_counts)]


class Record:
    """What a frozen dataclass with annotated fields merges and travels by."""

    def merge(self, other: Self) -> Self:
        """Return the record of what both are of; any order of merging gives the same."""
        merged = {
            name: kind.merge(getattr(self, name), getattr(other, name))
            for name, kind in _kinds(type(self)).items()
        }
        return replace(self, **merged)  # type: ignore[type-var]

    def to_row(self) -> dict[str, Any]:
        """Return the fields of a flat row for Arrow: numbers, text and arrays of numbers."""
        row: dict[str, Any] = {}
        for name, kind in _kinds(type(self)).items():
            row |= kind.to_row(name, getattr(self, name))
        return row

    @classmethod
    def from_row(cls, row: state_rows.Row, prefix: str = "") -> Self:
        """Return the record from the fields that `to_row` made, each named with the prefix.

        UsageError if they are not those of such a record.
        """
        found = cls(**{name: kind.read(row, prefix, name) for name, kind in _kinds(cls).items()})
        found.check(row, prefix)
        return found

    def check(self, row: state_rows.Row, prefix: str) -> None:
        """Raise UsageError if fields, each right by itself, cannot stand in one row."""


_KINDS: dict[Any, dict[str, Kind]] = {}


def _kinds(record: Any) -> dict[str, Kind]:
    """Return the kinds of the fields of a record that merge, in their order; found once."""
    if record not in _KINDS:
        hints = get_type_hints(record, include_extras=True)
        found = ((name, getattr(hints[name], "__metadata__", ())) for name in record.__match_args__)
        _KINDS[record] = {name: notes[0] for name, notes in found if notes}
    return _KINDS[record]
