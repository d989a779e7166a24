"""Answer: what all outcomes of functions have in common."""

from __future__ import annotations

from typing import Any

# What may differ between two answers of the same call, or of the same data in other files.
_APART = ("rankmill", "inputs", "seconds", "checksum")


class Answer:
    """An outcome that has a dict for JSON, and is equal to others that say the same.

    What was read, how long it took and the tables of each query are not compared.
    """

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON holds, as dicts, lists, strings and numbers."""
        raise NotImplementedError

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as one JSON object: strict JSON, plain ASCII.

        Parameters
        ----------
        indent : int, optional
            Spaces a level; without it everything is on one line.
        """
        import json

        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    __hash__ = None  # type: ignore[assignment]

    def _compared(self) -> dict[str, Any]:
        held = {name: one for name, one in vars(self).items() if isinstance(one, Answer)}
        return {name: one for name, one in self.to_dict().items() if name not in _APART} | held
