"""Predictions of several systems or days in one input, which would be read as those of one."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing, nullcontext
from typing import Any

import pyarrow.types as kinds

from rankmill.sources.meaning.looks import head, with_bytes
from rankmill.sources.roles.source import Columns, Source, batch_of

# So many rows tell which column parts the runs.
ROWS = 200_000
RUN, TAG = "TREC run", "tag"


def several_runs(
    source: Source, columns: Columns, audit: Mapping[str, int], labels: Collection[str]
) -> list[str]:
    """A note if most queries have a rank twice, or tags; `labels` are columns of the labels."""
    if columns.wide or source.lists is not None:
        return []
    parts = source.key.parts if source.key else (columns.query,)
    found = None
    if columns.rank is not None and 2 * audit["tied_ranks"] >= audit["predictions"] > 0:
        found = _parting(source, columns, (*parts, columns.rank))
        what = f"most predictions have the same {columns.rank!r} as another of their query"
    elif source.format == RUN and source.whole and _has_tags(source, parts, audit):
        found, what = TAG, "most queries have predictions of several tags"
    else:
        return []
    by = f", which {found!r} tells apart" if found else ""
    note = f"{source.name}: {what}, so they may be of several runs{by}: keep one of these"
    if found and {*parts, found} <= {*labels}:
        key = [*parts, found]
        note += f", or if the labels have them too, use --query {','.join(key)} on the command "
        note += f"line, query={key} of both in Python"
    return [note]


def _parting(source: Source, columns: Columns, names: Sequence[str]) -> str | None:
    """The column of the fewest values that is not read and parts rows of equal query and rank."""
    if not source.whole:
        return None
    read = {*names, *columns.names()}
    schema = source.schema
    rest = [one.name for one in schema if one.name not in read and not kinds.is_nested(one.type)]
    rest = [name for name in rest if schema.names.count(name) == 1]
    rows = _first_rows(source, [*names, *rest])
    keys = [*zip(*(rows[name] for name in names), strict=True)]
    found = [
        (len({*rows[name]}), name)
        for name in rest
        if len({*zip(keys, rows[name], strict=True)}) == len(keys) > len({*rows[name]})
    ]
    return min(found)[1] if found else None


def _has_tags(source: Source, parts: Sequence[str], audit: Mapping[str, int]) -> bool:
    """Whether most queries of a run of TREC have more than one tag."""
    if not audit["repeated_items"] and len(head(source, [TAG])[TAG].unique()) < 2:
        return False
    rows = _first_rows(source, [*parts, TAG])
    queries = [*zip(*(rows[name] for name in parts), strict=True)]
    return 2 * len({*zip(queries, rows[TAG], strict=True)}) > 3 * len({*queries})


def _first_rows(source: Source, names: Sequence[str]) -> dict[str, list[Any]]:
    """The values of some columns in the first rows of all pieces."""
    found: dict[str, list[Any]] = {name: [] for name in names}
    pieces: Sequence[Any] = source.pieces([*names])  # generators, or other iterators
    for piece in pieces:
        with closing(piece) if hasattr(piece, "close") else nullcontext():
            for block in piece:
                data = batch_of(block).data
                for name, values in found.items():
                    values.extend(with_bytes(data.column(name)).to_pylist())
                if len(found[names[0]]) >= ROWS:
                    return found
    return found
