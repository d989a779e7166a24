"""Items that only fill up short lists, which are read as nulls if they are said to."""

import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow.types as kinds

from rankmill.columns.buffers import arrow_of, validity_of
from rankmill.columns.ids import drop_nulls, id_type, to_ids
from rankmill.columns.lists import value_type
from rankmill.columns.objects import array_of
from rankmill.errors import UsageError
from rankmill.kernels.hits import count_last
from rankmill.kernels.identity import SIGNED, STRING, UNSIGNED, Ids
from rankmill.sources.meaning.values import Values, with_values
from rankmill.sources.roles.source import Source

# What implicit and FAISS put behind the items of a list that is too short.
USUAL_PADDING = "-1"
# How to say that an item is padding; notes of results are read by programs and at command lines.
SAY_PADDING = "--padding -1 on the command line, padding=-1 of Labels and Predictions in Python"
INTEGER = re.compile(r"-?[0-9]{1,20}")


def without_padding(source: Source, item: str, padding: str) -> Source:
    """The source with nulls in the place of the items that are padding."""
    if source.lists is not None:
        raise UsageError(
            f"{source.name} holds no padding that could be dropped, as each of its lists has a "
            "length of its own: leave the items out, or give lists or a matrix"
        )
    for file, schema in source.schemas.items():
        found = value_type(schema.field(item).type)
        if kinds.is_integer(found) and not INTEGER.fullmatch(padding):
            raise UsageError(
                f"padding is {padding!r}, but the items in {item!r} of {file} are {found}: give an "
                "integer"
            )

    def unpadded(values: Values) -> Any:
        array = values.array.cast(id_type(values.array.type))  # Arrow cannot take from views
        there = validity_of(array)
        keep = there.copy()
        keep[there] = ~is_id(to_ids(drop_nulls(array), values.batch.source), padding)
        return array.take(arrow_of(np.arange(len(array)), ~keep))

    source.findings.used("padding", item)
    return with_values(source, item, id_type, unpadded)


def padded_tails(offsets: np.ndarray, items: Ids) -> int:
    """How many lists of several items end in what is usually padding."""
    if items.kind == UNSIGNED:
        return 0
    return int(count_last(offsets, items, _usual_padding(items.kind)))


@cache
def _usual_padding(kind: int) -> Ids:
    padding = USUAL_PADDING if kind == STRING else int(USUAL_PADDING)
    return to_ids(array_of([padding], str), "padding")


def padding_notes(lists: int) -> list[str]:
    """A note if so many lists end in what usually is padding."""
    what = f"lists of predictions end in the item {USUAL_PADDING}, which counts as any other"
    return [f"{what}: if it is padding, use {SAY_PADDING}"] if lists else []


def is_id(ids: Ids, text: str) -> np.ndarray:
    """Whether each id is the one that a text names, be it an integer or the text itself."""
    if ids.kind != STRING:
        number = int(text) if INTEGER.fullmatch(text) else 2**64
        low = -(2**63) if ids.kind == SIGNED else 0
        fits = low <= number < low + 2**64
        equal: np.ndarray = ids.keys == np.uint64(number % 2**64)
        return equal & fits
    wanted = np.frombuffer(text.encode(errors="surrogateescape"), np.uint8)
    same: np.ndarray = ids.ends - ids.starts == len(wanted)
    for place, byte in enumerate(wanted.tolist()):
        at = np.flatnonzero(same)
        same[at] = ids.data[ids.starts[at] + place] == byte
    return same
