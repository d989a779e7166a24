"""What is wrong with a submission: one row for each problem, with the way to mend it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rankmill.columns.changed_ids import KEEP_TEXT, plain_ids
from rankmill.errors import plural
from rankmill.results.answer import Answer
from rankmill.show.tables import Bad, Column, Part, Table, View

if TYPE_CHECKING:
    import numpy as np

    from rankmill.adapters.kaggle.submission_cells import CellItems, Cells

PROBLEMS = {
    "not readable": "write a table as the example of the competition is one",
    "column missing": "name the columns in the first row as the solution does",
    "column unknown": "leave it out; pandas adds its index as a column unless index=False",
    "id missing": "write the id, or leave the row out",
    "id changed": f"keep ids as text: {KEEP_TEXT}",
    "id unknown": "leave the row out, or fix its id",
    "id repeated": "write one row for each id",
    "no prediction": "predict something",
    "broken pair": "write pairs, an item and its confidence",
    "no confidence": "write a finite number",
    "item changed": f"keep items as text: {KEEP_TEXT}",
    "repeated prediction": "write an item once: a repeat counts as wrong",
    "too many predictions": "leave out those after the cutoff, which do not count",
    "row missing": "add a row for each id of the solution",
}
"""What may be wrong -> what to do about it. All of one kind stand together, in this order."""

SCORED = ("item changed", "repeated prediction", "too many predictions")
"""Problems that the formula of a metric has an answer to, so that they do not stop a score.

A message about an item that changed would say which items are labels, too.
"""

_SHOWN = 50


class Problem(NamedTuple):
    """One thing that is wrong.

    Attributes
    ----------
    problem : str
        One of `PROBLEMS`.
    row : str
        Where it stands, as "line 3" of a file of text or "row 1" of a frame; "" for a whole table.
    found : str
        What the submission holds there.
    expected : str
        What the solution has, where it says so. Participants of a competition must not see it.
    """

    problem: str
    row: str = ""
    found: str = ""
    expected: str = ""

    @property
    def remedy(self) -> str:
        """What to do."""
        return PROBLEMS[self.problem]


@dataclass(frozen=True, repr=False, eq=False)
class SubmissionCheck(Answer):
    """What a strict check of a submission of so many rows found: by kind, and each kind by row."""

    rows: int
    problems: tuple[Problem, ...]

    def public(self, problems: Sequence[Problem]) -> str:
        """Return a text about problems without what only the solution says."""
        told = []
        for kind, count in Counter(one.problem for one in problems).items():
            some = [one for one in problems if one.problem == kind][:3]
            places = ", ".join(": ".join(filter(None, (one.row, one.found))) for one in some)
            shown = f" ({places}{', ...' * (count > len(some))})" if places.strip(", ") else ""
            told.append(f"{plural(count, 'row')}: {kind}{shown}: {PROBLEMS[kind]}")
        return "; ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields; each problem with its remedy."""
        told = super().to_dict()
        told["problems"] = [one._asdict() | {"remedy": one.remedy} for one in self.problems]
        return told

    def _view(self) -> View:
        def table(count: int | None = None) -> Table:
            titles = [*Problem._fields, "remedy"]
            rows = [[*one, one.remedy] for one in self.problems[:count]]
            return Table([Column(title) for title in titles], rows)

        def screen() -> list[Part]:
            found = plural(len(self.problems), "problem")
            headline = f"{found} in {plural(self.rows, 'row')}"
            if not self.problems:
                return [headline]
            more = len(self.problems) - _SHOWN
            rest = [f"and {more:,} more, which JSON and CSV have"] if more > 0 else []
            return [Bad(headline), "", table(_SHOWN), *rest]

        return View(screen, lambda: [table()], table, self.to_dict)


def column_problems(names: Iterable[str], expected: Sequence[str]) -> list[Problem]:
    """Return what is wrong with the names of columns."""
    there = list(names)
    lacking = [name for name in expected if name not in there]
    unknown = [name for name in there if name not in expected]
    told = ", ".join(map(repr, there)) or "none"
    return [
        *(Problem("column missing", "", f"no {name!r} among {told}", name) for name in lacking),
        *(Problem("column unknown", "", repr(name)) for name in unknown),
    ]


def id_problems(cells: Cells, ids: Any, solution: Any, long: bool) -> Iterator[Problem]:
    """Yield what is wrong with the ids of a submission; `solution` holds each of its ids once."""
    import pyarrow.compute as pc

    strange = pc.any(pc.invert(pc.is_in(ids, solution)), min_count=0).as_py()
    if not strange and pc.count_distinct(ids).as_py() == len(solution) == len(ids):
        return
    own, wanted = ids.to_pylist(), set(solution.to_pylist())
    plain = dict(zip(plain_ids(solution).to_pylist(), solution.to_pylist(), strict=True))
    alike = plain_ids(ids).to_pylist()
    seen: dict[str, int] = {}
    mended = set()
    for i, one in enumerate(own):
        if one is None:
            yield Problem("id missing", _row(cells, i))
        elif one not in wanted:
            meant = plain.get(alike[i])
            mended.add(meant)
            kind = "id unknown" if meant is None else "id changed"
            yield Problem(kind, _row(cells, i), repr(one), "" if meant is None else repr(meant))
        if one is not None and seen.setdefault(one, i) != i and not long:
            yield Problem("id repeated", _row(cells, i), f"{one!r}, as {_row(cells, seen[one])}")
    lacking = (one for one in solution.to_pylist() if one not in seen and one not in mended)
    yield from (Problem("row missing", "", "", repr(one)) for one in lacking)


def _meant(items: Any, solution: Any) -> dict[int, tuple[str, str]]:
    """Place of an item that only differs in such characters -> it, and that of the solution."""
    import pyarrow.compute as pc

    strange = pc.indices_nonzero(pc.invert(pc.is_in(items, solution)))
    found = pc.index_in(plain_ids(items.take(strange)), plain_ids(solution))
    rows = zip(strange, items.take(strange), solution.take(found), strict=True)
    return {i.as_py(): (one.as_py(), of.as_py()) for i, one, of in rows if of.is_valid}


def list_problems(
    cells: Cells,
    listed: CellItems,
    group: np.ndarray,
    scores: np.ndarray | None,
    most: int | None,
    solution: Any,
) -> Iterator[Problem]:
    """Yield what is wrong with lists; `group` says for each item to which list it belongs.

    `scores` are the confidences, NaN without a number, `most` is the cutoff, and `solution`
    holds each item of the solution once.
    """
    import numpy as np
    import pyarrow.compute as pc

    from rankmill.columns.buffers import arrow_of, numbers_of

    yield from (Problem("broken pair", _row(cells, i)) for i in listed.broken.tolist())
    if scores is not None:
        bad = np.flatnonzero(~np.isfinite(scores))
        texts = listed.scores.take(arrow_of(bad)).to_pylist()
        for i, text in zip(bad.tolist(), texts, strict=True):
            yield Problem("no confidence", _row(cells, listed.rows[i]), repr(text or ""))
    coded = pc.dictionary_encode(listed.items)
    codes = numbers_of(coded.indices).astype(np.int64)
    meant = _meant(coded.dictionary, solution)
    changed = np.flatnonzero(np.isin(codes, [*meant]))
    for i in changed[np.unique(group[changed], return_index=True)[1]].tolist():
        yield Problem("item changed", _row(cells, listed.rows[i]), *map(repr, meant[codes[i]]))
    order = np.lexsort((codes, group))  # stable, so that the first of equal ones leads
    again = (np.diff(codes[order]) == 0) & (np.diff(group[order]) == 0)
    for i in np.sort(order[1:][again]).tolist():
        text = repr(listed.items[i].as_py())
        yield Problem("repeated prediction", _row(cells, listed.rows[i]), text)
    _, first, counts = np.unique(group, return_index=True, return_counts=True)
    if most is not None:
        for i in np.flatnonzero(counts > most).tolist():
            found = f"{counts[i]}, not {most} at most"
            yield Problem("too many predictions", _row(cells, listed.rows[first[i]]), found)


def _row(cells: Cells, i: int) -> str:
    return f"{cells.unit} {cells.rows[i]}"
