"""head() tells how an input is understood, from its first rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import Any

from rankmill.columns.ids import id_value
from rankmill.columns.ranked_lists import Lists
from rankmill.errors import InputError, RankmillError, plural, spoken, told_shortly
from rankmill.package import stamp
from rankmill.show.tables import Column, Facts, Part, Table, View
from rankmill.show.writers import plain_text
from rankmill.sources.files.formats import compression_of
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import Input, check_told, open_input
from rankmill.sources.meaning.rules import NAMES, RULES
from rankmill.sources.nouns import Given, Labels, LabelsLike, Predictions, PredictionsLike
from rankmill.sources.roles.source import MEMORY, PARTS, Batch, Role, Source, batch_of
from rankmill.sources.rows.long import group_lists, long_rows
from rankmill.sources.rows.wide import wide_lists

QUERIES = 3
ITEMS = 5


class Head(dict[str, Any]):
    """How an input is understood, shown as ``rankmill head`` shows it."""

    def __repr__(self) -> str:
        return plain_text(head_view(self, role_told=True).screen())


@told_shortly
def head(source: LabelsLike | PredictionsLike) -> Head:
    """Show how an input is read, from its first batch.

    Parameters
    ----------
    source : Labels, Predictions, or what these hold
        As for `convert`.

    Returns
    -------
    Head
        A dict: "source", "format", "compression", "files", "rows" (None if not known yet), "role",
        "shape", "order", "columns", each with the "rules" that read it, "queries", the first ones,
        "looked_at", the number of rows that these come from, "comment_lines", "notes", and
        "problem". If a column is missing or the first rows are wrong, "problem" says so, and what
        is not known is None or empty.

    Raises
    ------
    InputError, UsageError
        If the input cannot be opened.
    """
    given = Given.of(source)
    try:
        found, one = open_as(given, MEMORY)
    except InputError as error:
        try:
            opened = open_source(
                given.data, replace(given.asked(), query=None, item=None, numbers=None)
            )
        except RankmillError:
            raise error from None
        with closing(opened):
            return Head(_described(opened, None) | {"problem": f"{error}{_if_labels(given)}"})
    with closing(one.source):
        told = Head(_described(one.source, one) | {"role": found})
        try:
            batch = _first_batch(one)
            if batch is not None:
                lists = _lists(batch, one)
                told["queries"] = _first_queries(lists, one)
                told["looked_at"] = batch.data.num_rows
                told |= one.comment_lines()
                told["columns"] = _columns(one.source, one)  # with the rules that rows told of
                told["notes"] = one.source.findings.notes()
        except InputError as error:
            told["problem"] = str(error)
    return told


def _if_labels(given: Given) -> str:
    """Return how to look at labels, if what cannot be read as predictions can be read as these."""
    if isinstance(given, Labels | Predictions):
        return ""
    with suppress(RankmillError), _quiet():
        open_input(Labels(**vars(given)), memory=MEMORY).source.close()
        told = "; if these are labels, use --labels on the command line, Labels(...) in Python"
        return spoken(told)
    return ""


def _described(source: Source, one: Input | None) -> dict[str, Any]:
    file = next(iter(source.schemas))
    return {
        "source": source.name,
        "format": source.format or None,
        "compression": compression_of(file) if source.format else None,
        "files": len(source.schemas),
        "rows": source.rows,
        "role": None,
        "shape": None if one is None else "wide" if one.columns.wide else "long",
        "order": None if one is None else _order(one),
        "columns": _columns(source, one),
        "queries": [],
        "looked_at": 0,
        "comment_lines": 0,
        "notes": source.findings.notes(),
        "problem": None,
    }


def _columns(source: Source, one: Input | None) -> list[dict[str, Any]]:
    """Each column with its type, its role, and the rules that read it."""
    roles: dict[str, list[str]] = {}
    for role, name in one.columns.mapping().items() if one is not None else ():
        roles.setdefault(name, []).append(role)
    return [
        {
            "name": field.name,
            "type": str(field.type),
            "role": ", ".join(roles.get(field.name, [])) or None,
            "rules": source.findings.rules().get(field.name, []),
        }
        for field in source.schema
    ]


def _order(one: Input) -> str | None:
    """What orders the items of a query of long predictions."""
    columns = one.columns
    if columns.wide or columns.gain is not None:
        return None
    if columns.in_order:
        return "rows"
    return "rank" if columns.rank else "score" if columns.score else "rows"


def _first_batch(one: Input) -> Batch | None:
    """The first batch with rows; None if there is no row."""
    for piece in one.source.pieces(one.columns.names()):
        blocks: Iterator[Any] = piece
        try:
            for block in blocks:
                batch = batch_of(block)
                if batch.data.num_rows:
                    return batch
        finally:
            with suppress(AttributeError):  # not every iterator holds something open
                blocks.close()  # type: ignore[attr-defined]
    return None


def _lists(batch: Batch, one: Input) -> Lists:
    if not one.columns.wide:
        return group_lists([long_rows(batch, one.columns)], one.columns)
    return wide_lists(batch._replace(data=batch.data.slice(0, QUERIES)), one.columns)


def _first_queries(lists: Lists, one: Input) -> list[dict[str, Any]]:
    """The first queries: their number of items, and the first items with their numbers."""
    number = "gains" if one.columns.gain else "scores"
    queries = []
    for i in range(min(QUERIES, len(lists.queries.keys))):
        start, end = int(lists.offsets[i]), int(lists.offsets[i + 1])
        places = range(start, min(end, start + ITEMS))
        query: dict[str, Any] = {
            "query": id_value(lists.queries, i),
            "count": end - start,
            "items": [id_value(lists.items, place) for place in places],
        }
        if lists.numbers is not None:
            query[number] = _exact(lists.numbers[start : places.stop].tolist())
        queries.append(query)
    return queries


def _exact(numbers: Sequence[float]) -> list[float | str]:
    """Numbers as JSON has them: it has no infinity."""
    return [number if math.isfinite(number) else str(number) for number in numbers]


# ------------------------------------------------------------------ whether an input holds labels


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


# ------------------------------------------------------------------ what is shown of it

_SHAPES = {"wide": "wide: one row per query, with lists", "long": "long: one row per item"}
_ORDERS = {"rank": "by rank", "score": "by falling score", "rows": "the order of the rows"}


def head_view(told: Mapping[str, Any], role_told: bool) -> View:
    """Return what is shown of what `head` returned."""

    def columns() -> Table:
        titles = [Column(title) for title in ("column", "type", "role", "why")]
        return Table(titles, [_column(one, told["shape"]) for one in told["columns"]])

    def queries() -> Table:
        titles = [Column("query"), Column("items", "count"), Column("first items")]
        return Table(titles, [[str(q["query"]), q["count"], _items(q)] for q in told["queries"]])

    def rules() -> Table:
        used = {rule for one in told["columns"] for rule in one["rules"]} - {*NAMES}
        rows = [(name, one.read, one.option) for name, one in RULES.items() if name in used]
        plainly = [[spoken(cell.replace("`", "")) for cell in row] for row in rows]
        return Table([Column(title) for title in ("rule", "what is read", "option")], plainly)

    def page() -> list[Part]:
        return [columns(), *(one for one in (rules(), queries()) if one.rows)]

    def screen() -> list[Part]:
        return [_facts(told, role_told), *(part for table in page() for part in ("", table))]

    return View(screen, page, columns, lambda: {**stamp(), **told})


def _facts(told: Mapping[str, Any], role_told: bool) -> Facts:
    kind = told["format"] or "Arrow"
    packed = f", compressed with {told['compression']}" if told["compression"] else ""
    rows = "not known before all are read" if told["rows"] is None else f"{told['rows']:,}"
    facts = [
        ("source", told["source"]),
        ("format", f"{kind}{packed}"),
        ("files", f"{told['files']:,}"),
        ("rows", rows),
    ]
    if told["role"] is not None:
        other = "predictions" if told["role"] == "labels" else "labels"
        how = f"--{other} on the command line, {other.capitalize()}(...) in Python"
        why = "" if role_told else spoken(f" (by its columns; {how} reads it as {other})")
        facts.append(("read as", told["role"] + why))
    if told["shape"] is not None:
        facts.append(("shape", _SHAPES[told["shape"]]))
    if told["order"] is not None and told["role"] == "predictions":
        facts.append(("order", _ORDERS[told["order"]]))
    if told["shape"] == "long" and told["queries"]:
        facts.append(("first queries", f"of the first {plural(told['looked_at'], 'row')}"))
    if told["comment_lines"]:
        facts.append(("comments", f"{plural(told['comment_lines'], 'line')}, skipped"))
    facts += [("note", note) for note in told["notes"]]
    return Facts(facts)


def _column(one: Mapping[str, Any], shape: str | None) -> list[str]:
    unread = "" if shape is None or PARTS.intersection(one["rules"]) else "not read"
    return [one["name"], one["type"], one["role"] or unread, ", ".join(one["rules"])]


def _items(query: Mapping[str, Any]) -> str:
    """The first items, each with its number in brackets."""
    items = [str(item) for item in query["items"]]
    for numbers in ("scores", "gains"):
        if numbers in query:
            pairs = zip(items, query[numbers], strict=True)
            items = [f"{item} ({_short(number)})" for item, number in pairs]
    return ", ".join(items) + (", ..." if query["count"] > len(items) else "")


def _short(number: float | str) -> str:
    return number if isinstance(number, str) else f"{number:.6g}"
