"""The values of a column in a batch, be it one a row or lists of them, and how they are changed."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from rankmill.columns.buffers import arrow_of, floats_of, pc
from rankmill.columns.ids import id_type, plain
from rankmill.columns.lists import is_list_type, split_lists, value_type
from rankmill.errors import InputError
from rankmill.sources.meaning.derived_columns import derived
from rankmill.sources.roles.source import Batch, OddIds, Source

Convert = Callable[["Values"], Any]


class Values(NamedTuple):
    """The values of a column in a batch."""

    array: Any
    offsets: np.ndarray | None  # of lists; None if there is a value a row
    batch: Batch
    name: str

    @classmethod
    def of(cls, batch: Batch, name: str) -> Self:
        """The values of a column."""
        column, offsets = batch.data.column(name), None
        if is_list_type(column.type):
            offsets, column = split_lists(column)
        return cls(plain(column, f"{batch.source}: column {name!r}"), offsets, batch, name)

    def texts(self) -> Any:
        """Texts or bytes as large_string; InputError where they are not valid UTF-8."""
        raw = self.array.cast(id_type(self.array.type)).cast(pa.large_binary())
        try:
            return raw.cast(pa.large_string())
        except pa.ArrowInvalid:
            found = (one or b"" for one in raw.to_pylist())
            odd = next(
                i for i, one in enumerate(found) if one.decode(errors="ignore").encode() != one
            )
        raise self._replace(array=raw).error(odd, "expected text in UTF-8")

    def error(self, i: int, todo: str) -> InputError:
        """The error for value i."""
        row = i if self.offsets is None else int(np.searchsorted(self.offsets, i, "right")) - 1
        where = ", ".join(filter(None, [self.batch.place.of(row), f"column {self.name!r}"]))
        found = self.array[i].as_py()
        return InputError(f"{self.batch.source} ({where}): found {found!r:.80}; {todo}")

    def whole(self, most: float, todo: Callable[[float], str]) -> Any:
        """Floats as integers, NaN as null; `todo` tells of one that is a fraction or beyond."""
        floats = floats_of(self.array).astype(np.float64)
        missing = np.isnan(floats)
        floats[missing] = 0
        bad = (np.floor(floats) != floats) | (np.abs(floats) > most)
        if bad.any():
            i = int(bad.argmax())
            raise self.error(i, todo(float(floats[i])))
        return arrow_of(floats.astype(np.int64), missing)

    def tell(
        self, source: Source, marks: Any, rule: str, what: tuple[str, str, str], todo: str
    ) -> None:
        """Tell how many of the values are marked, which is said of them, and one of these."""
        number = pc.sum(marks).as_py() or 0
        texts = self.array.cast(id_type(self.array.type))
        example = pc.min(texts.filter(marks)).as_py() if number else None
        kind = OddIds(source.name, self.name, rule, what, todo)
        source.findings.count(self.batch.place, kind, number, example)


def with_values(
    source: Source,
    name: str,
    kinds_of: Callable[[Any], Any],
    change: Convert,
) -> Source:
    """The source with other values in a column; `kinds_of` takes the type that they have so far."""

    def kind_of(file: str, schema: Any) -> Any:
        kind = schema.field(name).type
        made = kinds_of(value_type(kind))
        return pa.large_list(made) if is_list_type(kind) else made

    def make(batch: Batch) -> Any:
        values = Values.of(batch, name)
        made = change(values)
        if made is values.array:
            return batch.data.column(name)
        if values.offsets is None:
            return made
        return pa.LargeListArray.from_arrays(arrow_of(values.offsets), made)

    return derived(source, name, (name,), kind_of, make)
