"""Where a state comes from: which parts of which inputs, so that a wrong mix is refused."""

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any, Self

import numpy as np

from rankmill.columns.seal import seal_of
from rankmill.errors import UsageError
from rankmill.metrics.records import state_rows
from rankmill.records import record
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.roles.shares import SAMPLED, Sample, Share, divided

SIDES = "labels", "predictions"
TABLES = "slices"


@record(frozen=True, eq=False)
class Origin:
    """The parts that a state covers, and a sample of the queries of both inputs."""

    of: int = 0  # how many parts the inputs are divided into; 0 if each state has inputs of its own
    numbers: tuple[int, ...] = ()  # the parts that are there, ascending, from 1 on
    # The smallest hashes of query ids in the labels and in the predictions, ascending: of whole
    # inputs if these are divided, else of the queries of the state.
    samples: dict[str, np.ndarray] = field(default_factory=dict)
    # What each input holds, if it is divided.
    contents: dict[str, str] = field(default_factory=dict)

    @property
    def missing(self) -> list[int]:
        """The parts that are not there."""
        return sorted({*range(1, self.of + 1)} - {*self.numbers})

    def merge(self, other: Self) -> Self:
        """Return the origin of both; UsageError if they cannot be parts of one evaluation."""
        wrong = self.difference(other)
        if wrong:
            raise UsageError(wrong)
        numbers = tuple(sorted((*self.numbers, *other.numbers)))
        both = {n: np.union1d(self.samples[n], other.samples[n])[:SAMPLED] for n in SIDES}
        return replace(self, numbers=numbers, samples=both)

    def difference(self, other: Self) -> str:
        """Say why two states are no parts of one evaluation; empty if they may be."""
        if self.of != other.of:
            one, two = (
                f"one of {n} parts" if n else "no numbered part" for n in (self.of, other.of)
            )
            return f"one is {one}, and the other {two}: divide all in the same way"
        twice = sorted({*self.numbers} & {*other.numbers})
        if twice:
            return f"both hold {_parts(twice)} of {self.of}: give each part once"
        for name in self.contents:
            mine, theirs = self.contents[name], other.contents.get(name)
            if mine != theirs:
                return (
                    f"they are parts of other {name}: {_parts(self.numbers)} of {self.of} read "
                    f"{mine}, and {_parts(other.numbers)} {theirs}: evaluate all parts of the same "
                    "inputs"
                )
        for one, two in () if self.of else ((a, b) for a in SIDES for b in SIDES):
            shared = len(np.intersect1d(self.samples[one], other.samples[two]))
            if shared:
                which = (
                    f"the {one} of one and the {two} of the other" if one != two else f"their {one}"
                )
                return (
                    f"{which} share queries ({shared} of a sample of {SAMPLED}), but no query may "
                    "be in two parts: split both sides by query"
                )
        return ""

    def to_row(self) -> dict[str, Any]:
        """Return fields of a flat row."""
        of_samples = {f"part.{n}": one.view(np.int64) for n, one in self.samples.items()}
        contents = {f"part.read.{n}": one for n, one in self.contents.items()}
        numbers = {"part.of": self.of, "part.numbers": np.array(self.numbers, np.int64)}
        return numbers | of_samples | contents

    @classmethod
    def from_row(cls, row: state_rows.Row) -> Self | None:
        """Return the origin that a row holds; None if it holds none."""
        if row.get("part.of") is None:
            return None
        samples = {n: state_rows.integers(row, f"part.{n}").view(np.uint64) for n in SIDES}
        numbers = state_rows.counts(row, "part.numbers", least=1).tolist()
        of, read = state_rows.count(row, "part.of"), {n: f"part.read.{n}" for n in (*SIDES, TABLES)}
        contents = {n: state_rows.text(row, at) for n, at in read.items() if row.get(at)}
        if of and not contents:
            unknown = "rows that a state of format 6 does not tell"
            contents = {n: f"{unknown} ({seal_of(one)})" for n, one in samples.items()}
        return cls(of, tuple(numbers), samples, contents)


class OriginRecorder:
    """What is seen of the inputs of a part while they are read, of which its origin is made."""

    def __init__(self, share: Share | None = None) -> None:
        self.share = share
        self._seen = {name: Sample(share is not None) for name in (*SIDES, TABLES)}

    def divided(self, one: Input, name: str) -> Input:
        """Return an input with the rows of the part; all parts need all rows of tables."""
        seen, columns = self._seen[name], one.columns
        by_place = columns.in_order or (columns.score is None and columns.rank is None)
        seen.ordered = name == "predictions" and not columns.wide and by_place
        share = None if name == TABLES else self.share
        return replace(one, source=divided(one.source, columns.query, share, seen))

    @property
    def origin(self) -> Origin:
        """The origin of the part, once all is read."""
        of, numbers = (0, ()) if self.share is None else (self.share.of, (self.share.number,))
        samples = {side: self._seen[side].hashes for side in SIDES}
        contents = {name: one.content for name, one in self._seen.items() if one.whole}
        return Origin(of, numbers, samples, contents)


def check_whole(origin: Origin | None) -> None:
    """Raise UsageError if it is known that a part is missing."""
    missing = [] if origin is None else origin.missing
    if origin is not None and missing:
        number, several = f"{missing[0]}/{origin.of}", len(missing) > 1
        raise UsageError(
            f"{_parts(missing)} of {origin.of} {'are' if several else 'is'} "
            f"missing: evaluate each with --part {number} on the command line, "
            f"evaluate_part(part={number!r}) in Python"
        )


def merged_origin(one: Origin | None, other: Origin | None) -> Origin | None:
    """Return the origin of two states; None if it is not known of both."""
    return None if one is None or other is None else one.merge(other)


def _parts(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:10])) + (", ..." if len(numbers) > 10 else "")
    return f"part{'s' * (len(numbers) > 1)} {listed}"
