"""Evaluating in parts, as on a cluster: states that merge, and the result of all of them."""

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Self

from rankmill import audit
from rankmill.arranging import arrange, changes_lists
from rankmill.errors import UsageError, positive
from rankmill.gap import (
    AmongState,
    CorrectState,
    GapCounter,
    GapValue,
    first_confidences,
    gap_of_states,
)
from rankmill.metrics import parse
from rankmill.reading import MEMORY, Input, open_input
from rankmill.result import Result
from rankmill.semantics import Semantics
from rankmill.sources.opening import map_confidences
from rankmill.state import MeanState
from rankmill.workers import Workers, thread_count


@dataclass(frozen=True)
class State:
    """What a part of the queries comes to; merging is exact, associative and commutative.

    Attributes
    ----------
    metrics : tuple of str
        As asked for, in that order.
    semantics : Semantics
    queries : int
        The queries that count.
    gap_total : int
        What gap is divided by, unless by the hits.
    audit : dict of str to int
    means : dict of str to MeanState
        The metrics with a value a query.
    correct : dict of str to CorrectState
        Those over all predictions: the confidences of the correct ones. `count_part` counts all
        others among them once all parts are merged.
    """

    metrics: tuple[str, ...]
    semantics: Semantics
    queries: int
    gap_total: int
    audit: Mapping[str, int]
    means: Mapping[str, MeanState]
    correct: Mapping[str, CorrectState]

    def merge(self, other: Self) -> Self:
        """The state of the queries of both, which must not share any.

        Raises
        ------
        UsageError
            If they are of other metrics or semantics.
        """
        for name in ("metrics", "semantics"):
            if getattr(self, name) != getattr(other, name):
                raise UsageError(
                    f"states of other {name} do not merge: {getattr(self, name)} and "
                    f"{getattr(other, name)}"
                )
        return replace(
            self,
            queries=self.queries + other.queries,
            gap_total=self.gap_total + other.gap_total,
            audit=audit.add(self.audit, other.audit),
            means={name: one.merge(other.means[name]) for name, one in self.means.items()},
            correct={name: one.merge(other.correct[name]) for name, one in self.correct.items()},
        )

    def result(
        self, among: Mapping[str, AmongState] | None = None, threads: int | None = None
    ) -> Result:
        """The result of all queries.

        Parameters
        ----------
        among : dict of str to AmongState
            For metrics over all predictions: what `count_part` counted in all parts, merged.
        threads : int, optional

        Raises
        ------
        UsageError
            If a metric needs `among`, and it is not there.
        """
        missing = [name for name in self.correct if name not in (among or {})]
        if missing:
            raise UsageError(
                f"{', '.join(missing)} needs a second pass: count_part(state, predictions) "
                "for every part, merged, goes to result()"
            )
        gaps = {name: self._gap(name, (among or {})[name], threads) for name in self.correct}
        means = {name: one.mean for name, one in self.means.items()}
        means |= {name: getattr(one, self._ties()) for name, one in gaps.items()}
        tied = max((one.tied for one in gaps.values()), default=0)
        return Result(
            metrics={name: means[name] for name in self.metrics},
            standard_errors={
                name: self.means[name].standard_error if name in self.means else None
                for name in self.metrics
            },
            bounds={name: (one.worst, one.best) for name, one in gaps.items()},
            queries=self.queries,
            audit=audit.add(self.audit, {"tied_confidences": tied}),
            semantics=self.semantics,
        )

    def total(self, name: str) -> int:
        """What a metric over all predictions is divided by; 1 where there is nothing."""
        if self.semantics.gap_total == "hits":
            return max(1, int(self.correct[name].counts.sum()))
        return max(1, self.gap_total)

    def _gap(self, name: str, among: AmongState, threads: int | None) -> GapValue:
        return gap_of_states(self.correct[name], among, self.total(name), thread_count(threads))

    def _ties(self) -> str:
        ties = self.semantics.gap_ties
        # The values of "given" and "ids" are put in later.
        return ties if ties in GapValue._fields else "expected"

    def to_row(self) -> dict[str, Any]:
        """A flat row for Arrow: numbers, text, and arrays of numbers.

        ``pyarrow.Table.from_pylist([state.to_row()])`` makes a table of it.
        """
        row: dict[str, Any] = {
            "metrics": list(self.metrics),
            "semantics": json.dumps(self.semantics.to_dict()),
            "queries": self.queries,
            "gap_total": self.gap_total,
        }
        row |= {f"audit.{name}": count for name, count in self.audit.items()}
        for states in (self.means, self.correct):
            for name, state in states.items():
                row |= {f"{name}.{key}": value for key, value in state.to_row().items()}
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The state that `to_row` made the row of."""
        per_query = {name for name in row["metrics"] if parse(name).spec.kernel}

        def part(name: str, kind: Any) -> dict[str, Any]:
            keys = [field.name for field in fields(kind)]
            return {key: row[f"{name}.{key}"] for key in keys}

        return cls(
            metrics=tuple(row["metrics"]),
            semantics=Semantics(**json.loads(row["semantics"])),
            queries=int(row["queries"]),
            gap_total=int(row["gap_total"]),
            audit={name: int(row[f"audit.{name}"]) for name in audit.FIELDS},
            means={
                name: MeanState.from_row(part(name, MeanState))
                for name in row["metrics"]
                if name in per_query
            },
            correct={
                name: CorrectState.from_row(part(name, CorrectState))
                for name in row["metrics"]
                if name not in per_query
            },
        )


def count_part(
    state: State,
    predictions: Any,
    *,
    query: str | None = None,
    item: str | None = None,
    score: Any = None,
    rank: str | None = None,
    threads: int | None = None,
    memory: int = MEMORY,
) -> dict[str, AmongState]:
    """Count the confidences of some predictions among those of all correct ones.

    Parameters
    ----------
    state : State
        Of all parts, merged.
    predictions, query, item, score, rank, threads, memory
        As for `evaluate`.

    Returns
    -------
    dict of str to AmongState
        To be merged with those of the other parts, and given to `State.result`.
    """
    one = open_input(
        predictions,
        "predictions",
        score,
        {"query": query, "item": item, "rank": rank},
        need_score=True,
        semantics=state.semantics,
        may_be_empty=True,
    )
    with Workers(threads) as workers:
        return reread_among(state, one, workers, positive(memory, "memory"))


def reread_among(
    state: State, predictions: Input, workers: Workers, memory: int
) -> dict[str, AmongState]:
    """Read the confidences of an opened input once more, and count them."""
    counters = {name: GapCounter(one, workers.threads) for name, one in state.correct.items()}
    limits = {name: parse(name).limit for name in counters}
    arranged: Callable[[Any], Any] | None = None
    if changes_lists(state.semantics) or state.audit["null_items"] > 0:
        arranged = partial(arrange, semantics=state.semantics)

    def within(offsets: Any, confidences: Any) -> list[Any]:
        return [first_confidences(offsets, confidences, limits[name]) for name in counters]

    source, columns = predictions.source, predictions.columns
    read = map_confidences(within, source, columns, workers, memory=memory, arrange=arranged)
    with closing(read) as blocks:
        for block in blocks:
            for counter, confidences in zip(counters.values(), block, strict=True):
                counter.add(confidences)
    return {name: counter.finish() for name, counter in counters.items()}
