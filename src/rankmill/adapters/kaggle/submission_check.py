"""What is wrong with a submission: one row for each problem, with the way to mend it."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rankmill.columns.buffers import arrow_of, numbers_of
from rankmill.columns.ids import KEEP_TEXT, plain_ids
from rankmill.errors import InputError, plural, spoken
from rankmill.records import record
from rankmill.results.answer import Answer
from rankmill.show.tables import Bad, Cell, Column, Part, Table, View
from rankmill.sources.files.formats import format_of_name
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.meaning.looks import MISSING
from rankmill.sources.readers.separated_values import DELIMITERS
from rankmill.sources.roles.source import Batch, InputOptions

# ------------------------------------------------------------------ cells

TEXT = pa.large_string()


class Cells(NamedTuple):
    """The cells of a table as text, null where one is blank; and the "line" or "row" of each.

    `delimiter` is what delimits the columns, and `usual` what the name of the file promises; both
    are empty if it is no text.
    """

    columns: dict[str, Any]
    rows: np.ndarray
    unit: str
    delimiter: str
    usual: str


class CellItems(NamedTuple):
    """The items in all cells of a column: the row, the text and the text of the confidence of each.

    `broken` are the rows that hold no pairs, although they should; they have no items here.
    """

    rows: np.ndarray
    items: Any
    scores: Any
    broken: np.ndarray


def read_cells(value: Any, role: Any) -> Cells:
    """Read a file or a frame as text, with leading zeros; InputError if it is no table."""
    told = format_of_name(os.fspath(value)) if isinstance(value, str | os.PathLike) else "memory"
    format = {"csv": "csv-long", "tsv": "tsv-long", None: "csv-long"}.get(told)
    if hasattr(value, "iloc") and value.ndim == 2:
        # pandas reads a large file by parts, and one may hold only integers
        mixed = [name for name, kind in value.dtypes.items() if kind == "object"]
        try:
            value = value.assign(**{name: value[name].map(_as_text) for name in mixed})
        except UnicodeEncodeError as error:
            raise InputError(f"{error.object!r} is not Unicode text; expected text") from None
    source = open_source(value, InputOptions(role=role, format=format), may_be_empty=True)
    with closing(source):
        names = list(source.schema.names)
        pieces = [block for piece in source.pieces(names) for block in piece]
        batches = [block if isinstance(block, Batch) else block() for block in pieces]
    columns = {
        written: [
            _text(batch.data.column(name), f"{source.name}: column {name!r}") for batch in batches
        ]
        for name, written in zip(names, source.written or names, strict=True)
    }
    rows = [np.empty(0, np.int64)]
    for data, place in batches:
        rows.append(np.arange(len(data)) + place.first if place.lines is None else place.lines)
    return Cells(
        {name: pa.concat_arrays([pa.array([], TEXT), *some]) for name, some in columns.items()},
        np.concatenate(rows),
        batches[0].place.unit if batches else "row",
        source.delimiter,
        DELIMITERS[str(format).partition("-")[0]] if source.delimiter else "",
    )


def _as_text(cell: Any) -> Any:
    return str(cell) if isinstance(cell, int) else cell


def _text(column: Any, what: str) -> Any:
    """A column as text. pandas makes floats of integers where one is missing: they go back."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        with suppress(pa.ArrowInvalid):
            column = column.cast(pa.int64())
    try:
        texts = column.cast(TEXT)
    except (pa.ArrowException, NotImplementedError):
        raise InputError(
            f"{what} holds {column.type}; expected text, with items separated by spaces as in a CSV"
        ) from None
    return pc.if_else(pc.equal(_stripped(texts), ""), pa.scalar(None, TEXT), texts)


def _stripped(texts: Any) -> Any:
    return pc.utf8_trim_whitespace(texts)


def item_cells(column: Any, known: Any) -> Any:
    """Return cells of items, null where a word such as nan stands, unless one is a `known` item.

    pandas reads such a word as missing, and a competition as an empty cell.
    """
    column, words = _stripped(column), pa.array(MISSING, TEXT)
    if pc.any(pc.is_in(known, words), min_count=0).as_py():
        return column
    return pc.if_else(pc.is_in(column, words), pa.scalar(None, TEXT), column)


def split_cells(column: Any, pairs: bool) -> CellItems:
    """The items between the blanks of each cell, each followed by its confidence if in pairs."""
    lists = pc.ascii_split_whitespace(_stripped(column))
    lengths = numbers_of(pc.fill_null(pc.list_value_length(lists), 0)).astype(np.int64)
    words, rows = lists.flatten(), np.repeat(np.arange(len(column)), lengths)
    if not pairs:
        return CellItems(rows, words, None, np.empty(0, np.int64))
    whole = np.repeat(lengths % 2 == 0, lengths)
    words, rows = words.filter(arrow_of(whole)), rows[whole]
    items, scores = (words.take(arrow_of(np.arange(at, len(words), 2))) for at in (0, 1))
    return CellItems(rows[::2], items, scores, np.flatnonzero(lengths % 2))


def numbers_in(texts: Any) -> np.ndarray:
    """The numbers that texts stand for; NaN where one stands for none."""
    try:
        return np.array(numbers_of(texts.cast(pa.float64()), null=np.nan))
    except pa.ArrowInvalid:
        return np.array([_number_in(text) for text in texts.to_pylist()], np.float64)


def _number_in(text: str | None) -> float:
    try:
        return float(text) if text and "_" not in text else np.nan
    except ValueError:
        return np.nan


def by_id(
    codes: np.ndarray, ids: Any, listed: CellItems, scores: np.ndarray | None, sort: bool
) -> Any:
    """A row for each of the `ids` with its list; `codes` says which id each row of cells has.

    With `sort`, the items of an id stand by falling score, and equal ones by their rows.
    """
    group = codes[listed.rows]
    keys = (-scores, group) if sort and scores is not None else (group,)
    order = np.lexsort(keys)
    counts = np.bincount(group, minlength=len(ids))
    offsets = arrow_of(np.concatenate([[0], np.cumsum(counts)]))
    table = {"query": ids, "items": _lists(offsets, listed.items.take(arrow_of(order)))}
    if scores is not None:
        table["scores"] = _lists(offsets, arrow_of(scores[order]))
    return pa.table(table)


def _lists(offsets: Any, values: Any) -> Any:
    return pa.LargeListArray.from_arrays(offsets, values)


# ------------------------------------------------------------------ what is wrong with them

PROBLEMS = {
    "not readable": "write a table like the sample submission of the competition",
    "other delimiter": "write it with the delimiter of the solution, such as to_csv(path, sep=',')",
    "column renamed": "give it the name that is expected",
    "column missing": "name the columns in the first row as the solution does",
    "column unknown": "leave it out; pandas adds its index as a column unless index=False",
    "id missing": "write the id, or leave the row out",
    "blanks around id": "write ids exactly as the solution does, as .str.strip() makes them",
    "id changed": f"keep ids as text: {KEEP_TEXT}",
    "id changed in solution": "write the solution again, with ids read with dtype=str",
    "id unknown": "leave the row out, or fix its id",
    "id repeated": "write one row for each id",
    "row missing": "add a row for each id of the solution",
    "no prediction": "predict something",
    "broken pair": "write pairs, an item and its confidence",
    "no confidence": "write a finite number",
    "other separator": "separate items by spaces, without commas, brackets and quotes",
    "items unlike": "write items as the solution does: none looks like one of those",
    "item changed": f"keep items as text: {KEEP_TEXT}",
    "item changed in solution": "write the solution again, with items read with dtype=str",
    "repeated prediction": "write an item once: a repeat counts as wrong",
    "too many predictions": "leave out those after the cutoff, which do not count",
}
"""What may be wrong -> what to do about it. All of one kind stand together, in this order.

Those for which a competition rejects the file stand before those in `SCORED`.
"""

# Those by which whole lists may count as wrong.
UNMATCHED = ("other separator", "items unlike", "item changed")
SCORED = (
    *(*UNMATCHED, "item changed in solution"),
    *("repeated prediction", "too many predictions"),
)
"""Problems that the formula of a metric has an answer to, so that they do not stop a score.

A message about an item that changed would say which items are labels, too.
"""

REJECTED, COSTS, COUNTS_NOT = "rejected", "may cost score", "not counted"
"""What a problem does to a submission."""

_SHOWN = 5  # so many examples of each kind
_FEW = 3  # so many items of a row are named
_LONG = 40  # so many characters of each are shown


class Problem(NamedTuple):
    """One thing that is wrong: in a row, or in the whole table."""

    problem: str  # one of `PROBLEMS`
    # The line of a file of text, or the row of a table, counted from 0; None for a whole table.
    row: int | None = None
    id: str | None = None  # in this row
    # The first few ids, items, confidences or columns that are wrong; the message of an error where
    # the submission is not readable.
    found: tuple[str, ...] = ()
    # What the solution has instead of each, where it says so. Participants of a competition must
    # not see it.
    expected: tuple[str, ...] = ()
    total: int = 1  # how many are wrong in this row; the length of a list with too many predictions
    first: int | None = None  # the first row with a repeated id

    @property
    def remedy(self) -> str:
        """What to do."""
        return PROBLEMS[self.problem]

    @property
    def effect(self) -> str:
        """What it does: a competition rejects the file, it may cost score, or it is not counted."""
        if self.problem == "too many predictions":
            return COUNTS_NOT
        return COSTS if self.problem in SCORED else REJECTED


@record(frozen=True, repr=False, eq=False)
class SubmissionCheck(Answer):
    """What a strict check of a submission of so many rows found: by kind, and each kind by row.

    `unit` is what rows are counted in, "line" or "row", and `cutoff` is that of the metric. `score`
    is the value of the `metric`, if it was asked for and the submission is not rejected. `note`
    says why a sample gives none, or asks if both files were swapped.
    """

    rows: int
    problems: tuple[Problem, ...]
    unit: str = "row"
    cutoff: int | None = None
    metric: str = ""
    score: float | None = None
    note: str = ""

    def public(self, problems: Sequence[Problem]) -> str:
        """Return a text about problems without what only the solution says."""
        told = []
        for kind, count in Counter(one.problem for one in problems).items():
            some = [one for one in problems if one.problem == kind][:3]
            pairs = [(self._place(one), self._said(one)) for one in some]
            places = ", ".join(": ".join(filter(None, pair)) for pair in pairs)
            shown = f" ({places}{', ...' * (count > len(some))})" if places.strip(", ") else ""
            of_rows = some[0].row is not None or kind == "row missing"
            told.append(f"{plural(count, 'row') + ': ' if of_rows else ''}{kind}{shown}")
            told[-1] += f": {PROBLEMS[kind]}"
        return "; ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields; each problem with its effect and a text that says all of it."""
        told = super().to_dict()
        for problem, one in zip(told["problems"], self.problems, strict=True):
            solution = f"the solution has {_named(one.expected)}" if one.expected else ""
            said = "; ".join(filter(None, (self._said(one), solution)))
            problem["effect"] = one.effect
            problem["text"] = ": ".join(filter(None, (self._place(one), one.problem, said)))
            problem["text"] += f": {one.remedy}"
        return told

    def _place(self, one: Problem) -> str:
        return "" if one.row is None else f"{self.unit} {one.row}"

    def _said(self, one: Problem) -> str:
        """What was found, as people read it."""
        if one.problem == "not readable":
            return one.found[0]
        if one.problem == "column missing":
            return f"no {_named(one.expected)} among {_named(one.found) or 'none'}"
        if one.problem == "too many predictions":
            return f"{one.total}, not {self.cutoff} at most"
        more = f" and {one.total - len(one.found):,} more" * (one.total > len(one.found) > 0)
        again = "" if one.first is None else f", as {self.unit} {one.first}"
        return f"{_named(one.found)}{more}{again}"

    def _view(self) -> View:
        kinds = {
            kind: [*each]
            for kind, each in itertools.groupby(self.problems, lambda one: one.problem)
        }

        def counts() -> Table:
            columns = [Column("problem"), Column("count", "count"), *map(Column, _OF_KIND)]
            rows: list[list[Cell]] = [
                [kind, len(each), each[0].effect, each[0].remedy] for kind, each in kinds.items()
            ]
            return Table(columns, rows)

        def table(count: int | None = None) -> Table:
            rows: list[list[Cell]] = [
                [one.problem, self._place(one), self._said(one), _named(one.expected)]
                for each in kinds.values()
                for one in each[:count]
            ]
            return Table([*map(Column, ("problem", "row", "found", "expected"))], rows)

        def exact() -> Table:
            numbers = {"row", "total", "first"}
            columns = [Column(name, "count" if name in numbers else "text") for name in _COLUMNS]
            rows = [
                [
                    " ".join(cell) if isinstance(cell, tuple) else cell
                    for cell in (*one, one.effect, one.remedy)
                ]
                for one in self.problems
            ]
            return Table(columns, rows)

        def screen() -> list[Part]:
            found = plural(len(self.problems), "problem")
            headline = f"{found} in {plural(self.rows, 'row')}"
            scored = [self.note] if self.note else []
            if self.score is not None:
                scored.append(f"{self.metric} = {self.score!r}")
            elif not (self.note or self.problems):
                named = "--preset NAME on the command line, semantics=NAME in Python"
                scored.append(spoken(f"for its score as a competition computes it, use {named}"))
            if not self.problems:
                return [headline, *scored]
            shown: list[Part] = [Bad(headline), *scored, "", counts(), "", table(_SHOWN)]
            if all(len(each) <= _SHOWN for each in kinds.values()):
                return shown
            return [*shown, f"the first {_SHOWN} of each kind; -o problems.csv has all"]

        return View(screen, lambda: [counts(), table()], exact, self.to_dict)


_OF_KIND = ("effect", "remedy")
_COLUMNS = (*Problem._fields, *_OF_KIND)


def _named(texts: Iterable[str]) -> str:
    """Texts as people read them; long ones are cut, as where a whole list is one item."""
    return ", ".join(repr(one if len(one) <= _LONG else f"{one[: _LONG - 3]}...") for one in texts)


def column_problems(names: Iterable[str], expected: Sequence[str]) -> list[Problem]:
    """Return what is wrong with the names of columns."""
    there = tuple(names)
    lacking = [name for name in expected if name not in there]
    unknown = [name for name in there if name not in expected]
    if len(lacking) == len(unknown) == 1 and get_close_matches(unknown[0], lacking):
        return [Problem("column renamed", found=(unknown[0],), expected=(lacking[0],))]
    return [
        *(Problem("column missing", found=there, expected=(name,)) for name in lacking),
        *(Problem("column unknown", found=(name,)) for name in unknown),
    ]


def id_problems(cells: Cells, ids: Any, solution: Any, long: bool) -> Iterator[Problem]:
    """Yield what is wrong with the ids of a submission; `solution` holds each of its ids once."""
    strange = pc.any(pc.invert(pc.is_in(ids, solution)), min_count=0).as_py()
    if not strange and pc.count_distinct(ids).as_py() == len(solution) == len(ids):
        return
    own, wanted = ids.to_pylist(), set(solution.to_pylist())
    bare = plain_ids(_stripped(solution)).to_pylist()
    plain = dict(zip(bare, solution.to_pylist(), strict=True))
    likely = (plain.get(one) for one in plain_ids(_stripped(ids)).to_pylist())
    meant = {one: of for one, of in zip(own, likely, strict=True) if of and one not in wanted}
    changed = f"id changed{_side(meant, own)}"
    seen: dict[str, int] = {}
    for i, one in enumerate(own):
        row = int(cells.rows[i])
        if one is None:
            yield Problem("id missing", row)
        elif one in meant:
            padded = one.strip() == meant[one].strip()
            kind = "blanks around id" if padded else changed
            yield Problem(kind, row, one, (one,), (meant[one],))
        elif one not in wanted:
            yield Problem("id unknown", row, one, (one,))
        if one is not None and seen.setdefault(one, i) != i and not long:
            yield Problem("id repeated", row, one, (one,), first=int(cells.rows[seen[one]]))
    there = {*seen, *meant.values()}
    lacking = (one for one in solution.to_pylist() if one not in there)
    yield from (Problem("row missing", expected=(one,)) for one in lacking)


_FLOAT = r"\.0+$"


def _side(meant: dict[str, str], own: Iterable[str | None]) -> str:
    """Return " in solution" if it lost what the texts of a submission and its own differ by.

    The texts that lost their zeros or became floats are shorter, or end in .0. The texts of a
    submission are whole if none of them lost anything, and no number is shorter than those with
    more zeros. Otherwise a participant added zeros.
    """
    width = 0
    for one, of in meant.items():
        mine, theirs = (re.sub(_FLOAT, "", text) for text in (one, of))
        if len(mine) < len(theirs) or (mine != one and theirs == of):
            return ""
        width = max(width, len(mine)) if len(mine) > len(theirs) else width
    short = any(one is not None and one.isdigit() and len(one) < width for one in own)
    return " in solution" if meant and not short else ""


def _meant(items: Any, solution: Any) -> dict[int, tuple[str, str]]:
    """Place of an item that only differs in such characters -> it, and that of the solution."""
    strange = pc.indices_nonzero(pc.invert(pc.is_in(items, solution)))
    found = pc.index_in(plain_ids(items.take(strange)), plain_ids(solution))
    rows = zip(strange, items.take(strange), solution.take(found), strict=True)
    return {i.as_py(): (one.as_py(), of.as_py()) for i, one, of in rows if of.is_valid}


def _shape(item: str) -> str:
    """Return which signs an item is made of, runs of letters and of digits as one.

    Examples
    --------
    >>> _shape("article0108"), _shape("w_1a")
    ('a0', 'a_0a')
    """
    return re.sub(r"[^\W\d_]+", "a", re.sub(r"\d+", "0", item))


def _separated(items: Any, solution: Any) -> Any:
    """Whether items hold what separates or encloses items elsewhere, and no item of a solution."""
    signs = (one for one in ",;|[]'\"" if not _held(solution, one))
    return pc.match_substring_regex(items, f"[{''.join(map(re.escape, signs))}\n]")


def _held(items: Any, sign: str) -> bool:
    return bool(pc.any(pc.match_substring(items, sign), min_count=0).as_py())


def list_problems(
    cells: Cells,
    ids: Any,
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

    def of_rows(kind: str, rows: Any, totals: Any, found: Any = None) -> Iterator[Problem]:
        """Yield a problem for each of some rows, with what was found and what was expected."""
        numbers, texts = cells.rows[rows].tolist(), ids.take(arrow_of(rows)).to_pylist()
        found = itertools.repeat(((), ()), len(rows)) if found is None else found
        for row, id, (some, of), total in zip(numbers, texts, found, totals.tolist(), strict=True):
            yield Problem(kind, row, id, some, of, total)

    def of_lists(kind: str, places: np.ndarray, texts: Any, meant: Any = None) -> Iterator[Problem]:
        """Yield a problem for each list that has such places: the first few, and how many."""
        order = places[np.argsort(group[places], kind="stable")]
        starts = np.flatnonzero(np.diff(group[order], prepend=-1))
        totals = np.diff(starts, append=len(order))
        few = order[np.arange(len(order)) - np.repeat(starts, totals) < _FEW]
        told = [one or "" for one in texts.take(arrow_of(few)).to_pylist()]
        right = [] if meant is None else [meant[code][1] for code in codes[few].tolist()]
        ends = np.cumsum(np.minimum(totals, _FEW)).tolist()
        pairs = ((tuple(told[i:j]), tuple(right[i:j])) for i, j in itertools.pairwise((0, *ends)))
        yield from of_rows(kind, listed.rows[order[starts]], totals, pairs)

    yield from of_rows("broken pair", listed.broken, np.ones(len(listed.broken), np.int64))
    if scores is not None:
        yield from of_lists("no confidence", np.flatnonzero(~np.isfinite(scores)), listed.scores)
    coded = pc.dictionary_encode(listed.items)
    codes = numbers_of(coded.indices).astype(np.int64)
    joined = numbers_of(_separated(coded.dictionary, solution).cast("uint8"))
    yield from of_lists("other separator", np.flatnonzero(joined[codes]), listed.items)
    meant = _meant(coded.dictionary, solution)
    side = _side(dict(meant.values()), coded.dictionary.to_pylist()) if meant else ""
    changed = np.flatnonzero(np.isin(codes, [*meant]))
    yield from of_lists(f"item changed{side}", changed, listed.items, meant)
    mine, theirs = (sorted(held.drop_null().to_pylist()) for held in (coded.dictionary, solution))
    if mine and theirs and not meant and {*map(_shape, mine)}.isdisjoint(map(_shape, theirs)):
        yield Problem("items unlike", found=(mine[0],), expected=(theirs[0],))
    order = np.lexsort((codes, group))  # stable, so that the first of equal ones leads
    again = (np.diff(codes[order]) == 0) & (np.diff(group[order]) == 0)
    again = np.sort(order[1:][again])
    _, first, lists, counts = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    if most is not None:  # a repeat behind the cutoff costs nothing
        again = again[again - first[lists[again]] < most]
    yield from of_lists("repeated prediction", again, listed.items)
    if most is not None:
        many = counts > most
        yield from of_rows("too many predictions", listed.rows[first[many]], counts[many])
