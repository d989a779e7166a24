"""Reading the fields of the rows that states are saved as, each checked; and fingerprints.

These tell whether two states belong to one job, and whether two passes saw the same.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from rankmill.columns.seal import mix, seal_of
from rankmill.errors import UsageError

Row = Mapping[str, Any]
SEAL = "row_checksum"

Chosen = TypeVar("Chosen")


# The format version of the rows of states. Raise it when the meaning of a row changes.
FORMAT = 7
# The formats that are read. Rows of format 6 do not tell what was read.
READ = 6, FORMAT
# The version of what the fingerprint of a state hashes, so that those of READ are comparable.
JOB_FORMAT = 6
# Arrays are hashed in pieces of this many numbers, so hashing needs almost no memory.
PIECE = 1 << 16


class Seen(NamedTuple):
    """A summary of the confidences that a pass saw; it does not depend on their order."""

    predictions: int = 0  # the number of confidences
    # The sum of a 64-bit hash of each confidence, modulo 2**64, or 0 if no checksum is needed.
    checksum: int = 0

    @classmethod
    def of(cls, confidences: np.ndarray, checksum: bool) -> Self:
        """Return the summary of an array, with a checksum if `checksum`."""
        return cls(len(confidences), _checksum(confidences) if checksum else 0)

    def merge(self, other: Self) -> Self:
        """Return the summary of the confidences of both."""
        checksum = (self.checksum + other.checksum) % 2**64
        return type(self)(self.predictions + other.predictions, checksum)

    def to_row(self) -> dict[str, Any]:
        """Return fields of a flat row; the checksum is text, as it may exceed int64."""
        return {"predictions": self.predictions, "checksum": f"{self.checksum:016x}"}


NOTHING = Seen()


def _checksum(confidences: np.ndarray) -> int:
    total = 0
    for start in range(0, len(confidences), PIECE):
        bits = canonical(confidences[start : start + PIECE]).view(np.uint64)
        mix(bits)  # without it, arrays such as 1, 4 and 2, 3 have equal sums
        total += int(bits.sum())
    return total % 2**64


def canonical(confidences: np.ndarray) -> np.ndarray:
    """Return a float64 copy with -0.0 as 0.0, in which equal numbers have equal bits."""
    return confidences + np.float64(0)


def digest(text: str, *arrays: np.ndarray) -> str:
    """Hash a text and arrays of integers or confidences; float32 and float64 give the same."""
    from hashlib import blake2b  # imported here because most evaluations do not need it

    hashed = blake2b(text.encode(), digest_size=16)
    for array in arrays:
        hashed.update(f"{len(array)} ".encode())
        for start in range(0, len(array), PIECE):
            piece = array[start : start + PIECE]
            hashed.update((canonical(piece) if piece.dtype.kind == "f" else piece).tobytes())
    return hashed.hexdigest()


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
