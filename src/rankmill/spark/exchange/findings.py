"""What tasks of a comparison find of their queries: it merges."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from rankmill.analysis.compare.differences.comparison_state import ComparisonState
from rankmill.analysis.compare.differences.moved_queries import MovedRows, merged_rows
from rankmill.analysis.compare.queries.join import Joined
from rankmill.engine.state import State
from rankmill.metrics.registry import parse
from rankmill.threads import Workers


@dataclass(frozen=True)
class Findings:
    """What some queries of a comparison add up to.

    Attributes
    ----------
    state : ComparisonState
    states : dict of str to State
        Those of the systems that were scored.
    moved : dict
        The queries that moved most, by metric and system, up to `count` each.
    count : int
    rows : dict of str to int
        The number of rows that were read of each side.
    alone : dict of str to ComparisonState
        What the queries of each of two systems add up to, also those that do not count for both.
    """

    state: ComparisonState
    states: Mapping[str, State]
    moved: MovedRows
    count: int
    rows: Mapping[str, int]
    alone: Mapping[str, ComparisonState] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        joined: Joined,
        rows: Mapping[str, int],
        count: int,
        *,
        crossed: bool,
        values: bool,
        alone: bool = False,
    ) -> Self:
        """Return what the queries of a join add up to; `values` are needed by Tukey's test."""
        with Workers(1) as workers:
            state = joined.state(workers, crossed=crossed, rows=values)
            moved = joined.moved_rows(count, workers)
            each = joined.states_alone(workers, crossed=crossed) if alone else {}
            return cls(state, joined.states, moved, count, rows, each)

    def merge(self, other: Self) -> Self:
        """Return the same of the queries of both."""
        moved = {
            task: merged_rows([rows, other.moved[task]], self.count, parse(task[0]).better)
            for task, rows in self.moved.items()
        }
        states = {name: one.merge(other.states[name]) for name, one in self.states.items()}
        rows = {side: count + other.rows[side] for side, count in self.rows.items()}
        state = self.state.merge(other.state)
        alone = {name: one.merge(other.alone[name]) for name, one in self.alone.items()}
        return type(self)(state, states, moved, self.count, rows, alone)
