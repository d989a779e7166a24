"""What was found in an input while it was read, and is told: how often, and one example."""

from typing import Any, NamedTuple

from rankmill.columns.place import Place


class OddIds(NamedTuple):
    """A kind of ids of a column that are not compared as they stand."""

    source: str
    column: str
    what: str  # is said of them before an example
    todo: str

    def told(self, number: int, example: Any) -> str:
        """What is told of so many of them."""
        found = f"{self.source}: {number:,} ids of {self.column!r} {self.what} {example!r}"
        return f"{found}: {self.todo}"


class InputFindings:
    """Notes on an input; a batch that is read again replaces what it told before."""

    def __init__(self) -> None:
        self._said: dict[str, None] = {}
        self._found: dict[OddIds, dict[tuple[str, int], tuple[int, Any]]] = {}

    def say(self, note: str) -> None:
        """Add a note, once."""
        self._said[note] = None

    def count(self, place: Place, kind: OddIds, number: int, example: Any) -> None:
        """Add how many ids of a kind a batch has, if any; any thread may call it."""
        if number:
            of_kind = self._found.setdefault(kind, {})
            of_kind[place.source, place.first] = number, example

    def forget(self) -> None:
        """Count anew, as other rows are read."""
        self._found.clear()

    def counts(self) -> dict[OddIds, tuple[int, Any]]:
        """How many ids of each kind there are, and the first of them by its text."""
        found = {kind: list(of_kind.values()) for kind, of_kind in self._found.items()}
        return {
            kind: (sum(number for number, _ in each), min(example for _, example in each))
            for kind, each in found.items()
        }

    def notes(self) -> list[str]:
        """Everything that is to be told, in an order that no thread changes."""
        found = self.counts()
        return [*self._said, *(kind.told(*found[kind]) for kind in sorted(found))]
