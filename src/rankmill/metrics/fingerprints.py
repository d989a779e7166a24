"""What tells states of one job apart from those of another, and one pass from another."""

from typing import Any, NamedTuple, Self

import numpy as np

# The version of the rows that states travel as: raise it when their meaning changes.
FORMAT = 1
# So many numbers at a time, so that hashing takes no memory to speak of.
PIECE = 1 << 16


class Seen(NamedTuple):
    """The confidences that a pass went over, in any order.

    Attributes
    ----------
    predictions : int
        How many.
    checksum : int
        The sum of a 64-bit hash of each, modulo 2**64; 0 where none is asked for.
    """

    predictions: int = 0
    checksum: int = 0

    @classmethod
    def of(cls, confidences: np.ndarray, checksum: bool) -> Self:
        """Those of an array."""
        return cls(len(confidences), _checksum(confidences) if checksum else 0)

    def merge(self, other: Self) -> Self:
        """Those of both."""
        checksum = (self.checksum + other.checksum) % 2**64
        return type(self)(self.predictions + other.predictions, checksum)

    def to_row(self) -> dict[str, Any]:
        """Fields of a flat row; the checksum as text, which no integer type is too small for."""
        return {"predictions": self.predictions, "checksum": f"{self.checksum:016x}"}


NOTHING = Seen()


def _checksum(confidences: np.ndarray) -> int:
    total = 0
    for start in range(0, len(confidences), PIECE):
        bits = canonical(confidences[start : start + PIECE]).view(np.uint64)
        # The finalizer of MurmurHash3: a sum of the bits alone is the same for 1, 4 and 2, 3.
        for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            bits ^= bits >> np.uint64(33)
            bits *= np.uint64(factor)
        bits ^= bits >> np.uint64(33)
        total += int(bits.sum())
    return total % 2**64


def canonical(confidences: np.ndarray) -> np.ndarray:
    """A copy whose bits are the same for equal numbers: float64, and 0.0 for -0.0."""
    return confidences + np.float64(0)


def digest(text: str, *arrays: np.ndarray) -> str:
    """The hash of a text and of arrays of integers or confidences, float32 or float64 alike."""
    from hashlib import blake2b  # most evaluations need none

    hashed = blake2b(text.encode(), digest_size=16)
    for array in arrays:
        hashed.update(f"{len(array)} ".encode())
        for start in range(0, len(array), PIECE):
            piece = array[start : start + PIECE]
            hashed.update((canonical(piece) if piece.dtype.kind == "f" else piece).tobytes())
    return hashed.hexdigest()
