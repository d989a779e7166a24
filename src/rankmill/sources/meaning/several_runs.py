"""Predictions of several systems or days in one input, which would be read as those of one."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any

import pyarrow.types as kinds

from rankmill.errors import RankmillError, plural
from rankmill.sources.meaning.column_names import plain
from rankmill.sources.meaning.looks import head, with_bytes
from rankmill.sources.roles.source import Columns, Source, batch_of

# So many queries tell which column parts the runs, by so many of their rows at most.
QUERIES, ROWS = 2_000, 200_000
RUN, TAG = "TREC run", "tag"
# What the column of several runs is called.
NAMES = {
    *("run", "runid", "runname", "model", "modelid", "modelname", "system", "systemid", "tag"),
    *("systemname", "variant", "experiment", "algorithm", "algo", "recommender", "method"),
}
# So many predictions have at most one that repeats an item, if none is by chance.
REPEATED = 10


def several_runs(
    source: Source, columns: Columns, audit: Mapping[str, int], labels: Collection[str]
) -> list[str]:
    """A note if most queries have a rank twice, or tags; `labels` are columns of the labels."""
    if columns.wide or source.lists is not None:
        return []
    try:
        return _noted(source, columns, audit, labels)
    except RankmillError:  # in columns that nobody asked for
        return []


def _noted(
    source: Source, columns: Columns, audit: Mapping[str, int], labels: Collection[str]
) -> list[str]:
    parts = source.key.parts if source.key else (columns.query,)
    repeated, found = audit["repeated_items"], None
    if columns.rank is not None and 2 * audit["tied_ranks"] >= audit["predictions"] > 0:
        found = _parting(source, columns, parts, columns.rank)
        what = f"most predictions have the same {columns.rank!r} as another of their query"
    elif (found := _tag(source, columns, parts, repeated)) is not None:
        what = f"most queries have predictions of several {found}s"
    elif REPEATED * repeated >= audit["predictions"] > 0:
        found = _parting(source, columns, parts, columns.item)
        what = f"{plural(repeated, 'prediction', 'repeats', 'repeat')} an item of their query"
        if found is None:
            return []
    else:
        return []
    by = f", which {found!r} tells apart" if found else ""
    note = f"{source.name}: {what}, so they may be of several runs{by}: keep one of these"
    if found and {*parts, found} <= {*labels}:
        key = [*parts, found]
        note += f", or if the labels have them too, use --query {','.join(key)} on the command "
        note += f"line, query={key} of both in Python"
    return [note]


def _parting(source: Source, columns: Columns, parts: Sequence[str], rank: str) -> str | None:
    """The column of the fewest values that is not read and parts rows of equal query and rank.

    `rank` may also be the column of items.
    """
    if not source.whole:
        return None
    names = [*parts, rank]
    read = {*names, *columns.names()}
    schema = source.schema
    rest = [one.name for one in schema if one.name not in read and not kinds.is_nested(one.type)]
    rest = [name for name in rest if schema.names.count(name) == 1]
    rows = _rows_of_some(source, names, rest)
    keys = [*zip(*(rows[name] for name in names), strict=True)]
    found = [
        (len({*rows[name]}), name)
        for name in rest
        if len({*zip(keys, rows[name], strict=True)}) == len(keys) > len({*rows[name]})
    ]
    # Few values part many rows: not a time, which parts all.
    found = [one for one in found if rank == columns.rank or 1 < one[0] ** 2 <= len(keys)]
    return min(found)[1] if found else None


def _tag(source: Source, columns: Columns, parts: Sequence[str], repeated: int) -> str | None:
    """The column that is called as runs are, if most queries have several values of it.

    It says nothing of items: one that is predicted twice has several values of it, too.
    """
    if not source.whole:
        return None
    read = {*parts, *columns.every()}
    named = [one for one in source.schema.names if one not in read and plain(one) in NAMES]
    for name in [TAG] if source.format == RUN else named:
        if not repeated and len(head(source, [name])[name].unique()) < 2:
            continue
        rows = _rows_of_some(source, parts, [columns.item, name])
        queries = [*zip(*(rows[one] for one in parts), strict=True)]
        several = 2 * len({*zip(queries, rows[name], strict=True)}) > 3 * len({*queries})
        pairs = {*zip(rows[columns.item], rows[name], strict=True)}
        if several and (source.format == RUN or len(pairs) > len({*rows[columns.item]})):
            return name
    return None


def _rows_of_some(
    source: Source, parts: Sequence[str], more: Sequence[str]
) -> dict[str, list[Any]]:
    """The values of some columns in all rows of the first queries, wherever they are."""
    import pyarrow.compute as pc

    found: dict[str, list[Any]] = {name: [] for name in (*parts, *more)}
    first = None
    pieces: Sequence[Any] = source.pieces([*found])  # generators, or other iterators
    for piece in pieces:
        with closing(piece) if hasattr(piece, "close") else nullcontext():
            for block in piece:
                data = batch_of(block).data
                of_query = with_bytes(data.column(parts[0]))
                first = of_query.unique()[:QUERIES] if first is None else first
                some = pc.is_in(of_query, first)
                for name, values in found.items():
                    values.extend(with_bytes(data.column(name)).filter(some).to_pylist())
                if len(found[parts[0]]) >= ROWS:
                    return found
    return found
