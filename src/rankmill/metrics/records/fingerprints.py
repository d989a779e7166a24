"""Fingerprints, which tell whether two states belong to one job and two passes saw the same."""

from typing import Any, NamedTuple, Self

import numpy as np

from rankmill.columns.checksum import mix

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
