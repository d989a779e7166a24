"""Reading the fields of the rows that states are saved as; each field is checked."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import numpy as np

from rankmill.columns.seal import seal_of
from rankmill.errors import UsageError
from rankmill.metrics.records.fingerprints import FORMAT, READ, Seen

Row = Mapping[str, Any]
SEAL = "row_checksum"

Chosen = TypeVar("Chosen")


def damaged(what: str) -> UsageError:
    """Return the error for a row that is not one of a state."""
    return UsageError(
        f"the row of a state is damaged: {what}; expected a row as to_row made it: evaluate or "
        "count that part again"
    )


def check_format(row: Row) -> None:
    """Raise UsageError if a row has another format version."""
    if field(row, "format") not in READ:
        raise UsageError(
            f"the row of a state is of format {row['format']!r}, and this version of rankmill "
            f"reads formats {READ[0]} to {FORMAT}: make and read all states with one version"
        )


def sealed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its checksum, which `check_seal` reads."""
    return {**row, SEAL: seal_of(row)}


def check_seal(row: Row, prefixes: tuple[str, ...] = (), names: Collection[str] = ()) -> None:
    """Raise UsageError if a row is not as `sealed` made it.

    It may hold other fields besides: those of other jobs and of users. Its own are `names`, and
    those that begin with one of `prefixes`.
    """
    own = {name: row[name] for name in row if name in names or name.startswith(prefixes)}
    if text(row, SEAL) != seal_of(own):
        raise damaged("its checksum is not that of its fields")


def field(row: Row, name: str) -> Any:
    """Return a field without a check of its value."""
    if name not in row:
        raise damaged(f"it has no {name!r}")
    return row[name]


def count(row: Row, name: str) -> int:
    """Return an integer of 0 or more."""
    value = field(row, name)
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise damaged(f"{name} is {value!r}, not a count")
    return int(value)


def number(row: Row, name: str) -> float:
    """Return a finite number."""
    value = field(row, name)
    if not isinstance(value, int | float | np.number) or not np.isfinite(value):
        raise damaged(f"{name} is {value!r}, not a number")
    return float(value)


def text(row: Row, name: str) -> str:
    """Return a text."""
    value = field(row, name)
    if not isinstance(value, str):
        raise damaged(f"{name} is {value!r}, not text")
    return value


def choices(kind: Callable[..., Chosen], row: Row, name: str) -> Chosen:
    """Return the rules that a field holds as JSON."""
    try:
        return kind(**json.loads(text(row, name)))
    except (TypeError, ValueError) as error:
        raise damaged(f"{name}: {error}") from None


def texts(row: Row, name: str) -> list[str]:
    """Return a list of texts."""
    value = field(row, name)
    if not isinstance(value, list | tuple | np.ndarray):
        raise damaged(f"{name} is {value!r}, not a list of texts")
    return [text({name: one}, name) for one in value]


def seen(row: Row, prefix: str, name: str = "") -> Seen:
    """Return what `Seen.to_row` made; `prefix` comes before the names of its fields."""
    checksum = text(row, f"{prefix}checksum")
    if not re.fullmatch("[0-9a-f]{16}", checksum):
        raise damaged(f"{prefix}checksum is {checksum!r}, not 16 hexadecimal digits")
    return Seen(count(row, f"{prefix}predictions"), int(checksum, 16))


def counts(row: Row, name: str, least: int) -> np.ndarray:
    """Return an array of int64 whose values are all `least` or more."""
    values = integers(row, name)
    if values.min(initial=least) < least:
        raise damaged(f"{name}[{values.argmin()}] is {values.min()}, not a count")
    return values


def integers(row: Row, name: str) -> np.ndarray:
    """Return an array of int64."""
    return _array(row, name, "iu").astype(np.int64, copy=False)


def ascending(row: Row, name: str) -> np.ndarray:
    """Return a strictly ascending array of float32 or float64."""
    values = _array(row, name, "f")
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    if not (values[1:] > values[:-1]).all() or np.isnan(values).any():
        raise damaged(f"{name} is not strictly ascending")
    return values


def numbers(row: Row, name: str) -> np.ndarray:
    """Return an array of float64 without NaN."""
    values = _array(row, name, "f").astype(np.float64, copy=False)
    if np.isnan(values).any():
        raise damaged(f"{name} holds NaN")
    return values


def below(name: str, values: np.ndarray, bound: int) -> None:
    """Raise UsageError if one of the values is not below a bound."""
    if values.max(initial=0) >= bound:
        raise damaged(f"{name} holds {values.max()}; expected numbers below {bound}")


def same_length(row: Row, first: str, second: str) -> None:
    """Raise UsageError if two arrays have different lengths."""
    lengths = len(row[first]), len(row[second])
    if lengths[0] != lengths[1]:
        raise damaged(f"{first} and {second} hold {lengths[0]} and {lengths[1]} numbers")


def at_most(predictions: int, names: str, *counted: np.ndarray) -> None:
    """Raise UsageError if arrays of counts add up to more than the number of predictions."""
    total = sum(float(one.sum(dtype=np.float64)) for one in counted)  # an int64 sum may overflow
    if total > predictions:
        raise damaged(f"{names} add up to {total:,.0f}, of {predictions:,} predictions")


def _array(row: Row, name: str, kinds: str) -> np.ndarray:
    value = field(row, name)
    try:
        values = np.asarray(value)
    except ValueError:  # raised for nested lists of different lengths
        values = np.empty((0, 0))
    if values.ndim != 1 or (values.dtype.kind not in kinds and values.size):
        raise damaged(f"{name} is not a list of numbers")
    return values
