"""head() tells how an input is understood, from its first rows."""

import math
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from rankmill.columns.ids import id_value
from rankmill.columns.ranked_lists import Lists
from rankmill.engine.head_view import head_view
from rankmill.engine.role import open_as
from rankmill.errors import InputError, RankmillError
from rankmill.show.writers import plain_text
from rankmill.sources.files.formats import compression_of
from rankmill.sources.input_options import MEMORY
from rankmill.sources.inputs.any_source import open_source
from rankmill.sources.inputs.inputs import Input
from rankmill.sources.nouns import Given
from rankmill.sources.roles.source import Batch, Source, batch_of
from rankmill.sources.rows.long import group_lists, long_rows
from rankmill.sources.rows.wide import wide_lists

QUERIES = 3
ITEMS = 5


class Head(dict[str, Any]):
    """How an input is understood, shown as ``rankmill head`` shows it."""

    def __repr__(self) -> str:
        return plain_text(head_view(self, role_told=True).screen())


def head(source: Any) -> Head:
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
        "looked_at", the number of rows that these come from, "comment_lines", and "problem". If a
        column is missing or the first rows are wrong, "problem" says so, and what is not known is
        None or empty.

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
            return Head(_described(opened, None) | {"problem": str(error)})
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
        except InputError as error:
            told["problem"] = str(error)
    return told


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
