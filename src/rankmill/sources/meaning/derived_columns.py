"""Columns that are made of others, a batch at a time: ids of several columns, and padding.

A `Key` says of which columns a query id is made, and how their texts are joined. `keyed` opens a
source with one more column, which holds the joined texts; all that reads query ids reads it as any
other column, in every format, so that nothing else knows that there were several.

A list of columns is a tuple: its parts are compared one by one. Their texts are joined by commas,
and a comma or a backslash within a part gets a backslash, so that no two tuples have one text. A
template, such as "{session}_{type}", gives the text that the other side has as it stands. There
two of its columns may not both hold what stands between them, which would make texts ambiguous.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from rankmill.columns.buffers import pc
from rankmill.columns.ids import id_type, is_id_type, is_text_type, plain
from rankmill.errors import InputError
from rankmill.sources.input_options import Key
from rankmill.sources.roles.source import Batch, Block, Source, batch_of, of_batch

BYTES, TEXT = pa.large_binary(), pa.large_string()


def keyed(source: Source, key: Key) -> Source:
    """The source with a column of the query ids that a key makes."""
    held: dict[str, str] = {}  # the parts that hold what stands between parts, each with a value

    def kind_of(file: str, schema: Any) -> Any:
        found = [_part_type(file, schema, part) for part in key.parts]
        return BYTES if any(id_type(one) == BYTES for one in found) else TEXT

    make = partial(_joined, key=key, held=held)
    return derived(source, key.name, key.parts, kind_of, make, key=key)


def _part_type(file: str, schema: Any, part: str) -> Any:
    """The type of a column of ids that is a part of a key."""
    count = schema.names.count(part)
    found = schema.field(part).type if count == 1 else None
    if found is None or not is_id_type(found):
        what = "no column" if count == 0 else f"{count} columns"
        what = f"column {part!r} holds {found}" if found else f"{what} {part!r} for the query"
        raise InputError(
            f"{file}: {what}; the columns are {', '.join(schema.names)}: name columns of "
            "integers or strings with --query or --label-query on the command line, "
            "Labels(query=...) or Predictions(query=...) in Python"
        )
    return found


def derived(
    source: Source,
    name: str,
    parts: Sequence[str],
    kind_of: Callable[[str, Any], Any],
    make: Callable[[Batch], Any],
    key: Key | None = None,
) -> Source:
    """The source with a column that `make` gives of each batch, which holds the columns `parts`.

    `kind_of` takes a file and its schema, and returns the type of the column there.
    """
    made = {
        id(schema): _with_field(schema, name, kind_of(file, schema))
        for file, schema in source.kinds().items()
    }

    def read(columns: Sequence[str]) -> list[str]:
        both = [parts if one == name else (one,) for one in columns]
        return list(dict.fromkeys(one for some in both for one in some))

    def pieces(columns: list[str]) -> Sequence[Iterator[Block]]:
        found = source.pieces(read(columns))
        if name not in columns:
            return found
        return [(partial(_batch, block, name, make) for block in one) for one in found]

    def sizes(columns: list[str]) -> dict[str, tuple[int, int]]:
        found = source.sizes(read(columns))
        if name in columns:
            counts, sizes = zip(*(found[part] for part in parts), strict=True)
            found[name] = max(counts), sum(sizes)
        return {one: found[one] for one in columns}

    def kept(memory: int, columns: list[str] | None) -> Source:
        assert source.kept is not None
        held = source.kept(memory, columns and read(columns))
        return derived(held, name, parts, kind_of, make, key)

    def peek(columns: list[str]) -> Batch | None:
        assert source.peek is not None
        found = source.peek(read(columns))
        return found if found is None or name not in columns else _batch(found, name, make)

    return replace(
        source,
        key=key or source.key,
        schemas={file: made[id(one)] for file, one in source.schemas.items()},
        sizes=sizes,
        pieces=pieces,
        kept=source.kept and kept,
        peek=source.peek and peek,
    )


def _with_field(schema: Any, name: str, kind: Any) -> Any:
    place = schema.get_field_index(name)
    made = pa.field(name, kind)
    return schema.append(made) if place < 0 else schema.set(place, made)


def _batch(block: Block, name: str, make: Callable[[Batch], Any]) -> Batch:
    batch = batch_of(block)
    columns = dict(zip(batch.data.schema.names, batch.data.columns, strict=True))
    columns[name] = of_batch(make, batch)
    return batch._replace(data=pa.record_batch(columns))


def _joined(batch: Batch, key: Key, held: dict[str, str]) -> Any:
    """The ids of a batch; null where a part is null."""
    parts, kind = [], TEXT
    for name in key.parts:
        column = plain(batch.data.column(name), f"{batch.source}: column {name!r}")
        if is_text_type(column.type):
            kind = BYTES if id_type(column.type) == BYTES else kind
            column = column.cast(BYTES)
            if not key.texts:
                for one in (b"\\", b","):
                    column = pc.replace_substring(column, pattern=one, replacement=b"\\" + one)
        else:
            column = column.cast(TEXT).view(BYTES)
        parts.append(column)
    if not key.texts:
        joined = pc.binary_join_element_wise(*parts, pa.scalar(b",", BYTES))
        return joined.view(kind)
    _check_unambiguous(batch, key, parts, held)
    texts = [pa.scalar(one.encode(), BYTES) for one in key.texts]
    both = [one for pair in zip(texts, parts, strict=False) for one in pair]
    return pc.binary_join_element_wise(*both, texts[-1], pa.scalar(b"", BYTES)).view(kind)


def _check_unambiguous(batch: Batch, key: Key, parts: list[Any], held: dict[str, str]) -> None:
    """Raise InputError if two parts hold what stands between parts: then no text tells them apart.

    If only one does, the others end where the first or the last of these characters stands.
    """
    for name, column in zip(key.parts, parts, strict=True):
        for one in sorted(set("".join(key.texts[1:-1]))):
            if name in held:
                break
            row = pc.index(pc.match_substring(column, pattern=one), True).as_py()
            if row >= 0:
                held[name] = f"{column[row].as_py().decode(errors='backslashreplace')!r}"
                if len(held) > 1:
                    told = " and ".join(f"{value} in {part!r}" for part, value in held.items())
                    raise InputError(
                        f"{batch.source}: {batch.place.of(row)}: several columns of the query hold "
                        f"{one!r}, which also separates them: {told}; so a joined text may be of "
                        "different queries: change the ids, or give both sides by their columns, "
                        f"as --query {','.join(key.parts)} on the command line, "
                        f"query={[*key.parts]} of both in Python"
                    )
