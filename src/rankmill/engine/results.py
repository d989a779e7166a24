"""Results: what several systems came to, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from rankmill.engine.results_view import same_queries, systems_view
from rankmill.metrics.registry import sides_of
from rankmill.package import stamp
from rankmill.results.answer import Answer
from rankmill.results.result import Result
from rankmill.show.tables import View

if TYPE_CHECKING:
    from rankmill.show.pictures import Picture


class Results(Answer, dict[str, Result]):
    """The result of each system by name, from one call of `evaluate_runs`, shown side by side.

    Parameters
    ----------
    results : mapping of str to Result
    same_queries : bool, optional
        Whether all have the same queries in the mean, if that is not known from the results.
    """

    def __init__(self, results: Mapping[str, Result], same_queries: bool | None = None) -> None:
        super().__init__(results)
        self._same = same_queries

    def to_dict(self) -> dict[str, Any]:
        """Return the dicts of all results, and whether they are of the same queries."""
        told: Any = self._view().content()
        return dict(told)

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Self:
        """Return the object from what `to_dict` returned."""
        version = {name: told[name] for name in stamp() if name in told}
        results = {name: Result.from_dict(version | one) for name, one in told["systems"].items()}
        return cls(results, told["same_queries"])

    @property
    def by(self) -> Any:
        """The slices of all systems as one table, with "system" first; None without slices."""
        import pyarrow as pa

        tables = {name: one.by for name, one in self.items() if one.by is not None}
        named = [
            one.add_column(0, "system", pa.array([name] * len(one), pa.string()))
            for name, one in tables.items()
        ]
        return pa.concat_tables(named) if named else None

    def __repr__(self) -> str:
        return super().__repr__() if self else "{}"

    def _repr_html_(self) -> str | None:
        return super()._repr_html_() if self else None

    @property
    def same(self) -> bool | None:
        """Whether all have the same queries in the mean; None if that is not known."""
        return same_queries(self) if self._same is None else self._same

    def _view(self) -> View:
        return systems_view(self, self.same, sides_of(next(iter(self.values()), {})))

    def _picture(self) -> Picture:
        from rankmill.engine.curves import curve_picture

        return curve_picture(self)

    def _compared(self) -> dict[str, Result]:
        return dict(self)
