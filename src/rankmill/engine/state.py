"""Evaluating in parts, as on a cluster: states that merge, and the result of all of them."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from rankmill.errors import UsageError, positive
from rankmill.matching.order import arrange, changes_lists
from rankmill.metrics import rows
from rankmill.metrics.fingerprints import FORMAT, NOTHING, Seen, digest
from rankmill.metrics.gap import (
    AmongState,
    CorrectState,
    GapCounter,
    GapValue,
    difference,
    first_confidences,
    gap_of_states,
)
from rankmill.metrics.mean import MeanState
from rankmill.metrics.registry import parse, parse_all, spellings
from rankmill.results import audit
from rankmill.results.result import Result
from rankmill.semantics.choices import Semantics
from rankmill.sources.inputs import MEMORY, Input, map_confidences, open_input
from rankmill.threads import Workers, thread_count


@dataclass(frozen=True)
class State:
    """What a part of the queries comes to; merging is exact, associative and commutative.

    Attributes
    ----------
    metrics : tuple of str
        As asked for, in that order.
    semantics : Semantics
    gain_function : {"linear", "exp"}
    queries : int
        The queries that count.
    gap_total : int
        What gap is divided by, unless by the hits.
    audit : dict of str to int
    means : dict of str to MeanState
        The metrics with a value a query.
    correct : dict of str to CorrectState
        Those over all predictions: the confidences of the correct ones. `second_pass` counts all
        others among them once all parts are merged.
    """

    metrics: tuple[str, ...]
    semantics: Semantics
    gain_function: str
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
            If they are of other metrics, semantics or gain function.
        """
        for name in ("metrics", "semantics", "gain_function"):
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
            For metrics over all predictions: what `second_pass` counted in all parts, merged.
        threads : int, optional

        Raises
        ------
        UsageError
            If a metric needs `among`, and it is not there, was counted among another state, or is
            not of the predictions of all parts, each once.
        """
        among = among or {}
        missing = [name for name in self.correct if name not in among]
        if missing:
            raise UsageError(
                f"{', '.join(missing)} needs a second pass: second_pass(state, predictions) "
                "for every part, merged, goes to result()"
            )
        for name in self.correct:
            self._check(name, among[name])
        return self.finish(among, threads)

    def finish(self, among: Mapping[str, AmongState], threads: int | None) -> Result:
        """The result, from counts that are sure to be those of this state."""
        gaps = {
            name: gap_of_states(one, among[name], max(1, self.total(name)), thread_count(threads))
            for name, one in self.correct.items()
        }
        values = {name: one.mean for name, one in self.means.items()}
        values |= {
            name: getattr(one, self._ties()) if self.total(name) else None
            for name, one in gaps.items()
        }
        tied = max((one.tied for one in gaps.values()), default=0)
        return Result(
            metrics={name: values[name] for name in self.metrics},
            standard_errors={
                name: self.means[name].standard_error if name in self.means else None
                for name in self.metrics
            },
            bounds={name: (one.worst, one.best) for name, one in gaps.items() if self.total(name)},
            queries=self.queries,
            audit=audit.add(self.audit, {"tied_confidences": tied}),
            semantics=self.semantics,
            aliases=spellings(map(parse, self.metrics)),
        )

    def total(self, name: str) -> int:
        """What a metric over all predictions is divided by; 0 where it has no value for that.

        Divided by the hits, it is 0 where there are none, as in scikit-learn.
        """
        if self.semantics.gap_total == "hits":
            return max(1, int(self.correct[name].counts.sum()))
        return self.gap_total

    @property
    def fingerprint(self) -> str:
        """The hash of format version, metrics, semantics and gain function; equal ones merge."""
        return digest(json.dumps(self._job()))

    def counted_among(self, name: str) -> str:
        """The fingerprint of what `second_pass` counts among: job, metric and its confidences."""
        correct = self.correct[name]
        return digest(json.dumps([*self._job(), name]), correct.values, correct.counts)

    def _job(self) -> list[Any]:
        return [FORMAT, self.metrics, self.semantics.to_dict(), self.gain_function]

    def _check(self, name: str, among: AmongState) -> None:
        """Raise UsageError unless counts of the second pass fit; kernels do not look."""
        CorrectState.from_row(self.correct[name].to_row())
        AmongState.from_row(among.to_row())
        lengths = len(among.at), len(self.correct[name].values)
        if among.state != self.counted_among(name) or lengths[0] != lengths[1]:
            raise UsageError(
                f"{name}: the second pass counted among another state: give second_pass the state "
                "that result() is asked of, that of all parts merged"
            )
        differs = difference(self.correct[name], among)
        if differs:
            raise UsageError(
                f"{name}: {differs}: merge what second_pass counted in every part, each part once"
            )

    def _ties(self) -> str:
        ties = self.semantics.gap_ties
        # The values of "given" and "ids" are put in later.
        return ties if ties in GapValue._fields else "expected"

    def to_row(self) -> dict[str, Any]:
        """A flat row for Arrow: numbers, text, and arrays of numbers.

        ``pyarrow.Table.from_pylist([state.to_row()])`` makes a table of it.
        """
        row: dict[str, Any] = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "metrics": list(self.metrics),
            "semantics": json.dumps(self.semantics.to_dict()),
            "gain_function": self.gain_function,
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
        """The state that `to_row` made the row of.

        Raises
        ------
        UsageError
            If the row is of another format version, or no state has such a row.
        """
        rows.check_format(row)
        metrics = parse_all(rows.texts(row, "metrics"))
        queries = rows.count(row, "queries")
        try:
            semantics = Semantics(**json.loads(rows.text(row, "semantics")))
        except (TypeError, ValueError) as error:
            raise rows.damaged(f"semantics: {error}") from None
        state = cls(
            metrics=tuple(one.text for one in metrics),
            semantics=semantics,
            gain_function=rows.text(row, "gain_function"),
            queries=queries,
            gap_total=rows.count(row, "gap_total"),
            audit={name: rows.count(row, f"audit.{name}") for name in audit.FIELDS},
            means={one.text: _mean(row, one.text, queries) for one in metrics if one.spec.kernel},
            correct={
                one.text: CorrectState.from_row(row, f"{one.text}.")
                for one in metrics
                if not one.spec.kernel
            },
        )
        if rows.text(row, "fingerprint") != state.fingerprint:
            raise rows.damaged(
                "its fingerprint is not that of its metrics, semantics and gain function"
            )
        return state


def _mean(row: Mapping[str, Any], name: str, queries: int) -> MeanState:
    """The state of a mean over so many queries."""
    numbers = {"count": rows.count(row, f"{name}.count")}
    for key in ("total", "squares"):
        digits = rows.text(row, f"{name}.{key}")
        if not re.fullmatch("[0-9]{1,2000}", digits):
            raise rows.damaged(f"{name}.{key} is {digits[:40]!r}, not a sum")
        numbers[key] = int(digits)
    state = MeanState(**numbers)
    if state.count != queries:
        raise rows.damaged(f"{name} is a mean over {state.count:,} of {queries:,} queries")
    if state.count * state.squares < state.total**2:
        raise rows.damaged(f"{name}.squares is less than {name}.total allows")
    return state


def second_pass(
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
        among = reread_among(state, one, workers, positive(memory, "memory"), checksum=True)
    return {name: replace(one, state=state.counted_among(name)) for name, one in among.items()}


def reread_among(
    state: State, predictions: Input, workers: Workers, memory: int, *, checksum: bool = False
) -> dict[str, AmongState]:
    """Read the confidences of an opened input once more, and count them."""
    counters = {name: GapCounter(one, workers.threads) for name, one in state.correct.items()}
    seen = dict.fromkeys(counters, NOTHING)
    limits = {name: parse(name).limit for name in counters}
    arranged: Callable[[Any], Any] | None = None
    if changes_lists(state.semantics) or state.audit["null_items"] > 0:
        arranged = partial(arrange, semantics=state.semantics)

    def within(offsets: Any, confidences: Any) -> list[tuple[Any, Seen]]:
        each = [first_confidences(offsets, confidences, limits[name]) for name in counters]
        return [(one, Seen.of(one, checksum)) for one in each]

    source, columns = predictions.source, predictions.columns
    read = map_confidences(within, source, columns, workers, memory=memory, arrange=arranged)
    with closing(read) as blocks:
        for block in blocks:
            for name, (confidences, new) in zip(counters, block, strict=True):
                counters[name].add(confidences)
                seen[name] = seen[name].merge(new)
    return {name: replace(one.finish(), seen=seen[name]) for name, one in counters.items()}
